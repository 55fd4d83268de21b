"""Every background job and schedule. Arguments are ids and scalars; each job may run twice without harm."""

import inspect
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone
from django_q.models import Schedule
from django_q.tasks import async_task

from memory.agents.chat.turns import turns_lost_close
from memory.agents.study.queue import studies_stalled, study_turn
from memory.agents.study.work import study_work, turn_seconds
from memory.duplicates.detect import duplicates_find
from memory.erasure.forget_lists import listings_tidy
from memory.extraction.work import extraction_work, extractions_stalled
from memory.forgetting.runs import run_work
from memory.forgetting.triggers import scheduled_run, wake_ups_answer
from memory.ingest.embed_pending import vectors_fill
from memory.ingest.idempotency import KEPT
from memory.insight.shadow import shadow_search
from memory.models import IdempotencyRecord, WorkerHeartbeat
from memory.policy.rekey import half_lives_rekey, half_lives_stray_check
from memory.policy.schedules import cron_schedules_sync
from memory.recall.access_fold import accesses_fold
from memory.recall.corpus import documents_count
from memory.transfer.importing import imports_stalled
from memory.transfer.uploads import upload_discard, uploads_tidy
from memory.transfer.work import import_work

logger = structlog.get_logger(__name__)

# A job stops at a good place after this long, well before the time-out of the cluster would kill it, and asks for
# another turn if there is more to do.
TURN_SECONDS = 60.0

# So much of a turn may be spent on looking for duplicates; whatever is left waits for the next.
REVISE_SECONDS = 20.0

# One transaction of the shadow search; at the usual share a handful of them are asked again.
SHADOW_ROWS = 200


@dataclass(frozen=True, slots=True)
class JobKind:
    """What a job is called, what it does, and every how many minutes it is scheduled: 0 for a job that is queued.
    ``needs`` counts the arguments without a default, which are what a retry repeats."""

    title: str
    what: str
    minutes: int = 0
    needs: int = 0


# Every job by the name under which the queue knows it. Pages, retry and schedules are made from this.
JOBS: dict[str, JobKind] = {}
Work = TypeVar("Work", bound=Callable[..., object])


def job(title: str, what: str, *, minutes: int = 0) -> Callable[[Work], Work]:
    """Register a function as a job."""

    def register(work: Work) -> Work:
        needs = sum(one.default is one.empty for one in inspect.signature(work).parameters.values())
        JOBS[f"{work.__module__}.{work.__name__}"] = JobKind(title, what, minutes, needs)
        return work

    return register


# The schedule is for what a killed process left; requests call for upkeep themselves.
@job("Upkeep", "Counts retrievals into salience, embeds what waits, and answers what happened with runs.", minutes=1)
def upkeep() -> dict[str, int]:
    """Say that the worker lives, then do what requests have left: fold accesses, embed waiting topics, count words,
    bring a new half-life to the rows, answer wake-ups, look for duplicates. Runs each minute and on request."""
    WorkerHeartbeat.objects.update_or_create(name="worker", defaults={"seen_at": timezone.now()})
    until = time.monotonic() + TURN_SECONDS
    done = {"folded": 0, "embedded": 0, "counted": 0, "rekeyed": 0, "runs": 0, "duplicates": 0}
    steps: dict[str, Callable[[], int]] = {
        "folded": lambda: accesses_fold(now=timezone.now()),
        "counted": documents_count,
        # Before the runs, which find what is due by index once every row has its half-life.
        "rekeyed": lambda: half_lives_rekey(now=timezone.now(), budget_seconds=_left(until)),
    }
    for name, work in steps.items():
        while time.monotonic() < until and (step := work()):
            done[name] += step
    done["runs"] = wake_ups_answer(now=timezone.now(), seconds=_left(until))
    for given in vectors_fill():
        done["embedded"] += given
        if time.monotonic() >= until:
            break
    # After the vectors: what was written is compared with its like.
    done["duplicates"] = duplicates_find(None, now=timezone.now(), seconds=min(_left(until), REVISE_SECONDS))
    # What runs have archived leaves the counts of words now and not a minute later.
    while time.monotonic() < until and (step := documents_count()):
        done["counted"] += step
    # What a killed worker has left half done.
    for job_id in extractions_stalled(now=timezone.now()):
        extraction_enqueue(job_id)
    # The same, and what has waited for its second phase or for the model.
    for job_id in imports_stalled(now=timezone.now()):
        import_enqueue(job_id)
    for job_id in studies_stalled(now=timezone.now()):
        study_enqueue(job_id)
    if time.monotonic() >= until:
        upkeep_request()
    return done


@job("Scheduled run", "Forgets what is due.")
def forget_scheduled(scope: str) -> str | None:
    """Make the scheduled run over ``scope``; its schedule is written by the policy room. Returns the id of the run."""
    run = scheduled_run(scope, now=timezone.now(), seconds=TURN_SECONDS)
    # What was passed by while nobody looked, or compared with too few, is found once a day at the latest.
    duplicates_find(scope, now=timezone.now(), seconds=REVISE_SECONDS)
    if run is None:
        return None
    if run.status == run.Status.APPLYING:
        run_enqueue(run.id)
    return str(run.id)


@job("Work on a run", "Goes on with a run that takes longer than a request.")
def run_continue(run_id: str) -> str:
    """Apply what is left of a run, for as long as one turn lasts, and ask for another turn if that is not enough."""
    run = run_work(uuid.UUID(run_id), now=timezone.now(), seconds=TURN_SECONDS, enqueue=run_enqueue)
    return run.status


