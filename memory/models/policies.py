"""PolicyVersion, PartitionActivity and Rekeying: policies by version, active days, and pending updates."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class PolicyVersion(models.Model):
    """One immutable version of the policy of one scope. The version with the highest number is in force.

    A new threshold inserts one row here and writes nothing else, because the row is also the journal entry.
    """

    scope = models.CharField(max_length=500, help_text="The path at which it is set; topics need not exist there yet.")
    number = models.PositiveIntegerField()
    preset = models.CharField(max_length=50, blank=True, default="")
    values = models.JSONField(default=dict, help_text="The values set here, by name; all others are inherited.")
    rules = models.JSONField(default=list, help_text="The rules of this scope, in their order.")
    author = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    diff = models.JSONField(default=list, help_text="The changes from the previous version, line by line.")
    rolled_back_to = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            # Two editors cannot both create the next version. The index also finds the version in force.
            models.UniqueConstraint(fields=["scope", "number"], name="policyversion_unique_number")
        ]

    def __str__(self) -> str:
        return f"{self.scope} version {self.number}"


class PartitionActivity(models.Model):
    """The active days of one scope that has or had a policy; the root has a row from the first query or write.

    The row also covers the scopes below that have no row of their own. Rows are never removed, so that ``idle_before``
    of the topics stays valid. Formulas: ``memory.formulas.partition_time``.
    """

    scope = models.CharField(max_length=500, unique=True)
    active_until = models.FloatField(help_text="The midnight (UTC) after the last active day, as an epoch in seconds.")
    idle_spans = ArrayField(
        models.FloatField(), default=list, help_text="Start and end of each idle stretch before, epochs at midnight."
    )

    def __str__(self) -> str:
        return self.scope


class Rekeying(models.Model):
    """A change of half-life or clock: every row at and below ``scope`` is updated to the values in force.

    Until the change is finished, the candidate query does not use the index of fade keys.
    """

    scope = models.CharField(max_length=500)
    reason = models.TextField(blank=True, default="")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    after = models.UUIDField(null=True, blank=True, help_text="The last topic that was processed.")
    total = models.PositiveBigIntegerField(default=0, help_text="Topics to process.")
    done = models.PositiveBigIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="rekeying_unfinished", condition=models.Q(finished_at__isnull=True))
        ]
