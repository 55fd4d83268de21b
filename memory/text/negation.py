"""Decides whether a sentence is negated."""

import re

from memory.text.folding import fold

_NOT = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|neither|nor|without|cannot|hardly|stopped|quit|ceased|ended|avoids?|refuses?|lacks?|"
    r"no\s+longer|not\s+any\s*more|free\s+of|instead\s+of|"
    r"nicht|kein\w*|nie|niemals|ohne|nunca|jamas|sin|tampoco|pas|jamais|sans|aucun\w*|ne|non|mai|senza|nao|nem|sem|"
    r"не|нет|никогда|без|nie|nigdy|bez|niet|geen|nooit|zonder|inte|ingen|aldrig|ikke|yok|degil)\b|(?<!\w)\w{1,20}n't\b"
)
# Negations in other languages that are spelled like English words with another meaning, such as "sin".
_ENGLISH = re.compile(r"\b(?:non|mai|sin|pas|sans|ne)\b")
_ELSEWHERE = re.compile("不|没|沒|无|無|未|ない|ません|ぬ|않|없|안 |아니|못|नहीं|मत|ไม่|לא|אין|بدون|ليس|لست|لا |لم |لن ")
# "neither ... nor" has two words, but is one negation.
_NEITHER = re.compile(r"\bneither\b(.{0,200}?)\bnor\b")
# "No. 5", "not only", "no problem" are not negations.
_EMPTY = re.compile(r"\bnot only\b|\bno\. ?\d|\bno doubt\b|\bno problem\b|\bwhy not\b|\bif not\b")


def negated(text: str) -> bool:
    """Return whether ``text`` has an odd number of negations, in English or in a dozen other languages."""
    folded = fold(text).replace("’", "'")
    plain = _NEITHER.sub(r"neither\1", _EMPTY.sub(" ", folded))
    english = bool(re.search(r"\b(?:the|is|has|and|of|to|in)\b", plain))
    found = [word for word in _NOT.findall(plain) if not (english and _ENGLISH.fullmatch(word))]
    return (len(found) + len(_ELSEWHERE.findall(folded))) % 2 == 1
