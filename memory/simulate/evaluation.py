"""Evaluates rule conditions in Python, for one topic or for arrays. Comparisons with texts are left to the database."""

from collections.abc import Callable
from typing import Any

import numpy as np

from memory.predicates.tree import RUNGS, AllOf, AnyOf, Comparison, Not, Predicate, value_words

_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "is": np.equal,
}


def predicate_holds(predicate: Predicate, answer: Callable[[Comparison], Any]) -> Any:
    """Return whether a predicate is true, as a boolean or as an array of booleans. ``answer`` evaluates each
    comparison."""
    match predicate:
        case AllOf(parts):
            return np.logical_and.reduce([predicate_holds(part, answer) for part in parts])
        case AnyOf(parts):
            return np.logical_or.reduce([predicate_holds(part, answer) for part in parts])
        case Not(part):
            return np.logical_not(predicate_holds(part, answer))
        case Comparison():
            return answer(predicate)
    raise TypeError(f"Rules have no {predicate!r}.")


def value_compare(comparison: Comparison, found: Any) -> Any:
    """Return whether a comparison with a number, a boolean or a rung is true for ``found``. Also works on arrays."""
    if comparison.field == "rung":
        among = np.isin(found, [RUNGS.index(word) for word in value_words(comparison)])
        return among if comparison.op in ("is", "in") else ~among
    return _ORDER[comparison.op](found, comparison.value)
