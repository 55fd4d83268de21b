"""Narrows facts by evidence: those with the dates, the keys or the names of a request."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from memory.finding.facts import Fact
from memory.finding.request import BEFORE, asks_for_all
from memory.text.aliases import aliases_of
from memory.text.folding import fold
from memory.text.keys import Spans, codes_of, dates_of, keys_of, spans_hidden, spelled
from memory.text.name_match import OTHER_SCRIPT, name_mentioned, name_spelled
from memory.text.stems import stems

# Anna Berg is not meant by "Berg" alone.
HALF: Final = 0.5
# Facts whose sureness is at most this below the best mention the name. A purge takes other scripts as well.
SURE, SURE_IN_ANY_SCRIPT = 0.15, 0.25
_AND: Final = re.compile(r"(?:(?<!\s)\s+)?(?:[,;&、和と]|\b(?:and|or|und|oder|y|et|ou|e|и|или)\b)\s*", re.IGNORECASE)
YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def facts_with_dates(request: str, facts: Sequence[Fact]) -> tuple[Sequence[Fact], bool, str]:
    """Return (the facts with a date of ``request``, whether there are any, ``request`` without dates). Without such
    facts, return ``facts``. A date with a year counts before one without."""
    keys = dates_of(request)
    plain = spans_hidden(request, keys.values())
    if limit := BEFORE.search(request):
        earlier = [fact for fact in facts if any(year < limit["year"] for year in YEAR.findall(fact.found_by))]
        return earlier or facts, bool(earlier), spans_hidden(plain, [limit.span()])
    for wanted in ({key for key in keys if len(key) > 10}, keys.keys()):
        if held := [fact for fact in facts if wanted & keys_of(fact.found_by).keys()]:
            return held, True, plain
    return facts, False, plain


def facts_with_keys(request: str, facts: Sequence[Fact]) -> tuple[list[Fact], list[tuple[int, int]], bool]:
    """Return (the facts with most keys of ``request``, the spans of these keys in the request, whether the request has
    a key that no fact has). Facts whose digits are grouped as in the request come before others: 2024/77, 20/2477."""
    asked = codes_of(request)
    if not asked:
        return [], [], False
    stored = [keys_of(fact.found_by) for fact in facts]
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
    within = [_keys_within(span, asked) for span in spans]
    counts = [sum(_holds(keys, whole, bare) for whole, bare in within) for keys in stored]
    most = max(counts)
    # "NOVA-7, NOVA-8" and "everything about NOVA-7 and NOVA-8" are for either of them.
    either = most == 1 or asks_for_all(request) or not stems(spans_hidden(request, spans))
    least = 1 if len(spans) > 1 and _AND.search(request) and either else most
    found = [fact for fact, count in zip(facts, counts, strict=True) if count >= least]
    alike = [fact for fact in found if not any(_grouped_otherwise(request, key, fact) for key in widest)]
    return alike or found, spans, unknown


def _keys_within(span: tuple[int, int], asked: Spans) -> tuple[set[str], set[str]]:
    """Return (the keys at ``span``, the same numbers without the words before them: "20455" for "invoice 20455")."""
    whole = {key for key, place in asked.items() if place == span}
    numbers = {_digits(key) for key in whole}
    bare = {
        key
        for key, place in asked.items()
        if _wider(span, place) and _digits(key) in numbers and len(key) >= len("key:b204")
    }
    return whole, bare


def _holds(places: Spans, whole: set[str], bare: set[str]) -> bool:
    """Return whether a fact has one of the keys ``whole``, or one of ``bare`` without a word before it: "invoice 20455"
    finds "20455", but not "order 20455"."""
    if whole & places.keys():
        return True
    alone = [places[key] for key in bare & places.keys()]
    return any(not any(end == at[1] and start < at[0] for start, end in places.values()) for at in alone)


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


@dataclass(slots=True)
class Mentioned:
    """The facts that mention the names of a request, and those that perhaps do, in another script or spelling. By the
    id of a fact, ``sure`` is from 0 to 1, and ``spellings`` has the names as the fact writes them, if otherwise."""

    facts: list[Fact] = field(default_factory=list)
    perhaps: list[Fact] = field(default_factory=list)
    sure: dict[int, float] = field(default_factory=dict)
    spellings: dict[int, str] = field(default_factory=dict)


def facts_with_names(
    request: str, names: Sequence[Sequence[str]], facts: Sequence[Fact], *, everything: bool, any_script: bool
) -> Mentioned:
    """Return the facts that mention ``names``. Names in different parts of the request ("Anna and Ben") are
    alternatives unless a fact mentions all."""
    if not names:
        return Mentioned()
    spread = SURE_IN_ANY_SCRIPT if everything or any_script else SURE
    texts = [fact.found_by for fact in facts]
    forms = [[tuple(also.split()) for also in aliases_of(" ".join(name), texts)] for name in names]
    scores = [[max(name_mentioned(text, form) for form in each) for each in forms] for text in texts]
    parts = [part for part in _AND.split(request) if any(all(word in part for word in name) for name in names)]
    if len(names) > 1 and len(parts) > 1 and (everything or not any(min(each) >= OTHER_SCRIPT for each in scores)):
        sums, least, most = [max(each) for each in scores], OTHER_SCRIPT, 1
    else:
        sums, most = [sum(each) for each in scores], len(names)
        best = max(sums, default=0.0)
        if best <= HALF * len(names):
            return Mentioned()
        least = max(best - spread, 0.01)
    found = Mentioned()
    for fact, each in zip(facts, sums, strict=True):
        if each >= min(least, OTHER_SCRIPT * most):
            (found.facts if each >= least else found.perhaps).append(fact)
            found.sure[id(fact)] = min(1.0, each / most)
            spelled_so = (
                name_spelled(fact.found_by, name) for name in names if fold(" ".join(name)) not in fold(fact.found_by)
            )
            found.spellings[id(fact)] = ", ".join(filter(None, spelled_so))
    return found
