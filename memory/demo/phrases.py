"""The notation for everyday noise: families of similar outputs whose words are drawn from pools.

    * weather | tool_output | /user/mara | 0-183 | 24 | weather     name, kind, scope, days, weight, categories
    # where: Mölndal / west; Kalmar / east                          a pool; parts of an entry go together
    - Forecast for {where.0}                                        a possible title
    : {~4-21} degrees, wind from the {where.1} at {#2-14} m/s.      a possible summary
    = minutes int {#2-14}                                           a field
    > mara-address, home                                            known topics that such an output may be about

`{#2-14}` is a whole number, `{~0.4-9.5}` one with a decimal, `{clock}` a time of day, `{office}` one at work. `{now}`,
`{weekday}` and `{today}` are the moment itself, `{soon}` and `{workday}` a day shortly after it. A pool is
drawn once a text, so that a title and its summary agree.
"""

import random
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from memory.demo.shapes import KINDS, FieldType

_SENTENCE = re.compile(r"""(?<=[a-zåäö0-9)][.?] )[a-zåäö]|(?<=[.?]" )[a-zåäö]""")
_SLOT = re.compile(r"\{([^{}]+)\}")


@dataclass(slots=True)
class Family:
    """Outputs of one sort: what they may be called, what they may say, and when they come."""

    name: str
    kind: str
    scope: str
    days: tuple[int, int]
    weight: int
    categories: tuple[str, ...]
    pools: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    fields: list[tuple[str, FieldType, str]] = field(default_factory=list)
    about: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Phrase:
    """One output of a family, in words."""

    title: str
    summary: str
    fields: tuple[tuple[str, FieldType, str], ...]


def families_read(chapter: str) -> list[Family]:
    """The families of a chapter; a malformed line raises `ValueError` and quotes it."""
    families: list[Family] = []
    for line in (raw.strip() for raw in chapter.splitlines()):
        if not line:
            continue
        mark, rest = line[0], line[1:].strip()
        if mark != "*" and not families:
            raise ValueError(f"text before the first family: {line!r}")
        if mark == "*":
            parts = [part.strip() for part in rest.split("|")]
            if len(parts) != 6:
                raise ValueError(f"a family begins `name | kind | scope | days | weight | categories`: {line!r}")
            name, kind, scope, days, weight, categories = parts
            if kind not in KINDS:
                raise ValueError(f"unknown kind: {line!r}")
            first, _, last = days.partition("-")
            words = tuple(word.strip() for word in categories.split(","))
            families.append(Family(name, kind, scope, (int(first), int(last)), int(weight), words))
        elif mark == "#":
            name, _, entries = rest.partition(":")
            pool = families[-1].pools.setdefault(name.strip(), [])
            pool.extend(tuple(part.strip() for part in entry.split(" / ")) for entry in entries.split(";"))
        elif mark == "-":
            families[-1].titles.append(rest)
        elif mark == ":":
            families[-1].summaries.append(rest)
        elif mark == "=":
            name, field_type, template = rest.split(maxsplit=2)
            families[-1].fields.append((name, cast(FieldType, field_type), template))
        elif mark == ">":
            families[-1].about.extend(key.strip() for key in rest.split(","))
        else:
            raise ValueError(f"unknown mark: {line!r}")
    return families


def phrase_draw(family: Family, *, rng: random.Random, at: datetime) -> Phrase:
    """One output of the family at this moment."""
    drawn: dict[str, tuple[str, ...]] = {}

    def _pool(name: str) -> tuple[str, ...]:
        if name not in drawn:
            drawn[name] = tuple(_SLOT.sub(_fill, part) for part in rng.choice(family.pools[name]))
        return drawn[name]

    def _fill(match: re.Match[str]) -> str:
        slot = match[1]
        if slot[0] in "#~":
            low, _, high = slot[1:].partition("-")
            if slot[0] == "#":
                return str(rng.randint(int(low), int(high)))
            return f"{rng.uniform(float(low), float(high)):.1f}"
        if slot in ("weekday", "today", "soon", "clock", "now", "office", "workday"):
            return _moment(slot, rng=rng, at=at)
        name, _, part = slot.partition(".")
        return _pool(name)[int(part or 0)]

    def _write(template: str) -> str:
        text = _SENTENCE.sub(lambda start: start[0].upper(), _SLOT.sub(_fill, template))
        return text[:1].upper() + text[1:]

    return Phrase(
        _write(rng.choice(family.titles)),
        _write(rng.choice(family.summaries)),
        tuple((name, field_type, _SLOT.sub(_fill, template)) for name, field_type, template in family.fields),
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
