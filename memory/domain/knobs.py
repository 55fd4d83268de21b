"""Every number an operator may turn, with its default. A value that is not set in a policy has the value it has here.

The environment may give other defaults: the variable of a knob is its name in capitals after ``MEMSTATE_``
(``MEMSTATE_FIELD_SALIENCE_MAX``).
"""

import dataclasses
import math

from memory.domain.errors import ValueRefused


@dataclasses.dataclass(frozen=True, slots=True)
class Knob:
    """How a knob is described and bounded."""

    meaning: str
    low: float
    high: float


def _knob(default: float, meaning: str, low: float, high: float) -> float:
    value: float = dataclasses.field(default=default, metadata={"knob": Knob(meaning, low, high)})
    return value


def _count(default: int, meaning: str, low: int, high: int) -> int:
    value: int = dataclasses.field(default=default, metadata={"knob": Knob(meaning, low, high)})
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Knobs:
    """The effective values for one scope."""

    # Salience
    half_life_days: float = _knob(30.0, "days in which an unused topic loses half of its salience", 0.001, 36_500)
    query_salience_bump: float = _knob(0.1, "added to the salience of each topic that a query returns", 0, 10)
    query_field_salience_bump: float = _knob(0.1, "added to the salience of each field that a query returns", 0, 10)
    field_salience_max: float = _knob(10.0, "highest salience that use can reach, of topics and fields", 0.1, 1000)
    reinforce_once_seconds: float = _knob(
        60.0, "a repeat of a query by one key within this time counts once", 0, 86_400
    )
    max_field_history: int = _count(500, "revisions of a field that stay warm", 1, 1_000_000)
    # Recall; the reasons for each default are in docs/benchmarks.md, with what each part contributes.
    recall_semantic_weight: float = _knob(1.0, "weight of likeness in meaning", 0, 100)
    recall_lexical_weight: float = _knob(1.0, "weight of shared words", 0, 100)
    recall_neighbor_share: float = _knob(
        0.5, "how much a word in a linked topic counts; its square over two links", 0, 1
    )
    recall_center: float = _knob(1.0, "share of the scope's mean vector that is taken off the question", 0, 1)
    recall_candidates: int = _count(20, "candidates that each of the two searches gathers", 10, 1000)
    recall_exact_below: int = _count(2000, "live topics up to which a scope is compared exactly", 0, 100_000)
    bm25_k1: float = _knob(1.2, "how fast repeating a word stops to count", 0, 10)
    bm25_b: float = _knob(0.4, "how much a long text is held against its words", 0, 1)
    suggest_similar_above: float = _knob(0.92, "cosine from which ingest suggests a topic as similar", 0, 1)

    @property
    def half_life(self) -> float:
        """The half-life in seconds."""
        return self.half_life_days * 86_400.0


KNOBS: dict[str, Knob] = {field.name: field.metadata["knob"] for field in dataclasses.fields(Knobs)}


def knob_parse(name: str, value: object) -> float | int:
    """Return ``value`` as the number that knob ``name`` takes.

    Raises ``ValueRefused`` with a sentence for an unknown knob, no finite number, or one out of bounds.
    """
    if name not in KNOBS:
        raise ValueRefused(f"There is no knob named {name!r}.")
    knob = KNOBS[name]
    whole = isinstance(getattr(Knobs(), name), int)
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (whole and number != int(number)):
        raise ValueRefused(f"{name} must be a {'whole ' if whole else ''}number; {value!r} is not.")
    if not knob.low <= number <= knob.high:
        raise ValueRefused(f"{name} must lie between {knob.low:g} and {knob.high:g}; {number:g} does not.")
    return int(number) if whole else number
