"""Takes two merged topics apart again: both become byte for byte what they were before, or nothing is touched.

A merge writes down, with its two actions, the rows that it changed as they stood (``rows_image``) and a fingerprint of
what it left (``merge_fingerprint``). As long as the fingerprint holds, the rows can be put back. That somebody has
retrieved the survivor since is no reason to leave two topics in one: then its salience stays as it is by now.
"""

import datetime as dt
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.forgetting import state_changes
from memory.forgetting.topic_state import HELD, drift_words
from memory.forgetting.undo import Conflicts
from memory.models.expressions import fade_key_sql

# Numbers of revisions while they change places: no field has so many.
APART = 1_000_000_000

_IMAGE = """
SELECT jsonb_build_object(
    'topic', jsonb_build_object('categories', t.categories, 'updated_at', t.updated_at),
    'vitality', to_jsonb(v),
    'fields', coalesce((SELECT jsonb_agg(to_jsonb(f) ORDER BY f.id) FROM memory_field f WHERE f.topic_id = t.id), '[]'),
    'revisions', coalesce((
        SELECT jsonb_agg(jsonb_build_array(r.id, r.field_id, r.seq) ORDER BY r.field_id, r.seq)
        FROM memory_revision r JOIN memory_field f ON f.id = r.field_id
        WHERE f.topic_id = t.id AND r.field_id = ANY(%(joined)s)), '[]')
)
FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id WHERE t.id = %(id)s
"""
_SEARCHED = """
SELECT jsonb_build_object(
    'vector', (SELECT to_jsonb(x) FROM memory_topicvector x WHERE x.topic_id = %(id)s),
    'document', (SELECT to_jsonb(x) FROM memory_topicdocument x WHERE x.topic_id = %(id)s),
    'mention', (SELECT to_jsonb(x) FROM memory_topicmention x WHERE x.topic_id = %(id)s)
)
"""

# What the topics hold, but for how much they are used.
_FINGERPRINT = """
SELECT t.id::text, jsonb_build_object(
    'said', md5(concat_ws('|', t.title, t.summary, t.kind, t.categories::text)),
    'fields', md5(coalesce((
        SELECT string_agg(concat_ws('|', f.id, f.name, f.last_seq, r.id, r.seq), ';' ORDER BY f.id, r.seq)
        FROM memory_field f LEFT JOIN memory_revision r ON r.field_id = f.id WHERE f.topic_id = t.id), '')),
    'cold', md5(coalesce((
        SELECT string_agg(concat_ws('|', f.id, f.cold_through, f.detached), ';' ORDER BY f.id)
        FROM memory_field f WHERE f.topic_id = t.id), ''))
) FROM memory_topic t WHERE t.id = ANY(%(ids)s) ORDER BY t.id
"""
_CHANGED_WORDS = {
    "said": "It was edited since.",
    "fields": "It was written to since.",
    "cold": "Its history was summarized or detached since.",
}

_ACTIONS = f"""
WITH {HELD}
SELECT a.id, a.topic_id, a.action, a.changes, a.before, a.after, held.state
FROM memory_forgetaction a JOIN held ON held.id = a.topic_id
WHERE a.run_id = %(run)s AND a.state = 'applied' ORDER BY a.place
"""

# The vectors and documents of both are locked by changing them; fields in the order of their ids, as the worker does.
_FIELDS_LOCK = "SELECT id FROM memory_field WHERE topic_id = ANY(%(topics)s) ORDER BY id FOR NO KEY UPDATE"


def _fading_sql(row: str, *, floor: str) -> str:
    """Return what puts back the salience of ``row`` from ``b``. What was retrieved since keeps what it has by now."""
    kept = ("salience", "reinforced_at", "retrieval_count", "last_retrieved_at")
    key = fade_key_sql("b.salience", reinforced_at="b.reinforced_at", half_life=f"{row}.half_life")
    same = f"WHEN {row}.half_life = b.half_life THEN b"
    return ",\n    ".join(
        (
            *(f"{name} = CASE WHEN %(used)s THEN {row}.{name} ELSE b.{name} END" for name in kept),
            f"fade = CASE WHEN %(used)s THEN {row}.fade {same}.fade ELSE {key} END",
            f"fade_floor = CASE WHEN %(used)s THEN {floor} {same}.fade_floor ELSE {key} END",
        )
    )


# A journal that came with a file may name anything; taking apart changes what is the two topics', and nothing else.
_VITALITY = f"""
UPDATE memory_vitality v
SET rung = b.rung, live = b.live, pinned = b.pinned, pin_reason = b.pin_reason,
    {_fading_sql("v", floor="CASE WHEN b.rung > 0 THEN v.fade ELSE v.fade_floor END")}
FROM jsonb_populate_record(NULL::memory_vitality, %(vitality)s) b WHERE v.topic_id = b.topic_id AND b.topic_id = %(id)s
"""
_TOPIC = """
UPDATE memory_topic t
SET rung = (b.vitality->>'rung')::int, merged_into_id = NULL,
    categories = ARRAY(SELECT jsonb_array_elements_text(b.topic->'categories')),
    updated_at = CASE WHEN t.updated_at = (b.after->>'updated_at')::timestamptz
                      THEN (b.topic->>'updated_at')::timestamptz ELSE t.updated_at END
FROM (SELECT %(topic)s::jsonb AS topic, %(vitality)s::jsonb AS vitality, %(after)s::jsonb AS after) b
WHERE t.id = %(id)s
"""
_EDIT = """
INSERT INTO memory_topicedit (topic_id, at, before, actor)
SELECT t.id, %(now)s, jsonb_build_object('categories', t.categories), %(actor)s FROM memory_topic t
WHERE t.id = %(id)s AND to_jsonb(t.categories) <> (%(topic)s::jsonb)->'categories'
"""

