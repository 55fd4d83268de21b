"""From the words of a request to the topics it is about."""

import uuid
from dataclasses import dataclass, field

from memory.forgetting.judgement import Bound


@dataclass(frozen=True, slots=True)
class Matched:
    """A topic that a request is about: why, how sure that is (0 to 1), and the words that matched."""

    topic_id: uuid.UUID
    why: str
    confidence: float
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is about. Ambiguous: several topics match equally well, and ``question`` asks which."""

    matches: list[Matched] = field(default_factory=list)
    ambiguous: bool = False
    question: str = ""


def matches_find(query: str, *, scope: str, conditions: str, bound: Bound, history: bool) -> Answer:
    """Return the topics among those of ``conditions`` that ``query`` is about."""
    raise NotImplementedError
