"""Differences between two texts, word by word: pieces in reading order that are the same, removed, or added."""

import difflib
import re
from dataclasses import dataclass
from typing import Literal

# If the part between the first and the last difference has more words, it is reported as one removal and one addition.
# The cost of a comparison grows with the square of this number.
MAX_WORDS = 600
# A word or a punctuation mark, with the white space before it. The spaces around a changed word are therefore not
# reported as unchanged pieces. Numbers, times and hyphenated words are one word.
_WORD = re.compile(r"\s*(?:\w+(?:[.,:'’-]\w+)*|[^\w\s])|\s+")

Kind = Literal["same", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that stayed the same, was added or was removed."""

    kind: Kind
    text: str


def words_differ(before: str, after: str) -> list[Piece]:
    """Return the difference between two texts. Takes linear time, plus at most the square of ``MAX_WORDS``."""
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
    """Return the pieces for display. Long unchanged pieces lose their middle; changes stay whole."""
    shown = []
    for index, piece in enumerate(pieces):
        if piece.kind == "same" and len(piece.text) > most and len(pieces) > 1:
            half = most // 2
            head = piece.text[:half] if index else ""
            tail = piece.text[-half:] if index < len(pieces) - 1 else ""
            piece = Piece("same", f"{head} … {tail}")
        shown.append(piece)
    return shown


def _middle(old: list[str], new: list[str]) -> list[Piece]:
    if not old or not new or max(len(old), len(new)) > MAX_WORDS:
        return [Piece("removed", "".join(old)), Piece("added", "".join(new))]
    found = []
    for kind, old_start, old_end, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(Piece("same", "".join(old[old_start:old_end])))
        else:
            found += [Piece("removed", "".join(old[old_start:old_end])), Piece("added", "".join(new[start:end]))]
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