_OWN_REVISIONS = """
SELECT ARRAY(SELECT f.id::text FROM memory_field f WHERE f.topic_id = ANY(%(topics)s)),
       ARRAY(SELECT r.id::text FROM memory_revision r JOIN memory_field f ON f.id = r.field_id
             WHERE r.id = ANY(%(ids)s::uuid[]) AND f.topic_id = ANY(%(topics)s))
"""
# First out of the way of each other, then to their places.
_REVISIONS = (
    """
UPDATE memory_revision r SET field_id = b.field, seq = b.seq + %(apart)s
FROM unnest(%(ids)s::uuid[], %(fields)s::uuid[], %(seqs)s::int[]) AS b (id, field, seq) WHERE r.id = b.id
""",
    "UPDATE memory_revision SET seq = seq - %(apart)s WHERE id = ANY(%(ids)s::uuid[])",
)

_FIELD = f"""
UPDATE memory_field f
SET topic_id = b.topic_id, last_seq = b.last_seq, cold_through = b.cold_through, detached = b.detached,
    {_fading_sql("f", floor="f.fade_floor")}
FROM jsonb_populate_recordset(NULL::memory_field, %(rows)s) b
WHERE f.id = b.id AND f.topic_id = ANY(%(topics)s) AND b.topic_id = ANY(%(topics)s)
"""

_SUMMARIES = """
UPDATE memory_fieldsummary SET withdrawn_at = NULL
WHERE id = ANY(%(ids)s::bigint[]) AND field_id IN (SELECT id FROM memory_field WHERE topic_id = ANY(%(topics)s))
"""

# A link that would then be there twice stays where it is.
_LINKS = """
UPDATE memory_link l SET {side}_id = %(topic)s
WHERE l.id = ANY(%(ids)s::bigint[]) AND l.{side}_id = ANY(%(topics)s) AND NOT EXISTS (
    SELECT 1 FROM memory_link x WHERE x.{side}_id = %(topic)s AND x.{other}_id = l.{other}_id AND x.kind = l.kind
)
"""

# The worker counts the words anew; what it counted last stays on record until then.
_SEARCH = (
    """
UPDATE memory_topicvector v SET embedding = b.embedding, model = b.model, text_hash = b.text_hash
FROM jsonb_populate_record(NULL::memory_topicvector, %(vector)s) b WHERE v.topic_id = b.topic_id AND b.topic_id = %(id)s
""",
    """
UPDATE memory_topicdocument d SET document = b.document, length = b.length, uncounted = true
FROM jsonb_populate_record(NULL::memory_topicdocument, %(document)s) b
WHERE d.topic_id = b.topic_id AND b.topic_id = %(id)s
""",
    """
UPDATE memory_topicmention m SET identifiers = b.identifiers, words = b.words, aliases = b.aliases
FROM jsonb_populate_record(NULL::memory_topicmention, %(mention)s) b
WHERE m.topic_id = b.topic_id AND b.topic_id = %(id)s
""",
)
_LOOK = """
WITH held AS MATERIALIZED (
    SELECT topic_id FROM memory_duplicatelook WHERE topic_id = ANY(%(topics)s) ORDER BY topic_id FOR UPDATE
)
UPDATE memory_duplicatelook l SET waiting = true FROM held WHERE l.topic_id = held.topic_id
"""

_USE = ("salience", "reinforced_at", "retrieval_count", "last_retrieved_at")
_KEYS = ("half_life", "fade", "fade_floor", "fields", "updated_at")


def rows_image(cursor: CursorWrapper, topic_id: uuid.UUID, *, joined: Sequence[uuid.UUID]) -> dict[str, Any]:
    """Return the rows of a locked topic that a merge may change, as they stand: its own, its vitality, its fields, and
    where the revisions of the fields in ``joined`` are. One query."""
    cursor.execute(_IMAGE, {"id": topic_id, "joined": list(joined)})
    found: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return found


def search_image(cursor: CursorWrapper, topic_id: uuid.UUID) -> dict[str, Any]:
    """Return what a topic is found by, as it stands: vector, document, mention. One query."""
    cursor.execute(_SEARCHED, {"id": topic_id})
    found: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return found


