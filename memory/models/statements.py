"""Runs one SQL statement on Django's connection and returns its rows."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from memory.stores.current import store_schema

Parameters = Mapping[str, Any] | Sequence[Any] | None
_OF_STORE_SQL = "SELECT '{name}', of_store.* FROM ({rows}) of_store"
_TABLE = re.compile(r"\bmemory_(?=[a-z])")


def rows_read(sql: str, parameters: Parameters = None) -> list[tuple[Any, ...]]:
    """Run ``sql`` and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def dicts_read(sql: str, parameters: Parameters = None) -> list[Any]:
    """Run ``sql`` and return its rows as dicts, keyed by column name. Callers declare their type."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def rows_by_store(sql: str, names: Sequence[str], parameters: Parameters = None) -> list[tuple[Any, ...]]:
    """Run the query ``sql`` in each store in ``names``. Return its rows, each preceded by the name of its store. One
    query for any number of stores. Each word in ``sql`` that begins with ``memory_`` must be the name of a table."""
    parts = [_OF_STORE_SQL.format(name=name, rows=_TABLE.sub(f"{store_schema(name)}.memory_", sql)) for name in names]
    return rows_read(" UNION ALL ".join(parts), parameters) if parts else []
