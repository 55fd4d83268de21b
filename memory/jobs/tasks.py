"""All tasks of the worker, and their schedules. Tasks take ids and scalars. Every task may run twice."""

import datetime as dt
import functools
import inspect
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import structlog
from django.conf import settings
from django.db import DatabaseError, ProgrammingError, connection
from django.db.models import QuerySet
from django.utils import timezone
from django_q.models import Schedule
from django_q.tasks import async_task
from psycopg.errors import UndefinedTable

from memory.agents.chat.turns import turns_lost_close
from memory.agents.study.control import studies_stalled, study_turn
from memory.agents.study.work import study_work, turn_seconds
from memory.core.callbacks import Enqueue
from memory.core.errors import ValueRefused
from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.duplicates.detect import duplicates_find
from memory.erasure.check import erasure_check_work
from memory.erasure.forget_list_read import listings_tidy
from memory.explain.shadow import shadow_search
from memory.extraction.work import extraction_work
from memory.forgetting.refusals import outdated_refuse
from memory.forgetting.runs import run_work
from memory.forgetting.triggers import scheduled_run, wake_ups_answer
from memory.ingest.documents import documents_remake
from memory.ingest.embed_pending import vectors_fill
from memory.ingest.idempotency import KEPT
from memory.jobs.stores import store_move
from memory.jobs.watch import regret_check, worker_events_check
from memory.models import (
    AccessLog,
    ErasureCheck,
    ExtractionJob,
    ForgetRun,
    IdempotencyRecord,
    ImportJob,
    Job,
    NotificationDelivery,
    NotificationOccurrence,
    Rekeying,
    StudyJob,
    Topic,
    TopicDocument,
    TopicVector,
    WakeUp,
)
from memory.notifications.send import deliveries_due, deliveries_send
from memory.policy.cron import cron_next
from memory.policy.rekey import half_lives_rekey, half_lives_stray_check
from memory.policy.schedules import cron_schedules_sync, schedules_renew
from memory.recall.access_fold import accesses_fold
from memory.recall.corpus import documents_count
from memory.resumable import jobs_stalled
from memory.stores.current import MAIN, store_current, store_or_none, store_use
from memory.stores.models import Store, WorkerHeartbeat
from memory.stores.pending import stores_recent, stores_waiting, work_done, work_pending
from memory.stores.queue import queued_here, tasks_dropped_remove
from memory.transfer.uploads import upload_discard, uploads_dropped_remove, uploads_tidy
from memory.transfer.work import import_work

logger = structlog.get_logger(__name__)

# A long task works in turns: after this long, it stops between two steps and enqueues itself again if steps remain.
# This is well below the time limit of the queue for one task.
TURN_SECONDS = 60.0

# The time within a turn for the search for duplicates. The rest of the search waits for the next turn.
REVISE_SECONDS = 20.0

# The same demo as that of `manage.py demo`.
DEMO_TOPICS, DEMO_SEED = 2000, 7

# The number of queue entries that are searched for the job of the demo. The queue is short, because the store is empty.
MAX_QUEUED = 50

# A move may take this share of MEMSTATE_JOB_TIMEOUT. The rest is left for cleaning up.
MOVE_SHARE = 0.9

RUN_CONTINUE = "memory.jobs.tasks.run_continue"

# The shadow search and tidying run in ``main`` and in stores that had work for upkeep within these times. In other
# stores, they have nothing to do.
SHADOW_RECENT, TIDY_RECENT = dt.timedelta(hours=1), KEPT + dt.timedelta(days=1)

