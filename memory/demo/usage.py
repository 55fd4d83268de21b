"""The queries and the manual changes of the story."""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from memory.demo.material import HandChange, Question
from memory.demo.records import ChangeAction, StoryChange, StoryRetrieval, StoryTopic
from memory.demo.schedule import Calendar, scope_is_work
from memory.demo.search import Search, Window, topic_is_noise

_CLEAN_UP_DAYS: Final = (58, 87, 116, 145, 171)
_CLEAN_UP_REASONS: Final = (
    "looked up once, never again",
    "clean-up of old sessions",
    "stale reading",
    "later output says the same",
    "noise",
    "finished long ago",
)
_AFTER_ALL_REASONS: Final = ("wanted for the case study", "archived by mistake", "the numbers are needed after all")
_FORMS: Final = ("{}", "{}", "what do we know about {}", "remind me: {}", "{}, latest", "why {}", "background on {}")
_RESUME: Final = ("where did we stop", "pick up from yesterday", "open ends of the last session", "what was left open")


def changes_make(
    topics: Sequence[StoryTopic], *, by_hand: Sequence[HandChange], calendar: Calendar, rng: random.Random
) -> list[StoryChange]:
    """Return the changes that operators make: those listed in the data files (``by_hand``), and generated clean-ups,
    which archive about one topic in twenty."""
    by_key = {topic.key: topic for topic in topics}
    changes: list[StoryChange] = []

    def _act(day: int, action: ChangeAction, key: str, reason: str) -> None:
        at = calendar.time_draw(day, rng=rng, work=False)
        if day <= calendar.last_day and key in by_key and by_key[key].at < at:
            changes.append(StoryChange(at, key, action, reason))

    for change in by_hand:
        for key in change.topics:
            _act(change.day, change.action, key, change.reason)
    gone: set[str] = set()
    for day in _CLEAN_UP_DAYS:
        border = calendar.time_draw(day, rng=rng, work=False) - timedelta(days=18)
        stale = [topic for topic in topics if topic_is_noise(topic) and topic.at < border and topic.key not in gone]
        chosen = rng.sample(stale, min(len(stale), len(topics) // 90))
        for topic in chosen:
            gone.add(topic.key)
            _act(day, "archive", topic.key, rng.choice(_CLEAN_UP_REASONS))
        for topic in chosen[:1]:
            _act(day + rng.randint(2, 5), "restore", topic.key, rng.choice(_AFTER_ALL_REASONS))
    return changes


def windows_of(topics: Sequence[StoryTopic], changes: Sequence[StoryChange], *, now: datetime) -> dict[str, Window]:
    """Return a dict from the key of each topic to the times at which the topic could be found."""
    away: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.at):
        if change.action == "archive":
            away[change.key].append((change.at, now))
        elif change.action == "restore" and away[change.key]:
            away[change.key][-1] = (away[change.key][-1][0], change.at)
    return {topic.key: Window(topic.at, tuple(away[topic.key])) for topic in topics}


def retrievals_make(
    count: int,
    *,
    questions: Sequence[Question],
    topics: Sequence[StoryTopic],
    changes: Sequence[StoryChange],
    calendar: Calendar,
    rng: random.Random,
) -> list[StoryRetrieval]:
    """Return about ``count`` queries with their results. A few topics are returned often, noise almost never."""
    return _Asking(questions, topics, changes, calendar=calendar, rng=rng).ask(count)


class _Asking:
    def __init__(
        self,
        questions: Sequence[Question],
        topics: Sequence[StoryTopic],
        changes: Sequence[StoryChange],
        *,
        calendar: Calendar,
        rng: random.Random,
    ) -> None:
        self._calendar = calendar
        self._rng = rng
        self._windows = windows_of(topics, changes, now=calendar.now)
        self._search = Search(topics, windows=self._windows)
        self._questions = questions
        self._lasting = [topic for topic in topics if not topic_is_noise(topic) and topic.kind != "utterance"]
        self._sessions = [topic for topic in topics if topic.kind == "session_state"]
        ranks = rng.sample(range(1, len(self._lasting) + 1), len(self._lasting))
        self._fame = {topic.key: 1 / rank for topic, rank in zip(self._lasting, ranks, strict=True)}

    def ask(self, count: int) -> list[StoryRetrieval]:
        found: list[StoryRetrieval] = []
        for _ in range(count):
            day = self._calendar.day_draw(0, self._calendar.last_day, rng=self._rng)
            at = self._calendar.time_draw(day, rng=self._rng, work=day % 7 < 5 and self._rng.random() < 0.65)
            query, keys = self._ask_one(day, at)
            if keys:
                found.append(StoryRetrieval(at, query, keys, self._actor(keys[0])))
        return found

    def _ask_one(self, day: int, at: datetime) -> tuple[str, tuple[str, ...]]:
        most = self._rng.choice((2, 3, 4, 5, 8))
        luck = self._rng.random()
        if luck < 0.06:
            query = self._rng.choice(_RESUME)
            recent = [topic.key for topic in self._sessions if at - timedelta(days=1) < topic.at < at]
            return query, self._search.find("", at=at, most=min(most, 2), sure=recent[::-1])
        if luck < 0.36 and (topic := self._topic_draw(at)):
            query = self._rng.choice(_FORMS).format(topic.title[:1].lower() + topic.title[1:])
            return query, self._search.find(query, at=at, most=most, old_noise=self._rng.random() < 0.04)
        question = self._question_draw(day)
        query = self._rng.choice(question.wordings)
        old_noise = self._rng.random() < 0.04
        return query, self._search.find(query, at=at, most=most, sure=question.topics, old_noise=old_noise)

    def _question_draw(self, day: int) -> Question:
        fitting = [question for question in self._questions if question.days[0] <= day <= question.days[1]]
        return self._rng.choices(fitting, [question.weight for question in fitting])[0]

    def _topic_draw(self, at: datetime) -> StoryTopic | None:
        there = [topic for topic in self._lasting if self._windows[topic.key].holds(at)]
        if not there:
            return None
        weights = [
            (0.002 + self._fame[topic.key]) * (0.1 + math.exp((topic.at - at) / timedelta(days=12))) for topic in there
        ]
        return self._rng.choices(there, weights)[0]

    def _actor(self, first_key: str) -> str:
        scope = next((topic.scope for topic in self._lasting if topic.key == first_key), "")
        if scope_is_work(scope):
            return self._rng.choice(("assistant", "assistant", "work-helper", "planner"))
        return self._rng.choice(("assistant", "assistant", "assistant", "planner", "mara"))
