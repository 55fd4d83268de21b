"""Runs SQL statements that the database plans once per connection instead of in every call."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from memory.stores.database.base import PreparedCursor

NEVER_BY_ITSELF = 1_000_000_000


def rows_prepared(sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run ``sql`` as a prepared statement on Django's connection, within its transaction, and return all rows.

    Parsing and planning a statement of recall takes about as long as running it. Django's own cursors insert parameters
    into the text, and therefore no plan can be reused. This function sends parameters separately. For a statement
    without a result, it returns no rows.
    """
    connection.ensure_connection()
    # Django disables prepared statements for the connection. Here they are enabled, with a threshold that is never
    # reached, so that only statements with ``prepare=True`` are prepared.
    connection.connection.prepare_threshold = NEVER_BY_ITSELF
    with connection.wrap_database_errors, PreparedCursor(connection.connection) as cursor:
        cursor.execute(sql, parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []
