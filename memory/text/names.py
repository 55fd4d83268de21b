"""Finds names in texts: whole words in any script. Words are compared without case and accents, then in Latin letters:
"Lukasz" matches "Łukasz", and "Dmitriy" matches "Дмитрий", but "Anna" does not match "Anna-Lena"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from memory.text.folding import UNSPACED_SIGNS, WORD, fold, latin
from memory.text.word_lists import wordset

# In scripts without spaces between words, each character is a word.
_PIECE = re.compile(f"[{UNSPACED_SIGNS}]|[^{UNSPACED_SIGNS}]+")
# In scripts without spaces, a match is a part of a longer word in three cases. First, a Korean syllable follows that is
# not the beginning of a particle below. Second, the match ends in Katakana, and another Katakana character follows.
# Third, the match is two Chinese characters, and a character of given names follows.
_PARTICLES = "[은는이가을를의에와과도로만께씨님야아랑]"
_LONG_PARTICLES = "에게|에서|으로|한테|부터|까지|이라|처럼|보다|이는|이가|이의|이랑|하고|조차|마저|군은|양은"
_GIVEN = "明华强军杰涛英芳娜敏静丽平刚勇艳娟霞磊洋鹏飞辉玲超秀兰林峰龙波斌宇浩凯健俊文博慧雪婷琳怡欣佳萍梅红珍燕云莉琴"
_CONTINUES = re.compile(
    rf"(?<=[가-힣])(?!{_PARTICLES}(?![가-힣])|{_LONG_PARTICLES})[가-힣]|(?<=[゠-ヿ])(?!・)[゠-ヿ]|(?<=^[㐀-鿿]{{2}})[{_GIVEN}]"
)
_WITHIN_WORD = re.compile("[가-힣](?=[가-힣])|[゠-ヿ](?=[゠-ヿ])")
# Characters before and after a name that make it a part of a longer one.
_JOINED_BEFORE = re.compile(r"(?:[^\W_]['’.:&+-]|[@#/\\_~]|^\.)$")
_JOINED_AFTER = re.compile(r"[-_./@:&~\\]\w|[+#]")
# "Berlin-based" contains the name Berlin, and "Anna/Ben" contains two names. But "Anna-Lena" is one name, and
# "/api/users" is one path.
_DESCRIBES = re.compile(r"-[^\W\d_]+(?![\w-])")
_AND_NAME = re.compile(r"/([^\W\d_])")
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
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe", "æ": "ae"})
_DECLINED = re.compile("[\u0370-\u04ff]")
_ASCII_WORD = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Mention:
    """The place of a name. ``how`` is ``whole`` for the name as it is, ``inflected`` for another ending, ``tagged`` for
    a handle or hashtag, and ``latin`` for another script or for umlauts that are written out."""

    start: int
    end: int
    how: str


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    folded: str
    start: int
    end: int


def words_index(text: str) -> set[str]:
    """Return the index keys of the words of ``text``, in Latin letters. In scripts without spaces, each character has a
    key."""
    if text.isascii():
        # The same keys at a third of the cost. The cost matters, because every stored text is indexed.
        return {_key(word) for word in _ASCII_WORD.findall(text.lower())} - {""}
    return {key for word in _words(text) for key in _keys(word)}


def name_keys(name: str) -> list[frozenset[str]]:
    """Return the set of possible index keys of each word of ``name``. The keys include spellings with umlauts written
    out and with other endings."""
    found = []
    for word in _words(name):
        keys = set(_keys(word))
        if _DECLINED.search(word.folded):
            keys |= {_key(root + end) for ends in _CASES for root in _roots(word.folded, ends) for end in ends} - {""}
        found.append(frozenset(keys))
    return [keys for keys in found if keys]


@lru_cache(maxsize=4_096)
def mentions_find(text: str, name: str) -> tuple[Mention, ...]:
    """Return the mentions of ``name`` in ``text`` as whole words, in order. A name that consists of punctuation has no
    mentions."""
    wanted = _words(name)
    # A cheap test first, because most texts do not mention the name.
    if not wanted or (text.isascii() and name.isascii() and wanted[0].folded not in text.lower()):
        return ()
    # A single letter must match exactly: "plan A" does not match "a plan".
    letter = name.strip() if len(name.strip()) == 1 else ""
    words = _words(text)
    found = []
    for at in range(len(words) - len(wanted) + 1):
        piece = words[at : at + len(wanted)]
        how = _same(wanted, piece)
        if not how or (letter and piece[0].text != letter) or not _joined_alike(text, piece, name, wanted):
            continue
        start, end = piece[0].start, piece[-1].end
        before = text[max(0, start - 2) : start]
        if before[-1:] in ("#", "@") and name[:1] not in ("#", "@") and not before[:-1].isalnum():
            how, before = ("tagged" if how == "whole" else how), ""
        if _bounded(text, start, end, before, name, (wanted[0].start, wanted[-1].end)):
            found.append(Mention(start, end, how))
    return tuple(found)


@lru_cache(maxsize=1_024)
def _words(text: str) -> tuple[_Word, ...]:
    if text.isascii():
        return tuple(_Word(run[0], run[0].lower(), *run.span()) for run in WORD.finditer(text))
    return tuple(
        _Word(piece[0], fold(piece[0]), run.start() + piece.start(), run.start() + piece.end())
        for run in WORD.finditer(text)
        for piece in _PIECE.finditer(run[0])
    )


def _keys(word: _Word) -> frozenset[str]:
    """Return the index keys of a word: as it is, and with its umlauts written out."""
    return frozenset(map(_key, {word.folded, _umlauts_written_out(word.text)})) - {""}


@lru_cache(maxsize=65536)
def _key(folded: str) -> str:
    key = re.sub("[^a-z0-9]", "", latin(folded))
    for one, other in _SPELLINGS:
        key = key.replace(one, other)
    return re.sub(r"([a-z])\1+", r"\1", key)


def _umlauts_written_out(text: str) -> str:
    return text.casefold().translate(_UMLAUTS)


def _same(wanted: Sequence[_Word], piece: Sequence[_Word]) -> str:
    worst = "whole"
    for one, other in zip(wanted, piece, strict=True):
        if one.folded == other.folded:
            continue
        if _DECLINED.search(one.folded) and _DECLINED.search(other.folded):
            if not any(_roots(one.folded, ends) & _roots(other.folded, ends) for ends in _CASES):
                return ""
            worst = "inflected" if worst == "whole" else worst
        elif _same_name(one, other):
            worst = "latin"
        else:
            return ""
    return worst


def _roots(word: str, endings: Sequence[str]) -> set[str]:
    roots = {word.removesuffix(ending) for ending in endings if word.endswith(ending)}
    return {root for root in roots if len(root) > 2 and root not in _UNISEX}


def _same_name(one: _Word, other: _Word) -> bool:
    if one.folded.isascii() != other.folded.isascii():
        return _key(one.folded) == _key(other.folded)
    if one.text.isascii() == other.text.isascii():
        return False
    return _umlauts_written_out(one.text) == _umlauts_written_out(other.text)


def _joined_alike(text: str, piece: Sequence[_Word], name: str, wanted: Sequence[_Word]) -> bool:
    """Return whether text and name have the same punctuation between the words. The text may have any white space
    there, except an empty line."""
    for (one, two), (a, b) in zip(pairwise(piece), pairwise(wanted), strict=True):
        between, asked = text[one.end : two.start], name[a.end : b.start]
        if "\n\n" in between or fold(between).strip() != fold(asked).strip():
            return False
    return True


def _bounded(text: str, start: int, end: int, before: str, name: str, wanted: tuple[int, int]) -> bool:
    """Return whether the text from ``start`` to ``end`` is a whole name, not a part of a longer one. ``wanted`` is the
    span of the words within ``name``, because a name such as C++ also has other characters."""
    if (start and _WITHIN_WORD.match(text, start - 1)) or _CONTINUES.match(text[start : end + 3], end - start):
        return False
    own_before, own_after = name[: wanted[0]], name[wanted[1] :]
    capital = name[:1].isupper()
    after_name = capital and before[-1:] == "/" and before[0].isalpha()
    if before and _JOINED_BEFORE.search(before) and not (after_name or own_before.endswith(before[-1])):
        return False
    after = _JOINED_AFTER.match(text, end)
    if after is None or (own_after[:1] in ("+", "#") and text.startswith(own_after[0], end)):
        return True
    described, other = _DESCRIBES.match(text, end), _AND_NAME.match(text, end)
    return capital and bool((described and described[0].islower()) or (other and other[1].isupper() and name.isalpha()))
