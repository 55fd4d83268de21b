"""Files that something else than MemState has written: what an importer offers, and which there are.

An importer turns a file into items of ingest; ``importing`` writes them. The same file has to give the same items in
the same order each time, since an import that was killed goes on behind the last batch that is stored.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from memory.access.principal import Principal
from memory.ingest.items import IngestItem
from memory.transfer.report import ImportReport, Progress


class Batch(NamedTuple):
    """Items that are written in one transaction; ``offset`` and ``lines`` are bytes and entries of the file up to their
    end, from its beginning on."""

    items: Sequence[IngestItem]
    offset: int
    lines: int


class Source(Protocol):
    """A sort of file. ``name`` is what commands call it, ``title`` what people read, ``noun`` what one entry is."""

    name: str
    title: str
    noun: str

    def check(
        self, path: Path, *, scope: str, principal: Principal, now: dt.datetime, progress: Progress | None = None
    ) -> ImportReport:
        """Read all of the file, and return what importing it into ``scope`` would bring, and what not and why, without
        changing anything. ``digest`` and ``size`` are filled in by the caller. Raises ``RequestRefused`` for what is no
        such file, ``OSError``."""
        ...

    def batches(self, path: Path, *, scope: str, now: dt.datetime, offset: int) -> Iterator[Batch]:
        """Yield the items behind ``offset``, a few hundred at a time. ``now`` is when the import began."""
        ...


# By name; filled by ``memory.transfer.importers``.
SOURCES: dict[str, Source] = {}
