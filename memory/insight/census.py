"""The census: how many topics share everything that forgetting looks at. One pass over Vitality, one small table back.

What a run does to a topic follows from its rung, whether it is protected, between which thresholds its score lies, and
whether it was left alone long enough. However many policies and times are asked about, there are few different such
classes; so the database counts classes, and what becomes of each is decided once (``whatif``). Each policy has classes
of its own; all of them are counted by one statement.
"""

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection

from memory.core.rules import RELEASED
from memory.forgetting.judge import Judge
from memory.formulas.ladder import CLIMB_MARGIN, rung_target
from memory.models import Rung
from memory.policy.partition import ALL_TOPICS, PolicyPartition, TopicSubset
from memory.predicates.binding import Bound, scope_sql

# The values of a class are packed into integers below this; values that do not fit go into the next integer.
_PACKED_BELOW = 2**62


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One policy at one time. ``rests`` is whether runs skip the partition."""

    judge: Judge
    exempt: tuple[str, ...]
    rests: bool


@dataclass(frozen=True, slots=True)
class TopicClass:
    """A class of topics: their rung, whether they are in retrieval (``live``), the rung to which a run would move them
    under each view (``targets``), their bin in the histogram, and their number."""

    rung: int
    live: bool
    targets: tuple[int, ...]
    bin: int
    count: int


@dataclass(frozen=True, slots=True)
class CensusPart:
    """One partition of a census with the views of its topics."""

    partition: PolicyPartition
    views: Sequence[PolicyView]


class _Columns:
    """The expressions that define a class, without repetition, each with its number of possible values."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sizes: list[int] = []

    def place(self, text: str, size: int) -> int:
        if text not in self.texts:
            self.texts.append(text)
            self.sizes.append(size)
        return self.texts.index(text)

    def packed(self) -> tuple[list[str], list[list[int]]]:
        """Return SQL for integers that pack the values of the expressions, and which expressions each integer holds."""
        numbers: list[str] = []
        held: list[list[int]] = []
        factor = _PACKED_BELOW
        for at, (text, size) in enumerate(zip(self.texts, self.sizes, strict=True)):
            if factor * size >= _PACKED_BELOW:
                numbers.append("0::int8")
                held.append([])
                factor = 1
            numbers[-1] += f" + {factor}::int8 * ({text})"
            held[-1].append(at)
            factor *= size
        return numbers, held


