"""Conversation, ConversationTurn, ConversationWrite: the messages to the assistant, and what the assistant wrote."""

from django.db import models


class Conversation(models.Model):
    """A series of turns. Only the caller who began it can continue it. All its writes can be undone at once."""

    class Channel(models.TextChoices):
        """The interface of the conversation."""

        API = "api"
        CONSOLE = "console"

    id = models.UUIDField(primary_key=True)
    scope = models.CharField(max_length=500)
    channel = models.CharField(max_length=20, choices=Channel.choices, default=Channel.API)
    actor = models.CharField(max_length=200)
    identity = models.CharField(max_length=200, help_text="Identity of the owner; only the owner may continue it.")
    turns = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When the last turn ended.")
    undone_at = models.DateTimeField(null=True, blank=True, help_text="When its writes were last undone.")
    undone_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        indexes = [
            # The list of conversations, newest first.
            models.Index(fields=["-moved_at", "-id"], name="conversation_newest")
        ]

    def __str__(self) -> str:
        return f"{self.turns} turns in {self.scope}"


class ConversationTurn(models.Model):
    """A message and its processing. The row is created with the message, updated with each call of a tool, and closed
    with the reply.

    A purge masks erased content in a turn, as in every journal. If the turn or an earlier turn of its conversation has
    read or written the erased topic, the purge empties the turn.
    """

    class Ended(models.TextChoices):
        """How the turn ended. ``rounds`` and ``time``: at a limit. ``model``: by an error of the model. ``stopped``: by
        the caller. ``failed``: by an internal error. ``lost``: the process died."""

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
    scope = models.CharField(max_length=500, help_text="The scope of the conversation.")
    at = models.DateTimeField()
    message = models.TextField(blank=True, default="", help_text="The message of the user.")
    reply = models.TextField(blank=True, default="")
    intent = models.CharField(max_length=20, blank=True, default="", help_text="query, ingest or both")
    intent_source = models.CharField(max_length=20, blank=True, default="", help_text="override, model or rule")
    model = models.CharField(max_length=200, blank=True, default="")
    rounds = models.PositiveIntegerField(default=0)
    ended = models.CharField(max_length=20, choices=Ended.choices, default=Ended.WORKING)
    tool_log = models.JSONField(
        default=list, help_text="Per call: tool, arguments, ok, ms, topic_ids, seen (other topics read), said (result)."
    )
    erased = models.BooleanField(default=False, help_text="A purge emptied it; nothing more is written to it.")
    study = models.ForeignKey(
        "memory.StudyJob",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The study job of a long message.",
    )

    class Meta:
        constraints = [
            # The index also gives the order in which a conversation is read.
            models.UniqueConstraint(fields=["conversation", "place"], name="conversationturn_unique_place")
        ]
        indexes = [
            # Open turns, to find those whose process died.
            models.Index(fields=["at"], condition=models.Q(ended="working"), name="conversationturn_open")
        ]


class ConversationWrite(models.Model):
    """One write of a conversation, with the data for its undo. Stored in the transaction of the write."""

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
    # Ids instead of foreign keys, because this record stays when the rows are undone.
    revision_id = models.UUIDField(null=True, blank=True, help_text="The revision of a written field or version.")
    link_id = models.BigIntegerField(null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True, help_text="The run that undoes a merge.")
    undone_at = models.DateTimeField(null=True, blank=True)
    left = models.TextField(blank=True, default="", help_text="Why an undo did not change it.")

    class Meta:
        indexes = [
            # The writes to undo, in order.
            models.Index(fields=["conversation", "id"], name="conversationwrite_order"),
            # The conversations that wrote to a topic, for undo and purge.
            models.Index(fields=["topic"], name="conversationwrite_by_topic"),
        ]
