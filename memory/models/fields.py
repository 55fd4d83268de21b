"""Field, Revision, FieldSummary: typed values of a topic with their whole history."""

from django.db import models

from memory.models.vitality import Fading


class Field(Fading):
    """A named value of a topic. The value itself is the revision numbered ``last_seq``."""

    id = models.UUIDField(primary_key=True)
    topic = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="fields", db_index=False)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    last_seq = models.PositiveIntegerField(default=0, help_text="Sequence number of the current revision.")
    cold_through = models.PositiveIntegerField(
        default=0,
        help_text="Revisions up to this number are cold: kept, and left out of bundles unless include_cold asks.",
    )
    detached = models.BooleanField(default=False, help_text="Left out of default bundles by the detach rung.")

    class Meta:
        constraints = [
            # Its index also finds the fields of a topic.
            models.UniqueConstraint(fields=["topic", "name"], name="field_unique_name")
        ]
        indexes = [
            # Fields of summarized topics with new revisions, to fold again. Most fields have only one revision.
            models.Index(
                models.F("last_seq") - models.F("cold_through"), name="field_warm", condition=models.Q(last_seq__gt=1)
            )
        ]

    def __str__(self) -> str:
        return self.name


class Revision(models.Model):
    """One value of a field over time. Append-only: except for purge, no code changes the content of a row or deletes a
    row. ``field`` and ``seq`` change when two topics are merged, and change back on undo. ``seq`` also grows when an
    older value is learned later, which is then stored below the current one."""

    id = models.UUIDField(primary_key=True)
    field = models.ForeignKey(Field, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    seq = models.PositiveIntegerField()
    value = models.TextField(blank=True, default="")
    field_type = models.CharField(max_length=20, default="string")
    ref_topic = models.ForeignKey(
        "memory.Topic", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    valid_from = models.DateTimeField(help_text="Since when the value is true; the time of writing unless given.")
    recorded_at = models.DateTimeField(help_text="When the store learned it; as_of goes by this.")
    provenance = models.CharField(max_length=200, default="api")
    why_changed = models.TextField(blank=True, default="")
    impact_expected = models.TextField(blank=True, default="")
    actor = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [
            # Its index is also used for the current value, the history and as_of.
            models.UniqueConstraint(fields=["field", "seq"], name="revision_unique_seq")
        ]
        indexes = [
            # References to a topic, for purge.
            models.Index(fields=["ref_topic"], name="revision_refs", condition=models.Q(ref_topic__isnull=False)),
            # Dates within the time that a question names.
            models.Index(fields=["value"], name="revision_dates", condition=models.Q(field_type="date")),
        ]


class FieldSummary(models.Model):
    """A summary of the cold revisions of a field. The highest ``depth`` is 2: a summary that includes a summary."""

    field = models.ForeignKey(Field, on_delete=models.PROTECT, related_name="summaries")
    from_seq = models.PositiveIntegerField()
    through_seq = models.PositiveIntegerField()
    text = models.TextField()
    method = models.CharField(max_length=20, help_text="extractive or llm")
    depth = models.PositiveSmallIntegerField(default=1)
    created_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(
        null=True, blank=True, help_text="When its revisions became warm again; the row is kept and not shown."
    )

    class Meta:
        verbose_name_plural = "field summaries"