class _Key:
    """The value that a policy compares with thresholds, divided into classes by the thresholds of all its views."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edges: set[float] = set()

    def add(self, bounds: Sequence[float]) -> None:
        for bound in bounds:
            # The bound itself is neither below nor above, so it is a class of its own.
            self.edges |= {bound, math.nextafter(bound, math.inf)}

    def sql(self) -> str:
        ordered = ",".join("Infinity" if edge == math.inf else repr(edge) for edge in self.sorted())
        return f"width_bucket({self.text}, '{{{ordered.replace('-inf', '-Infinity')}}}'::float8[])"

    def sorted(self) -> list[float]:
        return sorted(self.edges)

    def representatives(self) -> list[float]:
        """Return a value in the middle of each class."""
        edges = self.sorted()
        inner = [
            low if high <= math.nextafter(low, math.inf) else (low + high) / 2
            for low, high in itertools.pairwise(edges)
        ]
        return [-math.inf, *inner, math.inf]


def census_take(
    parts: Sequence[CensusPart], *, edges: Sequence[float], bound: Bound, subset: TopicSubset = ALL_TOPICS
) -> list[TopicClass]:
    """Return the classes of the topics in the partitions of ``parts``, including archived topics. One query.

    All parts have the same number of views. ``edges`` are the edges of the histogram, in scores by the first view.
    ``subset`` restricts the topics that are counted.
    """
    counts = [_Count(part, edges) for part in parts]
    width = max(len(count.numbers) for count in counts)
    statement = " UNION ALL ".join(
        count.sql(place, width=width, bound=bound, subset=subset) for place, count in enumerate(counts)
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, bound.values)
        rows = cursor.fetchall()
    return [counts[row[0]].read(row[1 : len(counts[row[0]].numbers) + 1], int(row[-1])) for row in rows]


class _Count:
    """The statement that counts the topics of one part, and the decoding of its rows."""

    def __init__(self, part: CensusPart, edges: Sequence[float]) -> None:
        self.partition, views = part.partition, part.views
        self.columns = columns = _Columns()
        self.rung_at = columns.place("v.rung", 4)
        self.live_at = columns.place("CASE WHEN v.live THEN 1 ELSE 0 END", 2)
        keys: dict[str, _Key] = {}
        for view in views:
            keys.setdefault(view.judge.key(), _Key(view.judge.key())).add(list(_thetas(view.judge)))
        first = views[0].judge
        keys[first.key()].add([first.bound(edge) for edge in edges[1:-1]])
        key_at = {text: columns.place(key.sql(), len(key.edges) + 1) for text, key in keys.items()}
        gates: dict[str, dict[str, dt.datetime]] = {}
        for view in views:
            judge = view.judge
            if judge.unused_since is not None:
                gates.setdefault(judge.last_use, {})[judge.unused_since] = judge.unused_moment
        gate_at = {use: columns.place(*_gate_sql(use, moments)) for use, moments in gates.items()}
        self.readers = [_Reader(view, columns, key_at, keys, gate_at, gates) for view in views]
        self.numbers, self.held = columns.packed()
        self.bin_at = key_at[first.key()]
        self.bins = [_bin_of(first.score_of(middle), edges) for middle in keys[first.key()].representatives()]

    def sql(self, place: int, *, width: int, bound: Bound, subset: TopicSubset) -> str:
        """Return the SELECT: ``place``, ``width`` integers that hold the class, and the number of topics."""
        join = "JOIN memory_topic t ON t.id = v.topic_id" if any(each.needs_topic for each in self.readers) else ""
        names = [f"k{at}" for at in range(len(self.numbers))]
        named = [f"{number} AS {name}" for number, name in zip(self.numbers, names, strict=True)]
        named += ["0::int8"] * (width - len(names))
        # The table sets `n_distinct` of keys and times to a small number. Otherwise the planner would expect one class
        # per topic and sort instead of counting in parallel.
        return f"""
            SELECT {place}, {", ".join(named)}, count(*) FROM memory_vitality v {join}
            WHERE (v.live OR v.rung = {Rung.ARCHIVED:d}) AND {self.partition.within_sql("v.scope_id", bound.bind)}
                  AND {subset.sql("v", bound.bind)}
            GROUP BY {", ".join(names)}"""

    def read(self, numbers: Sequence[Any], count: int) -> TopicClass:
        """Return the class that a row of the result describes."""
        values = _unpack(numbers, self.held, self.columns.sizes)
        rung, live = values[self.rung_at], bool(values[self.live_at])
        targets = tuple(reader.target(values, rung) if live else rung for reader in self.readers)
        return TopicClass(rung, live, targets, self.bins[values[self.bin_at]], count)


def _gate_sql(last_use: str, moments: dict[str, dt.datetime]) -> tuple[str, int]:
    """Return the expression for how many of these times lie before the last use, and its number of values.

    One expression covers all times: for a topic long unused, the first comparison decides.
    """
    ordered = sorted(moments, key=moments.__getitem__)
    cases = " ".join(f"WHEN {last_use} {moment} THEN {place}" for place, moment in enumerate(ordered))
    return f"CASE {cases} ELSE {len(ordered)} END", len(ordered) + 1


class _Reader:
    """Decides from the values of a class to which rung one view would move its topics."""

    def __init__(
        self,
        view: PolicyView,
        columns: _Columns,
        key_at: dict[str, int],
        keys: dict[str, _Key],
        gate_at: dict[str, int],
        gates: dict[str, dict[str, dt.datetime]],
    ) -> None:
        judge, self.rests = view.judge, view.rests
        knobs = judge.policy.knobs
        rules = judge.rules()
        self.needs_topic = rules.needs_topic
        self.key_at = key_at[judge.key()]
        # A key equal to a threshold is neither below nor above it. Converting it back to a score could round it.
        exact = _thetas(judge)
        scores = np.array(
            [exact.get(middle, judge.score_of(middle)) for middle in keys[judge.key()].representatives()]
        )[:, None, None]
        pinned = f"coalesce({rules.pins}, v.pinned)" if rules else "v.pinned"
        spared = [pinned, judge.exempt(), *(scope_sql("v.scope_id", path, judge.bind) for path in view.exempt)]
        self.spared_at = columns.place(f"CASE WHEN {' OR '.join(spared)} THEN 1 ELSE 0 END", 2)
        self.gate_at: int | None = None
        self.gate_place = 0
        if judge.unused_since is not None:
            moments = gates[judge.last_use]
            self.gate_at = gate_at[judge.last_use]
            self.gate_place = sorted(moments, key=moments.__getitem__).index(judge.unused_since)
        kept = judge.kept()
        self.needs_topic = self.needs_topic or kept.needs_topic
        self.kept_at = columns.place(kept.rung, int(Rung.ARCHIVED)) if kept.rung != "0" else None
        self.rule_at = columns.place(rules.rule_rung_direct, RELEASED + 1) if rules else None
        # The ladder for all classes at once: by place of the key, rung, and whether the topic is unused.
        self.ladder = rung_target(
            np.arange(len(Rung))[None, :, None],
            scores,
            archive_due=(scores < knobs.forget_salience_threshold) & np.array([False, True]),
            theta_summary=knobs.summarize_below,
            theta_detach=knobs.detach_below,
        )

    def target(self, values: Sequence[int], rung: int) -> int:
        if self.rests or values[self.spared_at]:
            return rung
        by_ladder = int(self.ladder[values[self.key_at], rung, int(self._unused(values))])
        # Released topics leave retrieval like archived ones and are counted with them.
        by_rule = 0 if self.rule_at is None else min(int(Rung.ARCHIVED), values[self.rule_at])
        kept = 0 if self.kept_at is None else min(rung, values[self.kept_at])
        return max(by_ladder, by_rule, kept)

    def _unused(self, values: Sequence[int]) -> bool:
        return self.gate_at is None or values[self.gate_at] <= self.gate_place


def _thetas(judge: Judge) -> dict[float, float]:
    """Return the scores at which the rung of a topic changes, by the corresponding value of the key."""
    knobs = judge.policy.knobs
    thetas = [knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold]
    thetas += [knobs.summarize_below * CLIMB_MARGIN, knobs.detach_below * CLIMB_MARGIN]
    return {judge.bound(theta): theta for theta in thetas}


def _unpack(numbers: Sequence[Any], held: list[list[int]], sizes: list[int]) -> list[int]:
    values = [0] * len(sizes)
    for number, places in zip(numbers, held, strict=True):
        for at in places:
            number, values[at] = divmod(int(number), sizes[at])
    return values


def _bin_of(score: float, edges: Sequence[float]) -> int:
    inner = edges[1:-1]
    return sum(edge <= score for edge in inner)
