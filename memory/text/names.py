"""Names in texts: whole words, in whatever script, and never a part of a longer one.

A name is compared word by word in its folded form, and failing that in Latin letters, so that "Łukasz" is found as
"Lukasz" and "Дмитрий" by the spelling that transliteration gives. "Ann" is not in "Anna", "Anna" not in "Anna-Lena",
"node-1" not in "node-1-b".
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.text.folding import WORD, fold, latin

# Scripts that put no space between words: there a name is found sign by sign.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]"
)
_HANGUL = re.compile("[\uac00-\ud7af]")
_KATAKANA = re.compile("[\u30a0-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# What Korean puts right behind a name. Anything else makes it another word.
_PARTICLES = "은는이가을를의에와과도로만께씨님" + "야아랑"
_LONG_PARTICLES = (
    "에게",
    "에서",
    "으로",
    "한테",
    "부터",
    "까지",
    "이라",
    "처럼",
    "보다",
    "이는",
    "이가",
    "이의",
    "이랑",
    "하고",
    "조차",
    "마저",
    "군은",
    "양은",
)
# Second signs of Chinese given names: "王伟" is not in "王伟明".
_GIVEN = frozenset(
    "明华强军杰涛英芳娜敏静丽平刚勇艳娟霞磊洋鹏飞辉玲超秀兰林峰龙波斌宇浩凯健俊文博慧雪婷琳怡欣佳萍梅红珍燕云莉琴"
)
# These join words to one: a name that goes on behind them is another.
_JOINERS = "-_./@:&+#~\\"
# Endings that a name in Cyrillic or Greek takes in a sentence, one line per declension.
_CASES = (
    ("а", "ы", "и", "е", "у", "ой", "ою", "ей"),
    ("я", "и", "е", "ю", "ей", "ёй", "ой"),
    ("", "а", "у", "ом", "е", "ем"),
    ("й", "я", "ю", "ем", "е", "и"),
    ("ь", "я", "ю", "ем", "е", "и", "ью"),
    ("ας", "α"),
    ("ης", "η"),
    ("ος", "ου", "ο", "ε"),
)
# Stems of which both a man's and a woman's name are made: Александр and Александра are two people.
_TWO = (
    "александр",
    "валентин",
    "август",
    "антонин",
    "павл",
    "виктор",
    "константин",
    "богдан",
    "станислав",
    "владислав",
    "ярослав",
    "мирослав",
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a name stands in a text.

    ``how`` is ``whole`` for the same letters but for case and accents, ``inflected`` for another ending of the same
    name, ``tagged`` where it is a handle or a hashtag, ``latin`` for the same name in another script.
    """

    start: int
    end: int
    how: str


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    folded: str
    start: int
    end: int


_ASCII_WORD = re.compile("[a-z0-9]+")


def words_index(text: str) -> set[str]:
    """Return the words of ``text`` by which it is found: folded, in Latin letters, and in scripts without spaces each
    sign by itself. Whatever ``mentions`` finds has all words of the name."""
    if text.isascii():
        # What the loop below does, at a third of its cost: this is asked of every text that is stored.
        return {_key(word) for word in _ASCII_WORD.findall(text.lower())} - {""}
    found: set[str] = set()
    for word in _words(text):
        found.add(_key(word.folded))
        if not word.text.isascii():
            found.add(_key(_written_out(word.text)))
    found.discard("")
    return found


def name_keys(name: str) -> list[frozenset[str]]:
    """Return for each word of ``name`` the words of which a text must have one in its index to mention the name: the
    word itself, with its umlauts written out, and with the other endings that a name of its script takes."""
    found = []
    for word in _words(name):
        forms = {word.folded, _written_out(word.text)}
        if _declined(word.folded):
            forms |= {stem + end for endings in _CASES for stem in _stems(word.folded, endings) for end in endings}
        found.append(frozenset(map(_key, forms)) - {""})
    return [keys for keys in found if keys]


