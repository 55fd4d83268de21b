"""ImportJob and ImportedTopic: the import of a file, line by line, and the topics it created."""

from typing import Any

from django.db import models

from memory.models.job import Job


class ImportJob(Job):
    """The progress of the import of one file, committed with the imported rows. Therefore a killed import continues
    where it stopped, and importing the same file again adds nothing. The row contains no line of the file. A failed or
    cancelled import can be continued."""

    noun = "import"
    least_role = "operator"
    # The lines of a file may contain scopes.
    scope_column = "principal_scope"

    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    file = models.TextField(blank=True, default="", help_text="Path at which the worker reads the file.")
    source = models.CharField(max_length=20, help_text="The format of the file, such as memstate or mem0.")
    scope = models.CharField(
        max_length=500, blank=True, default="", help_text="The target scope for files of other systems."
    )
    lines = models.PositiveBigIntegerField(default=0, help_text="Lines of the file.")
    offset = models.PositiveBigIntegerField(default=0, help_text="Bytes read up to the last stored line.")
    checks = models.PositiveSmallIntegerField(default=0, help_text="How many times its check was started.")
    read = models.PositiveBigIntegerField(default=0, help_text="Bytes read by the check.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes of the file.")
    report = models.JSONField(default=dict, help_text="The result of the check.")
    counts = models.JSONField(default=dict, help_text="Per kind of line: imported, already present, omitted.")
    continued_by = models.UUIDField(null=True, blank=True, help_text="The import that continues this one.")
    reason = models.TextField(blank=True, default="", help_text="The reason for the import, for the journal.")
    run = models.ForeignKey(
        "memory.ForgetRun",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="The run that last released topics of the import.",
    )

    class Meta(Job.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["digest", "source", "scope"], name="importjob_working", condition=models.Q(status="working")
            )
        ]
        # In addition to the common indexes: earlier imports of the same file.
        indexes = [*Job.Meta.indexes, models.Index(fields=["digest"], name="importjob_digest")]

    @property
    def position(self) -> Any:
        """The number of finished lines."""
        return self.done

    @property
    def progress_text(self) -> str:
        """The number of finished lines, as text."""
        return f"{self.done:,} of {self.lines:,} lines"

    def audit_members(self) -> dict[str, Any]:
        """Return the file and the counts of the import, for the audit."""
        return {
            "reason": self.reason,
            "after": {
                "job": str(self.pk),
                "source": self.source,
                "digest": self.digest,
                "lines": self.lines,
                "done": self.done,
                "counts": self.counts,
            },
        }

    def prepare_finish(self) -> None:
        """Count blank lines at the end as finished."""
        if self.status == self.Status.DONE:
            self.done = self.lines


class ImportedTopic(models.Model):
    """A topic created by an import. Later lines of the same import add to it. Existing topics are not changed."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    job = models.ForeignKey(ImportJob, on_delete=models.PROTECT, related_name="topics", db_index=False)
