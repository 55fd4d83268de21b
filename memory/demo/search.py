"""A simple search that gives plausible results for the queries of the story."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.demo.records import StoryTopic

_WORD: Final = re.compile(r"[^\W_]{3,}")
_COMMON: Final = frozenset(
    """
    the and for with are was were has have had not from that this what when where which who how does can may must will
    she her his him they them all any but out off into than then too very about after before get without mara next
    today week now monday tuesday wednesday thursday friday saturday sunday
    """.split()  # noqa: SIM905 - a list of sixty literals is no easier to read
)
_FRESH: Final = timedelta(days=3)


def topic_is_noise(topic: StoryTopic) -> bool:
    """Return whether the topic is noise: a tool output or a session state."""
    return topic.kind in ("tool_output", "session_state") or topic.scope.startswith("/session/")


def words_of(text: str) -> list[str]:
    """Return the distinctive words of a text, without plural endings."""
    return [word.removesuffix("s") for word in _WORD.findall(text.lower()) if word not in _COMMON]


@dataclass(frozen=True, slots=True)
class Window:
    """The time during which a topic can be found: since its creation, except while it was archived."""

    opens: datetime
    away: tuple[tuple[datetime, datetime], ...] = ()

    def holds(self, at: datetime) -> bool:
        """Return whether the topic can be found at this time."""
        return self.opens < at and not any(start <= at < end for start, end in self.away)


class Search:
    """Finds topics by the words that they share with a query. Rare words and recent noise rank higher."""

    def __init__(self, topics: Iterable[StoryTopic], *, windows: dict[str, Window]) -> None:
        self._topics = {topic.key: topic for topic in topics}
        self._windows = windows
        self._postings: dict[str, dict[str, float]] = defaultdict(dict)
        for topic in self._topics.values():
            for word, count in Counter(words_of(topic.title)).items():
                self._postings[word][topic.key] = 2.0 * count
            for word in dict.fromkeys(words_of(topic.summary)):
                self._postings[word][topic.key] = self._postings[word].get(topic.key, 0.0) + 1.0

    def present(self, keys: Iterable[str], *, at: datetime) -> list[str]:
        """Return the keys of topics that can be found at this time."""
        return [key for key in keys if key in self._topics and self._windows[key].holds(at)]

    def find(
        self, query: str, *, at: datetime, most: int, sure: Iterable[str] = (), old_noise: bool = False
    ) -> tuple[str, ...]:
        """Return up to `most` keys for the query at the time `at`: first the topics in ``sure``, then the best matches.
        If ``old_noise`` is true, old noise can be found, too."""
        scores: dict[str, float] = {}
        for word in dict.fromkeys(words_of(query)):
            postings = self._postings.get(word, {})
            rarity = math.log(1 + len(self._topics) / (1 + len(postings)))
            for key, strength in postings.items():
                scores[key] = scores.get(key, 0.0) + strength * rarity
        for key in list(scores):
            scores[key] *= self._weight(key, at=at, old_noise=old_noise)
        first = self.present(sure, at=at)
        floor = 0.45 * max(scores.values(), default=0.0)
        ranked = sorted((key for key, score in scores.items() if score > floor), key=lambda key: (-scores[key], key))
        return tuple(dict.fromkeys([*first, *ranked]))[:most]

    def _weight(self, key: str, *, at: datetime, old_noise: bool) -> float:
        if not self._windows[key].holds(at):
            return 0.0
        topic = self._topics[key]
        if not topic_is_noise(topic):
            return 1.0
        if at - topic.at <= _FRESH:
            return 0.9
        return 0.35 if old_noise else 0.0
