"""Chooses the facts that a request means: by keys and names where it has them, else by rank. Few guards, no queries.

The rank of a fact is a sum of four measures, each from 0 to 1: how near its vector is to the request and to the new
text, and the shares of the request's words and numbers that it holds. The weights lie in the middle of a wide plateau
(docs/benchmarks.md)."""

import ipaddress
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from memory.finding.facts import Fact
from memory.text.aliases import aliases_of
from memory.text.folding import UNSPACED_SIGNS, fold, latin
from memory.text.identifiers.tables import MONTHS
from memory.text.negation import negated, opposites
from memory.text.stems import Rarity, numbers, same_text, stem, stems, subject
from memory.text.word_lists import FUNCTION, wordset

# The weights of the measures. The nearness to the request has the weight 1.
NEW_TEXT: Final = 0.7
WORDS, NUMBERS = 0.45, 0.45
# A fact about something of the requested subject counts this much less: "Anna's sister lives in Rome" for Anna.
OTHER_SUBJECT: Final = 0.2
# A negated request prefers negated facts by this.
NEGATED: Final = 0.25
# The least relevance (nearness and half the share of words) of a fact to release or purge. Unrelated texts have 0.
RELEVANT: Final = 0.25
# The least relevance of a replaced fact, and the least of that and its nearness to the new text.
REPLACED_LEAST, REPLACED_NEAR = 0.15, 0.25
# Facts whose scores differ by at most this are equally good.
EQUAL: Final = 0.14
# Two facts whose vectors are at least this near state the same attribute, perhaps of two subjects.
ALIKE: Final = 0.5
# The least share of a request's words, by their rarity, that "everything about the van" finds.
LEAST_SHARE: Final = 0.3
# How sure a name is: as it is, inflected or with its umlauts written out, in another script, or not as a name at all.
WHOLE, INFLECTED, OTHER_SCRIPT, COMMON = 1.0, 0.9, 0.8, 0.3
# Facts whose sureness is at most this below the best mention the name. A purge takes other scripts as well.
SURE, SURE_IN_ANY_SCRIPT = 0.15, 0.25
# The confidence of facts with the key of a request that has other words, which no fact with the key has.
DOUBTED: Final = 0.3
# The most neighbouring words that form one key: "DE89 3704 0044 0532 0130 00".
MAX_JOINED: Final = 9

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
_AND: Final = re.compile(r"\s*(?:[,;&、和と]|\b(?:and|or|und|oder|y|et|ou|e|и|или)\b)\s*", re.IGNORECASE)
# Words between a thing and what has it: "the refund of KX-8841".
_OF: Final = re.compile(
    r"\b(?:of|for|about|from|with|to|von|vom|zu|für|aus|de|del|di|da|du|из|от|для|о|об)\b|['’]s\b|[的の의]",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    r"\b(?:before|prior\s+to|until|(?:earlier|older)\s+than)\s+(?:[a-z]+\s+)?(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE
)
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

    def alike(self, one: Fact, other: Fact, /) -> float:
        """Return how near two facts are."""


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
    body, kept = request_divide(request)
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
    names = names_of(_hidden(undated, spans), [fact.found_by for fact in found or facts])
    mentioned, sure = _with_names(undated, names, found or facts, everything=everything, any_script=any_script)
    if everything and names and not found and not mentioned:
        return Choice()
    pool = mentioned or found or facts
    rest = frozenset(stems(_hidden(undated, spans)))
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
            asks = rest - known - _REMARKS and (_OF.search(undated) or not body.isascii())
            if not known or (asks and not body.isascii()):
                return chosen(_whole_records(pool, facts, undated, names), ambiguous=bool(asks))
            if known == rest and (those := [fact for fact in pool if known <= _words(fact)]):
                return chosen(those)
    elif known and not states and (everything or len(rest) == 1 or _UNSPACED_RUN.fullmatch(plain)):
        return chosen(_with_most(known, pool, body))
    valued = _hidden(undated, spans)
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
    if rivals := [one for one in close if _rivals(best.fact, one.fact, asked, near)]:
        return Choice([best, *rivals], ambiguous=True, ranked=ranked)
    same = [one for one in further if not _words(one.fact) - _words(best.fact) - asked]
    return Choice([best, *(one for one in same if best.score - one.score <= 3 * EQUAL)], ranked=ranked)


