"""Collects the content that a purge must erase outside the purged topics: passages, identifiers and ids. Texts that
reveal nothing (``Weight.NONE``), and texts that another topic still states, are not erased."""

import json
import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from django.db.backends.utils import CursorWrapper

from memory.erasure.redact_text import (
    Eraser,
    Passage,
    Weight,
    anchors_of,
    anchors_pattern,
    distinctive_words,
    names_of,
    passage_of,
    passage_weight,
    strings_of,
)
from memory.erasure.related_rows import DOCUMENTS, TEXT_ARRAYS, TEXTS, Belonging, Column
from memory.models.identities import ids_of_others
from memory.text.keys import Spans, keys_certain, keys_index, spans_hidden, spelled
from memory.text.names import words_index

# If more than this number of topics contain all words of a passage, these topics are not read. One of them is assumed
# to state the passage.
MAX_HOLDERS = 200
# The most patterns in a query. With more patterns, the query is slower than reading every row.
MAX_ANCHORS = 300

# The ends of sentences, and the pauses between the pieces of a sentence. All texts are cut by these rules, so the hash
# of a sentence is enough to find the sentence in a longer text.
_ENDS = re.compile(r"[.!?\u2026]+[\"'\u2019\u201d\u00bb)\]]*(?:\s+|$)|[\r\n]+|[\u3002\uff01\uff1f]+")
_PAUSES = re.compile(r"[:;]\s+|(?<!\s)\s+[-\u2013\u2014]+\s+")

# The texts in these tables are not memories.
_NOT_REMEMBERED = frozenset(
    {"memory_conversationwrite", "memory_forgetaction", "memory_shadowhit", "memory_topicmention", "memory_topicvector"}
)

_STILL_NAMED_SQL = """
SELECT DISTINCT each FROM memory_topicmention m CROSS JOIN LATERAL unnest(m.identifiers) each
WHERE m.identifiers && %(identifiers)s::text[] AND each = ANY(%(identifiers)s::text[])
"""
_ADDRESSES_SQL = """
SELECT address FROM (
    SELECT path AS address FROM memory_scope UNION ALL SELECT name FROM memory_apikey
    UNION ALL SELECT concat_ws(' ', username, email, first_name, last_name) FROM auth_user
) x WHERE %(anchors)s::text IS NULL OR octet_length(address) <> length(address) OR lower(address) ~ %(anchors)s
"""
_HOLDERS_SQL = """
SELECT d.place, m.topic_id
FROM jsonb_array_elements(%(words)s::jsonb) WITH ORDINALITY AS d (words, place)
CROSS JOIN LATERAL (
    SELECT topic_id FROM memory_topicmention
    WHERE words @> ARRAY(SELECT jsonb_array_elements_text(d.words)) LIMIT %(most)s
) m
"""
_STATED_SQL = """
SELECT t.id, t.title FROM memory_topic t WHERE t.id = ANY(%(ids)s)
UNION ALL SELECT t.id, t.summary FROM memory_topic t WHERE t.id = ANY(%(ids)s)
UNION ALL SELECT f.topic_id, x.text FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
    CROSS JOIN LATERAL (VALUES (r.value), (r.why_changed), (r.impact_expected)) x (text) WHERE f.topic_id = ANY(%(ids)s)
UNION ALL SELECT f.topic_id, s.text FROM memory_field f JOIN memory_fieldsummary s ON s.field_id = f.id
    WHERE f.topic_id = ANY(%(ids)s)
UNION ALL SELECT e.topic_id, x.value #>> '{}' FROM memory_topicedit e CROSS JOIN LATERAL jsonb_each(e.before) x
    WHERE e.topic_id = ANY(%(ids)s) AND jsonb_typeof(x.value) = 'string'
"""


