"""NotificationTarget, NotificationOccurrence and NotificationDelivery: receivers, events and messages."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class NotificationTarget(models.Model):
    """A webhook or a mail address, and its events. Disabled and removed targets stay as rows."""

    class Kind(models.TextChoices):
        """The type of the target."""

        WEBHOOK = "webhook"
        MAIL = "mail"

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    address = models.CharField(max_length=1000, help_text="May hold a secret in its path, so pages show the host only.")
    salt = models.CharField(max_length=64, help_text="The secret that signs is made of it and of the secret key.")
    events = ArrayField(models.CharField(max_length=20), default=list)
    regret_above = models.FloatField(null=True, blank=True, help_text="A share from 0 to 1.")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True, help_text="Removed targets are disabled and not shown.")

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class NotificationOccurrence(models.Model):
    """An event about which targets are notified. It is open until ``over_at``."""

    event = models.CharField(max_length=20)
    subject = models.CharField(max_length=800, help_text="What it is about, such as the id of a run.")
    began_at = models.DateTimeField()
    over_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event", "subject"], name="occurrence_open", condition=models.Q(over_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.subject}"


class NotificationDelivery(models.Model):
    """One message to one target, waiting or sent. Every attempt sends the same id."""

    class Status(models.TextChoices):
        """waiting -> sent | failed."""

        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True)
    target = models.ForeignKey(NotificationTarget, on_delete=models.PROTECT)
    occurrence = models.ForeignKey(NotificationOccurrence, on_delete=models.PROTECT, null=True, blank=True)
    message = models.JSONField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="When the next attempt may begin.")
    finished_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=200, blank=True, default="", help_text="How the last attempt ended.")

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="delivery_due", condition=models.Q(status="waiting")),
            models.Index(fields=["-created_at", "-id"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.message.get('event')} to {self.target_id} ({self.status})"
