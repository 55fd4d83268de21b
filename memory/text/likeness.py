"""Lists the differences between two texts: numbers, dates, identifiers, names, negations, words and their order
(docs/duplicates.md)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from memory.text.folding import UNSPACED_SIGNS, VOWEL_SIGNS, fold
from memory.text.grammar import name_known, word_known
from memory.text.keys import codes_of, dates_of, spans_hidden, spelled
from memory.text.negation import negates
from memory.text.stems import NUMBER_WORDS, UNSPACED, stem
from memory.text.word_lists import CALENDAR, FUNCTION, wordset

Kind = Literal["negation", "number", "date", "identifier", "name", "word", "order", "wording"]
KINDS: Final[tuple[Kind, ...]] = ("negation", "number", "date", "identifier", "name", "word", "order", "wording")
# Differences of these kinds make two facts of any two texts.
FIRM: Final = frozenset({"negation", "number", "date", "identifier", "name", "order"})
# The maximum number of differences that are returned.
MAX_DIFFERENCES: Final = 40
# Longer texts are compared only for equality.
MAX_COMPARED_CHARS: Final = 20_000
# Punctuation that does not stand between two words or digits, as it does in "3.5" and "Anna's"; and spaces.
_MARKS: Final = r""".,;:!?…¡¿"'()\[\]{}«»、。।॥،؛؟·"""
_LOOSE_MARKS: Final = re.compile(rf"(?<![^\W{UNSPACED_SIGNS}])[{_MARKS}]+|[{_MARKS}]+(?![^\W{UNSPACED_SIGNS}])")
_LOOSE_SPACES: Final = re.compile(rf"(?<=[{UNSPACED_SIGNS}]) | (?=[{UNSPACED_SIGNS}])")
_LETTER: Final = rf"(?:[^\W\d_{UNSPACED_SIGNS}]|[{VOWEL_SIGNS}])"
_TOKEN: Final = re.compile(
    rf"(?P<number>(?:(?<=[\s(~=$€£¥])[-+]|^[-+])?(?<!\w)\d+(?:[.,:/-]\d+)*)"
    rf"|(?P<word>{_LETTER}+(?:['’]{_LETTER}+)*(?:\+\+|#)?)|(?P<sign>\S)"
)
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# "10kg", "2.5": numbers, not codes.
_QUANTITY: Final = re.compile(r"[-+]?\d+(?:[.,:]\d+)*[a-zA-Z%°]{0,3}")
_ENDED: Final = re.compile(r"[.!?:;\n][\s\"')]*$")
# Words that hardly change the meaning.
_FILLERS: Final = wordset("a an the is are am be do does this that really just very also please on in at of for")
_DAYS: Final = CALENDAR | wordset("today tomorrow yesterday tonight")


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference. ``one`` and ``other`` are the words of both texts as written; one of them is empty if its text has
    no such word. ``where`` is "title", "summary" or the name of a field. A difference of the kind ``wording`` has no
    words: the texts say the same, but are not equal after folding."""

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


@dataclass(frozen=True, slots=True)
class Shared:
    """The common words of two texts: their share of the words of the shorter text, the number of ordinary words, and
    the number of names."""

    share: float
    words: int
    names: int


class _Token(NamedTuple):
    kind: Kind
    key: str
    text: str
    start: int


def topics_compare(one: ComparedTexts, other: ComparedTexts) -> list[Difference]:
    """Return the differences in the titles with the summaries, and in the fields that both topics have. A field that
    only one topic has does not count, because a merge keeps it. Linear time."""
    if one.summary or other.summary:
        # The title of one topic may say what the summary of the other says.
        found = differences_of(f"{one.title}\n{one.summary}", f"{other.title}\n{other.summary}", where="summary")
    else:
        found = differences_of(one.title, other.title, where="title")
    for name in sorted(one.fields.keys() & other.fields.keys()):
        found += differences_of(one.fields[name], other.fields[name], where=name)
    return found


def differences_of(one: str, other: str, *, where: str = "") -> list[Difference]:
    """Return at most ``MAX_DIFFERENCES`` differences; empty if both texts are equal after folding. A difference is a
    word without a counterpart in the other text. If both have the same words in another order, there is one difference
    of the kind ``order``, unless one block of words has moved. Linear time."""
    if _bare(one) == _bare(other):
        return []
    if len(one) > MAX_COMPARED_CHARS or len(other) > MAX_COMPARED_CHARS:
        return [Difference("word", "a long text", "another long text", where)]
    left, right = _tokens(one), _tokens(other)
    found = [
        Difference(kind, mine.text if mine else "", theirs.text if theirs else "", where)
        for kind in KINDS
        for mine, theirs in zip_longest(
            [each for key, each in left.items() if key not in right and each.kind == kind],
            [each for key, each in right.items() if key not in left and each.kind == kind],
        )
    ]
    if not found:
        moved = next(((one, other) for one, other in zip(left, right, strict=True) if one != other), None)
        if moved and not _moved_as_one(left, right):
            return [Difference("order", left[moved[0]].text, right[moved[1]].text, where)]
    return found[:MAX_DIFFERENCES] or [Difference("wording", "", "", where)]


def words_shared(one: str, other: str) -> Shared:
    """Count the content words that two texts have in common, without negations and dates."""
    left, right = (
        {
            key: each.kind
            for key, each in _tokens(text[:MAX_COMPARED_CHARS]).items()
            if each.kind not in ("negation", "date") and fold(each.text) not in FUNCTION
        }
        for text in (one, other)
    )
    shared = Counter(left[key] for key in left.keys() & right.keys())
    least = min(len(left), len(right))
    return Shared(shared.total() / least if least else 0.0, shared["word"], shared["name"])


def _bare(text: str) -> str:
    """Return a text folded, without the punctuation around words, and without spaces beside signs of scripts that need
    none."""
    return _LOOSE_SPACES.sub("", " ".join(_LOOSE_MARKS.sub(" ", fold(text)).split()))


def _moved_as_one(left: Mapping[str, _Token], right: Mapping[str, _Token]) -> bool:
    """Return whether one block of words has moved, and names, numbers and dates have each kept their order."""
    for kind in FIRM:
        same = {key for key in left if left[key].kind == right[key].kind == kind}
        if [key for key in left if key in same] != [key for key in right if key in same]:
            return False
    one, other = list(left), list(right)
    start = next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    end = next(at for at, (a, b) in enumerate(zip(one[::-1], other[::-1], strict=True)) if a != b)
    inner, wanted = one[start : len(one) - end], other[start : len(other) - end]
    cut = inner.index(wanted[0])
    # Which signs of a script without spaces are words is not known, so any order may matter.
    return inner[cut:] + inner[:cut] == wanted and not any(map(UNSPACED.match, one))


def _tokens(text: str) -> dict[str, _Token]:
    """Return the content words of a text by their keys, in order, each once."""
    plain, dates = spelled(text), dict[tuple[int, int], list[str]]()
    for key, span in dates_of(text).items():
        dates.setdefault(span, []).append(key)
    found = [_Token("date", " ".join(sorted(keys)), plain[slice(*span)], span[0]) for span, keys in dates.items()]
    hidden = list(dates)
    for key, (start, end) in codes_of(text).items():
        written = plain[start:end]
        if " " not in written and not _QUANTITY.fullmatch(written) and not written.isalpha() and "…" not in key:
            found.append(_Token("identifier", key, written, start))
            hidden.append((start, end))
    rest = spans_hidden(plain, hidden)
    for match in _TOKEN.finditer(rest):
        found += _read(match, rest, initial=not found or bool(_ENDED.search(rest[: match.start()][-8:])))
    words: dict[str, _Token] = {}
    for each in sorted(found, key=lambda each: each.start):
        words.setdefault(each.key, each)
    return words


def _read(match: re.Match[str], text: str, *, initial: bool) -> Iterator[_Token]:
    written, start = match[0], match.start()
    folded = fold(written).replace("’", "'")
    if match["number"]:
        yield _Token("number", _THOUSANDS.sub("", written).lstrip("+"), written, start)
    elif match["sign"]:
        # Other signs are punctuation, unlike signs of money, mathematics and pictures.
        if written.isalnum() or unicodedata.category(written)[0] in "SM":
            kind: Kind = "negation" if negates(written) else "word" if written.isalpha() else "number"
            yield _Token(kind, folded or written, written, start)
    elif folded.endswith("n't") or negates(folded):
        yield _Token("negation", "not", written, start)
    else:
        folded = re.sub(r"'(?:s|re)?$", "", folded)
        day = folded if folded in _DAYS else folded.removesuffix("s")
        capital = written[0] != written[0].lower()
        if day in _DAYS:
            yield _Token("date", day, written, start)
        elif folded in NUMBER_WORDS:
            yield _Token("number", NUMBER_WORDS[folded], written, start)
        elif folded not in _FILLERS:
            # A name may be in lower case, and any word has a capital at the beginning of a sentence.
            name = name_known(folded) or (capital and not (initial and word_known(folded)))
            plain = name or (capital and not initial) or written[-1] in "+#"
            kind = "identifier" if written[-1] in "+#" else "name" if name else "word"
            yield _Token(kind, folded if plain else stem(folded), written, start)
