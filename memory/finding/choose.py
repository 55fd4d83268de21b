"""Chooses the facts to which a request refers: first by evidence, then by rank. Guards exclude facts. The parameter
``similarities`` is a function that returns, for each fact, its similarities to the request and to the new text. Only
this function queries the database."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from memory.finding.evidence import (
    facts_with_any,
    facts_with_identifiers,
    facts_with_names,
    facts_with_numbers,
    identifier_stems,
    names_find,
    undated,
)
from memory.finding.facts import Fact
from memory.finding.guards import contradiction, names_asked
from memory.finding.request import GENERIC, Request, request_read
from memory.finding.weigh import Candidate, candidates_weigh
from memory.text.folding import fold
from memory.text.identifiers import identifier_search_keys
from memory.text.negation import negated, opposites
from memory.text.stems import Rarity, numbers, same_text, stem, stems, things, verbs

# A period that has ended. A new text does not replace a fact about such a period.
_ENDED: Final = re.compile(
    r"^(?:until|till|up\s+to|before|during)\b|\b(?:from|between)\b.{1,40}(?:19|20)\d\d\s*(?:to|until|till|and|-|–)\s.{0,20}(?:19|20)\d\d",
    re.IGNORECASE,
)

# "Ada the physicist" describes the person, not one of the facts about her.
_DESCRIBED: Final = re.compile(
    r"(?:^|\b(?:about|on|of|regarding)\s)[A-Z][^\W\d_]+(?:\s[A-Z][^\W\d_]+)*,?\s(?:the|an?)\s([^\W\d_]+)"
)
Similarities = Callable[[Sequence[Fact]], Sequence[tuple[float, float]]]

# The least confidence of the best fact.
FLOOR: Final = 0.04
# The least confidence of a further replaced fact that has the old value.
SAME_VALUE: Final = 0.3
# The least confidence of a further replaced fact that states the same attribute of the same subject.
SAME_MATTER: Final = 0.5
# The least confidence of each further fact if the request allows several facts.
SEVERAL: Final = 0.1
# The least confidence that a fact mentions the name in "everything about Anna Berg". Facts about other persons named
# Anna have less.
WHOLE_NAME: Final = 0.5
# For "everything about", the confidence of a mention in another script or spelling may be this much below the best.
OTHER_SPELLING: Final = 0.25
# The least relevance of a fact to be released or purged; unrelated texts have 0.
RELEVANT: Final = 0.3
# The first limit applies to the relevance of a replaced fact. The second applies to its relevance or its similarity to
# the new text, whichever is greater. In 323 cases, the right facts had at least 0.19 and 0.3, and unrelated facts had a
# relevance of at most 0.04.
REPLACED_LEAST: Final = 0.15
REPLACED_NEAR: Final = 0.25
# The confidence of facts with the key of the request, if none of them has the other words of the request.
DOUBTED: Final = 0.3
# Two facts about different subjects are equally likely if their confidences differ by at most this.
EQUAL: Final = 0.35


@dataclass(slots=True)
class Choice:
    """The chosen facts, best first. If ``ambiguous``, the facts are equally likely and about different subjects, so the
    caller has to choose one."""

    candidates: list[Candidate] = field(default_factory=list)
    ambiguous: bool = False
    # All ranked facts, best first. A language model may choose among these.
    ranked: list[Candidate] = field(default_factory=list)
    # Whether the facts are sentences and clauses, not whole texts.
    divided: bool = True


def meant_choose(request_text: str, facts: Sequence[Fact], similarities: Similarities) -> Choice:
    """Return the facts to which a request to release or purge refers."""
    request = request_read(request_text)
    exact = [fact for fact in facts if same_text(fact.text, request.body)]
    if exact:
        return Choice([_candidate(fact, "meaning", 1.0) for fact in exact])
    facts = [fact for fact in _without(request, facts) if not opposites(request.body, fact.text)]
    alone = [fact for fact in facts if not fact.item]
    codes = identifier_stems(request.body)
    if request.everything or not set(stems(request.body)) - codes - GENERIC:
        identified = facts_with_any(facts_with_identifiers, request.body, alone)
    else:
        identified = facts_with_identifiers(request.body, alone)
    pool: tuple[Fact, ...] = identified.facts if identified else facts_with_numbers(request.body, alone)
    if request.everything and not identified:
        # "Mueller" may be Müller.
        names = facts_with_any(partial(facts_with_names, spread=OTHER_SPELLING), request.body, pool)
    else:
        names = facts_with_names(request.body, pool)
    covered = (identified.covered if identified else frozenset()) | (names.covered if names else frozenset())
    # General words such as "customer" do not count, unless the request is for a possession, such as "Anna's phone".
    uncovered = frozenset(stems(request.body)) - covered - (frozenset() if request.owned else GENERIC)
    if names:
        pool = names.facts
    if not identified and not uncovered - codes and identifier_search_keys(request.body):
        # A request for one identifier never refers to another identifier, even a similar one.
        return Choice()
    named = any(name[:1].isupper() for name in names_find(request.body, []))
    if request.everything and not identified and named and not (names and names.confidence >= WHOLE_NAME):
        return Choice()
    by, confidence = ("identifier", 1.0) if identified else ("name", names.confidence) if names else ("meaning", 0.0)
    if (identified or names) and not request.states:
        covering = _covering(uncovered, pool)
        if request.everything or not uncovered:
            if request.everything and names and _DESCRIBED.search(request.body):
                covering = tuple(fact for fact in pool if not _described_otherwise(fact, uncovered))
            return Choice([_candidate(fact, by, confidence) for fact in covering or _records(pool, facts, request)])
        unknown = uncovered - {one for fact in pool for one in stems(fact.found_by)}
        # Dates do not identify a fact, because several facts can have the same date.
        if identified and not request.owned and unknown and facts_with_identifiers(undated(request.body), alone):
            # No fact with the key has this word: "the refund of RX-40", where only its delivery is stored.
            return Choice([_candidate(fact, by, DOUBTED) for fact in _records(pool, facts, request)], ambiguous=True)
        if identified and not request.owned and covering:
            if negated(request.body):
                covering = tuple(fact for fact in covering if negated(fact.text)) or covering
            return Choice([_candidate(fact, by, confidence) for fact in covering])
    if request.everything and (about := _with_most_words(request, pool)):
        return Choice([_candidate(fact, "meaning", share) for fact, share in about])
    choice = _ranked(request, pool, similarities)
    if not choice.ambiguous:
        choice.candidates = _items_divided(choice.candidates, facts, frozenset(stems(request.body)))
    return choice


def replaced_choose(request_text: str, new_text: str, facts: Sequence[Fact], similarities: Similarities) -> Choice:
    """Return the facts that ``new_text`` replaces; ``request_text`` describes them."""
    request = request_read(request_text)
    possible = [fact for fact in facts if not same_text(fact.text, new_text) and not opposites(request.body, fact.text)]
    exact = [fact for fact in possible if same_text(fact.text, request.text)]
    whole = possible if exact else [fact for fact in possible if not fact.item]
    pool, identified = replaced_pool(request_text, new_text, whole)
    found = candidates_weigh(request.body, new_text, pool, similarities(pool))
    # The old fact must be similar to the request or to the new text.
    found = [
        one
        for one in found
        if one.exact
        or (relevance(one) >= REPLACED_LEAST and max(relevance(one), one.features["new_meaning"]) >= REPLACED_NEAR)
    ]
    names = names_asked(request, new_text, found)
    found = [one for one in found if not contradiction(one, request, new_text, names)]
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
    """Return (the facts to rank, whether an identifier found them). The facts have the identifiers or numbers of the
    request. If some facts also have a name that occurs in both ``request_text`` and ``new_text``, the others are left
    out."""
    request = request_read(request_text)
    possible = _without(request, facts)
    # Dates do not identify a fact, because several facts can have the same date.
    asked = undated(request.body)
    identified = facts_with_identifiers(asked, possible)
    pool = identified.facts if identified else facts_with_numbers(asked, possible)
    return facts_with_common_names(request.body, new_text, pool), identified is not None


def relevance(one: Candidate) -> float:
    """Return how similar a fact is to the request: 0 for unrelated texts, above 1 for equal ones."""
    return one.features["meaning"] + one.features["words"] / 2


def _items_divided(chosen: list[Candidate], facts: Sequence[Fact], words: frozenset[str]) -> list[Candidate]:
    """Replace each sentence that contains a list by the items that contain one of ``words``. A sentence stays if all or
    none of its items contain one. Words that all items contain are ignored."""
    found: list[Candidate] = []
    for one in chosen:
        items = [fact for fact in facts if fact.item and fact.of_sentence(one.fact)]
        common = frozenset.intersection(*(frozenset(stems(fact.text)) for fact in items)) if items else frozenset()
        named = [fact for fact in items if words & (set(stems(fact.text)) - common)]
        if one.exact or not named or len(named) == len(items):
            found.append(one)
        else:
            found += [_candidate(fact, one.by, one.confidence) for fact in named]
    return found


def _candidate(fact: Fact, by: str, confidence: float) -> Candidate:
    return Candidate(fact, fact.with_context(), {"exact": 0.0}, confidence, by)


def _without(request: Request, facts: Sequence[Fact]) -> list[Fact]:
    if not request.without:
        return list(facts)
    words = frozenset(stems(request.without))
    # "Except her phone number" has only general words, so general words count here.
    stays = words - GENERIC or words
    return [fact for fact in facts if not stays & set(stems(fact.found_by))]


def _described_otherwise(fact: Fact, description: frozenset[str]) -> bool:
    """Return whether a fact describes a person with a word that is not in ``description``: "Ada the baker"."""
    found = _DESCRIBED.match(fact.found_by)
    return found is not None and stem(fold(found[1])) not in description


def _covering(uncovered: frozenset[str], facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that contain all words in ``uncovered``, such as all words of "the floor 2 printer"."""
    return tuple(fact for fact in facts if uncovered and uncovered <= set(stems(fact.found_by)))