def run_enqueue(run_id: uuid.UUID) -> None:
    """Enqueue a run for the worker. One query."""
    async_task("memory.jobs.tasks.run_continue", str(run_id))


@job("Search for duplicates", "Compares what was written with what is stored.")
def duplicates_look(scope: str) -> int:
    """Compare what was written at ``scope`` since the last look, as long as one turn lasts, and return how many pairs
    were found."""
    until, found = time.monotonic() + TURN_SECONDS, 0
    while time.monotonic() < until and (step := duplicates_find(scope, now=timezone.now())):
        found += step
    return found


def duplicates_enqueue(scope: str) -> None:
    """Enqueue a search for duplicates at a scope. One query."""
    async_task("memory.jobs.tasks.duplicates_look", scope)


@job("Extraction", "Extracts facts from a text that was left to the worker.")
def extraction_continue(job_id: str) -> str:
    """Extract what is left of a text, for as long as one turn lasts, and ask for another turn if that is not enough."""
    job = extraction_work(uuid.UUID(job_id), clock=timezone.now, seconds=TURN_SECONDS, enqueue=extraction_enqueue)
    return job.status


def extraction_enqueue(job_id: uuid.UUID) -> None:
    """Enqueue an extraction for the worker. One query."""
    async_task("memory.jobs.tasks.extraction_continue", str(job_id))


@job("Study", "Studies a long text for the assistant.")
def study_continue(job_id: str, turn: int | None = None) -> str:
    """Study what is left of a text, for as long as one turn lasts, and call the study whose turn is next. ``turn``
    tells copies of an entry apart: the first counts."""
    job = study_work(uuid.UUID(job_id), clock=timezone.now, seconds=turn_seconds(), turn=turn, enqueue=study_enqueue)
    return job.status


def study_enqueue(job_id: uuid.UUID) -> None:
    """Enqueue a study for the worker. Two queries."""
    async_task("memory.jobs.tasks.study_continue", str(job_id), study_turn(job_id))


@job("Import", "Checks a file, or brings what is left of it.")
def import_continue(job_id: str) -> str:
    """Check a file, or bring what is left of it, for as long as one turn lasts, and ask for another turn if that is not
    enough. What has come is embedded and counted by upkeep."""
    job = import_work(uuid.UUID(job_id), clock=timezone.now, seconds=TURN_SECONDS, enqueue=import_enqueue)
    if job.status == job.Status.DONE:
        # What it says is in the store, where a purge reaches it.
        upload_discard(job.file)
        upkeep_request()
    return job.status


def import_enqueue(job_id: uuid.UUID) -> None:
    """Enqueue an import for the worker. One query."""
    async_task("memory.jobs.tasks.import_continue", str(job_id))


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


# Regret is a matter of days, and asking questions again costs as much as asking them.
@job("Shadow search", "Asks a sample of questions again, to find what is missed in the archive.", minutes=10)
def shadow() -> int:
    """Ask a sample of the latest questions again, archived topics included, and return how many rows were looked at."""
    until = time.monotonic() + TURN_SECONDS
    looked_at = 0
    while time.monotonic() < until and (step := shadow_search(now=timezone.now(), limit=SHADOW_ROWS)):
        looked_at += step
    return looked_at


@job("Tidying", "Removes receipts of requests that are older than a week.", minutes=60)
def tidy() -> int:
    """Remove idempotency records whose time is over, and return how many: they are receipts, not memories. And look
    for rows whose half-life no policy wants, left by writers that were at work when it changed, for files that no
    import needs any more, and for messages to the assistant whose process is gone."""
    removed, _by_model = IdempotencyRecord.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    half_lives_stray_check(now=timezone.now())
    listings_tidy(now=timezone.now())
    uploads_tidy(now=timezone.now())
    turns_lost_close(now=timezone.now())
    return removed


def schedules_ensure() -> None:
    """Create the missing schedules, leave those that an operator has changed, and remove those of functions that are
    not jobs any more. A query each."""
    Schedule.objects.filter(func__startswith="memory.jobs.").exclude(func__in=JOBS).delete()
    for function, kind in JOBS.items():
        if kind.minutes:
            name = function.rsplit(".", 1)[-1]
            Schedule.objects.get_or_create(
                func=function, defaults={"name": name, "schedule_type": Schedule.MINUTES, "minutes": kind.minutes}
            )
    cron_schedules_sync(now=timezone.now())
    # The environment may give another half-life than at the last start.
    half_lives_stray_check(now=timezone.now())


def upkeep_request() -> None:
    """Ask the worker for a turn of upkeep, as part of the running transaction if there is one. One query."""
    async_task("memory.jobs.tasks.upkeep")


class _Nudge:
    """Calls the worker soon after a query, at most once in a while, from a thread of its own.

    The request itself leaves one row in the access log and no job, so that a retrieval costs one INSERT. If this
    process dies before it has called, the schedule finds the row within a minute.
    """

    EVERY_SECONDS = 0.5

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def nudge(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            with self._lock:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._run, name="nudge", daemon=True)
                    self._thread.start()
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                upkeep_request()
            except DatabaseError as problem:
                logger.warning("nudge_failed", problem=str(problem))
            finally:
                # The next retrieval may be hours away, and an agent's own process has no pool to give it back to.
                connection.close()
            time.sleep(self.EVERY_SECONDS)


_nudge = _Nudge()


def upkeep_nudge() -> None:
    """Have the worker fold what was just retrieved and count what was just written, within about a second. No query."""
    _nudge.nudge()
