"""Vitality: the narrow row that changes with every retrieval, separate from everything that is costly to index."""

from django.db import models

from memory.models.topics import Rung


class Fading(models.Model):
    """Salience and its fade key, of a topic (in Vitality) and of a field. Formulas: ``memory.formulas.salience``."""

    salience = models.FloatField(default=1.0, help_text="Salience at the last reinforcement.")
    reinforced_at = models.DateTimeField(help_text="When salience was last written: by creation, retrieval or edit.")
    idle_before = models.FloatField(
        default=0.0, db_default=0.0, help_text="Seconds of idle days of the partition before reinforced_at."
    )
    wall = models.BooleanField(
        default=True, db_default=True, help_text="The fade key is in wall time; else in the time of the partition."
    )
    half_life = models.FloatField(help_text="Seconds.")
    fade = models.FloatField(help_text="Epoch in seconds, in the time that ``wall`` says, at which salience passes 1.")
    fade_floor = models.FloatField(
        help_text="Indexed lower bound of fade; at most a quarter of a half-life behind it, so that most updates of "
        "this row change no indexed column and stay in place (HOT)."
    )
    retrieval_count = models.PositiveIntegerField(default=0)
    last_retrieved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Vitality(Fading):
    """One row per topic. ``scope``, ``kind``, ``created_at``, ``rung`` and ``live`` repeat the state of the topic, so
    that a run reads only this table."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    rung = models.SmallIntegerField(choices=Rung.choices, default=Rung.ACTIVE)
    live = models.BooleanField(default=True, help_text="Neither archived nor released nor merged.")
    pinned = models.BooleanField(default=False)
    pin_reason = models.CharField(max_length=500, blank=True, default="")
    pinned_by_agent = models.BooleanField(
        default=False, db_default=False, help_text="An agent set the pin, so an agent may end it."
    )

    class Meta:
        verbose_name_plural = "vitality"
        indexes = [
            # The candidate query of runs: topics that leave their rung, by clock, half-life and fade key. The rung
            # comes first, so that topics on the right rung are not read again.
            models.Index(
                fields=["rung", "wall", "half_life", "fade_floor"],
                name="vitality_due",
                condition=models.Q(live=True, pinned=False),
            ),
            # Topic lists by rung, mainly of archived topics.
            models.Index(fields=["rung", "topic"], name="vitality_by_rung", condition=models.Q(rung__gt=0)),
            # The list of pinned topics, and the token gauge of the pinned tier.
            models.Index(fields=["topic"], name="vitality_pinned", condition=models.Q(pinned=True)),
        ]
