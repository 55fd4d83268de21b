"""Decides whether a mention of a name that is also a common word is a proper name in its context."""

import re

from memory.text.grammar import words_tag
from memory.text.names import Mention
from memory.text.word_lists import CALENDAR

# Months and seasons.
_CALENDAR = frozenset(word for word in CALENDAR if not word.endswith("day"))
_TIME_BEFORE = re.compile(
    r"(?:\b(?:in|on|since|until|till|by|before|after|during|last|next|this|every|each|early|late|mid|"
    r"from|to|of)|\d)[\s-]*$",
    re.IGNORECASE,
)
_DAY = re.compile(r"^\s*(?:\d|the\s+\d)")
_SENTENCE = re.compile(r"[.!?:\n]\s+")


def name_meant(text: str, mention: Mention) -> bool:
    """Return whether a mention is a proper name: capitalised, and neither a verb at the beginning of a sentence nor a
    month or season. A word with letters outside ASCII always counts as a proper name."""
    word = text[mention.start : mention.end]
    if not word.isascii():
        return True
    if not word[:1].isupper():
        return False
    before = text[: mention.start]
    if word.casefold() in _CALENDAR and (_TIME_BEFORE.search(before) or _DAY.match(text[mention.end :])):
        return False
    starts = [match.end() for match in _SENTENCE.finditer(before)]
    begin = starts[-1] if starts else 0
    if before[begin:].strip(" \"'“‘(*-•"):
        return True
    ends = _SENTENCE.search(text, mention.end)
    for tagged in words_tag(text[begin : ends.start() if ends else len(text)][:400]):
        if begin + tagged.start == mention.start:
            return tagged.tag in ("NP0", "UNC", "NN0", "NN1", "NN2", "AJ0", "ZZ0", "CRD")
    return True
