"""Brings a batch of lines into the store: statements for each sort, a constant number whatever it holds.

Rows are written as they stand in the file, except for the numbers of links, summaries and accesses, which are moved up
where the store has some of its own (``marks.Ground``), wherever they stand. What can be made from the text is made
anew: documents, mentions, and vectors that are missing or of another model.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.db.backends.utils import CursorWrapper

from memory.embedding import embedder_get, text_hash
from memory.ingest.load import known_load
from memory.ingest.mentions import Mentions, mentions_add, mentions_index
from memory.ingest.write import documents_write
from memory.transfer import shape
from memory.transfer.lines import Lines
from memory.transfer.marks import RUN_SEEN, Ground, lines_counted, lines_stage
from memory.transfer.shape import Rows


def lines_bring(cursor: CursorWrapper, batch: Lines, ground: Ground) -> dict[str, int]:
    """Bring a batch and return what became of its lines, by reason. At most thirty statements. Needs a transaction, in
    which no purge is at work."""
    lines_stage(cursor, batch, ground)
    parameters = ground.parameters()
    for statement in _INSERTS.get(batch.sort, ()):
        cursor.execute(statement, parameters)
    if after := _AFTER.get(batch.sort):
        after(cursor)
    return lines_counted(cursor)


def insert_statements() -> dict[str, Sequence[str]]:
    """Return by sort the statements that bring its rows."""
    return _INSERTS


def runs_open(cursor: CursorWrapper) -> dict[str, str]:
    """Return the runs of the batch that are at work or wait for a yes, with their status. One statement."""
    cursor.execute(
        "SELECT line->>'id', line->>'status' FROM transfer_line l WHERE l.why IS NULL "
        "AND line->>'status' IN ('applying', 'held')"
    )
    return dict(cursor.fetchall())


def _insert(rows: Rows, *, given: dict[str, str] | None = None, end: str = "") -> str:
    """Return the statement that brings a line as a row of its table."""
    names, values = rows.insert_sql("x", given=given)
    return (
        f"INSERT INTO {rows.table} ({names}) SELECT {values} FROM transfer_line l "
        f"CROSS JOIN LATERAL jsonb_to_record(l.line) AS x ({rows.record_sql()}) WHERE l.why IS NULL ORDER BY l.n {end}"
    )


def _insert_listed(rows: Rows, member: str, *, given: dict[str, str], below: str = "", where: str = "true") -> str:
    """Return the statement that brings the objects of a list in a line as rows. ``below`` is a list in whose objects
    ``o.one`` the list stands."""
    names, values = rows.insert_sql("x", given=given)
    inner = "l.line"
    outer = ""
    if below:
        outer, inner = f"CROSS JOIN LATERAL jsonb_array_elements(l.line->'{below}') WITH ORDINALITY o (one, n)", "o.one"
    order = "l.n, o.n, e.n" if below else "l.n, e.n"
    return (
        f"INSERT INTO {rows.table} ({names}) SELECT {values} FROM transfer_line l {outer} "
        f"CROSS JOIN LATERAL jsonb_array_elements({inner}->'{member}') WITH ORDINALITY e (one, n) "
        f"CROSS JOIN LATERAL jsonb_to_record(e.one) AS x ({rows.record_sql()}) "
        f"WHERE l.why IS NULL AND {where} ORDER BY {order}"
    )


def _moved(numbers: str, by: str) -> str:
    """Return a list of numbers in JSON, each moved up."""
    return f"(SELECT coalesce(jsonb_agg(z::bigint + {by}), '[]') FROM jsonb_array_elements_text({numbers}) z)"


def _member_moved(document: str, member: str, moved: str, sort: str) -> str:
    return (
        f"CASE WHEN jsonb_typeof({document}->'{member}') = '{sort}' THEN jsonb_build_object('{member}', {moved}) "
        "ELSE '{}' END"
    )


_SOURCES, _TARGETS = (_moved(f"x.changes->'links'->'{side}'", "%(link)s") for side in ("source", "target"))
_SIDES = f"'source', {_SOURCES}, 'target', {_TARGETS}"
# What an undo goes by: summaries and links that the action made or moved.
_CHANGES = (
    "CASE WHEN %(link)s = 0 AND %(summary)s = 0 THEN x.changes ELSE x.changes || "
    + " || ".join(
        (
            _member_moved("x.changes", "summaries", _moved("x.changes->'summaries'", "%(summary)s"), "array"),
            _member_moved("x.changes", "withdrawn", _moved("x.changes->'withdrawn'", "%(summary)s"), "array"),
            _member_moved("x.changes", "link_made", "to_jsonb((x.changes->>'link_made')::bigint + %(link)s)", "number"),
            _member_moved("x.changes", "links", f"jsonb_build_object({_SIDES})", "object"),
        )
    )
    + " END"
)
_AFTERWARDS = (
    "CASE WHEN %(link)s = 0 OR x.action NOT IN ('superseded', 'supersedes') THEN x.after ELSE x.after || "
    + _member_moved("x.after", "link", "to_jsonb((x.after->>'link')::bigint + %(link)s)", "number")
    + " END"
)

SCOPES = """
INSERT INTO memory_scope (path)
SELECT DISTINCT l.line->>'scope' FROM transfer_line l
WHERE l.why IS NULL AND NOT EXISTS (SELECT 1 FROM memory_scope s WHERE s.path = l.line->>'scope')
ORDER BY 1 ON CONFLICT (path) DO NOTHING
"""
_IMPORTED = """
INSERT INTO memory_importedtopic (topic_id, job_id)
SELECT (l.line->>'id')::uuid, %(job)s::uuid FROM transfer_line l WHERE l.why IS NULL
"""
_OWN = "SELECT t.id, t.scope_id, t.kind, t.created_at, t.rung FROM memory_topic t WHERE t.id = (l.line->>'id')::uuid"


def _vitality() -> str:
    given = {
        "topic_id": "t.id",
        "scope_id": "t.scope_id",
        "kind": "t.kind",
        "created_at": "t.created_at",
        "rung": "t.rung",
    }
    names, values = shape.VITALITY.insert_sql("x", given=given)
    return (
        f"INSERT INTO memory_vitality ({names}) SELECT {values} FROM transfer_line l CROSS JOIN LATERAL ({_OWN}) t "
        f"CROSS JOIN LATERAL jsonb_to_record(l.line->'vitality') AS x ({shape.VITALITY.record_sql()}) "
        "WHERE l.why IS NULL ORDER BY t.id"
    )


# In an empty store nothing new can be found: what had been compared with its like has been.
_LOOKS = f"""
INSERT INTO memory_duplicatelook (topic_id, scope_id, text_hash, waiting)
SELECT t.id, t.scope_id, coalesce(l.line->>'looked', ''), NOT %(fresh)s OR l.line->>'looked' IS NULL
FROM transfer_line l CROSS JOIN LATERAL ({_OWN}) t WHERE l.why IS NULL ORDER BY t.id
"""

_REFERENCES = """
UPDATE memory_revision r SET ref_topic_id = (l.line->>'to')::uuid
FROM transfer_line l
WHERE l.why IS NULL AND r.id = (l.line->>'revision')::uuid AND r.ref_topic_id IS NULL
  AND EXISTS (SELECT 1 FROM memory_field f WHERE f.id = r.field_id AND f.topic_id = (l.line->>'topic')::uuid)
