"""Normalizes texts, so that different spellings of the same words become equal.

The normalized form has no case, width and accents, one shape of quotes and of dashes, and one space between words.
Letters of different scripts that look alike stay different, such as the Cyrillic and the Latin "a".
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from anyascii import anyascii

# Replaced before normalization, because the compatibility forms of some of these are a space and an accent.
_QUOTES: Final = {
    **dict.fromkeys(map(ord, "‘’‚‛`´ʹʻʼʽ′‵‹›＇՚׳"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»″‶〝〞〟＂״「」『』"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−⁃﹘﹣－⸺⸻"), "-"),
}
# Letters without a Unicode decomposition: with a stroke or a bar, and variants of Arabic letters.
_LETTERS: Final = {
    **{ord(a): b for a, b in zip("łøđðħŧıɨƀǥ", "loddhtiibg", strict=True)},
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("þ"): "th",
    ord("أ"): "ا",
    ord("إ"): "ا",
    ord("آ"): "ا",
    ord("ٱ"): "ا",
    ord("ى"): "ي",
    ord("ی"): "ي",
    ord("ک"): "ك",
    ord("ـ"): None,
}
# A word: letters and digits with their vowel signs, which are in the first two planes and the fifteenth.
_SIGNS: Final = "".join(
    sign
    for at in (*range(0x300, 0x20000), *range(0xE0000, 0xE1000))
    if unicodedata.category(sign := chr(at)) in ("Mn", "Mc")
)
WORD: Final = re.compile(rf"[^\W_](?:[^\W_]|[{_SIGNS}])*")
# Scripts without spaces between words.
UNSPACED_SIGNS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
# Accents of Latin, Greek and Cyrillic, and the optional vowel points of Hebrew and Arabic. Marks of other scripts are
# kept: they are vowels (Devanagari, Thai) or make another letter (the Japanese dakuten).
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


def fold(text: str) -> str:
    """Return the normalized form of ``text``.

    Compatibility composition (NFKC), case folded, accents stripped, quotes and dashes in ASCII, digits of every script
    as 0 to 9, invisible characters removed, white space collapsed and stripped. Idempotent. Linear in the length of the
    text.
    """
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
    """Return ``text`` folded and transliterated to ASCII: "ivan petrov" for "Иван Петров", "beijing" for "北京".

    The package ``anyascii`` transliterates each character. Results are similar for spellings of one name, but not
    always equal: "Юрий" becomes "yuriy", and Japanese names get their Chinese readings.
    """
    folded = fold(text)
    return folded if folded.isascii() else fold(anyascii(folded))
