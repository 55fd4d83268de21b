"""Strong evidence, which outweighs the rank: facts with the identifiers, codes, numbers or names of a request."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from memory.finding.facts import Fact
from memory.finding.request import GENERIC
from memory.text.aliases import aliases_find
from memory.text.codes import codes_find, codes_solid
from memory.text.folding import fold
from memory.text.grammar import words_tag
from memory.text.identifiers import STRONG, Identifier, identifiers_find
from memory.text.names import mentions_find
from memory.text.proper_names import name_meant
from memory.text.stems import UNSPACED, numbers, stem, stems
from memory.text.word_lists import CALENDAR, FUNCTION

_CAPITALISED: Final = re.compile(r"[^\W\d_]+")
_NAME_WORD: Final = re.compile(r"(?<![\w@])[^\W\d_]+(?:[-'’](?!s\b)[^\W\d_]+)*(?![\w@]|[./–-]\w)")
_DEFINITE: Final = re.compile(r"\b(?:the|my|our|your|his|her|their)\s$", re.IGNORECASE)
_HYPHENED: Final = re.compile(r"(?<![^\W\d_])[^\W\d_]+(?:-[^\W\d_]+)+")
_NAME_BEFORE: Final = re.compile(r"(?<!\w)([A-ZÀ-Þ][^\W\d_]+) $")
_NAME_AFTER: Final = re.compile(r" ([A-ZÀ-Þ][^\W\d_]+)")
_DIGITS: Final = re.compile(r"\d+(?:[.,:/-]\d+)+")
BEFORE: Final = re.compile(
    r"\b(?:before|prior\s+to|until|(?:earlier|older)\s+than)\s+(?P<date>(?:[a-z]+\s+)?(?:19|20)\d\d)\b", re.IGNORECASE
)
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_PARTICLE: Final = re.compile(r"(?:さん|様|くん|ちゃん)?[はがのをにもとで은는이가의를을과와도的在]+$")
_AND: Final = re.compile(
    r"(?:(?<!\s)\s+)?(?:[,;&、和と]|(?<!\w)(?:and|or|und|oder|y|et|ou|e|и|или)(?!\w))\s*", re.IGNORECASE
)
# How many times aliases are followed: "Bob" is also "Robert", who is also "R. Miller".
ALIAS_ROUNDS: Final = 3
# The confidence of a mention, by its form. "Анной" is inflected; "Dmitriy" may be Дмитрий in Latin letters.
_CONFIDENCE: Final = {"whole": 1.0, "inflected": 0.9, "tagged": 0.9, "latin": 0.8}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that contain identifiers or names of a request. ``words`` are these identifiers or names, ``covered``
    are the stems of ``words``, and ``confidence`` is the probability that the facts mention ``words``."""

    facts: tuple[Fact, ...]
    words: tuple[str, ...]
    covered: frozenset[str]
    confidence: float = 1.0


def undated(text: str) -> str:
    """Return ``text`` without its dates and times. A request for facts before a date is returned unchanged."""
    if BEFORE.search(text):
        return text
    for one in reversed(identifiers_find(text)):
        if one.kind in ("date", "datetime", "time"):
            text = f"{text[: one.start]} {text[one.end :]}"
    return " ".join(text.split())


def facts_with_identifiers(request: str, facts: Sequence[Fact]) -> Evidence | None:
    """Return the facts that share the most identifiers with ``request``, in any spelling; None if no fact shares
    one."""
    found = _widest(request)
    for group in ([one for one in found if one.kind in STRONG], found):
        keys = [one.search_keys for one in group]
        if keys and (held := _with_most(facts, partial(_shared_count, keys))):
            words = tuple(one.text for one in group)
            return Evidence(held, words, _stems_of(words))
    wanted = codes_find(request)
    if wanted and (
        held := _with_most(facts, lambda fact: max((wanted[one] for one in _shared(wanted, fact)), default=0))
    ):
        codes = {one for fact in held for one in _shared(wanted, fact)}
        return Evidence(held, tuple(codes), _stems_within(request, codes))
    solid, grouped = codes_solid(request)
    if not solid | grouped:
        return None
    there = [codes_solid(fact.found_by) for fact in facts]
    held = tuple(
        fact
        for fact, (solid_there, grouped_there) in zip(facts, there, strict=True)
        if solid & (solid_there | grouped_there) or grouped & solid_there
    )
    if not held:
        return None
    return Evidence(held, tuple(solid | grouped), frozenset(one for one in stems(request) if re.search(r"\d", one)))


