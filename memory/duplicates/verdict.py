"""Classifies two near topics: duplicates, one superseding the other, or neither. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.core.policy_values import Knobs
from memory.text.folding import fold
from memory.text.likeness import ComparedTexts, Difference, topics_compare, words_shared
from memory.text.stems import subject

# Vectors alone do not decide: entries of one log reach a cosine of 0.95, unrelated texts of one household 0.8
# (docs/duplicates.md). Versions of one fact differ in one or two values; texts that differ in more are two events.
MOST_FIRM = 2
FIRM = frozenset({"number", "date", "identifier", "name"})
# The least shares of common words of two texts that may say the same, or have the same subject.
SAME_SHARE = 0.6
SUBJECT_SHARE = 0.5
SUBJECT_WORDS = 2
# With at most so many differences, two near texts may be one fact whatever words they share.
FEW = 2
# Of longer texts, only the first part is compared.
SUBJECT_CHARS = 2000
SUBJECT_PART = 300

_SENTENCES = {
    "number": ("A number differs: {}.", "Numbers differ: {}."),
    "date": ("A date or time differs: {}.", "Dates or times differ: {}."),
    "identifier": ("An identifier differs: {}.", "Identifiers differ: {}."),
    "name": ("A name differs: {}.", "Names differ: {}."),
    "negation": ("Only one of them has a negation: {}.", "Only one of them has negations: {}."),
    "word": ("A word differs: {}.", "Words differ: {}."),
    "order": ("The same words come in another order: {}.",) * 2,
    "title_only": ("The titles are equal, but the texts are less similar than those of duplicates.",) * 2,
}
# Differences of one type named in a sentence.
NAMED = 3


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """``verdict`` is a value of ``DuplicatePair.Verdict``. A ``held`` pair is never merged automatically, because of
    its ``differences``: rows ``{sort, one, other, where}``."""

    verdict: str
    held: bool
    differences: list[dict[str, Any]]


def pair_judge(
    one: ComparedTexts, other: ComparedTexts, *, cosine: float | None, same_title: bool, knobs: Knobs
) -> PairVerdict | None:
    """Return the verdict on two topics, None for neither. ``cosine`` is None without a vector."""
    near = cosine is not None and cosine >= knobs.duplicate_threshold
    same_title = same_title and fold(one.title) == fold(other.title) and bool(one.title)
    differences = topics_compare(one, other)
    rows = [_row(each) for each in differences]
    if same_title or (near and _one_fact(one, other, differences)):
        if not near:
            rows.append({"sort": "title_only", "one": "", "other": "", "where": "title"})
        return PairVerdict("duplicate", held=bool(rows), differences=rows)
    if (
        cosine is not None
        and cosine >= knobs.supersedes_threshold
        and _one_subject(
            one, other, differences, near=cosine >= (knobs.supersedes_threshold + 2 * knobs.duplicate_threshold) / 3
        )
    ):
        return PairVerdict("supersedes", held=True, differences=rows)
    return None


def differences_words(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return stored differences as sentences, one for each type."""
    sentences = []
    for sort, (single, several) in _SENTENCES.items():
        rows_of_type = [row for row in rows if row["sort"] == sort]
        if rows_of_type:
            named = ", ".join(_pair_words(row) for row in rows_of_type[:NAMED])
            more = f" and {len(rows_of_type) - NAMED} more" if len(rows_of_type) > NAMED else ""
            sentences.append((single if len(rows_of_type) == 1 else several).format(named + more))
    return sentences


def _pair_words(row: dict[str, Any]) -> str:
    one, other = _cut(row["one"]), _cut(row["other"])
    if one and other:
        return f"“{one}” and “{other}”"
    return f"“{one or other}” in one only"


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _row(difference: Difference) -> dict[str, Any]:
    return {
        "sort": difference.kind,
        "one": difference.one[:200],
        "other": difference.other[:200],
        "where": difference.where,
    }


def _one_fact(one: ComparedTexts, other: ComparedTexts, differences: Sequence[Difference]) -> bool:
    """Return whether two near texts may be one fact, equal or with another value."""
    if len(differences) <= FEW:
        return True
    return _firm(differences) <= MOST_FIRM and words_shared(_text(one), _text(other)).share >= SAME_SHARE


def _one_subject(one: ComparedTexts, other: ComparedTexts, differences: Sequence[Difference], *, near: bool) -> bool:
    """Return whether two texts have one subject: they share enough words, or their grammatical subject and a name."""
    if _firm(differences) > MOST_FIRM:
        return False
    shared = words_shared(_text(one), _text(other))
    if shared.share >= SUBJECT_SHARE and shared.words >= SUBJECT_WORDS:
        return True
    about = subject(_text(one)[:SUBJECT_PART])
    return near and shared.names > 0 and bool(about) and about == subject(_text(other)[:SUBJECT_PART])


def _firm(differences: Sequence[Difference]) -> int:
    return sum(each.kind in FIRM for each in differences)


def _text(texts: ComparedTexts) -> str:
    return "\n".join((texts.title, texts.summary, *texts.fields.values()))[:SUBJECT_CHARS]
