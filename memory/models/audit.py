"""AuditEvent: every change of state, with actor and reason. Append-only."""

from django.db import models


class AuditEvent(models.Model):
    """One change. ``topic_id`` is not a foreign key, so that the entry stays when the topic is purged."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    action = models.CharField(max_length=50)
    topic_id = models.UUIDField(null=True, blank=True)
    scope = models.CharField(max_length=500, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [
            # The entries of one topic.
            models.Index(fields=["topic_id", "-at"], name="audit_by_topic", condition=models.Q(topic_id__isnull=False)),
            # The audit page, newest first.
            models.Index(fields=["-at", "-id"], name="audit_at"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"
