"""DuplicatePair and DuplicateLook: pairs of possible duplicates, the decisions, and the topics to compare."""

from django.db import models


class DuplicatePair(models.Model):
    """Two topics of one scope and kind that may be duplicates, or of which the newer may replace the older.

    There is one row per pair; ``one`` has the lower id.
    """

    class Verdict(models.TextChoices):
        """The suggested decision. An operator decides; the mode ``auto`` merges duplicates without differences."""

        DUPLICATE = "duplicate"
        SUPERSEDES = "supersedes"

    class State(models.TextChoices):
        """open -> merged | kept | superseded. The undo of a decision leads back to open. An open pair becomes lapsed
        when one of its topics becomes inactive or changes."""

        OPEN = "open"
        MERGED = "merged"
        KEPT = "kept"
        SUPERSEDED = "superseded"
        LAPSED = "lapsed"

    id = models.UUIDField(primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=200, blank=True, default="")
    one = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    other = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    verdict = models.CharField(max_length=20, choices=Verdict.choices)
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    similarity = models.FloatField(
        null=True, blank=True, help_text="Cosine similarity; empty where a vector was missing."
    )
    same_title = models.BooleanField(default=False)
    held = models.BooleanField(
        default=False, help_text="The topics differ in something significant: never merged automatically."
    )
    differences = models.JSONField(
        default=list, help_text="The differences with their types; only the words that differ."
    )
    one_hash = models.CharField(max_length=64, help_text="Hash of the text of the topic when the pair was compared.")
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
            # A pair is suggested once. A purge also uses this index to find the pairs of a topic.
            models.UniqueConstraint(fields=["one", "other"], name="duplicatepair_unique")
        ]
        indexes = [
            # The pairs in which a topic is ``other``.
            models.Index(fields=["other"], name="duplicatepair_by_other"),
            # The review list: one state, newest first.
            models.Index(fields=["state", "-found_at", "-id"], name="duplicatepair_list"),
            # The pair of a run, for the undo of the run.
            models.Index(fields=["run"], name="duplicatepair_by_run", condition=models.Q(run__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} ({self.state})"


class DuplicateLook(models.Model):
    """Whether a topic waits to be compared, because its text was written or changed. One row per topic."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    text_hash = models.CharField(
        max_length=64, blank=True, default="", help_text="Hash of the text that was last compared."
    )
    waiting = models.BooleanField(default=True)

    class Meta:
        indexes = [
            # The topics that wait to be compared.
            models.Index(fields=["scope", "topic"], name="duplicatelook_waiting", condition=models.Q(waiting=True))
        ]
