"""Finds names in requests, and compares names: in one script, inflected, and between scripts by their consonants and
vowels in Latin letters."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from memory.text.folding import fold, latin
from memory.text.stems import UNSPACED, stem
from memory.text.word_lists import FUNCTION

# How the keys of names begin in the index. No key of a word has these signs.
LATIN, OTHER = "l~", "o~"
# How sure a name is: as it is, inflected or with its umlauts written out, in another script, or not as a name at all.
WHOLE, INFLECTED, OTHER_SCRIPT, SPELLED, COMMON = 1.0, 0.9, 0.8, 0.8, 0.3
_WORD: Final = re.compile(
    r"(?<![\w@./-])[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0903\u093a-\u094f])*(?:[-'’](?!s\b)[^\W\d_]+)*(?![\w@+#]|[./]\w)"
)
_DESCRIBES: Final = re.compile(r"([^\W\d_]+)-[a-zà-þ]+")
_POSSESSIVE: Final = re.compile(r"['’]s\b")
_NEAR_VOWELS: Final = {"a": "ae", "e": "aeiy", "i": "eiy", "y": "eiyu", "o": "ou", "u": "ouy"}
_HARD_C: Final = re.compile("c(?=[aoulrt]|$)")
# Systems of transliteration differ in which of these they write.
_VOICELESS: Final = str.maketrans("gdb", "ktp")
# Korean has one letter for g and k, for d and t, for b, p and v; Korean and Japanese have one for l and r.
_SAME_LETTER: Final = str.maketrans("gdbvfl", "ktpppr")
_COARSE: Final = frozenset({"HANGUL", "KATAKANA", "HIRAGANA"})
_KATAKANA: Final = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
# A Korean name is the beginning of a word, and the first sign is the family name: 김민수는.
_HANGUL_NAME: Final = range(1, 5)
ARTICLE: Final = re.compile(r"^(?:[ae]l-|ال)(?=\w)")
_VOWEL_LAST: Final = re.compile("[aeiouy]$")
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe", "æ": "ae"})
# Spellings that differ between systems of transliteration, before vowels are left out.
_SOUNDS: Final = tuple(
    tuple(pair.split("="))
    for pair in (
        *("tsch=c", "sch=s", "tch=c", "sh=s", "ch=c", "kh=h", "zh=z", "ph=f", "th=t", "ts=c", "tz=c", "cz=c"),
        *("x=ks", "w=v", "q=k", "ck=k", "dj=z", "j=y"),
    )
)


def umlauts_written_out(word: str) -> str:
    """Return ``word`` in lower case, with "ue" for "ü" and so on."""
    return word.casefold().translate(_UMLAUTS)


def is_capital(word: str) -> bool:
    """Return whether ``word`` has a capital: "Anna", "al-Haddad"."""
    return word != word.lower()


def _lower(word: str) -> bool:
    """Return whether ``word`` could have a capital, but has none. Georgian has capitals for headings only."""
    return word == word.lower() != word.upper() and not "\u10a0" <= word[:1] <= "\u10ff"


def names_of(request: str, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names in ``request``, each as its words. A word is a name if it has a capital within the request, or
    if ``texts`` write it with a capital, and never without."""
    request = _POSSESSIVE.sub("  ", request)
    stored = {word for text in texts for word in words_of(text)}
    written = {fold(word): word for word in stored if is_capital(word)}
    common = {fold(word) for word in stored if _lower(word)}
    matches = list(_WORD.finditer(request))
    capitals = not request.isupper()
    only = not any(_lower(match[0]) for match in matches)
    names: list[list[str]] = []
    end = -1
    for match in matches:
        word, folded = match[0], fold(match[0])
        if folded in FUNCTION or UNSPACED.search(word):
            continue
        first = not request[: match.start()].strip(" \"'“(*")
        named = is_capital(word) and capitals and (not first or only)
        if not named and folded not in common:
            others = (other for other in written.values() if _script(other) != _script(word))
            named = folded in written or any(_same_name(word, other) for other in others)
        if not named:
            continue
        if names and not request[end : match.start()].strip():
            names[-1].append(word)
        else:
            names.append([word])
        end = match.end()
    return [tuple(name) for name in names]


