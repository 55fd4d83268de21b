"""Statements that the database plans once per connection instead of at every call."""

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import connection


def rows_prepared(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run ``sql`` as a prepared statement on Django's connection, within its transaction, and return all rows.

    The statements of recall are long, and parsing and planning one takes about as long as running it. Django's own
    cursors bind parameters into the text, so that no plan can be kept; this one sends them apart.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        return cursor.execute(sql, parameters, prepare=True).fetchall()
