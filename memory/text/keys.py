"""Finds the canonical keys of a text: addresses, codes, numbers, dates. Two spellings of one have the same key."""

import hashlib
import ipaddress
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from memory.text.folding import UNSPACED_SIGNS, digits_plain, fold
from memory.text.months import MONTHS
from memory.text.word_lists import FUNCTION

# How keys begin: those that identify something, and dates and times.
CODE, DATE = "key:", "date:"
# The most neighbouring words that form one key: "DE89 3704 0044 0532 0130 00".
MAX_JOINED: Final = 9
# A word of a longer key is a key itself from this length on: DE89 is not.
LEAST_PART: Final = 6
# A hash replaces a longer key, because an entry of a PostgreSQL index has at most 2,700 bytes.
MAX_KEY: Final = 400
_TOKEN: Final = re.compile(rf"[^\s,;!?()\[\]{{}}<>\"“”„«»「」、。，！？—{UNSPACED_SIGNS}]+")
_LETTER: Final = rf"[^\W{UNSPACED_SIGNS}]"
_EMAIL: Final = re.compile(rf"(?<!{_LETTER})(?<![.+-])\"?{_LETTER}(?:{_LETTER}|[.+'-]){{0,63}}\"?@[\w.-]+\w")
_GOOGLE: Final = frozenset({"gmail.com", "googlemail.com"})
_WEB: Final = re.compile(r"(?:[a-z][a-z+.-]*://)?(?:www\d?\.)?((?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?:[/?#]\S*)?)")
_IP: Final = re.compile(r"(?:[a-z]+://)?(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(:\d+)?(/\S*)?")
_SCHEME: Final = re.compile(r"(?:tel|sms|callto|mailto|urn:[a-z]+|file):(?=\S)", re.IGNORECASE)
_SPELLED: Final = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), **dict.fromkeys("‘’`´", "'")})
_WRITTEN_OUT: Final = re.compile(
    r"(?<=\w)\s?[\[({（［](?:at|dot)[\])}）］]\s?(?=\w)"
    r"|(?<=\w) at (?=[\w-]+ dot \w)|(?<=\w) dot (?=(?:com|net|org|de|io)\b)",
    re.IGNORECASE,
)
_UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u2060-\u206f\ufeff]")
# What stands between the name of a number and the number: "PO no. 123".
_NUMBER: Final = re.compile(r"\b(?:no\.?|nr\.?|num\.?|number|nummer)\s+(?=#?\d)", re.IGNORECASE)
_MONTH: Final = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)",
        r"(?<![\d.-])(?P<d>\d{1,2})(?P<or>[-/.])(?P<m>\d{1,2})[-/.](?P<y>\d{4})(?!\d)",
        (
            rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of| de)?[ -](?P<m>{_MONTH})\b\.?"
            r"(?:(?:,? (?:de )?|-)(?P<y>\d{4}))?"
        ),
        rf"\b(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>\d{{4}}))?",
        r"(?:(?P<y>\d{4})\s?[年년]\s?)?(?P<m>\d{1,2})\s?[月월]\s?(?P<d>\d{1,2})\s?[日일]",
    )
)
_TIME: Final = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2})(?:[:.](?P<m>\d\d))?\s?(?P<half>[ap])\.?m\b\.?|(?<![\d:.])(?P<h24>\d{1,2}):(?P<m24>\d\d)(?![\d:])",
    re.IGNORECASE,
)
# "the 1990s", "2023-2024".
_YEARS: Final = re.compile(r"(?:(?:19|20)\d\d){1,2}s?")
# The end of a sentence without a space: "It ended.So we left".
_NO_SPACE: Final = re.compile(r"[a-z]\.[A-Z][a-z]")
_INNER: Final = re.compile(r"\w[-_.:/@#]\w|[a-z][A-Z]")

Spans = Mapping[str, tuple[int, int]]
_Found = list[tuple[str, int, int]]


