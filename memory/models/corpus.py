"""Lexeme and CorpusTotals: in how many live topics a word occurs, for BM25. Updated by the worker."""

from django.db import models


class Lexeme(models.Model):
    """A word stem and the number of live topics whose document holds it."""

    word = models.TextField()
    documents = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            # A constraint rather than a unique field: a field would bring a second index for LIKE, unused.
            models.UniqueConstraint(fields=["word"], name="lexeme_unique")
        ]


class CorpusTotals(models.Model):
    """The one row of totals over live documents."""

    documents = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "corpus totals"