def replaced(request: str, new_text: str, facts: Sequence[Fact], near: Nearness) -> Choice:
    """Return the fact that ``new_text`` replaces and ``request`` describes; several if the request says so."""
    facts = [fact for fact in facts if not same_text(fact.text, new_text) and not opposites(request, fact.text)]
    if exact := [fact for fact in facts if same_text(fact.text, request)]:
        return Choice([Candidate(fact, exact=True) for fact in exact])
    found, _spans, _unknown = _with_keys(request, facts)
    names = [name for name in names_of(request, [fact.found_by for fact in facts]) if _mentions(new_text, name)]
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
    best, further = ranked[0], _of_other_sentences(ranked)
    close = [one for one in further if best.score - one.score <= EQUAL]
    known = frozenset(stems(request)) | frozenset(stems(new_text))
    if _SEVERAL_OLD.search(fold(request)):
        stated = _words(best.fact) & frozenset(stems(new_text))
        return Choice([best, *(one for one in close if stated <= _words(one.fact))], ranked=ranked)
    rivals = [one for one in close if _rivals(best.fact, one.fact, known, near)]
    return Choice([best, *rivals], ambiguous=bool(rivals), ranked=ranked)


def request_divide(request: str) -> tuple[str, str]:
    """Return (what a request means, what it excepts: "everything about Ada except her phone number")."""
    body, *kept = _EXCEPT.split(" ".join(request.split()), maxsplit=1)
    return body, kept[0] if kept else ""


def asks_for_all(request: str) -> bool:
    """Return whether a request asks for everything about something."""
    return bool(_ALL.search(fold(request))) and "who" not in fold(request).split()


def dates_hidden(request: str) -> str:
    """Return ``request`` with spaces in place of its dates and times."""
    return _hidden(request, (span for key, span in keys_of(request).items() if key.startswith("date:")))


# Ranking


def _ranked(request: str, new_text: str, facts: Sequence[Fact], near: Nearness) -> list[Candidate]:
    if not facts:
        return []
    rarity = Rarity(fact.found_by for fact in facts)
    asked, wanted, denied = frozenset(stems(request)), numbers(dates_hidden(request)), negated(request)
    ranked = []
    for fact, (meaning, new_meaning) in zip(facts, near.similarities(facts), strict=True):
        own = _words(fact)
        held = len(wanted & numbers(fact.found_by)) / len(wanted) if wanted else 0.0
        share = rarity.share(asked, own)
        relevance = meaning + share / 2
        score = meaning + NEW_TEXT * new_meaning + WORDS * share
        score += NUMBERS * held
        score += NEGATED * (denied and not new_text and negated(fact.found_by))
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


def _rivals(one: Fact, other: Fact, known: frozenset[str], near: Nearness) -> bool:
    """Return whether two facts state the same of two subjects, and the request does not say of which."""
    if one.topic is other.topic or _words(one) & known != _words(other) & known:
        return False
    mine, others = _subject(one), _subject(other)
    if not mine or not others:
        return False
    mine, others = mine - known, others - known
    return bool(mine and others) and mine != others and near.alike(one, other) >= ALIKE


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
    if not names or any(_mentioned(fact.found_by, name) >= 0.5 for name in names):
        return False
    capitals = frozenset(stems(" ".join(word for word in _tokens(fact.found_by) if word[0].isupper())))
    return bool(capitals & (_subject(fact) or frozenset()) - asked)


