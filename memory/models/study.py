"""StudyJob: a long message on its way into the store, first by itself (phase A), then among the rest (phase B)."""

from django.db import models

# How the kinds of topics begin that a study makes.
STUDY_KIND = "study:"


class StudyJob(models.Model):
    """How far the study of one text has come. The text is the source topic's, what was learned is topics of the kind
    ``study:<id>``: this row holds no word of either."""

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

    id = models.UUIDField(primary_key=True, help_text="The session: its topics are of the kind study:<id>.")
    conversation = models.ForeignKey(
        "memory.Conversation", on_delete=models.PROTECT, related_name="studies", db_index=False
    )
    scope = models.CharField(max_length=500)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.WORKING)
    phase = models.CharField(max_length=20, choices=Phase.choices, default=Phase.BUILDING)
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200, help_text="Of who asked, in whose name topics are written.")
    role = models.CharField(max_length=20)
    principal_scope = models.CharField(max_length=500, help_text="Outside which whoever asked may write nothing.")
    model = models.CharField(max_length=200, blank=True, default="", help_text="Asked for; empty for the usual one.")
    source_id = models.UUIDField(null=True, blank=True, help_text="The topic that holds the text.")
    part_chars = models.PositiveIntegerField(help_text="At most so many characters make a segment.")
    segments = models.PositiveIntegerField(help_text="Into which the text is cut.")
    done = models.PositiveIntegerField(default=0, help_text="Segments whose topics are stored.")
    to_link = models.PositiveIntegerField(default=0, help_text="Topics that phase B looks at.")
    linked = models.PositiveIntegerField(default=0, help_text="Topics that it has looked at.")
    topics = models.PositiveIntegerField(default=0, help_text="Made by phase A so far.")
    links = models.PositiveIntegerField(default=0, help_text="Made by phase B so far.")
    merged = models.PositiveIntegerField(default=0, help_text="Of the topics, by phase B so far.")
    told = models.JSONField(default=list, help_text="Per step: phase, number, rounds, how it ended, what it wrote.")
    tries = models.PositiveSmallIntegerField(default=0, help_text="In a row, in which the model was of no help.")
    warning = models.TextField(blank=True, default="")
    failure = models.TextField(blank=True, default="")
    turns = models.PositiveIntegerField(default=0, help_text="The entry of the queue that counts bears this number.")
    handed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was given to the worker; empty while it waits for a time or a place."
    )
    not_before = models.DateTimeField(null=True, blank=True, help_text="Phase B, or the end of a rate limit.")
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When a step was last finished.")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # The last ones, and those of one conversation, for pages.
            models.Index(fields=["-created_at", "-id"], name="studyjob_newest"),
            models.Index(fields=["conversation", "created_at"], name="studyjob_by_talk"),
            # What the worker takes up again after a crash or a wait.
            models.Index(fields=["moved_at"], name="studyjob_open", condition=models.Q(status="working")),
        ]

    def __str__(self) -> str:
        return f"{self.done} of {self.segments} in {self.scope} ({self.status})"

    @property
    def kind(self) -> str:
        """The kind of the topics it makes."""
        return f"{STUDY_KIND}{self.id}"
