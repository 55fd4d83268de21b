"""Finds facts that are already stored, in the same words or in other words without a difference that matters."""

import uuid
from collections.abc import Sequence

from django.db import connection

from memory.access.principal import Principal
from memory.duplicates.detect import near_duplicates
from memory.text.folding import fold
from memory.text.statements import Statement as Fact
from memory.text.statements import title_of

FACT_FIELD = "fact"

# Live topics with the title that a fact would get, each with its fact if it has one.
_SAME_TITLE_SQL = """
SELECT t.id, t.title, r.value
FROM memory_topic t
JOIN memory_vitality v ON v.topic_id = t.id AND v.live
LEFT JOIN memory_field f ON f.topic_id = t.id AND f.name = %(field)s
LEFT JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE t.scope_id = (SELECT id FROM memory_scope WHERE path = %(scope)s) AND t.kind = %(kind)s
  AND md5(lower(t.title)) IN (SELECT md5(lower(title)) FROM unnest(%(titles)s::text[]) AS d (title))
ORDER BY t.id
"""


# A fact, and the topic that already states it.
Known = tuple[Fact, uuid.UUID]


def known_facts_split(
    facts: Sequence[Fact], *, scope: str, kind: str, principal: Principal
) -> tuple[list[Fact], list[Known]]:
    """Return (the facts that are not stored in ``scope``, the stored facts with their topics), both in order.

    A fact with another number, date or name than a stored fact, or with an additional "not", does not count as stored.
    One query, plus those of ``near_duplicates``. Raises ``EmbeddingFailed``.
    """
    found = _in_the_same_words(facts, scope=scope, kind=kind)
    others = [at for at, topic_id in enumerate(found) if topic_id is None]
    similar = near_duplicates([facts[at].text for at in others], scope=scope, kind=kind, principal=principal)
    for at, topic_id in zip(others, similar, strict=True):
        found[at] = topic_id
    new = [fact for fact, topic_id in zip(facts, found, strict=True) if topic_id is None]
    return new, [(fact, topic_id) for fact, topic_id in zip(facts, found, strict=True) if topic_id is not None]


def _in_the_same_words(facts: Sequence[Fact], *, scope: str, kind: str) -> list[uuid.UUID | None]:
    titles = list({title_of(fact.text) for fact in facts})
    topics: dict[str, uuid.UUID] = {}
    with connection.cursor() as cursor:
        cursor.execute(_SAME_TITLE_SQL, {"field": FACT_FIELD, "scope": scope, "kind": kind, "titles": titles})
        for topic_id, title, value in cursor.fetchall():
            topics.setdefault(fact_key(value or title), topic_id)
    return [topics.get(fact_key(fact.text)) for fact in facts]


def fact_key(text: str) -> str:
    """Return a key that is equal for two spellings of one fact."""
    return fold(text).rstrip(" .!。！")
