"""ExtractionJob: the extraction of facts from a long text, segment by segment."""

from django.db import models


class ExtractionJob(models.Model):
    """The progress of one extraction. The text is stored in the source topic, and the facts in topics: this row holds
    neither. A purge removes ids from it, and masks ``warning`` and ``failure``."""

    class Status(models.TextChoices):
        """working -> done | cancelled | failed."""

        WORKING = "working"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True)
    scope = models.CharField(max_length=500)
    kind = models.CharField(max_length=200)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WORKING)
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200, help_text="Identity of the caller, in whose name the facts are stored.")
    role = models.CharField(max_length=20)
    principal_scope = models.CharField(
        max_length=500, help_text="The scope of the caller, outside which nothing is written."
    )
    source_id = models.UUIDField(null=True, blank=True, help_text="The topic that holds the text.")
    segments = models.PositiveIntegerField(help_text="The number of segments of the text.")
    done = models.PositiveIntegerField(default=0, help_text="Segments whose facts are stored.")
    methods = models.JSONField(default=list, help_text="Per segment: llm or extractive.")
    stored = models.JSONField(default=list, help_text="Ids of the created topics, in order.")
    skipped = models.JSONField(default=list, help_text="Per known fact: its position in the text, and its topic.")
    dropped = models.JSONField(default=dict, help_text="Number of omitted sentences by type.")
    warning = models.TextField(blank=True, default="")
    failure = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When the last segment finished.")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # The newest jobs, for the page.
            models.Index(fields=["-created_at", "-id"], name="extractionjob_newest"),
            # What the worker resumes after a crash.
            models.Index(fields=["moved_at"], name="extractionjob_open", condition=models.Q(status="working")),
        ]

    def __str__(self) -> str:
        return f"{self.done} of {self.segments} in {self.scope} ({self.status})"