# The number of logged queries that one transaction of the shadow search reads. It repeats only a sample of them.
SHADOW_ROWS = 200


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A task of the worker: dotted name, title, description (``what``) and minutes between scheduled runs (0 for none).

    ``needs`` is the number of required arguments, which a retry repeats. For a task that continues resumable jobs,
    ``model`` is their class, ``stalled`` marks and returns the jobs to enqueue again, and ``turn`` returns the second
    argument of the task, if it has one.
    """

    name: str
    title: str
    what: str
    minutes: int = 0
    needs: int = 0
    model: type[Job] | None = None
    stalled: Callable[..., list[uuid.UUID]] | None = None
    turn: Callable[[uuid.UUID], int] | None = None

    def enqueue(self, *args: object) -> None:
        """Enqueue the task, in the running transaction if there is one. One query."""
        async_task(self.name, *args)

    def enqueue_id(self, row_id: uuid.UUID) -> None:
        """Enqueue the task for one job or run. One query, two with ``turn``."""
        self.enqueue(str(row_id), *([self.turn(row_id)] if self.turn is not None else []))


# Every task by its name in the queue. Pages, schedules, retry and the stalled check use this table.
TASKS: dict[str, TaskKind] = {}
Work = TypeVar("Work", bound=Callable[..., object])


def task(
    title: str,
    what: str,
    *,
    minutes: int = 0,
    model: type[Job] | None = None,
    stalled: Callable[..., list[uuid.UUID]] | None = None,
    turn: Callable[[uuid.UUID], int] | None = None,
) -> Callable[[Work], Work]:
    """Register a function as a task. The default of ``stalled`` is the check that all jobs share."""
    if model is not None and stalled is None:
        stalled = partial(jobs_stalled, model)

    def register(work: Work) -> Work:
        @functools.wraps(work)
        def in_store(*args: Any, store: str | None = None) -> object:
            # Each job names its store, except jobs of schedules that concern all stores. Such a job begins in ``main``.
            name = store or store_or_none() or MAIN
            with store_use(name):
                try:
                    return work(*args)
                except ProgrammingError as problem:
                    # Nothing is left to do in a store that was dropped while the job waited or ran.
                    if not isinstance(problem.__cause__, UndefinedTable) or Store.objects.filter(pk=name).exists():
                        raise
                    return None

        name = f"{work.__module__}.{work.__name__}"
        needs = sum(one.default is one.empty for one in inspect.signature(work).parameters.values())
        TASKS[name] = TaskKind(name, title, what, minutes, needs, model, stalled, turn)
        return cast(Work, in_store)

    return register


def _kind(work: Callable[..., object]) -> TaskKind:
    return TASKS[f"{work.__module__}.{work.__name__}"]


def _titles() -> dict[str, str]:
    """Return the titles of the tasks whose failures the watch reports. Runs and resumable jobs report their own
    failures, after retries."""
    return {kind.name: kind.title for kind in TASKS.values() if kind.model is None and kind.name != RUN_CONTINUE}


# Requests enqueue upkeep themselves. The schedule covers requests whose process was killed before it enqueued upkeep.
@task("Upkeep", "Counts recalls into salience, embeds new memories, and starts runs that events call for.", minutes=1)
def upkeep() -> dict[str, int]:
    """Do the work that requests have deferred in the store, and return the number of rows for each step. Runs on
    request, and every minute in ``main``. In ``main``, it also saves the heartbeat of the worker and enqueues upkeep of
    the other stores that have work.

    The steps: apply retrievals to salience, make outdated documents again, count words, apply a changed half-life to
    the rows, refuse held runs that are out of date, start the runs that events call for, embed topics, search for
    duplicates, and enqueue stalled jobs.
    """
    began = timezone.now()
    if store_current() == MAIN:
        WorkerHeartbeat.objects.update_or_create(name="worker", defaults={"seen_at": began})
        _enqueue_in(stores_waiting(now=began), upkeep)
    # This comes first, so that the next upkeep notices a failure of the steps below.
    worker_events_check(titles=_titles(), now=timezone.now())
    if deliveries_due(now=timezone.now()):
        notify_enqueue()
    until = time.monotonic() + TURN_SECONDS
    done = {"folded": 0, "embedded": 0, "remade": 0, "counted": 0, "rekeyed": 0, "runs": 0, "duplicates": 0}
    steps: dict[str, Callable[[], int]] = {
        "folded": lambda: accesses_fold(now=timezone.now()),
        "remade": documents_remake,
        "counted": documents_count,
        # This comes before the runs, which need rows with the current half-life.
        "rekeyed": lambda: half_lives_rekey(now=timezone.now(), budget_seconds=_left(until)),
    }
    for name, work in steps.items():
        while time.monotonic() < until and (step := work()):
            done[name] += step
    outdated_refuse(now=timezone.now())
    done["runs"] = wake_ups_answer(now=timezone.now(), seconds=_left(until))
    for given in vectors_fill():
        done["embedded"] += given
        if time.monotonic() >= until:
            break
    # This comes after the embedding, because topics are compared by vectors.
    done["duplicates"] = duplicates_find(None, now=timezone.now(), seconds=min(_left(until), REVISE_SECONDS))
    # Words are counted again, because the runs above have archived topics.
    while time.monotonic() < until and (step := documents_count()):
        done["counted"] += step
    for kind in TASKS.values():
        for job_id in kind.stalled(now=timezone.now()) if kind.stalled is not None else ():
            kind.enqueue_id(job_id)
    if time.monotonic() >= until:
        upkeep_request()
    if store_current() != MAIN:
        schedules_renew(now=timezone.now())
        work_done(began, left=_work_left())
    return done


def _work_left() -> bool:
    """Return whether the store has work that upkeep must do even without another request. At most twelve queries on
    small indexes."""
    waiting: list[QuerySet[Any]] = [
        AccessLog.objects.filter(folded_at__isnull=True),
        TopicVector.objects.filter(embedding__isnull=True),
        TopicDocument.objects.filter(outdated=True),
        WakeUp.objects.all(),
        Rekeying.objects.filter(finished_at__isnull=True),
        ForgetRun.objects.filter(status=ForgetRun.Status.APPLYING),
        NotificationDelivery.objects.filter(status=NotificationDelivery.Status.WAITING),
        NotificationOccurrence.objects.filter(over_at__isnull=True),
        *(
            kind.model._default_manager.filter(status__in=Job.AT_WORK)
            for kind in TASKS.values()
            if kind.model is not None
        ),
    ]
    return any(rows.exists() for rows in waiting)


def _enqueue_in(stores: Iterable[str], work: Callable[..., object]) -> None:
    for store in stores:
        with store_use(store):
            _kind(work).enqueue()


@task("Scheduled run", "Forgets the memories that are due.")
def forget_scheduled(scope: str) -> str | None:
    """Start the scheduled run of ``scope``, and return its id. ``memory.policy.schedules`` writes the schedule. In a
    store other than ``main`` without live topics, this task only deletes the schedules."""
    if store_current() != MAIN and not schedules_renew(now=timezone.now()):
        return None
    run = scheduled_run(scope, now=timezone.now(), seconds=TURN_SECONDS)
    # A daily search finds pairs that upkeep has missed, for example because a topic was compared with too few others.
    duplicates_find(scope, now=timezone.now(), seconds=REVISE_SECONDS)
    if run is None:
        return None
    if run.status == run.Status.APPLYING:
        run_enqueue(run.id)
    return str(run.id)


@task("Work on a run", "Continues a run that takes longer than a request.")
def run_continue(run_id: str) -> str:
    """Continue a run for one turn, and enqueue the remainder. Returns its status."""
    run = run_work(uuid.UUID(run_id), now=timezone.now(), seconds=TURN_SECONDS, enqueue=run_enqueue)
    return run.status


run_enqueue: Enqueue = _kind(run_continue).enqueue_id


@task("Search for duplicates", "Compares new memories with the stored ones.")
def duplicates_search(scope: str) -> int:
    """Compare the topics written in ``scope`` since the last search, for one turn. Return the number of pairs found."""
    until, found = time.monotonic() + TURN_SECONDS, 0
    while time.monotonic() < until and (step := duplicates_find(scope, now=timezone.now())):
        found += step
    return found


def duplicates_enqueue(scope: str) -> None:
    """Enqueue a search for duplicates in a scope. One query."""
    _kind(duplicates_search).enqueue(scope)


@task("Extraction", "Extracts facts from a text in the background.", model=ExtractionJob)
def extraction_continue(job_id: str) -> str:
    """Continue an extraction for one turn, and enqueue the remainder. Returns its status."""
    job = extraction_work(uuid.UUID(job_id), clock=timezone.now, seconds=TURN_SECONDS, enqueue=extraction_enqueue)
    return job.status


extraction_enqueue: Enqueue = _kind(extraction_continue).enqueue_id


@task("Study", "Studies a long text for the assistant.", model=StudyJob, stalled=studies_stalled, turn=study_turn)
def study_continue(job_id: str, turn: int | None = None) -> str:
    """Continue a study for one turn, enqueue the next waiting study, and return the status. ``turn`` is the number of
    the queue entry. If several entries have the same number, only the first has an effect."""
    job = study_work(uuid.UUID(job_id), clock=timezone.now, seconds=turn_seconds(), turn=turn, enqueue=study_enqueue)
    return job.status


study_enqueue: Enqueue = _kind(study_continue).enqueue_id


@task("Import", "Checks a file, or imports the rest of it.", model=ImportJob)
def import_continue(job_id: str) -> str:
    """Check a file, or continue its import for one turn and enqueue the remainder. Upkeep embeds the imported topics.
    Returns the status."""
    job = import_work(uuid.UUID(job_id), clock=timezone.now, seconds=TURN_SECONDS, enqueue=import_enqueue)
    if job.status == job.Status.DONE:
        # The content is stored now. The file must not remain, because a purge would not remove its text.
        upload_discard(job.file)
        upkeep_request()
    return job.status


import_enqueue: Enqueue = _kind(import_continue).enqueue_id


@task("Verification of erasures", "Searches every table for purged text.", model=ErasureCheck)
def erasure_check_continue(job_id: str) -> str:
    """Continue a verification for one turn, and enqueue the remainder. Returns the status."""
    job = erasure_check_work(uuid.UUID(job_id), clock=timezone.now, seconds=TURN_SECONDS, enqueue=erasure_check_enqueue)
    return job.status


erasure_check_enqueue: Enqueue = _kind(erasure_check_continue).enqueue_id


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


# This runs seldom, because regret is measured over days and a repeated query costs as much as the original one.
@task("Shadow search", "Repeats a sample of recalls, to find what is missed in the archive.", minutes=10)
def shadow() -> int:
    """Repeat a sample of the latest queries with archived topics included; return the number of rows read."""
    if store_current() == MAIN:
        _enqueue_in(stores_recent(SHADOW_RECENT, now=timezone.now()), shadow)
    until = time.monotonic() + TURN_SECONDS
    looked_at = 0
    while time.monotonic() < until and (step := shadow_search(now=timezone.now(), limit=SHADOW_ROWS)):
        looked_at += step
    regret_check(now=timezone.now())
    return looked_at


@task("Notifications", "Sends waiting messages to webhooks and mail addresses.")
def notify() -> int:
    """Send messages of the outbox for one turn, and return the number of attempts."""
    return deliveries_send(seconds=TURN_SECONDS)


def notify_enqueue() -> None:
    """Enqueue the sending of notifications, in the running transaction if there is one. One query."""
    _kind(notify).enqueue()


@task("Tidying", "Removes receipts of requests that are older than a week.", minutes=60)
def tidy() -> int:
    """Remove expired idempotency records, and return their number.

    Also repair rows with an outdated half-life, which writers may leave while a half-life changes. Remove files that no
    import needs, and the remains of dropped stores. Close messages to the assistant whose process died.
    """
    if store_current() == MAIN:
        _enqueue_in(stores_recent(TIDY_RECENT, now=timezone.now()), tidy)
        tasks_dropped_remove()
        uploads_dropped_remove()
    removed, _by_model = IdempotencyRecord.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    half_lives_stray_check(now=timezone.now())
    listings_tidy(now=timezone.now())
    uploads_tidy(now=timezone.now())
    turns_lost_close(now=timezone.now())
    return removed


def schedules_ensure() -> None:
    """Create missing schedules, keep changes by operators, and remove schedules whose task does not exist. One query
    per schedule."""
    Schedule.objects.filter(func__startswith="memory.jobs.").exclude(func__in=TASKS).delete()
    for kind in TASKS.values():
        if kind.minutes:
            Schedule.objects.get_or_create(
                func=kind.name,
                defaults={
                    "name": kind.name.rsplit(".", 1)[-1],
                    "schedule_type": Schedule.MINUTES,
                    "minutes": kind.minutes,
                },
            )
    cron_schedules_sync(now=timezone.now())
    _next_runs_cap(now=timezone.now())
    # The half-life in the environment may have changed since the last start.
    half_lives_stray_check(now=timezone.now())


def _next_runs_cap(*, now: dt.datetime) -> None:
    """Move schedules to an earlier time if a wrong clock has put them too far into the future. One query, two if a
    schedule is moved."""
    late = []
    kinds = (Schedule.CRON, Schedule.MINUTES)
    for schedule in Schedule.objects.filter(func__in=TASKS, next_run__gt=now, schedule_type__in=kinds):
        if schedule.schedule_type == Schedule.CRON:
            try:
                latest = cron_next(schedule.cron, now=now)
            except ValueRefused:
                # A cron line that never fires must not prevent the start of the store.
                continue
        else:
            latest = now + dt.timedelta(minutes=schedule.minutes or 0)
        if schedule.next_run > latest:
            schedule.next_run = latest
            late.append(schedule)
    Schedule.objects.bulk_update(late, ["next_run"])


@task("Demo", "Loads the demo data into an empty store.")
def demo_load() -> int:
    """Load half a year of an assistant's memory, unless the store has topics. Return the number of loaded topics."""
    if Topic.objects.exists():
        # Either another request was faster, or an earlier attempt was killed after it had written the topics.
        return 0
    now = timezone.now()
    story = story_build(now=now, seed=DEMO_SEED, topics=DEMO_TOPICS)
    story_load(story, now=now, progress=lambda _steps: None)
    return len(story.topics)


