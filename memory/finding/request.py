"""Parses requests to forget: what a request excepts, whether it asks for everything, its dates."""

import re
from typing import Final

from memory.text.folding import fold
from memory.text.keys import dates_of, spans_hidden, spelled

_ALL: Final = re.compile(
    r"\b(?:everything|all|anything|whatever|whole|entries|records|notes|data|alles|todo|tout|tutto|все|всё|ολα|ο,τι|كل|כל|सब)\b"
    r"|\bwhat\s+(?:(?:do|did)\s+)?(?:you|we|i)(?:'ve)?\s+(?:all\s+)?(?:have|know|hold|remember|got)\b"
    r"|全部|所有|一切|すべて|全て|모든|모두"
)
_EXCEPT: Final = re.compile(
    r"(?<![,\s–-])[,\s–-]++(?:except(?:\s+for)?|but\s+(?:not|do\s+not|don['’]t|leave|keep)(?:\s+touch)?|apart\s+from|other\s+than)\s+"
    r"|\s\(not\s+",
    re.IGNORECASE,
)
BEFORE: Final = re.compile(
    r"\b(?:before|prior\s+to|until|(?:earlier|older)\s+than)\s+(?:[a-z]+\s+)?(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE
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
    return spans_hidden(request, dates_of(request).values())
