"""Finds the canonical keys of a text: addresses, codes, numbers, dates. Two spellings of one have the same key."""

import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from memory.text.folding import UNSPACED_SIGNS, digits_plain, fold
from memory.text.identifiers.tables import MONTHS
from memory.text.word_lists import FUNCTION

# The most neighbouring words that form one key: "DE89 3704 0044 0532 0130 00".
MAX_JOINED: Final = 9
_TOKEN: Final = re.compile(rf"[^\s,;!?()\[\]{{}}<>\"“”„«»「」、。，！？{UNSPACED_SIGNS}]+")
_EMAIL: Final = re.compile(r"(?<![\w.+'-])\"?[\w.+'-]+\"?@[\w.-]+\w")
_WEB: Final = re.compile(r"(?:[a-z][a-z+.-]*://)?(?:www\d?\.)?((?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:[/?#]\S*)?)")
_IP: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(:\d+)?(/\d+)?")
_SPELLED: Final = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), **dict.fromkeys("‘’`´", "'")})
_WRITTEN_OUT: Final = re.compile(r"(?<=\w)\s?[\[({](at|dot)[\])}]\s?(?=\w)", re.IGNORECASE)
_UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u2060-\u206f\ufeff]")
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


Spans = Mapping[str, tuple[int, int]]


def codes_of(text: str) -> Spans:
    """Return the keys of ``text`` that identify something, with their spans, as ``keys_of`` does."""
    return {key: span for key, span in keys_of(text).items() if key.startswith("key:")}


def dates_of(text: str) -> Spans:
    """Return the dates and times of ``text`` with their spans, as ``keys_of`` does."""
    return {key: span for key, span in keys_of(text).items() if key.startswith("date:")}


@lru_cache(maxsize=8_192)
def keys_of(text: str) -> Spans:
    """Return the canonical keys of ``text`` with their spans in ``spelled(text)``: addresses, codes and numbers begin
    with ``key:``, dates and times with ``date:``. Linear time."""
    found: dict[str, tuple[int, int]] = {}
    plain = _dates_find(spelled(text), found)
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


def spelled(text: str) -> str:
    """Return ``text`` with plain digits, dashes and quotes, and without "(at)" and "(dot)"."""
    text = _WRITTEN_OUT.sub(lambda found: "@" if found[1].casefold() == "at" else ".", text)
    if text.isascii():
        return text.replace("`", "'")
    return digits_plain(_UNSEEN.sub("", unicodedata.normalize("NFKC", text).translate(_SPELLED)))


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
    if "//" not in low and (labelled := re.fullmatch(r"(?:[a-z]+:)+(\S{6,})", low)):
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
    # "al-Haddad" and "Jean-Luc" are names; DB-MAIN and db-main are codes.
    hyphened = "-" in word and word.replace("-", "").isalpha() and word not in (word.upper(), word.lower())
    inner = not hyphened and re.search(r"\w[-_.:/@#]\w|[a-z][A-Z]", word) is not None
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
            ends = part[-1][3] or len(part[-1][0]) <= 2 or part[-1][0].isupper()
            if not ends or not any(coded for *_rest, coded in part) or len(solid) < least:
                continue
            span = part[0][1], part[-1][2]
            found.setdefault(f"key:{solid}", span)
            if solid.isdigit() and len(solid) >= 9:
                # A telephone number with and without its country code.
                found.setdefault(f"key:…{solid[-9:]}", span)
    run.clear()


def spans_hidden(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with spaces in place of ``spans``."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
