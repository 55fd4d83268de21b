"""Finds erased content in other texts, and replaces it by "[erased]". A *passage* is the sequence of the normalized
words of a text. It matches these words with any separators between them. Identifiers are compared in canonical form."""

import enum
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memory.text.folding import WORD, fold
from memory.text.keys import CODE, keys_placed

ERASED = "[erased]"

Passage = tuple[str, ...]

_ASCII = re.compile("[a-z0-9]+")
_NO_CORE = re.compile("[^a-z1-9]+")
# Scripts without spaces between words: each character counts as a word.
_SIGN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]"
)
_UUID = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}(?![0-9a-fA-F])")

# These characters join two words into one.
_JOINERS = "-_.@+~"

# The least length, in words and in characters, of a passage with the weight LONG. In scripts without spaces, only the
# number of characters counts.
LONG_WORDS, LONG_SIGNS = 4, 16
LONG_UNSPACED = 8
# The least length, in characters, of a passage with the weight SHORT.
SHORT_SIGNS = 5
SHORT_UNSPACED = 2
# A cheap search before parsing uses at most this number of characters from the end of an identifier.
CORE_SIGNS = 7
# Names in titles and words of requests are searched for separately if they have at least this number of characters.
NAME_SIGNS = 4

# Members of JSON that programs read, for example for an undo or a filter. They never contain sentences.
_STRUCTURE = """
action actor after_id applied_by by categories confidence event field_type fields graph kind kinds method mode name
names policy preset provenance role run run_id rung scope scopes standing state status strategy token topic_kind
value_type verb version
"""
STRUCTURE = frozenset(_STRUCTURE.split())
# Members that contain sentences. Only these are searched for short passages. In another member, a word such as "active"
# is a constant, although a purged topic may also contain it.
_SENTENCES = """
detail error excerpt failure impact_expected note pin_reason q query question reason result said spelling summary text
title traceback value why why_changed
"""
SENTENCES = frozenset(_SENTENCES.split())
# Members of journals and stored replies with the id of something other than a topic. These ids are not masked, because
# programs use them. Members such as ``token`` and ``list`` are missing here, because they occur only in requests.
IDS_OF_OTHERS = frozenset({"conversation", "conversation_id", "job", "receipt", "run", "study", "study_id", "task"})

# Words of requests and titles that do not identify a person or thing.
_COMMON = """
about above account address after again also anything because been before being below between birthday both city
company contact could date delete details does doing done down during each email erase erased everything fact facts
false field find forget forgot from gdpr have having here home house information into just know known last like live
lived lives made make many meeting memory more most much must name named need never next none note notes now number
office only other ours over password person personal phone place please project purge purged record records release
remove request right said same should some such team telephone than that their them then there these they thing things
this those through time title today told topic topics true under until updated user very wants week well were what
when where which while whom whose will with work works would write year years your
"""
COMMON = frozenset(_COMMON.split())


class Weight(enum.Enum):
    """How much a passage reveals: nothing (NONE), little (SHORT), or enough to be masked in every text (LONG). A SHORT
    passage is masked only in plain texts and in JSON members that contain sentences (``SENTENCES``)."""

    NONE = 0
    SHORT = 1
    LONG = 2


def words_of(text: str) -> list[tuple[str, int, int]]:
    """Return the normalized words of ``text``, each with its start and end. Linear time."""
    if text.isascii():
        return [(found.group(), found.start(), found.end()) for found in _ASCII.finditer(text.lower())]
    found = []
    for run in WORD.finditer(text):
        word, at = run.group(), run.start()
        if not _SIGN.search(word):
            found.append((fold(word), at, run.end()))
            continue
        begin = 0
        for place, sign in enumerate(word):
            if _SIGN.match(sign):
                if begin < place:
                    found.append((fold(word[begin:place]), at + begin, at + place))
                found.append((fold(sign), at + place, at + place + 1))
                begin = place + 1
        if begin < len(word):
            found.append((fold(word[begin:]), at + begin, run.end()))
    return found


def passage_of(text: str) -> Passage:
    """Return the normalized words of ``text``. Two texts with the same passage count as equal."""
    return tuple(word for word, _start, _end in words_of(text))


