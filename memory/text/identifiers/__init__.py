"""Identifiers in texts: what names one person or thing, and what only describes; found in any spelling.

Two identifiers are equal if their canonical forms are, never if one is a part of the other: what is found is bounded by
what surrounds it, so that ``a@x.io`` is not in ``a.smith@x.io``, and ``INV-100`` not in ``INV-1001`` or ``INV-100-2``.
"""

import re
from typing import Final

from memory.text.codes import codes_find as codes_any
from memory.text.codes import codes_solid
from memory.text.identifiers.codes import codes_find, numbered_find
from memory.text.identifiers.digits import accounts_find, phones_find
from memory.text.identifiers.machines import machines_find
from memory.text.identifiers.moments import moments_find
from memory.text.identifiers.places import files_find, paths_find, points_find
from memory.text.identifiers.view import Identifier, TextView
from memory.text.identifiers.web import dotted_find, names_find, web_find
from memory.text.word_lists import wordset

__all__ = ["KINDS", "STRONG", "Identifier", "identifiers_find", "identifiers_index", "identifiers_sought"]

# Each singles out one person or thing.
STRONG: Final = wordset(
    "email phone url domain path uuid card ip cidr mac iban handle hashtag code isbn doi coordinates hash vin ssn"
)
# Each describes many.
WEAK: Final = wordset("date time datetime")
KINDS: Final = STRONG | WEAK

_ANYTHING: Final = re.compile(
    r"[\d@#/\\._]| at |[\[({]at[\])}]|noon|midday|midnight|mitternacht|пол(?:день|ночь)", re.IGNORECASE
)

_DIGIT_OR_JOINT: Final = re.compile(r"\d|_|-\w+-|[a-z][A-Z][a-z]")

# The same for most texts, without a costly look: signs that something is made of, and words in small letters.
_SIGN: Final = re.compile(r"[\d@#/\\_]|\.\w")
_WORDS: Final = (" at ", "noon", "midday", "midnight", "mitternacht")


def identifiers_find(text: str) -> list[Identifier]:
    """Return the identifiers in ``text`` in their order, with their place in it. Linear in the length of the text.

    Two with the same place are two readings of it: 03/04/2024 is the third of April or the fourth of March. Parts of a
    larger one are not found again: the domain of an e-mail address is not a domain. Only a moment is also a date and a
    time, and a URL at a numbered host also that number.
    """
    return sorted(_read(text).found, key=lambda one: (one.start, -one.end, one.key))


def identifiers_index(text: str) -> set[str]:
    """Return the keys by which ``text`` is found: those of its identifiers, and its codes in any spelling."""
    keys = {key for key in _read(text).keys if not key.startswith("code:")}
    if not _DIGIT_OR_JOINT.search(text):
        return keys
    solid, grouped = codes_solid(text)
    keys.update(f"code:{code}" for code in codes_any(text))
    keys.update(f"solid:{code}" for code in solid)
    keys.update(f"group:{code}" for code in grouped)
    return keys


def identifiers_sought(request: str) -> set[str]:
    """Return the keys under which ``identifiers_index`` has the texts that name an identifier of ``request``."""
    strong = STRONG - {"code"}
    keys = {key for one in identifiers_find(request) if one.kind in strong for key in one.sought}
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
    moments_find(view)
    names_find(view)
    if digits:
        accounts_find(view)
        numbered_find(view)
        phones_find(view)
    codes_find(view)
    return view


def _likely(view: TextView) -> bool:
    """Tell whether anything may be found. Most texts are sentences without a number, and cost no more than this."""
    text = view.text
    if _SIGN.search(text):
        return True
    if not view.ascii or "(" in text or "[" in text or "{" in text:
        return _ANYTHING.search(text) is not None
    small = text.lower()
    return any(word in small for word in _WORDS)
