"""Writes a plan with a constant number of SQL statements for any number of items."""

import datetime as dt
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from django.db import connection
from django.db.backends.utils import CursorWrapper

from memory.core.field_values import json_array
from memory.core.text import TopicText
from memory.embedding.base import Vectors, text_hash
from memory.ingest.bulk import rows_copy, vector_binary, vector_text, vectors_copying
from memory.ingest.documents import documents_write
from memory.ingest.load import KnownTopic
from memory.ingest.mentions import mentions_read, mentions_write
from memory.ingest.plan import RevisionRow, WritePlan
from memory.models.formulas_sql import counted_sql, fade_floor_sql, fade_key_sql, salience_effective_sql, skipped_sql

# The columns of the tables, in the order of the rows of a ``WritePlan``.
TOPIC = "id scope_id kind title summary categories provenance created_at updated_at rung released_at"
VITALITY = (
    "topic_id scope_id salience reinforced_at half_life idle_before wall fade fade_floor pinned pin_reason "
    "pinned_by_agent kind created_at retrieval_count last_retrieved_at rung live"
)
FIELD = (
    "id topic_id name last_seq cold_through salience reinforced_at created_at half_life idle_before wall fade "
    "fade_floor retrieval_count last_retrieved_at detached"
)
SUMMARY = "field_id from_seq through_seq text method depth created_at withdrawn_at"
EDIT = "topic_id at before actor"
LINK = "source_id target_id kind created_at actor"
AUDIT = "at actor action topic_id scope reason before after"
VECTOR = "topic_id scope_id live model text_hash embedding"
VECTOR_TYPES = ("uuid", "int8", "bool", "varchar", "varchar", "bytea")

# A lower salience is not reinforced, because it is close to the smallest float.
LEAST_KEPT = 1e-12

_SCOPES_SQL = """
INSERT INTO memory_scope (path) SELECT unnest(%s::varchar[]) ON CONFLICT (path) DO NOTHING
"""

_TOUCH_SQL = """
UPDATE memory_topic t
SET categories = ARRAY(SELECT jsonb_array_elements_text(d.categories)), updated_at = greatest(t.updated_at, d.at)
FROM unnest(%s::uuid[], %s::timestamptz[], %s::jsonb[]) AS d (id, at, categories)
WHERE t.id = d.id
"""

# The worker folds accesses into the same rows without a lock on the topic. Its statement and this one therefore lock
# the rows in the order of ids.
_RAISED_SQL = """
UPDATE memory_revision r SET seq = d.seq FROM unnest(%(ids)s::uuid[], %(stored)s::int[], %(seqs)s::int[])
    AS d (id, stored, seq)
WHERE r.field_id = d.id AND r.seq = d.stored
"""
_FIELDS_SQL = """
WITH held AS MATERIALIZED (
    SELECT id FROM memory_field WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE
)
UPDATE memory_field f SET last_seq = d.last_seq, cold_through = d.cold_through
FROM unnest(%(ids)s::uuid[], %(last)s::int[], %(cold)s::int[]) AS d (id, last_seq, cold_through)
JOIN held USING (id)
WHERE f.id = d.id
"""

# Writing to a topic counts as a use, but does not raise its salience. The salience continues to fade along the same
# curve. The statement locks unchanged rows too: ``_PINS_SQL`` may need them, and locking them later would break the
# order of ids.
_USED_KEY = fade_key_sql(
    "held.salience", counted=counted_sql("v", at="held.at", idle="held.idle"), half_life="v.half_life"
)
_USED_SQL = f"""
WITH held AS MATERIALIZED (
    SELECT v.topic_id, d.at, d.idle,
           {salience_effective_sql("v", "d.at", skipped=skipped_sql("v", "d.idle"))} AS salience,
           v.live AND v.reinforced_at < d.at AS used_before
    FROM unnest(%(ids)s::uuid[], %(ats)s::timestamptz[], %(idle)s::float8[]) AS d (id, at, idle)
    JOIN memory_vitality v ON v.topic_id = d.id
    ORDER BY v.topic_id FOR NO KEY UPDATE OF v
), keyed AS (
    SELECT held.*, {_USED_KEY} AS fade
    FROM held JOIN memory_vitality v USING (topic_id) WHERE held.used_before AND held.salience > {LEAST_KEPT}
)
UPDATE memory_vitality v
SET salience = k.salience, reinforced_at = k.at, idle_before = k.idle, fade = k.fade,
    fade_floor = CASE WHEN v.rung > 0 THEN k.fade
                      ELSE {fade_floor_sql("v.fade_floor", fade="k.fade", half_life="v.half_life")} END
FROM keyed k WHERE v.topic_id = k.topic_id
"""

