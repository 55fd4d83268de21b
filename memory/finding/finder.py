"""Chooses the facts that a request means: by keys and names where it has them, else by rank. Few guards, no queries.

The rank of a fact is a sum of four measures, each from 0 to 1: how near its vector is to the request and to the new
text, and the shares of the request's words and numbers that it holds. The weights lie in the middle of a wide plateau
(docs/benchmarks.md)."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory.finding.evidence import HALF, YEAR, Mentioned, facts_with_dates, facts_with_keys, facts_with_names
from memory.finding.facts import Fact
from memory.finding.request import BEFORE, asks_for_all, dates_hidden, request_divide
from memory.text.folding import fold
from memory.text.keys import codes_of, dates_of, keys_of, spans_hidden, spelled
from memory.text.months import MONTHS
from memory.text.name_match import OTHER_SCRIPT, is_capital, name_mentioned, name_shared, names_of, words_of
from memory.text.negation import negated, opposites
from memory.text.stems import UNSPACED, Rarity, numbers, same_text, stem, stems, subject
from memory.text.word_lists import CALENDAR, FUNCTION, wordset

# The weights of the measures. The nearness to the request has the weight 1.
NEW_TEXT: Final = 0.7
WORDS, NUMBERS = 0.45, 0.45
# A fact about something of the requested subject counts this much less: "Anna's sister lives in Rome" for Anna.
OTHER_SUBJECT: Final = 0.2
# The least relevance (nearness and half the share of words) of a fact to release or purge. Unrelated texts have 0.
RELEVANT: Final = 0.25
# The least relevance of a replaced fact, and the least of that and its nearness to the new text.
REPLACED_LEAST, REPLACED_NEAR = 0.05, 0.25
# Facts whose scores differ by at most this are equally good.
EQUAL: Final = 0.14
# The new text makes the difference larger.
EQUAL_WITH_NEW: Final = 0.25
# Older facts that state the same as the best are at most this much below it.
OLDER: Final = 0.3
# The least share of a request's words, by their rarity, that "everything about the van" finds.
LEAST_SHARE: Final = 0.3
# The confidence of facts with the key of a request that has other words, which no fact with the key has.
DOUBTED: Final = 0.3

_MANY: Final = "those|ones|every|each|all|both|or"
_SEVERAL_OLD: Final = re.compile(rf"\b(?:{_MANY})\b")
_SEVERAL: Final = re.compile(rf"\b(?:who|which|people|any|whole|{_MANY})\b")
_STATES: Final = re.compile(
    r"(?:(?:please|forget|remember|delete|remove|drop|erase|purge|scrap|the|fact|note|saying)\s){0,4}that\s\S+\s\S",
    re.IGNORECASE,
)
_OWNS: Final = re.compile(r"(?:['’]s|s['’])\s+(?!(?:data|notes|records?|entries|info\w*|details|file|profile)\b)\w")
# Words between a thing and what has it: "the refund of KX-8841".
_OF: Final = re.compile(
    r"\b(?:of|for|about|von|vom|zu|für|de|del|di|da|du|от|для|о|об)\b|['’]s\b|[的の의]", re.IGNORECASE
)
# A period that has ended. A new text does not replace a fact about such a period.
_ENDED: Final = re.compile(
    r"^(?:until|till|up\s+to|before|during)\b|\b(?:from|between)\b.{1,40}(?:19|20)\d\d\s*(?:to|until|till|and|-|–)\s.{0,20}(?:19|20)\d\d",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"\b(?P<word>[A-Za-zÀ-ɏ]+)\s(?:(?:number|no\.?|id|nr\.?|code)\s)?$", re.IGNORECASE)
# "Anna's sister's phone number" is about the sister.
_OWNER: Final = re.compile(r"['’]s\s+([^\W\d_]+)['’]s\b")
_QUOTED: Final = re.compile(r"[\"“„«「]([^\"”“»」]{2,80})[\"”“»」]")
_CALENDAR: Final = frozenset(map(stem, (*MONTHS, *CALENDAR)))
# Words beside a key that describe any thing: remarks, not what is asked for.
_REMARKS: Final = frozenset(
    map(stem, wordset("record records entry entries note notes data info information details case number id item"))
)


# Returns for each fact how near its vector is to the request and to the new text: 1 for equal texts, 0 for unrelated
# ones. Without a new text, the second number is 0.
Similarities = Callable[[Sequence[Fact]], Sequence[tuple[float, float]]]


@dataclass(slots=True)
class Candidate:
    """A fact that the request may mean. ``confidence`` is from 0 to 1; ``by`` is ``identifier``, ``name`` or
    ``meaning``; ``exact`` if the fact has the words of the request."""

    fact: Fact
    confidence: float = 1.0
    by: str = "meaning"
    exact: bool = False
    score: float = 0.0
    relevance: float = 1.0
    # How the fact writes the name of the request, if it does so in another script or spelling.
    spelling: str = ""

    @property
    def text(self) -> str:
        """The fact with its context in front."""
        return self.fact.with_context()


@dataclass(slots=True)
class Choice:
    """The chosen facts, best first. If ``ambiguous``, a person has to choose among them."""

    candidates: list[Candidate] = field(default_factory=list)
    ambiguous: bool = False
    # Facts that may be meant, too: they have the name in another script or spelling. They are not chosen.
    perhaps: list[Candidate] = field(default_factory=list)
    # All ranked facts, best first. A language model may choose among these.
    ranked: list[Candidate] = field(default_factory=list)
    # Whether the facts are sentences and clauses, not whole texts.
    divided: bool = True


def meant(request: str, facts: Sequence[Fact], near: Similarities, *, any_script: bool = False) -> Choice:
    """Return the facts that a request to release or purge means. With ``any_script`` (a purge), names in other scripts
    and spellings count as much as the name itself."""
    body, kept = request_divide(spelled(request))
    if exact := [fact for fact in facts if same_text(fact.text, body)]:
        return Choice([Candidate(fact, exact=True) for fact in exact])
    stays = frozenset(stems(kept))
    facts = [fact for fact in facts if not stays & _words(fact) and not opposites(body, fact.text)]
    plain, everything = fold(body), asks_for_all(body)
    facts, dated, undated = facts_with_dates(body, facts)
    everything = everything or bool(dated and BEFORE.search(body))
    found, spans, unknown = facts_with_keys(undated, facts)
    if unknown and not found:
        # A request for one key never means another key, even a similar one.
        return Choice()
    beside = spans_hidden(undated, [(_label_start(undated, start), end) for start, end in spans])
    names = names_of(beside, [fact.found_by for fact in found or facts])
    by_name = facts_with_names(undated, names, found or facts, everything=everything, any_script=any_script)
    mentioned = by_name.facts
    if everything and names and not found and not mentioned:
        return Choice()
    pool = mentioned or found or facts
    rest = frozenset(stems(beside))
    if mentioned:
        rest -= frozenset(stems(" ".join(word for name in names for word in name)))
    known = rest & frozenset().union(*map(_words, pool))
    states = bool(_STATES.match(body))
    by = "identifier" if found else "name" if mentioned else "meaning"

    def candidate(fact: Fact) -> Candidate:
        return Candidate(fact, by_name.sure.get(id(fact), 1.0), by, spelling=by_name.spellings.get(id(fact), ""))

    def chosen(these: Iterable[Fact], *, ambiguous: bool = False) -> Choice:
        candidates = sorted(map(candidate, these), key=lambda one: -one.confidence)
        for one in candidates if ambiguous else ():
            one.confidence = DOUBTED
        return Choice(candidates, ambiguous, [] if found or ambiguous else list(map(candidate, by_name.perhaps)))

    if (found or mentioned or dated) and not states:
        if not rest or (everything and not known):
            return chosen(_whole_records(pool, facts, undated, names))
        if everything:
            return chosen(_with_most(known, pool, body))
        if found and not _OWNS.search(body):
            unasked, related = rest - known - _REMARKS, _OF.search(undated)
            asks = any(not one.isascii() or (related and not known) for one in unasked)
            if not known or asks:
                return chosen(_whole_records(pool, facts, undated, names), ambiguous=asks)
    elif known and not states and (everything or len(rest) == 1 or UNSPACED.fullmatch(plain)):
        return chosen(_with_most(known, pool, body))
    return _meant_by_rank(body, beside, pool, by_name, near, names=_names_about(body, names), dated=dated)


def _meant_by_rank(
    request: str,
    beside: str,
    pool: Sequence[Fact],
    by_name: Mentioned,
    near: Similarities,
    *,
    names: Sequence[tuple[str, ...]],
    dated: bool,
) -> Choice:
    """Return the fact of ``pool`` that ranks best, and those that are as good. ``beside`` is the request without its
    keys, and ``names`` are its subjects."""
    asked = frozenset(stems(request))
    ranked, perhaps = (
        [
            replace(one, spelling=by_name.spellings.get(id(one.fact), ""))
            for one in _ranked(request, "", these, near)
            if one.relevance >= (REPLACED_LEAST if dated else RELEVANT)
            and not _other_value(beside, one.fact)
            and not _about_another(asked, one.fact, names)
        ]
        for these in (pool, by_name.perhaps)
    )
    if not ranked:
        return Choice()
    best, further = ranked[0], _of_other_sentences(ranked)
    close = [one for one in further if best.score - one.score <= EQUAL]
    if _SEVERAL.search(fold(request)):
        return Choice([best, *close], ranked=ranked)
    if rivals := [one for one in close if _rivals(best.fact, one.fact, asked)]:
        return Choice([best, *rivals], ambiguous=True, ranked=ranked)
    same = [one for one in further if not _words(one.fact) - _words(best.fact) - asked]
    return Choice(
        [best, *(one for one in same if best.score - one.score <= 3 * EQUAL)],
        perhaps=[one for one in perhaps if best.score - one.score <= EQUAL],
        ranked=ranked,
    )


def replaced(request: str, new_text: str, facts: Sequence[Fact], near: Similarities) -> Choice:
    """Return the fact that ``new_text`` replaces and ``request`` describes; several if the request says so."""
    request, new_negated = spelled(request), negated(new_text)
    facts = [
        fact
        for fact in facts
        if not same_text(fact.text, new_text)
        and not (opposites(request, fact.text) and negated(fact.text) == new_negated)
    ]
    if exact := [fact for fact in facts if same_text(fact.text, request)]:
        return Choice([Candidate(fact, exact=True) for fact in exact])
    found, _spans, _unknown = facts_with_keys(request, facts)
    names = [name for name in names_of(request, [fact.found_by for fact in facts]) if name_shared(new_text, name)]
    asked, new, names = frozenset(stems(request)), frozenset(stems(new_text)), _names_about(request, names)
    ranked = [
        one
        for one in _ranked(request, new_text, found or facts, near)
        if one.relevance >= REPLACED_LEAST
        and one.confidence >= REPLACED_NEAR
        and _quotes(request, one.fact)
        and not _about_another(asked, one.fact, names)
    ]
    if not ranked:
        return Choice()
    if found:
        for one in ranked:
            one.by = "identifier"
    best, further = ranked[0], _of_other_sentences(ranked)
    close = [one for one in further if best.score - one.score <= EQUAL]
    if _SEVERAL_OLD.search(fold(request)):
        stated = _words(best.fact) & new
        return Choice([best, *(one for one in close if stated <= _words(one.fact))], ranked=ranked)
    if rivals := [
        one for one in further if best.score - one.score <= EQUAL_WITH_NEW and _rivals(best.fact, one.fact, asked | new)
    ]:
        return Choice([best, *rivals], ambiguous=True, ranked=ranked)
    dated = bool(dates_of(request) or YEAR.search(request))
    older = [
        one for one in further if best.score - one.score <= OLDER and _is_older(one.fact, best.fact, new, dated=dated)
    ]
    return Choice([best, *older], ranked=ranked)


def _is_older(one: Fact, best: Fact, new: frozenset[str], *, dated: bool) -> bool:
    """Return whether two dated facts state one attribute of one subject at two times: "In 2014 Mira lived in Basel".
    Unless the request is ``dated``, facts that differ in numbers and dates only do so, too: the rent of two years."""
    if _ENDED.search(one.text) or not all(map(YEAR.search, (one.text, best.text))):
        return False
    plain, other = (
        {word for word in _words(fact) if not any(map(str.isdigit, word)) and word not in _CALENDAR}
        for fact in (one, best)
    )
    if plain == other and not dated:
        return True
    subjects = [frozenset(word for word in _subject(fact) or () if not word.isdigit()) for fact in (one, best)]
    return (
        subjects[0] == subjects[1] != frozenset()
        and {word for word in _words(best) & new if not word.isdigit()} <= _words(one)
        and codes_of(one.found_by).keys() == codes_of(best.found_by).keys()
    )


# Ranking


def _ranked(request: str, new_text: str, facts: Sequence[Fact], near: Similarities) -> list[Candidate]:
    if not facts:
        return []
    rarity = Rarity(fact.found_by for fact in facts)
    asked, wanted = frozenset(stems(request)), numbers(dates_hidden(request))
    ranked = []
    for fact, (meaning, new_meaning) in zip(facts, near(facts), strict=True):
        own = _words(fact)
        held = len(wanted & numbers(fact.found_by)) / len(wanted) if wanted else 0.0
        share = rarity.share(asked, own)
        relevance = meaning + share / 2
        score = meaning + NEW_TEXT * new_meaning + WORDS * share + NUMBERS * held
        sure = min(1.0, max(0.0, relevance, new_meaning))
        ranked.append(Candidate(fact, sure, score=score, relevance=relevance))
    known, best = asked | frozenset(stems(new_text)), max(one.score for one in ranked)
    for one in ranked:
        # Parsing takes a millisecond. Other facts would not become the best.
        about = _subject(one.fact) if one.score > best - OTHER_SUBJECT else None
        if about and about & known and about - known:
            one.score -= OTHER_SUBJECT
    return sorted(ranked, key=lambda one: -one.score)


def _words(fact: Fact) -> frozenset[str]:
    return frozenset(stems(fact.found_by))


def _with_most(wanted: Collection[str], facts: Sequence[Fact], request: str) -> list[Fact]:
    """Return the facts with most of the words ``wanted``; rare words count more."""
    if negated(request):
        facts = [fact for fact in facts if negated(fact.found_by)] or facts
    rarity = Rarity(fact.found_by for fact in facts)
    shares = [rarity.share(wanted, _words(fact)) for fact in facts]
    best = max(shares, default=0.0)
    return [fact for fact, share in zip(facts, shares, strict=True) if share >= max(LEAST_SHARE, best - 0.03)]


def _subject(fact: Fact) -> frozenset[str] | None:
    return subject(dates_hidden(fact.text)) or subject(dates_hidden(fact.found_by))


def _of_other_sentences(ranked: Sequence[Candidate]) -> list[Candidate]:
    return [one for one in ranked[1:] if not one.fact.of_sentence(ranked[0].fact)]


def _rivals(one: Fact, other: Fact, known: frozenset[str]) -> bool:
    """Return whether two facts state the same of two subjects, and the request does not say of which."""
    if one.topic is other.topic or _words(one) & known != _words(other) & known:
        return False
    mine, others = _subject(one), _subject(other)
    if not mine or not others:
        return False
    mine, others = mine - known, others - known
    return bool(mine and others) and mine != others


# Guards


def _quotes(request: str, fact: Fact) -> bool:
    return all(fold(quoted) in fold(fact.found_by) for quoted in _QUOTED.findall(request))


def _other_value(request: str, fact: Fact) -> bool:
    """Return whether a fact lacks a quoted text of the request, or states only other numbers."""
    if not _quotes(request, fact):
        return True
    wanted, stated = numbers(request), numbers(fact.found_by)
    return bool(wanted and stated and not wanted & stated)


def _names_about(request: str, names: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return those of ``names`` that are the subject of the request; all if there are none."""
    about = subject(request) or frozenset()
    return [name for name in names if about & frozenset(stems(" ".join(name)))] or names


