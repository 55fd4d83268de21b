"""The interface of importers for files of other systems, and their registry.

An importer turns a file into items of ingest; ``importing`` writes them. The same file must always give the same items
in the same order, because a killed import continues after the last stored batch.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from memory.access.principal import Principal
from memory.ingest.items import IngestItem
from memory.transfer.report import ImportReport, Progress


class Batch(NamedTuple):
    """Items for one transaction. ``offset`` and ``lines`` count the bytes and entries of the file up to the end of the
    batch."""

    items: Sequence[IngestItem]
    offset: int
    lines: int


class Source(Protocol):
    """A file format. ``name`` is used in commands, ``title`` on pages; ``noun`` is the word for one entry."""

    name: str
    title: str
    noun: str

    def check(
        self, path: Path, *, scope: str, principal: Principal, now: dt.datetime, progress: Progress | None = None
    ) -> ImportReport:
        """Read the whole file and report what an import into ``scope`` would write and skip. Changes nothing. The
        caller sets ``digest`` and ``size``. Raises ``RequestRefused`` for a file of another format, ``OSError``."""
        ...

    def batches(self, path: Path, *, scope: str, now: dt.datetime, offset: int) -> Iterator[Batch]:
        """Yield the items after ``offset``, a few hundred at a time. ``now`` is the start of the import."""
        ...


# By name; filled by ``memory.transfer.importers``.
SOURCES: dict[str, Source] = {}
