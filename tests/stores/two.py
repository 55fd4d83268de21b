"""Two stores whose rows have the same ids: ``other`` is a copy of ``main`` in which one word is another."""

import json
import uuid
from typing import Any

from django.apps import apps
from django.db import connection

from memory.access.keys import PREFIX_LENGTH, secret_hash
from memory.jobs.stores import store_create
from memory.models import ApiKey
from memory.stores.current import MAIN, store_schema, store_use
from memory.stores.keys import key_note
from tests.cast import PARTS, Caller, Cast

OTHER = "other"
# What only the texts of main, and only those of the other store contain.
OURS, THEIRS = "zebra", "quagga"
_TEXTS = ("text", "character varying", "jsonb", "tsvector", "text[]", "character varying[]")


def secret_there(name: str) -> str:
    """Return the key of a member of the cast in the other store. It has the id of the key in ``main``."""
    return f"ms_the-secret-of-{name}-in-the-other-store"


def cast_there(cast: Cast) -> Cast:
    """Return the cast of the other store."""
    return Cast(
        **{name: Caller(cast.anonymous.send, secret_there(name)) for name in PARTS},
        anonymous=Caller(cast.anonymous.send),
    )


def other_make() -> None:
    """Make the other store, with every row that ``main`` has now."""
    store_create(OTHER)
    here, there = store_schema(MAIN), store_schema(OTHER)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(
            "SELECT table_name::text, column_name::text, format_type(a.atttypid, NULL) FROM information_schema.columns "
            "JOIN pg_attribute a ON attrelid = format('%%I.%%I', table_schema, table_name)::regclass "
            "AND attname = column_name WHERE table_schema = %s AND is_generated = 'NEVER' ORDER BY 1, ordinal_position",
            [here],
        )
        tables: dict[str, list[tuple[str, str]]] = {}
        for table, column, kind in cursor.fetchall():
            tables.setdefault(table, []).append((column, kind))
        for table, columns in tables.items():
            names = ", ".join(f'"{column}"' for column, _kind in columns)
            values = ", ".join(
                f"replace(\"{column}\"::text, '{OURS}', '{THEIRS}')::{kind}" if kind in _TEXTS else f'"{column}"'
                for column, kind in columns
            )
            cursor.execute(f'INSERT INTO {there}."{table}" ({names}) SELECT {values} FROM {here}."{table}"')
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence(%s, 'id'), 1000000) "
                "WHERE pg_get_serial_sequence(%s, 'id') IS NOT NULL",
                [f"{there}.{table}"] * 2,
            ) if ("id", "bigint") in columns else None
    with store_use(OTHER):
        for name in PARTS:
            hashed = secret_hash(secret_there(name))
            ApiKey.objects.filter(name=name).update(secret_hash=hashed, prefix=secret_there(name)[:PREFIX_LENGTH])
            key_note(hashed)


def rows_of(store: str) -> dict[str, list[str]]:
    """Return every row of every table of a store."""
    found = {}
    with store_use(store), connection.cursor() as cursor:
        for model in apps.get_app_config("memory").get_models():
            cursor.execute(f'SELECT row_to_json(x)::text FROM "{model._meta.db_table}" x ORDER BY 1')
            found[model._meta.db_table] = [row for (row,) in cursor.fetchall()]
    return found


def id_of(model: str, **where: Any) -> str:
    """Return the id of the first row of a model in ``main``; a random one if there is none."""
    found = apps.get_model("memory", model).objects.filter(**where).order_by("pk").first()
    return str(found.pk if found else uuid.uuid4())


def said(answer: Any) -> str:
    """Return what an answer says, in lower case."""
    return (answer.text + json.dumps(dict(answer.headers))).lower()
