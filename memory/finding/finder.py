"""Chooses the facts that a request means: by keys and names where it has them, else by rank. Few guards, no queries.

The rank of a fact is a sum of four measures, each from 0 to 1: how near its vector is to the request and to the new
text, and the shares of the request's words and numbers that it holds. The weights lie in the middle of a wide plateau
(docs/benchmarks.md)."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from memory.finding.facts import Fact
from memory.text.aliases import aliases_of
from memory.text.folding import fold
from memory.text.keys import keys_of, spans_hidden, spelled
from memory.text.name_match import (
    OTHER_SCRIPT,
    UNSPACED_RUN,
    is_capital,
    name_mentioned,
    name_shared,
    names_of,
    words_of,
)
from memory.text.negation import negated, opposites
from memory.text.stems import Rarity, numbers, same_text, stem, stems, subject, verbs
from memory.text.word_lists import FUNCTION, wordset

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
# Anna Berg is not meant by "Berg" alone.
HALF: Final = 0.5
# Facts whose sureness is at most this below the best mention the name. A purge takes other scripts as well.
SURE, SURE_IN_ANY_SCRIPT = 0.15, 0.25
# The confidence of facts with the key of a request that has other words, which no fact with the key has.
DOUBTED: Final = 0.3

_ALL: Final = re.compile(
    r"\b(?:everything|all|anything|whatever|whole|entries|records|notes|data|alles|todo|tout|tutto|все|всё|ολα|ο,τι|كل|כל|सब)\b"
    r"|\bwhat\s+(?:(?:do|did)\s+)?(?:you|we|i)(?:'ve)?\s+(?:all\s+)?(?:have|know|hold|remember|got)\b"
    r"|全部|所有|一切|すべて|全て|모든|모두"
)
_SEVERAL: Final = re.compile(r"\b(?:who|which|people|those|any|ones|every|each|all|both|whole|or)\b")
_SEVERAL_OLD: Final = re.compile(r"\b(?:those|ones|every|each|all|both|or)\b")
_STATES: Final = re.compile(
    r"(?:(?:please|forget|remember|delete|remove|drop|erase|purge|scrap|the|fact|note|saying)\s){0,4}that\s\S+\s\S",
    re.IGNORECASE,
)
_OWNS: Final = re.compile(r"(?:['’]s|s['’])\s+(?!(?:data|notes|records?|entries|info\w*|details|file|profile)\b)\w")
_EXCEPT: Final = re.compile(
    r"(?<![,\s–-])[,\s–-]++(?:except(?:\s+for)?|but\s+(?:not|do\s+not|don['’]t|leave|keep)(?:\s+touch)?|apart\s+from|other\s+than)\s+"
    r"|\s\(not\s+",
    re.IGNORECASE,
)
_AND: Final = re.compile(r"(?:(?<!\s)\s+)?(?:[,;&、和と]|\b(?:and|or|und|oder|y|et|ou|e|и|или)\b)\s*", re.IGNORECASE)
# Words between a thing and what has it: "the refund of KX-8841".
_OF: Final = re.compile(
    r"\b(?:of|for|about|von|vom|zu|für|de|del|di|da|du|от|для|о|об)\b|['’]s\b|[的の의]", re.IGNORECASE
)
# A period that has ended. A new text does not replace a fact about such a period.
_ENDED: Final = re.compile(
    r"^(?:until|till|up\s+to|before|during)\b|\b(?:from|between)\b.{1,40}(?:19|20)\d\d\s*(?:to|until|till|and|-|–)\s.{0,20}(?:19|20)\d\d",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_BEFORE: Final = re.compile(
    r"\b(?:before|prior\s+to|until|(?:earlier|older)\s+than)\s+(?:[a-z]+\s+)?(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE
)
_LABEL: Final = re.compile(r"\b(?P<word>[A-Za-zÀ-ɏ]+)\s(?:(?:number|no\.?|id|nr\.?|code)\s)?$", re.IGNORECASE)
# "Anna's sister's phone number" is about the sister.
_OWNER: Final = re.compile(r"['’]s\s+([^\W\d_]+)['’]s\b")
_QUOTED: Final = re.compile(r"[\"“„«「]([^\"”“»」]{2,80})[\"”“»」]")
# Words beside a key that describe any thing: remarks, not what is asked for.
_REMARKS: Final = frozenset(
    map(stem, wordset("record records entry entries note notes data info information details case number id item"))
)


class Nearness(Protocol):
    """How near the vectors of facts are: 1 for equal texts, 0 for unrelated ones."""

    def similarities(self, facts: Sequence[Fact], /) -> Sequence[tuple[float, float]]:
        """Return for each fact its nearness to the request and to the new text (0 if there is none)."""


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

    @property
    def text(self) -> str:
        """The fact with its context in front."""
        return self.fact.with_context()


@dataclass(slots=True)
class Choice:
    """The chosen facts, best first. If ``ambiguous``, a person has to choose among them."""

    candidates: list[Candidate] = field(default_factory=list)
    ambiguous: bool = False
    # All ranked facts, best first. A language model may choose among these.
    ranked: list[Candidate] = field(default_factory=list)
    # Whether the facts are sentences and clauses, not whole texts.
    divided: bool = True


def meant(request: str, facts: Sequence[Fact], near: Nearness, *, any_script: bool = False) -> Choice:
    """Return the facts that a request to release or purge means. With ``any_script`` (a purge), names in other scripts
    and spellings count as much as the name itself."""
    body, kept = request_divide(spelled(request))
    if exact := [fact for fact in facts if same_text(fact.text, body)]:
        return Choice([Candidate(fact, exact=True) for fact in exact])
    stays = frozenset(stems(kept))
    facts = [fact for fact in facts if not stays & _words(fact) and not opposites(body, fact.text)]
    plain, everything = fold(body), asks_for_all(body)
    facts, dated, undated = _with_dates(body, facts)
    everything = everything or bool(dated and _BEFORE.search(body))
    found, spans, unknown = _with_keys(undated, facts)
    if unknown and not found:
        # A request for one key never means another key, even a similar one.
        return Choice()
    spans = [(_label_start(undated, start), end) for start, end in spans]
    names = names_of(spans_hidden(undated, spans), [fact.found_by for fact in found or facts])
    mentioned, sure = _with_names(undated, names, found or facts, everything=everything, any_script=any_script)
    if everything and names and not found and not mentioned:
        return Choice()
    pool = mentioned or found or facts
    rest = frozenset(stems(spans_hidden(undated, spans)))
    if mentioned:
        rest -= frozenset(stems(" ".join(word for name in names for word in name)))
    known = rest & frozenset().union(*map(_words, pool))
    states = bool(_STATES.match(body))
    by, confidence = ("identifier", 1.0) if found else ("name", sure) if mentioned else ("meaning", 1.0)

    def chosen(these: Iterable[Fact], *, ambiguous: bool = False) -> Choice:
        sureness = DOUBTED if ambiguous else confidence
        return Choice([Candidate(fact, sureness, by) for fact in these], ambiguous)

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
            if known == rest and (those := [fact for fact in pool if known <= _words(fact)]):
                return chosen(those)
    elif known and not states and (everything or len(rest) == 1 or UNSPACED_RUN.fullmatch(plain)):
        return chosen(_with_most(known, pool, body))
    valued = spans_hidden(undated, spans)
    ranked = [
        one
        for one in _ranked(body, "", pool, near)
        if one.relevance >= RELEVANT
        and not _other_value(valued, one.fact)
        and not _about_another(body, one.fact, names)
    ]
    if not ranked:
        return Choice()
    best, further = ranked[0], _of_other_sentences(ranked)
    close = [one for one in further if best.score - one.score <= EQUAL]
    if _SEVERAL.search(plain):
        return Choice([best, *close], ranked=ranked)
    asked = frozenset(stems(body))
    if rivals := [one for one in close if _rivals(best.fact, one.fact, asked)]:
        return Choice([best, *rivals], ambiguous=True, ranked=ranked)
    same = [one for one in further if not _words(one.fact) - _words(best.fact) - asked]
    return Choice([best, *(one for one in same if best.score - one.score <= 3 * EQUAL)], ranked=ranked)


def replaced(request: str, new_text: str, facts: Sequence[Fact], near: Nearness) -> Choice:
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
    found, _spans, _unknown = _with_keys(request, facts)
    names = [name for name in names_of(request, [fact.found_by for fact in facts]) if name_shared(new_text, name)]
    ranked = [
        one
        for one in _ranked(request, new_text, found or facts, near)
        if one.relevance >= REPLACED_LEAST
        and one.confidence >= REPLACED_NEAR
        and _quotes(request, one.fact)
        and not _about_another(request, one.fact, names)
    ]
    if not ranked:
        return Choice()
    if found:
        for one in ranked:
            one.by = "identifier"
    best, further = ranked[0], _of_other_sentences(ranked)
    close = [one for one in further if best.score - one.score <= EQUAL]
    known = frozenset(stems(request)) | frozenset(stems(new_text))
    if _SEVERAL_OLD.search(fold(request)):
        stated = _words(best.fact) & frozenset(stems(new_text))
        return Choice([best, *(one for one in close if stated <= _words(one.fact))], ranked=ranked)
    if rivals := [
        one for one in further if best.score - one.score <= EQUAL_WITH_NEW and _rivals(best.fact, one.fact, known)
    ]:
        return Choice([best, *rivals], ambiguous=True, ranked=ranked)
    older = [
        one for one in further if best.score - one.score <= OLDER and _states_the_same(one.fact, best.fact, new_text)
    ]
    return Choice([best, *older], ranked=ranked)


def _states_the_same(one: Fact, best: Fact, new_text: str) -> bool:
    """Return whether two dated facts state one attribute of one subject at two times: "In 2014 Mira lived in Basel"."""
    subjects = [frozenset(word for word in _subject(fact) or () if not word.isdigit()) for fact in (one, best)]
    needed = verbs(best.text) | (_words(best) & frozenset(stems(new_text)))
    return (
        subjects[0] == subjects[1] != frozenset()
        and {word for word in needed if not word.isdigit()} <= _words(one)
        and bool(_YEAR.search(one.text) and _YEAR.search(best.text))
        and not _ENDED.search(one.text)
        and {key for key in keys_of(one.found_by) if key.startswith("key:")}
        == {key for key in keys_of(best.found_by) if key.startswith("key:")}
    )


def request_divide(request: str) -> tuple[str, str]:
    """Return (what a request means, what it excepts: "everything about Ada except her phone number")."""
    body, *kept = _EXCEPT.split(" ".join(request.split()), maxsplit=1)
    return body, kept[0] if kept else ""


def asks_for_all(request: str) -> bool:
    """Return whether a request asks for everything about something."""
    return bool(_ALL.search(fold(request))) and "who" not in fold(request).split()


def dates_hidden(request: str) -> str:
    """Return ``request`` with spaces in place of its dates and times."""
    request = spelled(request)
    return spans_hidden(request, (span for key, span in keys_of(request).items() if key.startswith("date:")))


# Ranking


def _ranked(request: str, new_text: str, facts: Sequence[Fact], near: Nearness) -> list[Candidate]:
    if not facts:
        return []
    rarity = Rarity(fact.found_by for fact in facts)
    asked, wanted = frozenset(stems(request)), numbers(dates_hidden(request))
    ranked = []
    for fact, (meaning, new_meaning) in zip(facts, near.similarities(facts), strict=True):
        own = _words(fact)
        held = len(wanted & numbers(fact.found_by)) / len(wanted) if wanted else 0.0
        share = rarity.share(asked, own)
        relevance = meaning + share / 2
        score = meaning + NEW_TEXT * new_meaning + WORDS * share
        score += NUMBERS * held
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
    return subject(fact.text) or subject(fact.found_by)


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


def _about_another(request: str, fact: Fact, names: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a fact is about something of a thing that the request does not name ("Anna's sister's car"), or
    has a name as its subject and mentions none of ``names``: those that are the subject of the request, if there are
    any, else all."""
    asked = frozenset(stems(request))
    if any(stem(fold(owner)) not in asked for owner in _OWNER.findall(fact.found_by)):
        return True
    about = subject(request) or frozenset()
    names = [name for name in names if about & frozenset(stems(" ".join(name)))] or names
    if not names or any(name_mentioned(fact.found_by, name) > HALF for name in names):
        return False
    capitals = frozenset(stems(" ".join(word for word in words_of(fact.found_by) if is_capital(word))))
    about_fact = _subject(fact)
    return bool((capitals if about_fact is None else capitals & about_fact) - asked)


