"""Finds the senders of mails and chat messages, and lines without facts: headers, signatures, quotations, notices."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

_HEADER: Final = re.compile(
    r"(?:from|to|cc|bcc|sent|date|time|when|where|location|place|subject|re|reply-to|attendees|present|participants|"
    r"apologies|absent|notes|minutes|minute taker|note taker|scribe|chair|facilitator|host)\s?:\s",
    re.IGNORECASE,
)
_SENDER: Final = re.compile(
    r"from\s?:\s{0,8}\"?(?P<name>[^\s<\"@][^<\"\n@]{1,60}?)\"?\s{0,8}(?:<[^>\n]*>|\[[^\]\n]*\])?\s*$", re.IGNORECASE
)
_SUBJECT: Final = re.compile(r"subject\s?:\s*(?:(?:re|fwd?|aw|sv|tr|rv)\s?:\s*)*(?P<subject>\S.*)", re.IGNORECASE)
_QUOTE: Final = re.compile(
    r"\s*>|\s*(?:On|Am|Le|El)\b.{5,200}(?:wrote|schrieb|écrit|escribió)\s?:\s*$|-+\s?Original Message"
)
_SIGN_OFF: Final = re.compile(
    r"(?:(?:best|kind|warm|many|with|all the|yours|cheers|regards|thanks|thank you|sincerely|take care|greetings|"
    r"viele grüße|mit freundlichen|cordialement|(?:un )?saludos?|atentamente|cordiali saluti|met vriendelijke|"
    r"med vennlig|groetjes|groeten)\b[\w\s/]{0,40}|bw|br|vg|lg)[,.!]?\s*$",
    re.IGNORECASE,
)
# A line with only a name and a time. Some chat programs write such a line above each message.
_SPEAKER_LINE: Final = re.compile(
    r"(?P<name>[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3})(?: ?\([^)\n]{1,30}\))?\s+\[?\d{1,2}:\d{2}(?::\d{2})?"
    r"(?:\s?[AaPp]\.?[Mm]\.?)?\]?$"
)
_DASHES: Final = re.compile(r"\s*--\s*$")
_RULE: Final = re.compile(r"\s*[-_=*]{5,}\s*$|\s*[-_=*]{3,}[^-_=*\n]{1,60}[-_=*]{3,}\s*$")
_SYSTEM: Final = re.compile(
    # Notices of chat programs, which have a time but no speaker, and other lines without content.
    r"(?:\[?\d{1,2}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?\]?(?: - | )[^:]*$|"
    r"sent from my|get outlook for|(?::\w[\w+-]*:(?:[ \t]*\d+)?[ \t]*(?=:|$))+$|"
    r"#[\w-]+$|.*_{4,}|<[^<>]{2,40}(?:omitted|deleted)>|"
    r".*\bmessages? (?:was|were) deleted\b|"
    r".{1,60}\b(?:joined|left|was added|changed the)\b.{0,20}\b(?:chat|group|channel|room|meeting|subject)\b)",
    re.IGNORECASE,
)
_EDITED: Final = re.compile(r"\u200e?<[Tt]his message was edited>|\(edited\)")
_DISCLAIMER: Final = re.compile(
    r"\bconfidential\b.{0,400}\b(?:intended|addressee|recipient)|\bnot the intended recipient|"
    r"\breceived (?:it|this (?:e-?mail|message)) in error|\bsubject to our general (?:terms|conditions)|"
    r"\b(?:think|consider the environment) before (?:you )?print|^disclaimer\b|"
    r"\bunauthori[sz]ed (?:copying|use|disclosure)|"
    r"\baccepts? no liability",
    re.IGNORECASE,
)
_ANYTHING: Final = re.compile(r"[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of the text that begins at ``start``. ``spoken`` is true in a chat. ``subject`` is the subject of a
    mail."""

    start: int
    name: str
    spoken: bool
    subject: str = ""


def messages_masked(content: str) -> tuple[str, list[Sender], Counter[str]]:
    """Return (masked, senders, dropped). ``masked`` is the text with spaces in place of headers, signatures, quotations
    and notices, so that all offsets stay the same. ``dropped`` counts the masked lines by reason."""
    lines = content.splitlines(keepends=True)
    disclaimed = _disclaimed(lines)
    parts: list[str] = []
    senders: list[Sender] = []
    dropped: Counter[str] = Counter()
    is_mail = any(_SENDER.match(line.strip()) for line in lines)
    names = [found["name"] for line in lines if (found := _SPEAKER_LINE.match(line.strip()))]
    speakers = set(names) if len(names) > 1 else set()
    # ``signature`` is "dashes" after a line of dashes, and "name" after a closing formula in a mail. A signature ends
    # before the next header, quotation or rule. After a closing formula, it also ends before a long line.
    at, signature = 0, ""
    for number, line in enumerate(lines):
        plain = line.strip().lstrip("*_")
        header, quote, rule = _HEADER.match(plain), _QUOTE.match(line), _RULE.match(line)
        reason = ""
        if header or quote or rule:
            signature = ""
        if found := _SENDER.match(plain):
            senders.append(Sender(at, found["name"].strip(), spoken=False))
        elif senders and not senders[-1].spoken and (found := _SUBJECT.match(plain)):
            senders[-1] = replace(senders[-1], subject=found["subject"])
        if (found := _SPEAKER_LINE.match(plain)) and found["name"] in speakers:
            senders.append(Sender(at, found["name"], spoken=True))
            reason = "header"
        elif quote:
            reason = "quote"
        elif header and len(plain) < 300:
            reason = "header"
        elif rule or _SYSTEM.match(plain) or number in disclaimed:
            reason = "filler"
        elif _DASHES.match(line):
            reason, signature = "signature", "dashes"
        elif len(plain) < 60 and _SIGN_OFF.match(plain):
            reason, signature = "signature", "name" if is_mail else ""
        elif signature == "dashes" or (signature == "name" and plain and len(plain) < 60):
            reason = "signature"
        elif signature == "name" and plain:
            signature = ""
        blanked = _ANYTHING if reason else _EDITED
        parts.append(blanked.sub(lambda found: " " * len(found.group()), line))
        dropped[reason] += bool(reason and plain)
        at += len(line)
    return "".join(parts), senders, +dropped


def _disclaimed(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines in paragraphs that are disclaimers."""
    found: set[int] = set()
    for blank, group in groupby(range(len(lines)), key=lambda number: not lines[number].strip()):
        numbers = list(group)
        if not blank and _DISCLAIMER.search(" ".join(lines[number].strip() for number in numbers)):
            found.update(numbers)
    return found


def sender_at(senders: Sequence[Sender], at: int) -> Sender | None:
    """Return the sender of the text at an offset; None before the first sender."""
    place = bisect_right(senders, at, key=lambda sender: sender.start)
    return senders[place - 1] if place else None
