"""Replay of the salience of one topic from its uses and salience events. Pure Python; times are epochs in seconds.

If a value in the journal differs from the computed value, the replay continues from the value in the journal, and is
exact from there on. The present half-life and clock are used for the whole past.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.formulas.partition_time import EVERY_DAY, PartitionTime
from memory.formulas.salience import Reinforcement, salience_effective, salience_reinforced

# The largest difference that rounding causes between two computations of the same salience.
TOLERANCE = 1e-6

What = Literal["created", "set", "archived", "restored", "moved", "undone", "seen"]


@dataclass(frozen=True, slots=True)
class State:
    """A salience, the time from which it fades, and the idle seconds of the partition before that time."""

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
    """A change of salience that is not a use, or a time for which the journal has the salience.

    ``before`` and ``after`` are the values in the journal, or None. If ``after`` is None, the event multiplies the
    salience by ``factor``. A restore divides the salience by ``factor`` instead, and raises it to at least ``least``.
    ``uses`` is the number of uses applied before the event, or None if unknown.
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
    """The state from ``at`` on, after ``uses`` uses. ``before`` is the effective salience just before the step."""

    at: float
    before: float
    state: State
    uses: int
    last_use: float | None
    event: SalienceEvent | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The steps in order of time, beginning with the creation. From ``exact_since`` on, nothing is estimated."""

    steps: list[ReplayStep]
    exact_since: float
    half_life: float
    time: PartitionTime = EVERY_DAY

    def step_at(self, at: float) -> ReplayStep:
        """Return the last step at or before ``at``, or the first step if there is none."""
        index = bisect.bisect_right(self.steps, at, key=lambda step: step.at)
        return self.steps[max(0, index - 1)]


def salience_replay(
    created: SalienceEvent,
    events: Sequence[SalienceEvent],
    uses: Sequence[CountedUse],
    *,
    stored: State,
    half_life: float,
    cap: float,
    now: float,
    time: PartitionTime = EVERY_DAY,
) -> Replay:
    """Return the salience of the topic from its creation until ``now``. At ``now``, it agrees with ``stored``."""
    start = created.after or State(1.0, created.at, float(time.idle(created.at)))
    steps = [ReplayStep(created.at, start.salience, start, 0, None, created)]
    exact_since, state, count, last = created.at, start, 0, None
    for at, event in _in_order(events, uses):
        if at > now:
            break
        before = state.at(at, half_life, time)
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
            steps.append(ReplayStep(at, before, state, count, last))
            continue
        if event.before is not None and not _alike(event.before.at(at, half_life, time), before):
            state, exact_since = event.before, at
        state = _event_apply(state, event, half_life, time)
        steps.append(ReplayStep(at, before, state, count, last, event))
    if not _alike(state.at(now, half_life, time), stored.at(now, half_life, time)):
        # The replay ends with the stored value, even if the events do not explain this value.
        at = min(now, max(stored.since, steps[-1].at))
        exact_since = at
        steps.append(
            ReplayStep(at, state.at(at, half_life, time), stored, count, last, SalienceEvent(at, "seen", after=stored))
        )
    return Replay(steps, exact_since, half_life, time)


def curve_times(replay: Replay, *, until: float, most: int) -> list[float]:
    """Return the times at which to draw the curve: evenly spread times, steps, and starts and ends of idle time. The
    time of a step occurs twice, so that the curve jumps. If there are more than ``most`` steps, uses are left out."""
    first = replay.steps[0].at
    spread = max(until - first, 1.0)
    times = [first + spread * number / most for number in range(most + 1)]
    steps = replay.steps if len(replay.steps) <= most else [step for step in replay.steps if step.event is not None]
    for step in steps[:most]:
        times += [step.at, step.at]
    if not replay.time.wall:
        times += (*replay.time.idle_spans[-most:], replay.time.active_until)
    return sorted(at for at in times if first <= at <= until)


def _in_order(
    events: Sequence[SalienceEvent], uses: Sequence[CountedUse]
) -> list[tuple[float, SalienceEvent | CountedUse]]:
    """Return uses and events in the order in which the store applied them.

    A use is placed at its own time, or right after an event that changed the salience before the worker applied the
    use. If the journal has the number of uses applied before an event, this number decides instead of the time.
    """
    written = sorted(events, key=lambda event: event.at)
    times = [event.at for event in written]
    placed: list[tuple[float, int, float, SalienceEvent | CountedUse]] = [
        (event.at, 0, event.at, event) for event in events
    ]
    for rank, use in enumerate(sorted(uses, key=lambda use: (use.folded_at, use.at)), start=1):
        first, end = bisect.bisect_right(times, use.at), bisect.bisect_left(times, use.folded_at)
        after = next(
            (event.at for event in reversed(written[first:end]) if event.uses is None or rank > event.uses), None
        )
        placed.append((use.at, -1, use.at, use) if after is None else (after, 1, use.at, use))
    return [(at, event) for at, _order, _own, event in sorted(placed, key=lambda each: each[:3])]


def _event_apply(state: State, event: SalienceEvent, half_life: float, time: PartitionTime) -> State:
    if event.after is not None:
        return event.after
    if event.what == "restored":
        salience = max(state.at(event.at, half_life, time) / event.factor, event.least)
        return State(salience, event.at, float(time.idle(event.at)))
    return State(state.salience * event.factor, state.since, state.idle_before)


def _alike(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
