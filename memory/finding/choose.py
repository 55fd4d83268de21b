"""Chooses the facts to which a request refers: first by evidence, then by rank. Guards exclude facts.

Pure, except for ``near``, which returns for each fact its similarity to the request and to the new text.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from memory.finding.evidence import (
    held_by_any,
    identifier_stems,
    identifiers_held,
    names_find,
    names_held,
    numbers_held,
    undated,
)
from memory.finding.facts import Fact
from memory.finding.guards import about_whom, forbidden
from memory.finding.request import GENERIC, Request, request_read
from memory.finding.weigh import Candidate, candidates_weigh
from memory.text.folding import fold
from memory.text.identifiers import identifier_search_keys
from memory.text.negation import negated
from memory.text.stems import Rarity, numbers, same_text, stem, stems, things, verbs

# A period in the past: such a fact is history, and a new text does not replace it.
_ENDED: Final = re.compile(
    r"^(?:until|till|up\s+to|before|during)\b|\b(?:from|between)\b.{1,40}(?:19|20)\d\d\s*(?:to|until|till|and|-|–)\s.{0,20}(?:19|20)\d\d",
    re.IGNORECASE,
)

# "Ada the physicist" describes the person, not one of the facts about her.
_DESCRIBED: Final = re.compile(
    r"(?:^|\b(?:about|on|of|regarding)\s)[A-Z][^\W\d_]+(?:\s[A-Z][^\W\d_]+)*,?\s(?:the|an?)\s([^\W\d_]+)"
)
Near = Callable[[Sequence[Fact]], Sequence[tuple[float, float]]]

# The least confidence of the best fact.
FLOOR: Final = 0.04
# The least confidences of further facts: with the old value, with the same statement of the same subject, and for
# requests that allow several answers.
SAME_VALUE: Final = 0.3
SAME_MATTER: Final = 0.5
SEVERAL: Final = 0.1
# "Everything about" a person needs the whole name: facts about Anna Berg are not about every Anna.
WHOLE_NAME: Final = 0.5
# For "everything about", a mention may be less certain by this much: another script or spelling.
OTHER_SPELLING: Final = 0.25
# The least relevance of a released fact; unrelated texts have 0.
RELEVANT: Final = 0.3
# The least relevance of a replaced fact, and the least maximum of its relevance and its similarity to the new text. In
# 323 cases the right facts had at least 0.19 and 0.3; unrelated facts had a relevance of at most 0.04.
REPLACED_LEAST: Final = 0.15
REPLACED_NEAR: Final = 0.25
# Facts about two subjects are equally likely if their confidences differ by at most this.
EQUAL: Final = 0.35


@dataclass(slots=True)
class Choice:
    """The chosen facts, best first. ``ambiguous``: they are about different subjects and equally likely, so the caller
    has to choose."""

    candidates: list[Candidate] = field(default_factory=list)
    ambiguous: bool = False
    # All ranked facts, best first, among which a language model may choose.
    ranked: list[Candidate] = field(default_factory=list)
    # Whether the facts are sentences and clauses, not whole texts.
    divided: bool = True


def meant_choose(request_text: str, facts: Sequence[Fact], near: Near) -> Choice:
    """Return the facts to which a request to release or purge refers."""
    request = request_read(request_text)
    exact = [fact for fact in facts if same_text(fact.text, request.body)]
    if exact:
        return Choice([_sure(fact, "meaning", 1.0) for fact in exact])
    facts = _without(request, facts)
    alone = _without_items(facts)
    codes = identifier_stems(request.body)
    if request.everything or not set(stems(request.body)) - codes - GENERIC:
        held = held_by_any(identifiers_held, request.body, alone)
    else:
        held = identifiers_held(request.body, alone)
    pool: tuple[Fact, ...] = held.facts if held else numbers_held(request.body, alone)
    if request.everything and not held:
        # "Mueller" may be Müller.
        names = held_by_any(partial(names_held, spread=OTHER_SPELLING), request.body, pool)
    else:
        names = names_held(request.body, pool)
    covered = (held.covered if held else frozenset()) | (names.covered if names else frozenset())
    left = _left(request, covered)
    if names:
        pool = names.facts
    if not held and not left - codes and identifier_search_keys(request.body):
        # A request for one identifier never refers to another one, however similar.
        return Choice()
    named = any(name[:1].isupper() for name in names_find(request.body, []))
    if request.everything and not held and named and not (names and names.sure >= WHOLE_NAME):
        return Choice()
    by, sure = ("identifier", 1.0) if held else ("name", names.sure) if names else ("meaning", 0.0)
    if (held or names) and not request.states:
        covering = _covering(left, pool)
        if request.everything or not left:
            if request.everything and names and _DESCRIBED.search(request.body):
                covering = tuple(fact for fact in pool if not _described_else(fact, left))
            return Choice([_sure(fact, by, sure) for fact in covering or _records(pool, facts)])
        if held and not request.owned and not any(left & set(stems(fact.found_by)) for fact in pool):
            # The words beside the identifier are a remark: "RX-40, discontinued".
            return Choice([_sure(fact, by, sure) for fact in _records(pool, facts)])
        if held and not request.owned and covering:
            if negated(request.body):
                covering = tuple(fact for fact in covering if negated(fact.text)) or covering
            return Choice([_sure(fact, by, sure) for fact in covering])
    if request.everything and (about := _about(request, pool)):
        return Choice([_sure(fact, "meaning", share) for fact, share in about])
    choice = _ranked(request, pool, near)
    if not choice.ambiguous:
        choice.candidates = _items_divided(choice.candidates, facts, frozenset(stems(request.body)))
    return choice


def replaced_choose(request_text: str, new_text: str, facts: Sequence[Fact], near: Near) -> Choice:
    """Return the facts that ``new_text`` replaces; ``request_text`` describes them."""
    request = request_read(request_text)
    possible = [fact for fact in facts if not same_text(fact.text, new_text)]
    exact = [fact for fact in possible if same_text(fact.text, request.text)]
    pool = _without_items(possible) if not exact else possible
    pool, identified = replaced_pool(request_text, new_text, pool)
    found = candidates_weigh(request.body, new_text, pool, near(pool))
    # The old fact must be similar to the request or to the new text.
    found = [one for one in found if one.exact or _replaceable(one)]
    names = about_whom(request, new_text, found)
    found = [one for one in found if not forbidden(one, request, new_text, names)]
    if not found or (found[0].confidence < FLOOR and not found[0].exact):
        return Choice()
    if exact:
        found.sort(key=lambda one: not one.exact)
    best = found[0]
    rivals = [one for one in found[1:] if _rivals(best, one, request, new_text)]
    if rivals and not best.exact:
        return Choice([best, *rivals], ambiguous=True, ranked=found)
    along = [one for one in found[1:] if _also_replaced(one, best, request, new_text)]
    chosen = [best, *along]
    if identified:
        for one in chosen:
            one.by = "identifier"
    return Choice(_items_divided(chosen, facts, frozenset(stems(request.text))), ranked=found)


def replaced_pool(request_text: str, new_text: str, facts: Sequence[Fact]) -> tuple[tuple[Fact, ...], bool]:
    """Return the facts to rank, which contain the identifiers, numbers and names of the request, and whether they
    contain an identifier of it."""
    request = request_read(request_text)
    possible = _without(request, facts)
    # A date is not an identifier: other facts may have the same date as the appointment.
    asked = undated(request.body)
    held = identifiers_held(asked, possible)
    pool = held.facts if held else numbers_held(asked, possible)
    return both_named(request.body, new_text, pool), held is not None


def _replaceable(one: Candidate) -> bool:
    near = relevance(one)
    return near >= REPLACED_LEAST and max(near, one.features["new_meaning"]) >= REPLACED_NEAR


def relevance(one: Candidate) -> float:
    """Return how similar a fact is to the request, regardless of other facts: 0 for unrelated texts, above 1 for equal
    ones."""
    return one.features["meaning"] + one.features["words"] / 2


def _items_divided(chosen: list[Candidate], facts: Sequence[Fact], words: frozenset[str]) -> list[Candidate]:
    """Replace a sentence with a list by items of the list, if ``words`` name some but not all of them."""
    found: list[Candidate] = []
    for one in chosen:
        mine = [
            fact
            for fact in facts
            if fact.item
            and fact.topic is one.fact.topic
            and (fact.element, fact.sentence) == (one.fact.element, one.fact.sentence)
        ]
        common = frozenset.intersection(*(frozenset(stems(fact.text)) for fact in mine)) if mine else frozenset()
        named = [fact for fact in mine if words & (set(stems(fact.text)) - common)]
        if one.exact or not named or len(named) == len(mine):
            found.append(one)
        else:
            found += [_sure(fact, one.by, one.confidence) for fact in named]
    return found


def _without_items(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that are not items of lists."""
    return tuple(fact for fact in facts if not fact.item)


