"""ImportJob and ImportedTopic: a file on its way into the store, line by line, and which topics came with it."""

from django.db import models

# Whose file is still needed.
UNFINISHED = ("checking", "waiting", "working")
# Whose worker may have been lost.
OPEN = models.Q(status__in=["checking", "working"])


class ImportJob(models.Model):
    """How far one file has come, in the transaction of what it brought: so an import that was killed goes on where it
    was, and the same file twice brings nothing the second time. Holds no line of the file."""

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
    file = models.TextField(blank=True, default="", help_text="Where the worker finds it.")
    source = models.CharField(max_length=20, help_text="memstate, mem0 or chat: what wrote the file.")
    scope = models.CharField(max_length=500, blank=True, default="", help_text="Into which other systems' go.")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WORKING)
    lines = models.PositiveBigIntegerField(default=0, help_text="Of the file.")
    done = models.PositiveBigIntegerField(default=0, help_text="Lines whose rows are stored.")
    offset = models.PositiveBigIntegerField(default=0, help_text="Bytes up to there.")
    checks = models.PositiveSmallIntegerField(default=0, help_text="How many times its check was begun.")
    read = models.PositiveBigIntegerField(default=0, help_text="Bytes that the check has read.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes of the file.")
    report = models.JSONField(default=dict, help_text="What the check has found.")
    counts = models.JSONField(default=dict, help_text="Per kind of line: brought, there before, left out.")
    failure = models.TextField(blank=True, default="")
    continued_by = models.UUIDField(null=True, blank=True, help_text="The import that goes on where this has stopped.")
    reason = models.TextField(blank=True, default="", help_text="Why it is imported, for the journal.")
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
            # The last ones, for the page.
            models.Index(fields=["-created_at", "-id"], name="importjob_newest"),
            # Was this file brought before?
            models.Index(fields=["digest"], name="importjob_digest"),
            # What the worker takes up again after a crash.
            models.Index(fields=["moved_at"], name="importjob_open", condition=OPEN),
        ]

    def __str__(self) -> str:
        return f"{self.done} of {self.lines} lines ({self.status})"


class ImportedTopic(models.Model):
    """A topic that an import has brought. What belongs to it comes with the lines after it, and only with those of the
    same import: a topic that was there before is left as it is."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    job = models.ForeignKey(ImportJob, on_delete=models.PROTECT, related_name="topics", db_index=False)
