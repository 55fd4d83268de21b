"""What older values of a field amount to, in a few words taken from them. Pure Python, and the same every time.

Short values are listed with their dates: "Lisbon (2 Jan 2026), then Porto (14 Mar 2026)". Of longer texts the sentences
are kept that say the most new: the greedy choice for covering as many different words as fit.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

MAX_SUMMARY = 600
# Up to this length a value is told whole.
SHORT_VALUE = 80
# The choice is made among so many sentences, so that its cost does not grow with what was ever written.
MOST_SENTENCES = 1000

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_THEN = ", then "
# After the end of a sentence; Chinese and Japanese put no space there.
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")
_WORD = re.compile(r"\w+")
_LISTED = re.compile(rf"\(\d{{1,2}} (?:{'|'.join(_MONTHS)}) \d{{1,4}}\)$")
_LEFT_OUT = re.compile(r"^(\d+) other values?$")


@dataclass(frozen=True, slots=True)
class Dated:
    """A value a field has had, and since when it was true."""

    text: str
    at: dt.datetime


def date_words(at: dt.datetime) -> str:
    """Return a date as people write it, such as ``2 Jan 2026``, in UTC."""
    day = at.astimezone(dt.UTC) if at.tzinfo else at
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def values_summarize(values: Sequence[Dated], *, earlier: str | None = None) -> str:
    """Return what ``values``, oldest first, amount to: at most ``MAX_SUMMARY`` characters, no word cut in two.

    ``earlier`` is the summary of what came before them. Nothing gives an empty text.
    """
    told = [Dated(" ".join(value.text.split()), value.at) for value in values]
    before = " ".join((earlier or "").split())
    listed = _entries_of(before)
    if listed is not None and all(len(value.text) <= SHORT_VALUE for value in told):
        return _list(_entries(told, listed))
    return _sentences([(before, ""), *((value.text, date_words(value.at)) for value in told)])


# Lists


def _entries_of(summary: str) -> list[str] | None:
    """Return the entries of a summary that is a list; None if it is not one."""
    entries = summary.split(_THEN) if summary else []
    return entries if all(_LISTED.search(entry) or _LEFT_OUT.match(entry) for entry in entries) else None


def _entries(values: Sequence[Dated], before: Sequence[str]) -> list[str]:
    entries = list(before)
    last = _LISTED.sub("", entries[-1]).rstrip() if entries else None
    for value in values:
        text = value.text or "nothing"
        # Written again without a change: true since the first time.
        if text != last:
            entries.append(f"{text} ({date_words(value.at)})")
            last = text
    return entries


def _list(entries: Sequence[str]) -> str:
    """Return the entries in a row; where they do not fit, the first one and as many of the last ones as do."""
    whole = _THEN.join(entries)
    if len(whole) <= MAX_SUMMARY:
        return whole
    first, *others = entries
    # No entry is shorter than "x (2 Jan 2026), then ", so no more than these can fit.
    for start in range(max(1, len(others) - MAX_SUMMARY // 20), len(others)):
        out, kept = others[:start], others[start:]
        number = sum(int(match.group(1)) if (match := _LEFT_OUT.match(entry)) else 1 for entry in out)
        short = _THEN.join([first, f"{number} other value{'' if number == 1 else 's'}", *kept])
        if len(short) <= MAX_SUMMARY:
            return short
    # An earlier summary that is not of our making may have an entry that is too long.
    return _sentences([(whole, "")])


# Sentences


@dataclass(frozen=True, slots=True)
class _Sentence:
    source: int
    place: int
    text: str
    words: frozenset[str]


def _sentences(sources: Sequence[tuple[str, str]]) -> str:
    """Return the most telling sentences of ``sources``, pairs of a text and its date, in their order."""
    waiting = _considered(sources)
    chosen: list[_Sentence] = []
    known: set[str] = set()
    open_sources: set[int] = set()
    room = MAX_SUMMARY
    while True:
        best, gain, price = None, 0, 0
        left = []
        for sentence in waiting:
            new = len(sentence.words - known)
            date = sources[sentence.source][1]
            opening = len(date) + 2 if date and sentence.source not in open_sources else 0
            cost = opening + len(sentence.text) + (1 if chosen else 0)
            # What is said already never becomes new again.
            if new:
                left.append(sentence)
                if new > gain and cost <= room:
                    best, gain, price = sentence, new, cost
        if best is None:
            return _told(chosen, sources) if chosen else _measured(sources)
        chosen.append(best)
        known |= best.words
        open_sources.add(best.source)
        room -= price
        waiting = [sentence for sentence in left if sentence is not best]


def _considered(sources: Sequence[tuple[str, str]]) -> list[_Sentence]:
    """Return the sentences to choose from: ``MOST_SENTENCES`` at most, of every source alike from its beginning."""
    apart = max(1, -(-len(sources) // MOST_SENTENCES))
    share = max(1, MOST_SENTENCES // max(1, len(sources)))
    return [
        _Sentence(source, place, piece, frozenset(_words(piece)))
        for source in range(0, len(sources), apart)
        for place, piece in enumerate(islice(_pieces(sources[source][0]), share))
    ]


def _told(chosen: Iterable[_Sentence], sources: Sequence[tuple[str, str]]) -> str:
    parts: dict[int, list[str]] = {}
    for sentence in sorted(chosen, key=lambda sentence: (sentence.source, sentence.place)):
        parts.setdefault(sentence.source, []).append(sentence.text)
    return " ".join(
        f"{sources[source][1]}: {' '.join(texts)}" if sources[source][1] else " ".join(texts)
        for source, texts in parts.items()
    )


def _measured(sources: Sequence[tuple[str, str]]) -> str:
    """Return how much there was, where nothing in it can be told in whole words."""
    length = sum(len(text) for text, _date in sources)
    return f"{length:,} characters that cannot be told in short" if length else ""


def _pieces(text: str) -> Iterator[str]:
    """Give the sentences of a text; one that would take more than half of the room is cut between words."""
    for sentence in _SENTENCE_END.split(text):
        piece = ""
        for word in sentence.split():
            if piece and len(piece) + 1 + len(word) > MAX_SUMMARY // 2:
                yield piece
                piece = ""
            piece = f"{piece} {word}" if piece else word
        if piece:
            yield piece


def _words(text: str) -> Iterable[str]:
    # Short words are articles and the like, unless they are numbers; in scripts without spaces a word is a clause.
    return (word for word in _WORD.findall(text.casefold()) if len(word) > 2 or not word.isascii() or word.isdigit())
