"""A format of another system: how its files are read as drafts, counted by the check, and grouped into batches."""

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memory.access.principal import Principal
from memory.core.errors import NotVisible
from memory.ingest.items import IngestItem
from memory.policy.effective import policies_current
from memory.transfer.forecast import Forecast
from memory.transfer.importers.draft import Draft
from memory.transfer.importers.new_items import item_counts, items_new
from memory.transfer.report import MAX_PROBLEMS, ImportReport, Progress, counts_add

# Small enough that a killed worker loses little, large enough to keep the embedder busy.
BATCH = 200
# Pairs of a member and a clause are counted separately up to this number; the others are counted together.
MAX_CLAUSES = 100
# Ids of a file that are kept to find duplicates, so that memory stays bounded. Earlier ids are found in the store.
MAX_SEEN = 500_000
_OTHERS = ("other members", "they are unknown")

Clauses = Counter[tuple[str, str]]


class Batch(NamedTuple):
    """Items for one transaction. ``offset`` and ``lines`` are the bytes and drafts of the file up to the end of the
    last item."""

    items: Sequence[IngestItem]
    offset: int
    lines: int


@dataclass(frozen=True)
class Importer:
    """Reads one file format of another system. ``name`` is used in commands, ``title`` on pages, ``noun`` and ``nouns``
    for one entry and several. ``read`` yields the drafts of a file for a scope and a time. If ``forgiving``, an invalid
    entry is counted and left out; otherwise it prevents the import."""

    name: str
    title: str
    noun: str
    nouns: str
    read: Callable[[Path, str, dt.datetime], Iterator[Draft]]
    forgiving: bool = False

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each entry, in the order of the file. ``scope`` is the canonical path of the target. Times
        after ``now`` are invalid. A file must give the same drafts each time, because a killed import continues after
        the last stored batch. Raises ``OSError``, and ``RequestRefused`` for a file that is not JSON."""
        seen: set[str | None] = set()
        for number, draft in enumerate(self.read(path, scope, now), start=1):
            draft.number = number
            if draft.item is not None and draft.item.placement == "new_topic":
                if draft.item.topic_id in seen:
                    draft.item = None
                    draft.lost = [(self.nouns, f"an earlier {self.noun} of the file is the same or has the same id")]
                elif len(seen) < MAX_SEEN:
                    seen.add(draft.item.topic_id)
            yield draft

    def check(
        self, path: Path, *, scope: str, principal: Principal, now: dt.datetime, progress: Progress | None = None
    ) -> ImportReport:
        """Read the whole file and count its entries. An invalid entry is a problem, which prevents the import. A
        forgiving importer reports it as a loss. Two queries per ``BATCH`` entries. Raises ``NotVisible``,
        ``OSError``, and ``RequestRefused`` for a file that is not JSON."""
        if not principal.sees(scope):
            raise NotVisible(f"Scope {scope} does not exist.")
        report = ImportReport(self.name, size=path.stat().st_size)
        lost: Clauses = Counter()
        notes: Clauses = Counter()
        problems = items = 0
        forecast = Forecast(policies_current(), now)
        for drafts in _chunks(self.drafts(path, scope=scope, now=now)):
            for draft in drafts:
                if draft.problem and self.forgiving:
                    draft.lose(f"damaged {self.nouns}", "they cannot be read")
                elif draft.problem:
                    problems += 1
                    report.problems += [f"{draft.place}: {draft.problem}"] if problems <= MAX_PROBLEMS else []
                _clauses_add(lost, draft.lost)
                _clauses_add(notes, draft.notes)
            found = [draft.item for draft in drafts if draft.item is not None]
            items += len(found)
            counts, new = items_new(found, check=True)
            for item in new:
                counts_add(counts, item_counts(item))
            forecast.add([item for item in new if item.placement == "new_topic"])
            counts_add(report.sorts, counts)
            report.lines = drafts[-1].number
            if progress is not None:
                progress(drafts[-1].offset, report.size)
        if problems > MAX_PROBLEMS:
            report.problems.append(f"And {problems - MAX_PROBLEMS:,} more.")
        if not report.lines or (self.forgiving and not items):
            report.problems.append(f"This file contains no {self.nouns}.")
        report.losses = [
            *(f"{count:,} of {report.lines:,}: {name}: not kept, {why}." for (name, why), count in lost.most_common()),
            *(f"{count:,} of {report.lines:,}: {name} {how}." for (name, how), count in notes.most_common()),
        ]
        report.forecast = forecast.sentences()
        return report

    def batches(self, path: Path, *, scope: str, now: dt.datetime, done: int) -> Iterator[Batch]:
        """Yield the items after the first ``done`` drafts, in batches. The file is read from its beginning, because the
        link and the time of a message depend on the messages before it."""
        for drafts in _chunks(itertools.islice(self.drafts(path, scope=scope, now=now), done, None)):
            items = [draft.item for draft in drafts if draft.item is not None]
            yield Batch(items, drafts[-1].offset, drafts[-1].number)


def _clauses_add(counted: Clauses, found: list[tuple[str, str]]) -> None:
    # An entry is counted once for each clause.
    for pair in dict.fromkeys(found):
        counted[pair if pair in counted or len(counted) < MAX_CLAUSES else _OTHERS] += 1


def _chunks(drafts: Iterator[Draft]) -> Iterator[list[Draft]]:
    while chunk := list(itertools.islice(drafts, BATCH)):
        yield chunk
