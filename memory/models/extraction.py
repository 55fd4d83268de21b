"""ExtractionJob: the extraction of facts from a long text, segment by segment."""

from typing import Any

from django.db import models

from memory.models.job import Job


class ExtractionJob(Job):
    """The progress of one extraction. The text is in the source topic, and the facts are in topics. This row contains
    neither. A purge removes ids from the row, and masks ``warning`` and ``failure``."""

    noun = "extraction"

    kind = models.CharField(max_length=200)
    source_id = models.UUIDField(null=True, blank=True, help_text="The topic that holds the text.")
    segments = models.PositiveIntegerField(help_text="The number of segments of the text.")
    methods = models.JSONField(default=list, help_text="Per segment: llm or extractive.")
    stored = models.JSONField(default=list, help_text="Ids of the created topics, in order.")
    skipped = models.JSONField(default=list, help_text="Per known fact: its position in the text, and its topic.")
    dropped = models.JSONField(default=dict, help_text="Number of omitted sentences by type.")
    warning = models.TextField(blank=True, default="")

    @property
    def progress_text(self) -> str:
        """The number of segments that are done, as text."""
        return f"{self.done} of {self.segments} parts"

    def audit_members(self) -> dict[str, Any]:
        """Return the counts of the job, for the audit."""
        return {
            "topic_id": self.source_id,
            "after": {
                "job": str(self.id),
                "segments": self.segments,
                "done": self.done,
                "stored": len(self.stored),
                "skipped_duplicates": len(self.skipped),
            },
        }
