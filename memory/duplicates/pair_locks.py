"""Locks topics for a merge, in the order that all writers use, and closes their other pairs."""

import uuid
from collections.abc import Collection

from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from memory.forgetting.topic_state import HELD
from memory.models import DuplicatePair

_LOCK_SQL = f"WITH {HELD} SELECT id, state FROM held"
# The worker locks fields in the same order.
FIELDS_LOCK_SQL = "SELECT id FROM memory_field WHERE topic_id = ANY(%(topics)s) ORDER BY id FOR NO KEY UPDATE"
# All pairs of both topics are locked, because the pairs of the loser lapse.
PAIRS_LOCK_SQL = """
SELECT id FROM memory_duplicatepair WHERE one_id = ANY(%(topics)s) OR other_id = ANY(%(topics)s)
ORDER BY id FOR NO KEY UPDATE
"""


def topics_lock(cursor: CursorWrapper, ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Lock topics with their fields and pairs, and return the state of each existing topic. Three statements."""
    wanted = {"topics": list(ids)}
    cursor.execute(_LOCK_SQL, wanted)
    states: dict[uuid.UUID, str] = dict(cursor.fetchall())
    cursor.execute(FIELDS_LOCK_SQL, wanted)
    cursor.execute(PAIRS_LOCK_SQL, wanted)
    return states


def pairs_lapse(topic_id: uuid.UUID) -> None:
    """Set the open pairs of an inactive topic to lapsed. One statement."""
    rows = DuplicatePair.objects.filter(Q(one=topic_id) | Q(other=topic_id), state=DuplicatePair.State.OPEN)
    rows.update(state=DuplicatePair.State.LAPSED)