@dataclass(slots=True)
class RemovedRows:
    """The texts, titles and ids of rows, read before the rows are deleted."""

    texts: set[str] = field(default_factory=set)
    titles: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ErasedContent:
    """The content that a purge erases. ``eraser`` masks it in all journals. ``strict`` masks the stated reason of the
    purge, including texts that other topics still state. The receipt stores hashes of ``passages`` and
    ``identifiers``. ``elsewhere`` counts the texts and identifiers of purged topics that other topics contain, too."""

    eraser: Eraser
    strict: Eraser
    passages: set[Passage]
    identifiers: set[str]
    elsewhere: dict[str, int]


def removed_rows_read(
    cursor: CursorWrapper, ids: Sequence[uuid.UUID], owned: Iterable[Belonging], columns: Sequence[Column]
) -> RemovedRows:
    """Read every text and id of the rows that will be deleted. At most one statement for each entry of ``owned``."""
    found = RemovedRows()
    for each in owned:
        of_table = [column for column in columns if column.of_project and column.table == each.table]
        keys = [column for column in of_table if column.data_type == "uuid" and column.key and not column.foreign]
        texts = [column for column in of_table if _is_memory_text(column)]
        if each.table == "memory_topic":
            keys = [column for column in of_table if column.name == "id"]
        if not keys and not texts:
            continue
        selected = ", ".join(f'"{column.name}"::text' for column in [*keys, *texts])
        cursor.execute(f"SELECT {selected} FROM {each.table} WHERE {each.where}", {"ids": list(ids)})
        for row in cursor.fetchall():
            found.ids.update(value for value in row[: len(keys)] if value)
            for column, value in zip(texts, row[len(keys) :], strict=True):
                if value:
                    _text_add(found, column, value)
    found.ids.update(map(str, ids))
    return found


def erased_content(cursor: CursorWrapper, found: RemovedRows, *, request_texts: Sequence[str]) -> ErasedContent:
    """Return the content to erase outside the purged topics: content of the deleted rows and of ``request_texts`` that
    no other topic contains. Must be called after the rows were deleted. At most six statements."""
    keys_by_text = {text: keys_certain(text) for text in {*found.texts, *request_texts}}
    # A text with nothing but identifiers has keys, so it needs no passage.
    texts = [
        text
        for text, keys in keys_by_text.items()
        if not keys or re.search(r"\w", spans_hidden(spelled(text), keys.values()))
    ]
    weights = {passage: passage_weight(passage) for passage in map(passage_of, texts)}
    asked = {word for text in request_texts for word in distinctive_words(text)}
    removed_words = {word for passage in map(passage_of, found.texts) for word in passage}
    names = {name for title in found.titles for name in names_of(title)} | {
        word for word in asked if word[0] in removed_words
    }
    names = {name for name in names if weights.get(name, Weight.NONE) is Weight.NONE}
    whole = {passage for passage, weight in weights.items() if weight is not Weight.NONE}
    # Each sentence is also searched for on its own, because another text may contain only one sentence of a long text.
    parts = {part for text in found.texts for part in parts_of(text)}
    whole |= parts
    still_stated = _still_stated(cursor, sorted(whole | names))
    passages = whole - still_stated
    identifiers = {keys for by_key in keys_by_text.values() for keys in _keys_by_place(by_key)}
    every_key = frozenset().union(*identifiers)
    still_named = _still_named(cursor, every_key)
    erased = {key for keys in identifiers if keys.isdisjoint(still_named) for key in keys}
    # The rows of the purged topics are already deleted. So an id that still exists belongs to something else: a run, a
    # job, or a field of another topic.
    ids = found.ids - {str(each) for each in ids_of_others(cursor, [uuid.UUID(each) for each in found.ids])}
    everything = {
        passage for passage in weights if sum(map(len, passage)) >= 4 and any(map(str.isalpha, "".join(passage)))
    }
    everything |= {passage_of(text) for text in request_texts} | names | parts
    return ErasedContent(
        eraser=Eraser(passages | (names - still_stated), erased, ids),
        strict=Eraser({passage for passage in everything if passage}, set(every_key), ids),
        passages=passages,
        identifiers=erased,
        elsewhere={
            name: times
            for name, times in (
                ("texts", len(still_stated & {passage_of(text) for text in found.texts if text} - names)),
                ("identifiers", sum(not keys.isdisjoint(still_named) for keys in identifiers)),
            )
            if times
        },
    )


