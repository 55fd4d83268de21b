"""What a purge erases, in a form in which it can be looked for elsewhere: passages, identifiers and ids.

Three questions decide what is looked for. Does it say anything (``redaction``)? Does anybody else still say it?
Then it is not erased, and whoever reads of it in a journal may read of the others. And is it whole or only a name?
"""

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.backends.utils import CursorWrapper

from memory.erasure.redact_text import (
    Eraser,
    Passage,
    Weight,
    anchors_of,
    anchors_pattern,
    identifier_core,
    identifiers_strong,
    names_of,
    passage_of,
    passage_weight,
    strings_of,
    words_telling,
)
from memory.erasure.related_rows import DOCUMENTS, TEXT_ARRAYS, TEXTS, Belonging, Column
from memory.text.names import words_index

# Whoever says all words of a passage may say it whole; of more than these, somebody is taken to.
MOST_HOLDERS = 200
# With more patterns than these, reading every row is cheaper than asking the database which to read.
MOST_ANCHORS = 300

LEAST_CORE = 2

# Where a sentence ends, and where a piece of one may. Whoever wrote the text, it is cut at the same places each time:
# a sentence is found in a longer text by its hash alone.
_ENDS = re.compile(r"[.!?\u2026]+[\"'\u2019\u201d\u00bb)\]]*(?:\s+|$)|[\r\n]+|[\u3002\uff01\uff1f]+")
_PAUSES = re.compile(r"[:;]\s+|\s+[-\u2013\u2014]+\s+")

# Of these tables not every text is one that somebody had remembered.
_NOT_REMEMBERED = frozenset(
    {"memory_conversationwrite", "memory_forgetaction", "memory_shadowhit", "memory_topicmention", "memory_topicvector"}
)

_STILL_NAMED = """
SELECT DISTINCT each FROM memory_topicmention m CROSS JOIN LATERAL unnest(m.identifiers) each
WHERE m.identifiers && %(identifiers)s::text[] AND each = ANY(%(identifiers)s::text[])
"""
_ADDRESSES = """
SELECT address FROM (
    SELECT path AS address FROM memory_scope UNION ALL SELECT name FROM memory_apikey
    UNION ALL SELECT concat_ws(' ', username, email, first_name, last_name) FROM auth_user
) x WHERE %(anchors)s::text IS NULL OR octet_length(address) <> length(address) OR lower(address) ~ %(anchors)s
"""
_HOLDERS = """
SELECT d.place, m.topic_id
FROM jsonb_array_elements(%(words)s::jsonb) WITH ORDINALITY AS d (words, place)
CROSS JOIN LATERAL (
    SELECT topic_id FROM memory_topicmention
    WHERE words @> ARRAY(SELECT jsonb_array_elements_text(d.words)) LIMIT %(most)s
) m
"""
_SAID = """
SELECT t.id, t.title FROM memory_topic t WHERE t.id = ANY(%(ids)s)
UNION ALL SELECT t.id, t.summary FROM memory_topic t WHERE t.id = ANY(%(ids)s)
UNION ALL SELECT f.topic_id, x.said FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
    CROSS JOIN LATERAL (VALUES (r.value), (r.why_changed), (r.impact_expected)) x (said) WHERE f.topic_id = ANY(%(ids)s)
UNION ALL SELECT f.topic_id, s.text FROM memory_field f JOIN memory_fieldsummary s ON s.field_id = f.id
    WHERE f.topic_id = ANY(%(ids)s)
UNION ALL SELECT e.topic_id, x.value #>> '{}' FROM memory_topicedit e CROSS JOIN LATERAL jsonb_each(e.before) x
    WHERE e.topic_id = ANY(%(ids)s) AND jsonb_typeof(x.value) = 'string'
"""


@dataclass(slots=True)
class Found:
    """What was read of the rows before they went."""

    texts: set[str] = field(default_factory=set)
    titles: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Erased:
    """``eraser`` masks journals of everybody, ``strict`` the reason of this purge alone: it also takes out what others
    still say. ``passages`` and ``identifiers`` are what the receipt proves to be gone."""

    eraser: Eraser
    strict: Eraser
    passages: set[Passage]
    identifiers: set[str]


def found_read(
    cursor: CursorWrapper, ids: Sequence[uuid.UUID], owned: Iterable[Belonging], columns: Sequence[Column]
) -> Found:
    """Read every text and id of the rows that are about to go. A statement for each table that belongs to topics."""
    found = Found()
    for each in owned:
        mine = [column for column in columns if column.ours and column.table == each.table]
        keys = [column for column in mine if column.sort == "uuid" and column.key and not column.foreign]
        texts = [column for column in mine if _is_remembered(column)]
        if each.table == "memory_topic":
            keys = [column for column in mine if column.name == "id"]
        if not keys and not texts:
            continue
        wanted = ", ".join(f'"{column.name}"::text' for column in [*keys, *texts])
        cursor.execute(f"SELECT {wanted} FROM {each.table} WHERE {each.where}", {"ids": list(ids)})
        for row in cursor.fetchall():
            found.ids.update(value for value in row[: len(keys)] if value)
            for column, value in zip(texts, row[len(keys) :], strict=True):
                if value:
                    _note(found, column, value)
    found.ids.update(map(str, ids))
    return found


