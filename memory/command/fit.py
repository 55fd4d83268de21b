"""How well facts fit a request: by names, numbers and negation, which decide, and by words, meaning and attribute.

What decides is compared exactly: a fact about Ben is no answer to a request about Anna, however near the vectors are.
Among the facts that may be meant, the score is a weighted sum of three parts, each from -1 to 1 (docs/commands.md tells
how the weights were found):

* words: the share of the request's lemmas that the fact has too, rare ones counting more;
* meaning: the cosine of the two vectors, scaled so that unrelated texts of the packaged model come to about 0;
* attribute: whether both speak of the same attribute of their subject.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import snowballstemmer

from memory.command.said import Fact
from memory.domain.reading.answers import answers
from memory.domain.reading.attributes import attributes_agree, attributes_of, attributes_shared, lemmas_of
from memory.domain.reading.folding import fold
from memory.domain.reading.identifiers import identifiers_find, identifiers_index
from memory.domain.reading.kin import kin_of
from memory.domain.reading.names import mentions, words_index
from memory.domain.reading.negation import negated
from memory.embedding import embedder_get

_STEMMER = snowballstemmer.stemmer("english")

WORDS, MEANING, ATTRIBUTE = 0.45, 0.35, 0.2
NAMED = 0.25
ANSWERS = 0.08
# Where words and attribute speak for two facts alike, vectors that make less of a difference than this decide nothing.
LEVEL = 0.08
# Unrelated sentences of the packaged model come to a cosine of about 0.78, the same sentence to 1.
UNRELATED = 0.78


@dataclass(frozen=True, slots=True)
class Asked:
    """What facts are compared with."""

    text: str
    names: tuple[tuple[str, ...], ...]
    negated: bool
    states: bool
    # What the request says beside: the new text of a supersede.
    also: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fact and how well it fits: ``exact`` if it says the same words, else by score."""

    fact: Fact
    score: float
    exact: bool
    words: float = 0.0
    meaning: float = 0.0
    attribute: float = 0.0


def facts_fit(asked: Asked, facts: Sequence[Fact], *, strict: bool = True) -> list[Fit]:
    """Return the facts that may be meant, best first. No query; one call of the embedder.

    ``strict`` drops facts that miss a name, a number or an identifier of the request, or deny what it states.
    """
    same = _plain(asked.text)
    found = [fact for fact in facts if not strict or _exact(fact, same) or _decides(asked, fact)]
    if not found:
        return []
    cosines = _cosines(asked.text, [fact.told() for fact in found])
    weights = _weights([fact.told() for fact in facts])
    wanted = _lemmas(asked.text)
    # Whoever names a number or a date means it, and it has been found.
    named = strict and bool(values_sought(asked.text))
    fits = []
    for fact, cosine in zip(found, cosines, strict=True):
        words = _overlap(wanted, _lemmas(fact.told()), weights)
        meaning = max(-1.0, (float(cosine) - UNRELATED) / (1 - UNRELATED))
        attribute = attributes_shared(asked.text, fact.told())
        exact = _exact(fact, same)
        score = WORDS * words + MEANING * meaning + ATTRIBUTE * attribute + (NAMED if named else 0.0)
        score += ANSWERS * answers(asked.text, fact.text)
        score = 1.0 if exact else min(0.99, score)
        fits.append(Fit(fact, score, exact, words, meaning, attribute))
    return sorted(fits, key=lambda fit: -fit.score)


def same_meaning(one: Fact, other: Fact) -> bool:
    """Tell whether two facts say the same of the same subject, so that both go or neither: the words are the same but
    for those that name the attribute, as in "lives in Oslo" and "home is Oslo"."""
    if _plain(one.text) == _plain(other.text):
        return True
    mine, theirs = one.told(), other.told()
    if negated(mine) != negated(theirs) or kin_of(mine) != kin_of(theirs):
        return False
    if identifiers_index(mine) != identifiers_index(theirs):
        return False
    shared = attributes_of(mine) & attributes_of(theirs)
    if attributes_agree(attributes_of(mine), attributes_of(theirs)) < 1:
        return False
    core, others = _core(mine, shared), _core(theirs, shared)
    return bool(core) and core == others


