"""The check of a file before it is imported: every line is looked at, and counted by what would become of it.

A line that passes can be stored as it stands. Whether it is, is asked in the words of the import itself (``marks``).
"""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import DataError, IntegrityError, ProgrammingError, connection, transaction
from django.db.backends.utils import CursorWrapper
from pydantic import ValidationError

from memory.access.principal import Principal
from memory.domain.errors import MemoryProblem, RequestRefused, ValueRefused
from memory.domain.problem_codes import ProblemCode
from memory.domain.scopes import ROOT, scope_normalize
from memory.transfer import importers as importers  # noqa: PLC0414 - fills SOURCES
from memory.transfer.circles import merges_circle, merges_clear, merges_note
from memory.transfer.digest import file_digest, file_is
from memory.transfer.lines import END, LineProblem, Lines, header_check, lines_batches, object_read
from memory.transfer.marks import Ground, lines_counted, lines_stage, stage_clear
from memory.transfer.members import line_models
from memory.transfer.numbers import NumbersSeen
from memory.transfer.policies import Newest, policies_brought, policies_check, versions_check
from memory.transfer.report import BROUGHT, SORTS, ImportReport, Progress
from memory.transfer.shape import FORMAT, ORDER
from memory.transfer.sources import SOURCES, Source
from memory.transfer.trial import Trial

# Lines that lie in no scope.
OF_THE_STORE = ("watermark", "receipt")
# So much of what the database says stands in a sentence, and so much there is of what may repeat a part of a line.
_SAID, _SENTENCE = 200, 400
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_PAUSES = "Scheduled runs begin anew with the policies that come: one that was paused there is not paused here."
_SENTENCES = {
    "missing": "is missing",
    "string_pattern_mismatch": "is not as the database writes it",
    "extra_forbidden": "is not known; was the file written by a newer MemState?",
}


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

    ``scope`` is where files of other systems go. Every line is looked at; of lines that are no lines of an export, the
    first is among the ``problems`` of the report. Some ten statements for each 500 lines. Raises ``NotAllowed`` below
    operator, ``NotVisible``, ``RequestRefused`` for a source that does not exist or a file that cannot be read.
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
    checker = Checker(principal=principal)
    ground = Ground(principal.scope, receipts=(0, -1))
    policies: list[Newest] = []
    # One connection, as the lines wait in a table of its own; without a transaction, which would hold back vacuum.
    with path.open("rb") as file, connection.cursor() as cursor:
        stage_clear(cursor)
        trial = Trial(cursor)
        try:
            for batch in lines_batches(file):
                checker.batch(batch)
                if batch.sort in ORDER:
                    _stage(cursor, batch, ground, trial)
                    if batch.sort == "policy":
                        policies += policies_brought(cursor)
                    elif batch.sort == "merged":
                        merges_note(cursor)
                    for why, count in lines_counted(cursor).items():
                        report.count(batch.sort, why, count)
                if progress is not None:
                    progress(batch.offset, size)
            checker.end()
            policies_check(policies)
            merges_circle(cursor)
        except MemoryProblem as problem:
            report.problems.append(problem.sentence)
        finally:
            stage_clear(cursor)
            merges_clear(cursor)
            trial.clear()
    report.lines, report.numbers = checker.lines, checker.numbers
    if report.sorts.get("policy", {}).get(BROUGHT):
        report.losses.append(_PAUSES)
    return report


def _stage(cursor: CursorWrapper, batch: Lines, ground: Ground, trial: Trial) -> None:
    """Lay out a batch, mark what of it is not brought, and try the rest. Raises ``LineProblem`` with the number of the
    first line that the database would not store."""
    problem = _tried(cursor, batch, ground, trial)
    if problem is None:
        return
    for number, line in enumerate(batch.lines, start=batch.first):
        own = Lines(batch.sort, [line], number, batch.offset)
        if (alone := _tried(cursor, own, ground, trial)) is not None:
            raise LineProblem(f"Line {number:,} cannot be stored: {alone}.")
    last = batch.first + len(batch.lines) - 1
    raise LineProblem(f"Lines {batch.first:,} to {last:,} cannot be stored together: {problem}.")


def _tried(cursor: CursorWrapper, batch: Lines, ground: Ground, trial: Trial) -> str | None:
    trial.prepare(batch.sort)
    try:
        with transaction.atomic():
            lines_stage(cursor, batch, ground)
            trial.lines(batch.sort, ground)
    except (DataError, IntegrityError, ProgrammingError) as problem:
        # The last is what some types say to what they cannot read.
        said = str(problem).splitlines()[0].replace("transfer_try_", "").rstrip(".")
        return said if len(said) <= _SAID else f"{said[:_SAID]}…"
    return None


