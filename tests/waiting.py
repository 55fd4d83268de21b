"""Who waits for a lock, in the database of this test alone: tests that run beside it have waits of their own."""

from django.db import connection

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def waiting() -> int:
    """Return how many sessions wait for a lock, of rows or advisory."""
    with connection.cursor() as cursor:
        # Within a transaction the view shows what it showed first, unless that is thrown away.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(_WAITING)
        return int(cursor.fetchone()[0])
