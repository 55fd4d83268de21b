"""The mention index: the identifiers, names and words of each topic. Requests to forget find topics in it. Entries are
never removed by an edit, so that a topic is found by a name in its history too."""

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
from memory.text.keys import keys_index
from memory.text.name_match import sounds_index
from memory.text.names import words_index

# Longer words are not indexed: an entry of a PostgreSQL index has at most 2,700 bytes, and searches hardly contain
# longer words.
MAX_WORD_BYTES = 400

MENTION = "topic_id scope_id identifiers words aliases"

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
    """The mentions in some texts, in the forms that ``TopicMention`` stores."""

    identifiers: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)

    def read(self, texts: Iterable[str]) -> None:
        """Add the mentions in ``texts``. This takes a few hundredths of a millisecond per sentence."""
        for text in texts:
            if not text:
                continue
            self.identifiers |= keys_index(text)
            self.read_words(text)
            self.words |= {sound for sound in sounds_index(text) if len(sound) <= MAX_WORD_BYTES}
            for pair in aliases_find(text):
                self.aliases.update(name for name in map(fold, pair) if _fits(name))

    def read_words(self, text: str) -> None:
        """Add the words of ``text``, for example of the name of a field, but no identifiers and aliases."""
        self.words |= {word for word in words_index(text) if len(word) <= MAX_WORD_BYTES}

    def columns(self) -> tuple[list[str], list[str], list[str]]:
        """Return identifiers, words and aliases, sorted."""
        return sorted(self.identifiers), sorted(self.words), sorted(self.aliases)


def mentions_read(plan: WritePlan) -> list[tuple[KnownTopic, Mentions]]:
    """Return each topic of ``plan`` with the mentions of the texts that the plan writes. No queries."""
    texts: dict[uuid.UUID, set[str]] = {topic_id: set() for topic_id in plan.texts}
    found = {topic_id: Mentions() for topic_id in plan.texts}
    owners = {known.id: (topic.id, known.name) for topic in plan.texts.values() for known in topic.fields.values()}
    for row in plan.revisions:
        topic_id, name = owners[row.field_id]
        texts[topic_id].update((row.value, row.why_changed, row.impact_expected))
        found[topic_id].read_words(name)
    for topic_id, _at, before, _actor in plan.edits:
        texts[topic_id].update(str(before.get(name) or "") for name in ("title", "summary"))
    for topic_id, topic in plan.texts.items():
        # A stored topic without a revision in the plan has an edited title or summary.
        if topic.is_new or not texts[topic_id]:
            texts[topic_id].update((topic.title, topic.summary))
        found[topic_id].read(texts[topic_id])
    return [(plan.texts[topic_id], mentions) for topic_id, mentions in found.items()]


def mentions_write(
    cursor: CursorWrapper, found: Sequence[tuple[KnownTopic, Mentions]], scopes: Mapping[str, int]
) -> None:
    """Add mentions to the index, in the transaction that writes the topics. At most two statements."""
    new = [(topic, mentions) for topic, mentions in found if topic.is_new]
    stored = {topic.id: mentions for topic, mentions in found if not topic.is_new}
    if new:
        rows_copy(
            cursor,
            "memory_topicmention",
            MENTION,
            ((topic.id, scopes[topic.scope], *map(array_literal, mentions.columns())) for topic, mentions in new),
        )
    if stored:
        mentions_add(cursor, stored)


def mentions_add(cursor: CursorWrapper, found: Mapping[uuid.UUID, Mentions]) -> None:
    """Add mentions to the rows of stored topics. One statement. The caller must have locked the topics."""
    identifiers, words, aliases = zip(*(map(json_array, each.columns()) for each in found.values()), strict=True)
    cursor.execute(
        _ADD_SQL, {"ids": list(found), "identifiers": list(identifiers), "words": list(words), "aliases": list(aliases)}
    )


def _fits(word: str) -> bool:
    return len(word) <= MAX_WORD_BYTES and (word.isascii() or len(word.encode()) <= MAX_WORD_BYTES)
