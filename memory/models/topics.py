"""Topic: one remembered thing. Vitality has the data that changes with every retrieval, and ``search.py`` has the
search data."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import MD5, Lower


class Rung(models.IntegerChoices):
    """The steps of forgetting. Each rung includes the effects of the previous ones."""

    ACTIVE = 0, "active"
    SUMMARIZED = 1, "summarized"
    DETACHED = 2, "detached"
    ARCHIVED = 3, "archived"


class Topic(models.Model):
    """A topic as last written. Only ``memory.forgetting`` changes ``rung``, ``released_at`` and ``merged_into``."""

    id = models.UUIDField(primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=200, blank=True, default="")
    title = models.CharField(max_length=1000, blank=True)
    summary = models.TextField(blank=True, default="")
    categories = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    provenance = models.CharField(max_length=200, default="api")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    rung = models.SmallIntegerField(choices=Rung.choices, default=Rung.ACTIVE)
    released_at = models.DateTimeField(null=True, blank=True)
    merged_into = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, db_index=False)

    class Meta:
        indexes = [
            # GET /v1/topics and the console's lists page through one scope, newest first, by (created_at, id).
            models.Index(fields=["scope", "-created_at", "-id"], name="topic_list_by_scope"),
            # The same list over all scopes.
            models.Index(fields=["-created_at", "-id"], name="topic_list"),
            # Query and list filters by category.
            GinIndex(fields=["categories"], name="topic_categories"),
            # suggest_similar and duplicate search: the same title within one scope, hashed because titles are long.
            models.Index("scope", MD5(Lower("title")), name="topic_title"),
            # Completion of kinds, which skips from one kind to the next.
            models.Index(fields=["kind"], name="topic_kind", opclasses=["varchar_pattern_ops"]),
            # Released topics, last released first.
            models.Index(
                fields=["-released_at", "-id"], name="topic_released", condition=models.Q(released_at__isnull=False)
            ),
            # The topics merged into a topic, for undo and purge.
            models.Index(fields=["merged_into"], name="topic_merged", condition=models.Q(merged_into__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.title


class TopicEdit(models.Model):
    """Values of a topic before one edit of its title, summary, kind or categories. Append-only; used for ``as_of``."""

    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="edits", db_index=False)
    at = models.DateTimeField()
    before = models.JSONField(help_text="The members that this edit changed, with the values they had.")
    actor = models.CharField(max_length=200)

    class Meta:
        indexes = [
            # For ``as_of``, which reverses the edits after a time: all edits of the candidates, oldest first.
            models.Index(fields=["topic", "at", "id"], name="topicedit_by_topic")
        ]