def parts_of(text: str) -> set[Passage]:
    """Return the sentences of ``text``, and their pieces between colons, semicolons and dashes, as passages. Only
    passages of the weight LONG are included. Linear time."""
    parts = set()
    for sentence in _ENDS.split(text):
        for piece in {sentence, *_PAUSES.split(sentence)}:
            passage = passage_of(piece)
            if passage_weight(passage) is Weight.LONG:
                parts.add(passage)
    return parts


def _is_memory_text(column: Column) -> bool:
    if column.table in _NOT_REMEMBERED or column.key or column.kept:
        return False
    if column.table == "memory_topic":
        return column.name in ("title", "summary")
    if column.name.endswith(("_hash", "_by")) or column.name in ("method", "document", "counted", "differences"):
        return False
    return column.data_type in TEXTS | DOCUMENTS | TEXT_ARRAYS


def _text_add(found: RemovedRows, column: Column, value: str) -> None:
    if column.data_type in DOCUMENTS:
        found.texts.update(text for text, whole in strings_of(json.loads(value)) if whole)
        return
    found.texts.add(value)
    if column.label == "memory_topic.title":
        found.titles.add(value)


def _still_stated(cursor: CursorWrapper, passages: Sequence[Passage]) -> set[Passage]:
    """Return the passages that at least one topic still states. A short passage counts as stated if a topic contains
    all its words. A long passage counts as stated if it is a whole text or sentence of a topic."""
    if not passages:
        return set()
    words = [sorted(words_index(" ".join(passage))) for passage in passages]
    cursor.execute(_HOLDERS_SQL, {"words": json.dumps(words), "most": MAX_HOLDERS + 1})
    holders: dict[Passage, set[uuid.UUID]] = {}
    for place, topic_id in cursor.fetchall():
        holders.setdefault(passages[place - 1], set()).add(topic_id)
    stated = {
        passage
        for passage, topics in holders.items()
        if passage_weight(passage) is not Weight.LONG or len(topics) > MAX_HOLDERS
    }
    unsure = {passage: topics for passage, topics in holders.items() if passage not in stated}
    if unsure:
        by_topic: dict[uuid.UUID, set[Passage]] = {}
        cursor.execute(_STATED_SQL, {"ids": list(set().union(*unsure.values()))})
        for topic_id, text in cursor.fetchall():
            by_topic.setdefault(topic_id, set()).update((passage_of(text), *parts_of(text)))
        stated |= {p for p, topics in unsure.items() if any(p in by_topic.get(topic, ()) for topic in topics)}
    return stated


def _keys_by_place(keys: Spans) -> set[frozenset[str]]:
    """Return the keys of each identifier of a text. A telephone number has a key without its country code, too."""
    places: dict[tuple[int, int], set[str]] = {}
    for key, place in keys.items():
        places.setdefault(place, set()).add(key)
    return set(map(frozenset, places.values()))


def _still_named(cursor: CursorWrapper, search_keys: Collection[str]) -> set[str]:
    """Return those of the keys that still occur in other topics, or in names of scopes, API keys or accounts."""
    if not search_keys:
        return set()
    cursor.execute(_STILL_NAMED_SQL, {"identifiers": sorted(search_keys)})
    named: set[str] = {row[0] for row in cursor.fetchall()}
    cursor.execute(_ADDRESSES_SQL, {"anchors": anchors_pattern(anchors_of((), search_keys, most=MAX_ANCHORS))})
    for (address,) in cursor.fetchall():
        # Each segment of a path may be an identifier.
        for part in (address, *address.split("/")):
            named |= keys_index(part)
    return named
