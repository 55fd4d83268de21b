"""The census: counts the topics of a scope by class, in one pass over Vitality. Runs treat all topics of a class alike.

What a run does to a topic depends on its rung, its protections, the rules that apply, the two thresholds around its
score, and whether it was unused long enough. A class is a combination of these properties, and few combinations occur.
The database counts the topics of each class, and Python computes once per class what runs would do. Counting the rows
of the candidate query instead, for each policy and time, takes four to thirty times as long.
"""

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memory.core.rules import RELEASED
from memory.forgetting.judge import Judge, rules_sql
from memory.formulas.ladder import CLIMB_MARGIN, rung_target
from memory.models import Rung
from memory.models.statements import rows_read
from memory.policy.partition import ALL_TOPICS, PolicyPartition, TopicSubset
from memory.predicates.binding import Bound, scope_sql

# The values that define a class are packed into integers below this number, as many into each integer as fit.
_PACKED_BELOW = 2**62


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A view of a partition: one policy at one time, the exempt scopes in the partition, and whether runs skip the
    partition (``rests``)."""

    judge: Judge
    exempt: tuple[str, ...]
    rests: bool


@dataclass(frozen=True, slots=True)
class TopicClass:
    """A class of topics. ``targets`` has, for each view, the rung to which a run would move the topics. ``bin`` is
    their bin in the histogram, and ``count`` is their number."""

    partition: PolicyPartition
    rung: int
    live: bool
    targets: tuple[int, ...]
    bin: int
    count: int


@dataclass(frozen=True, slots=True)
class CensusPart:
    """One partition of a census, and the views under which its topics are evaluated."""

    partition: PolicyPartition
    views: Sequence[PolicyView]


class _Columns:
    """The SQL expressions that define a class, each with its number of possible values."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.sizes: list[int] = []

    def add(self, text: str, size: int) -> int:
        """Add an expression unless it is there already. Return its index."""
        if text not in self.texts:
            self.texts.append(text)
            self.sizes.append(size)
        return self.texts.index(text)

    def packed(self) -> tuple[list[str], list[list[int]]]:
        """Return the SQL of the integers into which the values are packed, and for each integer the indexes of its
        expressions."""
        numbers: list[str] = []
        contents: list[list[int]] = []
        factor = _PACKED_BELOW
        for at, (text, size) in enumerate(zip(self.texts, self.sizes, strict=True)):
            if factor * size >= _PACKED_BELOW:
                numbers.append("0::int8")
                contents.append([])
                factor = 1
            numbers[-1] += f" + {factor}::int8 * ({text})"
            contents[-1].append(at)
            factor *= size
        return numbers, contents


class _Key:
    """An SQL expression that policies compare with thresholds. The thresholds divide its values into intervals."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edges: set[float] = set()

    def add(self, bounds: Sequence[float]) -> None:
        for bound in bounds:
            # A value equal to the bound is neither below nor above it, so it is an interval of its own.
            self.edges |= {bound, math.nextafter(bound, math.inf)}

    def sql(self) -> str:
        ordered = ",".join("Infinity" if edge == math.inf else repr(edge) for edge in self.sorted())
        return f"width_bucket({self.text}, '{{{ordered.replace('-inf', '-Infinity')}}}'::float8[])"

    def sorted(self) -> list[float]:
        return sorted(self.edges)

    def representatives(self) -> list[float]:
        """Return one value from each interval between two neighbouring edges, and the two infinities."""
        edges = self.sorted()
        inner = [
            low if high <= math.nextafter(low, math.inf) else (low + high) / 2
            for low, high in itertools.pairwise(edges)
        ]
        return [-math.inf, *inner, math.inf]


def census_take(
    parts: Sequence[CensusPart], *, edges: Sequence[float], bound: Bound, subset: TopicSubset = ALL_TOPICS
) -> list[TopicClass]:
    """Return the classes of the topics in ``parts``, including archived topics. One query. All parts need the same
    number of views. ``edges`` are the limits of the bins of the histogram; a topic is put into a bin by its score under
    the first view."""
    counts = [_Count(part, edges) for part in parts]
    width = max(len(count.numbers) for count in counts)
    statement = " UNION ALL ".join(
        count.sql(number, width=width, bound=bound, subset=subset) for number, count in enumerate(counts)
    )
    rows = rows_read(statement, bound.values)
    return [counts[row[0]].read(row[1 : len(counts[row[0]].numbers) + 1], int(row[-1])) for row in rows]


class _Count:
    """The SQL statement that counts the topics of one part, and the decoding of its rows."""

    def __init__(self, part: CensusPart, edges: Sequence[float]) -> None:
        self.partition, views = part.partition, part.views
        self.columns = columns = _Columns()
        self.rung_at = columns.add("v.rung", 4)
        self.live_at = columns.add("CASE WHEN v.live THEN 1 ELSE 0 END", 2)
        keys: dict[str, _Key] = {}
        for view in views:
            keys.setdefault(view.judge.key(), _Key(view.judge.key())).add(list(_thetas(view.judge)))
        first = views[0].judge
        keys[first.key()].add([first.bound(edge) for edge in edges[1:-1]])
        key_at = {text: columns.add(key.sql(), len(key.edges) + 1) for text, key in keys.items()}
        gates: dict[str, dict[str, dt.datetime]] = {}
        for view in views:
            judge = view.judge
            if judge.unused_since is not None:
                gates.setdefault(judge.last_use, {})[judge.unused_since] = judge.unused_moment
        gate_at = {use: columns.add(*_gate_sql(use, moments)) for use, moments in gates.items()}
        self.readers = [_Reader(view, columns, key_at, keys, gate_at, gates) for view in views]
        self.numbers, self.contents = columns.packed()
        self.bin_at = key_at[first.key()]
        scores = [first.score_of(middle) for middle in keys[first.key()].representatives()]
        self.bins = [sum(edge <= score for edge in edges[1:-1]) for score in scores]

    def sql(self, part: int, *, width: int, bound: Bound, subset: TopicSubset) -> str:
        """Return a SELECT of the part's number, ``width`` integers that encode the class, and the number of topics."""
        join = "JOIN memory_topic t ON t.id = v.topic_id" if any(each.needs_topic for each in self.readers) else ""
        names = [f"k{at}" for at in range(len(self.numbers))]
        named = [f"{number} AS {name}" for number, name in zip(self.numbers, names, strict=True)]
        named += ["0::int8"] * (width - len(names))
        # The table sets ``n_distinct`` of keys and times to a small number. Otherwise PostgreSQL would expect one class
        # per topic, and sort instead of counting in parallel.
        return f"""
            SELECT {part}, {", ".join(named)}, count(*) FROM memory_vitality v {join}
            WHERE (v.live OR v.rung = {Rung.ARCHIVED:d}) AND {self.partition.within_sql("v.scope_id", bound.bind)}
                  AND {subset.sql("v", bound.bind)}
            GROUP BY {", ".join(names)}"""

    def read(self, numbers: Sequence[Any], count: int) -> TopicClass:
        values = _unpack(numbers, self.contents, self.columns.sizes)
        rung, live = values[self.rung_at], bool(values[self.live_at])
        targets = tuple(reader.target(values, rung) if live else rung for reader in self.readers)
        return TopicClass(self.partition, rung, live, targets, self.bins[values[self.bin_at]], count)


