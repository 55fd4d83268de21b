"""The content words of a text as stems, without case, accents, inflection and function words. In scripts without
spaces, the stems are pairs of neighbouring characters."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

import snowballstemmer

from memory.text.folding import UNSPACED_SIGNS, fold, fold_apart
from memory.text.grammar import verb_place, words_tag
from memory.text.word_lists import CALENDAR, FUNCTION, wordset

_WRITTEN: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"
)
NUMBER_WORDS: Final = dict(
    zip(_WRITTEN.split(), map(str, (*range(21), 30, 40, 50, 60, 70, 80, 90, 100, 1000)), strict=True)
)
UNSPACED: Final = re.compile(f"[{UNSPACED_SIGNS}]+")
_SIGN: Final = r"(?:[^\W_]|[\u0300-\u036f\u0900-\u0903\u093a-\u094f])"
_WORD: Final = re.compile(
    # A code with its separators, else a word.
    rf"(?=[^\W\d_]*+[-_/]?[^\W_]*\d)[^\W_]+(?:[-_/][^\W_]+)*(?![^\W_])|[^\W_]{_SIGN}*"
)
_STEMMERS: Final = (
    (re.compile("[\u0400-\u04ff]"), snowballstemmer.stemmer("russian")),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), snowballstemmer.stemmer("greek")),
    (re.compile("[a-z]"), snowballstemmer.stemmer("english")),
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_FOREIGN: Final = re.compile("[^\x00-\u024f\u1e00-\u1eff\u2000-\u20cf]")
_LABEL: Final = re.compile(r"([^:]{1,60}):\s")
_PARTS: Final = re.compile("[-_/]")
_ARTICLES: Final = wordset("a an the")
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
# "5th", "10am", "16gb": a number with its unit.
_MEASURE: Final = re.compile(r"\d+(?:st|nd|rd|th|[ap]m|[a-z]{1,2}|min|hrs?|kwh|mhz|ghz)")


@lru_cache(maxsize=4_096)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the content words of ``text`` in order, with repetitions."""
    found: list[str] = []
    for match in _WORD.finditer(fold_apart(text)):
        word = match.group()
        if code := _code(word) if word.isascii() else "":
            found.append(code)
            continue
        if _PARTS.search(word):
            # "2023/0456" has two numbers.
            found += [stem(part) for part in _PARTS.split(word)]
            continue
        for run in UNSPACED.findall(word):
            found += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        word = UNSPACED.sub("", word)
        if word and word not in FUNCTION:
            found.append(stem(word))
    return tuple(found)


def _code(word: str) -> str:
    """Return one folded word with separators only between its numbers; empty if it is not a code."""
    mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    if _MEASURE.fullmatch(word) or not (mixed or "_" in word or word.count("-") > 1):
        return ""
    runs = [run.lstrip("0") or "0" if run.isdigit() else run for run in _RUN.findall(word)]
    return "".join(
        f"-{run}" if before.isdigit() and run.isdigit() else run for before, run in zip(["", *runs], runs, strict=False)
    )


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the stem of a case-folded word. Number words become digits ("three" becomes "3")."""
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word]
    if word.isdigit():
        return word.lstrip("0") or "0"
    if word.isalpha():
        for script, stemmer in _STEMMERS:
            if script.search(word):
                return str(stemmer.stemWord(word))
    return word


_CALENDAR_STEMS: Final = frozenset(map(stem, CALENDAR))


class Rarity:
    """The inverse document frequency of words among some texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._times: Counter[str] = Counter()
        self._texts = 0
        for text in texts:
            self._times.update(set(stems(text)))
            self._texts += 1

    def share(self, wanted: Iterable[str], words: Collection[str]) -> float:
        """Return the share of the words ``wanted`` that are in ``words``, from 0 to 1; rare words have more weight.
        Return 0 if ``wanted`` is empty."""
        weights = {one: math.log(1 + (self._texts + 1) / (0.5 + self._times[one])) for one in set(wanted)}
        total = sum(weights.values())
        return sum(weight for one, weight in weights.items() if one in words) / total if total else 0.0


@lru_cache(maxsize=4_096)
def numbers(text: str) -> frozenset[str]:
    """Return the numbers of ``text``, without leading zeros. Number words count, except "one". For a time of day, the
    hour is also returned."""
    folded = fold(text)
    found = {_number(number) for number in _NUMBER.findall(folded)}
    found |= {number.partition(":")[0] for number in found if ":" in number}
    return frozenset(
        found | {NUMBER_WORDS[word] for word in re.findall("[a-z]+", folded) if NUMBER_WORDS.get(word, "1") != "1"}
    )


def _number(digits: str) -> str:
    if re.fullmatch(r"\d+\.\d+", digits):
        digits = digits.rstrip("0").rstrip(".")
    return digits.lstrip("0") or "0"


@lru_cache(maxsize=4_096)
def subject(text: str) -> frozenset[str] | None:
    """Return the stems of the label if ``text`` begins with a label and a colon, otherwise of the words before the
    first finite verb. Dates are left out. None if there is neither, or if ``text`` has non-Latin letters."""
    if _FOREIGN.search(text):
        return None
    if label := _LABEL.match(text):
        before = label[1]
    else:
        words = words_tag(text[:400])
        verb = verb_place(words)
        if verb is None:
            return None
        before = text[: words[verb].start]
    return frozenset(one for one in stems(before) if one not in _CALENDAR_STEMS and not _YEAR.fullmatch(one))


@lru_cache(maxsize=2_048)
def same_text(one: str, other: str) -> bool:
    """Return whether two texts are equal except for case, accents, punctuation and articles."""
    return _plain(one) == _plain(other)


@lru_cache(maxsize=2_048)
def _plain(text: str) -> tuple[str, ...]:
    words = re.findall(r"[\w+#%°$€£]+(?:[-'’.,:/@]\w+)*", fold(text))
    return tuple(word for word in words if word not in _ARTICLES) or (fold(text),)
