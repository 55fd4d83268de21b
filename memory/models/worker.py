"""WakeUp and Watermark: events for the worker, and its progress."""

from django.db import models


class WakeUp(models.Model):
    """An event in a scope that the worker has not answered yet. One row per scope and event."""

    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    event = models.CharField(max_length=50)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    times = models.PositiveBigIntegerField(default=1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "event"], name="wakeup_unique")]


class Watermark(models.Model):
    """The position up to which the worker has read an append-only table, for work that is done once per row."""

    name = models.CharField(max_length=100, unique=True)
    position = models.BigIntegerField(default=0, help_text="The last id that was read.")
    taken = models.BigIntegerField(default=0, help_text="How many of them were processed.")