def codes_of(text: str) -> Spans:
    """Return the keys of ``text`` that identify something, with their spans, as ``keys_of`` does."""
    return {key: span for key, span in keys_of(text).items() if key.startswith(CODE)}


def dates_of(text: str) -> Spans:
    """Return the dates and times of ``text`` with their spans, as ``keys_of`` does."""
    return {key: span for key, span in keys_of(text).items() if key.startswith(DATE)}


# A text of codes has some hundred keys, which take 12 kB. So few texts are kept.
@lru_cache(maxsize=1_024)
def keys_of(text: str) -> Spans:
    """Return the canonical keys of ``text`` with their first spans in ``spelled(text)``: addresses, codes and numbers
    begin with ``key:``, dates and times with ``date:``. Linear time."""
    found: dict[str, tuple[int, int]] = {}
    for key, start, end in _keys_find(spelled(text)):
        found.setdefault(key, (start, end))
    return found


def keys_index(text: str) -> set[str]:
    """Return the keys of ``text`` that identify something, for the index. Stored texts are not kept in a cache."""
    return {key for key, _start, _end in _keys_find(spelled(text)) if key.startswith(CODE)}


def keys_placed(text: str) -> list[tuple[str, int, int]]:
    """Return every occurrence of the keys of ``text`` that identify something, as (key, start, end) in ``text``."""
    plain, places = _spelled_places(text)
    return [(key, places[start], places[end]) for key, start, end in _keys_find(plain) if key.startswith(CODE)]


def keys_certain(text: str) -> dict[str, tuple[int, int]]:
    """Return the keys of ``text`` that identify one person or thing, with their spans in ``spelled(text)``: addresses,
    handles, long numbers, and codes such as KX-88. Parts of such a key, and measures such as "5km", are left out."""
    plain = spelled(text)
    certain: dict[str, tuple[int, int]] = {}
    last = (0, -1)
    # Of the keys that begin at one place, the longest comes first.
    for key, start, end in sorted(_keys_find(plain), key=lambda each: (each[1], -each[2])):
        within = end <= last[1] and (start, end) != last
        last = last if within else (start, end)
        written = plain[start:end]
        plain_key = key.removeprefix(CODE)
        part = within and (" " in written or len(plain_key) < LEAST_PART)
        if key.startswith(CODE) and not part and _is_certain(plain_key, written):
            certain.setdefault(key, (start, end))
    return certain


def keys_missing(text: str, *, known: Collection[str], certain: Iterable[str]) -> bool:
    """Return whether ``text`` has an identifier that its source does not have, of which ``known`` are the keys, and
    ``certain`` those that identify one thing. A number may lack its beginning, such as a country code. Other groups of
    words are left out, because the words beside a number may differ."""
    plain = spelled(text)
    numbers = [key for key in certain if key[-1].isdigit()]
    for key, (start, end) in keys_certain(text).items():
        number = key.removeprefix(CODE)
        if number.isdigit() and not any(one.endswith(number) for one in numbers):
            return True
        if key not in known and " " not in plain[start:end] and "…" not in key:
            return True
    return False


def _is_certain(key: str, written: str) -> bool:
    digits = sum(map(str.isdigit, key))
    if len(key) < 4 or _YEARS.fullmatch(key) or (" " in written and digits < 3):
        return False
    address = "@" in written or "." in key or written[0] in "#/\\~" or len(re.findall(r"[/\\:]", written)) > 1
    large = written != written.lower() and bool(digits or re.search("[-_]", written))
    return address or digits >= 6 or large or (digits >= 4 and not key.isdigit())


def spelled(text: str) -> str:
    """Return ``text`` with plain digits, dashes and quotes, and without "(at)" and "(dot)"."""
    text = _WRITTEN_OUT.sub(_sign_written_out, text)
    return text.replace("`", "'") if text.isascii() else _plain(text)


def _sign_written_out(match: re.Match[str]) -> str:
    return "@" if "at" in match[0].casefold() else "."


def _plain(text: str) -> str:
    return digits_plain(_UNSEEN.sub("", unicodedata.normalize("NFKC", text).translate(_SPELLED)))


