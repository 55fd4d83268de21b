"""The probability that a request refers to a fact. A logistic model computes it from measured features. The model was
fitted to cases whose authors had not seen this code (docs/benchmarks.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from memory.finding.facts import Fact
from memory.text.negation import negated
from memory.text.stems import Rarity, same_text, stems, subject, value_kinds


# The features, by their names in the weights:
# * meaning: similarity of the vectors of fact and request, 0 for unrelated texts
# * words: share of the request's words that the fact contains, with more weight on rare words
# * new_meaning: similarity of the vectors of fact and new text
# * ..._gap: difference between a feature, such as words, and its highest value among the facts
# * explained: share of the fact's words that the request or the new text contains
# * value_kind: whether the fact and the new text contain values of the same kinds, such as a date
@dataclass(slots=True)
class Candidate:
    """A fact to which the request may refer. ``text`` is the fact with its context, ``confidence`` is from 0 to 1."""

    fact: Fact
    text: str
    features: dict[str, float]
    confidence: float = 0.0
    by: str = "meaning"

    @property
    def stems(self) -> frozenset[str]:
        """The stems of ``text``."""
        return frozenset(stems(self.text))

    @property
    def subject(self) -> frozenset[str] | None:
        """The stems of the subject of the fact, None if it is unknown. The first use for a text takes about a
        millisecond."""
        return subject(self.fact.text) or (subject(self.text) if self.fact.context else None)

    @property
    def exact(self) -> bool:
        """Whether the fact has the same words as the request."""
        return self.features["exact"] > 0


def candidates_weigh(
    request: str, new_text: str, facts: Sequence[Fact], near: Sequence[tuple[float, float]]
) -> list[Candidate]:
    """Return ``facts`` with the probability that ``request`` refers to each, most likely first. ``near`` has, for each
    fact, its similarities to the request and to ``new_text``; 0 for unrelated texts."""
    if not facts:
        return []
    rarity = Rarity([*(fact.with_context() for fact in facts), request, new_text])
    asked, new = frozenset(stems(request)), frozenset(stems(new_text))
    known = asked | new
    pairs, denied = _pairs(request) | _pairs(new_text), negated(request)
    found = []
    for fact, (meaning, new_meaning) in zip(facts, near, strict=True):
        text = fact.with_context()
        own = frozenset(stems(text))
        own_pairs = _pairs(text)
        features = {
            "exact": float(same_text(fact.text, request) or same_text(text.replace(":", ""), request)),
            "denial": float(negated(fact.text) != denied),
            "order": len(own_pairs & pairs) / len(own_pairs) if own_pairs else 0.5,
            "meaning": meaning,
            "new_meaning": new_meaning,
            "words": rarity.share(asked, own),
            "explained": rarity.share(own, known),
            "value_kind": _alike(value_kinds(fact.text), value_kinds(new_text)) if new_text else 0.0,
        }
        found.append(Candidate(fact, text, features))
    for name in ("meaning", "new_meaning", "words"):
        most = max(one.features[name] for one in found)
        for one in found:
            one.features[f"{name}_gap"] = one.features[name] - most
    weights = REPLACE_WEIGHTS if new_text else FORGET_WEIGHTS
    for one in found:
        one.confidence = confidence(one.features, weights)
    return sorted(found, key=lambda one: -one.confidence)


def confidence(features: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the probability that a logistic model with ``weights`` computes from ``features``."""
    return 1 / (1 + math.exp(-sum(weight * features.get(name, 1.0) for name, weight in weights.items())))


@lru_cache(maxsize=8_192)
def _pairs(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(stems(text)))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


# The weights for requests to forget and to supersede, fitted by ``tests.erasure.fitting``. "bias" is the constant term.
FORGET_WEIGHTS: dict[str, float] = {
    "bias": 0.07,
    "meaning": -0.76,
    "meaning_gap": 7.8,
    "words": 1.37,
    "words_gap": 4.03,
    "explained": 1.38,
}
REPLACE_WEIGHTS: dict[str, float] = {
    "bias": -2.13,
    "meaning": 2.39,
    "meaning_gap": 8.83,
    "new_meaning_gap": 6.93,
    "words": -0.44,
    "words_gap": 5.71,
    "explained": 3.44,
    "value_kind": 0.82,
}