def _about_another(asked: frozenset[str], fact: Fact, names: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a fact is about something of a thing that the request does not name ("Anna's sister's car"), or
    has a name as its subject and mentions none of ``names``. ``asked`` are the stems of the request."""
    if any(stem(fold(owner)) not in asked for owner in _OWNER.findall(fact.found_by)):
        return True
    if not names or any(name_mentioned(fact.found_by, name) > HALF for name in names):
        return False
    capitals = frozenset(stems(" ".join(word for word in words_of(fact.found_by) if is_capital(word))))
    about_fact = _subject(fact)
    return bool((capitals if about_fact is None else capitals & about_fact) - asked)


def _label_start(request: str, key_start: int) -> int:
    """Return where the label before a key begins: "VAT number DE123456789". A label excludes nothing."""
    label = _LABEL.search(request, 0, key_start)
    return key_start if label is None or fold(label["word"]) in FUNCTION else label.start()


def _whole_records(
    chosen: Sequence[Fact], facts: Sequence[Fact], request: str, names: Sequence[Sequence[str]]
) -> list[Fact]:
    """Return ``chosen``, and all facts of each chosen topic with several fields, unless its title is about another
    thing."""
    kept = {id(fact) for fact in chosen}
    whole = set()
    for topic in {fact.topic.id: fact.topic for fact in chosen if len(fact.topic.fields) > 1}.values():
        keys, asked = keys_of(topic.title).keys(), keys_of(request).keys() if request else set()
        others = any(map(is_capital, words_of(topic.title)[1:]))
        named = any(name_mentioned(topic.title, name) >= OTHER_SCRIPT for name in names)
        if keys & asked or named or not (keys or others):
            whole.add(topic.id)
    return [fact for fact in facts if id(fact) in kept or (fact.topic.id in whole and not fact.item)]
