"""ExtractionJob: a long text on its way to facts, segment by segment."""

from django.db import models


class ExtractionJob(models.Model):
    """How far the extraction from one text has come. The text itself is the source topic's, and the facts are topics:
    this row holds no word of either. A purge takes ids out of it, and masks the two sentences it may hold."""

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
    identity = models.CharField(max_length=200, help_text="Of who asked, in whose name the facts are stored.")
    role = models.CharField(max_length=20)
    principal_scope = models.CharField(max_length=500, help_text="Outside which whoever asked may write nothing.")
    source_id = models.UUIDField(null=True, blank=True, help_text="The topic that holds the text.")
    segments = models.PositiveIntegerField(help_text="Into which the text is cut.")
    done = models.PositiveIntegerField(default=0, help_text="Segments whose facts are stored.")
    methods = models.JSONField(default=list, help_text="Per segment: llm or extractive.")
    stored = models.JSONField(default=list, help_text="Ids of the topics that were made, in order.")
    skipped = models.JSONField(default=list, help_text="Per fact that was known: where it stands, and its topic.")
    dropped = models.JSONField(default=dict, help_text="Sentences that state nothing, counted by what they are.")
    warning = models.TextField(blank=True, default="")
    failure = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When a segment was last finished.")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # The last ones, for the page.
            models.Index(fields=["-created_at", "-id"], name="extractionjob_newest"),
            # What the worker takes up again after a crash.
            models.Index(fields=["moved_at"], name="extractionjob_open", condition=models.Q(status="working")),
        ]

    def __str__(self) -> str:
        return f"{self.done} of {self.segments} in {self.scope} ({self.status})"
