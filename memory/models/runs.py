"""ForgetRun and ForgetAction: the changes of a run for each topic, and the data for its undo."""

from django.db import models

from memory.models.topics import Rung


class ForgetRun(models.Model):
    """One plan for one scope, and its result."""

    class Status(models.TextChoices):
        """planned -> (held) -> applying -> done | undone | failed; or held -> refused."""

        PLANNED = "planned"
        HELD = "held"
        APPLYING = "applying"
        DONE = "done"
        UNDONE = "undone"
        FAILED = "failed"
        REFUSED = "refused"

    id = models.UUIDField(primary_key=True)
    scope = models.CharField(max_length=500)
    event = models.CharField(max_length=50)
    status = models.CharField(max_length=20, choices=Status.choices)
    dry_run = models.BooleanField(default=False)
    actor = models.CharField(max_length=200, help_text="The caller; system for events and schedules.")
    policy_version = models.PositiveIntegerField(help_text="Of the nearest policy at or above the scope; 0 for none.")
    policy_versions = models.JSONField(default=dict, help_text="The version of every policy that applied, by path.")
    judged_at = models.DateTimeField(help_text="The time for which salience was calculated.")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict, help_text="Planned actions by type.")
    active = models.PositiveBigIntegerField(null=True, help_text="Live topics of the scope, if they were counted.")
    planned = models.PositiveIntegerField(default=0)
    applied = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0, help_text="Skipped because they changed after the plan.")
    left_over = models.PositiveIntegerField(default=0, help_text="Due, but beyond max_topics_for_forget_scan.")
    gate = models.TextField(blank=True, default="", help_text="Why no topic was examined, if so.")
    held_because = models.TextField(blank=True, default="")
    failure = models.TextField(blank=True, default="")
    approved_by = models.CharField(max_length=200, blank=True, default="")
    undone_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        indexes = [
            # The list of runs, newest first.
            models.Index(fields=["-created_at", "-id"], name="forgetrun_newest"),
            # The runs that the worker resumes after a crash, and the runs that wait for an operator.
            models.Index(fields=["status"], name="forgetrun_open", condition=models.Q(status__in=["held", "applying"])),
        ]

    def __str__(self) -> str:
        return f"{self.event} over {self.scope} ({self.status})"


class ForgetAction(models.Model):
    """The change that a run makes to one topic, with the state before and after."""

    class State(models.TextChoices):
        """The state of the action."""

        PLANNED = "planned"
        APPLIED = "applied"
        SKIPPED = "skipped"
        UNDONE = "undone"
        CONFLICT = "conflict"

    run = models.ForeignKey(ForgetRun, on_delete=models.PROTECT, related_name="actions", db_index=False)
    place = models.PositiveIntegerField(help_text="Order within the run: lowest score first.")
    topic = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    action = models.CharField(max_length=20, help_text="archived, detached, summarized, restored, released, pinned ...")
    from_rung = models.SmallIntegerField(choices=Rung.choices)
    to_rung = models.SmallIntegerField(choices=Rung.choices)
    changes = models.JSONField(default=dict, help_text="Changes other than the rung: pinned, released, categories.")
    why = models.JSONField(default=dict, help_text="Score, threshold or rule, and the policy it came from.")
    state = models.CharField(max_length=20, choices=State.choices, default=State.PLANNED)
    before = models.JSONField(default=dict, help_text="The rows before the action, for undo.")
    after = models.JSONField(null=True, blank=True, help_text="The rows after the action.")
    note = models.TextField(blank=True, default="", help_text="Why it was skipped, or not undone.")
    at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            # Its index also gives the order of batches and pages.
            models.UniqueConstraint(fields=["run", "place"], name="forgetaction_unique_place")
        ]
        indexes = [
            # The remaining actions of a run.
            models.Index(fields=["run", "place"], name="forgetaction_todo", condition=models.Q(state="planned")),
            # The actions on one topic, for its why-card and page.
            models.Index(fields=["topic", "-id"], name="forgetaction_by_topic"),
            # The archive, newest first.
            models.Index(
                fields=["-at", "-topic"], name="forgetaction_archivings", condition=models.Q(action="archived")
            ),
        ]


class ShadowHit(models.Model):
    """An archived topic that would have been among the best results of a query. It is found by running the query again
    on archived topics, to measure regret."""

    access = models.ForeignKey("memory.AccessLog", on_delete=models.PROTECT, related_name="+", db_index=False)
    topic = models.ForeignKey("memory.Topic", on_delete=models.PROTECT, related_name="+", db_index=False)
    rank = models.PositiveSmallIntegerField(help_text="The rank it would have had, from 1.")
    similarity = models.FloatField()
    at = models.DateTimeField(help_text="When the query was asked.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["access", "topic"], name="shadowhit_unique")]
        indexes = [
            # The regret of one topic, and of all topics between two dates.
            models.Index(fields=["topic"], name="shadowhit_by_topic"),
            models.Index(fields=["at"], name="shadowhit_at"),
        ]
