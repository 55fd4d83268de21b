"""Checks whether a text supports a fact. A fact must not contain a number, an identifier or a name that is not in the
text, and must not add or omit a "not". Most of its words must be in the text."""

import re
from collections.abc import Iterable

from memory.text.folding import fold
from memory.text.keys import keys_certain, keys_missing, keys_of
from memory.text.negation import negated
from memory.text.word_lists import wordset

# The least share of the words of a fact that must occur in the text.
LEAST_SHARED = 0.5
# Two words count as the same if their first ``STEM`` letters are the same.
STEM = 5

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_DIGITS = re.compile(r"\d+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FUNCTION = wordset(
    "a an the and or but so of in on at for from with by to as is are was were be been being am has have had do does "
    "did will would can could should may might must that this these those it its he she they we you i his her their "
    "our my your him them us me who which what when where while if because than then there here not no yes also about "
    "into over after before during since until between through currently recently named called one some any each both"
)


class Source:
    """A text, prepared for checking facts against it. ``more`` are further texts that support facts. ``units`` are the
    sentences of the text."""

    def __init__(self, text: str, *, more: Iterable[str] = (), units: Iterable[str] = ()) -> None:
        whole = "\n".join([text, *more])
        self.words = {fold(word) for word in _WORD.findall(whole)}
        self.words |= {re.sub(r"'s?$", "", word) for word in self.words}
        self.stems = {word[:STEM] for word in self.words}
        self.digits = {number.lstrip("0") for number in _DIGITS.findall(fold(whole))}
        self.keys, self.certain = keys_of(whole), keys_certain(whole)
        self.signs = set(_UNSPACED.findall(whole))
        # A pair for each sentence of the text: whether it is negated, and its stems.
        self.units = [(negated(unit), _stems(unit)) for unit in units]

    def objection(self, fact: str) -> str:
        """Return why the text does not support ``fact``, for example ``number``; empty if the text supports it."""
        if keys_missing(fact, known=self.keys, certain=self.certain):
            return "identifier"
        if any(number.lstrip("0") not in self.digits for number in _DIGITS.findall(fold(fact))):
            return "number"
        if self._foreign_name(fact):
            return "name"
        if self._negation_differs(fact):
            return "negation"
        return "" if self._shared(fact) >= LEAST_SHARED else "words"

    def _foreign_name(self, fact: str) -> bool:
        for found in _WORD.finditer(fact):
            word = fold(found.group())
            if not found.group()[0].isupper() or word in self.words or re.sub(r"'s?$", "", word) in self.words:
                continue
            # The first word of a sentence is always capitalized.
            begins = not re.search(r"\w", fact[: found.start()]) or fact[: found.start()].rstrip()[-1:] in ".!?:"
            if not begins or (word not in _FUNCTION and word[:STEM] not in self.stems):
                return True
        return False

    def _negation_differs(self, fact: str) -> bool:
        """Return whether ``fact`` is negated and the most similar sentence of the text is not, or the reverse."""
        denies, stems = negated(fact), _stems(fact)
        best = {True: 0.0, False: 0.0}
        for unit_denies, unit in self.units:
            shared = len(stems & unit) / max(1, len(stems))
            best[unit_denies] = max(best[unit_denies], shared)
        return best[not denies] >= LEAST_SHARED and best[not denies] >= best[denies]

    def _shared(self, fact: str) -> float:
        signs = _UNSPACED.findall(fact)
        if len(signs) > len(fact) / 3:
            return sum(sign in self.signs for sign in signs) / len(signs)
        words = [word for word in map(fold, _WORD.findall(fact)) if word not in _FUNCTION]
        known = [word for word in words if word in self.words or word[:STEM] in self.stems]
        return len(known) / len(words) if words else 0.0


def _stems(text: str) -> set[str]:
    return {
        word[:STEM] for word in map(fold, _WORD.findall(text)) if word not in _FUNCTION and not word.endswith("n't")
    }
