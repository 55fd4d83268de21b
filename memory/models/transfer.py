"""ImportJob and ImportedTopic: the import of a file, line by line, and the topics it created."""

from django.db import models

# Whose file is still needed.
UNFINISHED = ("checking", "waiting", "working")
# Whose worker may have been lost.
OPEN = models.Q(status__in=["checking", "working"])


class ImportJob(models.Model):
    """The progress of one file, committed with the imported rows: an import that was killed continues where it stopped,
    and importing the same file again adds nothing. Holds no line of the file."""

    class Status(models.TextChoices):
        """checking -> waiting -> working -> done | failed | cancelled; the last two can be started again."""

        CHECKING = "checking"
        WAITING = "waiting"
        WORKING = "working"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    file = models.TextField(blank=True, default="", help_text="Path at which the worker reads the file.")
    source = models.CharField(max_length=20, help_text="The format of the file: memstate, mem0 or chat.")
    scope = models.CharField(
        max_length=500, blank=True, default="", help_text="The target scope for files of other systems."
    )
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WORKING)
    lines = models.PositiveBigIntegerField(default=0, help_text="Lines of the file.")
    done = models.PositiveBigIntegerField(default=0, help_text="Lines whose rows are stored.")
    offset = models.PositiveBigIntegerField(default=0, help_text="Bytes read up to the last stored line.")
    checks = models.PositiveSmallIntegerField(default=0, help_text="How many times its check was started.")
    read = models.PositiveBigIntegerField(default=0, help_text="Bytes read by the check.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes of the file.")
    report = models.JSONField(default=dict, help_text="The result of the check.")
    counts = models.JSONField(default=dict, help_text="Per kind of line: imported, already present, omitted.")
    failure = models.TextField(blank=True, default="")
    continued_by = models.UUIDField(null=True, blank=True, help_text="The import that continues this one.")
    reason = models.TextField(blank=True, default="", help_text="The reason for the import, for the journal.")
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200)
    role = models.CharField(max_length=20)
    principal_scope = models.CharField(max_length=500)
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["digest", "source", "scope"], name="importjob_working", condition=models.Q(status="working")
            )
        ]
        indexes = [
            # The newest jobs, for the page.
            models.Index(fields=["-created_at", "-id"], name="importjob_newest"),
            # Whether this file was imported before.
            models.Index(fields=["digest"], name="importjob_digest"),
            # What the worker resumes after a crash.
            models.Index(fields=["moved_at"], name="importjob_open", condition=OPEN),
        ]

    def __str__(self) -> str:
        return f"{self.done} of {self.lines} lines ({self.status})"


class ImportedTopic(models.Model):
    """A topic created by an import. Later lines of the same import add to it; topics from before are not changed."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    job = models.ForeignKey(ImportJob, on_delete=models.PROTECT, related_name="topics", db_index=False)
