"""IdempotencyRecord: the reply to a request with an Idempotency-Key, committed with the effect of the request."""

from django.db import models


class IdempotencyRecord(models.Model):
    """A second request with the same key waits on the unique index until the first one commits. It then returns the
    reply of the first one.

    A message to the assistant takes too long for a transaction. Its record is committed with the turn, and gets the
    reply when the turn is closed.
    """

    actor = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    reply = models.JSONField(null=True)
    created_at = models.DateTimeField()
    # The columns have defaults in the database, so that the statement of an ingest can omit them.
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