def facts_with_any(
    find: Callable[[str, Sequence[Fact]], Evidence | None], request: str, facts: Sequence[Fact]
) -> Evidence | None:
    """Divide ``request`` at "and", "or" and commas ("Anna and Ben"), and return what ``find`` finds for any part. If
    ``find`` finds nothing for the whole request, return None."""
    parts = [part for part in _AND.split(request) if part.strip()]
    one = find(request, facts)
    if one is None or len(parts) < 2:
        return one
    found = [held for held in (find(part, facts) for part in parts) if held]
    if len(found) < 2:
        return one
    kept = {id(fact) for held in found for fact in held.facts}
    return Evidence(
        tuple(fact for fact in facts if id(fact) in kept),
        tuple(word for held in found for word in held.words),
        frozenset().union(*(held.covered for held in found)),
        min(held.confidence for held in found),
    )


def identifier_stems(request: str) -> frozenset[str]:
    """Return the stems of ``request`` that are part of an identifier or a code."""
    return _stems_of(one.text for one in _widest(request)) | _stems_within(request, codes_find(request))


def _stems_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(part for word in words for part in stems(word))


def _stems_within(request: str, codes: Iterable[str]) -> frozenset[str]:
    return frozenset(one for one in stems(request) if any(one in code for code in codes))


