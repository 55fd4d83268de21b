"""Builds the story: half a year of one assistant's memory. The same `now`, seed and size give the same story.

Mara Lindqvist designs ferry apps in Gothenburg, moves house, is promoted and launches a product. Her assistant
remembers this, and many tool outputs that are not needed again.
"""

import random
from datetime import datetime
from typing import Final

from memory.demo.material import material_read
from memory.demo.noise import noise_make
from memory.demo.notes import look_alikes_of, notes_gather
from memory.demo.placing import notes_choose, notes_place
from memory.demo.records import Story
from memory.demo.schedule import Calendar
from memory.demo.usage import changes_make, retrievals_make

_WRITTEN_SHARE: Final = 0.42
_RETRIEVALS_PER_TOPIC: Final = 1.8


def story_build(*, now: datetime, seed: int = 7, topics: int = 2000) -> Story:
    """Return the story that ends at `now`, with exactly ``topics`` topics and everything else in proportion."""

    def _rng(part: str) -> random.Random:
        return random.Random(f"{seed}/{part}")  # noqa: S311 - the same story every time is the point

    calendar = Calendar(now)
    material = material_read(day_zero=calendar.day_zero)
    wanted = [key for question in material.questions for key in question.topics]
    notes = notes_choose(
        notes_gather(material, rng=_rng("series")), most=int(topics * _WRITTEN_SHARE), wanted=wanted, rng=_rng("choice")
    )
    written, revisions = notes_place(notes, calendar=calendar, rng=_rng("placing"))
    alike = look_alikes_of(notes, material=material)[: topics - len(written)]
    written += notes_place(alike, calendar=calendar, rng=_rng("again"))[0]
    noise = noise_make(
        topics - len(written), families=material.families, known=written, calendar=calendar, rng=_rng("noise")
    )
    in_order = sorted([*written, *noise], key=lambda topic: (topic.at, topic.key))
    changes = changes_make(in_order, by_hand=material.changes, calendar=calendar, rng=_rng("changes"))
    retrievals = retrievals_make(
        int(topics * _RETRIEVALS_PER_TOPIC),
        questions=material.questions,
        topics=in_order,
        changes=changes,
        calendar=calendar,
        rng=_rng("asking"),
    )
    return Story(
        topics=tuple(in_order),
        revisions=tuple(sorted(revisions, key=lambda revision: (revision.at, revision.key, revision.name))),
        retrievals=tuple(sorted(retrievals, key=lambda retrieval: (retrieval.at, retrieval.query))),
        changes=tuple(sorted(changes, key=lambda change: (change.at, change.key))),
    )
