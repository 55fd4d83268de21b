"""Adds tool outputs and session states to the story. Most topics of a memory are of these kinds, and are seldom
used."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from memory.demo.material import Family
from memory.demo.notes import person_name
from memory.demo.phrases import Phrase, phrase_draw
from memory.demo.placing import salience_draw
from memory.demo.records import StoryField, StoryLink, StoryTopic
from memory.demo.schedule import Calendar, scope_is_work
from memory.demo.search import Search, Window

_TRIES: Final = 40
_NAME: Final = re.compile(r"\b[A-ZÅÄÖ]\w+")
_WORK_CATEGORIES: Final = frozenset({"atlas", "lantern", "pebble", "old-site", "work"})


def noise_make(
    count: int, *, families: Sequence[Family], known: Sequence[StoryTopic], calendar: Calendar, rng: random.Random
) -> list[StoryTopic]:
    """Return ``count`` topics in order of time. Some are linked to each other or to the topic that they are about."""
    drawn = rng.choices(families, [family.weight for family in families], k=count)
    moments = [(_moment(family, calendar=calendar, rng=rng), family) for family in drawn]
    moments.sort(key=lambda pair: pair[0])
    search = Search(known, windows={topic.key: Window(topic.at) for topic in known})
    people = {person_name(topic.title): topic.key for topic in known if topic.kind == "person"}
    titles = {topic.title for topic in known}
    summaries = {topic.summary for topic in known}
    last: dict[str, StoryTopic] = {}
    sessions: dict[str, list[StoryTopic]] = defaultdict(list)
    topics: list[StoryTopic] = []
    for number, (at, family) in enumerate(moments):
        phrase = _phrase_new(family, at=at, titles=titles, summaries=summaries, rng=rng)
        day = at.date().isoformat()
        topic = StoryTopic(
            key=f"{family.key}-{number:04d}",
            at=at,
            scope=f"/session/{day}" if family.scope == "/session" else family.scope,
            kind=family.kind,
            title=phrase.title,
            summary=phrase.summary,
            salience=salience_draw(family.kind, rng=rng),
            categories=family.categories,
            pinned=False,
            pin_reason="",
            fields=tuple(
                StoryField(name, value, field_type, None, f"tool:{family.key}")
                for name, field_type, value in phrase.fields
            ),
            links=_links(
                family, phrase, at=at, last=last, same_day=sessions[day], search=search, people=people, rng=rng
            ),
        )
        if family.kind == "session_state":
            sessions[day].append(topic)
        last[family.key] = topic
        topics.append(topic)
    return topics


def _family_is_work(family: Family) -> bool:
    return scope_is_work(family.scope) or not _WORK_CATEGORIES.isdisjoint(family.categories)


def _moment(family: Family, *, calendar: Calendar, rng: random.Random) -> datetime:
    work = _family_is_work(family)
    day = calendar.day_draw(*family.days, rng=rng, work=work)
    return calendar.time_draw(day, rng=rng, work=work)


def _phrase_new(family: Family, *, at: datetime, titles: set[str], summaries: set[str], rng: random.Random) -> Phrase:
    for tried in range(_TRIES):
        phrase = phrase_draw(family, rng=rng, at=at)
        if phrase.summary not in summaries and (phrase.title not in titles or tried > _TRIES // 2):
            break
    titles.add(phrase.title)
    summaries.add(phrase.summary)
    return phrase


def _links(
    family: Family,
    phrase: Phrase,
    *,
    at: datetime,
    last: dict[str, StoryTopic],
    same_day: Sequence[StoryTopic],
    search: Search,
    people: dict[str, str],
    rng: random.Random,
) -> tuple[StoryLink, ...]:
    links: list[StoryLink] = []
    before = last.get(family.key)
    if before and before.at < at and at - before.at < timedelta(days=6) and rng.random() < 0.4:
        links.append(StoryLink(before.key, "follows"))
    session = next((topic for topic in reversed(same_day) if topic.at < at), None)
    if session and session is not before and family.kind == "tool_output" and rng.random() < 0.35:
        links.append(StoryLink(session.key, "part_of"))
    if rng.random() < 0.3:
        known = search.present(family.about, at=at)
        links.extend(StoryLink(key, "about") for key in rng.sample(known, min(1, len(known))))
    words = _NAME.findall(f"{phrase.title} {phrase.summary}")
    named = search.present(dict.fromkeys(people[word] for word in words if word in people), at=at)
    links.extend(StoryLink(key, "mentions") for key in named if StoryLink(key, "about") not in links)
    return tuple(links)