@task("Move of a store", "Moves a store to another node of the cluster, while it is in use.")
def store_move_work(name: str, node: str, actor: str, reason: str) -> str:
    """Move a store, and return its node. A move that exceeds the time limit of the job fails, and Citus reverts it."""
    seconds = MOVE_SHARE * float(str(settings.Q_CLUSTER["timeout"]))
    return store_move(name, to=node, seconds=seconds, actor=actor, reason=reason)


def store_move_enqueue(name: str, node: str, *, actor: str, reason: str) -> None:
    """Enqueue the move of a store, in the running transaction if there is one. One query."""
    _kind(store_move_work).enqueue(name, node, actor, reason)


def demo_enqueue() -> None:
    """Enqueue the load of the demo, in the running transaction if there is one. One query."""
    _kind(demo_load).enqueue()


def demo_progress() -> tuple[int, int] | None:
    """Return two numbers: the topics of the demo that have a vector, and all topics of the demo.

    Embedding takes most of the time of the load. Returns None if the load neither waits nor runs. One query, two while
    it waits or runs.
    """
    name = _kind(demo_load).name
    if not any(job.task.get("func") == name for job in queued_here().order_by("id")[:MAX_QUEUED]):
        return None
    return min(TopicVector.objects.filter(embedding__isnull=False).count(), DEMO_TOPICS), DEMO_TOPICS


