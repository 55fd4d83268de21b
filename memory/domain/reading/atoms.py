"""A text as facts: one self-contained sentence for each thing that it states. No model takes part.

Sentences are divided into their clauses, pronouns are put into words where the text leaves no choice, and what states
nothing is left out: questions, greetings, "that's great", what was said before in the same words. What a text *means*,
or what follows from two of its sentences, is beyond this.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from memory.domain.reading.clauses import clauses_split
from memory.domain.reading.fillers import comments_only, openers_strip, states_nothing, subject_restore, vocatives_strip
from memory.domain.reading.folding import fold
from memory.domain.reading.persons import persons_find
from memory.domain.reading.pronouns import Context, pronouns_resolve, unresolved
from memory.domain.reading.sentences import Sentence, sentences_find

# One fact. Longer sentences are cut where they may be.
MAX_FACT = 500
# In a conversation, so few words without a verb are an answer to something.
SCRAP_WORDS = 3

_QUESTION = re.compile(r"[?？؟]+[\"'”’)\s]*$")
_CUT = (re.compile(r"[;；]\s+"), re.compile(r"[,，、:–—]\s*"), re.compile(r"\s+"))
_BARE_KEY = re.compile(r"^[^:：]{1,40}[:：]$")
_LEANS = re.compile(r"(?:it|its|it['’]\w+|this|that|that['’]s|these|those|which|there)\b", re.IGNORECASE)
# What is said behind these holds under a condition, in somebody's words, or of somebody else.
_DEPENDS = re.compile(
    r"(?<=\w)\s(?:who|whom|whose|which|that|where|when|if|unless|whether|how|said|says|thinks?|thought|told|heard|"
    r"claims?|"
    r"claimed|believes?|believed|people|those|anyone|everyone)\b|^(?:if|when|unless|whenever)\b",
    re.IGNORECASE,
)
_OPEN_VERB = re.compile(
    r"\b(?:to|can|could|will|would|should|may|might|must|let|['’]ll|['’]d|don['’]t|gonna)\s", re.IGNORECASE
)
_NO_ENGLISH = re.compile(r"\S{61,}|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
_AND_VERB = re.compile(
    r"(?P<first>(?P<who>I|We)\s(?:(?!\b(?:and|but)\b).)+?),?\s(?:and|but)\s(?P<rest>(?:(?:also|now|still|usually|"
    r"often|never|"
    r"really|then)\s)?(?:work|live|love|like|hate|play|teach|have|am|go|want|need|study|run|speak|prefer|enjoy|"
    r"take|own|"
    r"use|drive|eat|drink|read|write|travel|swim|cook|know|plan|hope|feel|spend|visit|train|volunteer|collect|"
    r"paint)\s"
    r"(?:at|in|for|with|on|as|an?|the|my|our|to|from|about|every|no|two|three|four|lots|some|it|them|both|"
    r"allergic)\s.+)"
)
_CLOSING = re.compile(r"[.!?…。！？:;][\"'”’»)\]]*$")
_LETTER = re.compile(r"[^\W_]")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|does|did|do|am|be|been|lives?|works?|likes?|loves?|"
    r"needs?|"
    r"wants?|goes|went|\w{3,}(?:ed|es))\b|['’](?:s|m|re|ve|ll)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, and where in the text the sentence stands that it was read from."""

    text: str
    start: int
    end: int
    speaker: str | None = None


@dataclass(slots=True)
class Reading:
    """What a text states. ``dropped`` counts the sentences that state nothing, by what they are."""

    facts: list[Fact] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    speakers: frozenset[str] = frozenset()


def facts_read(content: str) -> Reading:
    """Return the facts of ``content`` in their order, each of at most ``MAX_FACT`` characters, none twice.

    About two milliseconds a sentence, most of them for its grammar.
    """
    sentences = sentences_find(content)
    speakers = frozenset(sentence.speaker for sentence in sentences if sentence.speaker)
    reading, context, seen = Reading(speakers=speakers), Context(speakers), set[str]()
    for sentence in sentences:
        for text in _stated(sentence, context, reading):
            key = fold(text).strip(" .!…。！")
            if key in seen:
                reading.dropped["repeat"] += 1
                continue
            seen.add(key)
            for part in cut_to(text, MAX_FACT):
                reading.facts.append(Fact(part, sentence.start, sentence.end, sentence.speaker))
    return reading


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