def sounds_index(text: str) -> set[str]:
    """Return the index keys by which names of ``text`` are found from other scripts: the consonants of each name with a
    mark of its script. In scripts without capitals, every word may be a name. Stored texts are not kept in a cache."""
    return {f"{_mark(word)}{sound}" for word in _words_read(text) if not _lower(word) for sound in _sounds(word)}


def sounds_searched(word: str) -> set[str]:
    """Return the index keys of the names in other scripts that sound like ``word``."""
    marks = [OTHER] if _mark(word) == LATIN else [LATIN, OTHER]
    return {f"{mark}{sound}" for mark in marks for sound in _sounds(word)}


def _mark(word: str) -> str:
    return LATIN if _script(word) == "LATIN" else OTHER


def _sounds(word: str) -> set[str]:
    forms = {word, stem(fold(word))} if _script(word) in ("CYRILLIC", "GREEK") else {word}
    if _script(word) == "HANGUL":
        forms |= {word[begin:end] for begin in (0, 1) for end in _HANGUL_NAME if begin < end < len(word)}
    return {sound.translate(_SAME_LETTER) for sound in map(_skeleton, forms) if len(sound) >= 2}


def name_shared(text: str, name: Sequence[str]) -> bool:
    """Return whether ``text`` has a word of ``name``, in any spelling."""
    return any(_same_name(word, other) for word in name for other in words_of(text))


@lru_cache(maxsize=4_096)
def name_mentioned(text: str, name: Sequence[str]) -> float:
    """Return how sure it is that ``text`` mentions ``name``, from 0 to 1. A word in lower case is hardly a name."""
    total = 0.0
    for word in name:
        sure = [(_same_name(word, other), is_capital(word) and _lower(other)) for other in words_of(text)]
        total += max((COMMON * one if lower else one for one, lower in sure), default=0.0)
    sure_of_all = total / len(name)
    if sure_of_all >= OTHER_SCRIPT or not UNSPACED.search(text):
        return sure_of_all
    if UNSPACED.search("".join(name)):
        # Two signs may be the beginning of a longer name: 王伟, 王伟明.
        whole = fold("".join(name))
        return WHOLE if len(whole) > 2 and whole in fold(text) else sure_of_all
    return OTHER_SCRIPT if _pieces_alike(text, name) else sure_of_all


def name_spelled(text: str, name: Sequence[str]) -> str:
    """Return the words of ``text`` that are ``name`` in another script or spelling; empty if the text has the name as
    it is, or inflected."""
    found: list[str] = []
    for word in name:
        best = max(words_of(text), key=lambda other: _same_name(word, other), default="")
        if 0 < _same_name(word, best) < INFLECTED and best not in found:
            found.append(best)
    if found or not UNSPACED.search(text) or UNSPACED.search("".join(name)):
        return " ".join(found)
    return min(_pieces_alike(text, name), key=len, default="")


def _pieces_alike(text: str, name: Sequence[str]) -> list[str]:
    """Return what sounds like ``name`` in a text without spaces between words."""
    sounds = [_skeleton("".join(order)) for order in (name, name[::-1])]
    return [piece for piece in _pieces(text) if any(_piece_is(piece, sound) for sound in sounds if len(sound) >= 2)]


def _piece_is(piece: str, sound: str) -> bool:
    letters = _VOICELESS if _COARSE.isdisjoint(map(_script, piece)) else _SAME_LETTER
    return _skeleton(piece).translate(letters) == sound.translate(letters)


