"""manage.py import FILE: what an export holds, or a file of another system, into the store."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone
from tqdm import tqdm

from memory.access.principal import Principal
from memory.domain.errors import MemoryProblem
from memory.domain.scopes import scope_normalize
from memory.jobs import upkeep_request
from memory.models import ImportJob
from memory.transfer.check import import_check
from memory.transfer.importing import import_start
from memory.transfer.report import ImportReport, Progress, counts_words
from memory.transfer.shape import FORMAT
from memory.transfer.sources import SOURCES
from memory.transfer.work import import_work

# After so long the work is looked at anew: somebody else may do it too.
TURN_SECONDS = 60.0


class Command(BaseCommand):
    """Reads all of the file before anything is written. Stopped at any moment and started again with the same file, it
    goes on where it was."""

    help = (
        "Import an export of MemState, or with --from the memories of another system. What is there already stays as "
        "it is. Can be stopped and started again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file and where it is from."""
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--from", dest="source", choices=(FORMAT, *SOURCES), default=FORMAT, help="what has written the file"
        )
        parser.add_argument(
            "--scope", default="/", help="where topics of other systems go; nothing is written outside it (default /)"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be brought, and what not and why")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check the file and bring it."""
        source, path = options["source"], options["file"]
        try:
            scope = scope_normalize(options["scope"])
            principal = Principal(identity=f"terminal:{scope}", actor="terminal", role="operator", scope=scope)
            if options["dry_run"]:
                self._dry(path, principal, source=source)
                return
            with _bar("Checking") as bar:
                job = import_start(path, principal=principal, now=timezone.now(), source=source, progress=_tick(bar))
            self._losses(ImportReport.of(job.report))
            job = self._work(job)
        except OSError as problem:
            raise CommandError(f"{path} cannot be read: {problem.strerror}.") from problem
        except MemoryProblem as problem:
            raise CommandError(f"Nothing was brought. {problem.sentence}") from problem
        self._told(job)

    def _dry(self, path: Path, principal: Principal, *, source: str) -> None:
        with _bar("Checking") as bar:
            report = import_check(
                path, principal=principal, now=timezone.now(), source=source, progress=_tick(bar)
            )  # fmt: skip
        for sentence in counts_words(report.sorts):
            self.stdout.write(sentence)
        self._losses(report)
        if report.problems:
            raise CommandError("\n".join(report.problems))
        self.stdout.write("Nothing was written; leave out --dry-run to bring it.")

    def _work(self, job: ImportJob) -> ImportJob:
        try:
            with _bar("Importing") as bar:
                tick = _tick(bar)
                while job.status == ImportJob.Status.WORKING:
                    job = import_work(job.pk, clock=timezone.now, seconds=TURN_SECONDS, progress=tick)
        except (DatabaseError, MemoryProblem) as problem:
            job.refresh_from_db()
            raise CommandError(f"{job.failure} Start it again to go on.") from problem
        if job.status == ImportJob.Status.DONE:
            upkeep_request()
        return job

    def _told(self, job: ImportJob) -> None:
        for sentence in counts_words(job.counts):
            self.stdout.write(sentence)
        if job.status != ImportJob.Status.DONE:
            raise CommandError(job.failure or f"The import was {job.get_status_display().lower()}.")
        self.stdout.write(
            "All of it is here. Topics are found by their words at once, by meaning as the worker embeds."
        )

    def _losses(self, report: ImportReport) -> None:
        for sentence in report.losses:
            self.stdout.write(sentence)


def _bar(title: str) -> "tqdm[Any]":
    return tqdm(unit="B", unit_scale=True, desc=title, dynamic_ncols=True)


def _tick(bar: "tqdm[Any]") -> Progress:
    def tick(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return tick