def _label_start(request: str, key_start: int) -> int:
    """Return where the label before a key begins: "VAT number DE123456789". A label excludes nothing."""
    label = _LABEL.search(request, 0, key_start)
    if label is None or fold(label["word"]) in FUNCTION or verbs(request) & frozenset(stems(label["word"])):
        return key_start
    return label.start()


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


# Evidence


def _with_dates(request: str, facts: Sequence[Fact]) -> tuple[Sequence[Fact], bool, str]:
    """Return (the facts with a date of ``request``, whether there are any, ``request`` without dates). Without such
    facts, return ``facts``. A date with a year counts before one without."""
    keys = {key: span for key, span in keys_of(request).items() if key.startswith("date:")}
    plain = spans_hidden(request, keys.values())
    if limit := _BEFORE.search(request):
        earlier = [fact for fact in facts if any(year < limit["year"] for year in _years(fact.found_by))]
        return earlier or facts, bool(earlier), spans_hidden(plain, [limit.span()])
    for wanted in ({key for key in keys if len(key) > 10}, keys.keys()):
        if held := [fact for fact in facts if wanted & keys_of(fact.found_by).keys()]:
            return held, True, plain
    return facts, False, plain


def _years(text: str) -> list[str]:
    return _YEAR.findall(text)


def _with_keys(request: str, facts: Sequence[Fact]) -> tuple[list[Fact], list[tuple[int, int]], bool]:
    """Return (the facts with most keys of ``request``, the spans of these keys in the request, whether the request has
    a key that no fact has). Facts whose digits are grouped as in the request come before others: 2024/77, 20/2477."""
    asked = {key: span for key, span in keys_of(request).items() if key.startswith("key:")}
    if not asked:
        return [], [], False
    stored = [keys_of(fact.found_by).keys() for fact in facts]
    held = {key: span for key, span in asked.items() if any(key in keys for keys in stored)}
    widest = {key: span for key, span in held.items() if not any(_wider(other, span) for other in held.values())}
    spans = sorted(set(widest.values()), reverse=True)
    unknown = any(
        re.search(r"\d|[@/_]|\w\.\w", request[start:end]) and not any(start < one[1] and one[0] < end for one in spans)
        for start, end in asked.values()
        if " " not in request[start:end]
    )
    if not widest:
        return [], [], unknown
    counts = [sum(any(_holds(fact, key, asked, span) for key in held) for span in spans) for fact in facts]
    most = max(counts)
    # "NOVA-7, NOVA-8" and "everything about NOVA-7 and NOVA-8" are for either of them.
    either = most == 1 or asks_for_all(request) or not stems(spans_hidden(request, spans))
    least = 1 if len(spans) > 1 and _AND.search(request) and either else most
    found = [fact for fact, count in zip(facts, counts, strict=True) if count >= least]
    alike = [fact for fact in found if not any(_grouped_otherwise(request, key, fact) for key in widest)]
    return alike or found, spans, unknown