@lru_cache(maxsize=4_096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of ``text`` that may be names, in order: without function words and possessive endings."""
    return _words_read(text)


def _words_read(text: str) -> tuple[str, ...]:
    words = [word for word in _WORD.findall(_POSSESSIVE.sub(" ", text)) if fold(word) not in FUNCTION]
    # Japanese has no spaces, but writes foreign names in signs of their own.
    words += [word for word in _KATAKANA.findall(text) if word not in words]
    # "Berlin-based" has the name Berlin, but "Ann-Kathrin" is one name.
    return (*words, *(found[1] for word in words if (found := _DESCRIBES.fullmatch(word)) and word[0].isupper()))


@lru_cache(maxsize=1_024)
def _pieces(text: str) -> frozenset[str]:
    """Return what may be a name in scripts without spaces: two to six neighbouring signs."""
    return frozenset(
        run[at : at + size]
        for run in UNSPACED.findall(fold(text))
        for at in range(len(run))
        for size in range(2, 7)
        # Names in Katakana are words.
        if at + size <= len(run) and not _KATAKANA.fullmatch(run[at : at + size])
    )


@lru_cache(maxsize=16_384)
def _same_name(one: str, other: str) -> float:
    """Return how sure it is that two words are one name."""
    left, right = fold(one), fold(other)
    if left == right:
        return WHOLE
    scripts = {_script(one), _script(other)}
    declined = scripts & {"CYRILLIC", "GREEK"}
    if len(scripts) == 1:
        same = umlauts_written_out(one) == umlauts_written_out(other)
        if same or (declined and min(len(left), len(right)) > 2 and stem(left) == stem(right)):
            return INFLECTED
        # "Tchaikovsky" and "Chaikovsky", but not "Ann" and "Anna".
        sound = _skeleton(one)
        spelled = len(sound) >= 4 and sound == _skeleton(other) and _vowels_alike(one, other)
        return SPELLED if spelled else 0.0
    ends = {word: bool(_VOWEL_LAST.search(latin(word))) for word in (one, other)}
    if any(_script(word) in declined and not ends[word] for word in ends) and any(ends.values()):
        # Иван is not Ivana. Ивана may be a case of either.
        return 0.0
    roots = [stem(form) if _script(form) in declined else form for form in (left, right)]
    return OTHER_SCRIPT if _sounds_alike(one, other) or (declined and _sounds_alike(*roots)) else 0.0


def _sounds_alike(one: str, other: str) -> bool:
    sound, others, vowels = _skeleton(one), _skeleton(other), _vowel_groups(one)
    if not _COARSE.isdisjoint((_script(one), _script(other))):
        sound, others = sound.translate(_SAME_LETTER), others.translate(_SAME_LETTER)
    distinct = len(sound) >= 2 or (len(vowels) >= 2 and vowels == _vowel_groups(other))
    return distinct and sound == others and _vowels_alike(one, other)


@lru_cache(maxsize=16_384)
def _vowel_groups(word: str) -> list[str]:
    return re.findall("[aeiouy]+", latin(word))


def _vowels_alike(one: str, other: str) -> bool:
    """Return whether the vowels of two spellings may be the same. Some scripts leave vowels out: then yes."""
    mine, others = _vowel_groups(one), _vowel_groups(other)
    if not mine or not others:
        return True
    pairs = list(zip(mine, others, strict=True)) if len(mine) == len(others) else [(mine[0], others[0])]
    if all(_VOWEL_LAST.search(latin(word)) for word in (one, other)):
        # マリア is Maria, not Mario.
        pairs.append((mine[-1][-1], others[-1][-1]))
    return all(any(right in _NEAR_VOWELS[left] for left in a for right in b) for a, b in pairs)


@lru_cache(maxsize=16_384)
def _script(word: str) -> str:
    sign = next(filter(str.isalpha, word), "a")
    return "LATIN" if sign < "\u0250" else unicodedata.name(sign, "LATIN").split()[0]


@lru_cache(maxsize=16_384)
def _skeleton(word: str) -> str:
    """Return the consonants of a word in Latin letters, with one spelling for each sound, and its first vowel."""
    sound = re.sub("[^a-z]", "", latin(ARTICLE.sub("", word.casefold()).replace("đ", "dj")))
    sound = _HARD_C.sub("k", sound)
    for one, other in _SOUNDS:
        sound = sound.replace(one, other)
    sound = re.sub("^[eiouy]", "a", sound)
    return re.sub(r"(.)\1+", r"\1", sound[:1] + re.sub("[aeiouy]", "", sound[1:]))
