"""What a text states, sentence by sentence and in its own words. No model takes part.

Sentences and list items are kept as they stand. Greetings, headers and signatures of mails, quoted replies, questions,
headings and small talk are left out. In front of a sentence in the first person stands who says it, where the text
names them; in front of a list item its heading. What a text means, or what follows from two of its sentences, is beyond
this.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Final

from memory.text.folding import fold
from memory.text.grammar import has_verb
from memory.text.sentences import Sentence, sentences_find
from memory.text.words import numbers, stems

# One fact. Longer sentences are cut where they may be.
MAX_FACT: Final = 500
# Sentences beside each other are one fact as long as they are no longer than this together.
MOST_JOINED: Final = 300
# So much of a heading stands in front of what is under it.
MOST_HEADING: Final = 120
# What is said in a conversation with fewer words is an answer to something.
LEAST_SPOKEN: Final = 4
LONGEST_HEADING: Final = 8
# What has fewer words that carry meaning, and no name, tells nothing to somebody who was not there; in prose a number
# tells as well, in a conversation it may be an answer to anything.
LEAST_TELLING: Final = 4
LEAST_TOLD: Final = 5
_NAMED: Final = re.compile(r"\S\s+\W*[A-ZÀ-Þ][^\W\d_]+")
_HEADER: Final = re.compile(
    r"(?:from|to|cc|bcc|sent|date|time|when|where|location|place|subject|re|reply-to|attendees|present|participants|"
    r"apologies|absent|notes|minutes|minute taker|note taker|scribe|chair|facilitator|host)\s?:\s", re.IGNORECASE,
)  # fmt: skip
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
)  # fmt: skip
# A line with a name and a time alone, as some chats put above what somebody says.
_SPEAKER_LINE: Final = re.compile(
    r"(?P<name>[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,3})(?: ?\([^)\n]{1,30}\))?\s+\[?\d{1,2}:\d{2}(?::\d{2})?"
    r"(?:\s?[AaPp]\.?[Mm]\.?)?\]?$"
)
_DASHES: Final = re.compile(r"\s*--\s*$")
_RULE: Final = re.compile(r"\s*[-_=*]{5,}\s*$|\s*[-_=*]{3,}[^-_=*\n]{1,60}[-_=*]{3,}\s*$")
_SYSTEM: Final = re.compile(
    # What a chat program says has a moment and nobody who says it.
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
    r"\baccepts? no liability", re.IGNORECASE,
)  # fmt: skip
_COURTESY: Final = re.compile(
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|luck)|hallo|bonjour|hola|morning|evening|welcome|bye|ciao|"
    r"thanks|thank you|thx|cheers|great|perfect|awesome|sure|ok(?:ay)?|yes|no|yep|nope|lol|haha\w*|sorry|congrat\w*|"
    r"enjoy|see you|talk soon|take care|have a)\b[^.:]{0,24}[,.!…]*$|(?:dear|hi|hello|hey)\b[^.:]{0,60}[,.!…]*$|"
    r"(?:i|we) hope (?:you|this)\b|i(?:['’]m| am) happy to help|"
    r"(?:please )?(?:let me know|feel free|don['’]t hesitate)\b|looking forward|"
    r"here(?:['’]s| is| are)\b.{0,60}:?$|that(?:['’]s| is) (?:everything|all|it)\b|thanks (?:for|again)\b|"
    r"thank you\b.{0,80}$", re.IGNORECASE,
)  # fmt: skip
_QUESTION: Final = re.compile(r"[?？؟]+[\"'”’)\s\W]*$")
_ASKS: Final = re.compile(
    r"(?:and |but |so )?(?:because|who|what|when|where|why|how|which|would you|could you|can you|do you)\b",
    re.IGNORECASE,
)
_OWN: Final = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Mm]ine|[Mm]yself)\b|[我私]")
_OURS: Final = re.compile(r"\b(?:[Ww]e|[Ww]e['’]\w+|[Oo]ur|[Uu]s|[Oo]urs)\b")
_LEANS: Final = re.compile(
    r"(?:(?:and|but|so|then|no,|yes,|ah+|oh) )?(?:he|she|it|they|his|her|its|their|this|that|these|those)\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\s*\(?(?:\d{1,2}|[A-Z])[.)]\s")
_CUT: Final = (re.compile(r"[;；]\s+"), re.compile(r"[,，、:–—]\s*"), re.compile(r"\s+"))
_LETTER: Final = re.compile(r"[^\W\d_]{2}")
_LABEL: Final = re.compile(r"[^:：]{1,40}[:：]\s*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact, and where in the text the sentence stands that it is."""

    text: str
    start: int
    end: int
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class _Sender:
    """Who says what stands behind ``start``: in a chat (``spoken``) or in a mail about ``subject``."""

    start: int
    name: str
    spoken: bool
    subject: str = ""