def erased_make(cursor: CursorWrapper, found: Found, *, said: Sequence[str]) -> Erased:
    """Return what is to be looked for, once the rows are gone: what nobody else says or names. Five statements."""
    wanted = {text: passage_of(text) for text in {*found.texts, *said}}
    weighed = {passage: passage_weight(passage) for passage in wanted.values()}
    asked = {word for text in said for word in words_telling(text)}
    spoken = {word for passage in map(passage_of, found.texts) for word in passage}
    names = {name for title in found.titles for name in names_of(title)} | {word for word in asked if word[0] in spoken}
    names = {name for name in names if weighed.get(name, Weight.NONE) is Weight.NONE}
    whole = {passage for passage, weight in weighed.items() if weight is not Weight.NONE}
    # Of a long text, whoever has kept one sentence has kept something of it.
    parts = {part for text in found.texts for part in parts_of(text)}
    whole |= parts
    held = _held(cursor, sorted(whole | names))
    passages = whole - held
    named = {each for text in {*found.texts, *said} for each in identifiers_strong(text)}
    # Of two signs at least: a code "0" singles out nobody.
    named = {each for each in named if (core := identifier_core(each.key)) is None or len(core) >= LEAST_CORE}
    others = _still_named(cursor, {key for each in named for key in each.sought})
    gone = {key for each in named if each.sought.isdisjoint(others) for key in each.stored}
    everything = {passage for passage in weighed if sum(map(len, passage)) >= 4 and _has_letter(passage)}
    everything |= {passage_of(text) for text in said} | names | parts
    return Erased(
        eraser=Eraser(passages | (names - held), gone, found.ids),
        strict=Eraser(
            {passage for passage in everything if passage}, {key for each in named for key in each.stored}, found.ids
        ),
        passages=passages,
        identifiers=gone,
    )


def parts_of(text: str) -> set[Passage]:
    """Return the sentences of ``text``, and their pieces at colons and dashes, of those that say enough by themselves.
    Linear."""
    parts = set()
    for sentence in _ENDS.split(text):
        for piece in {sentence, *_PAUSES.split(sentence)}:
            passage = passage_of(piece)
            if passage_weight(passage) is Weight.LONG:
                parts.add(passage)
    return parts


def _has_letter(passage: Passage) -> bool:
    return any(sign.isalpha() for word in passage for sign in word)


def _is_remembered(column: Column) -> bool:
    if column.table in _NOT_REMEMBERED or column.key or column.kept:
        return False
    if column.table == "memory_topic":
        return column.name in ("title", "summary")
    if column.name.endswith(("_hash", "_by")) or column.name in ("method", "document", "counted", "differences"):
        return False
    return column.sort in TEXTS | DOCUMENTS | TEXT_ARRAYS


def _note(found: Found, column: Column, value: str) -> None:
    if column.sort in DOCUMENTS:
        found.texts.update(text for text, whole in strings_of(json.loads(value)) if whole)
        return
    found.texts.add(value)
    if column.place == "memory_topic.title":
        found.titles.add(value)


def _held(cursor: CursorWrapper, passages: Sequence[Passage]) -> set[Passage]:
    """Return the passages that somebody still says: short ones by their words, long ones as a text or a sentence."""
    if not passages:
        return set()
    words = [sorted(words_index(" ".join(passage))) for passage in passages]
    cursor.execute(_HOLDERS, {"words": json.dumps(words), "most": MOST_HOLDERS + 1})
    holders: dict[Passage, set[uuid.UUID]] = {}
    for place, topic_id in cursor.fetchall():
        holders.setdefault(passages[place - 1], set()).add(topic_id)
    held = {
        passage
        for passage, topics in holders.items()
        if passage_weight(passage) is not Weight.LONG or len(topics) > MOST_HOLDERS
    }
    unsure = {passage: topics for passage, topics in holders.items() if passage not in held}
    if unsure:
        said: dict[uuid.UUID, set[Passage]] = {}
        cursor.execute(_SAID, {"ids": list(set().union(*unsure.values()))})
        for topic_id, text in cursor.fetchall():
            said.setdefault(topic_id, set()).update((passage_of(text), *parts_of(text)))
        held |= {p for p, topics in unsure.items() if any(p in said.get(topic, ()) for topic in topics)}
    return held


def _still_named(cursor: CursorWrapper, sought: set[str]) -> set[str]:
    """Return those of these keys under which another topic is found, or an address: a scope, a key, an account."""
    if not sought:
        return set()
    cursor.execute(_STILL_NAMED, {"identifiers": sorted(sought)})
    named: set[str] = {row[0] for row in cursor.fetchall()}
    cursor.execute(_ADDRESSES, {"anchors": anchors_pattern(anchors_of((), sought, most=MOST_ANCHORS))})
    for (address,) in cursor.fetchall():
        # A scope is one path; its segments may name something too.
        for part in (address, *address.split("/")):
            named.update(key for found in identifiers_strong(part) for key in found.stored)
    return named
