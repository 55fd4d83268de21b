"""Records the store of each job: as an argument of the job, in its key in the queue, as its group in the list of
finished jobs, and in a schedule's arguments.

All stores share one queue and are served in turn, so that a store with many jobs does not delay the others.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from time import sleep
from typing import Any, NamedTuple

from django.db.models import Count, Min, Q, QuerySet, Value
from django.db.models.functions import Concat
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule, Task
from django_q.signals import pre_enqueue
from django_q.signing import SignedPackage

from memory.stores.current import MAIN, store_current, store_or_none
from memory.stores.models import Store
from memory.stores.versions import stores_known

_ARGUMENT = "store"
# Seconds to sleep if all due jobs must wait for a worker.
_WAIT_SECONDS = 0.05
# The prefix of the groups of all stores but ``main``, whose groups are names of schedules.
_GROUP = "store:"


def job_store(arguments: Mapping[str, Any] | None) -> str:
    """Return the store that the keyword arguments of a job name; ``main`` if they name none."""
    return str((arguments or {}).get(_ARGUMENT, MAIN))


def queued_here() -> QuerySet[OrmQ]:
    """Return the entries of the queue that belong to the current store."""
    name = store_current()
    if name == MAIN:
        found: QuerySet[OrmQ] = OrmQ.objects.exclude(key__contains=":")
    else:
        found = OrmQ.objects.filter(key=_key(Conf.CLUSTER_NAME, name))
    return found


def tasks_here(model: type[Task] = Task) -> QuerySet[Task]:
    """Return the finished jobs of the current store. ``model`` may be a subset, such as ``Failure``."""
    name = store_current()
    if name == MAIN:
        found: QuerySet[Task] = model.objects.exclude(group__startswith=_GROUP)
    else:
        found = model.objects.filter(group=_GROUP + name)
    return found


class Queued(NamedTuple):
    """The number of due jobs of a store, and since when the oldest is due."""

    jobs: int
    oldest: dt.datetime


def queued_by_store(*, now: dt.datetime) -> dict[str, Queued]:
    """Return the number of due jobs, and since when the oldest is due, for each store that has any. One query."""
    due = OrmQ.objects.filter(lock__lte=now).values_list("key").annotate(count=Count("pk"), oldest=Min("lock"))
    return {key.partition(":")[2] or MAIN: Queued(count, oldest) for key, count, oldest in due}


def failures_by_store(*, since: dt.datetime) -> dict[str, int]:
    """Return the number of failed jobs of each store that has any. One query."""
    found: Counter[str] = Counter()
    failed = Task.objects.filter(success=False, stopped__gte=since)
    for group, count in failed.values_list("group").annotate(count=Count("pk")):
        ours = group is not None and group.startswith(_GROUP)
        found[group.removeprefix(_GROUP) if ours else MAIN] += count
    return found


def tasks_dropped_remove() -> None:
    """Remove finished jobs of dropped stores. One query."""
    groups = Store.objects.annotate(group=Concat(Value(_GROUP), "name")).values("group")
    Task.objects.filter(group__startswith=_GROUP).exclude(group__in=groups).delete()


def rows_here_sql(table: str) -> str:
    """Return the SQL condition for the rows of a table in ``public`` that belong to the current store. A row that
    belongs to no other store belongs to ``main``."""
    name = store_current()
    if table == Task._meta.db_table:
        return f"starts_with(\"group\", '{_GROUP}') IS NOT TRUE" if name == MAIN else f"\"group\" = '{_GROUP}{name}'"
    if table == OrmQ._meta.db_table:
        return "strpos(key, ':') = 0" if name == MAIN else f"key = '{_key(Conf.CLUSTER_NAME, name)}'"
    return "true" if name == MAIN else "false"


def schedule_arguments() -> str | None:
    """Return the keyword arguments of schedules of the current store, as the scheduler reads them."""
    return None if store_current() == MAIN else repr({_ARGUMENT: store_current()})


def schedules_here() -> QuerySet[Schedule]:
    """Return the schedules of the current store. The schedules of upkeep belong to ``main`` and serve all stores."""
    found: QuerySet[Schedule] = Schedule.objects.filter(kwargs=schedule_arguments())
    return found


def _store_add(task: dict[str, Any], **_more: Any) -> None:
    """Add the current store to an enqueued job. The scheduler has no store: its jobs name one or belong to ``main``."""
    name = task["kwargs"].setdefault(_ARGUMENT, store_or_none() or MAIN)
    if name != MAIN:
        task["group"] = _GROUP + name


pre_enqueue.connect(_store_add, dispatch_uid="memory.stores.queue")


def _key(queue: str, name: str) -> str:
    return queue if name == MAIN else f"{queue}:{name}"


class _Assigned(NamedTuple):
    """A job that a worker has: its key in the queue, the id of its task, and the time when the worker got it."""

    key: str
    task: str
    at: dt.datetime


class FairBroker(ORM):  # type: ignore[misc] # django-q2 has no types
    """The queue in the database. The stores with jobs are served in turn, in the order of their names.

    If there are several stores, no store gets all workers of a cluster, so that its long jobs do not delay other
    stores. Jobs of a store that is being migrated wait.
    """

    # The key that was served last by this process.
    _last = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # The jobs that this process has given to workers, by the id of the entry; empty if there is only one store.
        self._assigned: dict[int, _Assigned] = {}

    def enqueue(self, task: str) -> Any:
        """Store a job under the key of its store. One query."""
        name = job_store(SignedPackage.loads(task)["kwargs"])
        queue = self.list_key or Conf.CLUSTER_NAME
        return self.get_connection().create(key=_key(queue, name), payload=task, lock=timezone.now()).pk

    def dequeue(self) -> Any:
        """Return the oldest job of the store whose turn it is. At most six queries. If no job is due, one query and a
        short sleep."""
        due = self._of_queue().filter(lock__lt=timezone.now())
        firsts = dict(due.order_by("key", "lock", "id").distinct("key").values_list("key", "pk"))
        turns = self._turns(firsts) if firsts else []
        if not turns:
            # The sleep is short if jobs wait for a worker, so that they start soon after one is free.
            sleep(min(Conf.POLL, _WAIT_SECONDS) if firsts else Conf.POLL)
            return None
        key = next((key for key in turns if key > self._last), turns[0])
        self._last = key
        job = self._of_queue().filter(pk=firsts[key]).first()
        # Another cluster may have been faster.
        if job is None or not self._of_queue().filter(pk=job.pk, lock=job.lock).update(lock=self.timeout(job)):
            return None
        if stores_known().several:
            self._assigned[job.pk] = _Assigned(key, job.task_id(), timezone.now())
        return [(job.pk, job.payload)]

    def _turns(self, keys: Iterable[str]) -> list[str]:
        """Return the keys that may be served now, in order. At most three queries."""
        known = stores_known()
        stopped = {_key(self.list_key, name) for name in known.behind}
        if known.several and Conf.WORKERS > 1:
            stopped |= {key for key, jobs in self._assigned_counts().items() if jobs >= Conf.WORKERS - 1}
        return sorted(set(keys) - stopped)

    def _assigned_counts(self) -> Counter[str]:
        """Return the number of jobs that workers of this cluster have, by key in the queue. Two queries; none if no
        worker has a job."""
        if self._assigned:
            # A successful job is no longer in the queue. A failed job, or the job of a killed worker, is still there
            # and waits for its next attempt.
            held = set(
                self._of_queue().filter(pk__in=self._assigned, lock__gt=timezone.now()).values_list("pk", flat=True)
            )
            ids = [job.task for job in self._assigned.values()]
            ended = dict(Task.objects.filter(pk__in=ids).values_list("pk", "stopped"))
            self._assigned = {
                pk: job
                for pk, job in self._assigned.items()
                if pk in held and not (job.task in ended and ended[job.task] >= job.at)
            }
        return Counter(job.key for job in self._assigned.values())

    def queue_size(self) -> int:
        """Return the number of due jobs. One query."""
        return int(self._of_queue().filter(lock__lte=timezone.now()).count())

    def lock_size(self) -> int:
        """Return the number of jobs that workers have. One query."""
        return int(self._of_queue().filter(lock__gt=timezone.now()).count())

    def purge_queue(self) -> Any:
        """Remove all jobs. One query."""
        return self._of_queue().delete()

    def _of_queue(self) -> QuerySet[OrmQ]:
        return self.get_connection().filter(Q(key=self.list_key) | Q(key__startswith=f"{self.list_key}:"))  # type: ignore[no-any-return]