def facts_with_numbers(request: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """If the request is like "before 2022" and there are facts with an earlier date, return these facts. Otherwise
    return the facts that share the most numbers with ``request``, or all facts if no fact shares a number."""
    if limit := BEFORE.search(request):
        (until, *_rest) = _dates(limit["date"])
        earlier = tuple(
            fact for fact in facts if any("" < date[: len(until)] < until for date in _dates(fact.found_by))
        )
        if earlier:
            return earlier
    wanted = numbers(request)
    held = _with_most(facts, lambda fact: len(wanted & numbers(fact.found_by))) if wanted else ()
    return held or tuple(facts)


def _dates(text: str) -> list[str]:
    """Return the dates of ``text`` as complete or partial ISO dates: 2024, 2024-03, 2024-03-05. If there are none,
    return one empty text."""
    found = [one for one in identifiers_find(text) if one.kind in ("date", "datetime")]
    dates = [one.canonical[:10] for one in found if one.canonical[:1].isdigit()]
    covered = " ".join(one.text for one in found)
    return dates + [year for year in _YEAR.findall(text) if year not in covered] or [""]


def facts_with_names(request: str, facts: Sequence[Fact], *, spread: float = 0.15) -> Evidence | None:
    """Return the facts that mention the names of ``request``; None if no fact mentions a name. Facts whose confidence
    is more than ``spread`` below the highest are left out."""
    texts = [fact.found_by for fact in facts]
    names = names_find(request, texts)
    if not names:
        return None
    _names, common = _names_and_common_words(tuple(texts))
    scores = [0.0] * len(facts)
    for name in names:
        also = dict.fromkeys(aliases_of(name, texts), 1.0)
        # "Romashka" matches «Ромашка», which matches «Ромашкой».
        for text in texts:
            for hit in mentions_find(text, name):
                if hit.how == "latin":
                    also.setdefault(text[hit.start : hit.end], _CONFIDENCE["latin"])
        for at, text in enumerate(texts):
            scores[at] += max(sure * _named(text, one, common) for one, sure in also.items())
    best = max(scores, default=0.0)
    if best <= 0:
        return None
    held = tuple(fact for fact, score in zip(facts, scores, strict=True) if score >= best - spread)
    return Evidence(held, tuple(names), _stems_of(names), min(1.0, best))


def name_mentioned(name: str, fact: Fact) -> bool:
    """Return whether a fact mentions a name, or an alias that the fact itself states for the name."""
    text = fact.found_by
    return any(_named(text, also, frozenset()) > 0 for also in aliases_of(name, [text]))


def names_find(request: str, texts: Sequence[str]) -> list[str]:
    """Return the names in a request: capitalised words, and words that ``texts`` write as names. In scripts without
    spaces, a part of the request is a name if one of ``texts`` begins with it."""
    names, common = _names_and_common_words(tuple(texts))
    hyphened = {fold(word) for text in texts for word in _HYPHENED.findall(text)}
    called = {fold(name) for text in texts for pair in _aliases(text) for name in pair}
    only = not any(match.group()[0].islower() for match in _NAME_WORD.finditer(request))
    found: list[str] = []
    run: list[re.Match[str]] = []

    def close() -> None:
        if run:
            found.append(request[run[0].start() : run[-1].end()])
            run.clear()

    shouted = request.isupper()
    for match in _NAME_WORD.finditer(request):
        word, folded = match.group(), fold(match.group())
        capital = word[0].isupper() and not shouted
        first = not request[: match.start()].strip(" \"'“(*")
        if (
            folded in FUNCTION
            or folded in CALENDAR
            or (stem(folded) in GENERIC and not capital)
            or UNSPACED.search(word)
        ):
            close()
            continue
        if first:
            name = folded in names or (capital and (only or (folded not in common and _begins_with_name(request))))
        else:
            name = capital or (folded in names and folded not in common)
        # "the PIN" is not a name.
        named = (name or folded in called or folded in hyphened) and not (
            word.isupper() and _DEFINITE.search(request[: match.start()])
        )
        if not named or (run and request[run[-1].end() : match.start()].strip()):
            close()
        if named:
            run.append(match)
    close()
    codes = codes_find(request)
    found = [name for name in found if not any(fold(name) in code for code in codes)]
    if not found and _DIGITS.fullmatch(request.strip()):
        found = [request.strip()]
    if not found:
        # "eve" is also a common word. It is a name if a text writes it as one.
        found = [
            match.group().title()
            for match in _NAME_WORD.finditer(request)
            if fold(match.group()) in names & common - FUNCTION and not _DEFINITE.search(request[: match.start()])
        ]
    if UNSPACED.search(request):
        found += filter(None, (_prefix_shared(text, request) for text in texts))
    return list(dict.fromkeys(found))


def aliases_of(name: str, texts: Sequence[str]) -> list[str]:
    """Return ``name`` and its aliases according to ``texts``."""
    known = {fold(name): name}
    for _round in range(ALIAS_ROUNDS):
        before = len(known)
        aliases_add(known, known, texts)
        if len(known) == before:
            break
    return list(known.values())


def aliases_add(known: dict[str, str], among: Container[str], texts: Iterable[str]) -> None:
    """Add to ``known`` the aliases that ``texts`` state for the names in ``among``. ``known`` maps the folded form of a
    name to the name; ``among`` has folded forms."""
    for one, other in (pair for text in texts for pair in _aliases(text)):
        for this, that in ((one, other), (other, one)):
            if fold(this) in among:
                known.setdefault(fold(that), that)


_aliases = lru_cache(maxsize=8_192)(lambda text: tuple(aliases_find(text)))


def _with_most(facts: Sequence[Fact], count: Callable[[Fact], int]) -> tuple[Fact, ...]:
    counts = [count(fact) for fact in facts]
    most = max(counts, default=0)
    return tuple(fact for fact, number in zip(facts, counts, strict=True) if number == most) if most else ()


@lru_cache(maxsize=8_192)
def _stored_keys(text: str) -> frozenset[str]:
    return frozenset(key for one in identifiers_find(text) for key in one.stored)


def _widest(text: str) -> list[Identifier]:
    """Return the identifiers of ``text``, except codes, plain numbers, and identifiers inside a longer one."""
    found = [one for one in identifiers_find(text) if one.kind in STRONG - {"code"} | {"date", "datetime", "time"}]
    return [one for one in found if not any(_inside(one, other) for other in found)]


def _inside(one: Identifier, other: Identifier) -> bool:
    return other.start <= one.start and one.end <= other.end and len(other.text) > len(one.text)


def _shared_count(keys: Sequence[frozenset[str]], fact: Fact) -> int:
    return sum(bool(one & _stored_keys(fact.found_by)) for one in keys)


def _shared(codes: dict[str, int], fact: Fact) -> set[str]:
    return codes.keys() & codes_find(fact.found_by)


# At most this number of texts that begin with the same word are parsed to decide whether the word is a name. Parsing
# takes a millisecond for each text.
MAX_TAGGED = 5


@lru_cache(maxsize=64)
def _names_and_common_words(texts: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return (the words that ``texts`` write as names, the words that they write in lower case)."""
    names: set[str] = set()
    common: set[str] = set()
    tagged: Counter[str] = Counter()
    for text in texts:
        for match in _CAPITALISED.finditer(text):
            word = match.group()
            if not word[0].isupper():
                common.add(word)
                continue
            before = text[: match.start()].rstrip()
            if before:
                if before[-1] not in '.!?:;"“(':
                    names.add(fold(word))
            elif fold(word) not in names and tagged[fold(word)] < MAX_TAGGED:
                tagged[fold(word)] += 1
                if _begins_with_name(text):
                    names.add(fold(word))
    return frozenset(names), frozenset(map(fold, common))


@lru_cache(maxsize=8_192)
def _begins_with_name(text: str) -> bool:
    words = [word for word in words_tag(text[:200]) if word.text[:1].isalnum()]
    if not words or not words[0].text[:1].isupper():
        return False
    first, after = words[0], words[1] if len(words) > 1 else None
    if first.tag in ("NP0", "UNC") or (first.text.isupper() and len(first.text) > 1):
        return True
    followed = after is not None and (after.text in ("'s", "’s") or after.text[:1].isupper())
    return followed and first.tag not in ("AT0", "DPS", "DT0", "PRP", "AVQ", "PNQ", "CJC", "CJS", "PNP")


def _named(text: str, name: str, common: frozenset[str]) -> float:
    """Return the confidence that ``text`` mentions ``name``; it is lower if ``text`` has only a part of the name. If
    ``common`` contains the name as an ordinary word, only mentions in the form of a name count."""
    hits = mentions_find(text, name)
    if name[:1].isupper() and name.isascii() and fold(name) in common:
        hits = tuple(hit for hit in hits if name_meant(text, hit))
    if hits:
        return max(_CONFIDENCE[hit.how] for hit in hits)
    words = [word for word in name.split() if len(word) > 1]
    if any(_other_bearer(text, word, words) for word in words):
        return 0.0
    return 0.85 * sum(_named(text, word, common) > 0 for word in words) / len(words) if len(words) > 1 else 0.0


def _other_bearer(text: str, word: str, name: Sequence[str]) -> bool:
    """Return whether ``word`` belongs to another name in ``text``: "Elena Berg" instead of "Karin Berg"."""
    known = {fold(part) for part in name}
    neighbours = [
        found
        for hit in mentions_find(text, word)
        for found in (_NAME_BEFORE.search(text[: hit.start]), _NAME_AFTER.match(text[hit.end :]))
        if found
    ]
    return any(fold(found[1]) not in known and fold(found[1]) not in FUNCTION for found in neighbours)


def _prefix_shared(text: str, request: str) -> str:
    if not text or not UNSPACED.match(text[0]):
        return ""
    length = next((at for at in range(min(12, len(text)), 1, -1) if text[:at] in request), 0)
    name = _PARTICLE.sub("", text[:length])
    return name if len(name) > 1 else ""
