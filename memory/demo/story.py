"""The story of half a year of one assistant's memory, the same for the same `now`, seed and size.

Mara Lindqvist designs ferry apps in Gothenburg, moves house, is promoted and launches a product; her assistant
remembers that, and a great deal that nobody will ever ask for again.
"""

import random
from datetime import datetime
from typing import Final

from memory.demo.chapters import again_read, chapters_read
from memory.demo.noise import noise_make
from memory.demo.placing import notes_choose, notes_place
from memory.demo.questions import questions_read
from memory.demo.rhythm import Calendar
from memory.demo.shapes import (
    Story,
    StoryChange,
    StoryField,
    StoryLink,
    StoryRetrieval,
    StoryRevision,
    StoryTopic,
    topic_id,
)
from memory.demo.usage import changes_make, retrievals_make

__all__ = [
    "Story",
    "StoryChange",
    "StoryField",
    "StoryLink",
    "StoryRetrieval",
    "StoryRevision",
    "StoryTopic",
    "story_build",
    "topic_id",
]

_WRITTEN_SHARE: Final = 0.42
_RETRIEVALS_PER_TOPIC: Final = 1.8


def story_build(*, now: datetime, seed: int = 7, topics: int = 2000) -> Story:
    """The story that ends at `now`: exactly so many topics, and everything else in proportion."""

    def _rng(part: str) -> random.Random:
        return random.Random(f"{seed}/{part}")  # noqa: S311 - the same story every time is the point

    calendar = Calendar(now)
    wanted = [key for question in questions_read() for key in question.keys]
    notes = notes_choose(
        chapters_read(rng=_rng("series")), most=int(topics * _WRITTEN_SHARE), wanted=wanted, rng=_rng("choice")
    )
    written, revisions = notes_place(notes, calendar=calendar, rng=_rng("placing"))
    again, _none = notes_place(again_read(notes)[: topics - len(written)], calendar=calendar, rng=_rng("again"))
    written += again
    noise = noise_make(topics - len(written), known=written, calendar=calendar, rng=_rng("noise"))
    told = sorted([*written, *noise], key=lambda topic: (topic.at, topic.key))
    changes = changes_make(told, calendar=calendar, rng=_rng("changes"))
    retrievals = retrievals_make(
        int(topics * _RETRIEVALS_PER_TOPIC), topics=told, changes=changes, calendar=calendar, rng=_rng("asking")
    )
    return Story(
        topics=tuple(told),
        revisions=tuple(sorted(revisions, key=lambda revision: (revision.at, revision.key, revision.name))),
        retrievals=tuple(sorted(retrievals, key=lambda retrieval: (retrieval.at, retrieval.query))),
        changes=tuple(sorted(changes, key=lambda change: (change.at, change.key))),
    )
