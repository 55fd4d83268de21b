"""The keys under which the words of texts and names are indexed: without case and accents, in Latin letters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.text.folding import UNSPACED_SIGNS, WORD, fold, latin
from memory.text.name_match import ARTICLE, sounds_searched, umlauts_written_out
from memory.text.word_lists import wordset

# In scripts without spaces between words, each character is a word.
_PIECE = re.compile(f"[{UNSPACED_SIGNS}]|[^{UNSPACED_SIGNS}]+")
# Endings of names in Cyrillic and Greek, by declension; a hyphen is an empty ending.
_CASES = tuple(
    tuple(ending.strip("-") for ending in endings.split())
    for endings in (
        "а ы и е у ой ою ей",
        "я и е ю ей ёй ой",
        "- а у ом е ем",
        "й я ю ем е и",
        "ь я ю ем е и ью",
        "ας α",
        "ης η",
        "ος ου ο ε",
    )
)
# Stems of both a male and a female name: Александр and Александра are two people.
_UNISEX = wordset(
    "александр валентин август антонин павл виктор константин богдан станислав владислав ярослав мирослав"
)
# Spellings that differ between systems of transliteration: "Yuriy", "Jurij" and "Iurii" are one name.
_SPELLED = "sch=s sh=s ch=c tch=c kh=h zh=z ph=f th=t ts=c tz=c x=ks w=v y=i j=i q=k ou=u oo=u ee=i ck=k e=i"
_SPELLINGS = tuple(pair.split("=") for pair in _SPELLED.split())
_DECLINED = re.compile("[\u0370-\u04ff]")
_ASCII_WORD = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    folded: str


def words_index(text: str) -> set[str]:
    """Return the index keys of the words of ``text``, in Latin letters. In scripts without spaces, each character has a
    key."""
    if text.isascii():
        # The same keys at a third of the cost. The cost matters, because every stored text is indexed.
        return {_key(word) for word in _ASCII_WORD.findall(text.lower())} - {""}
    return {key for word in _words(text) for key in _keys(word)}


def name_keys(name: str) -> list[frozenset[str]]:
    """Return the set of possible index keys of each word of ``name``. The keys include spellings with umlauts written
    out, with other endings and in other scripts."""
    found = []
    for word in _words(" ".join(ARTICLE.sub("", part) for part in name.split())):
        keys = set(_keys(word)) | sounds_searched(word.text)
        if _DECLINED.search(word.folded):
            keys |= {_key(root + end) for ends in _CASES for root in _roots(word.folded, ends) for end in ends} - {""}
        found.append(frozenset(keys))
    return [keys for keys in found if keys]


@lru_cache(maxsize=1_024)
def _words(text: str) -> tuple[_Word, ...]:
    if text.isascii():
        return tuple(_Word(word, word.lower()) for word in WORD.findall(text))
    return tuple(_Word(piece, fold(piece)) for run in WORD.findall(text) for piece in _PIECE.findall(run))


def _keys(word: _Word) -> frozenset[str]:
    """Return the index keys of a word: as it is, and with its umlauts written out."""
    return frozenset(map(_key, {word.folded, umlauts_written_out(word.text)})) - {""}


@lru_cache(maxsize=16_384)
def _key(folded: str) -> str:
    key = re.sub("[^a-z0-9]", "", latin(folded))
    for one, other in _SPELLINGS:
        key = key.replace(one, other)
    return re.sub(r"([a-z])\1+", r"\1", key)


def _roots(word: str, endings: Sequence[str]) -> set[str]:
    roots = {word.removesuffix(ending) for ending in endings if word.endswith(ending)}
    return {root for root in roots if len(root) > 2 and root not in _UNISEX}
