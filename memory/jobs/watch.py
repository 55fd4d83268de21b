"""Finds the events for notifications that no transaction can report: failed jobs, a stopped worker, high regret."""

import datetime as dt
import threading
import time
from collections.abc import Mapping

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone
from django_q.models import Task

from memory.explain.regret import RECENT_DAYS, regret_recent
from memory.health import FAILURES_WITHIN, HEARTBEAT_WITHIN, worker_check
from memory.models import ForgetRun, NotificationTarget
from memory.notifications.outbox import occurrence_begin, occurrences_end, occurrences_open
from memory.notifications.send import deliveries_due, deliveries_send
from memory.stores.current import MAIN, store_use
from memory.stores.pending import stores_used, work_pending
from memory.stores.queue import tasks_here

logger = structlog.get_logger(__name__)

WATCH_SECONDS = 60.0
# The most stores except main that a web process visits in a minute while the worker is stopped.
STORES_A_MINUTE = 50
# With fewer archived memories, the share of regretted ones means little.
LEAST_ARCHIVED = 20
# The event ends when regret falls to this fraction of the limit, so that small changes do not notify repeatedly.
OVER_BELOW = 0.8
_WORKER = "worker"


def worker_events_check(*, titles: Mapping[str, str], now: dt.datetime) -> None:
    """Begin and end the events of failed jobs, and end the events of held runs and of the stopped worker. Upkeep calls
    this. ``titles`` maps the names of the watched tasks to their titles. Runs one query if there are no targets,
    otherwise at most seven, plus four for each event that begins or ends."""
    wanted = {event for target in NotificationTarget.objects.filter(enabled=True) for event in target.events}
    if not wanted:
        return
    occurrences_end("worker_stopped", {_WORKER: "The worker runs again."}, now=now)
    if "run_held" in wanted:
        _held_runs_check(now)
    if "job_failed" in wanted:
        _failed_jobs_check(titles, now)


def _held_runs_check(now: dt.datetime) -> None:
    held = occurrences_open("run_held")
    if held:
        ended = ForgetRun.objects.filter(pk__in=held).exclude(status=ForgetRun.Status.HELD)
        occurrences_end(
            "run_held",
            {str(run.pk): f"The run over {run.scope} no longer waits for approval." for run in ended},
            now=now,
        )


def _failed_jobs_check(titles: Mapping[str, str], now: dt.datetime) -> None:
    """Compare the last attempt of each job with the open occurrences. A job that fails every minute is one
    occurrence."""
    tasks = tasks_here().filter(stopped__gte=now - FAILURES_WITHIN, func__in=titles)
    tasks = tasks.order_by("func", "args", "-stopped").distinct("func", "args")
    last = {_subject(task): task for task in tasks}
    opened = occurrences_open("job_failed")
    for subject, task in last.items():
        if not task.success and subject not in opened:
            # The message omits the error, which may contain texts of the store.
            text, scope = f"The job {titles[task.func]} failed.", str((task.args or ("/",))[0])
            occurrence_begin("job_failed", subject, text=text, page="/schedules/", scope=scope, now=now)
    well = {each: last[each] for each in opened & last.keys() if last[each].success}
    occurrences_end(
        "job_failed", {each: f"The job {titles[task.func]} succeeded." for each, task in well.items()}, now=now
    )


def _subject(task: Task) -> str:
    return " ".join([task.func, *map(str, task.args or ())])[:800]


def regret_check(*, now: dt.datetime) -> None:
    """Compare the regret of the last days with the limit of each target. Runs one query if no target has a limit,
    otherwise two, plus three for each event that begins or ends."""
    targets = list(NotificationTarget.objects.filter(enabled=True, regret_above__isnull=False))
    if not targets:
        return
    archived, regretted = regret_recent(now=now)
    share = regretted / archived if archived >= LEAST_ARCHIVED else 0.0
    for target in targets:
        above = target.regret_above or 0.0
        text = (
            f"In {RECENT_DAYS} days, {regretted:,} of {archived:,} memories that runs archived were needed afterwards "
            f"({share:.1%}); the value set is {above:.1%}."
        )
        subject = str(target.pk)
        if share > above:
            page = "/overview/regretted/"
            occurrence_begin("regret", subject, text=text, page=page, scope="/", now=now, target=target)
        elif share <= above * OVER_BELOW:
            occurrences_end("regret", {subject: text}, now=now)


def worker_absence_check(*, now: dt.datetime, after: str = "") -> str | None:
    """If the worker has stopped, begin this event in ``main`` and in the next stores, and send their waiting messages.
    The next stores are those whose names come after ``after``. Return the last of these stores, which is ``after`` of
    the next call, or an empty text if no stores are left. Return None while the worker runs.

    One query while the worker runs. Otherwise two, plus at most four for each of these stores, and those of the
    messages. At most ``STORES_A_MINUTE`` stores are visited besides ``main``. Web processes call this, because a
    stopped worker cannot report itself.
    """
    if worker_check(now).ok:
        return None
    until = time.monotonic() + WATCH_SECONDS / 2
    stores = stores_used(after=after, most=STORES_A_MINUTE)
    _absence_report(MAIN, now=now, until=until)
    for store in stores:
        _absence_report(store, now=now, until=until)
        if time.monotonic() >= until:
            return store
    return stores[-1] if len(stores) == STORES_A_MINUTE else ""


def _absence_report(store: str, *, now: dt.datetime, until: float) -> None:
    text = "The worker has stopped. Until it runs again, nothing is embedded or forgotten on schedule."
    with store_use(store):
        try:
            occurrence_begin("worker_stopped", _WORKER, text=text, page="/schedules/", scope="/", now=now)
            if deliveries_due(now=now):
                # When the worker runs again, upkeep of the store ends the event.
                work_pending()
                deliveries_send(seconds=until - time.monotonic())
        except DatabaseError as problem:
            # For example, the store was dropped. The other stores are still notified.
            logger.warning("worker_watch_failed", store=store, problem=type(problem).__name__)


def web_watch_start() -> None:
    """Check the worker once a minute, in a daemon thread of this web process."""
    threading.Thread(target=_web_watch, name="worker-watch", daemon=True).start()


def _web_watch() -> None:
    # The worker starts together with this process and reports each minute, so wait for its first reports.
    time.sleep(HEARTBEAT_WITHIN.total_seconds())
    after = ""
    while True:
        try:
            after = worker_absence_check(now=timezone.now(), after=after) or ""
        except DatabaseError as problem:
            logger.warning("worker_watch_failed", problem=type(problem).__name__)
        finally:
            connection.close()
        time.sleep(WATCH_SECONDS)
