"""IdempotencyRecord: the reply to a request that carried an Idempotency-Key, committed together with its effect."""

from django.db import models


class IdempotencyRecord(models.Model):
    """A second request with the same key waits on the unique index until the first has committed, then replays it."""

    actor = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    reply = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["actor", "key"], name="idempotency_unique")]
        indexes = [
            # The worker's removal of records past their time.
            models.Index(fields=["created_at"], name="idempotency_age"),
        ]
