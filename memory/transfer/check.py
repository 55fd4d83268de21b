"""The check of a file before it is imported: every line is read, and counted by what would become of it."""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem, RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.ingest.history import OlderRevisions, PastMerge, TopicHistory
from memory.policy.draft import draft_check
from memory.policy.effective import policies_current
from memory.policy.restore import policy_drafted
from memory.transfer import importers as importers  # noqa: PLC0414 - fills SOURCES
from memory.transfer.batches import Target
from memory.transfer.digest import file_digest, file_is
from memory.transfer.lines import (
    END,
    FORMAT,
    MODELS,
    VERSION,
    End,
    Header,
    LineProblem,
    Lines,
    PolicyLine,
    line_key,
    line_parse,
    lines_batches,
)
from memory.transfer.report import BROUGHT, ImportReport, Progress
from memory.transfer.sources import SOURCES, Source

_PAUSES = "Schedules follow the policies of the file: one that was paused there is not paused here."
_ORDER = list(MODELS)


def import_check(
    path: Path,
    *,
    principal: Principal,
    now: dt.datetime,
    source: str = FORMAT,
    scope: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Read all of a file and return what importing it would bring, and what not and why. Changes nothing.

    ``scope`` is where files of other systems go. The first line that is wrong is among the ``problems`` of the report,
    and ends the check. Some five statements for each 500 lines. Raises ``NotAllowed`` below operator, ``NotVisible``,
    ``RequestRefused`` for a source that does not exist or a file that cannot be read.
    """
    principal.require("operator")
    foreign = source_of(source)
    try:
        seen = file_digest(path)
        if foreign is None:
            report = _export_check(path, principal=principal, size=seen.size, progress=progress)
        else:
            where = principal.scope_chosen(scope)
            report = foreign.check(path, scope=where, principal=principal, now=now, progress=progress)
        if not file_is(path, seen):
            raise RequestRefused(
                f"{path.name} was changed while it was read. Import it again.", code=ProblemCode.FILE_CHANGED
            )
    except OSError as problem:
        raise RequestRefused(
            f"{path.name} cannot be read: {problem.strerror}.", code=ProblemCode.FILE_UNREADABLE
        ) from problem
    report.source, report.digest, report.size = source, seen.sha256, seen.size
    return report


def source_of(name: str) -> Source | None:
    """Return the source of this name, None for exports of MemState. Raises ``ValueRefused`` for any other."""
    if name == FORMAT:
        return None
    if name not in SOURCES:
        raise ValueRefused(
            f"There is no source {name!r}; sources are {', '.join((FORMAT, *SOURCES))}.",
            code=ProblemCode.UNKNOWN_CHOICE,
        )
    return SOURCES[name]


def _export_check(path: Path, *, principal: Principal, size: int, progress: Progress | None) -> ImportReport:
    report = ImportReport(FORMAT)
    checker = Checker(principal)
    # Without a transaction, which would hold back vacuum.
    with path.open("rb") as file, Target(principal) as target:
        try:
            for batch in lines_batches(file):
                if lines := checker.batch(batch):
                    reasons = target.reasons(lines)
                    if batch.kind == "policy":
                        new = [n for n, why in enumerate(reasons) if why == BROUGHT]
                        checker.policies({batch.first + n: lines[n] for n in new})
                    for why in dict.fromkeys(reasons):
                        report.count(batch.kind, why, reasons.count(why))
                if progress is not None:
                    progress(batch.offset, size)
            checker.end()
        except MemoryProblem as problem:
            report.problems.append(problem.sentence)
    report.lines = checker.lines
    if report.sorts.get("policy", {}).get(BROUGHT):
        report.losses.append(_PAUSES)
    return report


class Checker:
    """Reads the lines of a file in order, and knows what came before. ``end`` asks whether it is whole."""

    def __init__(self, principal: Principal) -> None:
        self.lines = 0
        self._principal = principal
        self._header = self._ended = False
        self._place: tuple[int, tuple[Any, ...]] = (0, ())
        # Of the topic before, the fields whose older revisions have to follow: the first and the last that is missing.
        self._topic: uuid.UUID | None = None
        self._owed: dict[str, tuple[int, int]] = {}
        self._policies: list[tuple[int, str]] = []
        self._drafted = policies_current()
        self._merged: dict[uuid.UUID, uuid.UUID] = {}

    def batch(self, batch: Lines) -> list[Any]:
        """Return what the lines of a batch say. Raises ``LineProblem`` with the number of the first that is wrong."""
        read = []
        for number, line in enumerate(batch.lines, start=batch.first):
            self.lines = number
            with _numbered(number):
                if (parsed := self._line(batch.kind, line)) is not None:
                    read.append(parsed)
        return read

    def policies(self, lines: dict[int, PolicyLine]) -> None:
        """Look at policies that would be imported, by line. Raises ``LineProblem`` for one that a save would refuse."""
        for number, line in lines.items():
            with _numbered(number, f"The policy of {line.scope} cannot be in force here. "):
                self._drafted = policy_drafted(self._drafted, line.scope, line.versions)
            self._policies.append((number, line.scope))

    def end(self) -> None:
        """Raise ``LineProblem`` if the file is not whole, or if what it says does not hold together."""
        if not self._ended:
            what = "The file is empty" if not self.lines else f"The file ends after line {self.lines:,}"
            raise LineProblem(f"{what}: the last line of an export says how many there are. Make the export again.")
        for number, scope in self._policies:
            with _numbered(number, f"The policy of {scope} cannot be in force here. "):
                draft_check(self._drafted, scope)
        done: set[uuid.UUID] = set()
        for topic in self._merged:
            chain: list[uuid.UUID] = []
            while topic in self._merged and topic not in done:
                done.add(topic)
                chain.append(topic)
                topic = self._merged[topic]
            if topic in chain:
                raise LineProblem(f"Merges of this file lead in a circle, for instance from topic {topic}.")

    def _line(self, kind: str, line: bytes) -> Any:
        if self._ended:
            raise LineProblem("There are more lines after the last one.")
        if not self._header:
            _header_check(kind, line)
            self._header = True
            return None
        if kind != "history" and self._owed:
            raise LineProblem(f"Revisions of the field {next(iter(self._owed))!r} of the topic before are missing.")
        if kind == END:
            said = line_parse(End, line).lines
            if said != self.lines:
                raise LineProblem(
                    f"The file says that it has {said:,} lines, and this is line {self.lines:,}: the file was cut, or "
                    "has extra lines."
                )
            self._ended = True
            return None
        if kind not in MODELS:
            raise LineProblem(
                f"There is no kind of line {kind!r}; was the file written by a newer MemState?",
                code=ProblemCode.NEWER_FORMAT,
            )
        parsed = line_parse(MODELS[kind], line)
        if isinstance(parsed, OlderRevisions):
            self._history(parsed)
            return parsed
        place = _ORDER.index(kind), line_key(parsed)
        if place <= self._place or (isinstance(parsed, PastMerge) and parsed.topic in self._merged):
            raise LineProblem(f"This {kind} line is out of order, or there twice.")
        self._place = place
        if isinstance(parsed, PolicyLine | TopicHistory):
            self._scope(parsed.scope)
        if isinstance(parsed, TopicHistory):
            self._topic, self._owed = parsed.id, _older(parsed)
        if isinstance(parsed, PastMerge):
            self._merged[parsed.topic] = parsed.into
        return parsed

    def _history(self, line: OlderRevisions) -> None:
        after, last = self._owed.get(line.field, (-1, -1))
        end = line.after + len(line.revisions)
        if line.topic != self._topic or line.after != after or end > last:
            raise LineProblem("These revisions do not continue those before them, or belong to another topic.")
        self._owed[line.field] = (end, last)
        if end == last:
            del self._owed[line.field]

    def _scope(self, scope: str) -> None:
        if scope_normalize(scope) != scope:
            raise LineProblem(f"{scope!r} is not a scope.")
        if not self._principal.sees(scope):
            raise LineProblem(
                f"This lies in {scope}, outside {self._principal.scope}, where you may write. Import an export of that "
                f"scope (manage.py export --scope {self._principal.scope}), or ask somebody who may.",
                code=ProblemCode.LINE_OUTSIDE_SCOPE,
            )


@contextmanager
def _numbered(number: int, what: str = "") -> Iterator[None]:
    """Name the line, and what is wrong with it, in a problem."""
    try:
        yield
    except MemoryProblem as problem:
        raise LineProblem(f"Line {number:,}: {what}{problem.sentence}") from problem


def _header_check(kind: str, line: bytes) -> None:
    if kind != FORMAT:
        raise LineProblem('This is not an export of MemState, which begins with {"type":"memstate".')
    version = line_parse(Header, line).version
    if version > VERSION:
        raise LineProblem(
            f"The file was written by a newer MemState, in the format {version}; this one reads {VERSION}. Update this "
            "one first."
        )
    if version != VERSION:
        raise LineProblem(f"The file is in the format {version}, which is not read any more. Make the export again.")


def _older(topic: TopicHistory) -> dict[str, tuple[int, int]]:
    """Return the fields whose older revisions have to follow in lines of their own."""
    names = [field.name for field in topic.fields]
    if len(set(names)) < len(names):
        raise LineProblem("Two fields of this topic have the same name.")
    if short := next((field.name for field in topic.fields if field.before < 0), None):
        raise LineProblem(f"The field {short!r} has more revisions than numbers.")
    return {field.name: (0, field.before) for field in topic.fields if field.before}
