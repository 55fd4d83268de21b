"""Replay of the salience of one topic from its recorded uses and salience events. Pure Python.

Uses and events are applied in the order in which the store applied them. Where the journal holds the stored value, the
replay is compared with it and continues from it. The replay is exact from the last difference on. Times are epochs in
seconds.

The present half-life and clock are used for the whole past, as everywhere (docs/decisions.md, "A half-life holds for
the past too").
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.formulas.partition_time import EVERY_DAY, PartitionTime
from memory.formulas.salience import Reinforcement, salience_effective, salience_reinforced

# Two computations of the same salience differ by no more than this, from rounding.
TOLERANCE = 1e-6

What = Literal["created", "set", "archived", "restored", "moved", "undone", "seen"]


@dataclass(frozen=True, slots=True)
class State:
    """A salience, the time from which it fades, and the idle seconds of the partition before that."""

    salience: float
    since: float
    idle_before: float = 0.0

    def at(self, at: float, half_life: float, time: PartitionTime = EVERY_DAY) -> float:
        """Return the effective salience at ``at``."""
        skipped = time.skipped(self.idle_before, at)
        return float(
            salience_effective(self.salience, reinforced_at=self.since, half_life=half_life, now=at, skipped=skipped)
        )


@dataclass(frozen=True, slots=True)
class CountedUse:
    """One counted retrieval: when it happened, when the worker applied it, and by how much it raises the salience."""

    at: float
    folded_at: float
    bump: float


@dataclass(frozen=True, slots=True)
class SalienceEvent:
    """A change of salience other than by use, or a time at which the journal holds the salience.

    ``before`` and ``after`` are the values of the journal, None if it has none. Without ``after``, the salience is
    multiplied by ``factor``; a restore divides by it and gives at least ``least``. ``uses`` is the number of uses that
    had been applied by then, if the journal has it.
    """

    at: float
    what: What
    before: State | None = None
    after: State | None = None
    factor: float = 1.0
    least: float = 0.0
    note: str = ""
    uses: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """The state from ``at`` on, after ``uses`` uses; ``worth`` is the effective salience just before."""

    at: float
    worth: float
    state: State
    uses: int
    last_use: float | None
    turn: SalienceEvent | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The steps in order of time; the first is the creation. From ``exact_since`` on, nothing is estimated."""

    steps: list[ReplayStep]
    exact_since: float
    half_life: float
    time: PartitionTime = EVERY_DAY

    def step_at(self, at: float) -> ReplayStep:
        """Return the step in effect at ``at``; the first step for an earlier time."""
        place = bisect.bisect_right(self.steps, at, key=lambda step: step.at)
        return self.steps[max(0, place - 1)]

    def worth_at(self, at: float) -> float:
        """Return the effective salience at ``at``."""
        return self.step_at(at).state.at(at, self.half_life, self.time)


def salience_replay(
    created: SalienceEvent,
    turns: Sequence[SalienceEvent],
    uses: Sequence[CountedUse],
    *,
    stored: State,
    half_life: float,
    cap: float,
    now: float,
    time: PartitionTime = EVERY_DAY,
) -> Replay:
    """Return the salience of the topic from its creation (whose ``after`` is known) until ``now``.

    The last step is exactly ``stored``. The time grows as n log n with the number of uses and events.
    """
    start = created.after or State(1.0, created.at, float(time.idle(created.at)))
    steps = [ReplayStep(created.at, start.salience, start, 0, None, created)]
    exact_since, state, count, last = created.at, start, 0, None
    for at, event in _in_order(turns, uses):
        if at > now:
            break
        worth = state.at(at, half_life, time)
        if isinstance(event, CountedUse):
            salience, _since = salience_reinforced(
                state.salience,
                reinforced_at=float(time.counted(state.since, state.idle_before)),
                half_life=half_life,
                cap=cap,
                reinforcements=[Reinforcement(float(time.counted(event.at)), event.bump)],
            )
            later = event.at > state.since
            since, idle = (event.at, float(time.idle(event.at))) if later else (state.since, state.idle_before)
            state, count = State(salience, since, idle), count + 1
            last = event.at if last is None else max(last, event.at)
            steps.append(ReplayStep(at, worth, state, count, last))
            continue
        if event.before is not None and not _alike(event.before.at(at, half_life, time), worth):
            state, exact_since = event.before, at
        state = _turned(state, event, half_life, time)
        steps.append(ReplayStep(at, worth, state, count, last, event))
    if not _alike(state.at(now, half_life, time), stored.at(now, half_life, time)):
        # The stored value is known, so the replay ends with it even if the events do not explain it.
        at = min(now, max(stored.since, steps[-1].at))
        exact_since = at
        steps.append(
            ReplayStep(at, state.at(at, half_life, time), stored, count, last, SalienceEvent(at, "seen", after=stored))
        )
    return Replay(steps, exact_since, half_life, time)


def curve_times(replay: Replay, *, until: float, most: int) -> list[float]:
    """Return the times at which to draw the curve, in order: evenly spread, on both sides of each step, and where the
    time of the partition stops and goes on.

    The time of a step occurs twice, so that it is drawn as a jump. With more than ``most`` steps, only events other
    than uses are drawn as jumps.
    """
    first = replay.steps[0].at
    spread = max(until - first, 1.0)
    times = [first + spread * place / most for place in range(most + 1)]
    steps = replay.steps if len(replay.steps) <= most else [step for step in replay.steps if step.turn is not None]
    for step in steps[:most]:
        times += [step.at, step.at]
    if not replay.time.wall:
        times += (*replay.time.idle_spans[-most:], replay.time.active_until)
    return sorted(at for at in times if first <= at <= until)


def _in_order(
    turns: Sequence[SalienceEvent], uses: Sequence[CountedUse]
) -> list[tuple[float, SalienceEvent | CountedUse]]:
    """Return uses and events in the order in which the store applied them.

    A use takes effect at its own time. If salience was written between the use and its application by the worker, the
    use takes effect right after that write. The number of uses in the journal decides over the time of application.
    """
    written = sorted(turns, key=lambda turn: turn.at)
    times = [turn.at for turn in written]
    placed: list[tuple[float, int, float, SalienceEvent | CountedUse]] = [(turn.at, 0, turn.at, turn) for turn in turns]
    for rank, use in enumerate(sorted(uses, key=lambda use: (use.folded_at, use.at)), start=1):
        first, end = bisect.bisect_right(times, use.at), bisect.bisect_left(times, use.folded_at)
        after = next((turn.at for turn in reversed(written[first:end]) if turn.uses is None or rank > turn.uses), None)
        placed.append((use.at, -1, use.at, use) if after is None else (after, 1, use.at, use))
    return [(at, event) for at, _order, _own, event in sorted(placed, key=lambda each: each[:3])]


def _turned(state: State, turn: SalienceEvent, half_life: float, time: PartitionTime) -> State:
    if turn.after is not None:
        return turn.after
    if turn.what == "restored":
        worth = max(state.at(turn.at, half_life, time) / turn.factor, turn.least)
        return State(worth, turn.at, float(time.idle(turn.at)))
    return State(state.salience * turn.factor, state.since, state.idle_before)


def _alike(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
