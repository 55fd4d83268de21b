"""What a request is about: the topics, and why each."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from memory.forgetting.judgement import Bound

EXCERPT = 160


@dataclass(frozen=True, slots=True)
class Matched:
    """A topic that a request is about: why, how sure that is (0 to 1), and the words that matched."""

    topic_id: uuid.UUID
    why: str
    confidence: float
    excerpt: str = ""
    rest: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is about. Ambiguous: several topics match equally well, and ``question`` asks which."""

    matches: list[Matched] = field(default_factory=list)
    ambiguous: bool = False
    question: str = ""


def excerpt(text: str, at: int) -> str:
    """Return the words of ``text`` around ``at``, in one line."""
    start = max(0, at - EXCERPT // 3)
    piece = " ".join(text[start : start + EXCERPT].split())
    return f"{'…' if start else ''}{piece}{'…' if start + EXCERPT < len(text) else ''}"


def ids_read(sql: str, bound: Bound) -> list[uuid.UUID]:
    """Return the ids that a statement gives. One query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, bound.values)
        return [row[0] for row in cursor.fetchall()]
