"""Ids: one UUID belongs to one row of one table. Clients may choose the id of a topic, so this has to be checked."""

import uuid
from collections.abc import Collection
from functools import cache

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper

# A UUID in JSON, as a pattern of PostgreSQL.
UUID_PATTERN = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


@cache
def identity_tables() -> tuple[tuple[str, str], ...]:
    """Return (table, column of the primary key) of every model whose primary key is a UUID, except Topic."""
    return tuple(
        (model._meta.db_table, str(model._meta.pk.column))
        for model in apps.get_app_config("memory").get_models()
        if isinstance(model._meta.pk, models.UUIDField) and model.__name__ != "Topic"
    )


def ids_of_others(cursor: CursorWrapper, ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Return those of ``ids`` that belong to a row other than a topic, such as a run. One SQL statement."""
    if not ids:
        return set()
    found = " UNION ALL ".join(
        f'SELECT "{column}" FROM {table} WHERE "{column}" = ANY(%(ids)s)' for table, column in identity_tables()
    )
    cursor.execute(found, {"ids": list(ids)})
    return {row[0] for row in cursor.fetchall()}


def ids_doubled(cursor: CursorWrapper) -> tuple[int, int]:
    """Return two counts: the topics whose id is also the id of another row, and the journal entries whose run is not a
    UUID. One SQL statement, which reads both tables completely."""
    others = " OR ".join(
        f'EXISTS (SELECT FROM {table} o WHERE o."{column}" = t.id)' for table, column in identity_tables()
    )
    cursor.execute(
        f"SELECT (SELECT count(*) FROM memory_topic t WHERE {others}), "
        "(SELECT count(*) FROM memory_auditevent WHERE after ? 'run' AND after->>'run' !~ %s)",
        [UUID_PATTERN],
    )
    topics, entries = cursor.fetchone()
    return int(topics), int(entries)


def uuid_sql(text: str) -> str:
    """Return ``text`` as a UUID, or null if it is not one, because a journal may contain any text."""
    return f"(CASE WHEN {text} ~ '{UUID_PATTERN}' THEN ({text})::uuid END)"
