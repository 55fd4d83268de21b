"""The mention index: the identifiers, names and words of topics. Requests to forget find topics by this index.

The index is written in the transaction that writes the text. Entries are only added, so that a topic is also found by a
name in its history.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.backends.utils import CursorWrapper

from memory.core.field_values import json_array
from memory.ingest.bulk import array_literal, rows_copy
from memory.ingest.load import KnownTopic
from memory.ingest.plan import WritePlan
from memory.text.aliases import aliases_find
from memory.text.folding import fold
from memory.text.identifiers import identifiers_index
from memory.text.names import words_index

# Entries of a PostgreSQL index have at most 2,700 bytes. Longer words are not expected in searches.
MAX_WORD_BYTES = 400

MENTION = ("topic_id", "scope_id", "identifiers", "words", "aliases")

_ADD_SQL = """
WITH added AS (
    SELECT d.id, ARRAY(SELECT jsonb_array_elements_text(d.identifiers)) AS identifiers,
           ARRAY(SELECT jsonb_array_elements_text(d.words)) AS words,
           ARRAY(SELECT jsonb_array_elements_text(d.aliases)) AS aliases
    FROM unnest(%(ids)s::uuid[], %(identifiers)s::jsonb[], %(words)s::jsonb[], %(aliases)s::jsonb[])
         AS d (id, identifiers, words, aliases)
)
UPDATE memory_topicmention m
SET identifiers = ARRAY(
        SELECT e COLLATE "C" FROM (SELECT unnest(m.identifiers) UNION SELECT unnest(a.identifiers)) x (e) ORDER BY 1),
    words = ARRAY(SELECT e COLLATE "C" FROM (SELECT unnest(m.words) UNION SELECT unnest(a.words)) x (e) ORDER BY 1),
    aliases = ARRAY(
        SELECT e COLLATE "C" FROM (SELECT unnest(m.aliases) UNION SELECT unnest(a.aliases)) x (e) ORDER BY 1)
FROM added a
WHERE m.topic_id = a.id
  AND NOT (m.identifiers @> a.identifiers AND m.words @> a.words AND m.aliases @> a.aliases)
"""


@dataclass(slots=True)
class Mentions:
    """Mentions of texts, in the forms of ``TopicMention``."""

    identifiers: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)

    def read(self, texts: Iterable[str]) -> None:
        """Add the mentions of ``texts``. Linear in their length: a few hundredths of a millisecond per sentence."""
        for text in texts:
            if not text:
                continue
            self.identifiers |= identifiers_index(text)
            self.read_words(text)
            for pair in aliases_find(text):
                self.aliases.update(name for name in map(fold, pair) if _fits(name))

    def read_words(self, text: str) -> None:
        """Add only the words of ``text``, for example of the name of a field."""
        self.words |= {word for word in words_index(text) if len(word) <= MAX_WORD_BYTES}

    @property
    def arrays(self) -> tuple[str, str, str]:
        """Identifiers, words and aliases as array literals for a COPY."""
        identifiers, words, aliases = self.columns()
        return array_literal(identifiers), array_literal(words), array_literal(aliases)

    def columns(self) -> tuple[list[str], list[str], list[str]]:
        """Return identifiers, words and aliases, sorted."""
        return sorted(self.identifiers), sorted(self.words), sorted(self.aliases)


def mentions_read(plan: WritePlan) -> list[tuple[KnownTopic, Mentions]]:
    """Return the mentions of the texts that ``plan`` writes, by topic. No queries."""
    entries: list[tuple[KnownTopic, set[str], Mentions]] = [(topic, set(), Mentions()) for topic in plan.texts.values()]
    owners = {
        known.id: (known.name, texts, mentions) for topic, texts, mentions in entries for known in topic.fields.values()
    }
    for row in plan.revisions:
        name, texts, mentions = owners[row.field_id]
        texts.update((row.value, row.why_changed, row.impact_expected))
        mentions.read_words(name)
    texts_of = {topic.id: texts for topic, texts, _mentions in entries}
    for topic_id, _at, before, _actor in plan.edits:
        texts_of[topic_id].update(str(before.get(name) or "") for name in ("title", "summary"))
    for topic, texts, mentions in entries:
        # A stored topic without a revision in the plan has an edited title or summary.
        if topic.is_new or not texts:
            texts.update((topic.title, topic.summary))
        mentions.read(texts)
    return [(topic, mentions) for topic, _texts, mentions in entries]


def mentions_write(
    cursor: CursorWrapper, found: Sequence[tuple[KnownTopic, Mentions]], scopes: Mapping[str, int]
) -> None:
    """Add mentions to the index. One statement for new topics and one for stored ones.

    Needs the transaction that writes the topics, and locks on the stored ones.
    """
    new = [(topic, mentions) for topic, mentions in found if topic.is_new]
    stored = {topic.id: mentions for topic, mentions in found if not topic.is_new}
    if new:
        rows_copy(
            cursor,
            "memory_topicmention",
            MENTION,
            ((topic.id, scopes[topic.scope], *mentions.arrays) for topic, mentions in new),
        )
    if stored:
        mentions_add(cursor, stored)


def mentions_add(cursor: CursorWrapper, found: Mapping[uuid.UUID, Mentions]) -> None:
    """Add mentions to the rows of stored topics. One statement. The caller has locked the topics."""
    columns = [mentions.columns() for mentions in found.values()]
    cursor.execute(
        _ADD_SQL,
        {
            "ids": list(found),
            "identifiers": [json_array(each[0]) for each in columns],
            "words": [json_array(each[1]) for each in columns],
            "aliases": [json_array(each[2]) for each in columns],
        },
    )


def _fits(word: str) -> bool:
    return len(word) <= MAX_WORD_BYTES and (word.isascii() or len(word.encode()) <= MAX_WORD_BYTES)