@dataclass(slots=True)
class Reading:
    """What a text states. ``dropped`` counts what was left out, by what it is."""

    facts: list[Statement] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    speakers: frozenset[str] = frozenset()


def facts_read(content: str) -> Reading:
    """Return the facts of ``content`` in their order, each of at most ``MAX_FACT`` characters, none twice. Linear."""
    masked, senders, left_out = _masked(content)
    blocks = [list(block) for _number, block in groupby(sentences_find(masked), key=attrgetter("block"))]
    named = {block[0].speaker for block in blocks if block[0].speaker} | {sender.name for sender in senders}
    reading, seen = Reading(dropped=left_out, speakers=frozenset(named)), set[str]()
    lead: tuple[int, str] | None = None
    section = ""
    for block, following in zip_longest(blocks, blocks[1:]):
        first = block[0]
        if _numbered_heading(first, masked):
            reading.dropped["heading"] += 1
            section, lead = first.text.strip(), None
            continue
        under = section or first.under
        if _heads_list(first, following, masked):
            reading.dropped["heading"] += 1
            lead = (_indent(masked, first.start), f"{under}: {first.text.strip()}".strip(": "))
            continue
        if first.kind != "item":
            lead = None
        elif lead and _indent(masked, first.start) > lead[0]:
            under = lead[1]
        sender = _sender_at(senders, first.start)
        speaker = first.speaker or (sender.name if sender else None)
        under = under or (sender.subject if sender else "")
        spoken = first.speaker is not None or (sender is not None and sender.spoken)
        for run in _runs(block, reading.dropped, speaker=speaker, spoken=spoken):
            text = " ".join(piece.text.strip() for piece in run)
            if first.kind == "prose" and _tells_little(text, spoken=spoken):
                reading.dropped["filler"] += len(run)
                continue
            if speaker and _said_by(text, speaker, spoken=spoken):
                text = f"{speaker[0].upper()}{speaker[1:]}: {text}"
            if under:
                text = f"{under[:MOST_HEADING].rstrip(':： ')}: {text}"
            key = fold(text).strip(" .!…。！")
            if key in seen:
                reading.dropped["repeat"] += 1
                continue
            seen.add(key)
            for part in cut_to(text, MAX_FACT):
                reading.facts.append(Statement(part, run[0].start, run[-1].end, speaker))
        if first.kind != "item" and all(_left_out(piece, spoken=spoken) == "heading" for piece in block):
            section = ""
    reading.dropped = +reading.dropped
    return reading


def _runs(
    block: Sequence[Sentence], dropped: Counter[str], *, speaker: str | None, spoken: bool
) -> list[list[Sentence]]:
    """Return the sentences of a paragraph, turn or item that state something. A turn and an item stay whole; in
    prose what leans on the sentence before stays with that: "He starts in May." Counts the others in ``dropped``."""
    first, pieces = block[0], list(block)
    if first.kind == "item":
        whole = " ".join(piece.text.strip() for piece in block)
        if len(whole) <= MAX_FACT and (speaker or not _OWN.search(whole)):
            pieces = [replace(first, text=whole, end=block[-1].end)]
    runs: list[list[Sentence]] = []
    size = 0
    for piece in pieces:
        text = piece.text.strip()
        why = _left_out(piece, spoken=spoken)
        if not why and piece.kind != "row":
            why = "leaning" if not size and _LEANS.match(text) else ""
            why = "speaker" if speaker is None and _OWN.search(text) else why
        if why:
            dropped[why] += bool(text)
            size = 0
        elif size and size + len(text) < MOST_JOINED and (spoken or _LEANS.match(text) or not has_verb(text[:400])):
            runs[-1].append(piece)
            size += len(text)
        else:
            runs.append([piece])
            size = len(text)
    return runs


