"""The plain form of a text that identifiers are searched in; what one search has found is hidden from the next."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Replaces what a search has found. Neither word, space nor digit, so that no match begins, ends or continues at it.
TAKEN: Final = "\ue000"

# Signs of a canonical form. Of four bytes each, they are still within what an index of PostgreSQL takes.
LONGEST: Final = 400

# Scripts that put no space between words, or hang endings on without one. To them an identifier is a word of its own.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u312f\u3130-\u318f\u31a0-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# A sign of a word in all other scripts: letter, digit or underscore. A Cyrillic "а" before "nn@x.io" is one of them, so
# that a name with a look-alike letter is not found in part.
WORD: Final = rf"[^\W{_UNSPACED}]"
# The letters among them.
LETTER: Final = rf"[^\W\d_{_UNSPACED}]"
UNSPACED: Final = rf"[{_UNSPACED}]"

_PLAIN: Final = {
    **dict.fromkeys("‐‑‒–−⁃﹣－", "-"),
    # A dash that parts two clauses joins no code.
    **dict.fromkeys("—―﹘⸺⸻", "\t"),
    **dict.fromkeys("‘’‚‛`´ʹʻʼʽ′", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    # Separators of other scripts that stand where ours would.
    "⁄": "/",
    "∕": "/",
    "٫": ".",
    "٬": ",",
    "№": "#",
    TAKEN: " ",
}
_UNSEEN: Final = frozenset(
    map(chr, (0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF))
)
# A sign outside ASCII with the accents that belong to it.
_CLUSTER: Final = re.compile(r"[^\x00-\x7f][\u0300-\u036f]*|[\x00-\x7f][\u0300-\u036f]+")


_DIGIT: Final = re.compile(r"\d")
_LETTERS: Final = re.compile(rf"{LETTER}+")
_SMALL_LETTERS: Final = re.compile("[a-z]+")


@lru_cache(maxsize=8192)
def _sign(cluster: str) -> str:
    if cluster in _PLAIN:
        return _PLAIN[cluster]
    if cluster in _UNSEEN or unicodedata.category(cluster[0]) == "Cf":
        return ""
    if cluster.isdecimal() and len(cluster) == 1:
        return str(unicodedata.decimal(cluster))
    if cluster.isspace():
        return " "
    return unicodedata.normalize("NFKC", cluster).replace(TAKEN, " ")


@dataclass(frozen=True, slots=True)
class Identifier:
    """One thing that a text names, or describes something by.

    ``canonical`` is what all its spellings have in common; ``start`` and ``end`` bound it in the text, ``text`` is how
    it stands there. Some spellings leave a part out: a telephone number without its country, a code without what it
    numbers. Two that differ in that part are two things, but one without it may be either. ``marks`` carries this:
    ``*x`` for a full spelling of ``x``, ``~x`` for one that lacks a part.
    """

    kind: str
    canonical: str
    start: int
    end: int
    text: str
    marks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``<kind>:<canonical>``, which two spellings of one thing share."""
        return f"{self.kind}:{self.canonical}"

    @property
    def stored(self) -> frozenset[str]:
        """The keys under which a text that says this is found."""
        return frozenset((self.key, *self.marks))

    @property
    def sought(self) -> frozenset[str]:
        """The keys by which a request that says this finds texts: its own, and those that differ only by a part that
        one of the two leaves out."""
        return frozenset((self.key, *(f"{'~' if mark[0] == '*' else '*'}{mark[1:]}" for mark in self.marks)))


class TextView:
    """The plain form of a text, and what has been found in it."""

    __slots__ = ("_found", "_hidden", "_offsets", "_original", "_words", "ascii", "digits", "text")

    def __init__(self, original: str) -> None:
        self._original = original
        self.text, self._offsets = _plain(original)
        # Whether all signs are plain; those that are taken later do not count.
        self.ascii = self.text.isascii()
        # How many digits there are: less than a kind has cannot be one of its kind.
        self.digits = len(_DIGIT.findall(self.text))
        self._words: frozenset[str] | None = None
        self._found: list[tuple[str, str, int, int, tuple[str, ...]]] = []
        self._hidden: list[tuple[int, int]] = []

    @property
    def words(self) -> frozenset[str]:
        """The runs of letters in the text, in small letters, and what stands in it outside ASCII sign by sign: a set to
        ask before a costlier look."""
        if self._words is None:
            if self.ascii:
                self._words = frozenset(_SMALL_LETTERS.findall(self.text.lower()))
            else:
                self._words = frozenset((*_LETTERS.findall(self.text.casefold()), *self.text))
        return self._words

    def add(self, kind: str, canonical: str, start: int, end: int, *, marks: tuple[str, ...] = ()) -> None:
        """Note that ``kind`` stands from ``start`` to ``end`` of the plain text, and hide it from the next search."""
        self._found.append((kind, _bounded(canonical), start, end, tuple(map(_bounded, marks))))
        self._hidden.append((start, end))

    @property
    def found(self) -> list[Identifier]:
        """What has been added, with its place in the original text."""
        identifiers = []
        for kind, canonical, start, end, marks in self._found:
            if self._offsets is not None:
                start, end = self._offsets[start], self._end(self._offsets, end - 1)
            identifiers.append(Identifier(kind, canonical, start, end, self._original[start:end], marks))
        return identifiers

    @property
    def keys(self) -> set[str]:
        """The keys and marks of what has been added: what ``found`` would be stored under, at less cost."""
        keys = {f"{kind}:{canonical}" for kind, canonical, *_place in self._found}
        return keys.union(*(marks for *_place, marks in self._found))

    def hide(self) -> None:
        """Take what has been added since out of ``text``, in one pass."""
        if not self._hidden:
            return
        parts, at = [], 0
        for start, end in sorted(self._hidden):
            if end > at:
                start = max(start, at)
                parts += [self.text[at:start], TAKEN * (end - start)]
                at = end
        self.text = "".join((*parts, self.text[at:]))
        self._hidden.clear()

    def _end(self, offsets: list[int], at: int) -> int:
        # The end of the sign, with the accents that are part of it.
        here = offsets[at]
        while at < len(offsets) and offsets[at] == here:
            at += 1
        return self._sign_end(here, offsets[at] if at < len(offsets) else len(self._original))

    def _sign_end(self, start: int, limit: int) -> int:
        # Invisible characters after a sign are not part of it.
        while limit - 1 > start and _sign(self._original[limit - 1]) == "":
            limit -= 1
        return limit


def _bounded(canonical: str) -> str:
    """Return a form that an index can hold: of a long one its beginning, and a hash of the whole."""
    if len(canonical) <= LONGEST:
        return canonical
    return f"{canonical[: LONGEST // 2]}…{hashlib.sha256(canonical.encode(errors='replace')).hexdigest()}"


def _plain(text: str) -> tuple[str, list[int] | None]:
    """Return the plain form, and where each of its signs stands in ``text``; None if each stands where it did."""
    if text.isascii():
        return text.replace("`", "'"), None
    signs: list[str] = []
    offsets: list[int] = []
    at, even = 0, True
    for match in _CLUSTER.finditer(text):
        signs.append(text[at : match.start()])
        offsets.extend(range(at, match.start()))
        sign = _sign(match[0])
        signs.append(sign)
        offsets.extend([match.start()] * len(sign))
        even = even and len(sign) == match.end() - match.start()
        at = match.end()
    signs.append(text[at:])
    offsets.extend(range(at, len(text)))
    return "".join(signs).replace("`", "'"), None if even else offsets
