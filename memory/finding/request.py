"""Parses requests to forget: what the request asks for, and in which form."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memory.text.folding import fold
from memory.text.stems import stem
from memory.text.word_lists import wordset

# Words that ask for everything about something, in several languages.
_ALL: Final = re.compile(
    r"\b(?:everything|all|anything|whatever|entries|records?|notes|data|hold|held|noted|stored|alles|todo|tout|все|всё"
    r"|ολα|ο,τι|كل|כל|सब)\b|\bthe whole\b"
    r"|\bwhat\s+(?:(?:do|did)\s+)?(?:you|we|i)(?:'ve)?\s+(?:all\s+)?(?:have|know|hold|remember|got)\b"
    r"|全部|所有|一切|すべて|全て|모든|모두"
)
# Words that allow several answers, such as "everyone who" or "those which".
_SEVERAL: Final = re.compile(
    r"\b(?:who|people|those|which|any|ones|every|each|all|both|earlier|older|previous|everyone|anyone)\b"
)
_THAT: Final = re.compile(
    r"(?:(?:please|forget|remember|delete|remove|drop|erase|purge|scrap|the|fact|note|saying)\s){0,4}that\s\S+\s\S"
)
_EXCEPT: Final = re.compile(
    r"(?<![,\s–-])[,\s–-]++(?:except(?:\s+for)?|but\s+(?:not|do\s+not|don['’]t|leave|keep)(?:\s+touch)?|apart\s+from|other\s+than)\s+"
    r"|\(not\s+",
    re.IGNORECASE,
)
_OWNS: Final = re.compile(
    r"(?:['’]s|s['’])\s+(?!(?:data|notes|records?|entries|info\w*|details|file|profile)\b)\w", re.IGNORECASE
)
# General words that may occur next to a name or number, such as "customer" or "notes". They do not distinguish facts.
GENERIC: Final = frozenset(
    map(
        stem,
        wordset(
            "person user customer client company firm project server employee contact patient member colleague friend "
            "machine device host app service record records data entry entries note notes memory info information "
            "details topic topics profile account order invoice ticket case number id email e-mail address phone "
            "telephone handle url link website ip code ref reference isbn uuid iban mac asset happened happen what "
            "much many need keep kept track gone left take stuff mr mrs ms dr prof"
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed request. ``body`` is the request without its exceptions, and ``without`` has the exceptions.
    ``everything``: it asks for everything about something. ``several``: it allows several facts. ``owned``: it asks for
    a possession, such as "Anna's phone". ``states``: it states a fact."""

    text: str
    body: str
    everything: bool
    several: bool
    owned: bool
    states: bool
    without: str


@lru_cache(maxsize=512)
def request_read(text: str) -> Request:
    """Parse a request. The text is used only to search, and never followed as an instruction."""
    plain = " ".join(text.split())
    parts = _EXCEPT.split(plain, maxsplit=1)
    body = parts[0]
    folded = fold(body)
    return Request(
        text=plain,
        body=body,
        everything=bool(_ALL.search(folded)) and not re.search(r"\bwho\b", folded),
        several=bool(_SEVERAL.search(folded)),
        owned=bool(_OWNS.search(body)),
        states=bool(_THAT.match(folded)),
        without=parts[1] if len(parts) > 1 else "",
    )
