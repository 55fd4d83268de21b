"""A text in parts that can be read one after the other: cut where its layout has a seam, and within sentences last."""

import re
from bisect import bisect_left, bisect_right

from memory.text.sentences import Sentence, sentences_find

# Better seams are looked for in so much of a part, from its end: a heading there is worth a shorter part.
WITHIN = 0.5

_GAP = re.compile(r"\n[^\S\n]*\n")
_SPACE = re.compile(r"\s")

# How good a seam is: behind a heading, between sentences, between lines and items, paragraphs, before a heading.
_BEHIND_HEADING, _SENTENCE, _LINE, _PARAGRAPH, _HEADING = range(5)


def parts_cut(content: str, *, at_most: int) -> list[tuple[int, int]]:
    """Return ``content`` as spans of at most ``at_most`` characters that together cover it, none if it is blank.

    A part ends before a heading if one lies in its second half, else between paragraphs, else between lines or items,
    else between sentences, else between words. The same text is cut the same way each time. Linear in its length, a
    third of a second for a million characters.
    """
    if not content.strip():
        return []
    places, ranks = _seams(content)
    spans, start = [], 0
    while len(content) - start > at_most:
        end = _end(content, places, ranks, start, start + at_most)
        spans.append((start, end))
        start = end
    return [*spans, (start, len(content))]


def _seams(content: str) -> tuple[list[int], list[int]]:
    places, ranks = [], []
    before: Sentence | None = None
    for sentence in sentences_find(content):
        if before is not None:
            places.append(sentence.start)
            ranks.append(_rank(content, before, sentence))
        before = sentence
    return places, ranks


def _rank(content: str, before: Sentence, after: Sentence) -> int:
    if before.kind == "heading":
        return _BEHIND_HEADING
    if after.kind == "heading":
        return _HEADING
    if before.block == after.block:
        return _SENTENCE
    return _PARAGRAPH if _GAP.search(content, before.end, after.start) else _LINE


def _end(content: str, places: list[int], ranks: list[int], start: int, most: int) -> int:
    """Return where the part from ``start`` ends: the best seam of its second half, the last of several; else any."""
    until = bisect_right(places, most)
    for begin in (start + int((most - start) * WITHIN), start + 1):
        among = range(bisect_left(places, begin), until)
        if among:
            return places[max(among, key=lambda at: (ranks[at], at))]
    # One sentence that is longer than a part.
    return next((at + 1 for at in range(most - 1, start, -1) if _SPACE.match(content[at])), most)