@lru_cache(maxsize=4_096)
def mentions_find(text: str, name: str) -> tuple[Mention, ...]:
    """Return where ``text`` mentions ``name`` as whole words, in their order; nothing for a name without a letter."""
    wanted = _words(name)
    if not wanted:
        return ()
    # A letter by itself is a name only as it is written: plan A is not a plan.
    letter = name.strip() if len(name.strip()) == 1 else ""
    words = _words(text)
    found = []
    for at in range(len(words) - len(wanted) + 1):
        piece = words[at : at + len(wanted)]
        how = _same(wanted, piece)
        if letter and piece[0].text != letter:
            continue
        if how == "whole" and _tagged(text, piece, name):
            how = "tagged"
        if how and _joined_alike(text, piece, name, wanted) and _bounded(text, piece, name, wanted):
            found.append(Mention(piece[0].start, piece[-1].end, how))
    return tuple(found)


def mentions(text: str, name: str) -> bool:
    """Tell whether ``text`` mentions ``name`` as whole words."""
    return bool(mentions_find(text, name))


@lru_cache(maxsize=1_024)
def _words(text: str) -> tuple[_Word, ...]:
    return tuple(_words_iter(text))


def _words_iter(text: str) -> Iterator[_Word]:
    for match in WORD.finditer(text):
        run, at = match.group(), match.start()
        if not _UNSPACED.search(run):
            yield _Word(run, fold(run), at, match.end())
            continue
        plain = ""
        for place, sign in enumerate(run):
            if _UNSPACED.match(sign):
                if plain:
                    yield _Word(plain, fold(plain), at + place - len(plain), at + place)
                    plain = ""
                yield _Word(sign, fold(sign), at + place, at + place + 1)
            else:
                plain += sign
        if plain:
            yield _Word(plain, fold(plain), match.end() - len(plain), match.end())


# Spellings between which systems of transliteration differ: "Yuriy", "Jurij" and "Iurii" are one.
_SPELLINGS = (
    ("sch", "s"),
    ("sh", "s"),
    ("ch", "c"),
    ("tch", "c"),
    ("kh", "h"),
    ("zh", "z"),
    ("ph", "f"),
    ("th", "t"),
    ("ts", "c"),
    ("tz", "c"),
    ("x", "ks"),
    ("w", "v"),
    ("y", "i"),
    ("j", "i"),
    ("q", "k"),
    ("ou", "u"),
    ("oo", "u"),
    ("ee", "i"),
    ("ck", "k"),
    ("e", "i"),
)


@lru_cache(maxsize=65536)
def _key(folded: str) -> str:
    key = re.sub("[^a-z0-9]", "", latin(folded))
    for one, other in _SPELLINGS:
        key = key.replace(one, other)
    return re.sub(r"([a-z])\1+", r"\1", key)


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe", "æ": "ae"})


def _written_out(text: str) -> str:
    """Return the word with its umlauts written out, as they are where a keyboard lacks them."""
    return text.casefold().translate(_UMLAUTS)


def _declined(word: str) -> bool:
    """Tell whether names of this script take endings: Cyrillic and Greek."""
    return bool(re.search("[\u0370-\u04ff]", word))


def _same(wanted: Sequence[_Word], piece: Sequence[_Word]) -> str:
    worst = "whole"
    for one, other in zip(wanted, piece, strict=True):
        if one.folded == other.folded:
            continue
        if _declined(one.folded) and _declined(other.folded):
            if not _inflected(one.folded, other.folded):
                return ""
            worst = "inflected" if worst == "whole" else worst
        elif _one_name(one, other):
            worst = "latin"
        else:
            return ""
    return worst


def _tagged(text: str, piece: Sequence[_Word], name: str) -> bool:
    before = text[: piece[0].start][-2:]
    return before[-1:] in ("#", "@") and not name.startswith(("#", "@")) and not before[:-1].isalnum()


def _one_name(one: _Word, other: _Word) -> bool:
    if one.folded.isascii() != other.folded.isascii():
        return _key(one.folded) == _key(other.folded)
    if one.text.isascii() == other.text.isascii():
        return False
    return _written_out(one.text) == _written_out(other.text)


def _inflected(name: str, other: str) -> bool:
    return any(stem in _stems(other, endings) for endings in _CASES for stem in _stems(name, endings))


