"""A text as the families of identifiers look at it: plain signs, and what one family has taken hidden from the next."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Stands where a family has found something. No word, no space, no digit: nothing begins, ends or goes on at it.
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


class View:
    """The plain form of a text, sign by sign, and what has been found in it."""

    __slots__ = ("_hidden", "_offsets", "_original", "_words", "digits", "found", "text")

    def __init__(self, original: str) -> None:
        self._original = original
        self.text, self._offsets = _plain(original)
        # How many digits there are: less than a kind has cannot be one of its kind.
        self.digits = len(_DIGIT.findall(self.text))
        self._words: frozenset[str] | None = None
        self.found: list[Identifier] = []
        self._hidden: list[tuple[int, int]] = []

    @property
    def words(self) -> frozenset[str]:
        """The runs of letters in the text, in small letters, and what stands in it outside ASCII sign by sign: a set to
        ask before a costlier look."""
        if self._words is None:
            found = _LETTERS.findall(self.text.casefold())
            self._words = frozenset(found if self.text.isascii() else (*found, *self.text))
        return self._words

    def add(self, kind: str, canonical: str, start: int, end: int, *, marks: tuple[str, ...] = ()) -> None:
        """Note that ``kind`` stands from ``start`` to ``end`` of the plain text, and hide it from what looks next."""
        begin, finish = self._place(start), self._place(end - 1, after=True)
        canonical, marks = _bounded(canonical), tuple(map(_bounded, marks))
        self.found.append(Identifier(kind, canonical, begin, finish, self._original[begin:finish], marks))
        self._hidden.append((start, end))

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

    def _place(self, at: int, *, after: bool = False) -> int:
        if self._offsets is None:
            return at + after
        if not after:
            return self._offsets[at]
        # The end of the sign, with the accents that are part of it.
        here = self._offsets[at]
        while at < len(self._offsets) and self._offsets[at] == here:
            at += 1
        return self._sign_end(here, self._offsets[at] if at < len(self._offsets) else len(self._original))

    def _sign_end(self, start: int, limit: int) -> int:
        # What is unseen after a sign is no part of it.
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
