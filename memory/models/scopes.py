"""Scope: a path that contains topics. Stored once, so that narrow tables have a number instead of the path."""

from django.db import models


class Scope(models.Model):
    """One path, such as ``/user/alice``. Created with the first topic in the scope, never removed."""

    # The unique index finds one path. Its pattern index finds a path and everything below it.
    path = models.CharField(max_length=500, unique=True)

    def __str__(self) -> str:
        return self.path
