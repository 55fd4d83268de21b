"""Estimates how many tokens a bundle takes in a language model's context."""

from collections.abc import Sequence

from memory.recall.replies import Candidate

# English prose has about four characters per token with the usual tokenizers. Agents use many models, so no tokenizer
# of a particular one is used.
CHARS_PER_TOKEN = 4


def bundle_line(candidate: Candidate) -> str:
    """Return a bundle as one line of text: title, summary and current field values."""
    values = "; ".join(
        f"{entry['name']}: {entry['current']['value']}" for entry in candidate["fields"] if entry["current"]
    )
    parts = [part for part in (candidate["summary"], values) if part]
    return f"{candidate['title']} — {' | '.join(parts)}" if parts else candidate["title"]


def tokens_estimated(text: str) -> int:
    """Return the estimated number of tokens of ``text``, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def budget_apply(candidates: Sequence[Candidate], budget: int | None) -> list[Candidate]:
    """Return the best candidates whose lines fit into ``budget`` tokens together, in their order.

    Candidates come best first; one that does not fit is skipped for a later one that does.
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
