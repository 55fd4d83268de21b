"""Link: a typed, directed edge between two topics."""

from django.db import models

# The kind of link from a current fact to the fact that it replaced.
SUPERSEDES = "supersedes"
# The kind of link from a compacted topic to each of its sources.
COMPACTED_FROM = "compacted_from"


class Link(models.Model):
    """``kind`` is the relation of ``source`` to ``target``, such as ``follows`` or ``part_of``. Cycles are allowed."""

    source = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="links_out", db_index=False)
    target = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="links_in", db_index=False)
    kind = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    actor = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [
            # Its index also finds neighbours along outgoing links.
            models.UniqueConstraint(fields=["source", "target", "kind"], name="link_unique")
        ]
        indexes = [
            # Neighbours along incoming links.
            models.Index(fields=["target", "source"], name="link_by_target")
        ]