"""
# What was merged into a topic that is not here is out of every query, and has to be found by whoever restores it.
_MERGED = (
    """
UPDATE memory_topic t SET merged_into_id = (l.line->>'into')::uuid
FROM transfer_line l WHERE l.why IS NULL AND t.id = (l.line->>'topic')::uuid
""",
    """
UPDATE memory_topic t SET released_at = t.updated_at
FROM transfer_line l
WHERE l.why IN ('missing', 'erased') AND t.id = (l.line->>'topic')::uuid AND t.merged_into_id IS NULL
  AND EXISTS (SELECT 1 FROM memory_importedtopic m WHERE m.topic_id = t.id AND m.job_id = %(job)s)
""",
    # Whoever asks for what is named in a topic finds what has taken it in, directly or through another.
    """
WITH RECURSIVE pair (low, high) AS (
    SELECT (l.line->>'topic')::uuid, (l.line->>'into')::uuid FROM transfer_line l WHERE l.why IS NULL
), up (low, high) AS (
    SELECT low, high FROM pair
    UNION
    SELECT up.low, t.merged_into_id FROM up JOIN memory_topic t ON t.id = up.high WHERE t.merged_into_id IS NOT NULL
), down (low, high) AS (
    SELECT low, high FROM up
    UNION
    SELECT t.id, down.high FROM down JOIN memory_topic t ON t.merged_into_id = down.low
), said AS (
    SELECT d.high, array_agg(DISTINCT m.topic_id) AS those FROM down d JOIN memory_topicmention m ON m.topic_id = d.low
    GROUP BY d.high
)
UPDATE memory_topicmention m SET
    identifiers = ARRAY(SELECT DISTINCT z COLLATE "C" FROM memory_topicmention o, unnest(o.identifiers) z
                        WHERE o.topic_id = ANY(said.those || m.topic_id) ORDER BY 1),
    words = ARRAY(SELECT DISTINCT z COLLATE "C" FROM memory_topicmention o, unnest(o.words) z
                  WHERE o.topic_id = ANY(said.those || m.topic_id) ORDER BY 1),
    aliases = ARRAY(SELECT DISTINCT z COLLATE "C" FROM memory_topicmention o, unnest(o.aliases) z
                    WHERE o.topic_id = ANY(said.those || m.topic_id) ORDER BY 1)
