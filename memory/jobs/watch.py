"""Finds events of notifications that no transaction reports: failed jobs, a stopped worker, regret."""

import datetime as dt
import threading
import time
from collections.abc import Mapping

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone
from django_q.models import Task

from memory.health import FAILURES_WITHIN, HEARTBEAT_WITHIN, worker_check
from memory.insight.regret import RECENT_DAYS, regret_recent
from memory.models import ForgetRun, NotificationTarget
from memory.notifications.outbox import occurrence_begin, occurrences_end, occurrences_open
from memory.notifications.send import deliveries_due, deliveries_send
from memory.stores.current import MAIN, store_use
from memory.stores.pending import stores_recent
from memory.stores.queue import job_is_here

logger = structlog.get_logger(__name__)

WATCH_SECONDS = 60.0
# With fewer archivings, the share means little.
LEAST_ARCHIVED = 20
# Regret is over below this part of the limit, so that a share close to the limit does not notify again and again.
OVER_BELOW = 0.8
_WORKER = "worker"


def worker_events_check(*, titles: Mapping[str, str], now: dt.datetime) -> None:
    """Begin and end the events that the worker checks each minute: failures of the jobs in ``titles``, held runs, and
    its own absence. Runs one query if there are no targets, otherwise at most seven and four for each event that begins
    or ends."""
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
    tasks = Task.objects.filter(stopped__gte=now - FAILURES_WITHIN, func__in=titles)
    tasks = tasks.order_by("func", "args", "kwargs", "-stopped").distinct("func", "args", "kwargs")
    last = {_subject(task): task for task in tasks if job_is_here(task.kwargs)}
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
    otherwise two and three for each event that begins or ends."""
    targets = list(NotificationTarget.objects.filter(enabled=True, regret_above__isnull=False))
    if not targets:
        return
    archived, regretted = regret_recent(now=now)
    share = regretted / archived if archived >= LEAST_ARCHIVED else 0.0
    for target in targets:
        above = target.regret_above or 0.0
        text = (
            f"In {RECENT_DAYS} days, {regretted:,} of {archived:,} topics that runs archived were needed afterwards "
            f"({share:.1%}); the value set is {above:.1%}."
        )
        subject = str(target.pk)
        if share > above:
            page = "/overview/regretted/"
            occurrence_begin("regret", subject, text=text, page=page, scope="/", now=now, target=target)
        elif share <= above * OVER_BELOW:
            occurrences_end("regret", {subject: text}, now=now)


def worker_absence_check(*, now: dt.datetime) -> bool:
    """If the worker has stopped, begin that event in every store that was used, send waiting messages in its place, and
    return True. One query while the worker runs. Called by web processes, because a stopped worker cannot report
    itself."""
    if worker_check(now).ok:
        return False
    text = "The worker has stopped. Until it runs again, nothing is embedded or forgotten on schedule."
    for store in [MAIN, *stores_recent(None, now=now)]:
        with store_use(store):
            occurrence_begin("worker_stopped", _WORKER, text=text, page="/schedules/", scope="/", now=now)
            if deliveries_due(now=now):
                deliveries_send(seconds=WATCH_SECONDS / 2)
    return True


def web_watch_start() -> None:
    """Check the worker once a minute, in a daemon thread of this web process."""
    threading.Thread(target=_web_watch, name="worker-watch", daemon=True).start()


def _web_watch() -> None:
    # The worker starts together with this process, and reports each minute.
    time.sleep(HEARTBEAT_WITHIN.total_seconds())
    while True:
        try:
            worker_absence_check(now=timezone.now())
        except DatabaseError as problem:
            logger.warning("worker_watch_failed", problem=type(problem).__name__)
        finally:
            connection.close()
        time.sleep(WATCH_SECONDS)