def _records(chosen: Sequence[Fact], facts: Sequence[Fact], request: Request) -> tuple[Fact, ...]:
    """Return the chosen facts. If a topic with several fields has a chosen fact, also return all other facts of that
    topic, unless its title names somebody or something else."""
    asked = [fold(name) for name in names_find(request.body, [])]
    topics = {fact.topic.id: fact.topic for fact in chosen if len(fact.topic.fields) > 1}
    records = {topic.id for topic in topics.values() if not _names_another(topic.title, asked)}
    kept = {id(fact) for fact in chosen}
    return tuple(fact for fact in facts if id(fact) in kept or (fact.topic.id in records and not fact.item))


def _names_another(title: str, asked: Sequence[str]) -> bool:
    """Return whether ``title`` has a name, and none of the names ``asked``. A first word is no name by its capital
    alone: "Contact"."""
    names = [name for name in names_find(title, []) if not (title.startswith(name) and name.isalpha())]
    return bool(asked and names) and not any(name in fold(title) for name in asked)


def _with_most_words(request: Request, facts: Sequence[Fact]) -> list[tuple[Fact, float]]:
    """Return the facts that contain most words of a request for everything about something, as (fact, share of the
    words). Rare words count more."""
    known = frozenset(one for fact in facts for one in stems(fact.found_by))
    wanted = frozenset(one for one in stems(request.body) if one not in GENERIC and one in known)
    if not wanted:
        return []
    rarity = Rarity([fact.found_by for fact in facts])
    topics: dict[int, set[str]] = {}
    for fact in facts:
        topics.setdefault(id(fact.topic), set()).update(stems(fact.found_by))
    shares = []
    for fact in facts:
        own = set(stems(fact.found_by))
        # A sentence may have its subject in the sentence before it.
        around = 0.98 * rarity.share(wanted, topics[id(fact.topic)]) if own & wanted else 0.0
        shares.append(max(rarity.share(wanted, own), around))
    most = max(shares, default=0.0)
    if most <= 0.45:
        return []
    return [(fact, share) for fact, share in zip(facts, shares, strict=True) if share >= most - 0.03]


