"""The topics to which a request to forget refers. Each topic has a reason, a confidence, and perhaps a remainder."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.core.truncate import line_cut
from memory.erasure.remainder import remainder_if_forgotten
from memory.finding.facts import FIELD, facts_repeated
from memory.finding.finder import Candidate, Choice
from memory.text.folding import fold
from memory.text.keys import keys_of
from memory.text.name_match import names_of

EXCERPT = 160


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """A topic to which a request refers. ``why`` is the reason, ``confidence`` is from 0 to 1, and ``excerpt`` has the
    words that matched. ``remainder`` is the part of the topic that is kept. ``by`` is how the topic was found:
    ``identifier``, ``name``, ``meaning`` or ``filter``. ``spelling`` is the name as the topic writes it, if in another
    script or spelling. If ``chosen`` is false, the topic is shown but not forgotten."""

    topic_id: uuid.UUID
    why: str
    confidence: float
    excerpt: str = ""
    remainder: dict[str, Any] | None = None
    by: str = "filter"
    spelling: str = ""
    chosen: bool = True


def matches_of(choice: Choice, request: str) -> list[TopicMatch]:
    """Return the topics of the facts that were chosen for ``request``, highest confidence first, then those that have
    its name in another spelling and were not chosen. No query."""
    grouped: dict[uuid.UUID, list[Candidate]] = {}
    for one in choice.candidates:
        grouped.setdefault(one.fact.topic.id, []).append(one)
    chosen = set(grouped)
    for one in choice.perhaps:
        if one.fact.topic.id not in chosen:
            grouped.setdefault(one.fact.topic.id, []).append(one)
    evidence = _Evidence.of(request)
    found = [_match_of(topic_id, group, evidence, divide=choice.divided) for topic_id, group in grouped.items()]
    found = [replace(match, chosen=match.topic_id in chosen) for match in found]
    return sorted(found, key=lambda match: (not match.chosen, bool(match.spelling)))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The names and identifiers of a request."""

    names: list[str]
    keys: frozenset[str]

    @classmethod
    def of(cls, request: str) -> "_Evidence":
        return cls([fold(" ".join(name)) for name in names_of(request, [])], frozenset(keys_of(request)))

    def is_in(self, text: str) -> bool:
        """Return whether a text contains one of the names or identifiers."""
        return any(name in fold(text) for name in self.names) or not self.keys.isdisjoint(keys_of(text))


def _match_of(topic_id: uuid.UUID, group: Sequence[Candidate], evidence: _Evidence, *, divide: bool) -> TopicMatch:
    first = group[0]
    # Quote the first text that contains the name or identifier, else the title or field name that contains it.
    texts = [one.text if one.fact.element.where == FIELD else one.fact.text for one in group]
    quoted = next(filter(evidence.is_in, texts), None) or next(
        (one.fact.found_by for one in group if evidence.is_in(one.fact.found_by)), first.fact.text
    )
    words = line_cut(quoted, EXCERPT)
    why = "It states exactly this." if first.exact else f"It states “{words}”"
    if first.by == "identifier":
        why = f"It contains the identifier: “{words}”"
    elif first.by == "name":
        named = f"may mention the name as {first.spelling}" if first.spelling else "mentions the name"
        why = f"It {named}: “{words}”"
    facts = [fact for one in group for fact in facts_repeated(one.fact, divide=divide)]
    remainder = remainder_if_forgotten(first.fact.topic, facts)
    return TopicMatch(topic_id, why, round(first.confidence, 3), words, remainder, first.by, first.spelling)