def _whole_records(
    chosen: Sequence[Fact], facts: Sequence[Fact], request: str, names: Sequence[Sequence[str]]
) -> list[Fact]:
    """Return ``chosen``, and all facts of each chosen topic with several fields, unless its title is about another
    thing."""
    kept = {id(fact) for fact in chosen}
    whole = set()
    for topic in {fact.topic.id: fact.topic for fact in chosen if len(fact.topic.fields) > 1}.values():
        keys, asked = keys_of(topic.title).keys(), keys_of(request).keys() if request else set()
        others = any(word[0].isupper() for word in _tokens(topic.title)[1:])
        named = any(_mentioned(topic.title, name) >= OTHER_SCRIPT for name in names)
        if keys & asked or named or not (keys or others):
            whole.add(topic.id)
    return [fact for fact in facts if id(fact) in kept or (fact.topic.id in whole and not fact.item)]


# Keys

_TOKEN: Final = re.compile(rf"[^\s,;!?()\[\]{{}}<>\"“”„«»「」、。，！？{UNSPACED_SIGNS}]+")
_EMAIL: Final = re.compile(r"(?<![\w.+'-])\"?[\w.+'-]+\"?@[\w.-]+\w")
_WEB: Final = re.compile(r"(?:[a-z][a-z+.-]*://)?(?:www\d?\.)?((?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:[/?#]\S*)?)")
_IP: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(:\d+)?(/\d+)?")
_SPELLED: Final = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), **dict.fromkeys("‘’`´", "'")})
_UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u2060-\u206f\ufeff]")
_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")
_MONTH: Final = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)",
        r"(?<![\d.-])(?P<d>\d{1,2})(?P<or>[-/.])(?P<m>\d{1,2})[-/.](?P<y>\d{4})(?!\d)",
        (
            rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of| de)?[ -](?P<m>{_MONTH})\b\.?"
            r"(?:,? (?:de )?(?P<y>\d{4}))?"
        ),
        rf"\b(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>\d{{4}}))?",
        r"(?:(?P<y>\d{4})\s?[年년]\s?)?(?P<m>\d{1,2})\s?[月월]\s?(?P<d>\d{1,2})\s?[日일]",
    )
)
_TIME: Final = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2})(?:[:.](?P<m>\d\d))?\s?(?P<half>[ap])\.?m\b\.?|(?<![\d:.])(?P<h24>\d{1,2}):(?P<m24>\d\d)(?![\d:])",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@lru_cache(maxsize=8_192)
def keys_of(text: str) -> dict[str, tuple[int, int]]:
    """Return the canonical keys of ``text`` with their spans: addresses, codes and numbers begin with ``key:``, dates
    and times with ``date:``. Linear time."""
    plain = _spelled(text)
    if len(plain) != len(text):
        # Spans are only right if no character changes its length; that is rare, and they only hide words.
        text = plain
    found: dict[str, tuple[int, int]] = {}
    plain = _dates_find(plain, found)
    for match in _EMAIL.finditer(plain):
        local, _at, domain = match[0].casefold().replace('"', "").strip("'.").rpartition("@")
        found[f"key:{local.partition('+')[0]}@{domain}"] = match.span()
    plain = _EMAIL.sub(_spaces, plain)
    run: list[tuple[str, int, int, bool]] = []
    for token in _TOKEN.finditer(plain):
        word, start, end = _trimmed(token)
        if not word or _address_find(word, start, end, found):
            _run_close(run, found)
            continue
        follows = _TOKEN.search(plain, end)
        numbered = follows is not None and any(map(str.isdigit, follows[0]))
        coded, joins = _code_like(word, numbered=numbered)
        if run and plain[run[-1][2] : start].strip(" ()[]-+/"):
            _run_close(run, found)
        if joins:
            run.append((word, start, end, coded))
        else:
            _run_close(run, found)
    _run_close(run, found)
    return found


def _spelled(text: str) -> str:
    if text.isascii():
        return text.replace("`", "'")
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKC", text).translate(_SPELLED))
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


