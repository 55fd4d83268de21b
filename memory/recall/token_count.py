"""Estimates how many tokens a bundle takes in a language model's context."""

from collections.abc import Sequence

from memory.recall.replies import Candidate

# English prose has about four characters per token with the usual tokenizers. Agents use many models, so no tokenizer
# of a particular one is used.
CHARS_PER_TOKEN = 4


def bundle_line(candidate: Candidate) -> str:
    """Return a bundle as one line of text: title, summary and current field values.

    Empty values, and those that repeat the title or the summary, are left out.
    """
    title, summary = candidate["title"], candidate["summary"]
    said = {_plain(title), _plain(summary), ""}
    values = "; ".join(
        f"{entry['name']}: {entry['current']['value']}"
        for entry in candidate["fields"]
        if entry["current"] and _plain(entry["current"]["value"]) not in said
    )
    parts = [part for part in ("" if _plain(summary) == _plain(title) else summary, values) if part]
    return f"{title} — {' | '.join(parts)}" if parts else title


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def tokens_estimated(text: str) -> int:
    """Return the estimated number of tokens of ``text``, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def budget_apply(candidates: Sequence[Candidate], budget: int | None) -> list[Candidate]:
    """Return the best candidates whose lines fit into ``budget`` tokens together, in their order.

    Candidates come best first. The first that does not fit ends the answer: what comes after it is worse, and would
    stand in its place.
    """
    if budget is None:
        return list(candidates)
    kept = []
    for candidate in candidates:
        budget -= tokens_estimated(bundle_line(candidate))
        if budget < 0:
            break
        kept.append(candidate)
    return kept