_PINS_SQL = """
WITH held AS MATERIALIZED (
    SELECT topic_id FROM memory_vitality WHERE topic_id = ANY(%(ids)s) ORDER BY topic_id FOR NO KEY UPDATE
)
UPDATE memory_vitality v SET pinned = true, pin_reason = 'asked for on ingest', pinned_by_agent = %(by_agent)s
FROM held WHERE v.topic_id = held.topic_id
"""

_VECTORS_CHANGED_SQL = """
UPDATE memory_topicvector v SET embedding = d.embedding::vector, model = %s, text_hash = d.text_hash
FROM unnest(%s::uuid[], %s::text[], %s::text[]) AS d (id, embedding, text_hash)
WHERE v.topic_id = d.id
"""

# Queues changed topics for the search for duplicates.
_LOOKS_SQL = """
INSERT INTO memory_duplicatelook (topic_id, scope_id, text_hash, waiting)
SELECT id, scope, '', true FROM unnest(%(ids)s::uuid[], %(scopes)s::bigint[]) AS d (id, scope) ORDER BY id
ON CONFLICT (topic_id) DO UPDATE SET waiting = true WHERE NOT memory_duplicatelook.waiting
"""

_WAKE_UPS_SQL = """
INSERT INTO memory_wakeup (scope_id, event, first_at, last_at, times)
SELECT id, %(event)s, %(now)s, %(now)s, 1 FROM unnest(%(scopes)s::bigint[]) AS id ORDER BY id
ON CONFLICT (scope_id, event) DO UPDATE SET last_at = excluded.last_at, times = memory_wakeup.times + 1
"""


def scope_ids(cursor: CursorWrapper, paths: set[str]) -> dict[str, int]:
    """Return the id of each scope by its path. Missing scopes are created. One query, three if a scope is created."""
    ordered = sorted(paths)
    select = "SELECT path, id FROM memory_scope WHERE path = ANY(%s)"
    cursor.execute(select, [ordered])
    found: dict[str, int] = dict(cursor.fetchall())
    if len(found) < len(ordered):
        cursor.execute(_SCOPES_SQL, [[path for path in ordered if path not in found]])
        cursor.execute(select, [ordered])
        found = dict(cursor.fetchall())
    return found


def plan_write(
    plan: WritePlan, *, texts: Mapping[uuid.UUID, TopicText], model: str, vectors: Mapping[str, Vectors]
) -> list[int]:
    """Write all rows of ``plan`` and return the ids of its scopes. At most twenty-two statements. Needs a transaction.
    ``texts`` maps the id of each new or changed topic to its text. ``vectors`` maps the hash of a text to its vector. A
    topic without a vector stays pending."""
    with connection.cursor() as cursor:
        scopes = scope_ids(cursor, plan.scopes)
        _topics_write(cursor, plan, scopes)
        _fields_write(cursor, plan)
        if plan.links:
            rows_copy(cursor, "memory_link", LINK, plan.links)
        if plan.texts:
            ids, topics = list(plan.texts), plan.texts.values()
            own_scopes = [scopes[topic.scope] for topic in topics]
            documents = [texts[topic_id].document() for topic_id in ids]
            documents_write(cursor, ids, own_scopes, [topic.live for topic in topics], documents)
            with _vectors_writing(cursor, plan, scopes, texts, model, vectors):
                mentions = mentions_read(plan)
            mentions_write(cursor, mentions, scopes)
            cursor.execute(_LOOKS_SQL, {"ids": ids, "scopes": own_scopes})
        if plan.audits:
            rows_copy(cursor, "memory_auditevent", AUDIT, plan.audits)
    return sorted(scopes.values())


