"""The topics that a request to forget means: why each, how sure that is, and what of it stays."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.erasure.remainder import rest_left
from memory.finding.choose import Choice
from memory.finding.facts import facts_repeated
from memory.finding.weigh import Candidate

EXCERPT = 160


@dataclass(frozen=True, slots=True)
class Matched:
    """A topic that a request means: why, how sure that is (0 to 1), by what it was found (``identifier``, ``name``,
    ``meaning`` or ``filter``), the words that matched, and what of it stays."""

    topic_id: uuid.UUID
    why: str
    confidence: float
    excerpt: str = ""
    rest: dict[str, Any] | None = None
    by: str = "filter"


def matches_of(choice: Choice) -> list[Matched]:
    """Return the topics whose facts were chosen, each once, surest first; no queries."""
    grouped: dict[uuid.UUID, list[Candidate]] = {}
    for one in choice.candidates:
        grouped.setdefault(one.fact.topic.id, []).append(one)
    return [_matched(topic_id, group, divide=choice.divided) for topic_id, group in grouped.items()]


def _matched(topic_id: uuid.UUID, group: Sequence[Candidate], *, divide: bool) -> Matched:
    first = group[0]
    said = excerpt(first.fact.text, 0)
    why = "It says exactly this." if first.exact else f"It says “{said}”"
    if first.by == "identifier":
        why = f"It holds the identifier: “{said}”"
    elif first.by == "name":
        why = f"It {'mentions' if first.confidence == 1 else 'may mention'} the name: “{said}”"
    facts = [fact for one in group for fact in facts_repeated(one.fact, divide=divide)]
    rest = rest_left(first.fact.topic, facts)
    return Matched(topic_id, why, round(first.confidence, 3), said, rest, first.by)


def excerpt(text: str, at: int) -> str:
    """Return the words of ``text`` around ``at``, in one line."""
    start = max(0, at - EXCERPT // 3)
    piece = " ".join(text[start : start + EXCERPT].split())
    return f"{'…' if start else ''}{piece}{'…' if start + EXCERPT < len(text) else ''}"
