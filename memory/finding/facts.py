"""Loads the texts of topics for commands, and divides them into facts."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from django.db import connection

from memory.ingest.items import FieldType
from memory.predicates.binding import Bound
from memory.text.clauses import Clause, clause_removed, clauses_split, pronoun_begins, pronoun_replaced, subject_phrase
from memory.text.folding import fold
from memory.text.grammar import FINITE, SURE, words_tag
from memory.text.sentences import sentences_find
from memory.text.word_lists import wordset

TITLE, SUMMARY, FIELD, HISTORY = "title", "summary", "field", "history"
# A longer text is one fact, because requests do not refer to clauses of documents.
MAX_DIVIDED = 4_000
# Names of fields that do not describe the value.
_NAMELESS = wordset(
    "fact facts content text value note notes memory description body detail details info statement observation message"
)

_LOCK_SQL = "SELECT id FROM memory_topic WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
_TOPICS_SQL = """
SELECT t.id, t.title, t.summary, t.kind, s.path, t.categories, v.pinned, v.live
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""
_FIELDS_SQL = """
SELECT f.topic_id, f.id, f.name, r.value, r.field_type FROM memory_field f
JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE f.topic_id = ANY(%s) ORDER BY f.topic_id, f.created_at, f.id
"""
# All texts that a topic has ever had. They are needed because a purge also erases the history.
_EVER_SQL = """
SELECT f.topic_id, r.value FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
WHERE f.topic_id = ANY(%(ids)s)
UNION ALL
SELECT e.topic_id, e.before->>'title' FROM memory_topicedit e WHERE e.topic_id = ANY(%(ids)s) AND e.before ? 'title'
UNION ALL
SELECT e.topic_id, e.before->>'summary' FROM memory_topicedit e WHERE e.topic_id = ANY(%(ids)s) AND e.before ? 'summary'
"""


@dataclass(frozen=True, slots=True)
class Element:
    """A text of a topic. ``where`` is title, summary, field or history. For a field, ``text`` is its current value and
    ``kind`` its type."""

    where: str
    text: str
    name: str = ""
    field_id: uuid.UUID | None = None
    kind: FieldType = "string"


@dataclass(slots=True)
class TopicContent:
    """The texts of a topic. ``ever`` has the earlier texts, if they were loaded."""

    id: uuid.UUID
    title: str
    summary: str
    kind: str
    scope: str
    categories: list[str]
    pinned: bool
    live: bool
    fields: list[Element] = field(default_factory=list)
    ever: list[str] = field(default_factory=list)

    def elements(self) -> list[Element]:
        """Return the texts that are not empty, title first."""
        found = [Element(TITLE, self.title)] if self.title else []
        if self.summary.strip():
            found.append(Element(SUMMARY, self.summary))
        return [*found, *(element for element in self.fields if element.text.strip())]

    def texts(self) -> list[str]:
        """Return all current texts, and earlier ones if they were loaded."""
        return [*(element.text for element in self.elements()), *self.ever]


@dataclass(frozen=True)
class Fact:
    """One fact of one topic, understandable on its own. ``sentence`` is the span of its sentence in the element.
    ``clauses`` are the parts of that sentence, and ``clause`` is the index of the fact in ``clauses``. ``context``
    names the subject if the element does not."""

    topic: TopicContent
    element: Element
    text: str
    sentence: tuple[int, int]
    clauses: tuple[Clause, ...]
    clause: int
    context: str = ""
    item: bool = False

    def with_context(self) -> str:
        """Return the fact with its context in front."""
        return f"{self.context}: {self.text}" if self.context else self.text

    def of_sentence(self, other: "Fact") -> bool:
        """Return whether this fact and ``other`` come from the same sentence."""
        place = other.element, other.sentence
        return self.topic is other.topic and (self.element, self.sentence) == place

    @cached_property
    def found_by(self) -> str:
        """The text in which evidence is searched: the fact with its context, and the title of its topic."""
        text = self.with_context()
        return text if not self.context or fold(self.topic.title) in fold(text) else f"{self.topic.title} {text}"


