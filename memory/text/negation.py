"""Decides whether a sentence is negated, and whether two sentences are opposites."""

import re
from functools import lru_cache

from memory.text.folding import fold
from memory.text.stems import UNSPACED, stems

_NOT = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|neither|nor|without|cannot|hardly|stopped|quit|ceased|ended|avoids?|refuses?|lacks?|"
    r"no\s+longer|not\s+any\s*more|free\s+of|instead\s+of|"
    r"nicht|kein\w*|nie|niemals|ohne|nunca|jamas|sin|tampoco|pas|jamais|sans|aucun\w*|ne|non|mai|senza|nao|nem|sem|"
    r"не|нет|никогда|без|nie|nigdy|bez|niet|geen|nooit|zonder|inte|ingen|aldrig|ikke|yok|degil)\b|(?<!\w)\w{1,20}n't\b"
)
# Negations in other languages that are spelled like English words with another meaning, such as "sin".
_ENGLISH = re.compile(r"\b(?:non|mai|sin|pas|sans|ne)\b")
_ELSEWHERE = re.compile("不|没|沒|无|無|未|ない|ません|ぬ|않|없|안 |아니|못|नहीं|मत|ไม่|לא|אין|بدون|ليس|لست|لا |لم |لن ")
# Negations of scripts with spaces between words.
_APART = re.compile(r"(?<!\S)(?:नहीं|मत|לא|אין|بدون|ليس|لست|لا|لم|لن)(?!\S)")
# "neither ... nor" and "ne ... pas" have two words, but are one negation.
_NEITHER = re.compile(r"\bneither\b(.{0,200}?)\bnor\b")
_NE = re.compile(r"\b(?:ne\b|n['’])(.{0,200}?)\b(pas|jamais|aucun\w*)\b")
# "No. 5", "not only", "no problem" are not negations.
_EMPTY = re.compile(r"\bnot only\b|\bno\. ?\d|\bno doubt\b|\bno problem\b|\bwhy not\b|\bif not\b")


# Negations of one sign.
_SIGNS = frozenset("不没沒无無未")
# Shorter texts are words to look for, and no statements.
_LEAST_STEMS = 3
# A negation changes at most this many pairs of letters in a script without spaces: "食べる", "食べない".
_MOST_PAIRS = 4


def negates(word: str) -> bool:
    """Return whether one word, or one sign of a script without spaces, is a negation."""
    return bool(_NOT.fullmatch(fold(word))) or word in _SIGNS


def opposites(one: str, other: str) -> bool:
    """Return whether two statements are equal but for a negation."""
    if negated(one) == negated(other):
        return False
    left, right = _affirmed(one), _affirmed(other)
    pairs = {stem for stem in left ^ right if UNSPACED.match(stem)}
    only_left, only_right = sorted(left - right - pairs), sorted(right - left - pairs)
    return (
        len(only_left) == len(only_right)
        and all(map(_inflected, only_left, only_right))
        and len(pairs) <= _MOST_PAIRS
        and len(pairs) <= len(left & right) + 1
        and min(len(left), len(right)) >= _LEAST_STEMS
    )


def _inflected(one: str, other: str) -> bool:
    """Return whether two words may be forms of one word. A negation changes a case in Polish: "mięso", "mięsa"."""
    return one[: max(3, len(one) - 2)] == other[: max(3, len(one) - 2)] and abs(len(one) - len(other)) <= 2


@lru_cache(maxsize=2_048)
def _affirmed(text: str) -> frozenset[str]:
    words = stems(_APART.sub(" ", _NOT.sub(" ", fold(text).replace("’", "'"))))
    # Short words are articles: "mange du fromage", "ne mange pas de fromage".
    return frozenset(word for word in words if len(word) > 2 or word.isdigit() or UNSPACED.match(word))


@lru_cache(maxsize=2_048)
def negated(text: str) -> bool:
    """Return whether ``text`` has an odd number of negations, in English or in a dozen other languages."""
    folded = fold(text).replace("’", "'")
    plain = _NE.sub(r"\1\2", _NEITHER.sub(r"neither\1", _EMPTY.sub(" ", folded)))
    english = bool(re.search(r"\b(?:the|is|has|and|of|to|in)\b", plain))
    found = [word for word in _NOT.findall(plain) if not (english and _ENGLISH.fullmatch(word))]
    return (len(found) + len(_ELSEWHERE.findall(folded))) % 2 == 1
