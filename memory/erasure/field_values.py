"""Reads the value of a field from a sentence: "Olga is 42 years old." gives 42 for her age."""

import re
from typing import Final

from memory.core.errors import ValueRefused
from memory.core.field_values import value_as_text
from memory.text.grammar import verb_place, words_tag
from memory.text.keys import DATE, dates_of
from memory.text.negation import negated
from memory.text.stems import stems

# The most words of a value. A longer text counts as a sentence and not as a value.
MAX_WORDS: Final = 8
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w.]*\d)")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}\b)")
_YES: Final = re.compile(r"\b(?:true|yes|on|enabled|active)\b", re.IGNORECASE)
_NO: Final = re.compile(r"\b(?:false|no|not|off|disabled|inactive|never)\b|n't\b", re.IGNORECASE)
# The tags of the words that may come between the verb and the value.
_PREPOSITIONS: Final = frozenset({"PRP", "TO0"})
_JOINING: Final = frozenset({"VVN", "VBN", "VHN", "VDN", "VVG", "PRP", "TO0", "AV0", "AVP"})
_AS: Final = "as"
# If a sentence begins with one of these, it is about the topic that the request names.
_PRONOUNS: Final = frozenset({"he", "her", "his", "it", "its", "she", "their", "they"})
_ARTICLE: Final = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_AT_LAST: Final = re.compile(r"\s(?:again|already|now|nowadays|today)$", re.IGNORECASE)


def value_given(text: str, *, title: str, name: str, old: str, field_type: str) -> str | None:
    """Return the value that ``text`` states for the field ``name`` of a topic with this title, or None.

    For a field with a type, ``text`` must contain exactly one value of this type. For a text field, ``text`` must be
    about the topic, and the value is the part of ``text`` after the verb or the label.
    """
    if field_type != "string":
        return _typed(text, field_type)
    about = set(stems(title)) & set(stems(text)) or text.split(maxsplit=1)[0].lower() in _PRONOUNS
    if len(old.split()) > MAX_WORDS or not about:
        return None
    label, colon, after = text.partition(":")
    if colon and set(stems(label)) <= set(stems(f"{title} {name}")):
        return after.strip().rstrip(".") or None
    words = words_tag(text)
    verb = verb_place(words)
    # "No longer lives in Oslo" gives no value, and "moved from Oslo to Bergen" gives two.
    if verb is None or negated(text) or sum(word.tag in _PREPOSITIONS for word in words[verb + 1 :]) > 1:
        return None
    start = verb + 1
    while start < len(words) and (words[start].tag in _JOINING or words[start].text.lower() == _AS):
        start += 1
    value = text[words[start].start :].strip().rstrip(".") if start < len(words) else ""
    value = _AT_LAST.sub("", value).rstrip()
    article = None if _ARTICLE.match(old) else _ARTICLE.match(value)
    if article:
        value = value[article.end() :]
    return value if 0 < len(value.split()) <= MAX_WORDS else None


def _typed(text: str, field_type: str) -> str | None:
    if field_type in ("list", "json"):
        found = [text]
    elif field_type in ("int", "float"):
        found = _NUMBER.findall(_THOUSANDS.sub("", text) if field_type == "int" else text)
    elif field_type == "bool":
        found = [word for word, pattern in (("false", _NO), ("true", _YES)) if pattern.search(text)][:1]
    else:
        keys = [key.removeprefix(DATE) for key in dates_of(text)]
        found, times = [key for key in keys if len(key) == len("2024-03-23")], [key for key in keys if "h" in key]
        if field_type == "datetime":
            found = [f"{date}T{time.replace('h', ':')}" for date in found for time in times]
    if len(set(found)) != 1:
        return None
    try:
        return value_as_text(found[0], field_type=field_type, name="value")
    except ValueRefused:
        return None
