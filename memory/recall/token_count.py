"""Applies the token budget of a query, with an estimate of the tokens of each bundle."""

import datetime as dt
from collections.abc import Sequence

from memory.recall.replies import Candidate

# An estimate for many models: English prose has about four characters per token with the usual tokenizers.
CHARS_PER_TOKEN = 4


def bundle_line(candidate: Candidate) -> str:
    """Return the day on which the topic was created, title, summary and current field values as one line, without empty
    and repeated values. Without title and summary, the first value stands for them, so its name is left out."""
    title, summary = candidate["title"], candidate["summary"]
    repeated = {_plain(title), _plain(summary), ""}
    named = [(entry["name"], entry["current"]["value"]) for entry in candidate["fields"] if entry["current"]]
    named = [(name, value) for name, value in named if _plain(value) not in repeated]
    if named and not title and not summary:
        title = named.pop(0)[1]
    values = "; ".join(f"{name}: {value}" for name, value in named)
    parts = [part for part in ("" if _plain(summary) == _plain(title) else summary, values) if part]
    created = candidate["created_at"].astimezone(dt.UTC)
    text = " — ".join(part for part in (title, " | ".join(parts)) if part)
    return f"{created.day} {created:%B %Y} · {text}"


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def tokens_estimated(text: str) -> int:
    """Return the estimated number of tokens of ``text``, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def budget_apply(candidates: Sequence[Candidate], budget: int | None) -> list[Candidate]:
    """Return the first candidates whose lines together fit into ``budget`` tokens. The list ends before the first
    candidate that does not fit, because a worse candidate must not replace a better one."""
    if budget is None:
        return list(candidates)
    kept = []
    for candidate in candidates:
        budget -= tokens_estimated(bundle_line(candidate))
        if budget < 0:
            break
        kept.append(candidate)
    return kept
