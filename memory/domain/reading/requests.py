"""Requests to forget, as people write them: what is asked for, without the words that ask.

"Please delete everything about Anna Schmidt" is about a name, "forget a.smith@x.io" about an identifier, and "forget
the wifi password" or "that Ben works at Acme" about one fact.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from memory.domain.reading.attributes import WEAK, attributes_of
from memory.domain.reading.folding import fold
from memory.domain.reading.grammar import FINITE, SURE, Word, words_tag
from memory.domain.reading.identifiers import STRONG, Identifier, identifiers_find
from memory.domain.reading.negation import negated

_VERB = (
    r"(?:forget|delete|remove|erase|release|purge|drop|wipe|clear|scrub|discard|destroy|unlearn|"
    r"expunge|get\s+rid\s+of|throw\s+(?:away|out)|"
    r"do\s+not\s+remember|don'?t\s+remember|stop\s+remembering|no\s+longer\s+remember|vergiss|lösche?|"
    r"entferne|olvida|borra|elimina|oublie|supprime|efface|"
    r"esquece|apaga|dimentica|cancella|забудь(?:те)?|удали(?:те)?|сотри(?:те)?)"
)
_POLITE = (
    r"(?:please|kindly|bitte|por favor|s'il (?:te|vous) pla[iî]t|пожалуйста|hey|hi|ok(?:ay)?|"
    r"could you|can you|would you|"
    r"i(?:'d| would)? (?:want|like|need) (?:you )?(?:to )?|you (?:should|must|can|may)|"
    r"make sure (?:to|you)|now|just|also|then)"
)
_SHELL = re.compile(
    rf"^\s*(?:(?:{_POLITE})[\s,]*)*(?:to\s+)?{_VERB}\b[\s,:]*(?:{_POLITE}[\s,]+)*", re.IGNORECASE
)  # fmt: skip
_FROM_MEMORY = re.compile(
    r"\s+(?:from|out\s+of|in)\s+(?:(?:your|the|my|our|all)\s+)*(?:memory|memories|records?|store|storage|database|db|system|files|notes)"
    r"(?:\s*,?\s*please)?[\s.!]*$|\s*,?\s*(?:please|for good|forever|completely|entirely|at once|right away)[\s.!]*$",
    re.IGNORECASE,
)
_SHELL_EAST = re.compile(
    r"^(?:请)?(?:忘记|忘掉|删除|刪除|移除|清除)|(?:を|は)?(?:忘れて|削除して|消して)(?:ください)?[。.]?$|(?:을|를)?\s*(?:잊어|삭제해|지워)\s*(?:줘|주세요)?[.]?$"
)
_ALL = (
    r"(?:(?:absolutely\s+)?everything|all(?:\s+of)?(?:\s+the)?|any(?:thing)?|whatever|every|each|alles|"
    r"todo|tout|tutto|всё|все)"
)
_STUFF = (
    r"(?:data|information|info|details?|records?|entries|entry|facts?|memor(?:y|ies)|notes?|topics?|"
    r"mentions?|things?|rows?|traces?|knowledge|references?|stuff|history|items?|content)"
)
_ABOUT = (
    r"(?:about|on|regarding|concerning|related\s+to|relating\s+to|of|for|from|involving|mentioning|"
    r"that\s+mentions?|which\s+mentions?|containing|that\s+contains?|with|"
    r"(?:that\s+|which\s+)?(?:you|we|i)\s+(?:know|have|stored|remember|saved)\s+(?:about|on|of|for)|"
    r"there\s+is\s+(?:about|on)|"
    r"über|zu|von|sobre|de|acerca\s+de|sur|à\s+propos\s+de|su|о|об|про)"
)
# "everything about X", "all records of X", "what you know about X", "about X".
_EVERYTHING = re.compile(
    rf"^(?:{_ALL}\s+)(?:(?:the\s+|your\s+|our\s+|stored\s+|personal\s+)*{_STUFF}\s+{_ABOUT}|(?!of\b){_ABOUT})\s+|"
    rf"^(?:the\s+|your\s+|our\s+|stored\s+|personal\s+|any\s+)*{_STUFF}\s+{_ABOUT}\s+|"
    rf"^what(?:ever)?\s+(?:you|we|i)\s+(?:know|have|stored|remember|saved)\s+(?:about|on|of|for)\s+|"
    rf"^(?:about|regarding|concerning)\s+",
    re.IGNORECASE,
)
_EVERYTHING_EAST = re.compile(
    r"^(?:关于|關於)?(.+?)的(?:一切|所有(?:信息|資料|资料|内容)?|全部)$|^(.+?)(?:について(?:の)?(?:すべて|全て)?|に関する(?:すべて|情報)?)$|"
    r"^(.+?)에\s*(?:대한|관한)\s*(?:모든\s*것|정보)?$"
)
_QUANTIFIED = re.compile(rf"^{_ALL}\s+(?:of\s+)?", re.IGNORECASE)
_THAT = re.compile(
    r"^(?:the\s+fact\s+)?that\s+(?=\S+\s+\S+)|^the\s+(?:fact|note|memory|entry|record|information|"
    r"topic|one|part)\s+(?:that|about|on|of|where|saying|which\s+says)\s+",
    re.IGNORECASE,
)
# What a person or thing is called beside its name, and what is kept about it; alone it says nothing about which.
_BESIDE = """
person people user customer client company firm project server employee contact patient member colleague
friend neighbour neighbor machine device host team product app service city place town country brand record
records data entry entries note notes memory memories information info detail details topic topics fact
facts everything all the a an named called and or profile thing things mention mentions mr mrs ms dr prof
guy woman man lady about personal stored entire
"""
_KINDS = frozenset(_BESIDE.split())
# The same for identifiers, which say by themselves which one is meant.
_DESCRIBING = """
account order invoice ticket number num no id e-mail email mail address phone telephone tel mobile cell fax card credit
debit handle what happened happen happens occurred events event url link page website site ip file path folder directory
document with by whose is code reference ref case of for from his her their its my our your date on at in dated isbn
uuid iban mac vin passport key serial login tag version repo repository commit
"""
GENERIC = _KINDS | frozenset(_DESCRIBING.split())
_DEFINITE = re.compile(
    r"^(?:the|my|our|your|his|her|their|its|that|this|der|die|das|mein\w*|el|la|mi|le|mon|ma)\s", re.IGNORECASE
)
_MONTHS = """
january february march april may june july august september october november december monday tuesday
wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu
fri sat sun
"""
_CALENDAR = frozenset(_MONTHS.split())
# Attributes whose words name things too: who forgets coffee means all of it.
_THINGS = frozenset(
    {"drink", "food", "pet", "sport", "music", "health", "transport", "car", "film", "book", "wifi", "vacation"}
)
_CALLED = re.compile(
    r"^(?:the\s+)?(?:server|project|host|machine|device|service|app|customer|client|company|firm|city|"
    r"town|country|brand|product|team|"
    r"user|person|employee|contact|patient)\s+\S+$",
    re.IGNORECASE,
)
# Scripts without capital letters, in which names look like any other word.
_CASELESS = re.compile("[\u0590-\u1bff\u2d30-\u2fff\u3040-\ud7af\uf900-\ufaff]")
_EAST = re.compile("[\u0370-\u1fff\u2c00-\u2dff\u3040-\ud7af\uf900-\ufaff]")
_JOINED = re.compile(r"\s*(?:,\s*(?:and\s+)?|\s+(?:and|und|y|et|и)\s+|、|和|と)\s*")
_QUOTED = re.compile(r"^[\"“„«'‘「『](.+)[\"”“»'’」』]$")
_OWNED = re.compile(r"(?:['’]s|['’])\s+(.+)$")
_STORED = re.compile(rf"(?:(?:all|personal|stored|whole|entire)\s+)*(?:{_STUFF}|profile)", re.IGNORECASE)
_ENDING = re.compile(r"[\s.!?。！？,;:]+$")


@dataclass(frozen=True, slots=True)
class Request:
    """What a request asks for. ``kind`` is ``identifiers`` or ``names`` for all that mentions them, or ``fact`` for
    what matches by its meaning. ``many`` asks for all facts that do, not for one."""

    text: str
    body: str
    kind: str
    identifiers: tuple[Identifier, ...]
    names: tuple[str, ...]
    things: tuple[str, ...]
    many: bool
    negated: bool
    states: bool


@lru_cache(maxsize=512)
def request_parse(text: str) -> Request:
    """Read a request. Whatever it says is only ever looked for, never obeyed."""
    plain = " ".join(text.split())
    body, asked = _shell_off(plain)
    if asked:
        body = _FROM_MEMORY.sub("", body) or body
    body, everything = _everything_off(body)
    quantified = _QUANTIFIED.match(body)
    if quantified and not everything:
        body = body[quantified.end() :]
    body = _THAT.sub("", body)
    body = _ENDING.sub("", body).strip() or plain
    if quoted := _QUOTED.match(body):
        body = quoted[1]
    found = tuple(identifiers_find(body))
    names = _names(body, found)
    kind, things = _kind(body, found, names, everything=everything, asked=asked)
    words = words_tag(body)
    return Request(
        text=plain, body=body, kind=kind, identifiers=found, names=tuple(names), things=tuple(things),
        many=bool(quantified) or everything, negated=negated(body),
        states=any(word.tag in SURE for word in words[1:]) and not _question(words),
    )  # fmt: skip


def _shell_off(text: str) -> tuple[str, bool]:
    match = _SHELL.match(text)
    if match and match.end() < len(text):
        return text[match.end() :], True
    stripped = _SHELL_EAST.sub("", text).strip()
    return (stripped, True) if stripped and stripped != text else (text, False)


def _everything_off(body: str) -> tuple[str, bool]:
    match = _EVERYTHING.match(body)
    if match and match.end() < len(body):
        return re.sub(r"^(?:the|a|an)\s+(?=[a-z])", "", body[match.end() :]), True
    east = _EVERYTHING_EAST.match(body)
    if east:
        return next(part for part in east.groups() if part), True
    return body, False


def _question(words: tuple[Word, ...]) -> bool:
    # "where Maria lives", "in which room", "does the hotel have a pool".
    asks = any(word.tag in ("AVQ", "PNQ", "DTQ") for word in words[:2])
    return asks or (bool(words) and words[0].tag in FINITE - {"VVB", "VVD", "VVZ"})


def _kind(
    body: str, found: tuple[Identifier, ...], names: list[str], *, everything: bool, asked: bool
) -> tuple[str, list[str]]:
    """Return the kind of a request, and the names it is about if it is about names."""
    rest = _without(body, [identifier.text for identifier in found])
    if found and not _meaning(rest):
        return "identifiers", []
    if any(identifier.kind in STRONG for identifier in found) and not names and not _states(body):
        return "identifiers", []
    if everything:
        pieces = [piece for piece in _JOINED.split(body) if piece]
        return "names", pieces if len(pieces) > 1 and all(piece in names for piece in pieces) else [_thing(body, names)]
    if _EAST.search(body):
        short = len(body.split()) <= 3 and (len(body) <= 6 or " " in body or not re.search("[\u3040-\ud7af]", body))
        if short and not found:
            return "names", [body]
    shouted = all(name.isupper() and name.isalpha() and len(name) > 1 for name in names)
    plain = not (shouted and _DEFINITE.match(body)) and not _owns(body, names)
    if names and plain and not _meaning(_without(rest, names), _KINDS):
        return "names", names
    words = body.split()
    if len(words) == 1 and not found and not _DEFINITE.match(body):
        # "forget password" names no thing but an attribute of something.
        attribute = body.islower() and attributes_of(body) - WEAK - _THINGS
        return ("fact", []) if attribute else ("names", [body])
    left = _meaning(body, _KINDS)
    if len(left) == 1 and not found and _CALLED.match(body) and body.casefold().endswith(left[0]):
        # "the server quail": what kind of thing it is, and its name.
        return "names", [body[-len(left[0]) :]]
    return "fact", []


def _owns(body: str, names: list[str]) -> bool:
    """Tell whether a request is about what somebody has: "Anna's city", but not "Anna's data"."""
    owned = _OWNED.match(body.rpartition(names[-1])[2]) if names else None
    return owned is not None and not _STORED.fullmatch(owned[1])


def _thing(body: str, names: list[str]) -> str:
    """Return what "everything about" is about: the one name in it, or the words as they are."""
    if len(names) == 1 and re.match(rf"{re.escape(names[0])}\s*[,(–—]", body):
        # "Rose, the goalkeeper"
        return names[0]
    owned = re.sub(r"(?:'s|’s|s')$", "", body)
    if len(names) == 1 and not _owns(body, names) and not _meaning(_without(owned, names), _KINDS):
        return names[0]
    return owned


def _states(body: str) -> bool:
    return any(word.tag in SURE for word in words_tag(body))


def _meaning(rest: str, empty: frozenset[str] = GENERIC) -> list[str]:
    """Return the words that say more than that something is a person or a thing."""
    words = re.findall(r"[^\W_][\w-]*", fold(rest).replace("'s", " "))
    return [word for word in words if word not in empty and len(word) > 1]


def _without(body: str, parts: list[str]) -> str:
    for part in sorted(parts, key=len, reverse=True):
        body = body.replace(part, " ")
    return body


def _names(body: str, found: tuple[Identifier, ...]) -> list[str]:
    """Return the names in a request: words in capitals, of other scripts, with digits in them, or before an ``'s``."""
    covered = [(identifier.start, identifier.end) for identifier in found]
    names: list[str] = []
    run: list[Word] = []

    def close() -> None:
        if run:
            names.append(body[run[0].start : run[-1].end])
            run.clear()

    words = words_tag(body)
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else None
        inside = any(start <= word.start < end for start, end in covered)
        if inside or not _name_like(word, first=at == 0, after=after):
            close()
            continue
        if run and body[run[-1].end : word.start].strip():
            close()
        run.append(word)
    close()
    return list(dict.fromkeys(names))


def _name_like(word: Word, *, first: bool, after: Word | None) -> bool:
    plain = word.text.casefold()
    if not any(map(str.isalpha, word.text)) or plain in _CALENDAR or plain in ("i", "i'm"):
        return False
    if _CASELESS.search(word.text):
        return False
    if after is not None and after.tag == "POS" and word.tag not in ("PNP", "DPS") and plain not in GENERIC:
        return word.text[:1].isupper() or word.tag in ("NP0", "UNC")
    if (
        any(map(str.isdigit, word.text))
        and any(map(str.isalpha, word.text))
        and not re.fullmatch(r"\d+(?:st|nd|rd|th|am|pm|[a-z]{1,2})", plain)
    ):
        return True
    if not word.text[:1].isupper():
        return False
    if not first:
        return True
    if word.tag in ("NP0", "UNC"):
        return True
    shown = word.text.isupper() or (after is not None and after.text[:1].isupper())
    return shown and word.tag.startswith(("NN", "AJ", "VV", "ZZ", "CRD"))
