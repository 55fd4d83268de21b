"""Folded text: what two spellings of the same words have in common.

Folding forgets case, width, accents, the shape of quotes and dashes, and how much space stands between words. It keeps
letters apart that other scripts merely draw alike: a Cyrillic "а" stays another letter than a Latin "a".
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from anyascii import anyascii

# Before anything else, since the compatibility forms of some of these are a space and an accent.
_QUOTES: Final = {
    **dict.fromkeys(map(ord, "‘’‚‛`´ʹʻʼʽ′‵‹›＇՚׳"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»″‶〝〞〟＂״「」『』"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−⁃﹘﹣－⸺⸻"), "-"),
}
# Letters with a stroke or a bar have no decomposition; nor do the spellings of one Arabic letter that differ by habit.
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
# A word: letters and digits with their vowel signs. Signs stand in the first two planes, and some in the fifteenth.
_SIGNS: Final = "".join(
    sign
    for at in (*range(0x300, 0x20000), *range(0xE0000, 0xE1000))
    if unicodedata.category(sign := chr(at)) in ("Mn", "Mc")
)
WORD: Final = re.compile(rf"[^\W_](?:[^\W_]|[{_SIGNS}])*")
# Scripts that put no space between words.
UNSPACED_SIGNS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
# Accents of Latin, Greek and Cyrillic, and the vowel points of Hebrew and Arabic, which readers add and leave out. The
# marks of other scripts stay: they are vowels there (Devanagari, Thai) or make another letter (the Japanese dakuten).
_ACCENTS: Final = re.compile(
    r"[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0670\u06d6-\u06dc]+"
)
# Russian and its neighbours take й for a letter of its own, unlike ё.
_SHORT_I: Final = re.compile("\u0438\u0306")
# Unseen: zero-width spaces and joiners, soft hyphens, marks of direction, variation selectors, tags.
_UNSEEN: Final = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)


def fold(text: str) -> str:
    """Return ``text`` without what differs from one spelling of the same words to the next.

    Compatibility composition (NFKC), case folded, accents stripped, curly quotes and all dashes plain, digits of every
    script as 0 to 9, what cannot be seen removed, white space collapsed to one space and none at the ends. Folding
    twice is folding once. Linear in the length of the text.
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
    """Return ``text`` with the decimal digits of every script as 0 to 9, and every other sign where it was."""
    if text.isascii():
        return text
    return _DIGITS.sub(lambda found: str(unicodedata.decimal(found[0])), text)


_DIGITS: Final = re.compile(r"(?![0-9])\d")


@lru_cache(maxsize=4096)
def latin(text: str) -> str:
    """Return ``text`` folded and written in ASCII: "Иван Петров" is "ivan petrov", "北京" is "beijing".

    A transliteration sign by sign (the package ``anyascii``). It brings two ways of writing a name close to each other,
    and does not prove that they are one: "Юрий" becomes "yuriy", and Japanese names get their Chinese readings.
    """
    folded = fold(text)
    return folded if folded.isascii() else fold(anyascii(folded))
