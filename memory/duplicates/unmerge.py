"""Undo of a merge: both topics become byte for byte what they were before, or nothing is changed.

A merge stores the former rows (``rows_image``) and a fingerprint of the result (``merge_fingerprint``). The rows can be
restored if the fingerprint is still the same. If the survivor was retrieved since the merge, it keeps its salience.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.duplicates.pair_locks import FIELDS_LOCK_SQL
from memory.forgetting.topic_state import USE, drift_words
from memory.forgetting.undo import Conflicts, LockedAction, fading_sql

# Added to the numbers of revisions while the numbers are exchanged. No field has so many revisions.
APART = 1_000_000_000

_IMAGE_SQL = """
SELECT jsonb_build_object(
    'fields', coalesce((SELECT jsonb_agg(to_jsonb(f) ORDER BY f.id) FROM memory_field f WHERE f.topic_id = t.id), '[]'),
    'revisions', coalesce((
        SELECT jsonb_agg(jsonb_build_array(r.id, r.field_id, r.seq) ORDER BY r.field_id, r.seq)
        FROM memory_revision r JOIN memory_field f ON f.id = r.field_id
        WHERE f.topic_id = t.id AND r.field_id = ANY(%(joined)s)), '[]')
)
FROM memory_topic t WHERE t.id = %(id)s
"""
_SEARCHED_SQL = """
SELECT jsonb_build_object(
    'vector', (SELECT to_jsonb(x) FROM memory_topicvector x WHERE x.topic_id = %(id)s),
    'document', (SELECT to_jsonb(x) FROM memory_topicdocument x WHERE x.topic_id = %(id)s),
    'mention', (SELECT to_jsonb(x) FROM memory_topicmention x WHERE x.topic_id = %(id)s)
)
"""

# Hashes the contents of the topics, but not how often they were used.
_FINGERPRINT_SQL = """
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


# Two steps, because two revisions of a field must never have the same number, not even for a moment.
_REVISIONS = (
    """
UPDATE memory_revision r SET field_id = b.field, seq = b.seq + %(apart)s
FROM unnest(%(ids)s::uuid[], %(fields)s::uuid[], %(seqs)s::int[]) AS b (id, field, seq) WHERE r.id = b.id
""",
    "UPDATE memory_revision SET seq = seq - %(apart)s WHERE id = ANY(%(ids)s::uuid[])",
)

_FIELD_SQL = f"""
UPDATE memory_field f
SET topic_id = b.topic_id, last_seq = b.last_seq, cold_through = b.cold_through, detached = b.detached,
    {fading_sql("f", used="%(used)s", floor="f.fade_floor")}
FROM jsonb_populate_recordset(NULL::memory_field, %(rows)s) b
WHERE f.id = b.id AND f.topic_id = ANY(%(topics)s) AND b.topic_id = ANY(%(topics)s)
"""

# A link is not moved if the topic already has the same link.
_LINKS_SQL = """
UPDATE memory_link l SET {side}_id = %(topic)s
WHERE l.id = ANY(%(ids)s::bigint[]) AND l.{side}_id = ANY(%(topics)s) AND NOT EXISTS (
    SELECT 1 FROM memory_link x WHERE x.{side}_id = %(topic)s AND x.{other}_id = l.{other}_id AND x.kind = l.kind
)
"""

# The worker counts the words of the document again later. Until then, the last count stays.
_SEARCH = (
    """
UPDATE memory_topicvector v SET embedding = b.embedding, model = b.model, text_hash = b.text_hash
FROM jsonb_populate_record(NULL::memory_topicvector, %(vector)s) b WHERE v.topic_id = b.topic_id AND b.topic_id = %(id)s
""",
    """
UPDATE memory_topicdocument d SET document = b.document, length = b.length, uncounted = true,
    -- A copy from before an upgrade does not have the column.
    outdated = coalesce(b.outdated, true)
FROM jsonb_populate_record(NULL::memory_topicdocument, %(document)s) b
WHERE d.topic_id = b.topic_id AND b.topic_id = %(id)s
""",
    """
UPDATE memory_topicmention m SET identifiers = b.identifiers, words = b.words, aliases = b.aliases
FROM jsonb_populate_record(NULL::memory_topicmention, %(mention)s) b
WHERE m.topic_id = b.topic_id AND b.topic_id = %(id)s
""",
)
_LOOK_SQL = """
WITH held AS MATERIALIZED (
    SELECT topic_id FROM memory_duplicatelook WHERE topic_id = ANY(%(topics)s) ORDER BY topic_id FOR UPDATE
)
UPDATE memory_duplicatelook l SET waiting = true FROM held WHERE l.topic_id = held.topic_id
"""

