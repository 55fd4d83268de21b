"""Summaries without a model, for the older values of a field and for several topics. Short values are listed with their
dates. From longer texts, the sentences that contain the most different words are kept."""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

MAX_SUMMARY = 600
# Values of at most this many characters are listed.
SHORT_VALUE = 80
# Sentences are chosen from at most this many, which limits the cost.
MAX_SENTENCES = 1000

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_THEN = ", then "
# The space after a sentence. There is none after a Chinese or Japanese sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")
_WORD = re.compile(r"\w+")
_LISTED = re.compile(rf"\(\d{{1,2}} (?:{'|'.join(_MONTHS)}) \d{{1,4}}\)$")
_LEFT_OUT = re.compile(r"^(\d+) other values?$")


@dataclass(frozen=True, slots=True)
class DatedValue:
    """A former value of a field, and the time from which it was true."""

    text: str
    at: dt.datetime


def date_words(at: dt.datetime) -> str:
    """Return a date as people write it, such as ``2 Jan 2026``, in UTC."""
    day = at.astimezone(dt.UTC) if at.tzinfo else at
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def values_summarize(values: Sequence[DatedValue], *, earlier: str | None = None) -> str:
    """Return a summary of ``values`` (oldest first) in at most ``MAX_SUMMARY`` characters. ``earlier`` is the summary
    of still older values."""
    lines = [DatedValue(" ".join(value.text.split()), value.at) for value in values]
    before = " ".join((earlier or "").split())
    listed = _entries_of(before)
    if listed is not None and all(len(value.text) <= SHORT_VALUE for value in lines):
        return _list(_entries(lines, listed))
    return _sentences([(before, ""), *((value.text, date_words(value.at)) for value in lines)])


def texts_summarize(texts: Sequence[DatedValue]) -> str:
    """Return the sentences of several texts that contain the most different words, in at most ``MAX_SUMMARY``
    characters. Dates precede the sentences unless all texts have the same date."""
    dates = [date_words(text.at) for text in texts]
    shown = dates if len(set(dates)) > 1 else [""] * len(dates)
    return _sentences([(" ".join(text.text.split()), date) for text, date in zip(texts, shown, strict=True)])


# Lists


def _entries_of(summary: str) -> list[str] | None:
    entries = summary.split(_THEN) if summary else []
    return entries if all(_LISTED.search(entry) or _LEFT_OUT.match(entry) for entry in entries) else None


def _entries(values: Sequence[DatedValue], before: Sequence[str]) -> list[str]:
    entries = list(before)
    last = _LISTED.sub("", entries[-1]).rstrip() if entries else None
    for value in values:
        text = value.text or "nothing"
        # If a value was written again without a change, only its first date is listed.
        if text != last:
            entries.append(f"{text} ({date_words(value.at)})")
            last = text
    return entries


def _list(entries: Sequence[str]) -> str:
    """Return the joined entries. If they are too long, return the first entry and as many of the last ones as fit."""
    whole = _THEN.join(entries)
    if len(whole) <= MAX_SUMMARY:
        return whole
    first, *others = entries
    # The shortest entry is "x (2 Jan 2026), then ", so at most MAX_SUMMARY // 20 entries fit.
    for start in range(max(1, len(others) - MAX_SUMMARY // 20), len(others)):
        out, kept = others[:start], others[start:]
        number = sum(int(match.group(1)) if (match := _LEFT_OUT.match(entry)) else 1 for entry in out)
        short = _THEN.join([first, f"{number} other value{'' if number == 1 else 's'}", *kept])
        if len(short) <= MAX_SUMMARY:
            return short
    # An imported summary may have an entry that is too long.
    return _sentences([(whole, "")])


# Sentences


@dataclass(frozen=True, slots=True)
class _Sentence:
    source: int
    position: int
    text: str
    words: frozenset[str]


def _sentences(sources: Sequence[tuple[str, str]]) -> str:
    """Return, in order, the sentences that contain the most different words. ``sources`` are pairs of a text and its
    date."""
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
            # A sentence without new words will never have any, so it is dropped.
            if new:
                left.append(sentence)
                if new > gain and cost <= room:
                    best, gain, price = sentence, new, cost
        if best is None:
            return _joined(chosen, sources) if chosen else _length_sentence(sources)
        chosen.append(best)
        known |= best.words
        open_sources.add(best.source)
        room -= price
        waiting = [sentence for sentence in left if sentence is not best]


def _considered(sources: Sequence[tuple[str, str]]) -> list[_Sentence]:
    """Return the sentences from which to choose: the same number from the start of each source, at most
    ``MAX_SENTENCES`` in total."""
    step = max(1, -(-len(sources) // MAX_SENTENCES))
    share = max(1, MAX_SENTENCES // max(1, len(sources)))
    return [
        _Sentence(source, position, piece, frozenset(_words(piece)))
        for source in range(0, len(sources), step)
        for position, piece in enumerate(islice(_pieces(sources[source][0]), share))
    ]


def _joined(chosen: Iterable[_Sentence], sources: Sequence[tuple[str, str]]) -> str:
    parts: dict[int, list[str]] = {}
    for sentence in sorted(chosen, key=lambda sentence: (sentence.source, sentence.position)):
        parts.setdefault(sentence.source, []).append(sentence.text)
    return " ".join(
        f"{sources[source][1]}: {' '.join(texts)}" if sources[source][1] else " ".join(texts)
        for source, texts in parts.items()
    )


def _length_sentence(sources: Sequence[tuple[str, str]]) -> str:
    """Return the number of characters as a sentence, for sources whose sentences are all too long."""
    length = sum(len(text) for text, _date in sources)
    return f"{length:,} characters that cannot be summarized" if length else ""


def _pieces(text: str) -> Iterator[str]:
    """Yield the sentences of a text. A sentence longer than half of ``MAX_SUMMARY`` is divided between words."""
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
    # Short ASCII words, such as articles, count only if they are numbers. Other scripts have short words with meaning.
    return (word for word in _WORD.findall(text.casefold()) if len(word) > 2 or not word.isascii() or word.isdigit())
