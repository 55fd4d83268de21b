"""Classifies two similar topics: duplicates, one superseding the other, or neither. Pure."""

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
# Two texts that may say the same share at least this part of their words; two texts with one subject, at least the
# second part and this number of words.
SAME_SHARE = 0.6
SUBJECT_SHARE = 0.5
SUBJECT_WORDS = 2
# Two similar texts with at most this number of differences may be one fact, whatever words they share.
FEW = 2
# Longer texts are cut.
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
# The most differences of one kind that a sentence names.
NAMED = 3


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """``verdict`` is a value of ``DuplicatePair.Verdict``. ``held``: the pair is never merged automatically, because of
    ``differences``, rows ``{sort, one, other, where}``."""

    verdict: str
    held: bool
    differences: list[dict[str, Any]]


def pair_judge(
    one: ComparedTexts, other: ComparedTexts, *, cosine: float | None, same_title: bool, knobs: Knobs
) -> PairVerdict | None:
    """Return the verdict on two topics; None for neither. ``cosine`` is None without a vector."""
    similar = cosine is not None and cosine >= knobs.duplicate_threshold
    same_title = same_title and fold(one.title) == fold(other.title) and bool(one.title)
    differences = topics_compare(one, other)
    rows = [_row(each) for each in differences]
    if same_title or (similar and _one_fact(one, other, differences)):
        if not similar:
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
    """Return stored differences as sentences, one for each kind."""
    sentences = []
    for kind, (single, several) in _SENTENCES.items():
        of_kind = [row for row in rows if row["sort"] == kind]
        if of_kind:
            named = ", ".join(_pair_words(row) for row in of_kind[:NAMED])
            more = f" and {len(of_kind) - NAMED} more" if len(of_kind) > NAMED else ""
            sentences.append((single if len(of_kind) == 1 else several).format(named + more))
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
    """Return whether two similar texts may be one fact, equal or with another value."""
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