def _sure(fact: Fact, by: str, confidence: float) -> Candidate:
    return Candidate(fact, fact.with_context(), {"exact": 0.0}, confidence, by)


def _without(request: Request, facts: Sequence[Fact]) -> list[Fact]:
    if not request.without:
        return list(facts)
    words = frozenset(stems(request.without))
    # "Except her phone number" has only general words.
    stays = words - GENERIC or words
    return [fact for fact in facts if not stays & set(stems(fact.found_by))]


def _described_else(fact: Fact, description: frozenset[str]) -> bool:
    """Return whether a fact describes a person in other words than ``description``: "Ada the baker"."""
    found = _DESCRIBED.match(fact.found_by)
    return found is not None and stem(fold(found[1])) not in description


def _left(request: Request, covered: frozenset[str]) -> frozenset[str]:
    """Return the words of a request beside the ``covered`` ones, without general words such as "customer"."""
    return frozenset(
        one for one in stems(request.body) if one not in covered | (frozenset() if request.owned else GENERIC)
    )


def _covering(left: frozenset[str], facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that contain all words of ``left``: "the floor 2 printer"."""
    return tuple(fact for fact in facts if left and left <= set(stems(fact.found_by)))


def _records(chosen: Sequence[Fact], facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the chosen facts, and all facts of topics with several fields of which one fact is chosen."""
    records = {fact.topic.id for fact in chosen if len(fact.topic.fields) > 1}
    kept = {id(fact) for fact in chosen}
    return tuple(fact for fact in facts if id(fact) in kept or (fact.topic.id in records and not fact.item))


def _about(request: Request, facts: Sequence[Fact]) -> list[tuple[Fact, float]]:
    """Return the facts for "everything about ..." with common words: those that contain most of the words."""
    there = frozenset(one for fact in facts for one in stems(fact.found_by))
    wanted = frozenset(one for one in stems(request.body) if one not in GENERIC and one in there)
    if not wanted:
        return []
    rarity = Rarity([fact.found_by for fact in facts])
    topics: dict[int, set[str]] = {}
    for fact in facts:
        topics.setdefault(id(fact.topic), set()).update(stems(fact.found_by))
    shares = []
    for fact in facts:
        mine = set(stems(fact.found_by))
        # A sentence may have its subject in the sentence before it.
        around = 0.98 * rarity.share(wanted, topics[id(fact.topic)]) if mine & wanted else 0.0
        shares.append(max(rarity.share(wanted, mine), around))
    most = max(shares, default=0.0)
    return (
        [(fact, share) for fact, share in zip(facts, shares, strict=True) if share >= most - 0.03]
        if most > 0.45
        else []
    )


def _ranked(request: Request, facts: Sequence[Fact], near: Near) -> Choice:
    found = candidates_weigh(request.text, "", facts, near(facts))
    found = [one for one in found if relevance(one) >= RELEVANT]
    names = about_whom(request, "", found)
    found = [one for one in found if not forbidden(one, request, "", names)]
    if request.several and (answers := _answers(request, found)):
        return Choice(answers, ranked=found)
    if not found or found[0].confidence < FLOOR:
        return Choice()
    best = found[0]
    rivals = [one for one in found[1:] if _rivals(best, one, request, "")]
    if rivals and not request.several:
        return Choice([best, *rivals], ambiguous=True, ranked=found)
    asked = frozenset(stems(request.text))
    along = []
    for one in found[1:]:
        if not _same_subject(one, best, asked) or one.features["denial"] != best.features["denial"]:
            continue
        foreign = {word for word in one.stems - best.stems - asked if not word.isdigit()}
        as_near = one.confidence >= 0.5 and best.confidence - one.confidence < 0.05
        if (not foreign and one.confidence >= 0.3) or (as_near and one.features["words"] >= best.features["words"]):
            along.append(one)
    return Choice([best, *along], ranked=found)


def _answers(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """Return the facts that answer "who ..." and "those which ...": its nouns occur in them, but not as the subject."""
    there = frozenset(word for one in found for word in one.stems)
    wanted = frozenset(one for one in things(request.body) if one not in GENERIC and one in there)
    best = max((one.confidence for one in found), default=0.0)
    return [
        one
        for one in found
        if wanted
        and wanted <= one.stems
        and one.confidence >= min(SEVERAL, best)
        and not (one.subject and one.subject & wanted)
        and one.features["denial"] == 0
    ]


def _same_subject(one: Candidate, best: Candidate, known: frozenset[str]) -> bool:
    """Return whether two facts may have the same subject: neither subject has a word that is missing in the other fact
    and in the request. Where the grammar is unknown, only numbers may differ."""
    if one.fact.topic is best.fact.topic and (one.fact.element, one.fact.sentence) == (
        best.fact.element,
        best.fact.sentence,
    ):
        return False
    if one.subject is None or best.subject is None:
        return not {word for word in one.stems - known - best.stems if not word.isdigit()}
    if one.subject - known - best.subject:
        return False
    if {word for word in one.subject if word.isdigit()} ^ {word for word in best.subject if word.isdigit()}:
        return False
    return not (one.subject and best.subject) or bool(one.subject & best.subject) or one.subject <= known


def _also_replaced(one: Candidate, best: Candidate, request: Request, new_text: str) -> bool:
    """Return whether a further fact is replaced with the best one: it has the old value too, or states the same
    attribute of the same subject with another value."""
    asked, new = frozenset(stems(request.text)), frozenset(stems(new_text))
    numbered = numbers(request.text) & numbers(one.text) - numbers(best.text)
    named_too = request.several and bool(numbered) and (best.stems & new) <= one.stems
    if named_too and one.confidence >= SEVERAL:
        return True
    if not _same_subject(one, best, asked | new) or _ENDED.search(one.fact.text):
        return False
    if (things(best.text) & new) - one.stems:
        return False
    if one.stems == best.stems and one.features["order"] != best.features["order"]:
        return False
    old = best.stems - new
    if old and len(old & one.stems) / len(old) >= 0.5 and one.confidence >= SAME_VALUE:
        return True
    if ((best.stems & new) | verbs(best.text)) - one.stems or one.features["value_kind"] < best.features["value_kind"]:
        return False
    return one.confidence >= (SAME_MATTER / 2 if request.several else SAME_MATTER)


def _rivals(best: Candidate, one: Candidate, request: Request, new_text: str) -> bool:
    """Return whether two facts about different subjects are equally likely: the request does not distinguish them."""
    if best.confidence - one.confidence > EQUAL or best.exact or one.fact.topic is best.fact.topic:
        return False
    if _ENDED.search(one.fact.text):
        return False
    known = frozenset(stems(request.text)) | frozenset(stems(new_text))
    if best.features["words"] < 0.45 or (best.stems & known) != (one.stems & known):
        return False
    if best.subject is None or one.subject is None:
        # Where the grammar is unknown: both contain all words of the request.
        return best.features["words"] > 0.95 and bool(best.stems - known) and bool(one.stems - known)
    mine, theirs = best.subject - known, one.subject - known
    return bool(mine) and bool(theirs) and mine != theirs


def both_named(request: str, new_text: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that mention a name in both the request and the new text; all facts if none does."""
    texts = [fact.found_by for fact in facts]
    names = [name for name in names_find(request, texts) if fold(name) in fold(new_text)]
    held = names_held(" ".join(names), facts) if names else None
    return held.facts if held else tuple(facts)