_KEYS = ("half_life", "wall", "fade", "fade_floor", "fields", "updated_at")


def rows_image(cursor: CursorWrapper, topic_id: uuid.UUID, *, joined: Sequence[uuid.UUID]) -> dict[str, Any]:
    """Return the field rows of a locked topic. For the fields in ``joined``, also return the id, field and number of
    each revision. One query."""
    cursor.execute(_IMAGE_SQL, {"id": topic_id, "joined": list(joined)})
    found: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return found


def search_image(cursor: CursorWrapper, topic_id: uuid.UUID) -> dict[str, Any]:
    """Return the rows by which a search finds a topic: vector, document, mention. One query."""
    cursor.execute(_SEARCHED_SQL, {"id": topic_id})
    found: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return found


def merge_fingerprint(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> dict[str, dict[str, str]]:
    """Return hashes of the contents of topics, by topic. One query, which reads all their revisions."""
    cursor.execute(_FINGERPRINT_SQL, {"ids": list(ids)})
    return {topic_id: json.loads(hashes) for topic_id, hashes in cursor.fetchall()}


def revisions_move(cursor: CursorWrapper, places: Sequence[tuple[uuid.UUID | str, uuid.UUID | str, int]]) -> None:
    """Set the fields and numbers of revisions. ``places`` are triples (revision id, field id, number). Two
    statements."""
    if not places:
        return
    ids, fields, seqs = map(list, zip(*places, strict=True))
    wanted: dict[str, Any] = {"ids": list(map(str, ids)), "fields": list(map(str, fields)), "seqs": seqs}
    for statement in _REVISIONS:
        cursor.execute(statement, {**wanted, "apart": APART})


def merge_conflicts(cursor: CursorWrapper, actions: Sequence[LockedAction]) -> Conflicts:
    """Return the merged topics that have changed since their merges. The caller locks the topics; this locks their
    fields. Two statements for any number of merges."""
    topics = [each.topic_id for each in actions]
    # Vectors and documents are locked only when they are changed.
    cursor.execute(FIELDS_LOCK_SQL, {"topics": topics})
    present = merge_fingerprint(cursor, topics)
    merged: dict[str, Any] = {}
    for each in actions:
        merged |= json.loads(each.changes).get("left", {})
    return [
        (each.topic_id, why)
        for each in actions
        if (why := _change_since(each, merged.get(str(each.topic_id), {}), present[str(each.topic_id)]))
    ]


def merge_undo(cursor: CursorWrapper, actions: Sequence[LockedAction]) -> None:
    """Restore the fields, revisions, links and search rows of two merged topics without conflicts. The caller locks the
    topics and restores their states. About thirteen statements."""
    topics = [each.topic_id for each in actions]
    changes = {each.topic_id: json.loads(each.changes) for each in actions}
    for each in actions:
        after, state = json.loads(each.after), json.loads(each.present)
        used = any(after[name] != state[name] for name in USE)
        fields = json.dumps(changes[each.topic_id]["rows"]["fields"])
        cursor.execute(_FIELD_SQL, {"used": used, "rows": fields, "topics": topics})
        for side, other in (("source", "target"), ("target", "source")):
            if ids := changes[each.topic_id].get("links", {}).get(side):
                cursor.execute(
                    _LINKS_SQL.format(side=side, other=other), {"ids": ids, "topic": each.topic_id, "topics": topics}
                )
        found = changes[each.topic_id].get("search") or {}
        for name, statement in zip(("vector", "document", "mention"), _SEARCH, strict=True):
            if found.get(name):
                cursor.execute(statement, {name: json.dumps(found[name]), "id": each.topic_id})
    revisions_move(cursor, [place for each in changes.values() for place in each["rows"]["revisions"]])
    cursor.execute(_LOOK_SQL, {"topics": topics})


def _change_since(action: LockedAction, merged: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return what happened to a topic since the merge; empty if nothing has changed."""
    after, present = json.loads(action.after), json.loads(action.present)
    left_out = (*USE, *_KEYS)
    if {k: v for k, v in after.items() if k not in left_out} != {k: v for k, v in present.items() if k not in left_out}:
        return drift_words({**present, **{k: v for k, v in after.items() if k not in USE}}, present)
    return next((words for part, words in _CHANGED_WORDS.items() if merged.get(part) != now[part]), "")
