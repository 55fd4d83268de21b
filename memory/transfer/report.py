"""The result of checking a file: what an import would write and what it would skip."""

from collections.abc import Callable
from dataclasses import dataclass, field

# Called with the number of processed bytes and the size of the file.
Progress = Callable[[int, int], object]
# Numbers of lines by kind and outcome.
Counts = dict[str, dict[str, int]]

BROUGHT, THERE, ERASED, MISSING = "brought", "there", "erased", "missing"
# The outcomes as words that follow a number of lines.
REASONS = {
    BROUGHT: "imported",
    THERE: "already present, not changed",
    ERASED: "left out, because their memories were purged here",
    MISSING: "left out, because they refer to memories that are neither here nor in the file",
}
MAX_PROBLEMS = 20


@dataclass(slots=True)
class ImportReport:
    """The result of checking a file. If there are ``problems``, nothing is imported. ``sorts`` counts lines by kind and
    outcome. ``losses`` are sentences about parts that are not imported. ``forecast`` are sentences about when new
    topics would be forgotten."""

    source: str
    lines: int = 0
    size: int = 0
    digest: str = ""
    sorts: Counts = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    forecast: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def total(self, why: str) -> int:
        """Return the number of lines of all kinds with this outcome."""
        return sum(counts.get(why, 0) for counts in self.sorts.values())


def counts_add(counts: Counts, more: Counts) -> None:
    """Add ``more`` to ``counts``."""
    for sort, reasons in more.items():
        for why, times in reasons.items():
            if times:
                own = counts.setdefault(sort, {})
                own[why] = own.get(why, 0) + times


def counts_sentences(counts: Counts, *, done: bool) -> list[str]:
    """Return a sentence for each kind and outcome, such as "12 links: already present, not changed." If ``done`` is
    false, the sentences use "would be imported"."""
    words = REASONS if done else REASONS | {BROUGHT: "would be imported"}
    return [
        f"{times:,} {noun_of(sort, times)}: {words.get(why, why)}."
        for sort, reasons in counts_sorted(counts)
        for why, times in reasons.items()
    ]


def counts_sorted(counts: Counts) -> list[tuple[str, dict[str, int]]]:
    """Return the counts, with the kinds in the order of the file and the imported lines of each kind first."""
    return [
        (sort, {why: counts[sort][why] for why in sorted(counts[sort], key=[*REASONS, *counts[sort]].index)})
        for sort in sorted(counts, key=[*SORTS, *counts].index)
    ]


def noun_of(sort: str, times: int) -> str:
    """Return the noun for ``times`` lines of a kind."""
    return SORTS.get(sort, (sort, f"{sort}s"))[times != 1]


# The noun for a kind of line, singular and plural.
SORTS = {
    "policy": ("scope with a policy", "scopes with policies"),
    "topic": ("memory", "memories"),
    "field": ("field", "fields"),
    "history": ("long history", "parts of long histories"),
    "reference": ("reference", "references"),
    "merged": ("merged memory", "merged memories"),
    "link": ("link", "links"),
}