def merge_fingerprint(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> dict[str, dict[str, str]]:
    """Return what two topics hold by now, as hashes by topic. One query; reads their revisions."""
    cursor.execute(_FINGERPRINT, {"ids": list(ids)})
    return {topic_id: json.loads(said) for topic_id, said in cursor.fetchall()}


def revisions_place(cursor: CursorWrapper, places: Sequence[tuple[uuid.UUID | str, uuid.UUID | str, int]]) -> None:
    """Give revisions their fields and numbers: ``(revision, field, number)``. Two statements. No row comes or goes, and
    what a revision says stays."""
    if not places:
        return
    wanted: dict[str, Any] = {
        "ids": [str(place[0]) for place in places],
        "fields": [str(place[1]) for place in places],
        "seqs": [place[2] for place in places],
        "apart": APART,
    }
    for statement in _REVISIONS:
        cursor.execute(statement, wanted)


def merge_undo(cursor: CursorWrapper, run_id: uuid.UUID, actor: str, now: dt.datetime) -> tuple[list[int], Conflicts]:
    """Undo the merge of a run, whose row is locked. Returns the actions undone; or none, if a topic has changed since,
    and what happened to it. About twenty statements."""
    cursor.execute("SELECT topic_id FROM memory_forgetaction WHERE run_id = %s AND state = 'applied'", [run_id])
    topics = [row[0] for row in cursor.fetchall()]
    cursor.execute(_ACTIONS, {"run": run_id, "topics": topics})
    actions = [(*row[:3], *map(json.loads, row[3:])) for row in cursor.fetchall()]
    cursor.execute(_FIELDS_LOCK, {"topics": topics})
    print_now = merge_fingerprint(cursor, topics)
    conflicts = _conflicts(actions, print_now)
    if conflicts or not actions:
        return [], conflicts
    live = [topic_id for _id, topic_id, _action, _changes, before, _after, _now in actions if before["live"]]
    state_changes.live_set(cursor, live, live=True)
    for _id, topic_id, _action, changes, _before, after, present in actions:
        used = any(after[name] != present[name] for name in _USE)
        _rows_restore(cursor, topic_id, changes, after, topics=topics, used=used, actor=actor, now=now)
    for _id, topic_id, _action, changes, *_states in actions:
        _search_restore(cursor, topic_id, changes)
    revisions = [place for _id, _topic, _action, changes, *_rest in actions for place in changes["rows"]["revisions"]]
    cursor.execute(_OWN_REVISIONS, {"topics": topics, "ids": [place[0] for place in revisions]})
    fields, own = map(set, cursor.fetchone())
    revisions_place(
        cursor, [(place[0], place[1], int(place[2])) for place in revisions if place[0] in own and place[1] in fields]
    )
    cursor.execute(_LOOK, {"topics": topics})
    return [action[0] for action in actions], []


def _conflicts(actions: Sequence[Any], print_now: Mapping[str, Any]) -> Conflicts:
    return [
        (topic_id, why)
        for _id, topic_id, action, changes, _before, after, present in actions
        if (why := _why_not(topic_id, action, changes, after, present, print_now, actions))
    ]


def _why_not(
    topic_id: uuid.UUID,
    action: str,
    changes: Mapping[str, Any],
    after: Mapping[str, Any],
    present: Mapping[str, Any],
    print_now: Mapping[str, Any],
    actions: Sequence[Any],
) -> str:
    """Return what happened to a topic since it was merged or took one in; nothing if it is as that left it."""
    left_out = (*_USE, *_KEYS)
    if {k: v for k, v in after.items() if k not in left_out} != {k: v for k, v in present.items() if k not in left_out}:
        return drift_words({**present, **{k: v for k, v in after.items() if k not in _USE}}, dict(present))
    left = next(each[3]["left"] for each in actions if "left" in each[3])[str(topic_id)]
    return next((words for part, words in _CHANGED_WORDS.items() if left[part] != print_now[str(topic_id)][part]), "")


def _rows_restore(
    cursor: CursorWrapper,
    topic_id: uuid.UUID,
    changes: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    topics: list[uuid.UUID],
    used: bool,
    actor: str,
    now: dt.datetime,
) -> None:
    rows = changes["rows"]
    wanted: dict[str, Any] = {
        "id": topic_id,
        "used": used,
        "now": now,
        "actor": actor,
        "after": json.dumps(after),
        "topic": json.dumps(rows["topic"]),
        "vitality": json.dumps(rows["vitality"]),
        "rows": json.dumps(rows["fields"]),
        "topics": topics,
    }
    for statement in (_EDIT, _VITALITY, _TOPIC, _FIELD):
        cursor.execute(statement, wanted)
    if changes.get("withdrawn"):
        cursor.execute(_SUMMARIES, {"ids": changes["withdrawn"], "topics": topics})
    for side, other in (("source", "target"), ("target", "source")):
        if ids := changes.get("links", {}).get(side):
            cursor.execute(_LINKS.format(side=side, other=other), {"ids": ids, "topic": topic_id, "topics": topics})


def _search_restore(cursor: CursorWrapper, topic_id: uuid.UUID, changes: Mapping[str, Any]) -> None:
    found = changes.get("search") or {}
    for name, statement in zip(("vector", "document", "mention"), _SEARCH, strict=True):
        if found.get(name):
            cursor.execute(statement, {name: json.dumps(found[name]), "id": topic_id})
