"""Loads the data of a replay: the topics of a scope as arrays, and their events in order of time."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from django.db import connection

from memory.core.policy_values import Knobs
from memory.core.scopes import scope_within
from memory.forgetting.manual_runs import undone_sql
from memory.formulas.strategies import KIND_WEIGHT_ELSE, KIND_WEIGHTS
from memory.models.formulas_sql import reinforcement_share_sql
from memory.policy.partition import PolicyPartition
from memory.predicates.binding import Bound, scope_sql
from memory.predicates.sql import predicate_sql
from memory.simulate.replay import (
    LOOKED_UP,
    REINFORCED,
    SALIENCE_SET,
    SHOWN,
    Floats,
    Ints,
    Ruling,
    Topics,
    comparisons_fixed,
)

# The number of rows of the log that are fetched at once.
CHUNK = 20_000

_TOPICS_SQL = """
SELECT uuid_hash_extended(v.topic_id, 0), {partition:d}, {excluded}, extract(epoch from v.created_at)::float8,
       v.pinned, v.kind, {exempt}, coalesce((born.after->>'salience')::float8, 1),
       extract(epoch from coalesce((born.after->>'used_at')::timestamptz, v.created_at))::float8{fixed}
FROM memory_vitality v JOIN memory_topic t ON t.id = v.topic_id
LEFT JOIN memory_auditevent born
  ON born.topic_id = v.topic_id AND born.action = 'ingest_new_topic' AND born.after ?| array['salience', 'used_at']
WHERE {within} AND v.created_at < {end} AND t.released_at IS NULL AND t.merged_into_id IS NULL
"""

_EVENTS_SQL = """
SELECT extract(epoch from a.at)::float8, uuid_hash_extended(x.id, 0),
       CASE WHEN a.kind = 'lookup' THEN {looked_up:d} WHEN a.counted IS FALSE OR {share} = 0 THEN {shown:d}
            ELSE {reinforced:d} END,
       a.id, {share}::float8
FROM memory_accesslog a CROSS JOIN LATERAL unnest(a.topic_ids, a.relevances) AS x (id, relevance) {join}
WHERE a.at < {end} AND x.id IS NOT NULL AND {within}
UNION ALL
SELECT extract(epoch from e.at)::float8, uuid_hash_extended(e.topic_id, 0),
       CASE WHEN e.action IN ('edited', 'imported') THEN {set:d} ELSE {looked_up:d} END, 0,
       coalesce((e.after->>'salience')::float8, 0)
FROM memory_auditevent e
WHERE e.at < {end} AND e.topic_id IS NOT NULL
  AND ((e.action = 'restored' AND NOT {undone}) OR (e.action IN ('edited', 'imported') AND e.after ? 'salience'))
