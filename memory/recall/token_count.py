"""How much of a language model's context a bundle takes."""

from collections.abc import Sequence
from typing import Any

# English prose runs at about four characters a token with the usual tokenizers; a store serves agents of many models,
# so an estimate that needs none of them is the honest one.
CHARS_PER_TOKEN = 4


def bundle_line(candidate: dict[str, Any]) -> str:
    """Return what a bundle tells in one line of text: title, summary and current field values."""
    values = "; ".join(
        f"{entry['name']}: {entry['current']['value']}" for entry in candidate["fields"] if entry["current"]
    )
    parts = [part for part in (candidate["summary"], values) if part]
    return f"{candidate['title']} — {' | '.join(parts)}" if parts else str(candidate["title"])


def tokens_estimated(text: str) -> int:
    """Return about how many tokens ``text`` is, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def budget_apply(candidates: Sequence[dict[str, Any]], budget: int | None) -> list[dict[str, Any]]:
    """Return the best candidates whose lines fit into ``budget`` tokens together, in their order.

    They come best first; one that does not fit is passed over for a later one that does.
    """
    if budget is None:
        return list(candidates)
    kept = []
    for candidate in candidates:
        cost = tokens_estimated(bundle_line(candidate))
        if cost <= budget:
            kept.append(candidate)
            budget -= cost
    return kept
