"""Normalizes texts, so that spellings of the same words become equal. Similar letters of two scripts stay different."""

import re
import unicodedata
from functools import lru_cache
from typing import Any, Final

from anyascii import anyascii

# Replaced before normalization, because NFKC turns some of these characters into a space and an accent.
_QUOTES: Final = {
    **dict.fromkeys(map(ord, "‘’‚‛`´ʹʻʼʽ′‵‹›＇՚׳"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»″‶〝〞〟＂״「」『』"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−⁃﹘﹣－⸺⸻"), "-"),
}
# Letters that Unicode does not decompose: letters with a stroke or a bar, and variants of Arabic letters.
_LETTERS: Final[dict[int, Any]] = {
    **str.maketrans("łøđðħŧıɨƀǥ", "loddhtiibg"),
    **str.maketrans("أإآٱىیک", "ااااييك"),
    **str.maketrans({"æ": "ae", "œ": "oe", "þ": "th", "ـ": None}),
}
# A word: letters and digits with their vowel signs. These signs are in the planes 0, 1 and 14 of Unicode.
VOWEL_SIGNS: Final = "".join(
    sign
    for at in (*range(0x300, 0x20000), *range(0xE0000, 0xE1000))
    if unicodedata.category(sign := chr(at)) in ("Mn", "Mc")
)
WORD: Final = re.compile(rf"[^\W_](?:[^\W_]|[{VOWEL_SIGNS}])*")
# Scripts without spaces between words.
UNSPACED_SIGNS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
# Accents of Latin, Greek and Cyrillic, and the vowel points of Hebrew and Arabic. Any other mark makes a different
# letter.
_ACCENTS: Final = re.compile(
    r"[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0670\u06d6-\u06dc]+"
)
# Russian and related languages treat й as a letter of its own, unlike ё.
_SHORT_I: Final = re.compile("\u0438\u0306")
# Invisible characters: zero-width spaces and joiners, soft hyphens, marks of direction, variation selectors, tags.
_UNSEEN: Final = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)


# Between a script without spaces and a code: "订单KX-5521已送到".
_SEAM: Final = re.compile(f"(?<=[a-z0-9])(?=[{UNSPACED_SIGNS}])|(?<=[{UNSPACED_SIGNS}])(?=[a-z0-9])")


def fold_apart(text: str) -> str:
    """Return ``fold`` with spaces between signs of scripts without spaces and Latin letters or digits."""
    return fold(text) if text.isascii() else _SEAM.sub(" ", fold(text))


def fold(text: str) -> str:
    """Return ``text`` in lower case and in the Unicode form NFKC, without accents and invisible characters, with plain
    quotes, dashes, digits and spaces. Idempotent. Linear time."""
    if text.isascii():
        return " ".join(text.replace("`", "'").casefold().split())
    text = _UNSEEN.sub("", text).translate(_QUOTES)
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text).translate(_LETTERS)
    text = unicodedata.normalize("NFD", text)
    text = _ACCENTS.sub("", _SHORT_I.sub("\u0439", text))
    text = unicodedata.normalize("NFC", text).translate(_QUOTES).translate(_LETTERS)
    return " ".join(digits_plain(text).split())


def digits_plain(text: str) -> str:
    """Return ``text`` with the decimal digits of every script as 0 to 9, and all other characters unchanged."""
    if text.isascii():
        return text
    return _DIGITS.sub(lambda found: str(unicodedata.decimal(found[0])), text)


_DIGITS: Final = re.compile(r"(?![0-9])\d")


@lru_cache(maxsize=4096)
def latin(text: str) -> str:
    """Return ``text`` folded and transliterated character by character: "ivan petrov" for "Иван Петров". Spellings of
    one name become similar, but not always equal."""
    folded = fold(text)
    return folded if folded.isascii() else fold(anyascii(folded))