def _gate_sql(last_use: str, moments: dict[str, dt.datetime]) -> tuple[str, int]:
    """Return SQL for a number, and how many values the number can have. The number is how many of the times in
    ``moments`` are before the last use. ``moments`` maps the SQL of each time to the time."""
    ordered = sorted(moments, key=moments.__getitem__)
    cases = " ".join(f"WHEN {last_use} {moment} THEN {number}" for number, moment in enumerate(ordered))
    return f"CASE {cases} ELSE {len(ordered)} END", len(ordered) + 1


class _Reader:
    """Computes the rung to which a run would move the topics of a class under one view."""

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
        rules = rules_sql(judge)
        self.needs_topic = rules.needs_topic
        self.key_at = key_at[judge.key()]
        # Converting a threshold to a key and back could round it, so the scores of thresholds are looked up.
        exact = _thetas(judge)
        scores = np.array(
            [exact.get(middle, judge.score_of(middle)) for middle in keys[judge.key()].representatives()]
        )[:, None, None]
        pinned = f"coalesce({rules.pins}, v.pinned)" if rules else "v.pinned"
        protected = [pinned, judge.exempt(), *(scope_sql("v.scope_id", path, judge.bind) for path in view.exempt)]
        self.protected_at = columns.add(f"CASE WHEN {' OR '.join(protected)} THEN 1 ELSE 0 END", 2)
        self.gate_at: int | None = None
        self.gate_number = 0
        if judge.unused_since is not None:
            moments = gates[judge.last_use]
            self.gate_at = gate_at[judge.last_use]
            self.gate_number = sorted(moments, key=moments.__getitem__).index(judge.unused_since)
        kept = judge.kept()
        self.needs_topic = self.needs_topic or kept.needs_topic
        self.kept_at = columns.add(kept.rung, int(Rung.ARCHIVED)) if kept.rung != "0" else None
        self.rule_at = columns.add(rules.rule_rung_direct, RELEASED + 1) if rules else None
        # The rungs to which the thresholds move topics, for all classes at once. The axes are the interval of the key,
        # the present rung, and whether the topic was unused long enough.
        self.ladder = rung_target(
            np.arange(len(Rung))[None, :, None],
            scores,
            archive_due=(scores < knobs.forget_salience_threshold) & np.array([False, True]),
            theta_summary=knobs.summarize_below,
            theta_detach=knobs.detach_below,
        )

    def target(self, values: Sequence[int], rung: int) -> int:
        if self.rests or values[self.protected_at]:
            return rung
        unused = self.gate_at is None or values[self.gate_at] <= self.gate_number
        by_ladder = int(self.ladder[values[self.key_at], rung, int(unused)])
        # Released topics are counted as archived.
        by_rule = 0 if self.rule_at is None else min(int(Rung.ARCHIVED), values[self.rule_at])
        kept = 0 if self.kept_at is None else min(rung, values[self.kept_at])
        return max(by_ladder, by_rule, kept)


def _thetas(judge: Judge) -> dict[float, float]:
    """Return the scores at which the rung of a topic changes, as a dict from the value of the key to the score."""
    knobs = judge.policy.knobs
    thetas = [knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold]
    thetas += [knobs.summarize_below * CLIMB_MARGIN, knobs.detach_below * CLIMB_MARGIN]
    return {judge.bound(theta): theta for theta in thetas}


def _unpack(numbers: Sequence[Any], contents: list[list[int]], sizes: list[int]) -> list[int]:
    values = [0] * len(sizes)
    for number, packed in zip(numbers, contents, strict=True):
        for at in packed:
            number, values[at] = divmod(int(number), sizes[at])
    return values