def _stated(sentence: Sentence, context: Context, reading: Reading) -> Iterator[str]:
    text, speaker = sentence.text, sentence.speaker
    why = _in_vain(sentence)
    if why:
        if text and sentence.kind != "code":
            if why == "question":
                pronouns_resolve(text, context=context, speaker=speaker)
            reading.dropped[why] += 1
        return
    if sentence.kind == "row":
        yield text
        return
    if speaker:
        text = vocatives_strip(text, context.speakers)
        if comments_only(text):
            reading.dropped["comment"] += 1
            return
    text = openers_strip(text)
    if speaker:
        text = subject_restore(text)
    if sentence.kind == "item" and sentence.under and not _VERB.search(text):
        # "peanuts" under "Allergies".
        yield f"{sentence.under}: {text}"
        return
    for clause in _clauses(text):
        if states_nothing(clause, spoken=speaker is not None) or (speaker and _scrap(clause)):
            reading.dropped["filler"] += 1
            continue
        told = pronouns_resolve(clause, context=context, speaker=speaker)
        yield _finished(_attributed(told, speaker, context), sentence)


def _in_vain(sentence: Sentence) -> str:
    """Return what a sentence is that states nothing; empty if it may state something."""
    if sentence.kind in ("mark", "code", "heading"):
        return sentence.kind
    if not _LETTER.search(sentence.text) or _BARE_KEY.match(sentence.text):
        return "filler"
    return "question" if _QUESTION.search(sentence.text) else ""


def _clauses(text: str) -> Iterator[str]:
    """Yield the facts of one sentence; one that begins with "it" or "this" stays with what it speaks of."""
    for part in _first_person_cut(text):
        # A tagger for English takes long over what has no spaces, and learns nothing.
        clauses = [] if _NO_ENGLISH.search(part) else [clause for clause in clauses_split(part) if not clause.item]
        if len(clauses) < 2:
            yield part
            continue
        told, begin = clauses[0].text, clauses[0].start
        for before, clause in pairwise(clauses):
            in_order = clause.start >= before.start
            if in_order and (_LEANS.match(clause.text) or _DEPENDS.search(part[begin : clause.start])):
                told = f"{told.rstrip('.')} {part[clause.start : clause.end].strip()}"
                continue
            yield told
            told, begin = clause.text, clause.start
        yield told


def _first_person_cut(text: str) -> list[str]:
    """Divide "I live in Oslo and work at Telenor": without an ending, such verbs look like nouns to a tagger."""
    found = _AND_VERB.match(text)
    if not found or _DEPENDS.search(found["first"]) or _OPEN_VERB.search(found["first"]):
        return [text]
    return [f"{found['first'].rstrip(' ,')}.", *_first_person_cut(f"{found['who']} {found['rest']}")]


def _attributed(text: str, speaker: str | None, context: Context) -> str:
    """Return what somebody said with who said it, where the statement does not tell by itself."""
    if speaker is None:
        return text
    named = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in context.speakers)
    # Whoever a fact is about, by name, is enough.
    about = any(person.sure and person.start == 0 for person in persons_find(text))
    if (named or about) and not unresolved(text, spoken=True):
        return text
    return f"{speaker[0].upper()}{speaker[1:]}: {text}"


def _scrap(text: str) -> bool:
    """Tell whether something said is an answer that says nothing without its question: "Every Thursday." """
    words = text.split()
    return len(words) <= SCRAP_WORDS and not _VERB.search(text) and not re.search(r"[\d@]|[^\x00-\x7f]", text)


def _finished(text: str, sentence: Sentence) -> str:
    text = text.strip()
    text = (
        text[:1].upper() + text[1:] if text[:1].isalpha() and sentence.kind == "prose" and _plain_start(text) else text
    )
    return text if _CLOSING.search(text) or sentence.kind == "item" or text[-1:] > "\u2fff" else f"{text}."


def _plain_start(text: str) -> bool:
    # Not "iPhone", "x@y.z", "https://".
    return bool(re.match(r"[a-z]+(?:['’]\w+)?(?=[\s,.;:!]|$)", text))
