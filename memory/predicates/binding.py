"""Bound parameters of a statement, and conditions on scopes as SQL or as Django filters."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q

from memory.core.scopes import ROOT
from memory.models.formulas_sql import path_within_sql

Bind = Callable[[object], str]


class Bound:
    """The named parameters of one SQL statement. Equal values share a name."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._names: dict[tuple[type, str], str] = {}

    def bind(self, value: object) -> str:
        """Add ``value`` and return its placeholder."""
        name = self._names.setdefault((type(value), repr(value)), f"p{len(self.values)}")
        self.values[name] = value
        return f"%({name})s"


def scope_sql(column: str, path: str, bind: Bind, *, excluded: tuple[str, ...] = ()) -> str:
    """Return the SQL condition that the scope whose id is in ``column`` is at or below ``path``. Scopes at or below a
    path in ``excluded`` are left out."""
    if path == ROOT and not excluded:
        return "true"
    conditions = [path_sql("path", path, bind)]
    conditions += [f"NOT {path_sql('path', other, bind)}" for other in excluded]
    return f"{column} IN (SELECT id FROM memory_scope WHERE {' AND '.join(conditions)})"


def path_q(path: str, column: str = "scope") -> Q:
    """Return the Django filter that the scope whose path is in ``column`` is at or below ``path``."""
    return Q() if path == ROOT else Q(**{column: path}) | Q(**{f"{column}__startswith": f"{path}/"})


def path_sql(column: str, path: str, bind: Bind) -> str:
    """Return the SQL condition that the scope whose path is in ``column`` is at or below ``path``."""
    if path == ROOT:
        return "true"
    path_text, below, beyond = (f"{bind(text)}::text" for text in (path, path + "/", path + "0"))
    return path_within_sql(column, path=path_text, below=below, beyond=beyond)