def _ranked(request: Request, facts: Sequence[Fact], similarities: Similarities) -> Choice:
    found = candidates_weigh(request.text, "", facts, similarities(facts))
    found = [one for one in found if relevance(one) >= RELEVANT]
    names = names_asked(request, "", found)
    found = [one for one in found if not contradiction(one, request, "", names)]
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
        own_words = {word for word in one.stems - best.stems - asked if not word.isdigit()}
        as_likely = one.confidence >= 0.5 and best.confidence - one.confidence < 0.05
        if (not own_words and one.confidence >= 0.3) or (as_likely and one.features["words"] >= best.features["words"]):
            along.append(one)
    return Choice([best, *along], ranked=found)


def _answers(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """Return the facts that answer a request such as "who ..." or "those which ...". An answer contains the nouns of
    the request, but not in the subject of the answer."""
    known = frozenset(word for one in found for word in one.stems)
    wanted = frozenset(one for one in things(request.body) if one not in GENERIC and one in known)
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
    """Return whether two facts of different sentences may have the same subject. The subject of ``one`` may contain
    only words of the subject of ``best`` and of the request (``known``). Both subjects must have the same numbers. If
    one of the subjects is unknown, all words of ``one`` are compared."""
    if one.fact.of_sentence(best.fact):
        return False
    if one.subject is None or best.subject is None:
        return not {word for word in one.stems - known - best.stems if not word.isdigit()}
    if one.subject - known - best.subject:
        return False
    if {word for word in one.subject if word.isdigit()} ^ {word for word in best.subject if word.isdigit()}:
        return False
    return not (one.subject and best.subject) or bool(one.subject & best.subject) or one.subject <= known


def _also_replaced(one: Candidate, best: Candidate, request: Request, new_text: str) -> bool:
    """Return whether ``one`` is replaced together with ``best``, because it has the old value or states the same
    attribute of the same subject."""
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
    """Return whether the request fits two facts about different subjects equally well."""
    if best.confidence - one.confidence > EQUAL or best.exact or one.fact.topic is best.fact.topic:
        return False
    if _ENDED.search(one.fact.text):
        return False
    known = frozenset(stems(request.text)) | frozenset(stems(new_text))
    if best.features["words"] < 0.45 or (best.stems & known) != (one.stems & known):
        return False
    if best.subject is None or one.subject is None:
        # If the grammar is unknown, both facts must contain all words of the request.
        return best.features["words"] > 0.95 and bool(best.stems - known) and bool(one.stems - known)
    return bool(best.subject - known) and bool(one.subject - known) and best.subject - known != one.subject - known


def facts_with_common_names(request: str, new_text: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts with a name that occurs in both the request and the new text; all facts if there is none."""
    texts = [fact.found_by for fact in facts]
    names = [name for name in names_find(request, texts) if fold(name) in fold(new_text)]
    found = facts_with_names(" ".join(names), facts) if names else None
    return found.facts if found else tuple(facts)