def passage_weight(passage: Passage) -> Weight:
    """Return how much a passage reveals. Numbers alone reveal nothing; significant numbers are identifiers."""
    signs = sum(map(len, passage))
    if not any(sign.isalpha() for word in passage for sign in word):
        return Weight.NONE
    if any(_SIGN.match(word) for word in passage):
        return Weight.LONG if signs >= LONG_UNSPACED else Weight.SHORT if signs >= SHORT_UNSPACED else Weight.NONE
    if len(passage) >= LONG_WORDS and signs >= LONG_SIGNS:
        return Weight.LONG
    return Weight.SHORT if signs >= SHORT_SIGNS else Weight.NONE


def names_of(title: str) -> set[Passage]:
    """Return the words of a title that may be names: longer words with a capital letter, except common words."""
    return {
        (word,)
        for word, start, end in words_of(title)
        if len(word) >= NAME_SIGNS
        and word not in COMMON
        and word.isalpha()
        and title[start:end] != title[start:end].lower()
    }


def distinctive_words(request: str) -> set[Passage]:
    """Return the words of a request that may reveal the person or thing to which the request refers."""
    return {(word,) for word, *_place in words_of(request) if len(word) >= NAME_SIGNS and word not in COMMON}


@dataclass(slots=True)
class Eraser:
    """Masks erased content in texts. ``identifiers`` are keys as ``keys_of`` returns them. ``ids`` are ids of rows, in
    lower case with hyphens."""

    passages: set[Passage] = field(default_factory=set)
    identifiers: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    _by_first: dict[str, list[Passage]] = field(default_factory=dict)
    _cores: dict[int, set[str]] = field(default_factory=dict)
    _certain: bool = True

    def __post_init__(self) -> None:
        # The longest passages come first, so that a whole sentence is masked and not only a name in it.
        for passage in sorted(self.passages, key=len, reverse=True):
            if passage:
                self._by_first.setdefault(passage[0], []).append(passage)
        for key in self.identifiers:
            core = identifier_core(key)
            if core:
                self._cores.setdefault(len(core), set()).add(core)
            else:
                self._certain = False

    def masked(self, text: str, *, short: bool = True) -> str:
        """Return ``text`` with erased content replaced; the same object if it has none. If ``short`` is false, short
        passages are not searched for."""
        if not text:
            return text
        spans = [*self._ids_in(text), *self._identifiers_in(text), *self._passages_in(text, short=short)]
        if not spans:
            return text
        parts, at = [], 0
        for start, end in _joined(spans):
            parts += [text[at:start], ERASED]
            at = end
        return "".join([*parts, text[at:]])

    def masked_value(self, value: Any, member: str | None = None) -> Any:
        """Return a JSON value with all strings masked; the same object if nothing changed. ``member`` is the name of
        the member that has this value."""
        return _mapped(value, self._masked_member, member)

    def _masked_member(self, text: str, member: str | None) -> str:
        if member in IDS_OF_OTHERS and _UUID.fullmatch(text):
            return text
        if member in STRUCTURE:
            return _UUID.sub(lambda found: ERASED if _hyphened(found.group()) in self.ids else found.group(), text)
        return self.masked(text, short=member in SENTENCES)

    def _ids_in(self, text: str) -> Iterator[tuple[int, int]]:
        if self.ids:
            for found in _UUID.finditer(text):
                if _hyphened(found.group()) in self.ids:
                    yield found.span()

    def _identifiers_in(self, text: str) -> Iterator[tuple[int, int]]:
        if self.identifiers and self._may_name(text):
            for key, start, end in keys_placed(text):
                if key in self.identifiers:
                    yield start, end

    def _may_name(self, text: str) -> bool:
        """Return whether ``text`` may contain an erased identifier. This is a hundred times as fast as parsing."""
        if not self._certain or not text.isascii():
            return True
        words = _NO_CORE.split(text.lower())
        signs = "".join(words)
        for length, cores in self._cores.items():
            if length >= NAME_SIGNS:
                if any(signs[at : at + length] in cores for at in range(len(signs) - length + 1)):
                    return True
            # A short core occurs by chance in almost any text, so it must consist of one to three whole words.
            elif any(not cores.isdisjoint((one, one + two, one + two + three)) for one, two, three in _triples(words)):
                return True
        return False

    def _passages_in(self, text: str, *, short: bool) -> Iterator[tuple[int, int]]:
        if not self._by_first:
            return
        words = words_of(text)
        at = 0
        while at < len(words):
            for passage in self._by_first.get(words[at][0], ()):
                piece = words[at : at + len(passage)]
                if tuple(word for word, *_place in piece) != passage:
                    continue
                start, end = piece[0][1], piece[-1][2]
                if passage_weight(passage) is Weight.LONG or (short and _is_bounded(text, start, end)):
                    yield start, end
                    at += len(passage) - 1
                    break
            at += 1


