"""ForgetListing, ErasureReceipt and ErasureCheck: lists of topics to forget, records of purges, and verifications."""

import datetime as dt
from typing import Any

from django.db import models
from django.utils import timezone

from memory.models.job import Job


class ForgetListing(models.Model):
    """The topics of a dry run. Until the list expires, its token releases or purges exactly these topics, unless they
    change."""

    class Verb(models.TextChoices):
        """Release can be undone. Purge is permanent and leaves a receipt."""

        RELEASE = "release"
        PURGE = "purge"

    id = models.UUIDField(primary_key=True)
    verb = models.CharField(max_length=10, choices=Verb.choices)
    scope = models.CharField(max_length=500)
    query = models.TextField(blank=True, default="", help_text="Emptied by a purge, since it names erased content.")
    filter = models.JSONField(default=dict)
    reason = models.TextField(blank=True, default="")
    actor = models.CharField(max_length=200)
    identity = models.CharField(
        max_length=200, help_text="Identity of the caller; only this caller may execute the list."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ambiguous = models.BooleanField(
        default=False, help_text="Several topics match equally well: listed, never executed."
    )
    question = models.TextField(
        blank=True, default="", help_text="The question to the caller, or why nothing was found."
    )
    entries = models.JSONField(default=list, help_text="Per topic: id, why, confidence, and its state when listed.")
    count = models.PositiveIntegerField(default=0, help_text="How many of the topics are chosen.")
    executed_at = models.DateTimeField(null=True, blank=True)
    run = models.ForeignKey(
        "memory.ForgetRun", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    receipt = models.ForeignKey(
        "memory.ErasureReceipt", on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )

    class Meta:
        indexes = [
            # Lists by time, newest first.
            models.Index(fields=["-created_at", "-id"], name="forgetlisting_newest")
        ]

    def __str__(self) -> str:
        return f"{self.verb} of {self.count} in {self.scope}"

    def state_at(self, now: dt.datetime) -> str:
        """Return ``executed``, ``ambiguous``, ``empty``, ``expired`` or ``open``."""
        if self.executed_at is not None:
            return "executed"
        if self.ambiguous:
            return "ambiguous"
        if not self.count:
            return "empty"
        return "expired" if self.expires_at <= now else "open"

    @property
    def state(self) -> str:
        """The present state."""
        return self.state_at(timezone.now())

    @property
    def chosen(self) -> list[dict[str, Any]]:
        """The entries that are forgotten. The others perhaps mean the same, in another spelling, and are only shown."""
        return [entry for entry in self.entries if entry.get("chosen", True)]

    @property
    def token(self) -> str | None:
        """The token that executes the list; None if it cannot be executed."""
        return str(self.id) if self.state == "open" else None


class ErasureReceipt(models.Model):
    """The record of a purge without the erased text: ids and keyed hashes. Append-only. Each row contains the hash of
    the previous one, so that a changed or missing row is detected."""

    id = models.UUIDField(primary_key=True)
    number = models.PositiveBigIntegerField(unique=True, help_text="From 1, without a gap.")
    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="", help_text="With erased content masked.")
    scope = models.CharField(max_length=500)
    topic_ids = models.JSONField(default=list)
    content_hashes = models.JSONField(
        default=list, help_text="HMAC-SHA-256 of each erased text that no other topic states, in hexadecimal."
    )
    identifier_hashes = models.JSONField(
        default=list, help_text="HMAC-SHA-256 of each erased identifier that nothing else in the store names."
    )
    spelling_hashes = models.JSONField(
        default=list, help_text="HMAC-SHA-256 of each spelling of names and identifiers that was searched."
    )
    counts = models.JSONField(default=dict, help_text="Rows erased or redacted, by table.")
    elsewhere = models.JSONField(
        default=dict, help_text="How many erased texts and identifiers other topics contain, too. They stay there."
    )
    previous_hash = models.CharField(max_length=64, blank=True, default="", help_text="Empty for the first receipt.")
    reason_hash = models.CharField(max_length=64, help_text="HMAC-SHA-256 of the original reason.")
    reason_seal = models.CharField(
        max_length=64, blank=True, default="", help_text="HMAC of the masked reason, if a later purge masked it."
    )
    hash = models.CharField(max_length=64, help_text="SHA-256 over all other columns but reason and reason_seal.")

    def __str__(self) -> str:
        return f"receipt {self.number}"


class ErasureCheck(Job):
    """A search of every table for erased text, based on the receipts up to number ``receipts``. The row contains the
    places where erased text was found, but no text. ``done`` counts the rows that were read."""

    noun = "verification"
    least_role = "operator"
    large_columns = ("found",)

    receipts = models.PositiveBigIntegerField(help_text="Number of the last receipt that it is about.")
    expected = models.PositiveBigIntegerField(default=0, help_text="About how many rows there are to read.")
    read = models.JSONField(default=list, help_text="The tables that were read.")
    begun = models.PositiveSmallIntegerField(default=0, help_text="How many times the next table was begun.")
    found = models.JSONField(default=dict, help_text="What was found so far; emptied at the end.")
    report = models.JSONField(default=dict, help_text="The result.")

    class Meta(Job.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["status"], name="erasurecheck_working", condition=models.Q(status="working")
            )
        ]

    @property
    def position(self) -> Any:
        """The tables that were read."""
        return self.read

    @property
    def progress_text(self) -> str:
        """The tables that are done."""
        return f"{len(self.read):,} tables"

    def audit_members(self) -> dict[str, Any]:
        """Return the receipts and the result, for the audit."""
        result = {name: self.report[name] for name in ("ok", "tables", "rows") if name in self.report}
        return {"after": {"job": str(self.pk), "receipts": self.receipts, **result}}

    def prepare_finish(self) -> None:
        """Clear ``found``, which only a next step would need."""
        self.found = {}