def _spelled_places(text: str) -> tuple[str, Sequence[int]]:
    """Return ``spelled(text)``, and for each of its characters, and for its end, the place in ``text``."""
    if text.isascii() and not _WRITTEN_OUT.search(text):
        return spelled(text), range(len(text) + 1)
    signs: list[str] = []
    places: list[int] = []
    at = 0
    for match in (*_WRITTEN_OUT.finditer(text), None):
        end = len(text) if match is None else match.start()
        while at < end:
            after = at + 1
            # An accent belongs to the letter before it.
            while after < end and unicodedata.combining(text[after]):
                after += 1
            piece = _plain(text[at:after])
            signs.append(piece)
            places += [at] * len(piece)
            at = after
        if match is not None:
            signs.append(_sign_written_out(match))
            places.append(at)
            at = match.end()
    return "".join(signs), [*places, len(text)]


def _spaces(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _keys_find(text: str) -> _Found:
    """Return every occurrence of every key of ``text``, which is spelled plainly."""
    found: _Found = []
    plain = _NUMBER.sub(_spaces, _dates_find(text, found))
    if "@" in plain:
        for match in _EMAIL.finditer(plain):
            found.append((_mail_key(match[0]), *match.span()))
        plain = _EMAIL.sub(_spaces, plain)
    run: list[tuple[str, int, int, bool]] = []
    tokens = [each for each in map(_trimmed, _TOKEN.finditer(plain)) if each[0]]
    for place, (word, start, end) in enumerate(tokens):
        if not word.isalpha() and _address_find(word, start, end, found):
            _run_close(run, found)
            continue
        numbered = place + 1 < len(tokens) and any(map(str.isdigit, tokens[place + 1][0]))
        coded, joins = _code_like(word, numbered=numbered)
        if not (run or joins):
            continue
        if run and plain[run[-1][2] : start].strip(" ()[]-+/"):
            _run_close(run, found)
        if joins:
            run.append((word, start, end, coded))
        else:
            _run_close(run, found)
    _run_close(run, found)
    return [each if len(each[0]) <= MAX_KEY else (_hashed(each[0]), each[1], each[2]) for each in found]


def _hashed(key: str) -> str:
    return f"{CODE}#{hashlib.sha256(key.encode(errors='replace')).hexdigest()}"


def _mail_key(address: str) -> str:
    local, _at, domain = address.casefold().replace('"', "").strip("'.").rpartition("@")
    local, domain = local.partition("+")[0], _domain_plain(domain)
    if domain in _GOOGLE:
        # Google ignores dots before the @.
        local, domain = local.replace(".", ""), "gmail.com"
    return f"{CODE}{local}@{domain}"


def _domain_plain(domain: str) -> str:
    """Return ``domain`` with the letters that "xn--" encodes."""
    if "xn--" not in domain:
        return domain
    try:
        return domain.encode().decode("idna")
    except UnicodeError:
        return domain


def _dates_find(text: str, found: _Found) -> str:
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
                    found.append((f"{DATE}{one:02}-{other:02}", *match.span()))
                    if parts["y"]:
                        found.append((f"{DATE}{parts['y']}-{one:02}-{other:02}", *match.span()))
        text = pattern.sub(_spaces, text)
    for match in _TIME.finditer(text):
        hour = int(match["h24"] or match["h"])
        if match["half"]:
            hour = hour % 12 + (12 if match["half"] in "pP" else 0)
        found.append((f"{DATE}{hour:02}h{match['m24'] or match['m'] or '00'}", *match.span()))
    return _TIME.sub(_spaces, text)


def _trimmed(match: re.Match[str]) -> tuple[str, int, int]:
    word, start = match[0], match.start()
    if ":" in word and (scheme := _SCHEME.match(word)):
        word, start = word[scheme.end() :], start + scheme.end()
    trimmed = word.strip(".,:;'*_")
    start += word.find(trimmed)
    trimmed = trimmed.removesuffix("'s")
    return trimmed, start, start + len(trimmed)


def _address_find(word: str, start: int, end: int, found: _Found) -> bool:
    """Add ``word`` to ``found`` if it is the address of a page or a machine."""
    low = word.casefold()
    web = _WEB.fullmatch(low)
    if web and ("/" in low or low.startswith("www.") or not (any(map(str.isdigit, low)) or _NO_SPACE.search(word))):
        host, slash, path = unquote(web[1]).partition("/")
        host = _domain_plain(host.removesuffix(":80").removesuffix(":443"))
        found.append((f"{CODE}{host}{slash}{path}".rstrip("/"), start, end))
        _path_add(path, start, end, found)
        return True
    if "//" not in low and (labelled := re.fullmatch(r"(?:[a-z]+:)+(\S{6,})", low)):
        _path_add(labelled[1], start, end, found)
    if machine := _IP.fullmatch(low):
        address = ".".join(str(int(part)) for part in machine.groups()[:4])
        found.append((f"{CODE}{address}", start, end))
        if machine[5] or machine[6]:
            found.append((f"{CODE}{address}{machine[5] or ''}{machine[6] or ''}", start, end))
        return True
    if low.count(":") >= 2:
        try:
            found.append((f"{CODE}{ipaddress.ip_interface(low).ip.compressed}", start, end))
        except ValueError:
            return False
        return True
    return False


def _path_add(path: str, start: int, end: int, found: _Found) -> None:
    """Add a long path with digits, which is a key without its host too: "10.1234/moss.2021.07"."""
    if len(path) >= 8 and any(map(str.isdigit, path)):
        found.append((f"{CODE}{re.sub(r'[^a-z0-9]', '', path)}", start, end))


def _code_like(word: str, *, numbered: bool) -> tuple[bool, bool]:
    """Return (whether a word is a key of its own, whether it may be a part of a key with its neighbours). ``numbered``
    says that the next word has a digit."""
    letters = word.isalpha()
    digits = not letters and any(map(str.isdigit, word))
    # "al-Haddad" and "Jean-Luc" are names; DB-MAIN and db-main are codes.
    hyphened = "-" in word and word.replace("-", "").isalpha() and word not in (word.upper(), word.lower())
    inner = not hyphened and _INNER.search(word) is not None
    coded = digits or inner or (letters and word.isupper() and len(word) >= 5) or word[0] in "@#/\\~"
    if coded:
        return True, True
    joins = letters and (numbered or (len(word) <= 5 and (word.islower() or word.isupper())))
    return False, joins and (fold(word) not in FUNCTION or (word.isupper() and numbered))


def _run_close(run: list[tuple[str, int, int, bool]], found: _Found) -> None:
    """Add the keys of neighbouring words to ``found``: of each word that is coded, and of words together."""
    for first in range(len(run) if any(coded for *_rest, coded in run) else 0):
        for last in range(first, min(len(run), first + MAX_JOINED)):
            part = run[first : last + 1]
            solid = re.sub(r"[\W_]", "", "".join(word for word, *_rest in part)).casefold()
            least = (5 if first == last else 6) if solid.isdigit() else 1 if first == last else 4
            ends = part[-1][3] or len(part[-1][0]) <= 2 or part[-1][0].isupper()
            if not ends or not any(coded for *_rest, coded in part) or len(solid) < least:
                continue
            span = part[0][1], part[-1][2]
            found.append((f"{CODE}{solid}", *span))
            if solid.isdigit() and len(solid) >= 9 and not _continues(run, first, last):
                # A telephone number with and without its country code.
                found.append((f"{CODE}…{solid[-9:]}", *span))
    run.clear()


def _continues(run: Sequence[tuple[str, int, int, bool]], first: int, last: int) -> bool:
    """Return whether a number goes on before or after the words ``first`` to ``last``."""
    return any(word.isdigit() for word, *_rest in (*run[max(0, first - 1) : first], *run[last + 1 : last + 2]))


def spans_hidden(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with spaces in place of ``spans``."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
