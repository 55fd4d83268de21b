"""The store of each job: an argument of the job, part of its key in the queue, and part of a schedule's arguments.

All stores share one queue, which is served store by store, so that a store with many jobs does not delay the others.
"""

from collections.abc import Mapping
from time import sleep
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule
from django_q.signals import pre_enqueue
from django_q.signing import SignedPackage

from memory.stores.current import MAIN, store_current, store_or_none

_ARGUMENT = "store"


def job_store(arguments: Mapping[str, Any] | None) -> str:
    """Return the store that the keyword arguments of a job name; ``main`` if they name none."""
    return str((arguments or {}).get(_ARGUMENT, MAIN))


def job_is_here(arguments: Mapping[str, Any] | None) -> bool:
    """Return whether a job with these keyword arguments belongs to the current store."""
    return job_store(arguments) == store_current()


def queued_here() -> QuerySet[OrmQ]:
    """Return the entries of the queue that belong to the current store."""
    name = store_current()
    if name == MAIN:
        found: QuerySet[OrmQ] = OrmQ.objects.exclude(key__contains=":")
    else:
        found = OrmQ.objects.filter(key=_key(Conf.CLUSTER_NAME, name))
    return found


def job_arguments() -> dict[str, str]:
    """Return the keyword arguments of jobs of the current store."""
    return {_ARGUMENT: store_current()}


def schedule_arguments() -> str | None:
    """Return the keyword arguments of schedules of the current store, as the scheduler reads them."""
    return None if store_current() == MAIN else repr(job_arguments())


def schedules_here() -> QuerySet[Schedule]:
    """Return the schedules of the current store. Those of upkeep belong to ``main`` and serve all stores."""
    found: QuerySet[Schedule] = Schedule.objects.filter(kwargs=schedule_arguments())
    return found


def _store_add(task: dict[str, Any], **_more: Any) -> None:
    """Name the current store in a job that is enqueued. The scheduler has none: its jobs name theirs, or are of
    ``main``."""
    task["kwargs"].setdefault(_ARGUMENT, store_or_none() or MAIN)


pre_enqueue.connect(_store_add, dispatch_uid="memory.stores.queue")


def _key(queue: str, name: str) -> str:
    return queue if name == MAIN else f"{queue}:{name}"


class FairBroker(ORM):  # type: ignore[misc] # django-q2 has no types
    """The queue in the database. Each store that has a job gets its turn, in the order of their names."""

    # The key that was served last by this process.
    _last = ""

    def enqueue(self, task: str) -> Any:
        """Store a job under the key of its store. One query."""
        name = job_store(SignedPackage.loads(task)["kwargs"])
        queue = self.list_key or Conf.CLUSTER_NAME
        return self.get_connection().create(key=_key(queue, name), payload=task, lock=timezone.now()).pk

    def dequeue(self) -> Any:
        """Return the oldest job of the store whose turn it is. Three queries; one, and a short sleep, if no job is
        due."""
        due = self._of_queue().filter(lock__lt=timezone.now())
        firsts = dict(due.order_by("key", "lock", "id").distinct("key").values_list("key", "pk"))
        if not firsts:
            sleep(Conf.POLL)
            return None
        key = next((key for key in sorted(firsts) if key > self._last), min(firsts))
        self._last = key
        job = self._of_queue().filter(pk=firsts[key]).first()
        # Another cluster may have been faster.
        if job is None or not self._of_queue().filter(pk=job.pk, lock=job.lock).update(lock=self.timeout(job)):
            return None
        return [(job.pk, job.payload)]

    def queue_size(self) -> int:
        """Return the number of due jobs. One query."""
        return int(self._of_queue().filter(lock__lte=timezone.now()).count())

    def lock_size(self) -> int:
        """Return the number of jobs in the hands of workers. One query."""
        return int(self._of_queue().filter(lock__gt=timezone.now()).count())

    def purge_queue(self) -> Any:
        """Remove all jobs. One query."""
        return self._of_queue().delete()

    def _of_queue(self) -> QuerySet[OrmQ]:
        return self.get_connection().filter(Q(key=self.list_key) | Q(key__startswith=f"{self.list_key}:"))  # type: ignore[no-any-return]