def _spaces(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _dates_find(text: str, found: dict[str, tuple[int, int]]) -> str:
    """Add the dates and times of ``text`` to ``found``; return the text without them."""
    if not any(map(str.isdigit, text)):
        return text
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month, day = MONTHS.get(parts["m"].casefold(), 0) or int(parts["m"]), int(parts["d"])
            # 03/04/2024 is in April or in March.
            for one, other in {(month, day), (day, month)} if parts.get("or") else {(month, day)}:
                if 1 <= one <= 12 and 1 <= other <= 31:
                    found.setdefault(f"date:{one:02}-{other:02}", match.span())
                    if parts["y"]:
                        found[f"date:{parts['y']}-{one:02}-{other:02}"] = match.span()
        text = pattern.sub(_spaces, text)
    for match in _TIME.finditer(text):
        hour = int(match["h24"] or match["h"])
        if match["half"]:
            hour = hour % 12 + (12 if match["half"] in "pP" else 0)
        found.setdefault(f"date:{hour:02}h{match['m24'] or match['m'] or '00'}", match.span())
    return _TIME.sub(_spaces, text)


def _trimmed(match: re.Match[str]) -> tuple[str, int, int]:
    word = match[0].strip(".,:;'*_")
    start = match.start() + match[0].find(word)
    word = word.removesuffix("'s")
    return word, start, start + len(word)


def _address_find(word: str, start: int, end: int, found: dict[str, tuple[int, int]]) -> bool:
    """Add ``word`` to ``found`` if it is the address of a page or a machine."""
    low = word.casefold()
    web = _WEB.fullmatch(low)
    if web and ("/" in low or low.startswith("www.") or not any(map(str.isdigit, low))):
        address = re.sub(r":(?:80|443)(?=/|$)", "", web[1]).rstrip("/")
        found[f"key:{address}"] = start, end
        _path_add(address.partition("/")[2], start, end, found)
        return True
    if "//" not in low and (labelled := re.fullmatch(r"[a-z]+:(\S{6,})", low)):
        _path_add(labelled[1], start, end, found)
    if machine := _IP.fullmatch(low):
        address = ".".join(str(int(part)) for part in machine.groups()[:4])
        found[f"key:{address}"] = start, end
        if machine[5] or machine[6]:
            found[f"key:{address}{machine[5] or ''}{machine[6] or ''}"] = start, end
        return True
    if low.count(":") >= 2:
        try:
            found[f"key:{ipaddress.ip_address(low).compressed}"] = start, end
        except ValueError:
            return False
        return True
    return False


def _path_add(path: str, start: int, end: int, found: dict[str, tuple[int, int]]) -> None:
    """Add a long path with digits, which is a key without its host too: "10.1234/moss.2021.07"."""
    if len(path) >= 8 and any(map(str.isdigit, path)):
        found.setdefault(f"key:{re.sub(r'[^a-z0-9]', '', path)}", (start, end))


def _code_like(word: str, *, numbered: bool) -> tuple[bool, bool]:
    """Return (whether a word is a key of its own, whether it may be a part of a key with its neighbours). ``numbered``
    says that the next word has a digit."""
    digits, letters = any(map(str.isdigit, word)), word.isalpha()
    inner = re.search(r"\w[-_.:/@#]\w|[a-z][A-Z]", word) is not None
    coded = digits or inner or (letters and word.isupper() and len(word) >= 5) or word[0] in "@#/\\~"
    function = fold(word) in FUNCTION and not (word.isupper() and numbered)
    return coded, coded or (
        letters and not function and (numbered or (len(word) <= 5 and word in (word.upper(), word.lower())))
    )


def _run_close(run: list[tuple[str, int, int, bool]], found: dict[str, tuple[int, int]]) -> None:
    """Add the keys of neighbouring words to ``found``: of each word that is coded, and of words together."""
    for first in range(len(run)):
        for last in range(first, min(len(run), first + MAX_JOINED)):
            part = run[first : last + 1]
            solid = re.sub(r"[\W_]", "", "".join(word for word, *_rest in part)).casefold()
            least = (5 if first == last else 6) if solid.isdigit() else 1 if first == last else 4
            if not any(coded for *_rest, coded in part) or len(solid) < least:
                continue
            span = part[0][1], part[-1][2]
            found.setdefault(f"key:{solid}", span)
            if solid.isdigit() and len(solid) >= 9:
                # A telephone number with and without its country code.
                found.setdefault(f"key:…{solid[-9:]}", span)
    run.clear()


def _hidden(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _with_dates(request: str, facts: Sequence[Fact]) -> tuple[Sequence[Fact], bool, str]:
    """Return (the facts with a date of ``request``, whether there are any, ``request`` without dates). Without such
    facts, return ``facts``. Dates narrow a request; they never make it a request for everything on that day."""
    keys = {key: span for key, span in keys_of(request).items() if key.startswith("date:")}
    plain = _hidden(request, keys.values())
    if limit := _BEFORE.search(request):
        earlier = [fact for fact in facts if any(year < limit["year"] for year in _years(fact.found_by))]
        return earlier or facts, bool(earlier), _hidden(plain, [limit.span()])
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
    counts = [len({span for key, span in widest.items() if key in keys}) for keys in stored]
    most = max(counts)
    # "NOVA-7, NOVA-8" and "everything about NOVA-7 and NOVA-8" are for either of them.
    either = most == 1 or asks_for_all(request) or not stems(_hidden(request, spans))
    least = 1 if len(spans) > 1 and _AND.search(request) and either else most
    found = [fact for fact, count in zip(facts, counts, strict=True) if count >= least]
    groups = [tuple(re.findall(r"\d+", request[start:end])) for start, end in spans]
    alike = [fact for fact in found if any(len(each) > 1 and _grouped(fact.found_by, each) for each in groups)]
    return alike or found, spans, unknown


def _wider(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and one[0] <= other[0] and other[1] <= one[1]


def _grouped(text: str, digits: tuple[str, ...]) -> bool:
    runs = re.findall(r"\d+", text)
    return any(tuple(runs[at : at + len(digits)]) == digits for at in range(len(runs)))


# Names

_WORD: Final = re.compile(
    r"(?<![\w@./-])[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0903\u093a-\u094f])*(?:[-'’](?!s\b)[^\W\d_]+)*(?![\w@]|[./]\w)"
)
_POSSESSIVE: Final = re.compile(r"['’]s\b")
_UNSPACED_RUN: Final = re.compile(f"[{UNSPACED_SIGNS}]+")
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


def names_of(request: str, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names in ``request``, each as its words. A word is a name if it has a capital within the request, or
    if ``texts`` write it with a capital, and never without."""
    request = _POSSESSIVE.sub("  ", request)
    written = {fold(word) for text in texts for word in _tokens(text) if word[0].isupper()}
    common = {fold(word) for text in texts for word in _tokens(text) if word[0].islower()}
    matches = list(_WORD.finditer(request))
    capitals = not request.isupper()
    only = not any(match[0][0].islower() for match in matches)
    names: list[list[str]] = []
    end = -1
    for match in matches:
        word, folded = match[0], fold(match[0])
        if folded in FUNCTION or _UNSPACED_RUN.search(word):
            continue
        first = not request[: match.start()].strip(" \"'“(*")
        named = word[0].isupper() and capitals and (not first or only)
        if not named and folded not in common:
            named = folded in written or any(_same_name(word, fold(other)) for other in _written_alike(word, texts))
        if not named:
            continue
        if names and not request[end : match.start()].strip():
            names[-1].append(word)
        else:
            names.append([word])
        end = match.end()
    return [tuple(name) for name in names]


def _written_alike(word: str, texts: Sequence[str]) -> Iterable[str]:
    """Yield the capitalised words of ``texts`` in another script than ``word``."""
    return (
        other for text in texts for other in _tokens(text) if other[0].isupper() and _script(other) != _script(word)
    )


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
    scores = [[max(_mentioned(text, form) for form in each) for each in forms] for text in texts]
    parts = [part for part in _AND.split(request) if any(all(word in part for word in name) for name in names)]
    if len(names) > 1 and len(parts) > 1 and (everything or not any(min(each) >= OTHER_SCRIPT for each in scores)):
        return [fact for fact, each in zip(facts, scores, strict=True) if max(each) >= OTHER_SCRIPT], OTHER_SCRIPT
    sums = [sum(each) for each in scores]
    best = max(sums, default=0.0)
    if best == 0 or (everything and best < 0.5 * len(names)):
        return [], 0.0
    return [fact for fact, each in zip(facts, sums, strict=True) if 0 < each >= best - spread], min(
        1.0, best / len(names)
    )


def _mentions(text: str, name: Sequence[str]) -> bool:
    return any(_same_name(word, other) for word in name for other in _tokens(text))


@lru_cache(maxsize=16_384)
def _mentioned(text: str, name: Sequence[str]) -> float:
    """Return how sure it is that ``text`` mentions ``name``, from 0 to 1. A word in lower case is hardly a name."""
    total = 0.0
    for word in name:
        sure = [(_same_name(word, other), word[0].isupper() and other[0].islower()) for other in _tokens(text)]
        total += max((COMMON * one if lower else one for one, lower in sure), default=0.0)
    sure_of_all = total / len(name)
    if sure_of_all < OTHER_SCRIPT and _UNSPACED_RUN.search(text):
        sounds = {_skeleton("".join(name)), _skeleton("".join(reversed(name)))}
        if any(len(sound) >= 2 and sound in sounds for sound in map(_skeleton, _pieces(text))):
            return OTHER_SCRIPT
    return sure_of_all


@lru_cache(maxsize=16_384)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(word for word in _WORD.findall(_POSSESSIVE.sub(" ", text)) if fold(word) not in FUNCTION)


@lru_cache(maxsize=1_024)
def _pieces(text: str) -> frozenset[str]:
    """Return what may be a name in scripts without spaces: two to six neighbouring signs."""
    return frozenset(
        run[at : at + size]
        for run in _UNSPACED_RUN.findall(fold(text))
        for at in range(len(run))
        for size in range(2, 7)
        if at + size <= len(run)
    )


@lru_cache(maxsize=65_536)
def _same_name(one: str, other: str) -> float:
    """Return how sure it is that two words are one name."""
    left, right = fold(one), fold(other)
    if left == right:
        return WHOLE
    scripts = {_script(one), _script(other)}
    declined = scripts & {"CYRILLIC", "GREEK"}
    if len(scripts) == 1:
        spelled = one.casefold().translate(_UMLAUTS) == other.casefold().translate(_UMLAUTS)
        return (
            INFLECTED if spelled or (declined and min(len(left), len(right)) > 2 and stem(left) == stem(right)) else 0.0
        )
    ends = {word: bool(_VOWEL_LAST.search(latin(word))) for word in (one, other)}
    if any(_script(word) in declined and not ends[word] for word in ends) and any(ends.values()):
        # Иван is not Ivana. Ивана may be a case of either.
        return 0.0
    sound = _skeleton(one)
    if len(sound) >= 2 and sound == _skeleton(other):
        return OTHER_SCRIPT
    if declined:
        sound = _skeleton(stem(left) if _script(one) in declined else left)
        if len(sound) >= 2 and sound == _skeleton(stem(right) if _script(other) in declined else right):
            return OTHER_SCRIPT
    return 0.0


@lru_cache(maxsize=16_384)
def _script(word: str) -> str:
    sign = next(filter(str.isalpha, word), "a")
    return "LATIN" if sign < "\u0250" else unicodedata.name(sign, "LATIN").split()[0]


@lru_cache(maxsize=16_384)
def _skeleton(word: str) -> str:
    """Return the consonants of a word in Latin letters, with one spelling for each sound, and its first vowel."""
    sound = re.sub("[^a-z]", "", latin(word))
    for one, other in _SOUNDS:
        sound = sound.replace(one, other)
    sound = re.sub("^[eiouy]", "a", sound)
    return re.sub(r"(.)\1+", r"\1", sound[:1] + re.sub("[aeiouy]", "", sound[1:]))