def segments_cut(content: str, *, at_most: int) -> list[tuple[int, int]]:
    """Return ``content`` as spans of about ``at_most`` characters that end where sentences do.

    Together they cover the whole text. A sentence that is longer by itself is a segment by itself.
    """
    ends = [sentence.end for sentence in sentences_find(content)]
    if not ends:
        return []
    spans, start, at = [], 0, 0
    while at < len(ends):
        at = max(at, bisect_left(ends, start + at_most + 1) - 1)
        spans.append((start, ends[at]))
        start, at = ends[at], at + 1
    spans[-1] = (spans[-1][0], len(content))
    return spans


def cut_to(text: str, most: int) -> Iterator[str]:
    """Yield ``text`` in parts of at most ``most`` characters, cut at semicolons, else at commas, else between words."""
    text = text.strip()
    while len(text) > most:
        at = next((place for pattern in _CUT if (place := _last(pattern, text, most))), most)
        yield text[:at].strip()
        text = text[at:].strip()
    if text:
        yield text


def title_of(fact: str, *, most: int = 120) -> str:
    """Return a fact as a title: without the full stop, and cut between words where it is long."""
    plain = fact.strip()
    if plain.endswith(".") and not plain.endswith(".."):
        plain = plain[:-1]
    if len(plain) <= most:
        return plain
    return f"{next(cut_to(plain, most - 1)).rstrip(' ,;:–—')}…"


