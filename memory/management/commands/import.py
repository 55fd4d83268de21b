"""manage.py import FILE: imports an export, or a file of another system."""

import math
import uuid
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import DatabaseError, transaction
from django.utils import timezone
from tqdm import tqdm

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.forgetting.runs import run_begin
from memory.jobs.tasks import upkeep_request
from memory.management.store_command import CommandRefused, StoreCommand
from memory.models import ForgetRun, ImportJob
from memory.models.labels import labels_read
from memory.transfer.check import import_check
from memory.transfer.importers import IMPORTERS
from memory.transfer.importers.guess import source_guess
from memory.transfer.importing import import_start
from memory.transfer.lines import FORMAT
from memory.transfer.report import ImportReport, Progress, counts_sentences
from memory.transfer.revert import import_undo_plan
from memory.transfer.work import import_work

# Seconds of work per turn. The progress is read after each turn, because another process may do the work too.
TURN_SECONDS = 60.0
# The largest number of skipped topics that an undo names.
NAMED = 20
_FAILED = ("Not undone.", "Nothing was imported.")


class Command(StoreCommand):
    """Checks the whole file before anything is written. If the import is stopped, the same command continues it."""

    help = (
        "Import an export of MemState, or the memories or conversations of another system. What is there already stays "
        "as it is. Can be stopped and started again. An exact copy of a store is made by pg_dump."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, nargs="?")
        parser.add_argument(
            "--from",
            dest="source",
            choices=(FORMAT, *IMPORTERS),
            help="The system that wrote the file (default: detect it from the file).",
        )
        parser.add_argument(
            "--scope",
            default="/",
            help="The scope for files of other systems (default /). Nothing is written outside it.",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Report what would be imported and what would be omitted, and write nothing.",
        )
        parser.add_argument(
            "--take-back",
            type=uuid.UUID,
            metavar="IMPORT",
            help="Release the topics of this import, except those that have changed since.",
        )
        parser.add_argument("--reason", default="", help="The reason, for the journal.")

    def handle(self, *_args: Any, **options: Any) -> None:
        path = options["file"]
        try:
            scope = scope_normalize(options["scope"])
            principal = Principal(identity=f"terminal:{scope}", actor="terminal", role="operator", scope=scope)
            if options["take_back"] is not None:
                self._take_back(options["take_back"], principal, reason=options["reason"], dry=options["dry_run"])
                return
            if path is None:
                raise CommandRefused("Give the path of a file.", ProblemCode.INVALID_MEMBER)
            source = options["source"] or source_guess(path) or FORMAT
            if source != options["source"] and source != FORMAT:
                self.stdout.write(f"Read as: {IMPORTERS[source].title}.")
            if options["dry_run"]:
                self._dry(path, principal, source=source)
                return
            with _bar("Checking") as bar:
                asked = {"principal": principal, "source": source, "reason": options["reason"]}
                job = import_start(path, **asked, now=timezone.now(), progress=_tick(bar))
            self._losses(ImportReport(**job.report))
            job = self._work(job)
        except OSError as problem:
            raise CommandRefused(f"{path} cannot be read: {problem.strerror}.", ProblemCode.INVALID_FILE) from problem
        except MemoryProblem as problem:
            raise CommandRefused(
                f"{_FAILED[options['take_back'] is None]} {problem.sentence}", problem.code
            ) from problem
        self._report(job)

    def _take_back(self, job_id: uuid.UUID, principal: Principal, *, reason: str, dry: bool) -> None:
        released = 0
        while True:
            with transaction.atomic():
                run, left = import_undo_plan(job_id, principal=principal, now=timezone.now())
                transaction.set_rollback(dry)
            if run is None or dry:
                break
            planned = ForgetRun.Status.PLANNED
            done = run_begin(run.pk, planned, principal=principal, reason=reason, now=timezone.now(), seconds=math.inf)
            released += done.applied
        result = f"Would be released: {run.planned if run else 0:,}." if dry else f"Released: {released:,}."
        self.stdout.write(f"{result} Not released, because changed since: {len(left):,}. Imported policies stay.")
        for topic_id, title in labels_read([topic_id for topic_id, _why in left[:NAMED]]).items():
            self.stdout.write(f"  changed: {topic_id} {title}")

    def _dry(self, path: Path, principal: Principal, *, source: str) -> None:
        with _bar("Checking") as bar:
            report = import_check(path, principal=principal, now=timezone.now(), source=source, progress=_tick(bar))
        for sentence in counts_sentences(report.sorts, done=False):
            self.stdout.write(sentence)
        self._losses(report)
        if report.problems:
            raise CommandRefused("\n".join(report.problems), ProblemCode.INVALID_FILE)
        self.stdout.write("Nothing was written. To import the file, run the command without --dry-run.")

    def _work(self, job: ImportJob) -> ImportJob:
        try:
            with _bar("Importing") as bar:
                tick = _tick(bar)
                while job.status == ImportJob.Status.WORKING:
                    job = import_work(job.pk, clock=timezone.now, seconds=TURN_SECONDS, progress=tick)
        except (DatabaseError, MemoryProblem) as problem:
            job.refresh_from_db()
            code = problem.code if isinstance(problem, MemoryProblem) else ProblemCode.INVALID_FILE
            raise CommandRefused(f"{job.failure} Start it again to continue.", code) from problem
        if job.status == ImportJob.Status.DONE:
            upkeep_request()
        return job

    def _report(self, job: ImportJob) -> None:
        for sentence in counts_sentences(job.counts, done=True):
            self.stdout.write(sentence)
        if job.status != ImportJob.Status.DONE:
            raise CommandRefused(
                job.failure or f"The import was {job.get_status_display().lower()}.", ProblemCode.INVALID_FILE
            )
        self.stdout.write(
            f"Import {job.pk}. manage.py import --take-back {job.pk} releases the topics that it has imported."
        )
        self.stdout.write(
            "Import finished. Search finds the topics by words now, and by meaning when the worker has embedded them."
        )

    def _losses(self, report: ImportReport) -> None:
        for sentence in (*report.losses, *report.forecast):
            self.stdout.write(sentence)


def _bar(title: str) -> "tqdm[Any]":
    return tqdm(unit="B", unit_scale=True, desc=title, dynamic_ncols=True)


def _tick(bar: "tqdm[Any]") -> Progress:
    def tick(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return tick