def wake_ups_write(scopes: Sequence[int], *, event: str, now: dt.datetime) -> None:
    """Record for the reasoner that ``event`` happened in the scopes whose ids are in ``scopes``. One statement. Call
    this function last, because the rows stay locked until the commit and every writer of the scopes needs them."""
    with connection.cursor() as cursor:
        cursor.execute(_WAKE_UPS_SQL, {"event": event, "now": now, "scopes": sorted(scopes)})


def _topics_write(cursor: CursorWrapper, plan: WritePlan, scopes: Mapping[str, int]) -> None:
    if plan.topics:
        # Rows are written in the order of ids, so that two batches that create the same topics cannot deadlock.
        ordered = sorted(plan.topics, key=lambda row: row[0])
        rows_copy(cursor, "memory_topic", TOPIC, ((row[0], scopes[row[1]], *row[2:]) for row in ordered))
        rows_copy(cursor, "memory_vitality", VITALITY, ((row[0], scopes[row[1]], *row[2:]) for row in plan.vitalities))
    if plan.edits:
        edits = ((topic_id, at, json.dumps(before), actor) for topic_id, at, before, actor in plan.edits)
        rows_copy(cursor, "memory_topicedit", EDIT, edits)
    if plan.touched:
        categories, ats, used_ats, idle = zip(*plan.touched.values(), strict=True)
        cursor.execute(_TOUCH_SQL, [list(plan.touched), list(ats), list(map(json_array, categories))])
        cursor.execute(_USED_SQL, {"ids": list(plan.touched), "ats": list(used_ats), "idle": list(idle)})
    if plan.pins:
        cursor.execute(_PINS_SQL, {"ids": plan.pins, "by_agent": plan.pins_by_agent})


def _fields_write(cursor: CursorWrapper, plan: WritePlan) -> None:
    if plan.fields:
        rows = (
            (known.id, topic_id, known.name, known.last_seq, known.cold_through, *row)
            for known, topic_id, *row in plan.fields
        )
        rows_copy(cursor, "memory_field", FIELD, rows)
    if plan.versioned:
        last, cold = zip(*plan.versioned.values(), strict=True)
        cursor.execute(_FIELDS_SQL, {"ids": list(plan.versioned), "last": list(last), "cold": list(cold)})
    if plan.raised:
        stored, seqs = zip(*plan.raised.values(), strict=True)
        cursor.execute(_RAISED_SQL, {"ids": list(plan.raised), "stored": list(stored), "seqs": list(seqs)})
    if plan.revisions:
        rows_copy(cursor, "memory_revision", " ".join(RevisionRow._fields), plan.revisions)
    if plan.summaries:
        rows_copy(cursor, "memory_fieldsummary", SUMMARY, plan.summaries)


@contextmanager
def _vectors_writing(
    cursor: CursorWrapper,
    plan: WritePlan,
    scopes: Mapping[str, int],
    texts: Mapping[uuid.UUID, TopicText],
    model: str,
    vectors: Mapping[str, Vectors],
) -> Iterator[None]:
    """Write the vectors. The ``with`` block runs while the database stores the vectors of new topics."""
    found: dict[bool, list[tuple[uuid.UUID, KnownTopic, str, Vectors | None]]] = {True: [], False: []}
    for topic_id, topic in plan.texts.items():
        digest = text_hash(texts[topic_id].embedded())
        found[topic.is_new].append((topic_id, topic, digest, vectors.get(digest)))
    new, changed = found[True], found[False]
    if changed:
        ids, _topics, digests, made = zip(*changed, strict=True)
        written = [None if vector is None else vector_text(vector) for vector in made]
        cursor.execute(_VECTORS_CHANGED_SQL, [model, list(ids), written, list(digests)])
    rows = (
        (topic_id, scopes[topic.scope], topic.live, model, digest, None if vector is None else vector_binary(vector))
        for topic_id, topic, digest, vector in new
    )
    with vectors_copying(cursor, VECTOR, VECTOR_TYPES, rows) if new else nullcontext():
        yield
