"""Writes access rows: one per retrieval, which the worker folds into salience soon after."""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from memory.access.principal import Principal
from memory.core.policy_values import Knobs
from memory.models.prepared import rows_prepared
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current

_APPEND_SQL = """
INSERT INTO memory_accesslog
    (at, kind, actor, scope, query, query_hash, topic_ids, field_ids, bump, field_bump, folded_at, counted)
VALUES (%s, %s, %s, %s, %s, %s, %s::uuid[], %s::uuid[], %s, %s, %s, %s)
"""


# SKIP LOCKED: no row for a topic that is being purged.
_APPEND_LOOKUP_SQL = """
INSERT INTO memory_accesslog
    (at, kind, actor, scope, query, query_hash, topic_ids, field_ids, bump, field_bump, folded_at, counted)
SELECT %s, 'lookup', %s, %s, '', '', ARRAY[t.id], '{}', 0, 0, %s, false
FROM (SELECT id FROM memory_topic WHERE id = %s FOR KEY SHARE SKIP LOCKED) t
"""


def retrieval_record(
    topic_ids: Sequence[uuid.UUID],
    *,
    field_ids: Sequence[uuid.UUID],
    query: str,
    query_hash: str,
    scope: str,
    principal: Principal,
    knobs: Knobs,
    now: dt.datetime,
    counts: bool = True,
) -> None:
    """Append what a query returned, best first. One INSERT. Unless it ``counts``, it raises no salience.

    A question without an answer is recorded too: the answer may be archived, which the shadow search finds.
    """
    row: list[Any] = [
        now,
        "query",
        principal.identity,
        scope,
        query,
        query_hash,
        list(topic_ids),
        list(field_ids),
        knobs.query_salience_bump,
        knobs.query_field_salience_bump,
        None,
        None if counts else False,
    ]
    rows_prepared(_APPEND_SQL, row)


def lookup_record(topic_id: uuid.UUID, *, scope: str, principal: Principal, now: dt.datetime) -> None:
    """Append the lookup of a topic by its id. Two statements.

    It does not raise salience, so it is marked as folded; regret counts lookups of archived topics.
    """
    rows_prepared(_APPEND_LOOKUP_SQL, [now, principal.identity, scope, now, topic_id])
    activity_note(policies_current(), [scope], now=now)
