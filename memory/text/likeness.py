"""Likeness: whether two texts state the same in other words, or differ in something that matters. Pure Python.

Two texts state the same if every word of either occurs in the other and the roles of the words are the same. Case,
punctuation, accents, filler words, word order, plurals, usual abbreviations, spelling variants and typing errors are
ignored. Every other difference counts, so that people decide in case of doubt (docs/duplicates.md).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Final

from memory.text.folding import fold
from memory.text.likeness_order import order_differs
from memory.text.likeness_tokens import Sort, Token, tokens_read
from memory.text.likeness_words import DIRECTED, SAME, SUBJECTS
from memory.text.vocabulary import word_known

SORTS: Final[tuple[Sort, ...]] = ("negation", "number", "date", "identifier", "name", "word", "order")
# The most differences to list; texts that differ in more are different texts.
MOST_LISTED = 40
# Longer texts are only compared for equality.
MOST_COMPARED = 20_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference that matters. ``one`` and ``other`` are the words as written, empty if a side has no counterpart;
    the spans are their places in ``where``: "title", "summary" or the name of a field."""

    sort: Sort
    one: str
    other: str
    where: str = ""
    one_span: tuple[int, int] | None = None
    other_span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Saying:
    """The texts of a topic: title, summary, and the current values of its fields by name."""

    title: str
    summary: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def sayings_differ(one: Saying, other: Saying) -> list[Difference]:
    """Return the differences that matter between two topics, in title, summary and common fields.

    Fields of only one topic do not count, because a merge keeps them. Linear in the length of the texts.
    """
    found = differences_that_matter(one.title, other.title)
    if one.summary or other.summary:
        together = differences_that_matter(_whole(one), _whole(other))
        # Words in the title of one and in the summary of the other are no difference.
        found = together if not together else [*_placed(found, "title"), *_placed(_of_summary(one, other), "summary")]
        found = found or _placed(together, "summary")
    else:
        found = _placed(found, "title")
    for name in sorted(one.fields.keys() & other.fields.keys()):
        found += _placed(differences_that_matter(one.fields[name], other.fields[name]), name)
    return found


def differences_that_matter(one: str, other: str) -> list[Difference]:
    """Return the differences that could make two texts two facts; empty if they state the same in other words.

    These are words without a counterpart in the other text, by sort: negation, number, date, identifier, name, word; or
    ``order`` if only the roles of words differ. Linear in the length of the texts; of the words that differ,
    ``MOST_LISTED`` are compared.
    """
    if fold(one) == fold(other):
        return []
    if len(one) > MOST_COMPARED or len(other) > MOST_COMPARED:
        return [Difference("word", "a long text", "another long text")]
    left, right = tokens_read(one), tokens_read(other)
    pairs, only_left, only_right = _match(left, right)
    only_left, only_right = _without_subjects(only_left, only_right)
    if only_left or only_right:
        return _differences(only_left, only_right)
    if moved := order_differs(left, right, pairs):
        first, second = moved
        return [Difference("order", first.text, second.text, "", first.span, second.span)]
    return []


@dataclass(frozen=True, slots=True)
class Shared:
    """The common words of two texts: their share of the shorter text, and how many are words and how many names."""

    share: float
    words: int
    names: int


def words_shared(one: str, other: str) -> Shared:
    """Return the common content words of two texts, without prepositions, negations, dates and pronouns."""
    left, right = ({_stem(token): token for token in _content_tokens(text)} for text in (one, other))
    shared = [left[key] for key in left.keys() & right.keys()]
    least = min(len(left), len(right))
    return Shared(
        len(shared) / least if least else 0.0,
        sum(token.sort == "word" for token in shared),
        sum(token.sort == "name" for token in shared),
    )


def _content_tokens(text: str) -> list[Token]:
    ignored = SUBJECTS | DIRECTED
    return [
        token
        for token in tokens_read(text[:MOST_COMPARED])
        if token.sort not in ("negation", "date") and token.key not in ignored
    ]


