"""The base of all importers: parses a file into drafts, counts them for the check, and groups them into batches."""

import datetime as dt
import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from memory.access.principal import Principal
from memory.core.errors import NotVisible
from memory.core.problem_codes import ProblemCode
from memory.ingest.items import IngestItem
from memory.policy.effective import policies_current
from memory.transfer.forecast import Forecast
from memory.transfer.importers.draft import Draft
from memory.transfer.importers.known import ids_known, item_id
from memory.transfer.report import BROUGHT, MAX_PROBLEMS, THERE, ImportReport, Progress

# Small enough that a killed worker loses little, large enough to keep the embedder busy.
BATCH = 200
# Pairs of a member and a clause are counted separately up to this number; the others are counted together.
MAX_CLAUSES = 100
_OTHERS = ("other members", "they are unknown")

Clauses = Counter[tuple[str, str]]


class Batch(NamedTuple):
    """Items for one transaction. ``offset`` and ``lines`` are the bytes and entries of the file up to the end of the
    last item."""

    items: Sequence[IngestItem]
    offset: int
    lines: int


class Importer(ABC):
    """Reads one file format of another system. ``name`` is used in commands, ``title`` on pages."""

    name: str
    title: str
    # The words for one entry and for several.
    noun: str
    nouns: str
    # If true, an invalid entry is counted and left out. If false, an invalid entry prevents the import.
    forgiving = False

    @abstractmethod
    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each entry, in the order of the file. ``scope`` is the canonical path of the target. Times
        after ``now`` are invalid. A file must give the same drafts each time, because a killed import continues after
        the last stored batch. Raises ``RequestRefused`` for a file that is not JSON, ``OSError``."""

    def check(
        self, path: Path, *, scope: str, principal: Principal, now: dt.datetime, progress: Progress | None = None
    ) -> ImportReport:
        """Read the whole file and count its entries. An invalid entry is a problem, which prevents the import. A
        forgiving importer reports it as a loss. Two queries per ``BATCH`` entries. Raises ``NotVisible``,
        ``RequestRefused`` for a file that is not JSON, ``OSError``."""
        if not principal.sees(scope):
            raise NotVisible(f"Scope {scope} does not exist.", code=ProblemCode.SCOPE_NOT_FOUND)
        report = ImportReport(self.name, size=path.stat().st_size)
        lost: Clauses = Counter()
        notes: Clauses = Counter()
        problems = items = 0
        forecast = Forecast(policies_current(), now)
        for drafts in _chunks(self.drafts(path, scope=scope, now=now)):
            for draft in drafts:
                if draft.problem and self.forgiving:
                    draft.lost.append((f"damaged {self.nouns}", "they cannot be read"))
                    draft.problem = ""
                items += draft.item is not None
                _clauses_add(lost, draft.lost)
                _clauses_add(notes, draft.notes)
                problems += bool(draft.problem)
                if draft.problem and len(report.problems) < MAX_PROBLEMS:
                    report.problems.append(f"{draft.place}: {draft.problem}")
            _items_count(report, [draft.item for draft in drafts if draft.item is not None], forecast)
            report.lines = drafts[-1].number
            if progress is not None:
                progress(drafts[-1].offset, report.size)
        if problems > len(report.problems):
            report.problems.append(f"And {problems - len(report.problems):,} more.")
        if not report.lines or (self.forgiving and not items):
            report.problems.append(f"This file contains no {self.nouns}.")
        report.losses = [
            *_sentences(lost, report.lines, lambda name, why: f"{name}: not kept, {why}"),
            *_sentences(notes, report.lines, lambda name, how: f"{name} {how}"),
        ]
        report.forecast = forecast.sentences()
        return report

    def batches(self, path: Path, *, scope: str, now: dt.datetime, offset: int) -> Iterator[Batch]:
        """Yield the items after ``offset``, in batches. The file is read from its beginning, because the link and the
        time of a message depend on the messages before it."""
        remaining = (draft for draft in self.drafts(path, scope=scope, now=now) if draft.offset > offset)
        for drafts in _chunks(remaining):
            items = [draft.item for draft in drafts if draft.item is not None]
            yield Batch(items, drafts[-1].offset, drafts[-1].number)


def _items_count(report: ImportReport, items: list[IngestItem], forecast: Forecast) -> None:
    there, erased = ids_known([item_id(item) for item in items])
    for item in items:
        topic_id = item_id(item)
        if item.placement != "new_topic":
            report.count("link", BROUGHT, len(item.edges))
            continue
        why = "erased" if topic_id in erased else THERE if topic_id in there else BROUGHT
        report.count("topic", why)
        if why == BROUGHT:
            report.count("field", why, len(item.fields))
            report.count("link", why, len(item.edges))
            if item.placement == "new_topic":
                forecast.add(item)


def _clauses_add(counted: Clauses, found: list[tuple[str, str]]) -> None:
    # An entry is counted once for each clause.
    for pair in dict.fromkeys(found):
        counted[pair if pair in counted or len(counted) < MAX_CLAUSES else _OTHERS] += 1


def _sentences(counted: Clauses, entries: int, sentence: Callable[[str, str], str]) -> list[str]:
    return [f"{count:,} of {entries:,}: {sentence(*pair)}." for pair, count in counted.most_common()]


def _chunks(drafts: Iterator[Draft]) -> Iterator[list[Draft]]:
    while chunk := list(itertools.islice(drafts, BATCH)):
        yield chunk