class Checker:
    """Looks at every line of a file, in order, and knows what came before. ``end`` asks whether it is whole."""

    def __init__(self, *, principal: Principal) -> None:
        self._principal = principal
        self._stage = -1
        self._ended = False
        self._owed: dict[str, _Owed] = {}
        self.lines = 0
        self._seen = NumbersSeen()

    @property
    def numbers(self) -> dict[str, int]:
        """The greatest number of each sort of row whose number counts, and how many lines there are."""
        return {**self._seen.greatest, "lines": self.lines}

    def batch(self, batch: Lines) -> None:
        """Look at one batch. Raises ``LineProblem`` with the number of the first line that is wrong."""
        for number, line in enumerate(batch.lines, start=batch.first):
            self.lines = number
            try:
                self._line(batch.sort, line)
            except MemoryProblem as problem:
                said = problem.sentence
                raise LineProblem(
                    f"Line {number:,}: {said if len(said) <= _SENTENCE else f'{said[:_SENTENCE]}…'}", code=problem.code
                ) from problem

    def end(self) -> None:
        """Raises ``LineProblem`` if the last line is not the one that says so, ``ValueRefused`` for a number that no
        store has."""
        if not self._ended:
            told = "The file is empty" if not self.lines else f"The file breaks off after line {self.lines:,}"
            raise LineProblem(f"{told}: the last line of an export says how many there are. Make the export again.")
        self._seen.check(lines=self.lines)

    def _line(self, sort: str, line: bytes) -> None:
        if self._ended:
            raise LineProblem("There is more after the line that ends the file.")
        if self._stage < 0:
            header_check(line)
            self._stage = 0
            return
        if sort == END:
            self._end(line)
            return
        if sort not in ORDER:
            raise LineProblem(
                f"There is no sort of line {sort!r}; was the file written by a newer MemState?",
                code=ProblemCode.NEWER_FORMAT,
            )
        # The parts of a long history stand among the topics.
        stage = ORDER.index("topic" if sort == "history" else sort)
        if stage < self._stage:
            raise LineProblem(f"A line of the sort {sort!r} has no place behind those before it.")
        self._stage = stage
        if not line.endswith(b"\n"):
            raise LineProblem("The file breaks off within this line. Make the export again.")
        if _NUL.search(line):
            raise LineProblem("It contains a NUL character, which cannot be stored.")
        told = _parse(sort, line)
        if sort in OF_THE_STORE and self._principal.scope != ROOT:
            raise LineProblem(
                f"{SORTS[sort][1].capitalize()} count for the whole store, and you may write in "
                f"{self._principal.scope} alone. Exports of a scope have none of them.",
                code=ProblemCode.LINE_OUTSIDE_SCOPE,
            )
        for scope in _scopes(told):
            self._scope(scope)
        self._seen.add(sort, told)
        if sort == "history":
            self._history(told)
        else:
            self._owed_check()
        if sort == "topic":
            self._owed = _topic_check(told)
        elif sort == "policy":
            versions_check(told.versions)

    def _history(self, told: Any) -> None:
        owed = self._owed.get(told.field)
        seqs = [revision.seq for revision in told.revisions]
        if (
            owed is None
            or owed.topic != told.topic
            or seqs != list(range(owed.done + 1, owed.done + len(seqs) + 1))
            or seqs[-1] > owed.through
        ):
            raise LineProblem("These revisions do not go on where those before them end, or are of another topic.")
        owed.done = seqs[-1]
        if owed.done == owed.through:
            del self._owed[told.field]

    def _owed_check(self) -> None:
        for owed in self._owed.values():
            raise LineProblem(f"Revisions of the field {owed.name!r} of the topic before are missing.")

    def _end(self, line: bytes) -> None:
        self._owed_check()
        told = object_read(line)
        said = told.get("lines")
        if type(said) is not int:
            raise LineProblem("The last line does not say how many lines there are. Make the export again.")
        if said != self.lines:
            raise LineProblem(
                f"The file says that it has {said} lines, and this is line {self.lines:,}: a part of it is missing, or "
                "there is something too much."
            )
        self._ended = True

    def _scope(self, scope: str) -> None:
        # Some entries of the journal are about no place.
        if scope and scope_normalize(scope) != scope:
            raise LineProblem(f"{scope!r} is no scope.")
        if not self._principal.sees(scope or ROOT):
            raise LineProblem(
                f"This lies in {scope or ROOT}, outside {self._principal.scope}, where you may write. Import an export "
                f"of that scope (manage.py export --scope {self._principal.scope}), or ask somebody who may.",
                code=ProblemCode.LINE_OUTSIDE_SCOPE,
            )


def _parse(sort: str, line: bytes) -> Any:
    try:
        return line_models()[sort].model_validate_json(line, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        # Of a choice of types, the types are named in between.
        parts = [str(part) for part in first["loc"]]
        place = ".".join(part for part in parts if "float" not in part and "[" not in part)
        if first["type"] == "json_invalid":
            raise LineProblem(f"This is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}.") from problem
        if first["type"] == "value_error":
            said = str(first["ctx"]["error"])
        else:
            said = _SENTENCES.get(first["type"], f"is not as it should be: {first['msg'][0].lower()}{first['msg'][1:]}")
        noun = SORTS[sort][0]
        raise LineProblem(f"The member {place} of this {noun} {said.rstrip('.')}.") from problem


def _scopes(told: Any) -> Iterator[str]:
    scope = getattr(told, "scope", None)
    if scope is not None:
        yield scope
    for turn in getattr(told, "told", ()):
        yield turn.scope


def _topic_check(told: Any) -> dict[str, "_Owed"]:
    """Return the fields whose older revisions have to follow in lines of their own."""
    names = [field.name for field in told.fields]
    if len(set(names)) < len(names):
        raise LineProblem("Two fields of this topic have the same name.")
    owed = {}
    for field in told.fields:
        seqs = [revision.seq for revision in field.revisions]
        least = field.last_seq - len(seqs)
        if least < 0 or seqs != list(range(least + 1, field.last_seq + 1)):
            raise LineProblem(f"The revisions of the field {field.name!r} have a gap, or are out of order.")
        if least:
            owed[field.id] = _Owed(told.id, field.name, least)
    return owed


@dataclass(slots=True)
class _Owed:
    """A field of a topic whose revisions up to ``through`` have to follow; they do up to ``done``."""

    topic: str
    name: str
    through: int
    done: int = 0