FROM said WHERE m.topic_id = said.high
""",
)

# Of topics that were there before, the log tells what it told.
_TOPIC_IDS = """
CASE WHEN %(fresh)s THEN x.topic_ids ELSE ARRAY(
    SELECT z FROM unnest(x.topic_ids) WITH ORDINALITY u (z, n)
    WHERE EXISTS (SELECT 1 FROM memory_importedtopic m WHERE m.topic_id = z AND m.job_id = %(job)s)
       OR NOT EXISTS (SELECT 1 FROM memory_topic t WHERE t.id = z) ORDER BY n) END
"""
_FIELD_IDS = """
CASE WHEN %(fresh)s THEN x.field_ids ELSE ARRAY(
    SELECT z FROM unnest(x.field_ids) WITH ORDINALITY u (z, n)
    WHERE EXISTS (SELECT 1 FROM memory_field f JOIN memory_importedtopic m ON m.topic_id = f.topic_id
                  WHERE f.id = z AND m.job_id = %(job)s) ORDER BY n) END
"""
_WATERMARK = """
ON CONFLICT (name) DO UPDATE
SET position = greatest(memory_watermark.position, excluded.position), taken = memory_watermark.taken + excluded.taken
"""

TOPIC_NEW = (
    "EXISTS (SELECT 1 FROM memory_importedtopic m WHERE m.topic_id = (e.one->>'topic_id')::uuid AND m.job_id = %(job)s)"
)
_RUN_THERE = f"(SELECT o.id FROM memory_forgetrun o WHERE o.id = x.run_id AND {RUN_SEEN})"
_OF_LINE = "(l.line->>'id')::uuid"

_INSERTS: dict[str, Sequence[str]] = {
    "policy": (_insert_listed(shape.POLICY_VERSION, "versions", given={"scope": "l.line->>'scope'"}),),
    "topic": (
        SCOPES,
        _insert(shape.TOPIC),
        _IMPORTED,
        _vitality(),
        _insert_listed(shape.EDIT, "edits", given={"topic_id": _OF_LINE}),
        _insert_listed(shape.FIELD, "fields", given={"topic_id": _OF_LINE}),
        _insert_listed(shape.REVISION, "revisions", given={"field_id": "(o.one->>'id')::uuid"}, below="fields"),
        _insert_listed(
            shape.SUMMARY,
            "summaries",
            below="fields",
            given={"id": "x.id + %(summary)s", "field_id": "(o.one->>'id')::uuid"},
        ),
        _LOOKS,
    ),
    "history": (_insert_listed(shape.REVISION, "revisions", given={"field_id": "(l.line->>'field')::uuid"}),),
    "reference": (_REFERENCES,),
    "merged": _MERGED,
    "link": (
        _insert(shape.LINK, given={"id": "x.id + %(link)s"}, end="ON CONFLICT (source_id, target_id, kind) DO NOTHING"),
    ),
    "run": (
        _insert(
            shape.RUN, given={"status": "CASE WHEN x.status IN ('applying', 'held') THEN 'planned' ELSE x.status END"}
        ),
    ),
    "action": (_insert(shape.ACTION, given={"changes": _CHANGES}, end="ON CONFLICT (run_id, place) DO NOTHING"),),
    "pair": (
        _insert(
            shape.PAIR,
            given={
                "run_id": _RUN_THERE,
                "survivor_id": "CASE WHEN x.survivor_id IN (x.one_id, x.other_id) THEN x.survivor_id END",
            },
            end="ON CONFLICT DO NOTHING",
        ),
    ),
    "access": (
        _insert(shape.ACCESS, given={"id": "x.id + %(access)s", "topic_ids": _TOPIC_IDS, "field_ids": _FIELD_IDS}),
    ),
    "shadow": (_insert(shape.SHADOW, given={"access_id": "x.access_id + %(access)s"}, end="ON CONFLICT DO NOTHING"),),
    "watermark": (_insert(shape.WATERMARK, given={"position": "x.position + %(access)s"}, end=_WATERMARK),),
    "receipt": (_insert(shape.RECEIPT),),
    "audit": (_insert(shape.AUDIT, given={"after": _AFTERWARDS}),),
    "conversation": (
        _insert(shape.CONVERSATION, given={"identity": "''"}),
        _insert_listed(shape.TURN, "told", given={"conversation_id": _OF_LINE}),
        _insert_listed(
            shape.WRITE,
            "writes",
            where=TOPIC_NEW,
            given={"conversation_id": _OF_LINE, "link_id": "x.link_id + %(link)s"},
        ),
    ),
}


_BROUGHT_TOPICS = """
SELECT (l.line->>'id')::uuid, v.scope_id, v.live FROM transfer_line l
JOIN memory_vitality v ON v.topic_id = (l.line->>'id')::uuid WHERE l.why IS NULL
"""
# What the topic was found with when it was merged; its words are those of fields that are elsewhere by now.
_DOCUMENTS = """
UPDATE memory_topicdocument d
SET document = (l.line->>'document')::tsvector,
    length = (SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest((l.line->>'document')::tsvector))
