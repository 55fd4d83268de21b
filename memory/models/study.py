"""StudyJob: the study of a long message: first its own topics (phase A), then links to others (phase B)."""

from django.db import models

# The prefix of the kind of a study's topics.
STUDY_KIND = "study:"


class StudyJob(models.Model):
    """The progress of one study. The text is stored in the source topic, and the results in topics of the kind
    ``study:<id>``: this row holds neither."""

    class Status(models.TextChoices):
        """working -> done | cancelled | failed; cancelled and failed jobs can be resumed."""

        WORKING = "working"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    class Phase(models.TextChoices):
        """A, the wait in between, B."""

        BUILDING = "building"
        WAITING = "waiting"
        LINKING = "linking"

    id = models.UUIDField(primary_key=True, help_text="The id of the study: its topics have the kind study:<id>.")
    conversation = models.ForeignKey(
        "memory.Conversation", on_delete=models.PROTECT, related_name="studies", db_index=False
    )
    scope = models.CharField(max_length=500)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WORKING)
    phase = models.CharField(max_length=20, choices=Phase.choices, default=Phase.BUILDING)
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200, help_text="Identity of the caller, in whose name topics are written.")
    role = models.CharField(max_length=20)
    principal_scope = models.CharField(
        max_length=500, help_text="The scope of the caller, outside which nothing is written."
    )
    model = models.CharField(
        max_length=200, blank=True, default="", help_text="The requested model; empty for the default."
    )
    source_id = models.UUIDField(null=True, blank=True, help_text="The topic that holds the text.")
    part_chars = models.PositiveIntegerField(help_text="The most characters of a segment.")
    segments = models.PositiveIntegerField(help_text="The number of segments of the text.")
    done = models.PositiveIntegerField(default=0, help_text="Segments whose topics are stored.")
    to_link = models.PositiveIntegerField(default=0, help_text="Topics that phase B processes.")
    linked = models.PositiveIntegerField(default=0, help_text="Topics that phase B has processed.")
    topics = models.PositiveIntegerField(default=0, help_text="Created by phase A so far.")
    links = models.PositiveIntegerField(default=0, help_text="Created by phase B so far.")
    merged = models.PositiveIntegerField(default=0, help_text="Topics merged by phase B so far.")
    told = models.JSONField(default=list, help_text="Per step: phase, number, rounds, how it ended, what it wrote.")
    tries = models.PositiveSmallIntegerField(default=0, help_text="Consecutive failed attempts to use the model.")
    warning = models.TextField(blank=True, default="")
    failure = models.TextField(blank=True, default="")
    turns = models.PositiveIntegerField(
        default=0, help_text="The number of the valid queue entry; older entries are ignored."
    )
    handed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was enqueued; empty while it waits for a time or a free slot."
    )
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="The earliest start of phase B, or the end of a rate limit."
    )
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When the last step finished.")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # The newest jobs, and those of one conversation, for pages.
            models.Index(fields=["-created_at", "-id"], name="studyjob_newest"),
            models.Index(fields=["conversation", "created_at"], name="studyjob_by_talk"),
            # What the worker resumes after a crash or a wait.
            models.Index(fields=["moved_at"], name="studyjob_open", condition=models.Q(status="working")),
        ]

    def __str__(self) -> str:
        return f"{self.done} of {self.segments} in {self.scope} ({self.status})"

    @property
    def kind(self) -> str:
        """The kind of its topics."""
        return f"{STUDY_KIND}{self.id}"
