"""Classifies two similar topics: duplicates, one superseding the other, or neither. No queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.core.policy_values import Knobs
from memory.text.folding import fold
from memory.text.likeness import ComparedTexts, Difference, topics_compare, words_shared
from memory.text.stems import subject

# Vectors alone cannot decide: entries of one log have cosines of up to 0.95, and unrelated texts of one household have
# cosines of up to 0.8 (docs/duplicates.md). Values of the kinds ``FIRM`` are called firm. Two versions of one fact
# differ in one or two firm values. Texts that differ in more firm values describe two events.
MAX_FIRM = 2
FIRM = frozenset({"number", "date", "identifier", "name"})
# Two texts that differ only in such values may be an old and a new value. Three are records of a series, such as a
# diary of weights.
SERIES = frozenset({"number", "date"})
# Two texts may say the same if they share at least ``SAME_SHARE`` of their words. They have one subject if they share
# at least ``SUBJECT_SHARE`` of their words and at least ``SUBJECT_WORDS`` words.
SAME_SHARE = 0.6
SUBJECT_SHARE = 0.5
SUBJECT_WORDS = 2
# Two similar texts with at most this number of differences may be one fact, even if they share few words.
FEW = 2
# Texts are cut to the first length to compare their words, and to the second length to compare their grammatical
# subjects.
SUBJECT_CHARS = 2000
SUBJECT_PART = 300

_SENTENCES = {
    "number": ("A number differs: {}.", "Numbers differ: {}."),
    "date": ("A date or time differs: {}.", "Dates or times differ: {}."),
    "identifier": ("An identifier differs: {}.", "Identifiers differ: {}."),
    "name": ("A name differs: {}.", "Names differ: {}."),
    "negation": ("Only one of them has a negation: {}.", "Only one of them has negations: {}."),
    "word": ("A word differs: {}.", "Words differ: {}."),
    "wording": ("Only small words, inflection or notation differ.",) * 2,
    "order": ("The same words come in another order: {}.",) * 2,
    "title_only": ("The titles are equal, but the texts are less similar than those of duplicates.",) * 2,
}
# The most differences of one kind that a sentence names.
NAMED = 3


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The verdict on two topics: a value of ``DuplicatePair.Verdict``. If ``held`` is true, the pair is never merged
    automatically. ``differences`` are rows ``{sort, one, other, where}``."""

    verdict: str
    held: bool
    differences: list[dict[str, Any]]

    @property
    def may_be_series(self) -> bool:
        """Whether the texts differ only in numbers and dates, as the records of a series do."""
        return bool(self.differences) and all(each["sort"] in SERIES for each in self.differences)


def pair_judge(
    one: ComparedTexts, other: ComparedTexts, *, cosine: float | None, same_title: bool, knobs: Knobs
) -> PairVerdict | None:
    """Return the verdict on two topics; None if they are unrelated. ``cosine`` is None if a topic has no vector."""
    similar = cosine is not None and cosine >= knobs.duplicate_threshold
    same_title = same_title and fold(one.title) == fold(other.title) and bool(one.title)
    differences = topics_compare(one, other)
    rows: list[dict[str, Any]] = [
        {"sort": each.kind, "one": each.one[:200], "other": each.other[:200], "where": each.where}
        for each in differences
    ]
    if same_title or (similar and _may_be_one_fact(one, other, differences)):
        if not similar:
            rows.append({"sort": "title_only", "one": "", "other": "", "where": "title"})
        return PairVerdict("duplicate", held=bool(rows), differences=rows)
    if cosine is None or cosine < knobs.supersedes_threshold:
        return None
    near = cosine >= (knobs.supersedes_threshold + 2 * knobs.duplicate_threshold) / 3
    if _have_one_subject(one, other, differences, near=near):
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
    one, other = (text if len(text) <= 60 else text[:59] + "…" for text in (row["one"], row["other"]))
    if one and other:
        return f"“{one}” and “{other}”"
    return f"“{one or other}” in one only"


def _may_be_one_fact(one: ComparedTexts, other: ComparedTexts, differences: Sequence[Difference]) -> bool:
    """Return whether two similar texts may state one fact, with equal or different values."""
    if len(differences) <= FEW:
        return True
    return _firm_count(differences) <= MAX_FIRM and words_shared(_text(one), _text(other)).share >= SAME_SHARE


def _have_one_subject(
    one: ComparedTexts, other: ComparedTexts, differences: Sequence[Difference], *, near: bool
) -> bool:
    """Return whether two texts have one subject. This is true if they share enough words, or if they share a name and
    their grammatical subject."""
    if _firm_count(differences) > MAX_FIRM:
        return False
    shared = words_shared(_text(one), _text(other))
    if shared.share >= SUBJECT_SHARE and shared.words >= SUBJECT_WORDS:
        return True
    about = subject(_text(one)[:SUBJECT_PART])
    return near and shared.names > 0 and bool(about) and about == subject(_text(other)[:SUBJECT_PART])


def _firm_count(differences: Sequence[Difference]) -> int:
    return sum(each.kind in FIRM for each in differences)


def _text(texts: ComparedTexts) -> str:
    return "\n".join((texts.title, texts.summary, *texts.fields.values()))[:SUBJECT_CHARS]