FROM transfer_line l
WHERE l.why IS NULL AND l.line->>'document' IS NOT NULL AND d.topic_id = (l.line->>'id')::uuid
"""
_MENTIONS = f"""
UPDATE memory_topicmention m SET identifiers = x.identifiers, words = x.words, aliases = x.aliases
FROM transfer_line l CROSS JOIN LATERAL jsonb_to_record(l.line->'mention') AS x ({shape.MENTION.record_sql()})
WHERE l.why IS NULL AND jsonb_typeof(l.line->'mention') = 'object' AND m.topic_id = (l.line->>'id')::uuid
"""
# A vector is the text's and the model's, or it is made anew.
_VECTORS = """
INSERT INTO memory_topicvector (topic_id, scope_id, live, model, text_hash, embedding)
SELECT v.topic_id, v.scope_id, v.live, %(model)s,
       CASE WHEN l.line->>'document' IS NULL THEN d.text_hash ELSE coalesce(w.text_hash, d.text_hash) END,
       CASE WHEN w.model = %(model)s AND (w.text_hash = d.text_hash OR l.line->>'document' IS NOT NULL)
             AND jsonb_array_length(w.embedding::jsonb) = %(dimension)s THEN w.embedding::vector END
FROM transfer_line l
JOIN unnest(%(ids)s::uuid[], %(hashes)s::text[]) AS d (id, text_hash) ON d.id = (l.line->>'id')::uuid
JOIN memory_vitality v ON v.topic_id = d.id
LEFT JOIN LATERAL jsonb_to_record(CASE WHEN jsonb_typeof(l.line->'vector') = 'object' THEN l.line->'vector' END)
     AS w (model text, text_hash text, embedding text) ON true
WHERE l.why IS NULL ORDER BY d.id
"""


def _topics_index(cursor: CursorWrapper) -> None:
    """Make what the topics of the batch are found by."""
    cursor.execute(_BROUGHT_TOPICS)
    found: dict[uuid.UUID, tuple[int, bool]] = {row[0]: (row[1], row[2]) for row in cursor.fetchall()}
    if not found:
        return
    known = known_load(changed=found, read=[], lock=False).topics
    texts = {topic_id: known[topic_id].text() for topic_id in sorted(found)}
    documents_write(cursor, [(topic_id, *found[topic_id], text.document()) for topic_id, text in texts.items()])
    cursor.execute(_DOCUMENTS)
    cursor.execute(
        _VECTORS,
        {
            "ids": list(texts),
            "hashes": [text_hash(text.embedded()) for text in texts.values()],
            "model": embedder_get().model_name,
            "dimension": settings.MEMSTATE_EMBEDDING_DIMENSION,
        },
    )
    mentions_index(cursor, {topic_id: found[topic_id][0] for topic_id in texts})
    cursor.execute(_MENTIONS)


def _histories_index(cursor: CursorWrapper) -> None:
    """Add what older revisions name to what their topics are asked for by."""
    cursor.execute(
        "SELECT (l.line->>'topic')::uuid, e.one->>'value', e.one->>'why_changed', e.one->>'impact_expected' "
        "FROM transfer_line l CROSS JOIN LATERAL jsonb_array_elements(l.line->'revisions') e (one) WHERE l.why IS NULL"
    )
    said: dict[uuid.UUID, Mentions] = {}
    for topic_id, *texts in cursor.fetchall():
        said.setdefault(topic_id, Mentions()).read(texts)
    if said:
        mentions_add(cursor, said)


_AFTER: dict[str, Callable[[CursorWrapper], Any]] = {"topic": _topics_index, "history": _histories_index}
