"""The facts that may be meant, as a language model sees them: optional, and never more than what was found."""

from collections.abc import Callable, Sequence

from memory.command.fit import Fit
from memory.llm.client import model_configured
from memory.llm.refine import Refined

# So many facts are shown to the model, the best first; those that fit worse than this are not.
MOST_SHOWN = 12
LEAST_SHOWN = 0.1

Ask = Callable[[Sequence[tuple[str, str]]], Refined | None]


def fits_refined(fits: Sequence[Fit], ask: Ask) -> tuple[list[Fit], bool] | None:
    """Return the fits that the model takes to be meant, and whether it is unsure which; None if it says nothing.

    Facts that say exactly what was asked need no opinion. ``ask`` waits some seconds for the model. No queries.
    """
    if not model_configured() or not fits or any(fit.exact for fit in fits):
        return None
    shown: dict[str, str] = {}
    for fit in fits:
        if fit.score >= LEAST_SHOWN and len(shown) < MOST_SHOWN:
            shown.setdefault(_key(fit), fit.fact.told())
    refined = ask(list(shown.items())) if shown else None
    if refined is None:
        return None
    chosen = set(refined.chosen)
    return [fit for fit in fits if _key(fit) in chosen], refined.unsure


def _key(fit: Fit) -> str:
    # A title that repeats a field is one text, shown once.
    return f"{fit.fact.topic.id} {fit.fact.text}"
