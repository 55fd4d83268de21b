"""What topics mention, in the index that requests to forget are answered from.

Written with the text itself, in its transaction, and only ever added to: a topic whose history names a person is found
after its current text has stopped to.
"""

import json
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.ingest.bulk import array_text, rows_copy
from memory.ingest.load import KnownTopic
from memory.ingest.plan import Plan
from memory.models.locks import Lock, lock_wait
from memory.text.aliases import aliases_find
from memory.text.folding import fold
from memory.text.identifiers import identifiers_index
from memory.text.names import words_index

TOPICS_PER_STEP = 200
# PostgreSQL's indexes take entries of 2,700 bytes. Nobody asks for a word that is longer than this.
MAX_WORD_BYTES = 400

MENTION = ("topic_id", "scope_id", "identifiers", "words", "aliases")

# A stored topic without a row is one that the worker has yet to read: a row of what is said now alone would hide that.
_ADD = """
WITH said AS (
    SELECT d.id, ARRAY(SELECT jsonb_array_elements_text(d.identifiers)) AS identifiers,
           ARRAY(SELECT jsonb_array_elements_text(d.words)) AS words,
           ARRAY(SELECT jsonb_array_elements_text(d.aliases)) AS aliases
    FROM unnest(%(ids)s::uuid[], %(identifiers)s::jsonb[], %(words)s::jsonb[], %(aliases)s::jsonb[])
         AS d (id, identifiers, words, aliases)
)
UPDATE memory_topicmention m
SET identifiers = ARRAY(
        SELECT e COLLATE "C" FROM (SELECT unnest(m.identifiers) UNION SELECT unnest(s.identifiers)) x (e) ORDER BY 1),
    words = ARRAY(SELECT e COLLATE "C" FROM (SELECT unnest(m.words) UNION SELECT unnest(s.words)) x (e) ORDER BY 1),
    aliases = ARRAY(
        SELECT e COLLATE "C" FROM (SELECT unnest(m.aliases) UNION SELECT unnest(s.aliases)) x (e) ORDER BY 1)
FROM said s
WHERE m.topic_id = s.id
  AND NOT (m.identifiers @> s.identifiers AND m.words @> s.words AND m.aliases @> s.aliases)
"""

# Writers of these topics wait, and so nothing can be said between reading and writing the row.
_LACKING = """
SELECT t.id, t.scope_id FROM memory_topic t
WHERE NOT EXISTS (SELECT FROM memory_topicmention m WHERE m.topic_id = t.id)
ORDER BY t.id LIMIT %s FOR NO KEY UPDATE OF t SKIP LOCKED
"""
_ANY_LACKING = """
SELECT 1 FROM memory_topic t WHERE NOT EXISTS (SELECT FROM memory_topicmention m WHERE m.topic_id = t.id) LIMIT 1
"""
_SAID = """
SELECT t.id, false, said FROM memory_topic t CROSS JOIN LATERAL (VALUES (t.title), (t.summary)) v (said)
WHERE t.id = ANY(%(ids)s)
UNION ALL
SELECT e.topic_id, false, said FROM memory_topicedit e
CROSS JOIN LATERAL (VALUES (e.before ->> 'title'), (e.before ->> 'summary')) v (said) WHERE e.topic_id = ANY(%(ids)s)
UNION ALL
SELECT f.topic_id, named, said FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
CROSS JOIN LATERAL (VALUES (true, f.name), (false, r.value), (false, r.why_changed), (false, r.impact_expected))
     v (named, said)
WHERE f.topic_id = ANY(%(ids)s)
"""


@dataclass(slots=True)
class Mentions:
    """What texts mention, in the forms of ``TopicMention``."""

    identifiers: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)

    def read(self, texts: Iterable[str]) -> None:
        """Add what ``texts`` mention. Linear in their length, a few hundredths of a millisecond for a sentence."""
        for text in texts:
            if not text:
                continue
            self.identifiers |= identifiers_index(text)
            self.read_words(text)
            for pair in aliases_find(text):
                self.aliases.update(name for name in map(fold, pair) if _fits(name))

    def read_words(self, text: str) -> None:
        """Add the words of ``text`` alone: the name of a field is no statement."""
        self.words |= {word for word in words_index(text) if len(word) <= MAX_WORD_BYTES}

    @property
    def arrays(self) -> tuple[str, str, str]:
        """Identifiers, words and aliases for a COPY."""
        identifiers, words, aliases = self.columns()
        return array_text(identifiers), array_text(words), array_text(aliases)

    def columns(self) -> tuple[list[str], list[str], list[str]]:
        """Return identifiers, words and aliases, sorted."""
        return sorted(self.identifiers), sorted(self.words), sorted(self.aliases)


