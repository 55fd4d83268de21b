"""Scope: a path that topics live in. Interned, so that narrow tables can carry a number instead of the path."""

from django.db import models


class Scope(models.Model):
    """One path, such as ``/user/alice``; created by the first topic in it, never removed."""

    # The unique index serves look-up by path; its pattern twin serves "this path and everything below it".
    path = models.CharField(max_length=500, unique=True)

    def __str__(self) -> str:
        return self.path
