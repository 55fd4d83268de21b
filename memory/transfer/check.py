"""Checks a file before it is imported: parses every line and counts the outcomes."""

import datetime as dt
import hashlib
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem, RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.ingest.history import OlderRevisions, PastMerge, TopicHistory
from memory.policy.draft import draft_check
from memory.policy.effective import policies_current
from memory.policy.restore import policy_drafted
from memory.transfer.batches import lines_reasons, topics_noted
from memory.transfer.importers import IMPORTERS
from memory.transfer.importers.guess import archive_refuse
from memory.transfer.importers.importer import Importer
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
from memory.transfer.report import BROUGHT, ImportReport, Progress, counts_add

_PAUSES = "Schedules follow the policies of the file: one that was paused there is not paused here."
_LINES: dict[str, type[BaseModel]] = {FORMAT: Header, **MODELS, END: End}
_ORDER = list(_LINES)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Reads the file only if it has changed since the last call. Raises ``OSError``."""
    found = os.stat(path)
    # The change time (ctime) is compared too, because programs can set the time of a write (mtime).
    return _sha256(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


# Cached, so that an import of many steps hashes its file once per process.
@lru_cache(maxsize=16)
def _sha256(path: Path, _stamp: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def import_check(
    path: Path,
    *,
    principal: Principal,
    now: dt.datetime,
    source: str = FORMAT,
    scope: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Read a file and report what an import would write and skip. Changes nothing. ``scope`` is the target for files of
    other systems. Reading an export stops at the first invalid line. About five statements per 500 lines. Raises
    ``NotAllowed`` unless the caller is an operator, ``NotVisible``, ``ValueRefused`` for an unknown source, and
    ``RequestRefused`` for a file that is unreadable or changes while it is read."""
    principal.require("operator")
    foreign = importer_of(source)
    with file_reading(path):
        archive_refuse(path)
        digest, size = file_digest(path), path.stat().st_size
        if foreign is None:
            report = _export_check(path, principal=principal, size=size, progress=progress)
        else:
            where = principal.scope_chosen(scope)
            report = foreign.check(path, scope=where, principal=principal, now=now, progress=progress)
        if file_digest(path) != digest:
            raise RequestRefused(
                f"{path.name} was changed while it was read. Import it again.", code=ProblemCode.CHANGED_MEANWHILE
            )
    report.digest, report.size = digest, size
    return report


@contextmanager
def file_reading(path: Path) -> Iterator[None]:
    """Raise ``RequestRefused`` instead of ``OSError``."""
    try:
        yield
    except OSError as problem:
        raise RequestRefused(
            f"{path.name} cannot be read: {problem.strerror}.", code=ProblemCode.INVALID_FILE
        ) from problem


def importer_of(name: str) -> Importer | None:
    """Return the importer with this name, or None for exports of MemState. Raises ``ValueRefused`` for an unknown
    name."""
    if name == FORMAT:
        return None
    if name not in IMPORTERS:
        raise ValueRefused(f"Unknown source {name!r}; sources are {', '.join((FORMAT, *IMPORTERS))}.", member="source")
    return IMPORTERS[name]


