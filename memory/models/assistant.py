"""Conversation, ConversationTurn, ConversationWrite: what the assistant was told, and what it wrote because of it."""

from django.db import models


class Conversation(models.Model):
    """Turns that belong together. Whoever began it goes on with it, and all it wrote can be taken back at once."""

    class Channel(models.TextChoices):
        """From where it is led."""

        API = "api"
        CONSOLE = "console"

    id = models.UUIDField(primary_key=True)
    scope = models.CharField(max_length=500)
    channel = models.CharField(max_length=20, choices=Channel.choices, default=Channel.API)
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200, help_text="Of who leads it; nobody else may go on with it.")
    turns = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When the last turn ended.")
    undone_at = models.DateTimeField(null=True, blank=True, help_text="When what it wrote was taken back last.")
    undone_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        indexes = [
            # The list of conversations, the last one first.
            models.Index(fields=["-moved_at", "-id"], name="conversation_newest")
        ]

    def __str__(self) -> str:
        return f"{self.turns} turns in {self.scope}"


class ConversationTurn(models.Model):
    """A message and what became of it: written when it comes, added to with each call, closed with the reply.

    A purge masks what it repeats of an erased topic, as in every journal, and empties it if it or an earlier turn of
    its conversation had to do with the topic.
    """

    class Ended(models.TextChoices):
        """How it ended: well, at a limit, with the model's failure, because whoever asked went away, by a fault of
        ours, or with the process."""

        WORKING = "working"
        DONE = "done"
        ROUNDS = "rounds"
        TIME = "time"
        MODEL = "model"
        STOPPED = "stopped"
        FAILED = "failed"
        LOST = "lost"

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="told", db_index=False)
    place = models.PositiveIntegerField(help_text="From 1, without a gap.")
    scope = models.CharField(max_length=500, help_text="The conversation's.")
    at = models.DateTimeField()
    message = models.TextField(blank=True, default="", help_text="What the user said last.")
    reply = models.TextField(blank=True, default="")
    intent = models.CharField(max_length=20, blank=True, default="", help_text="query, ingest or both")
    intent_source = models.CharField(max_length=20, blank=True, default="", help_text="override, model or rule")
    model = models.CharField(max_length=200, blank=True, default="")
    rounds = models.PositiveIntegerField(default=0)
    ended = models.CharField(max_length=20, choices=Ended.choices, default=Ended.WORKING)
    tool_log = models.JSONField(
        default=list, help_text="Per call: tool, arguments, ok, ms, topic_ids, seen beside these, what was said."
    )
    erased = models.BooleanField(default=False, help_text="A purge emptied it; nothing is written in it any more.")
    study = models.ForeignKey(
        "memory.StudyJob",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The job that a long message became.",
    )

    class Meta:
        constraints = [
            # Also the order in which a conversation is read.
            models.UniqueConstraint(fields=["conversation", "place"], name="conversationturn_unique_place")
        ]
        indexes = [
            # Those whose process was lost.
            models.Index(fields=["at"], condition=models.Q(ended="working"), name="conversationturn_open")
        ]


class ConversationWrite(models.Model):
    """One thing that a conversation wrote, as its undo needs it; in the transaction of the write itself."""

    class What(models.TextChoices):
        """What was written."""

        TOPIC = "topic"
        FIELD = "field"
        VERSION = "version"
        LINK = "link"
        MERGED = "merged"

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="writes", db_index=False)
    topic = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()
    what = models.CharField(max_length=20, choices=What.choices)
    # Ids and no foreign keys: what they name may be taken back, and this stays on record.
    revision_id = models.UUIDField(null=True, blank=True, help_text="Of a field or version.")
    link_id = models.BigIntegerField(null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True, help_text="The run that undoes a merge.")
    undone_at = models.DateTimeField(null=True, blank=True)
    left = models.TextField(blank=True, default="", help_text="Why an undo left it as it is.")

    class Meta:
        indexes = [
            # What to undo, in order.
            models.Index(fields=["conversation", "id"], name="conversationwrite_order"),
            # Which conversations wrote to a topic; also what purge finds them by.
            models.Index(fields=["topic"], name="conversationwrite_by_topic"),
        ]