def _last(pattern: re.Pattern[str], text: str, most: int) -> int:
    # Half of the room at least, or a comma near the beginning would leave a scrap.
    return max((found.end() for found in pattern.finditer(text, most // 2, most) if found.end() <= most), default=0)


def _masked(content: str) -> tuple[str, list[_Sender], Counter[str]]:
    """Return ``content`` with blanks for headers, signatures and quotes of mails and for what a chat program says, who
    sends what from which place on, and how many lines were left out."""
    lines = content.splitlines(keepends=True)
    disclaimed = _disclaimed(lines)
    parts: list[str] = []
    senders: list[_Sender] = []
    dropped: Counter[str] = Counter()
    mail = any(_SENDER.match(line.strip()) for line in lines)
    headed = [found["name"] for line in lines if (found := _SPEAKER_LINE.match(line.strip()))]
    speaking = set(headed) if len(headed) > 1 else set()
    at, signing = 0, ""
    for number, line in enumerate(lines):
        plain = line.strip().lstrip("*_")
        header, quote, rule = _HEADER.match(plain), _QUOTE.match(line), _RULE.match(line)
        why = ""
        if found := _SENDER.match(plain):
            senders.append(_Sender(at, found["name"].strip(), spoken=False))
        elif senders and not senders[-1].spoken and (found := _SUBJECT.match(plain)):
            senders[-1] = replace(senders[-1], subject=found["subject"])
        elif (found := _SPEAKER_LINE.match(plain)) and found["name"] in speaking:
            senders.append(_Sender(at, found["name"], spoken=True))
            why = "header"
        if header or quote or rule:
            signing = ""
        if why:
            pass
        elif quote:
            why = "quote"
        elif header and len(plain) < 300:
            why = "header"
        elif rule or _SYSTEM.match(plain) or number in disclaimed:
            why = "filler"
        elif _DASHES.match(line):
            why, signing = "signature", "dashes"
        elif len(plain) < 60 and _SIGN_OFF.match(plain):
            why, signing = "signature", "name" if mail else ""
        elif signing == "dashes" or (signing == "name" and plain and len(plain) < 60):
            why = "signature"
        elif signing == "name" and plain:
            signing = ""
        gone = re.compile(r"[^\r\n]") if why else _EDITED
        parts.append(gone.sub(lambda found: " " * len(found.group()), line))
        dropped[why] += bool(why and plain)
        at += len(line)
    del dropped[""]
    return "".join(parts), senders, dropped


def _disclaimed(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines of paragraphs that are a disclaimer."""
    found: set[int] = set()
    for blank, group in groupby(range(len(lines)), key=lambda number: not lines[number].strip()):
        numbers = list(group)
        if not blank and _DISCLAIMER.search(" ".join(lines[number].strip() for number in numbers)):
            found.update(numbers)
    return found


def _sender_at(senders: list[_Sender], at: int) -> _Sender | None:
    place = bisect_right(senders, at, key=lambda sender: sender.start)
    return senders[place - 1] if place else None


def _left_out(sentence: Sentence, *, spoken: bool) -> str:
    """Return what a sentence is that states nothing; empty if it may state something."""
    text = sentence.text.strip()
    if sentence.kind in ("mark", "code", "heading"):
        return sentence.kind
    if not _LETTER.search(text) and not re.search(r"\w", text):
        return "filler"
    if _LABEL.fullmatch(text):
        return "heading"
    if _QUESTION.search(text):
        return "question"
    bare = text.strip(" *_>\"'“”‘’")
    if _COURTESY.match(bare) and (spoken or not re.search(r"\d", bare)):
        return "filler"
    if sentence.kind in ("item", "row"):
        return "heading" if bare.isupper() and len(bare.split()) < LEAST_SPOKEN else ""
    if spoken:
        return ""
    # A line without a verb is a heading, a name or an address.
    short = bare.isascii() and len(bare.split()) <= LONGEST_HEADING
    return "heading" if short and not has_verb(bare) else ""


def _numbered_heading(sentence: Sentence, content: str) -> bool:
    """Tell whether an item is the title of a numbered section: "2. Building works" below an empty line, and no further
    number right below it."""
    text = sentence.text.strip()
    begins = _NUMBER.match(content, sentence.start)
    after_gap = re.search(r"(?:\A|\n[ \t]*\r?\n)[ \t]*\Z", content[max(0, sentence.start - 40) : sentence.start])
    below = re.match(r"[ \t]*\r?\n(?!\s*\(?(?:\d{1,2}|[A-Z])[.)]\s)", content[sentence.end : sentence.end + 80])
    if sentence.kind != "item" or not (begins and after_gap and below) or len(text.split()) > LONGEST_HEADING:
        return False
    return not has_verb(text[:200])


def _heads_list(sentence: Sentence, following: Sequence[Sentence] | None, content: str) -> bool:
    """Tell whether an item of a word or two only announces the items indented under it."""
    if sentence.kind == "item" and sentence.text.rstrip().endswith((":", "：")):
        return True
    if sentence.kind != "item" or len(sentence.text.split()) > 2 or not following or following[0].kind != "item":
        return False
    return _indent(content, following[0].start) > _indent(content, sentence.start)


def _indent(content: str, at: int) -> int:
    line = content[content.rfind("\n", 0, at) + 1 :][:80]
    return len(line) - len(line.lstrip(" \t"))


def _tells_little(text: str, *, spoken: bool) -> bool:
    """Tell whether a run of sentences says nothing that somebody who was not there could use."""
    if spoken and _small_talk(text):
        return True
    if _NAMED.search(text) or (not spoken and numbers(text)):
        return False
    return len(set(stems(text))) < (LEAST_TOLD if spoken else LEAST_TELLING)


def _small_talk(text: str) -> bool:
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text)
    if not text.isascii() and len(words) < LEAST_SPOKEN and not re.search(r"[A-Za-z]{2}", text):
        # A script without spaces counts no words.
        return len(text) < 2 * LEAST_SPOKEN
    if len(words) < LEAST_SPOKEN or _ASKS.match(text) or text.rstrip(" \"'").endswith("!!"):
        return True
    verb = has_verb(text[:400]) or bool(_OWN.search(text))
    return not verb or len(stems(text)) < (1 if _OWN.search(text) else 2)


def _said_by(text: str, speaker: str, *, spoken: bool) -> bool:
    """Tell whether it has to be said who says this: in a conversation, and of what says "I" or "we" without a name."""
    if re.search(rf"(?<!\w){re.escape(speaker)}(?!\w)", text, re.IGNORECASE):
        return False
    return spoken or bool(_OWN.search(text) or _OURS.search(text))
