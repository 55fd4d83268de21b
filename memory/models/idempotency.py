"""IdempotencyRecord: the reply to a request that carried an Idempotency-Key, committed together with its effect."""

from django.db import models


class IdempotencyRecord(models.Model):
    """A second request with the same key waits on the unique index until the first has committed, then replays it.

    A message to the assistant takes longer than any transaction may: its record is committed with the turn that
    answers it, and gets its reply when that is closed.
    """

    actor = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    reply = models.JSONField(null=True)
    created_at = models.DateTimeField()
    # The claim of an ingest is a statement of its own, which need not know of these.
    scope = models.CharField(
        max_length=500, blank=True, db_default="", help_text="For a message: the scope of its conversation."
    )
    turn = models.OneToOneField(
        "memory.ConversationTurn",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="For a message: the turn that answers it.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["actor", "key"], name="idempotency_unique")]
        indexes = [
            # Expired records, which the worker deletes.
            models.Index(fields=["created_at"], name="idempotency_age")
        ]
