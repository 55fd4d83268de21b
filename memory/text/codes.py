"""Codes in any spelling: ``NOVA-7``, ``Nova 7`` and ``nova_7`` are equal; ``TKT-9`` and ``TKT-90`` are not. The
canonical form has separators only between numbers: ``INV-100-2`` is not ``INV-1002``."""

import re
from functools import lru_cache
from typing import Final

from memory.text.folding import fold_apart
from memory.text.word_lists import CALENDAR, FUNCTION

# The maximum number of neighbouring words that may form one code.
MAX_WORDS: Final = 4
_TOKEN: Final = re.compile(r"[^\W_]+(?:[-_/.:#+][^\W_]+)*")
# "maxRetries" and "OrderSyncWorker" are several words, "JavaScript" is one.
_HUMPED: Final = re.compile(r"(?<!\w)(?:[a-z]+(?:[A-Z][a-z]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+){2,})(?!\w)")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_VERSION: Final = re.compile(r"(?:version|release|ver|v)?\s?((?<!\d)\d+(?:\.\d+){2,}|(?<=[vV])\d+\.\d+)")
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
# The text between two words of one code.
_GAP: Final = re.compile(r"\s{0,2}(?:(?:no|nr|num|number|nummer|id)\b\.?\s?)?(?:[#:(]\s?)?")
# "5th", "10am", "16gb": a number with its unit.
_MEASURE: Final = re.compile(r"\d+(?:st|nd|rd|th|[ap]m|[a-z]{1,2}|min|hrs?|kwh|mhz|ghz)")
_LABELS: Final = frozenset({"no", "nr", "num", "number", "nummer", "id"})
# Groups of letters and digits, such as the numbers of cards, keys and parcels.
_GROUPS: Final = re.compile(
    r"(?<![^\W_])(?:[a-z]{0,3}\d[a-z\d]*|[a-z]{1,3})(?:[ ./_()#-]{1,2}(?:[a-z]{0,3}\d[a-z\d]*|[a-z]{1,3}(?![^\W_])))+"
    r"(?![^\W_])"
)
_SOLID: Final = re.compile(r"(?<![^\W_])[a-z\d]*\d[a-z\d]*(?![^\W_])")
LEAST_SOLID: Final = 6
LEAST_NUMBER: Final = 7
MAX_GROUPS: Final = 8


@lru_cache(maxsize=8_192)
def codes_find(text: str) -> dict[str, int]:
    """Return a dict from the canonical form of each code in ``text`` to its number of runs. A run consists only of
    letters or only of digits. Up to ``MAX_WORDS`` neighbouring words also form a code if they have both letters and
    digits, and none of them is a code by itself. Linear time."""
    folded = fold_apart(humps_split(text, "_"))
    tokens = [(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(folded)]
    tokens = [token for token in tokens if token[0] not in _LABELS]
    found = {f"v{version[1].replace('.', '-')}": 3 for version in _VERSION.finditer(folded)}
    for first, (word, _start, end) in enumerate(tokens):
        runs = _runs(word)
        if _is_code(word):
            found[_joined(runs)] = len(runs)
            continue
        if word in FUNCTION or word in CALENDAR:
            continue
        for number in range(first + 1, min(first + MAX_WORDS, len(tokens))):
            follower, start, follower_end = tokens[number]
            if not _GAP.fullmatch(folded[end:start]) or follower in FUNCTION or _is_code(follower):
                break
            runs, end = [*runs, *_runs(follower)], follower_end
            if any(run.isdigit() for run in runs) and not all(run.isdigit() for run in runs):
                found[_joined(runs)] = len(runs)
    return found


@lru_cache(maxsize=8_192)
def codes_solid(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets of the long codes in ``text``, without separators, such as ``inv1002``. The first set has the
    solid codes, which ``text`` writes without separators. The second set has the grouped codes, which ``text`` writes
    in groups. A solid code of one text matches an equal code in either set of another text. To compare two grouped
    codes, use ``codes_find``."""
    folded = fold_apart(text)
    solid = {match.group() for match in _SOLID.finditer(folded)}
    grouped: set[str] = set()
    for match in _GROUPS.finditer(folded):
        words = re.findall(r"[a-z\d]+", match.group())
        for first in range(len(words)):
            for last in range(first + 2, min(first + MAX_GROUPS, len(words)) + 1):
                if FUNCTION.isdisjoint((words[first], words[last - 1])):
                    grouped.add("".join(words[first:last]))
    # The groups of a long number have no meaning, so the number also counts as solid.
    solid |= {code for code in grouped if code.isdigit() and len(code) >= LEAST_NUMBER}
    return frozenset(filter(_long, solid)), frozenset(filter(_long, grouped))


def _long(code: str) -> bool:
    return len(code) >= LEAST_SOLID and sum(map(str.isdigit, code)) >= 2


def humps_split(text: str, joint: str) -> str:
    """Return ``text`` with ``joint`` between the words of names such as ``maxRetries``."""
    return _HUMPED.sub(lambda found: _HUMP.sub(joint, found[0]), text)


def code_canonical(word: str) -> str:
    """Return the canonical form of one folded word; empty if it is not a code."""
    return _joined(_runs(word)) if _is_code(word) else ""


def _runs(word: str) -> list[str]:
    return [run.lstrip("0") or "0" if run.isdigit() else run for run in _RUN.findall(word)]


def _is_code(word: str) -> bool:
    if _MEASURE.fullmatch(word):
        return False
    return (any(map(str.isdigit, word)) and any(map(str.isalpha, word))) or "_" in word or word.count("-") > 1


def _joined(runs: list[str]) -> str:
    return "".join(
        f"-{run}" if before.isdigit() and run.isdigit() else run for before, run in zip(["", *runs], runs, strict=False)
    )
