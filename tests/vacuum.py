"""VACUUM, which no transaction may contain, and so no statement on a store."""

from django.db import connection

from memory.stores.current import MAIN, store_schema, store_use


def vacuum_analyze(*tables: str) -> None:
    """Vacuum and analyze these tables of ``main``, or all tables of the database."""
    names = ", ".join(f"{store_schema(MAIN)}.{table}" for table in tables)
    with store_use(None), connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {names}")
