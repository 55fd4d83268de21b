"""The topics to which a request to forget refers. Each topic has a reason, a confidence, and perhaps a remainder."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.core.truncate import line_cut
from memory.erasure.remainder import remainder_if_forgotten
from memory.finding.choose import Choice
from memory.finding.facts import facts_repeated
from memory.finding.weigh import Candidate

EXCERPT = 160


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """A topic to which a request refers. ``why`` is the reason, ``confidence`` is from 0 to 1, and ``excerpt`` has the
    words that matched. ``remainder`` is the part of the topic that is kept. ``by`` is how the topic was found:
    ``identifier``, ``name``, ``meaning`` or ``filter``."""

    topic_id: uuid.UUID
    why: str
    confidence: float
    excerpt: str = ""
    remainder: dict[str, Any] | None = None
    by: str = "filter"


def matches_of(choice: Choice) -> list[TopicMatch]:
    """Return the topics of the chosen facts, highest confidence first. No query."""
    grouped: dict[uuid.UUID, list[Candidate]] = {}
    for one in choice.candidates:
        grouped.setdefault(one.fact.topic.id, []).append(one)
    return [_match_of(topic_id, group, divide=choice.divided) for topic_id, group in grouped.items()]


def _match_of(topic_id: uuid.UUID, group: Sequence[Candidate], *, divide: bool) -> TopicMatch:
    first = group[0]
    words = line_cut(first.fact.text, EXCERPT)
    why = "It states exactly this." if first.exact else f"It states “{words}”"
    if first.by == "identifier":
        why = f"It contains the identifier: “{words}”"
    elif first.by == "name":
        why = f"It {'mentions' if first.confidence == 1 else 'may mention'} the name: “{words}”"
    facts = [fact for one in group for fact in facts_repeated(one.fact, divide=divide)]
    remainder = remainder_if_forgotten(first.fact.topic, facts)
    return TopicMatch(topic_id, why, round(first.confidence, 3), words, remainder, first.by)
