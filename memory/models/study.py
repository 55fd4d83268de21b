"""StudyJob: the study of a long message. Phase A makes topics of it, phase B links them to other topics."""

from typing import Any

from django.db import models

from memory.models.job import Job

# The prefix of the kind of a study's topics.
STUDY_KIND = "study:"


class StudyJob(Job):
    """The progress of one study. The text is in the source topic, and the results are in topics of the kind
    ``study:<id>``. This row contains neither. A cancelled or failed study can be resumed."""

    noun = "study"
    private = True
    enqueued_column = "enqueued_at"
    large_columns = ("steps",)

    class Phase(models.TextChoices):
        """Phase A is building, phase B is linking. A study waits between them."""

        BUILDING = "building"
        WAITING = "waiting"
        LINKING = "linking"

    conversation = models.ForeignKey(
        "memory.Conversation", on_delete=models.PROTECT, related_name="studies", db_index=False
    )
    phase = models.CharField(max_length=20, choices=Phase.choices, default=Phase.BUILDING)
    model = models.CharField(
        max_length=200, blank=True, default="", help_text="The requested model; empty for the default."
    )
    source_id = models.UUIDField(null=True, blank=True, help_text="The topic that holds the text.")
    part_chars = models.PositiveIntegerField(help_text="The most characters of a segment.")
    segments = models.PositiveIntegerField(help_text="The number of segments of the text.")
    to_link = models.PositiveIntegerField(default=0, help_text="Topics that phase B processes.")
    linked = models.PositiveIntegerField(default=0, help_text="Topics that phase B has processed.")
    topics = models.PositiveIntegerField(default=0, help_text="Created by phase A so far.")
    links = models.PositiveIntegerField(default=0, help_text="Created by phase B so far.")
    merged = models.PositiveIntegerField(default=0, help_text="Topics merged by phase B so far.")
    steps = models.JSONField(default=list, help_text="Per step: phase, number, rounds, how it ended, what it wrote.")
    tries = models.PositiveSmallIntegerField(default=0, help_text="Consecutive failed attempts to use the model.")
    warning = models.TextField(blank=True, default="")
    turns = models.PositiveIntegerField(
        default=0, help_text="The number of the valid queue entry; older entries are ignored."
    )
    enqueued_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was enqueued; empty while it waits for a time or a free slot."
    )
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="The earliest start of phase B, or the end of a rate limit."
    )

    class Meta(Job.Meta):
        # In addition to the common indexes: the studies of one conversation.
        indexes = [*Job.Meta.indexes, models.Index(fields=["conversation", "created_at"], name="studyjob_by_talk")]

    @property
    def kind(self) -> str:
        """The kind of the topics of the study."""
        return f"{STUDY_KIND}{self.id}"

    @property
    def position(self) -> Any:
        """The phase and the number of recorded steps."""
        return self.phase, len(self.steps)

    @property
    def progress_text(self) -> str:
        """The finished work of the present phase, as text."""
        if self.phase == self.Phase.BUILDING:
            return f"{self.done} of {self.segments} parts"
        return f"{self.linked} of {self.to_link} topics"

    def audit_members(self) -> dict[str, Any]:
        """Return the counts of the study, for the audit."""
        return {
            "topic_id": self.source_id,
            "after": {
                "study": str(self.id),
                "conversation": str(self.conversation_id),
                "segments": self.segments,
                "done": self.done,
                "topics": self.topics,
                "linked": self.linked,
            },
        }

    def prepare_finish(self) -> None:
        """Clear the earliest start of a finished study."""
        self.not_before = None
