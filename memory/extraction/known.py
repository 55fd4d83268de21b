"""Finds facts that are already stored, in the same words or in other words without a difference that matters."""

import uuid
from collections.abc import Sequence

from memory.access.principal import Principal
from memory.core.text import TopicText
from memory.duplicates.detect import near_duplicates
from memory.embedding import text_hash
from memory.models.statements import rows_read
from memory.text.folding import fold
from memory.text.statements import Statement as Fact

FACT_FIELD = "fact"

# Live topics whose text is exactly that of a fact. Found also before they have a vector.
_SAME_TEXT_SQL = """
SELECT x.text_hash, x.topic_id
FROM memory_topicvector x
JOIN memory_vitality v ON v.topic_id = x.topic_id AND v.live
WHERE x.text_hash = ANY(%(hashes)s) AND x.live AND v.kind = %(kind)s
  AND x.scope_id = (SELECT id FROM memory_scope WHERE path = %(scope)s)
ORDER BY x.topic_id
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
    hashes = [text_hash(TopicText("", "", [fact.text]).embedded()) for fact in facts]
    topics: dict[str, uuid.UUID] = {}
    for found, topic_id in rows_read(_SAME_TEXT_SQL, {"hashes": hashes, "scope": scope, "kind": kind}):
        topics.setdefault(found, topic_id)
    return [topics.get(each) for each in hashes]


def fact_key(text: str) -> str:
    """Return a key that is equal for two spellings of one fact."""
    return fold(text).strip(" .!…。！")
