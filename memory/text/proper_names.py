"""Proper names: whether a word that could be one is one where it stands."""

import re

from memory.text.grammar import words_tag
from memory.text.names import Mention

_MONTHS = """
january february march april may june july august september october november december spring summer autumn
winter
"""
_CALENDAR = frozenset(_MONTHS.split())
_MOMENT = re.compile(
    r"(?:\b(?:in|on|since|until|till|by|before|after|during|last|next|this|every|each|early|late|mid|"
    r"from|to|of)|\d)[\s-]*$",
    re.IGNORECASE,
)
_DAY = re.compile(r"^\s*(?:\d|the\s+\d)")
_SENTENCE = re.compile(r"[.!?:\n]\s+")


def name_meant(text: str, mention: Mention) -> bool:
    """Tell whether a mention of a capitalised name is written as a name there.

    It has a capital, is not the verb that begins a sentence, and no month. Other scripts than the Latin one tell
    nothing, and count as names.
    """
    said = text[mention.start : mention.end]
    if not said.isascii():
        return True
    if not said[:1].isupper():
        return False
    before = text[: mention.start]
    if said.casefold() in _CALENDAR and (_MOMENT.search(before) or _DAY.match(text[mention.end :])):
        return False
    starts = [match.end() for match in _SENTENCE.finditer(before)]
    begin = starts[-1] if starts else 0
    if before[begin:].strip(" \"'“‘(*-•"):
        return True
    ends = _SENTENCE.search(text, mention.end)
    for word in words_tag(text[begin : ends.start() if ends else len(text)][:400]):
        if begin + word.start == mention.start:
            return word.tag in ("NP0", "UNC", "NN0", "NN1", "NN2", "AJ0", "ZZ0", "CRD")
    return True