def _match(left: Sequence[Token], right: Sequence[Token]) -> tuple[dict[int, int], list[Token], list[Token]]:
    """Return the indexes of matching words, and the words of either side without a counterpart."""
    pairs: dict[int, int] = {}
    places: dict[str, deque[int]] = defaultdict(deque)
    for place, token in enumerate(right):
        places[token.key].append(place)
    for place, token in enumerate(left):
        if places[token.key]:
            pairs[place] = places[token.key].popleft()
    taken = set(pairs.values())
    loose_left = [place for place in range(len(left)) if place not in pairs]
    loose_right = [place for place in range(len(right)) if place not in taken]
    for same in (_inflected, _mistyped):
        for place in list(loose_left[:MOST_LISTED]):
            partner = next((other for other in loose_right[:MOST_LISTED] if same(left[place], right[other])), None)
            if partner is not None:
                pairs[place] = partner
                loose_left.remove(place)
                loose_right.remove(partner)
    loose_left, loose_right = (
        _joined(left, right, loose_left, loose_right),
        _joined(right, left, loose_right, loose_left),
    )
    return pairs, _without_repeats(left, loose_left, right), _without_repeats(right, loose_right, left)


def _without_repeats(own: Sequence[Token], loose: Sequence[int], others: Sequence[Token]) -> list[Token]:
    """Return the unmatched words without repetitions of words that the other side has too; numbers are kept."""
    known = {_stem(token) for token in others}
    keys = {token.key for token in others}
    return [
        own[place]
        for place in loose
        if own[place].sort not in ("word", "name")
        or not (own[place].key in keys or (not own[place].capital and _stem(own[place]) in known))
    ]


def _joined(
    own: Sequence[Token], others: Sequence[Token], loose: Sequence[int], other_loose: Sequence[int]
) -> list[int]:
    """Return the unmatched words without those that the other side writes as two words or as one: "data base"."""
    whole = Counter(others[place].key for place in other_loose if others[place].soft)
    doubles = {
        others[one].key + others[two].key
        for one, two in pairwise(other_loose)
        if two == one + 1 and others[one].soft and others[two].soft
    }
    left = [place for place in loose if not (own[place].soft and own[place].key in doubles)]
    for one, two in pairwise(loose):
        if two == one + 1 and own[one].soft and own[two].soft and whole[own[one].key + own[two].key]:
            left = [place for place in left if place not in (one, two)]
    return left


def _stem(token: Token) -> str:
    key = token.key
    if not token.soft or len(key) < 4:
        return key
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ss", "ss")):
        if key.endswith(ending):
            return SAME.get(key.removesuffix(ending) + instead, key.removesuffix(ending) + instead)
    stem = key.removesuffix("s") if not key.endswith(("us", "is")) else key
    return SAME.get(stem, stem)


def _inflected(one: Token, other: Token) -> bool:
    # Capitalised words are names, and "Mark" and "Marks" are two names.
    return one.sort == other.sort == "word" and not (one.capital and other.capital) and _stem(one) == _stem(other)


def _mistyped(one: Token, other: Token) -> bool:
    """Return whether one of two words is a misspelling of the other, and not another known word."""
    if not (one.soft and other.soft) or one.capital or other.capital or min(len(one.key), len(other.key)) < 5:
        return False
    known = word_known(one.key), word_known(other.key)
    return known in ((True, False), (False, True)) and _one_edit(one.key, other.key)


def _one_edit(one: str, other: str) -> bool:
    """Return whether two words differ in one letter, added, missing or replaced, or in two swapped ones."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if start == 0:
        return False
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    rest = one[start + 1 :] == other[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    return rest or swapped


def _without_subjects(left: list[Token], right: list[Token]) -> tuple[list[Token], list[Token]]:
    ours, theirs = ({token.key for token in side} & SUBJECTS for side in (left, right))
    if ours and theirs:
        return left, right
    return [token for token in left if token.key not in SUBJECTS], [t for t in right if t.key not in SUBJECTS]


def _differences(left: Sequence[Token], right: Sequence[Token]) -> list[Difference]:
    found: list[Difference] = []
    for sort in SORTS:
        ours = [token for token in left if token.sort == sort]
        theirs = [token for token in right if token.sort == sort]
        for one, other in zip_longest(ours, theirs):
            found.append(
                Difference(
                    sort,
                    one.text if one else "",
                    other.text if other else "",
                    "",
                    one.span if one else None,
                    other.span if other else None,
                )
            )
    return found[:MOST_LISTED]


def _whole(saying: Saying) -> str:
    return f"{saying.title}\n{saying.summary}"


def _of_summary(one: Saying, other: Saying) -> list[Difference]:
    return differences_that_matter(one.summary, other.summary)


def _placed(found: Sequence[Difference], where: str) -> list[Difference]:
    return [Difference(d.sort, d.one, d.other, where, d.one_span, d.other_span) for d in found]
