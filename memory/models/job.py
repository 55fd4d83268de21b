"""Job: the columns of every resumable background job. The functions are in ``memory.resumable``."""

from typing import Any, ClassVar

from django.db import models


class Job(models.Model):
    """The progress of work that the worker does in steps. Each step is committed together with the progress."""

    class Status(models.TextChoices):
        """working -> done | cancelled | failed. An import starts as checking, then waiting."""

        CHECKING = "checking"
        WAITING = "waiting"
        WORKING = "working"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    # Statuses in which a worker processes the job.
    AT_WORK: ClassVar = (Status.CHECKING, Status.WORKING)
    UNFINISHED: ClassVar = (*AT_WORK, Status.WAITING)

    # Each kind of job sets the following attributes. The noun is used in sentences and at the start of the names of
    # audit events.
    noun: ClassVar[str]
    # The lowest role that may start, cancel and own a job.
    least_role: ClassVar[str] = "agent"
    # Whether only operators see the jobs of other callers.
    private: ClassVar[bool] = False
    # Column with the scope in which a job writes and is visible.
    scope_column: ClassVar[str] = "scope"
    # Column with the time of the last enqueueing.
    enqueued_column: ClassVar[str] = "moved_at"
    # Columns that grow with the input and are not loaded for pages.
    large_columns: ClassVar[tuple[str, ...]] = ()

    id = models.UUIDField(primary_key=True)
    scope = models.CharField(max_length=500)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WORKING)
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200, help_text="Identity of the caller, in whose name topics are written.")
    role = models.CharField(max_length=20)
    principal_scope = models.CharField(
        max_length=500, help_text="The scope of the caller, outside which nothing is written."
    )
    done = models.PositiveBigIntegerField(default=0, help_text="Segments or lines whose results are stored.")
    failure = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When the last step finished.")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        indexes = [
            # The newest jobs, for pages.
            models.Index(fields=["-created_at", "-id"], name="%(class)s_newest"),
            # The jobs that the worker resumes after a crash.
            models.Index(
                fields=["moved_at"], name="%(class)s_open", condition=models.Q(status__in=["checking", "working"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.progress_text} in {self.scope or self.principal_scope} ({self.status})"

    @property
    def writer_scope(self) -> str:
        """The scope in which the job writes and is visible."""
        return str(getattr(self, self.scope_column))

    @property
    def position(self) -> Any:
        """A value that changes with each stored step, to find out whether another process has stored a step."""
        return self.done

    @property
    def progress_text(self) -> str:
        """The finished work, in words that complete "Failed after"."""
        raise NotImplementedError

    def audit_members(self) -> dict[str, Any]:
        """Return the members of the job's audit events: ``after``, and in some jobs ``topic_id`` and ``reason``."""
        raise NotImplementedError

    def prepare_finish(self) -> None:
        """Remove the data that a finished job does not need. ``status`` is already the final one."""
