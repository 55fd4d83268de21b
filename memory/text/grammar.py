"""Finds the part of speech of each word in an English sentence with the tagger HanTa. The tags are the C5 tags of the
British National Corpus: ``NP0`` is a name, ``VVZ`` a verb in the third person."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(
    r"[^\W_][\w.+-]*@[\w.-]+\w|\w{1,40}://\S*[\w/]|[^\W_](?:[\w.:/@&+-]*\w)?(?=['’]s\b)|['’]s\b|n['’]t\b|[^\W_](?:[\w.:/@&+'’-]*[\w+#])?|\S"
)
_LOCK = threading.Lock()
# Words with more characters are not tagged. In a sentence with more words, the further words are not tagged.
LONGEST_TAGGED = 40
MAX_TAGGED = 600
# The share of words that must be known in an English text. Short sentences of other languages have some English words,
# such as "come" in Spanish.
LEAST_KNOWN = 0.7
_PLAIN_WORD = re.compile(r"(?<![\w@/.])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w@/])")
# Replaces words that the tagger cannot process.
_STRANGE = "Xyz"
# The least log-likelihood of a known form: known forms have -9 to -17, guessed ones at most -28.
_LIKELY = -22.0

FINITE = frozenset({"VVZ", "VVD", "VBZ", "VBD", "VBB", "VHZ", "VHD", "VHB", "VM0", "VDZ", "VDD", "VDB", "VVB"})
# The finite tags except ``VVB``, which is easily confused with nouns and infinitives.
SURE = FINITE - {"VVB"}
# Words that are always verbs, each with its tag.
_AUXILIARY = {
    "is": "VBZ",
    "was": "VBD",
    "are": "VBB",
    "were": "VBD",
    "has": "VHZ",
    "had": "VHD",
    "does": "VDZ",
    "did": "VDD",
}
NOMINAL = frozenset({"NP0", "NN0", "NN1", "NN2", "UNC", "CRD", "ORD", "ZZ0", "AJ0", "AJC", "AJS", "POS"})
OPENING = frozenset({"AT0", "DPS", "DT0"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence with its tag and its span."""

    text: str
    tag: str
    start: int
    end: int


@lru_cache(maxsize=1)
def _tagger() -> Any:
    # Loaded on first use, because it takes a tenth of a second and some memory.
    from HanTa.HanoverTagger import HanoverTagger

    return HanoverTagger("morphmodel_en.pgz")


@lru_cache(maxsize=4096)
def words_tag(sentence: str) -> tuple[Word, ...]:
    """Return the words and punctuation of one sentence with their parts of speech. Takes about a millisecond for any
    text. Words in other scripts and very long words get the tag ``UNC``."""
    spans = [match.span() for match in _TOKEN.finditer(sentence)]
    texts = [sentence[start:end] for start, end in spans]
    tokens = [text.replace("’", "'") if _readable(text) else _STRANGE for text in texts]
    if not tokens:
        return ()
    with _LOCK:
        tagged = _tagger().tag_sent(tokens[:MAX_TAGGED])
    words = []
    for (start, end), text, token, (_token, lemma, tag) in zip(
        spans, texts, tokens, [*tagged, *(("", "", "UNC") for _rest in tokens[MAX_TAGGED:])], strict=True
    ):
        read = token != _STRANGE and bool(lemma)
        words.append(Word(text, str(tag) if read else "UNC", start, end))
    return tuple(_corrected(words))


def verb_place(words: Sequence[Word]) -> int | None:
    """Return the index of the first finite verb after the first word; None if there is none."""
    return next((at for at, word in enumerate(words) if at > 0 and word.tag in FINITE), None)


def has_verb(text: str) -> bool:
    """Return whether a sentence has a finite verb. Costs as much as ``words_tag``."""
    return any(word.tag in FINITE for word in words_tag(text))


@lru_cache(maxsize=16_384)
def word_tags(word: str) -> tuple[str, ...]:
    """Return the likely parts of speech of a single word, most likely first; empty for an unknown word. A new word
    takes about 50 microseconds."""
    if not word or not _readable(word):
        return ()
    with _LOCK:
        tagger = _tagger()
        kept = tagger.cache.get(word)
        if kept is not None:
            return tuple(tagger.int2tag[tag] for tag, _likely in sorted(kept, key=lambda reading: -reading[1]))
        return tuple(tag for tag, likely in tagger.tag_word(word) if likely > _LIKELY)


