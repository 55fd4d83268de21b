"""Merges of a file that lead in a circle: no store has them, and whoever follows one would not come to an end."""

from django.db.backends.utils import CursorWrapper

from memory.transfer.lines import LineProblem

_MAKE = "CREATE TEMPORARY TABLE IF NOT EXISTS transfer_merged (topic_id uuid PRIMARY KEY, into_id uuid)"
_NOTE = """
INSERT INTO transfer_merged SELECT (l.line->>'topic')::uuid, (l.line->>'into')::uuid
FROM transfer_line l WHERE l.why IS NULL ON CONFLICT DO NOTHING
"""
# Each points twice as far as before, so few steps pass over all of them.
_LEAP = "UPDATE transfer_merged m SET into_id = n.into_id FROM transfer_merged n WHERE n.topic_id = m.into_id"
_ONE = """
SELECT m.topic_id FROM transfer_merged m JOIN transfer_merged n ON n.topic_id = m.into_id ORDER BY m.topic_id LIMIT 1
"""
_DROP = "DROP TABLE IF EXISTS pg_temp.transfer_merged"


def merges_note(cursor: CursorWrapper) -> None:
    """Remember the merges of a batch that would be brought, for ``merges_circle``. Two statements."""
    cursor.execute(_MAKE)
    cursor.execute(_NOTE)


def merges_circle(cursor: CursorWrapper) -> None:
    """Raise ``LineProblem`` if merges that were noted lead in a circle. As many statements as the number of merges has
    binary digits, and three."""
    cursor.execute(_MAKE)
    cursor.execute("SELECT count(*) FROM transfer_merged")
    for _leap in range(int(cursor.fetchone()[0]).bit_length() + 1):
        cursor.execute(_LEAP)
        if not cursor.rowcount:
            return
    cursor.execute(_ONE)
    raise LineProblem(f"Merges of this file lead in a circle, for instance from topic {cursor.fetchone()[0]}.")


def merges_clear(cursor: CursorWrapper) -> None:
    """Remove the temporary table. One statement."""
    cursor.execute(_DROP)
