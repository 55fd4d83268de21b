"""Decides whether two texts say the same in other words, or differ in something that matters (docs/duplicates.md)."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from typing import Final

from memory.text.folding import UNSPACED_SIGNS, fold
from memory.text.grammar import word_known
from memory.text.likeness_order import order_differs
from memory.text.likeness_tokens import Kind, Token, tokens_read
from memory.text.likeness_words import DIRECTED, SAME, SUBJECTS

KINDS: Final[tuple[Kind, ...]] = ("negation", "number", "date", "identifier", "name", "word", "order")
# The maximum number of differences that are returned, and of unmatched words that are compared with each other.
MAX_DIFFERENCES = 40
# Punctuation that does not stand between two words or digits, as it does in "3.5" and "Anna's"; and spaces.
_MARKS: Final = r""".,;:!?…¡¿"'()\[\]{}«»、。।॥،؛؟·"""
_LOOSE_MARKS: Final = re.compile(rf"(?<![^\W{UNSPACED_SIGNS}])[{_MARKS}]+|[{_MARKS}]+(?![^\W{UNSPACED_SIGNS}])")
_LOOSE_SPACES: Final = re.compile(rf"(?<=[{UNSPACED_SIGNS}]) | (?=[{UNSPACED_SIGNS}])")
# Longer texts are compared only for equality.
MAX_COMPARED_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference that matters. ``one`` and ``other`` are the words of both texts as written; one of them is empty if
    its text has no such word. ``where`` is "title", "summary" or the name of a field."""

    kind: Kind
    one: str
    other: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class ComparedTexts:
    """The texts of a topic: title, summary, and the current values of its fields by name."""

    title: str
    summary: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def topics_compare(one: ComparedTexts, other: ComparedTexts) -> list[Difference]:
    """Return the differences that matter in the titles, the summaries, and the fields that both topics have. A field
    that only one topic has does not count, because a merge keeps it. Linear time."""
    found = _differences_in("title", one.title, other.title)
    if one.summary or other.summary:
        # The title of one topic may say what the summary of the other says.
        together = _differences_in("summary", f"{one.title}\n{one.summary}", f"{other.title}\n{other.summary}")
        found = (found + _differences_in("summary", one.summary, other.summary) or together) if together else []
    for name in sorted(one.fields.keys() & other.fields.keys()):
        found += _differences_in(name, one.fields[name], other.fields[name])
    return found


def _differences_in(where: str, one: str, other: str) -> list[Difference]:
    return [replace(each, where=where) for each in differences_that_matter(one, other)]


def differences_that_matter(one: str, other: str) -> list[Difference]:
    """Return at most ``MAX_DIFFERENCES`` differences; empty if both texts say the same. A difference is a word without
    a counterpart in the other text. If both texts have the same words in different roles ("from Rome to Oslo", "from
    Oslo to Rome"), the list has one difference of the kind ``order``. Linear time."""
    if _bare(one) == _bare(other):
        return []
    if len(one) > MAX_COMPARED_CHARS or len(other) > MAX_COMPARED_CHARS:
        return [Difference("word", "a long text", "another long text")]
    left, right = tokens_read(one), tokens_read(other)
    pairs, only_left, only_right = _match(left, right)
    only_left, only_right = _without_pronouns(only_left, only_right)
    if only_left or only_right:
        return _differences(only_left, only_right)
    if any(token.alone for token in left) and [token.key for token in left] != [token.key for token in right]:
        # Which of the signs are words is not known, so any order may matter.
        return [Difference("order", one, other)]
    if moved := order_differs(left, right, pairs):
        first, second = moved
        return [Difference("order", first.text, second.text)]
    return []


def _bare(text: str) -> str:
    """Return a text folded, without the punctuation around words, and without spaces beside signs of scripts that need
    none."""
    return _LOOSE_SPACES.sub("", " ".join(_LOOSE_MARKS.sub(" ", fold(text)).split()))


@dataclass(frozen=True, slots=True)
class Shared:
    """The common words of two texts: their share of the words of the shorter text, the number of ordinary words, and
    the number of names."""

    share: float
    words: int
    names: int


def words_shared(one: str, other: str) -> Shared:
    """Count the content words that two texts have in common, without prepositions, negations, dates and pronouns."""
    left, right = (
        {
            _stem(token): token
            for token in tokens_read(text[:MAX_COMPARED_CHARS])
            if token.kind not in ("negation", "date") and token.key not in SUBJECTS | DIRECTED
        }
        for text in (one, other)
    )
    shared = [left[key] for key in left.keys() & right.keys()]
    least = min(len(left), len(right))
    return Shared(
        len(shared) / least if least else 0.0,
        sum(token.kind == "word" for token in shared),
        sum(token.kind == "name" for token in shared),
    )


def _match(left: Sequence[Token], right: Sequence[Token]) -> tuple[dict[int, int], list[Token], list[Token]]:
    """Return (pairs, unmatched words of ``left``, unmatched words of ``right``). ``pairs`` maps the index of each
    matched word in ``left`` to the index of its match in ``right``."""
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
        for place in list(loose_left[:MAX_DIFFERENCES]):
            partner = next((other for other in loose_right[:MAX_DIFFERENCES] if same(left[place], right[other])), None)
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
    """Return the unmatched words at the indexes ``loose``, except words and names that also occur in ``others``."""
    known = {_stem(token) for token in others}
    keys = {token.key for token in others}
    return [
        own[place]
        for place in loose
        if own[place].kind not in ("word", "name")
        or own[place].alone
        or not (own[place].key in keys or (not own[place].capital and _stem(own[place]) in known))
    ]


def _joined(
    own: Sequence[Token], others: Sequence[Token], loose: Sequence[int], other_loose: Sequence[int]
) -> list[int]:
    """Return the indexes in ``loose``, except those of compounds that the other text writes in another way: "data base"
    and "database"."""
    whole = Counter(others[place].key for place in other_loose if others[place].soft)
    doubles = {
        others[one].key + others[two].key
        for one, two in pairwise(other_loose)
        if two == one + 1 and others[one].soft and others[two].soft
    }
    rest = [place for place in loose if not (own[place].soft and own[place].key in doubles)]
    for one, two in pairwise(loose):
        if two == one + 1 and own[one].soft and own[two].soft and whole[own[one].key + own[two].key]:
            rest = [place for place in rest if place not in (one, two)]
    return rest


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
    return one.kind == other.kind == "word" and not (one.capital and other.capital) and _stem(one) == _stem(other)


def _mistyped(one: Token, other: Token) -> bool:
    """Return whether one word is known and the other is an unknown misspelling of it."""
    if not (one.soft and other.soft) or one.capital or other.capital or min(len(one.key), len(other.key)) < 5:
        return False
    known = word_known(one.key), word_known(other.key)
    return known in ((True, False), (False, True)) and _one_edit(one.key, other.key)


def _one_edit(one: str, other: str) -> bool:
    """Return whether two words differ by one added, missing or replaced letter, or by two swapped letters. The first
    letter must be equal."""
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


def _without_pronouns(left: list[Token], right: list[Token]) -> tuple[list[Token], list[Token]]:
    """Remove the pronouns, unless both texts have pronouns."""
    other_left, other_right = ([token for token in side if token.key not in SUBJECTS] for side in (left, right))
    both = len(other_left) < len(left) and len(other_right) < len(right)
    return (left, right) if both else (other_left, other_right)


def _differences(left: Sequence[Token], right: Sequence[Token]) -> list[Difference]:
    found: list[Difference] = []
    for kind in KINDS:
        own, others = ([token for token in side if token.kind == kind] for side in (left, right))
        found += [
            Difference(kind, one.text if one else "", other.text if other else "")
            for one, other in zip_longest(own, others)
        ]
    return found[:MAX_DIFFERENCES]