def word_known(word: str) -> bool:
    """Return whether the folded ``word`` is an English word other than a name. False for foreign and technical
    words."""
    return any(tag != "NP0" for tag in word_tags(word))


@lru_cache(maxsize=4096)
def is_english(text: str) -> bool:
    """Return whether a text seems to be English: at least ``LEAST_KNOWN`` of its words are known English words. Names
    in capitals, numbers and codes do not count. A text without other words counts as English if it is ASCII."""
    found = _PLAIN_WORD.findall(text[:MAX_TAGGED])
    # The capital at the beginning says nothing. Elsewhere, a capital makes a name in English.
    words = [word.casefold() for at, word in enumerate(found) if at == 0 or word[:1].islower()]
    words = [word for word in words if not name_known(word)]
    if not words:
        return text.isascii()
    return sum(map(word_known, words)) >= LEAST_KNOWN * len(words)


def name_known(word: str) -> bool:
    """Return whether ``word``, folded, is most likely a name: "anna", "oslo", "williams"."""
    return word_tags(word)[:1] == ("NP0",)


def _readable(text: str) -> bool:
    """Return whether the tagger can process a word. The tagger tries every decomposition of a word, so a word with a
    thousand letters would take minutes."""
    return len(text) <= LONGEST_TAGGED and all(letter < "\u0250" for letter in text.replace("’", "'"))


def _corrected(words: Sequence[Word]) -> list[Word]:
    """Correct common errors of the tagger at the beginning of a clause: "works" in "and works at" is not a plural."""
    corrected: list[Word] = []
    for at, word in enumerate(words):
        before = corrected[-1].tag if corrected else ""
        after = words[at + 1] if at + 1 < len(words) else None
        tag = word.tag
        if word.text.endswith(("n't", "n’t")):
            tag = "VM0"
        elif word.text in _AUXILIARY and tag not in FINITE:
            tag = _AUXILIARY[word.text]
        elif word.text in ("'s", "’s"):
            tag = _apostrophe(words, at)
        elif tag in ("NN2", "AV0") and word.text.islower() and _verb_like(word, before, after):
            tag = "VVZ"
        elif tag.startswith("VV") and before in ("AT0", "DPS", "POS") and tag in ("VVZ", "VVB"):
            tag = "NN2" if tag == "VVZ" else "NN1"
        corrected.append(replace(word, tag=tag))
    # If the tagger may have missed the first verb, a plural noun that can be a verb becomes the verb: "runs" in "the
    # server runs Debian and hosts the wiki".
    first = next((at for at, word in enumerate(corrected) if word.tag in FINITE), len(corrected))
    joined = first == len(corrected) or any(word.tag == "CJC" or word.text == "," for word in corrected[:first])
    for at, word in enumerate(corrected[1 : first - 1], start=1):
        if joined and word.tag == "NN2" and word.text.islower() and corrected[at - 1].tag in NOMINAL:
            if first == len(corrected) or corrected[at + 1].tag in ("NP0", "AT0", "DPS", "PRP", "CRD", "UNC", "VVG"):
                corrected[at] = replace(word, tag="VVZ")
            break
    return corrected


def _verb_like(word: Word, before: str, after: Word | None) -> bool:
    if after is None or not word.text.endswith("s"):
        return False
    opens = after.tag in ("AT0", "DPS", "PRP", "PRF", "TO0", "AVP", "DT0", "PNP", "VVG") or (
        after.tag in ("NP0", "AV0", "CRD", "NN1", "NN2", "UNC") and before in ("CJC", "PUN", "NP0", "PNP", "PNQ")
    )
    return opens and after.text != "of" and before in ("CJC", "PUN", "NP0", "PNP", "PNQ", "AV0", "CRD", "UNC", "NN1")


def _apostrophe(words: Sequence[Word], at: int) -> str:
    """Return POS for "Anna's cat" and VBZ for "Anna's in Rome"."""
    after = words[at + 1] if at + 1 < len(words) else None
    if after is None:
        return "POS"
    return "VBZ" if after.tag in ("AT0", "PRP", "XX0", "VVG", "PNP", "DPS", "DT0") and at > 0 else "POS"