def rivals(best: Fit, other: Fit, *, margin: float) -> bool:
    """Tell whether two facts fit equally well: their scores are near, or the same words and the same attribute speak
    for both, and only the vectors differ a little."""
    apart = best.score - other.score
    alike = abs(best.words - other.words) < 0.02 and best.attribute == other.attribute
    level = alike and best.attribute == 1 and best.words > 0.3 and apart < LEVEL
    # Each says all that was asked: what is told apart then is what was not asked.
    covered = alike and best.words > 0.95 and apart < 2 * LEVEL
    return apart < margin or level or covered


def _core(text: str, shared: frozenset[str]) -> frozenset[str]:
    letters = {word for word in text.replace(".", " ").split()[1:] if len(word) == 1 and word.isupper()}
    return frozenset(word for word in _lemmas(text) if not attributes_of(word) & shared) | letters


def _exact(fact: Fact, same: str) -> bool:
    return _plain(fact.text) == same or (bool(fact.context) and _plain(fact.told().replace(":", "")) == same)


def _decides(asked: Asked, fact: Fact) -> bool:
    said = f"{fact.topic.title}. {fact.told()}"
    if not all(any(mentions(said, name) for name in either) for either in asked.names):
        return False
    if kin_of(fact.told()) - kin_of(asked.text) - (kin_of(asked.also) if asked.also else frozenset()):
        return False
    if asked.states and asked.negated != negated(fact.text):
        return False
    there = identifiers_index(said)
    return all(there & either or _year(either, there) for either in values_sought(asked.text))


def _year(sought: frozenset[str], there: set[str]) -> bool:
    """Tell whether a year was asked for and a date in it is there."""
    years = {
        key.removeprefix("number:") for key in sought if key.startswith("number:") and len(key) == len("number:2024")
    }
    return any(key.startswith(f"date:{year}-") for year in years if year[:2] in ("19", "20") for key in there)


@lru_cache(maxsize=8192)
def values_sought(text: str) -> tuple[frozenset[str], ...]:
    """Return the identifiers, dates and numbers of a request, each as the keys by which texts that say it are found."""
    places: dict[int, set[str]] = {}
    end = -1
    for found in identifiers_find(text):
        # Several readings of the same place are alternatives; so is the date within a moment.
        start = found.start if found.start >= end else max(place for place in places if place <= found.start)
        places.setdefault(start, set()).update(found.sought)
        end = max(end, found.end)
    return tuple(frozenset(keys) for keys in places.values())


@lru_cache(maxsize=8192)
def _lemmas(text: str) -> frozenset[str]:
    found = set(_STEMMER.stemWords([part for lemma in lemmas_of(text) for part in fold(lemma).split("-") if part]))
    # Other scripts are compared by their words as they are indexed; the tagger knows English only.
    return frozenset(found | (words_index(text) if not text.isascii() else set()))


def _weights(texts: Sequence[str]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(_lemmas(text))
    counted["\x00"] = len(texts)
    return counted


def _overlap(wanted: frozenset[str], there: frozenset[str], counted: Counter[str]) -> float:
    """Return the share of ``wanted`` that is ``there``, each word by its inverse document frequency."""
    total = counted["\x00"] + 1
    weigh = {word: math.log(1 + total / (0.5 + counted[word])) for word in wanted}
    everything = sum(weigh.values())
    return sum(weight for word, weight in weigh.items() if word in there) / everything if everything else 0.0


def _cosines(text: str, others: Sequence[str]) -> list[float]:
    # A title that repeats a field is embedded once.
    distinct = list(dict.fromkeys(others))
    vectors = embedder_get().embed_passages([text, *distinct])
    cosines = dict(zip(distinct, np.asarray(vectors[1:] @ vectors[0]).tolist(), strict=True))
    return [float(cosines[other]) for other in others]


@lru_cache(maxsize=8192)
def _plain(text: str) -> str:
    return fold(text).strip(" .!?,;:\"'。！？")