def _export_check(path: Path, *, principal: Principal, size: int, progress: Progress | None) -> ImportReport:
    report = ImportReport(FORMAT)
    checker = Checker(principal)
    # There is no transaction, because it would delay vacuum.
    with path.open("rb") as file, topics_noted():
        try:
            for batch in lines_batches(file):
                if lines := checker.batch(batch):
                    reasons = lines_reasons(lines, principal=principal)
                    if batch.kind == "policy":
                        new = [n for n, why in enumerate(reasons) if why == BROUGHT]
                        checker.policies({batch.first + n: lines[n] for n in new})
                    counts_add(report.sorts, {batch.kind: Counter(reasons)})
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
    """Checks each line of a file against the lines before it. ``end`` checks that the file is complete."""

    def __init__(self, principal: Principal) -> None:
        self.lines = 0
        self._principal = principal
        # The kind and the key of the last line.
        self._place: tuple[int, tuple[Any, ...]] = (-1, ())
        # ``_topic`` is the last topic that was read. Its older revisions must follow. ``_missing`` maps the name of
        # each field with missing revisions to (revisions read, revisions expected).
        self._topic: uuid.UUID | None = None
        self._missing: dict[str, tuple[int, int]] = {}
        self._policies: list[tuple[int, str]] = []
        self._drafted = policies_current()
        self._merged: dict[uuid.UUID, uuid.UUID] = {}

    def batch(self, batch: Lines) -> list[Any]:
        """Return the parsed lines of a batch. Raises ``LineProblem`` with the number of the first invalid line."""
        read = []
        for number, line in enumerate(batch.lines, start=batch.first):
            self.lines = number
            with _line_number_added(number):
                read.append(self._line(batch.kind, line))
        return read if batch.kind in MODELS else []

    def policies(self, lines: dict[int, PolicyLine]) -> None:
        """Check the policies that an import would write. ``lines`` maps line numbers to these policies. Raises
        ``LineProblem`` for a policy that could not be saved."""
        for number, line in lines.items():
            with _line_number_added(number, f"The policy of {line.scope} is not valid here. "):
                self._drafted = policy_drafted(self._drafted, line.scope, line.versions)
            self._policies.append((number, line.scope))

    def end(self) -> None:
        """Raise ``LineProblem`` if the file is incomplete or inconsistent."""
        if self._place[0] < _ORDER.index(END):
            what = "The file is empty" if not self.lines else f"The file ends after line {self.lines:,}"
            raise LineProblem(f"{what}, so the last line of an export is missing. Make the export again.")
        for number, scope in self._policies:
            with _line_number_added(number, f"The policy of {scope} is not valid here. "):
                draft_check(self._drafted, scope)
        try:
            TopologicalSorter({topic: [into] for topic, into in self._merged.items()}).prepare()
        except CycleError as problem:
            raise LineProblem(
                f"Merges of this file form a cycle, for instance from memory {problem.args[1][0]}."
            ) from problem

    def _line(self, kind: str, line: bytes) -> Any:
        if self._place[0] < 0 and kind != FORMAT:
            raise LineProblem('This is not an export of MemState, which begins with {"type":"memstate".')
        if kind not in _LINES:
            raise LineProblem(f"Unknown kind of line {kind!r}; was the file written by a newer MemState?")
        if kind != "history" and self._missing:
            raise LineProblem(f"Revisions of the field {next(iter(self._missing))!r} of the memory before are missing.")
        parsed = line_parse(_LINES[kind], line)
        if isinstance(parsed, OlderRevisions):
            self._history(parsed)
            return parsed
        place = _ORDER.index(kind), line_key(kind, parsed)
        if place <= self._place or (isinstance(parsed, PastMerge) and parsed.topic in self._merged):
            raise LineProblem(f"This {kind} line is out of order or a duplicate.")
        self._place = place
        match parsed:
            case Header():
                _version_check(parsed.version)
            case End() if parsed.lines != self.lines:
                raise LineProblem(
                    f"The file states {parsed.lines:,} lines but has {self.lines:,}. Make the export again."
                )
            case PolicyLine():
                self._scope(parsed.scope)
            case TopicHistory():
                self._scope(parsed.scope)
                self._topic, self._missing = parsed.id, _older_expected(parsed)
            case PastMerge():
                self._merged[parsed.topic] = parsed.into
        return parsed

    def _history(self, line: OlderRevisions) -> None:
        after, last = self._missing.pop(line.field, (-1, -1))
        end = line.after + len(line.revisions)
        if line.topic != self._topic or line.after != after or end > last:
            raise LineProblem("These revisions do not continue those before them, or belong to another memory.")
        if end < last:
            self._missing[line.field] = (end, last)

    def _scope(self, scope: str) -> None:
        if scope_normalize(scope) != scope:
            raise LineProblem(f"{scope!r} is not a scope.")
        if not self._principal.sees(scope):
            raise LineProblem(
                f"This line is in {scope}; you may write in {self._principal.scope} only. Import an export of that "
                f"scope (manage.py export --scope {self._principal.scope}), or ask an operator of {scope}."
            )


@contextmanager
def _line_number_added(number: int, what: str = "") -> Iterator[None]:
    """Put the number of the line and the prefix ``what`` before the sentence of a problem."""
    try:
        yield
    except MemoryProblem as problem:
        raise LineProblem(f"Line {number:,}: {what}{problem.sentence}") from problem


def _version_check(version: int) -> None:
    if version > VERSION:
        raise LineProblem(
            f"The file has format {version} of a newer MemState; this one reads format {VERSION}. Update it first."
        )
    if version != VERSION:
        raise LineProblem(f"The file has format {version}, which is no longer read. Make the export again.")


def _older_expected(topic: TopicHistory) -> dict[str, tuple[int, int]]:
    """Return (0, number of older revisions) for each field whose older revisions must follow in separate lines. Raises
    ``LineProblem`` if the fields are inconsistent."""
    names = [field.name for field in topic.fields]
    if len(set(names)) < len(names):
        raise LineProblem("Two fields of this memory have the same name.")
    if short := next((field.name for field in topic.fields if field.before < 0), None):
        raise LineProblem(f"The field {short!r} has more revisions than it states.")
    return {field.name: (0, field.before) for field in topic.fields if field.before}
