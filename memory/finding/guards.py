"""Guards give reasons why a request cannot refer to a fact, even to a similar one. No queries."""

import re
from collections.abc import Sequence
from typing import Final

from memory.finding.evidence import BEFORE, name_mentioned, names_find
from memory.finding.request import Request
from memory.finding.weigh import Candidate
from memory.text.folding import fold
from memory.text.stems import numbers, stem, stems, subject
from memory.text.word_lists import RELATIVES

_QUOTED: Final = re.compile(r"[\"“„«「]([^\"”“»」]{2,80})[\"”“»」]")
RELATIVE_STEMS: Final = frozenset(map(stem, map(fold, RELATIVES)))


def names_asked(request: Request, new_text: str, found: Sequence[Candidate]) -> list[str]:
    """Return the names that the request is about; if there is a new text, only names that it also contains."""
    names = names_find(request.text, [one.text for one in found])
    about = subject(request.text) or frozenset()
    # "Anna lives in Oslo" is about Anna, the subject, not about Oslo.
    names = [name for name in names if about & set(stems(name))] or names
    return [name for name in names if fold(name) in fold(new_text)] if new_text else names


def contradiction(one: Candidate, request: Request, new_text: str, names: Sequence[str]) -> str:
    """Return a sentence that says why the request cannot refer to a fact, such as another subject or number. Return an
    empty text if it can. ``names`` are the names that the request is about."""
    if one.exact:
        return ""
    known = frozenset(stems(request.text)) | frozenset(stems(new_text))
    if _about_relative(one, known):
        return "It is about a relative."
    if names and not any(name_mentioned(name, one.fact) for name in names) and one.subject:
        others = {part for name in names_find(one.text, [one.text]) for part in stems(name)}
        if others & (one.subject - known):
            return "It is about another person."
    if any(fold(quoted) not in fold(one.text) for quoted in _QUOTED.findall(request.text)):
        return "It does not contain the quoted words."
    if new_text:
        return ""
    asked, stated = numbers(request.body), numbers(one.text)
    if asked and BEFORE.search(request.body):
        return ""
    if asked and stated and not asked & stated:
        return "It states another number."
    # Statements that are equal but for a negation have been left out before (``opposites``).
    opposite = request.states and one.features["denial"] and one.stems <= known
    return "It states the opposite." if opposite else ""


def _about_relative(one: Candidate, known: frozenset[str]) -> bool:
    """Return whether a fact is about a relative of the requested person: true for "Anna's sister Eva has a dog", false
    for "Anna visits her brother Urs"."""
    relatives = (one.stems - known) & RELATIVE_STEMS
    if not relatives or one.subject is None:
        return bool(relatives)
    order = stems(one.text)
    first = next((at for at, word in enumerate(order) if word in known), len(order))
    after = frozenset(order[first:]) if one.subject & known else one.subject
    return bool(relatives & after & one.subject)