def strings_of(value: Any) -> Iterator[tuple[str, bool]]:
    """Yield (string, short) for each string in a JSON value, except in members that programs read (``STRUCTURE``). If
    ``short`` is true, short passages are searched for in the string."""
    found: list[tuple[str, bool]] = []

    def collect(text: str, member: str | None) -> str:
        if member not in STRUCTURE:
            found.append((text, member in SENTENCES))
        return text

    _mapped(value, collect, None)
    yield from found


def anchors_of(passages: Iterable[Passage], identifiers: Collection[str], *, most: int) -> list[str] | None:
    """Return regular expressions for a first selection of texts. They are valid in Python and in PostgreSQL.

    Every lower-case ASCII text with one of the passages or identifiers matches at least one of the expressions. Return
    None if there would be more than ``most``, or if an identifier has no core.
    """
    words: set[str] = set()
    for passage in sorted(passages, key=len):
        if all(word.isascii() for word in passage) and words.isdisjoint(passage):
            words.add(max(passage, key=len))
    patterns = set(words)
    for identifier in identifiers:
        core = identifier_core(identifier)
        if core is None:
            return None
        # The characters may be grouped in any way, and zeros may come between them.
        pattern = "[^a-z1-9]*".join(core)
        patterns.add(pattern if len(core) >= NAME_SIGNS else f"(^|[^a-z1-9]){pattern}([^a-z1-9]|$)")
    return sorted(patterns) if len(patterns) <= most else None


def identifier_core(key: str) -> str | None:
    """Return the core of an identifier: characters that every ASCII text with the identifier contains in this order.

    Zeros, and characters other than letters and digits, may come between them. Few other texts contain the core, so it
    is a cheap test before parsing. Return None if the identifier has no core.
    """
    plain = fold(key.removeprefix(CODE))
    if not plain.isascii() or plain.startswith("#"):
        return None
    if plain.endswith("@gmail.com"):
        # The address may also end with googlemail.com.
        return "mailcom"
    # Only the part after the @ is used. In the part before it, dots are ignored, and a tag may be added.
    words = [word.replace("0", "") for word in _ASCII.findall(plain.rpartition("@")[2])]
    longest = max(words, key=len, default="")
    return (longest if len(longest) >= NAME_SIGNS else "".join(words))[-CORE_SIGNS:]


def anchors_pattern(anchors: list[str] | None) -> str | None:
    """Return one pattern that matches if one of ``anchors`` matches. The pattern for an empty list matches no text. For
    None, return None, which selects every text."""
    return None if anchors is None else "|".join(anchors) or "a^"


def _triples(words: list[str]) -> Iterator[tuple[str, str, str]]:
    return zip(words, [*words[1:], ""], [*words[2:], "", ""], strict=False)


def _is_bounded(text: str, start: int, end: int) -> bool:
    """Return False if a short passage is a part of a longer word, such as "ann" in "ann-marie" or "ann@x.io"."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    goes_on = len(after) == 2 and after[0] in _JOINERS and after[1].isalnum()
    return not (goes_on or (len(before) == 2 and before[1] in _JOINERS and before[0].isalnum()))


def _hyphened(text: str) -> str:
    plain = text.replace("-", "").lower()
    return "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _mapped(value: Any, change: Callable[[str, str | None], str], member: str | None) -> Any:
    if isinstance(value, str):
        return change(value, member)
    if isinstance(value, dict):
        mapped = {
            change(key, None) if isinstance(key, str) else key: _mapped(each, change, key)
            for key, each in value.items()
        }
        same = all(new is old for new, old in zip(mapped.values(), value.values(), strict=False))
        return value if same and mapped.keys() == value.keys() else mapped
    if isinstance(value, (list, tuple)):
        # The items of a list are treated like a single value of the member. An erased id is removed from a list and not
        # masked.
        items = [(each, _mapped(each, change, member)) for each in value]
        if all(old is new for old, new in items):
            return value
        return type(value)(new for old, new in items if not (new == ERASED and _UUID.fullmatch(old)))
    return value