def ids_read(sql: str, bound: Bound) -> list[uuid.UUID]:
    """Return the ids that the SQL statement ``sql`` selects. One query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, bound.values)
        return [row[0] for row in cursor.fetchall()]


def topic_contents(
    ids: Sequence[uuid.UUID], *, ever: bool = False, lock: bool = False
) -> dict[uuid.UUID, TopicContent]:
    """Return the contents of topics by id, in the order of ``ids``. Two queries, one more for earlier texts (``ever``),
    and one more to ``lock`` the topics."""
    with connection.cursor() as cursor:
        if lock:
            cursor.execute(_LOCK_SQL, [list(ids)])
        cursor.execute(_TOPICS_SQL, [list(ids)])
        found = {row[0]: TopicContent(*row) for row in cursor.fetchall()}
        cursor.execute(_FIELDS_SQL, [list(ids)])
        for topic_id, field_id, name, value, kind in cursor.fetchall():
            found[topic_id].fields.append(Element(FIELD, value, name, field_id, kind))
        if ever:
            cursor.execute(_EVER_SQL, {"ids": list(ids)})
            for topic_id, text in cursor.fetchall():
                if all(text != element.text for element in found[topic_id].elements()):
                    found[topic_id].ever.append(text)
    return {topic_id: found[topic_id] for topic_id in ids if topic_id in found}


def facts_of(topic: TopicContent, *, divide: bool = True) -> list[Fact]:
    """Return the facts of a topic, element by element. Each earlier text is one fact. If ``divide`` is false, each
    element is one fact, which is a hundred times as fast."""
    found = list(_facts_iter(topic)) if divide else [_whole_fact(topic, element) for element in topic.elements()]
    return found + [_whole_fact(topic, Element(HISTORY, text)) for text in topic.ever if text]


def facts_distinct(facts: Iterable[Fact]) -> list[Fact]:
    """Return ``facts`` without repetitions within a topic. For example, a title often repeats a field."""
    found: dict[tuple[uuid.UUID, str, bool], Fact] = {}
    for fact in facts:
        found.setdefault((fact.topic.id, text_key(fact.with_context()), fact.item), fact)
    return list(found.values())


def facts_repeated(fact: Fact, *, divide: bool = True) -> list[Fact]:
    """Return ``fact`` and the other facts of its topic that state the same, such as a title that repeats a field.
    ``divide`` means the same as in ``facts_of``."""
    if fact.element.where == HISTORY:
        return [fact]
    key = text_key(fact.with_context())
    others = [
        other
        for other in facts_of(fact.topic, divide=divide)
        if other != fact and other.item == fact.item and text_key(other.with_context()) == key
    ]
    return [fact, *others]


def _whole_fact(topic: TopicContent, element: Element) -> Fact:
    text = element.text
    context = "" if element.where in (TITLE, HISTORY) else _context(topic.title, element)
    return Fact(topic, element, text, (0, len(text)), (Clause(text, 0, len(text)),), 0, context)


def facts_removed(text: str, facts: Sequence[Fact]) -> str:
    """Return the text of an element without some of its facts."""
    rest: list[str] = []
    kept_from = 0
    by_sentence: dict[tuple[int, int], list[Fact]] = {}
    for fact in facts:
        by_sentence.setdefault(fact.sentence, []).append(fact)
    for (start, end), removed in sorted(by_sentence.items()):
        rest.append(text[kept_from:start])
        places = {fact.clause for fact in removed}
        clauses = removed[0].clauses
        if len(places) == 1 and len(clauses) > 1:
            rest.append(clause_removed(text[start:end], clauses, places.pop()) + " ")
        elif len(places) < len(clauses):
            rest.append(" ".join(clause.text for at, clause in enumerate(clauses) if at not in places) + " ")
        kept_from = end
    rest.append(text[kept_from:])
    return " ".join("".join(rest).split()) if by_sentence else text


def text_key(text: str) -> str:
    """Return a key that is equal for two spellings of one statement, such as with and without a full stop."""
    return fold(text).rstrip(".!?")


def title_repeats(title: str, texts: Iterable[str]) -> bool:
    """Return whether ``title`` is the beginning of one of ``texts``."""
    start = fold(title).rstrip("….")
    return bool(start) and any(fold(text).startswith(start) for text in texts)


def is_label(text: str) -> bool:
    """Return whether a text is only a name and no statement, such as the title "Wifi" of a topic with fields."""
    # A full stop ends a statement, which saves the parsing.
    if len(text) >= 200 or not 0 < len(text.split()) <= 8 or (text.endswith(".") and len(text.split()) > 2):
        return False
    words = words_tag(text)
    # "Where Mara lives" is a label; "what Mara loves is tea" is a statement.
    asks = bool(words) and words[0].tag in ("AVQ", "PNQ", "DTQ") and sum(word.tag in FINITE for word in words) == 1
    return asks or not any(word.tag in SURE for word in words)


def _facts_iter(topic: TopicContent) -> Iterator[Fact]:
    elements = topic.elements()
    labelled = len(elements) > 1 and is_label(topic.title)
    for element in elements:
        if element.where == TITLE and labelled:
            # The title is only a name for the other elements.
            continue
        # A title that is a statement of its own is no context.
        context = "" if element.where == TITLE else _context(topic.title if labelled else "", element)
        before: list[str] = []
        for start, end, clauses in _divided(element.text):
            text = element.text[start:end].strip()
            # The subject is searched only if it replaces a pronoun, because parsing takes a millisecond.
            leaning = before and any(map(pronoun_begins, (text, *(clause.text for clause in clauses))))
            whose = next(filter(None, map(subject_phrase, reversed(before))), "") if leaning else ""
            text = pronoun_replaced(text, whose)
            before.append(text)
            parts = tuple(clause for clause in clauses if not clause.item)
            if len(clauses) == 1 or not parts:
                alone = clauses if len(clauses) == 1 else (Clause(text, 0, end - start),)
                yield Fact(topic, element, text, (start, end), alone, 0, context)
            if len(clauses) > 1:
                for at, clause in enumerate(clauses):
                    alone_text = pronoun_replaced(clause.text, whose)
                    yield Fact(topic, element, alone_text, (start, end), clauses, at, context, clause.item)


def fact_label(fact: Fact) -> str:
    """Return a fact with the name of its field in front: ``weekly hours: 40``."""
    name = _field_label(fact.element)
    return f"{name}: {fact.text}" if name else fact.text


def _context(title: str, element: Element) -> str:
    named = "" if fold(element.text).startswith(fold(title)[:40]) else title
    return " ".join(filter(None, (named, _field_label(element))))


def _field_label(element: Element) -> str:
    plain = element.name.replace("_", " ").replace("-", " ").strip()
    return plain if element.where == FIELD and plain.casefold() not in _NAMELESS else ""


@lru_cache(maxsize=2048)
def _divided(text: str) -> tuple[tuple[int, int, tuple[Clause, ...]], ...]:
    whole = ((0, len(text), (Clause(text, 0, len(text)),)),)
    if len(text) > MAX_DIVIDED:
        return whole
    found = []
    for sentence in sentences_find(text):
        part = text[sentence.start : sentence.end]
        if part.strip():
            found.append((sentence.start, sentence.end, clauses_split(part)))
    return tuple(found) or whole