def upkeep_request() -> None:
    """Enqueue upkeep of the current store, in the running transaction if there is one. One query in ``main``. Two in
    other stores, which are also marked as having work."""
    work_pending()
    _kind(upkeep).enqueue()


class _UpkeepThread:
    """Enqueues upkeep soon after a request, in its own thread and at most once within ``EVERY_SECONDS``.

    The request itself only adds a row to the access log, so that a retrieval costs one INSERT. If this process dies
    before it has enqueued upkeep, the scheduled upkeep finds the row within a minute.
    """

    EVERY_SECONDS = 0.5

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._stores: set[str] = set()
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            with self._lock:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
                    self._thread.start()
        with self._lock:
            self._stores.add(store_current())
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            with self._lock:
                stores, self._stores = self._stores, set()
            try:
                while stores:
                    with store_use(next(iter(stores))):
                        upkeep_request()
                    stores.pop()
            except DatabaseError as problem:
                logger.warning("upkeep_request_failed", problem=str(problem))
                # The next request tries these stores again.
                with self._lock:
                    self._stores |= stores
            finally:
                # The next request may come hours later, and outside of web processes no pool would close the
                # connection.
                connection.close()
            time.sleep(self.EVERY_SECONDS)


_upkeep_thread = _UpkeepThread()


def upkeep_nudge() -> None:
    """Request upkeep within about a second, after a retrieval or a write. No query."""
    _upkeep_thread.request()
