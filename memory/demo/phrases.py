"""Draws one output of a family at random: replaces the placeholders in braces in title, summary and fields.

`{number 2-14}` is a whole number, `{decimal 0.4-9.5}` a number with one decimal, `{clock}` a time of day, `{office}` a
time of day at work. `{now}`, `{weekday}` and `{today}` are the time of the output, `{soon}` and `{workday}` a day
shortly after. Any other name is replaced by an entry of the family's words. `{name.1}` is replaced by the second part
of that entry. An entry is drawn once per output, so that title and summary agree.
"""

import random
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memory.demo.material import Family
from memory.demo.records import FieldType

_SENTENCE: Final = re.compile(r"""(?<=[a-zåäö0-9)][.?] )[a-zåäö]|(?<=[.?]" )[a-zåäö]""")
_PLACE: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Phrase:
    """The texts of one output of a family."""

    title: str
    summary: str
    fields: tuple[tuple[str, FieldType, str], ...]


def phrase_draw(family: Family, *, rng: random.Random, at: datetime) -> Phrase:
    """Return one output of the family at this time."""
    drawn: dict[str, tuple[str, ...]] = {}

    def _words(name: str) -> tuple[str, ...]:
        if name not in drawn:
            drawn[name] = tuple(_PLACE.sub(_placeholder_value, part) for part in rng.choice(family.words[name]))
        return drawn[name]

    def _placeholder_value(match: re.Match[str]) -> str:
        slot = match[1]
        kind, _, span = slot.partition(" ")
        if span:
            low, _, high = span.partition("-")
            if kind == "number":
                return str(rng.randint(int(low), int(high)))
            return f"{rng.uniform(float(low), float(high)):.1f}"
        if slot in ("weekday", "today", "soon", "clock", "now", "office", "workday"):
            return _moment(slot, rng=rng, at=at)
        name, _, part = slot.partition(".")
        return _words(name)[int(part or 0)]

    def _write(template: str) -> str:
        text = _SENTENCE.sub(lambda start: start[0].upper(), _PLACE.sub(_placeholder_value, template))
        return text[:1].upper() + text[1:]

    return Phrase(
        _write(rng.choice(family.titles)),
        _write(rng.choice(family.summaries)),
        tuple((field.name, field.type, _PLACE.sub(_placeholder_value, field.value)) for field in family.fields),
    )


def _moment(slot: str, *, rng: random.Random, at: datetime) -> str:
    if slot == "clock":
        return f"{rng.randint(7, 20)}.{rng.choice((0, 5, 10, 12, 20, 25, 30, 40, 45, 50)):02d}"
    if slot == "office":
        return f"{rng.randint(9, 15)}.{rng.choice(('00', '15', '30', '45'))}"
    if slot == "now":
        return f"{at.hour}.{at.minute:02d}"
    if slot == "weekday":
        return f"{at:%A}"
    if slot == "workday":
        day = at + timedelta(days=rng.randint(1, 9))
        day += timedelta(days=max(0, 7 - day.weekday()) if day.weekday() > 4 else 0)
        return f"{day:%A} {day.day} {day:%B}"
    day = at if slot == "today" else at + timedelta(days=rng.randint(1, 9))
    return f"{day.day} {day:%B}" if slot == "today" else f"{day:%A} {day.day} {day:%B}"
