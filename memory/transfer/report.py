"""What a file would bring and what it would not: the outcome of a check, before anything is written."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# How many bytes of how many have been dealt with.
Progress = Callable[[int, int], object]

BROUGHT, THERE, ERASED, MISSING = "brought", "there", "erased", "missing"
# Why something is left out that is neither brought nor there already, in words that follow a number.
REASONS = {
    BROUGHT: "imported",
    THERE: "there already, and left as they are",
    ERASED: "left out, because a purge has erased here what they belong to",
    MISSING: "left out, because what they refer to is not here and does not come with the file",
}
MOST_PROBLEMS = 20


@dataclass(slots=True)
class ImportReport:
    """What the check of a file has found. A file with ``problems`` is not imported, not even in parts.

    ``sorts`` counts per kind of line how many would be ``brought``, are ``there``, or are left out, by reason
    (``REASONS``, or a sentence of the source's own). ``losses`` are sentences about what has no place here,
    ``forecast`` about where new topics go and when they would be forgotten.
    """

    source: str
    lines: int = 0
    size: int = 0
    digest: str = ""
    sorts: dict[str, dict[str, int]] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    forecast: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def count(self, sort: str, why: str, times: int = 1) -> None:
        """Count ``times`` more of a sort."""
        if times:
            counts_add(self.sorts, {sort: {why: times}})

    def total(self, why: str) -> int:
        """Return how many, over all sorts."""
        return sum(counts.get(why, 0) for counts in self.sorts.values())

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, told: dict[str, Any]) -> "ImportReport":
        """Return the report that ``told`` was made of."""
        return cls(**told)


def counts_add(counts: dict[str, dict[str, int]], more: dict[str, dict[str, int]]) -> None:
    """Add ``more`` to ``counts``."""
    for sort, reasons in more.items():
        own = counts.setdefault(sort, {})
        for why, times in reasons.items():
            own[why] = own.get(why, 0) + times


def counts_sentences(counts: dict[str, dict[str, int]], *, done: bool) -> list[str]:
    """Return a sentence for each sort and reason, such as "12 links: there already, and left as they are."; of what a
    check has counted and nobody has ``done``, what would be brought."""
    words = REASONS if done else REASONS | {BROUGHT: "would be imported"}
    told = []
    for sort, reasons in counts_sorted(counts):
        told += [f"{times:,} {noun_of(sort, times)}: {words.get(why, why)}." for why, times in reasons.items()]
    return told


def counts_sorted(counts: dict[str, dict[str, int]]) -> list[tuple[str, dict[str, int]]]:
    """Return the counts with sorts in the order of the file, and what is brought before what is not."""
    return [
        (sort, {why: counts[sort][why] for why in sorted(counts[sort], key=[*REASONS, *counts[sort]].index)})
        for sort in sorted(counts, key=[*SORTS, *counts].index)
    ]


def noun_of(sort: str, times: int) -> str:
    """Return what so many of a kind of line are called."""
    return SORTS.get(sort, (sort, f"{sort}s"))[times != 1]


# What a kind of line is called, once and several times.
SORTS = {
    "policy": ("scope with a policy", "scopes with policies"),
    "topic": ("topic", "topics"),
    "field": ("field", "fields"),
    "history": ("long history", "parts of long histories"),
    "reference": ("reference", "references"),
    "merged": ("merged topic", "merged topics"),
    "link": ("link", "links"),
}
