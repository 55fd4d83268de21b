"""Differences: what changed from one text to the next, word by word. Pure Python.

A difference is a list of pieces in reading order. What is the same or was removed makes up the text before, what is the
same or was added makes up the text after, to the letter.
"""

import difflib
import re
from dataclasses import dataclass
from typing import Literal

# Longer stretches of different words than this are told as removed and added whole: nobody reads such a difference
# word by word, and the comparison grows with the square.
MOST_WORDS = 600
# A word or a sign with the space before it, so that a changed word does not leave the spaces around it as all that was
# kept. Numbers, times and words with a hyphen are one word.
_WORD = re.compile(r"\s*(?:\w+(?:[.,:'’-]\w+)*|[^\w\s])|\s+")

Kind = Literal["same", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that stayed, came or went."""

    kind: Kind
    text: str


def words_differ(before: str, after: str) -> list[Piece]:
    """Return the difference between two texts, with neighbouring pieces of a kind joined; empty for two empty texts.

    The time is bounded: by the length of the texts, and by the square of ``MOST_WORDS``.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    found = [Piece("same", "".join(old[:start]))]
    found += _middle(old[start : len(old) - end], new[start : len(new) - end])
    found.append(Piece("same", "".join(old[len(old) - end :])))
    return _joined(found)


def pieces_shorten(pieces: list[Piece], *, most: int = 160) -> list[Piece]:
    """Return the pieces with long stretches that stayed cut in the middle, for showing; what changed stays whole."""
    shown = []
    for place, piece in enumerate(pieces):
        if piece.kind == "same" and len(piece.text) > most and len(pieces) > 1:
            half = most // 2
            head = piece.text[:half] if place else ""
            tail = piece.text[-half:] if place < len(pieces) - 1 else ""
            piece = Piece("same", f"{head} … {tail}")
        shown.append(piece)
    return shown


def _middle(old: list[str], new: list[str]) -> list[Piece]:
    if not old or not new or max(len(old), len(new)) > MOST_WORDS:
        return [Piece("removed", "".join(old)), Piece("added", "".join(new))]
    found = []
    for kind, one, two, three, four in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(Piece("same", "".join(old[one:two])))
        else:
            found += [Piece("removed", "".join(old[one:two])), Piece("added", "".join(new[three:four]))]
    return found


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if joined and joined[-1].kind == piece.kind:
            joined[-1] = Piece(piece.kind, joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined
