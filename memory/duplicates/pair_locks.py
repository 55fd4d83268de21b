"""Locks topics for a merge, in the order that all writers use, and closes their other pairs."""

import uuid
from collections.abc import Collection

from django.db.backends.utils import CursorWrapper

from memory.forgetting.topic_state import HELD
from memory.models import DuplicatePair

_LOCK_SQL = f"WITH {HELD} SELECT id, state FROM held"
# In the order of ids, as the worker does.
FIELDS_LOCK_SQL = "SELECT id FROM memory_field WHERE topic_id = ANY(%(topics)s) ORDER BY id FOR NO KEY UPDATE"
# All pairs of the topics, because the pairs of the loser lapse.
_PAIRS_LOCK_SQL = """
SELECT id FROM memory_duplicatepair WHERE one_id = ANY(%(topics)s) OR other_id = ANY(%(topics)s)
ORDER BY id FOR NO KEY UPDATE
"""


def topics_lock(cursor: CursorWrapper, ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Lock topics with their fields and pairs, and return the state of each that exists. Three statements.

    To merge several pairs in one transaction, lock all of their topics first, to avoid deadlocks.
    """
    wanted = {"topics": list(ids)}
    cursor.execute(_LOCK_SQL, wanted)
    states: dict[uuid.UUID, str] = dict(cursor.fetchall())
    cursor.execute(FIELDS_LOCK_SQL, wanted)
    cursor.execute(_PAIRS_LOCK_SQL, wanted)
    return states


def pairs_lapse(topic_id: uuid.UUID, *, but: uuid.UUID | None = None) -> None:
    """Set the open pairs of an inactive topic to lapsed, except ``but``. Runs two statements. After an undo, the topics
    are compared again."""
    for column in ("one", "other"):
        rows = DuplicatePair.objects.filter(**{column: topic_id}, state=DuplicatePair.State.OPEN)
        (rows if but is None else rows.exclude(pk=but)).update(state=DuplicatePair.State.LAPSED)
