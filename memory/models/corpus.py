"""Lexeme and CorpusTotals: the number of live topics with each word, for BM25. Updated by the worker."""

from django.db import models


class Lexeme(models.Model):
    """A word stem and the number of live topics whose document contains it."""

    word = models.TextField()
    documents = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            # A constraint, because a unique field would also create an index for LIKE, which nothing uses.
            models.UniqueConstraint(fields=["word"], name="lexeme_unique")
        ]


class CorpusTotals(models.Model):
    """The one row of totals over live documents."""

    documents = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "corpus totals"