ORDER BY 1, 4
"""


def topics_load(
    partitions: Sequence[PolicyPartition], rulings: Sequence[Ruling], *, end: dt.datetime
) -> tuple[Ints, Topics]:
    """Return the sorted hashes of the ids, and the topics in the same order. One query, read in parts. The probability
    that two of a million topics have the same hash is one in thirty million."""
    bound = Bound()
    compared = list(dict.fromkeys(part for ruling in rulings for part in comparisons_fixed(ruling.rules)))
    fixed = "".join(f", ({predicate_sql(each, now='now()', bind=bound.bind).sql}) IS TRUE" for each in compared)
    selects = [
        _TOPICS_SQL.format(
            partition=number,
            excluded=_excluded_sql(partition, bound),
            fixed=fixed,
            end=bound.bind(end),
            exempt=f"v.kind = ANY({bound.bind(list(partition.policy.knobs.exempt_kinds))}::text[])",
            within=partition.within_sql("v.scope_id", bound.bind),
        )
        for number, partition in enumerate(partitions)
    ]
    # The types of the columns: q is int64, ? is bool, d is float64, O is an object.
    types = [*"qq?d?O?dd", *"?" * len(compared)]
    chunks = list(_chunks(" UNION ALL ".join(selects), bound.values, types))
    columns = [np.concatenate([chunk[at] for chunk in chunks]) for at in range(len(types))]
    order = np.argsort(columns[0], kind="stable")
    keys, partition_at, excluded, created, pinned, kinds, exempt, salience, used, *answers = (
        column[order] for column in columns
    )
    weights = np.array([KIND_WEIGHTS.get(kind, KIND_WEIGHT_ELSE) for kind in kinds], dtype=np.float64)
    topics = Topics(
        created=created,
        salience=salience,
        used=used,
        kind_weight=weights,
        pinned=pinned,
        excluded=excluded,
        exempt=exempt,
        partition=partition_at,
        fixed=dict(zip(compared, answers, strict=True)),
    )
    return keys, topics


def _excluded_sql(partition: PolicyPartition, bound: Bound) -> str:
    """Return the condition under which runs never read a topic: its scope is exempt, or the mode is off."""
    exempt = partition.policy.knobs.exempt_scopes
    if partition.policy.knobs.mode == "off" or any(scope_within(partition.path, path) for path in exempt):
        return "true"
    parts = [scope_sql("v.scope_id", path, bound.bind) for path in exempt if scope_within(path, partition.path)]
    return " OR ".join(parts) or "false"


class Events:
    """The events of the log in order of time, read in chunks. Each topic is represented by its index in the sorted
    ``keys``. ``knobs`` define how retrievals reinforce."""

    def __init__(self, keys: Ints, scope: str, *, knobs: Knobs, end: dt.datetime) -> None:
        bound = Bound()
        whole = scope == "/"
        sql = _EVENTS_SQL.format(
            end=bound.bind(end),
            join="" if whole else "JOIN memory_vitality v ON v.topic_id = x.id",
            within="true" if whole else scope_sql("v.scope_id", scope, bound.bind),
            looked_up=LOOKED_UP,
            shown=SHOWN,
            reinforced=REINFORCED,
            set=SALIENCE_SET,
            undone=undone_sql("e"),
            share=reinforcement_share_sql(
                "x.relevance", min_relevance=f"{bound.bind(knobs.reinforce_min_relevance)}::float8"
            ),
        )
        self.keys, self.bump = keys, knobs.query_salience_bump
        self._chunks = _whole(_chunks(sql, bound.values, "dqqqd"))
        self._waiting: list[Any] | None = None

    def until(self, moment: float) -> Iterator[tuple[Ints, Floats, Ints, Ints, Floats]]:
        """Yield the next events before ``moment`` as arrays: topics, times, types, ids of accesses, values."""
        while True:
            chunk = self._waiting if self._waiting is not None else next(self._chunks, None)
            if chunk is None:
                return
            cut = int(np.searchsorted(chunk[0], moment, side="left"))
            self._waiting = [column[cut:] for column in chunk] if cut < len(chunk[0]) else None
            if cut:
                yield self._of_topics([column[:cut] for column in chunk])
            if self._waiting is not None:
                return

    def _of_topics(self, chunk: list[Any]) -> tuple[Ints, Floats, Ints, Ints, Floats]:
        # Drop the events of topics that are not replayed, and replace hashes by indexes.
        at, keys, what, access, value = chunk
        topics = np.searchsorted(self.keys, keys)
        known = topics < len(self.keys)
        known[known] = self.keys[topics[known]] == keys[known]
        value = np.where(what == REINFORCED, self.bump * value, value)
        return topics[known], at[known], what[known], access[known], value[known]

    def close(self) -> None:
        """Close the cursor."""
        self._chunks.close()


def _whole(chunks: Any) -> Any:
    """Regroup the rows of the chunks, so that all rows of an access are in one chunk."""
    carry: list[Any] | None = None
    for chunk in chunks:
        if carry is not None:
            chunk = [np.concatenate(pair) for pair in zip(carry, chunk, strict=True)]
        others = np.flatnonzero(chunk[3] != chunk[3][-1]) if len(chunk[3]) else np.empty(0, dtype=np.int64)
        cut = int(others[-1]) + 1 if len(others) else 0
        if cut:
            yield [column[:cut] for column in chunk]
        carry = [column[cut:] for column in chunk]
    if carry is not None:
        yield carry


def _chunks(sql: str, parameters: dict[str, Any], types: Sequence[Any]) -> Any:
    """Yield the rows as lists of columns, ``CHUNK`` rows at a time. If there are no rows, yield one empty chunk."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, parameters)
        first = True
        rows: Any
        while rows := cursor.fetchmany(CHUNK):
            first = False
            yield [np.array([row[at] for row in rows], dtype=kind) for at, kind in enumerate(types)]
        if first:
            yield [np.empty(0, dtype=kind) for kind in types]
