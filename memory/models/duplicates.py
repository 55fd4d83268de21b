"""DuplicatePair and DuplicateLook: which topics may be one, what was decided about them, and who waits for a look."""

from django.db import models


class DuplicatePair(models.Model):
    """Two topics of one scope and kind that may be one, or of which the newer may replace the older. One row per pair,
    in whatever order they were found: ``one`` has the lower id."""

    class Verdict(models.TextChoices):
        """What the pair looks like; a person decides, or the mode ``auto`` for duplicates without differences."""

        DUPLICATE = "duplicate"
        SUPERSEDES = "supersedes"

    class State(models.TextChoices):
        """open -> merged | kept | superseded, and back by undo; lapsed once one of the two has left or changed."""

        OPEN = "open"
        MERGED = "merged"
        KEPT = "kept"
        SUPERSEDED = "superseded"
        UNDONE = "undone"
        LAPSED = "lapsed"

    id = models.UUIDField(primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=200, blank=True, default="")
    one = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    other = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    verdict = models.CharField(max_length=20, choices=Verdict.choices)
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    similarity = models.FloatField(null=True, blank=True, help_text="Cosine; none where a vector was missing.")
    same_title = models.BooleanField(default=False)
    held = models.BooleanField(default=False, help_text="Something that matters differs: never merged by itself.")
    differences = models.JSONField(
        default=list, help_text="What differs, by sort; no text beyond the words that differ."
    )
    one_hash = models.CharField(max_length=64, help_text="Of what the topic said when they were compared.")
    other_hash = models.CharField(max_length=64)
    found_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=200, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    survivor = models.ForeignKey(
        "memory.Topic", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    run = models.ForeignKey(
        "memory.ForgetRun", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )

    class Meta:
        constraints = [
            # A pair is offered once; also what purge finds the pairs of a topic by.
            models.UniqueConstraint(fields=["one", "other"], name="duplicatepair_unique")
        ]
        indexes = [
            # The pairs of a topic, from its other side.
            models.Index(fields=["other"], name="duplicatepair_by_other"),
            # The review list: one state, newest first.
            models.Index(fields=["state", "-found_at", "-id"], name="duplicatepair_list"),
            # The pair that a run decided, for its undo.
            models.Index(fields=["run"], name="duplicatepair_by_run", condition=models.Q(run__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} ({self.state})"


class DuplicateLook(models.Model):
    """Whether a topic waits to be compared: since it was written, or since its text changed. One row per topic."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    text_hash = models.CharField(max_length=64, blank=True, default="", help_text="Of the text compared last.")
    waiting = models.BooleanField(default=True)

    class Meta:
        indexes = [
            # What the next look compares, and nothing else.
            models.Index(fields=["scope", "topic"], name="duplicatelook_waiting", condition=models.Q(waiting=True))
        ]
