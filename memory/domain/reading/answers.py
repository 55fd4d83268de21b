"""Answers: whether a sentence holds what a question asks for, a place for "where", a moment for "when"."""

import re
from functools import lru_cache

from memory.domain.reading.grammar import words_tag
from memory.domain.reading.identifiers import identifiers_find

_DAYS = (
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october|november|"
    r"december|noon|midnight|mornings?|evenings?|weekly|daily|fortnightly|monthly|\d{1,2}(?:st|nd|rd|th))\b"
)
_MOMENT = re.compile(_DAYS, re.IGNORECASE)
_PLACE = re.compile(
    r"\b(?:in|at|into|under|near|behind|beside|inside|from|to|on) (?:(?:the|a|an|my|our|his|her|their) )?[^\W\d]"
)
_ASKED = (
    (re.compile(r"\b(?:where|place|location|which (?:city|town|country|room))\b", re.IGNORECASE), "place"),
    (re.compile(r"\b(?:when|what (?:time|day|date)|which (?:day|date)|day|date|time)\b", re.IGNORECASE), "moment"),
    (re.compile(r"\b(?:how (?:much|many)|price|cost|fee|amount|number)\b", re.IGNORECASE), "amount"),
    (re.compile(r"\bwho\b", re.IGNORECASE), "person"),
)
_MOMENTS = frozenset({"date", "time", "datetime"})


@lru_cache(maxsize=8192)
def answers(question: str, sentence: str) -> int:
    """Return 1 if ``sentence`` holds the kind of thing that ``question`` asks for, -1 if not, 0 where it asks for no
    kind that shows."""
    wanted = {kind for pattern, kind in _ASKED if pattern.search(question)}
    if not wanted:
        return 0
    return 1 if wanted & _held(sentence) else -1


@lru_cache(maxsize=8192)
def _held(sentence: str) -> frozenset[str]:
    kinds = {found.kind for found in identifiers_find(sentence)}
    held = set()
    if kinds & _MOMENTS or _MOMENT.search(sentence):
        held.add("moment")
    if any(map(str.isdigit, sentence)) and kinds - _MOMENTS:
        held.add("amount")
    if _PLACE.search(_MOMENT.sub(" ", sentence)):
        held.add("place")
    if any(word.tag == "NP0" or word.text[:1].isupper() for word in words_tag(sentence)[1:]):
        held.add("person")
    return frozenset(held)
