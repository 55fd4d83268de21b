"""Prepares texts for the search by words. PostgreSQL separates words at spaces, so text in scripts without spaces is
separated here, into overlapping pairs of letters."""

import re
from itertools import pairwise
from typing import Final

from memory.text.folding import UNSPACED_SIGNS, WORD, fold

_RUN: Final = re.compile(f"(?:[{UNSPACED_SIGNS}])+")
# One letter with its vowel signs.
_LETTER: Final = re.compile(WORD.pattern.replace("(?:[^\\W_]|", "(?:"))


def words_for_search(text: str) -> str:
    """Return ``text`` folded, with each run of a script without spaces as overlapping pairs of letters: "今天天气"
    becomes "今天 天天 天气". A single letter remains as it is. Documents and questions must both be prepared by this
    function. Korean is separated too, because its particles are attached to the words. Linear time."""
    if text.isascii():
        return text
    return _RUN.sub(_pairs, fold(text))


def words_for_websearch(text: str) -> str:
    """Return ``words_for_search`` for ``websearch_to_tsquery``: outside quotes, each run of a script without spaces is
    quoted, so that a minus in front of it excludes the whole run."""
    if text.isascii():
        return text
    parts = fold(text).split('"')
    # Every second part is inside quotes.
    parts[::2] = [_RUN.sub(lambda found: f'"{" ".join(pairs(found[0]))}" ', part) for part in parts[::2]]
    parts[1::2] = [_RUN.sub(_pairs, part) for part in parts[1::2]]
    return '"'.join(parts)


def runs_without_spaces(text: str) -> list[str]:
    """Return the parts of ``text``, folded, that are in scripts without spaces."""
    return [] if text.isascii() else _RUN.findall(fold(text))


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of letters of one run, or the run itself if it has only one letter."""
    letters = _LETTER.findall(run)
    return [one + two for one, two in pairwise(letters)] or letters


def is_pair(word: str) -> bool:
    """Return whether a word of a document is a pair of letters from ``words_for_search``."""
    return not word.isascii() and _RUN.fullmatch(word) is not None and len(_LETTER.findall(word)) == 2


def _pairs(found: re.Match[str]) -> str:
    return f" {' '.join(pairs(found[0]))} "