def _stems(word: str, endings: Sequence[str]) -> set[str]:
    stems = {word.removesuffix(ending) for ending in endings if word.endswith(ending)}
    return {stem for stem in stems if len(stem) > 2 and stem not in _TWO}


def _joined_alike(text: str, piece: Sequence[_Word], name: str, wanted: Sequence[_Word]) -> bool:
    """Tell whether what stands between the words is the same in both: space, or the same sign."""
    for (one, two), (a, b) in zip(_pairs(piece), _pairs(wanted), strict=True):
        between, asked = text[one.end : two.start], name[a.end : b.start]
        if between != asked and fold(between).strip() != fold(asked).strip():
            return False
        if "\n\n" in between:
            return False
    return True


def _pairs(words: Sequence[_Word]) -> list[tuple[_Word, _Word]]:
    return list(itertools.pairwise(words))


def _bounded(text: str, piece: Sequence[_Word], name: str, wanted: Sequence[_Word]) -> bool:
    """Tell whether the name ends where the words end, and is no part of a longer one."""
    start, end = piece[0].start, piece[-1].end
    before, after = text[:start][-2:], text[end:][:2]
    if _tagged(text, piece, name):
        before = ""
    asked_before, asked_after = name[: wanted[0].start], name[wanted[-1].end :]
    if _UNSPACED.match(piece[0].text) and before and _one_script(before[-1], piece[0].text):
        return False
    if _UNSPACED.match(piece[-1].text) and after and not _word_ends(piece, text[end : end + 3]):
        return False
    if asked_after and after.startswith(asked_after[0]) and asked_after[0] in "+#":
        return True
    if after[:1] in ("+", "#") and after[:1]:
        return False
    return not (_goes_on(after, text[end:], name) or _comes_from(before, asked_before, name))


def _one_script(before: str, first: str) -> bool:
    # Han signs stand beside each other in any sentence; there the beginning of a name does not show.
    return any(script.match(before) and script.match(first) for script in (_HANGUL, _KATAKANA))


def _word_ends(piece: Sequence[_Word], rest: str) -> bool:
    last, after = piece[-1].text, rest[0]
    if _HANGUL.match(last) and _HANGUL.match(after):
        alone = len(rest) < 2 or not _HANGUL.match(rest[1])
        return (rest[0] in _PARTICLES and alone) or rest[:2] in _LONG_PARTICLES
    if _KATAKANA.match(last) and (_KATAKANA.match(after) and after != "・"):
        return False
    return not (len(piece) == 2 and _HAN.match(last) and after in _GIVEN)


def _goes_on(after: str, rest: str, name: str) -> bool:
    if len(after) < 2 or after[0] not in _JOINERS or not (after[1].isalnum() or after[1] == "_"):
        return False
    tail = re.match(r"[\w-]+", rest[1:])
    # "Berlin-based" tells of Berlin; "Anna-Lena" is somebody else.
    described = after[0] == "-" and name[:1].isupper() and tail is not None and tail.group().isalpha()
    return not (described and tail is not None and tail.group().islower()) and not _list_of_names(after, rest, name)


def _list_of_names(after: str, rest: str, name: str) -> bool:
    # "Anna/Ben" names two people; "/api/users" is one path.
    tail = re.match(r"[^\W\d_]+", rest[1:])
    return after[0] == "/" and name[:1].isupper() and tail is not None and tail.group()[:1].isupper() and name.isalpha()


def _comes_from(before: str, asked: str, name: str) -> bool:
    if not before or before[-1] not in _JOINERS + "'’" or asked.endswith(before[-1]):
        return False
    if before[-1] in "'’" and len(before) == 2 and before[0].isalpha():
        # O'Brien and D'Angelo are one word.
        return True
    if len(before) == 1:
        return before[-1] in "@#/\\_~."
    if before[-1] in "'’":
        return False
    linked = before[-2].isalnum() or before[-1] in "@#/\\_~"
    slash = before[-1] == "/" and before[-2].isalpha() and name[:1].isupper()
    return linked and not slash
