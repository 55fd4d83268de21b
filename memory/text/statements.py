"""Extracts the facts that a text states, in its own words and without a model. Greetings, headers, questions, headings
and small talk are left out. A fact begins with its heading and, where needed, its speaker. Only English is judged by
its grammar: a sentence of another language is kept, because losing one is worse than storing a heading."""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Final

from memory.text.grammar import has_verb, is_english
from memory.text.messages import messages_masked, sender_at
from memory.text.sentences import Sentence, sentences_find
from memory.text.stems import stems

# The longest fact in characters. Longer sentences are cut.
MAX_FACT: Final = 500
# Neighbouring sentences are joined into one fact up to this length.
MAX_JOINED: Final = 300
# The longest part of a heading that is put before a fact.
MAX_HEADING: Final = 120
# In a conversation, a sentence with fewer words is only an answer.
LEAST_SPOKEN: Final = 4
# The maximum number of words of a heading.
LONGEST_HEADING: Final = 8
# A fact without a name needs at least this number of content words. The second limit is for what speakers in a
# conversation state about others: "I am allergic to nuts." has two.
LEAST_WORDS: Final = 2
LEAST_WORDS_SPOKEN: Final = 3
_NAMED: Final = re.compile(r"\S\s+\W{0,20}[A-ZÀ-Þ][^\W\d_]+")
_COURTESY: Final = re.compile(
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|luck)|hallo|bonjour|hola|morning|evening|welcome|bye|ciao|"
    r"thanks|thank you|thx|cheers|great|perfect|awesome|sure|ok(?:ay)?|lol|haha\w*|sorry|congrat\w*|"
    r"enjoy|see you|talk soon|take care|have a)\b[^.:]{0,24}[,.!…]*$|(?:dear|hi|hello|hey)\b[^.:]{0,60}[,.!…]*$|"
    # "No, thanks" is an answer, but "No sugar in the tea." and the Spanish "No come pescado." are not.
    r"(?:yes|no|yep|nope)(?:[,!.…][^.:]{0,24})?[,.!…]*$|"
    r"(?:i|we) hope (?:you|this)\b|i(?:['’]m| am) happy to help|"
    r"(?:please )?(?:let me know|feel free|don['’]t hesitate)\b|looking forward|"
    r"here(?:['’]s| is| are)\b.{0,60}:?$|that(?:['’]s| is) (?:everything|all|it)\b|thanks (?:for|again)\b|"
    r"thank you\b.{0,80}$",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(r"[?？؟]+[\"'”’)\s\W]*$")
_FIRST_PERSON: Final = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Mm]ine|[Mm]yself)\b")
_FIRST_PERSON_SIGN: Final = re.compile("[我私]")
_FIRST_PERSON_PLURAL: Final = re.compile(r"\b(?:[Ww]e|[Ww]e['’]\w+|[Oo]ur|[Uu]s|[Oo]urs)\b")
_STARTS_WITH_PRONOUN: Final = re.compile(
    r"(?:(?:and|but|so|then|no,|yes,|ah+|oh) )?(?:he|she|it|they|his|her|its|their|this|that|these|those)\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\s*\(?(?:\d{1,2}|[A-Z])[.)]\s")
