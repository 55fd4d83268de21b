"""The plain form of a text for searching identifiers. What one search has found is hidden from later searches."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

# Replaces what a search has found. It is neither a word character nor a space, so that no later match includes it.
TAKEN: Final = "\ue000"

# The most characters of a canonical form. At four bytes each, they still fit into an index of PostgreSQL.
LONGEST: Final = 400

# Scripts without spaces between words, or with attached endings. In these scripts, an identifier may touch the words
# around it.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u312f\u3130-\u318f\u31a0-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# A letter, digit or underscore of any other script. Cyrillic letters count, so that no address is found in "аnn@x.io"
# with a Cyrillic "а".
WORD: Final = rf"[^\W{_UNSPACED}]"
# A letter of any other script.
LETTER: Final = rf"[^\W\d_{_UNSPACED}]"
UNSPACED: Final = rf"[{_UNSPACED}]"

_PLAIN: Final = {
    **dict.fromkeys("‐‑‒–−⁃﹣－", "-"),
    # A dash between clauses does not join a code.
    **dict.fromkeys("—―﹘⸺⸻", "\t"),
    **dict.fromkeys("‘’‚‛`´ʹʻʼʽ′", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    # Separators of other scripts.
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
# A character outside ASCII with its combining accents.
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
    """One identifier or date. ``text`` is its spelling, ``canonical`` is equal for all spellings. Some spellings leave
    a part out, such as the country code of a telephone number. A spelling without the part matches all full spellings,
    but two full spellings match only if their parts are equal. If ``x`` is the identifier without the part, ``marks``
    has ``*x`` for a full spelling, and ``~x`` for a spelling without the part."""

    kind: str
    canonical: str
    start: int
    end: int
    text: str
    marks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``<kind>:<canonical>``, equal for all spellings."""
        return f"{self.kind}:{self.canonical}"

    @property
    def stored(self) -> frozenset[str]:
        """The keys under which a text with this identifier is indexed."""
        return frozenset((self.key, *self.marks))

    @property
    def search_keys(self) -> frozenset[str]:
        """The keys by which a request with this identifier finds texts: its own key, and the opposite of each mark. A
        full spelling finds spellings without the part, and a spelling without the part finds full spellings."""
        return frozenset((self.key, *(f"{'~' if mark[0] == '*' else '*'}{mark[1:]}" for mark in self.marks)))


class TextView:
    """The plain form of a text, and the identifiers found in it."""

    __slots__ = ("_found", "_hidden", "_offsets", "_original", "_words", "ascii", "digits", "text")

    def __init__(self, original: str) -> None:
        self._original = original
        self.text, self._offsets = _plain(original)
        # Whether the plain form is ASCII, before parts are hidden.
        self.ascii = self.text.isascii()
        # The number of digits. Most kinds of identifiers need a least number of digits.
        self.digits = len(_DIGIT.findall(self.text))
        self._words: frozenset[str] | None = None
        self._found: list[tuple[str, str, int, int, tuple[str, ...]]] = []
        self._hidden: list[tuple[int, int]] = []

    @property
    def words(self) -> frozenset[str]:
        """The runs of letters, in lower case, for cheap tests. If the text is not ASCII, also all single characters."""
        if self._words is None:
            if self.ascii:
                self._words = frozenset(_SMALL_LETTERS.findall(self.text.lower()))
            else:
                self._words = frozenset((*_LETTERS.findall(self.text.casefold()), *self.text))
        return self._words

    def add(self, kind: str, canonical: str, start: int, end: int, *, marks: tuple[str, ...] = ()) -> None:
        """Add an identifier with its span in the plain text, and hide it from later searches (``matches``)."""
        self._found.append((kind, _bounded(canonical), start, end, tuple(map(_bounded, marks))))
        self._hidden.append((start, end))

    @property
    def found(self) -> list[Identifier]:
        """The added identifiers, with their spans in the original text."""
        identifiers = []
        for kind, canonical, start, end, marks in self._found:
            if self._offsets is not None:
                start, end = self._offsets[start], self._end(self._offsets, end - 1)
            identifiers.append(Identifier(kind, canonical, start, end, self._original[start:end], marks))
        return identifiers

    @property
    def keys(self) -> set[str]:
        """The keys and marks of the added identifiers, without the cost of ``found``."""
        keys = {f"{kind}:{canonical}" for kind, canonical, *_place in self._found}
        return keys.union(*(marks for *_place, marks in self._found))

    def matches(self, pattern: re.Pattern[str], *, likely: object = True) -> Iterator[re.Match[str]]:
        """Yield the matches of ``pattern``, then hide the identifiers that were added since the last search. Yield
        nothing if ``likely`` is false; ``likely`` is the result of a cheap test."""
        if likely:
            yield from pattern.finditer(self.text)
        if self._hidden:
            parts, at = [], 0
            for start, end in sorted(self._hidden):
                if end > at:
                    start = max(start, at)
                    parts += [self.text[at:start], TAKEN * (end - start)]
                    at = end
            self.text = "".join((*parts, self.text[at:]))
            self._hidden.clear()

    def _end(self, offsets: list[int], at: int) -> int:
        # The end of the character, with its accents, but without invisible characters after it.
        start = offsets[at]
        while at < len(offsets) and offsets[at] == start:
            at += 1
        end = offsets[at] if at < len(offsets) else len(self._original)
        while end - 1 > start and _sign(self._original[end - 1]) == "":
            end -= 1
        return end


def _bounded(canonical: str) -> str:
    """Return a canonical form that fits into an index. A long form is cut, and ends with a hash."""
    if len(canonical) <= LONGEST:
        return canonical
    return f"{canonical[: LONGEST // 2]}…{hashlib.sha256(canonical.encode(errors='replace')).hexdigest()}"


def _plain(text: str) -> tuple[str, list[int] | None]:
    """Return (plain form, offsets). ``offsets`` has the offset in ``text`` of each character of the plain form. It is
    None if each character has the same offset in both forms."""
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
