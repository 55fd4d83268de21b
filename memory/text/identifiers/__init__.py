"""Finds identifiers and dates in texts, in any spelling. Equal identifiers have equal canonical forms. A part of an
identifier does not match: ``a@x.io`` is not found in ``a.smith@x.io``."""

import re
from typing import Final

from memory.text.codes import codes_find as codes_any
from memory.text.codes import codes_solid
from memory.text.identifiers.account_numbers import accounts_find, phones_find
from memory.text.identifiers.codes import codes_find, numbered_find
from memory.text.identifiers.datetimes import datetimes_find
from memory.text.identifiers.machines import machines_find
from memory.text.identifiers.places import files_find, paths_find, points_find
from memory.text.identifiers.view import Identifier, TextView
from memory.text.identifiers.web import dotted_find, names_find, web_find
from memory.text.word_lists import wordset

__all__ = ["KINDS", "STRONG", "Identifier", "identifier_search_keys", "identifiers_find", "identifiers_index"]

# Kinds that identify one person or thing.
STRONG: Final = wordset(
    "email phone url domain path uuid card ip cidr mac iban handle hashtag code isbn doi coordinates hash vin ssn"
)
# Kinds that do not identify one person or thing.
WEAK: Final = wordset("date time datetime")
KINDS: Final = STRONG | WEAK

_ANYTHING: Final = re.compile(
    r"[\d@#/\\._]| at |[\[({]at[\])}]|noon|midday|midnight|mitternacht|пол(?:день|ночь)", re.IGNORECASE
)

_DIGIT_OR_JOINT: Final = re.compile(r"\d|_|-\w+-|[a-z][A-Z][a-z]")

# A cheap test for most texts: characters that occur in identifiers, and words (in lower case) of addresses and times.
_SIGN: Final = re.compile(r"[\d@#/\\_]|\.\w")
_WORDS: Final = (" at ", "noon", "midday", "midnight", "mitternacht")


def identifiers_find(text: str) -> list[Identifier]:
    """Return the identifiers in ``text`` in order, with their spans. Identifiers with the same span are alternatives:
    03/04/2024 is in April or in March. Parts of an identifier are not returned, except the parts of datetimes and the
    IP addresses in URLs. Linear time."""
    return sorted(_read(text).found, key=lambda one: (one.start, -one.end, one.key))


def identifiers_index(text: str) -> set[str]:
    """Return the index keys of ``text``: those of its identifiers, and of its codes in any spelling."""
    keys = {key for key in _read(text).keys if not key.startswith("code:")}
    if not _DIGIT_OR_JOINT.search(text):
        return keys
    solid, grouped = codes_solid(text)
    keys.update(f"code:{code}" for code in codes_any(text))
    keys.update(f"solid:{code}" for code in solid)
    keys.update(f"group:{code}" for code in grouped)
    return keys


def identifier_search_keys(request: str) -> set[str]:
    """Return the index keys of texts that may contain an identifier of ``request``."""
    strong = STRONG - {"code"}
    keys = {key for one in identifiers_find(request) if one.kind in strong for key in one.search_keys}
    solid, grouped = codes_solid(request)
    keys.update(f"code:{code}" for code in codes_any(request))
    keys.update(f"{kind}:{code}" for code in solid for kind in ("solid", "group"))
    keys.update(f"solid:{code}" for code in grouped)
    return keys


def _read(text: str) -> TextView:
    view = TextView(text)
    if not _likely(view):
        return view
    web_find(view)
    paths_find(view)
    digits = view.digits > 0
    if digits:
        machines_find(view)
        points_find(view)
    files_find(view)
    dotted_find(view)
    datetimes_find(view)
    names_find(view)
    if digits:
        accounts_find(view)
        numbered_find(view)
        phones_find(view)
    codes_find(view)
    return view


def _likely(view: TextView) -> bool:
    """Return whether the text may contain an identifier: a cheap test that most texts without numbers fail."""
    text = view.text
    if _SIGN.search(text):
        return True
    if not view.ascii or "(" in text or "[" in text or "{" in text:
        return _ANYTHING.search(text) is not None
    small = text.lower()
    return any(word in small for word in _WORDS)
