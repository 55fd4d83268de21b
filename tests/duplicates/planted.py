"""A store of facts with near-duplicates and look-alikes planted in it, and what detection made of them."""

import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from memory.duplicates.detect import duplicates_find
from memory.models import DuplicatePair
from tests.benchmarks.likenesses import facts_draw, look_alike_make, near_make, paraphrase_make
from tests.cast import Caller

Key = frozenset[uuid.UUID]
SCOPE = "/planted"


@dataclass
class Planted:
    """Pairs that were planted, by what they are; every other pair of the store is two facts."""

    near: set[Key] = field(default_factory=set)
    paraphrased: set[Key] = field(default_factory=set)
    alike: dict[Key, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What became of the planted pairs."""

    offered: int
    offered_paraphrased: int
    merged: int
    merged_paraphrased: int
    wrongly_merged: list[tuple[str, str]]
    alike_held: int
    verdicts: Counter[tuple[str, str]]


def plant(operator: Caller, *, facts: int, near: int, alike: int, seed: int = 5, paraphrased: int = 0) -> Planted:
    """Ingest ``facts`` facts and so many more that are near-duplicates, paraphrases or look-alikes of one of them."""
    dice = random.Random(seed)
    drawn = facts_draw(facts, dice)
    ids = _ingest(operator, [fact.text() for fact in drawn])
    planted = Planted()
    chosen = iter(dice.sample(range(facts), near + paraphrased + alike))
    ways = ((near_make, near, planted.near), (paraphrase_make, paraphrased, planted.paraphrased))
    for make, number, into in ways:
        places = [next(chosen) for _ in range(number)]
        twins = _ingest(operator, [make(drawn[place], dice) for place in places])
        into.update(frozenset((ids[place], twin)) for place, twin in zip(places, twins, strict=True))
    places = [next(chosen) for _ in range(alike)]
    said: list[tuple[str, str]] = []
    taken = {fact.text() for fact in drawn}
    for place in places:
        made = look_alike_make(drawn[place], dice)
        while made[0] in taken:
            # What looks like one fact must not be another.
            made = look_alike_make(drawn[place], dice)
        taken.add(made[0])
        said.append(made)
    others = _ingest(operator, [text for text, _way in said])
    for place, other, (_text, way) in zip(places, others, said, strict=True):
        planted.alike[frozenset((ids[place], other))] = way
    return planted


def search_all() -> int:
    """Look until nothing is left to compare; return how many looks that took."""
    looks = 1
    while duplicates_find(None, now=timezone.now(), seconds=600.0):
        looks += 1
    return looks


def outcome(planted: Planted) -> Outcome:
    """Return what became of the planted pairs, and which pairs were merged that are two facts."""
    pairs = list(DuplicatePair.objects.select_related("one", "other"))
    keys = {frozenset((pair.one_id, pair.other_id)): pair for pair in pairs}
    merged = {key for key, pair in keys.items() if pair.state == "merged"}
    # A lapsed pair was offered too: one of the two has gone into a third by then.
    seen = keys.keys()
    same = planted.near | planted.paraphrased
    wrong = [(keys[key].one.title, keys[key].other.title) for key in merged - same]
    return Outcome(
        offered=len(planted.near & seen),
        offered_paraphrased=len(planted.paraphrased & seen),
        merged=len(planted.near & merged),
        merged_paraphrased=len(planted.paraphrased & merged),
        wrongly_merged=wrong,
        alike_held=len(planted.alike.keys() & seen),
        verdicts=Counter((pair.verdict, pair.state) for pair in pairs),
    )


def _ingest(operator: Caller, texts: list[str]) -> list[uuid.UUID]:
    found: list[uuid.UUID] = []
    for start in range(0, len(texts), 500):
        items: list[Any] = [
            {"placement": "new_topic", "title": text, "scope": SCOPE, "topic_kind": "fact"}
            for text in texts[start : start + 500]
        ]
        reply = operator.post("/v1/ingest/batch", items).ok()
        assert reply["refused"] == 0, reply
        found += [uuid.UUID(result["topic_id"]) for result in reply["results"]]
    return found