_LETTER: Final = re.compile(r"[^\W\d_]{2}")
# "Allergies: penicillin".
_VALUE: Final = re.compile(r"[A-Za-z][\w ]{1,38}[^\W_]: ([^:.!?]+)")
_FULL_STOP: Final = re.compile(r"[.!…。．！।۔။។]['\"”’»)\]]*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact, and its span in the text."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Reading:
    """The facts of a text. ``dropped`` counts the parts that were left out, by reason."""

    facts: list[Statement] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    speakers: frozenset[str] = frozenset()


def facts_read(content: str) -> Reading:
    """Return the facts of ``content`` in order, each of at most ``MAX_FACT`` characters. Linear time."""
    masked, senders, left_out = messages_masked(content)
    blocks = [list(block) for _number, block in groupby(sentences_find(masked), key=attrgetter("block"))]
    named = {block[0].speaker for block in blocks if block[0].speaker} | {sender.name for sender in senders}
    reading = Reading(dropped=left_out, speakers=frozenset(named))
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
        sender = sender_at(senders, first.start)
        speaker = first.speaker or (sender.name if sender else None)
        under = under or (sender.subject if sender else "")
        spoken = first.speaker is not None or (sender is not None and sender.spoken)
        pieces = _pieces(block, speaker)
        reasons = [_left_out(piece, spoken=spoken) for piece in pieces]
        for run in _runs(pieces, reasons, reading.dropped, speaker=speaker, spoken=spoken):
            text = " ".join(piece.text.strip() for piece in run)
            if first.kind == "prose" and _says_too_little(text, spoken=spoken):
                reading.dropped["filler"] += len(run)
                continue
            # The speaker is put before facts of a conversation and facts with "I" or "we", unless the fact contains the
            # name.
            is_named = speaker and re.search(rf"(?<!\w){re.escape(speaker)}(?!\w)", text, re.IGNORECASE)
            if speaker and not is_named and (spoken or _first_person(text) or _FIRST_PERSON_PLURAL.search(text)):
                text = f"{speaker[0].upper()}{speaker[1:]}: {text}"
            if under:
                text = f"{under[:MAX_HEADING].rstrip(':： ')}: {text}"
            for part in textwrap.wrap(text, MAX_FACT, break_on_hyphens=False):
                reading.facts.append(Statement(part, run[0].start, run[-1].end))
        if first.kind != "item" and set(reasons) == {"heading"}:
            section = ""
    reading.dropped = +reading.dropped
    return reading


def _pieces(block: Sequence[Sentence], speaker: str | None) -> list[Sentence]:
    """Return the sentences of a block. A list item stays whole, unless it is long or says "I" without a known
    author."""
    first = block[0]
    whole = " ".join(piece.text.strip() for piece in block)
    if first.kind == "item" and len(whole) <= MAX_FACT and (speaker or not _first_person(whole)):
        return [replace(first, text=whole, end=block[-1].end)]
    return list(block)


def _runs(
    pieces: Sequence[Sentence], reasons: Sequence[str], dropped: Counter[str], *, speaker: str | None, spoken: bool
) -> list[list[Sentence]]:
    """Return groups of the pieces that state something, and count the other pieces in ``dropped``. In a conversation,
    neighbouring pieces form a group of up to ``MAX_JOINED`` characters. In prose, a sentence joins the previous one
    only if it begins with a pronoun ("He starts in May.") or has no verb."""
    runs: list[list[Sentence]] = []
    size = 0
    for piece, reason in zip(pieces, reasons, strict=True):
        text = piece.text.strip()
        leaning = bool(_STARTS_WITH_PRONOUN.match(text)) and is_english(text)
        if not reason and piece.kind != "row":
            reason = "leaning" if not size and leaning else ""
            reason = "speaker" if speaker is None and _first_person(text) else reason
        if reason:
            dropped[reason] += bool(text)
            size = 0
        elif (
            size
            and size + len(text) < MAX_JOINED
            and (spoken or leaning or (is_english(text) and not has_verb(text[:400])))
        ):
            runs[-1].append(piece)
            size += len(text)
        else:
            runs.append([piece])
            size = len(text)
    return runs


def _left_out(sentence: Sentence, *, spoken: bool) -> str:
    """Return why a sentence states nothing; empty if it may state something."""
    text = sentence.text.strip()
    if sentence.kind in ("mark", "code", "heading"):
        return sentence.kind
    if not _LETTER.search(text) and not re.search(r"\w", text):
        return "filler"
    if _QUESTION.search(text):
        return "question"
    unquoted = text.strip(" *_>\"'“”‘’")
    if _COURTESY.match(unquoted) and (spoken or not re.search(r"\d", unquoted)):
        return "filler"
    if spoken or sentence.kind in ("item", "row"):
        return ""
    # A short line without a full stop and a verb is a heading, a name or an address, unless it is a label with a value.
    short = len(unquoted.split()) <= LONGEST_HEADING and not _FULL_STOP.search(text)
    states = not is_english(unquoted) or has_verb(unquoted) or _first_person(unquoted) or _VALUE.fullmatch(unquoted)
    return "heading" if short and not states else ""


def _first_person(text: str) -> bool:
    """Return whether a speaker speaks of himself or herself. "Me" and "mine" are other words in other languages."""
    return bool(_FIRST_PERSON_SIGN.search(text)) or (bool(_FIRST_PERSON.search(text)) and is_english(text))


def _numbered_heading(sentence: Sentence, content: str) -> bool:
    """Return whether an item is a section title, such as "2. Building works": an empty line precedes it, and the next
    line has no number."""
    text = sentence.text.strip()
    begins = _NUMBER.match(content, sentence.start)
    after_gap = re.search(r"(?:\A|\n[ \t]*\r?\n)[ \t]*\Z", content[max(0, sentence.start - 40) : sentence.start])
    below = re.match(r"[ \t]*\r?\n(?!\s*\(?(?:\d{1,2}|[A-Z])[.)]\s)", content[sentence.end : sentence.end + 80])
    if sentence.kind != "item" or not (begins and after_gap and below) or len(text.split()) > LONGEST_HEADING:
        return False
    return is_english(text) and not has_verb(text[:200])


def _heads_list(sentence: Sentence, following: Sequence[Sentence] | None, content: str) -> bool:
    """Return whether an item only introduces the items indented under it."""
    if sentence.kind == "item" and sentence.text.rstrip().endswith((":", "：")):
        return True
    if sentence.kind != "item" or len(sentence.text.split()) > 2 or not following or following[0].kind != "item":
        return False
    return _indent(content, following[0].start) > _indent(content, sentence.start)


def _indent(content: str, at: int) -> int:
    start = content.rfind("\n", 0, at) + 1
    line = content[start : start + 80]
    return len(line) - len(line.lstrip(" \t"))


def _says_too_little(text: str, *, spoken: bool) -> bool:
    """Return whether a fact has too few content words to be understood later."""
    if spoken and _small_talk(text):
        return True
    if _NAMED.search(text) or not is_english(text):
        return False
    return len(set(stems(text))) < (LEAST_WORDS_SPOKEN if spoken and not _first_person(text) else LEAST_WORDS)


def _small_talk(text: str) -> bool:
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text)
    if not text.isascii() and len(words) < LEAST_SPOKEN and not re.search(r"[A-Za-z]{2}", text):
        # Words cannot be counted in a script without spaces.
        return len(text) < 2 * LEAST_SPOKEN
    if len(words) < LEAST_SPOKEN or text.rstrip(" \"'").endswith("!!"):
        return True
    if not is_english(text):
        return False
    own = _first_person(text)
    return not (own or has_verb(text[:400])) or len(stems(text)) < (1 if own else 2)
