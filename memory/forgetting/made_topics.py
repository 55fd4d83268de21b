"""Journals the topics that a run has written: compacted topics, and the parts of released topics that are kept.

Such a topic did not exist before the run. The undo of the run releases it, because rows are never deleted.
"""

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.backends.utils import CursorWrapper

from memory.forgetting.topic_state import STATE

_MADE_SQL = f"""
WITH actions (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, after, note,
      at) AS MATERIALIZED (
    SELECT %(run)s, d.place, t.id, %(action)s, t.rung, t.rung, d.changes, d.why, 'applied',
           {STATE} || jsonb_build_object('live', false, 'released_at', %(now)s::timestamptz), {STATE}, '', %(now)s
    FROM unnest(%(ids)s::uuid[], %(places)s::int[], %(changes)s::jsonb[], %(whys)s::jsonb[])
         AS d (id, place, changes, why)
    JOIN memory_topic t ON t.id = d.id JOIN memory_vitality v ON v.topic_id = d.id
)
INSERT INTO memory_forgetaction
    (run_id, place, topic_id, action, from_rung, to_rung, changes, why, state, before, after, note, at)
SELECT * FROM actions
"""


class Made(NamedTuple):
    """A topic that a run has written: its place in the run, what was done, and why."""

    topic_id: uuid.UUID
    place: int
    changes: dict[str, Any]
    why: dict[str, Any]


def made_write(cursor: CursorWrapper, action: str, made: Sequence[Made], *, run: uuid.UUID, now: dt.datetime) -> None:
    """Journal the topics that a run has written with ``action``, so that its undo releases them. One SQL statement."""
    if made:
        parameters: dict[str, Any] = {
            "run": run,
            "action": action,
            "now": now,
            "ids": [each.topic_id for each in made],
            "places": [each.place for each in made],
            "changes": [json.dumps(each.changes) for each in made],
            "whys": [json.dumps(each.why) for each in made],
        }
        cursor.execute(_MADE_SQL, parameters)