def _holds(fact: Fact, key: str, asked: Mapping[str, tuple[int, int]], span: tuple[int, int]) -> bool:
    """Return whether a fact has the key at ``span``, or the same number without the words before it: "invoice 20455"
    finds "20455", but not "order 20455"."""
    places = keys_of(fact.found_by)
    place = places.get(key)
    if place is None or asked[key] == span:
        return place is not None
    prefixed = any(other[1] == place[1] and other[0] < place[0] for other in places.values())
    same_digits = any(_digits(key) == _digits(other) for other, at in asked.items() if at == span)
    return _wider(span, asked[key]) and same_digits and not prefixed and len(key) >= len("key:b204")


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _wider(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and one[0] <= other[0] and other[1] <= one[1]


def _grouped_otherwise(request: str, key: str, fact: Fact) -> bool:
    """Return whether a fact has the digits of a key in as many groups as the request, but in other ones: 20-2477 is not
    2024/77, but may be 202477."""
    place = keys_of(fact.found_by).get(key)
    if place is None:
        return False
    asked, stored = keys_of(request)[key], spelled(fact.found_by)[slice(*place)]
    groups, others = re.findall(r"\d+", request[slice(*asked)]), re.findall(r"\d+", stored)
    return len(groups) == len(others) and list(map(int, groups)) != list(map(int, others))


def _with_names(
    request: str, names: Sequence[Sequence[str]], facts: Sequence[Fact], *, everything: bool, any_script: bool
) -> tuple[list[Fact], float]:
    """Return (the facts that mention ``names``, how sure that is). Names in different parts of the request ("Anna and
    Ben") are alternatives unless a fact mentions all."""
    if not names:
        return [], 0.0
    spread = SURE_IN_ANY_SCRIPT if everything or any_script else SURE
    texts = [fact.found_by for fact in facts]
    forms = [[tuple(also.split()) for also in aliases_of(" ".join(name), texts)] for name in names]
    scores = [[max(name_mentioned(text, form) for form in each) for each in forms] for text in texts]
    parts = [part for part in _AND.split(request) if any(all(word in part for word in name) for name in names)]
    if len(names) > 1 and len(parts) > 1 and (everything or not any(min(each) >= OTHER_SCRIPT for each in scores)):
        return [fact for fact, each in zip(facts, scores, strict=True) if max(each) >= OTHER_SCRIPT], OTHER_SCRIPT
    sums = [sum(each) for each in scores]
    best = max(sums, default=0.0)
    if best <= HALF * len(names):
        return [], 0.0
    return [fact for fact, each in zip(facts, sums, strict=True) if 0 < each >= best - spread], min(
        1.0, best / len(names)
    )
