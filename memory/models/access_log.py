"""AccessLog: the topics that each retrieval returned. Append-only, except for the columns that the fold sets."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class AccessLog(models.Model):
    """One retrieval. The worker adds it once to the salience of the returned topics (the fold). The row is kept for
    backtests and why-cards."""

    class Kind(models.TextChoices):
        """How the topics were read."""

        QUERY = "query"
        LOOKUP = "lookup"

    at = models.DateTimeField()
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.QUERY)
    actor = models.CharField(max_length=200, help_text="The caller: the id of the key, or a user.")
    scope = models.CharField(max_length=500, help_text="The scope of the query.")
    query = models.TextField(blank=True, default="")
    query_hash = models.CharField(max_length=64, help_text="SHA-256 of everything that determines the answer.")
    request = models.JSONField(
        null=True, help_text="Its other members that determine which topics are returned, without defaults."
    )
    topic_ids = ArrayField(models.UUIDField(null=True), help_text="In the order returned. Null: purged.")
    scores = ArrayField(
        models.FloatField(null=True), default=list, help_text="Of each of topic_ids, then of each of cut_ids."
    )
    relevances = ArrayField(
        models.FloatField(null=True), default=list, help_text="Of each of topic_ids, then of each of cut_ids."
    )
    cut_ids = ArrayField(
        models.UUIDField(null=True),
        default=list,
        help_text="The next best topics, which a limit of the query left out. Null: purged.",
    )
    field_ids = ArrayField(models.UUIDField(), default=list)
    tokens = models.PositiveIntegerField(null=True, help_text="Estimated size of the answer as text for a prompt.")
    milliseconds = models.FloatField(null=True, help_text="From the request to the answer, without this record.")
    bump = models.FloatField(help_text="Added to the salience of each topic if the access counts.")
    field_bump = models.FloatField(help_text="The same for each field.")
    min_relevance = models.FloatField(
        default=0, help_text="Below it a topic gets nothing, from it the bump times its relevance; 0: all get it whole."
    )
    folded_at = models.DateTimeField(null=True, blank=True)
    counted = models.BooleanField(null=True, help_text="False for a repeat within reinforce_once_seconds.")

    class Meta:
        verbose_name_plural = "access log"
        indexes = [
            # The worker's list of rows to fold, oldest first.
            models.Index(fields=["id"], name="accesslog_unfolded", condition=models.Q(folded_at__isnull=True)),
            # Finds out whether a query repeats a recent query that counted.
            models.Index(
                fields=["actor", "query_hash", "-at"], name="accesslog_repeats", condition=models.Q(counted=True)
            ),
            # Charts per day, and backtests between two dates.
            models.Index(fields=["at"], name="accesslog_at"),
            # Regret counts lookups of archived topics. Most rows are queries.
            models.Index(fields=["at"], name="accesslog_lookups", condition=models.Q(kind="lookup")),
        ]