def mentions_read(plan: Plan) -> list[tuple[KnownTopic, Mentions]]:
    """Return what ``plan`` says of each of its topics that was not said before. No queries."""
    said: list[tuple[KnownTopic, set[str], Mentions]] = [(topic, set(), Mentions()) for topic in plan.texts.values()]
    owners = {
        known.id: (known.name, texts, mentions) for topic, texts, mentions in said for known in topic.fields.values()
    }
    for _id, field_id, _seq, value, *_middle, why, impact, _actor in plan.revisions:
        name, texts, mentions = owners[field_id]
        texts.update((value, why, impact))
        mentions.read_words(name)
    before = {topic.id: texts for topic, texts, _mentions in said}
    for topic_id, _at, earlier, _actor in plan.edits:
        before[topic_id].update(str(earlier.get(name) or "") for name in ("title", "summary"))
    for topic, texts, mentions in said:
        # Without a revision of it, the title or the summary has been edited.
        if topic.is_new or not texts:
            texts.update((topic.title, topic.summary))
        mentions.read(texts)
    return [(topic, mentions) for topic, _texts, mentions in said]


def mentions_write(
    cursor: CursorWrapper, said: Sequence[tuple[KnownTopic, Mentions]], scopes: Mapping[str, int]
) -> None:
    """Add what was ``said`` of topics to the index. One statement for new topics and one for stored ones.

    Needs the transaction that writes them, and the lock on stored ones.
    """
    new = [(topic, mentions) for topic, mentions in said if topic.is_new]
    stored = {topic.id: mentions for topic, mentions in said if not topic.is_new}
    if new:
        rows_copy(
            cursor,
            "memory_topicmention",
            MENTION,
            ((topic.id, scopes[topic.scope], *mentions.arrays) for topic, mentions in new),
        )
    if stored:
        mentions_add(cursor, stored)


def mentions_add(cursor: CursorWrapper, said: Mapping[uuid.UUID, Mentions]) -> None:
    """Add what topics with a row in the index have said beside it. One statement. The caller holds the topics."""
    columns = [mentions.columns() for mentions in said.values()]
    cursor.execute(
        _ADD,
        {
            "ids": list(said),
            "identifiers": [_json_array(each[0]) for each in columns],
            "words": [_json_array(each[1]) for each in columns],
            "aliases": [_json_array(each[2]) for each in columns],
        },
    )


def mentions_index(cursor: CursorWrapper, scopes: Mapping[uuid.UUID, int]) -> None:
    """Index topics without a row, given with the numbers of their scopes, by all they have ever said. Two statements.
    Needs a transaction in which nobody else writes to them."""
    cursor.execute(_SAID, {"ids": list(scopes)})
    found = {topic_id: Mentions() for topic_id in scopes}
    for topic_id, named, text in set(cursor.fetchall()):
        if named:
            found[topic_id].read_words(text)
        else:
            found[topic_id].read([text])
    rows_copy(
        cursor,
        "memory_topicmention",
        MENTION,
        ((topic_id, scopes[topic_id], *mentions.arrays) for topic_id, mentions in sorted(found.items())),
    )


class _Known:
    """Whether this process has seen that every topic has its row. All that write topics write it, so once is enough."""

    complete = threading.Event()


def mentions_give(*, anew: bool = False) -> int:
    """Index up to ``TOPICS_PER_STEP`` topics that were written before there was an index; return how many.

    Four statements and one transaction; none once a step has found nothing to do, unless asked to look ``anew``, which
    reads the keys of all topics. Topics that somebody writes to are left for the next time. Several at once take turns.
    """
    if _Known.complete.is_set() and not anew:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        # One after the other: whoever looked before another had committed would index the same topics once more.
        lock_wait(Lock.INDEX_MENTIONS)
        cursor.execute(_LACKING, [TOPICS_PER_STEP])
        lacking: dict[uuid.UUID, int] = dict(cursor.fetchall())
        if not lacking:
            # Those that somebody writes to at this moment were passed over, and still lack their row.
            cursor.execute(_ANY_LACKING)
            if cursor.fetchone() is None:
                _Known.complete.set()
            return 0
        _Known.complete.clear()
        mentions_index(cursor, lacking)
    return len(lacking)


def mentions_complete() -> None:
    """Wait until every topic has its row: what is asked of the index has to be whole. No query once it was; a store
    from before the index is read whole the first time."""
    while mentions_give():
        pass


def _json_array(words: Sequence[str]) -> str:
    return json.dumps(words, ensure_ascii=False)


def _fits(word: str) -> bool:
    return len(word) <= MAX_WORD_BYTES and (word.isascii() or len(word.encode()) <= MAX_WORD_BYTES)
