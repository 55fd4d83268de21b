"""Divides a text into segments, and extracts the facts of each segment with the language model, or with rules."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from django.conf import settings
from django.core.cache.backends.locmem import LocMemCache

from memory.extraction.known import fact_key
from memory.extraction.parts import parts_cut
from memory.llm.chat_request import model_configured
from memory.llm.facts import CheckedFacts, facts_ask
from memory.llm.wire import ModelProblem
from memory.text.sentences import sentences_find
from memory.text.statements import Reading, facts_read
from memory.text.statements import Statement as Fact

LLM, EXTRACTIVE = "llm", "extractive"
# The maximum number of characters of a segment. Pronouns can be resolved in a segment of this length. A small model can
# process it, and little work is lost if a job is killed.
SEGMENT_CHARS = 3_000
# Characters before a segment that are sent to the model as context.
BEFORE_CHARS = 400
# If fewer seconds are left, rules are used instead of the model.
LEAST_SECONDS = 0.5
# Recent answers of the model, so that a request to store can use the answer of its preview. The shared cache is not
# used, because a purge cannot erase text there.
answers = LocMemCache("extraction", {"TIMEOUT": 600, "OPTIONS": {"MAX_ENTRIES": 64}})


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The facts of one segment, the method that found them, and the numbers of dropped parts. ``warning`` says why a
    configured model was not used."""

    facts: list[Fact]
    method: str
    dropped: Counter[str] = field(default_factory=Counter)
    warning: str = ""


class Segments:
    """A text cut at its breaks. The same text is cut the same way each time."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.spans = parts_cut(content, at_most=SEGMENT_CHARS)

    def __len__(self) -> int:
        return len(self.spans)

    @cached_property
    def reading(self) -> Reading:
        """The result of the rules for the whole text, so that a name in one segment is known in the next."""
        return facts_read(self.content)

    def facts(self, number: int, *, until: float | None = None) -> SegmentFacts:
        """Return the facts of one segment. Waits for a model for at most ``MEMSTATE_LLM_TIMEOUT_SECONDS``, and not
        beyond ``until``, a time of ``time.monotonic``. If the model fails, rules are used. No queries."""
        plain = self._by_rules(number)
        if not model_configured():
            return plain
        seconds = settings.MEMSTATE_LLM_TIMEOUT_SECONDS
        if until is not None:
            seconds = min(seconds, until - time.monotonic())
        if seconds < LEAST_SECONDS:
            warning = "There was not enough time to ask the language model about the whole text."
            return replace(plain, warning=warning)
        try:
            answer = self._by_model(number, seconds)
        except ModelProblem as problem:
            return replace(plain, warning=problem.sentence)
        start, end = self.spans[number]
        return SegmentFacts([Fact(text, start, end) for text in answer.facts], LLM, answer.dropped)

    def _by_rules(self, number: int) -> SegmentFacts:
        start, end = self.spans[number]
        facts = [fact for fact in self.reading.facts if start <= fact.start < end]
        # Dropped parts are counted for the whole text. The first segment returns all counts.
        return SegmentFacts(facts, EXTRACTIVE, self.reading.dropped if number == 0 else Counter())

    def _by_model(self, number: int, seconds: float) -> CheckedFacts:
        start, end = self.spans[number]
        text, before = self.content[start:end], self.content[max(0, start - BEFORE_CHARS) : start]
        asked = f"{settings.MEMSTATE_LLM_MODEL}\x00{before}\x00{text}"
        key = hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()
        answer: CheckedFacts | None = answers.get(key)
        if answer is None:
            units = [sentence.text for sentence in sentences_find(text)]
            speakers = sorted(self.reading.speakers)
            answer = facts_ask(text, before=before, speakers=speakers, units=units, within=seconds)
            answers.set(key, answer)
        return answer


@dataclass(slots=True)
class GatheredFacts:
    """The facts of several segments, each with the method that found it, without repetitions."""

    facts: list[tuple[Fact, str]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    warning: str = ""
    _seen: set[str] = field(default_factory=set)

    def add(self, found: SegmentFacts) -> None:
        """Add the facts of one segment."""
        self.methods.append(found.method)
        self.dropped += found.dropped
        self.warning = self.warning or found.warning
        for fact in found.facts:
            key = fact_key(fact.text)
            if key in self._seen:
                self.dropped["repeat"] += 1
            else:
                self._seen.add(key)
                self.facts.append((fact, found.method))


def segments_gather(content: str, *, seconds: float, tick: Callable[[int, int], None] | None = None) -> GatheredFacts:
    """Return the facts of a whole text. Waits for a model for at most ``seconds`` in total. ``tick`` is called after
    each segment with (segments done, all segments)."""
    until = time.monotonic() + seconds
    segments, gathered = Segments(content), GatheredFacts()
    for number in range(len(segments)):
        gathered.add(segments.facts(number, until=until))
        if tick is not None:
            tick(number + 1, len(segments))
    return gathered


def method_of(methods: Sequence[str]) -> str:
    """Return the method of a whole text: llm only if the model read every segment."""
    return LLM if methods and set(methods) == {LLM} else EXTRACTIVE


def note_of(methods: Sequence[str]) -> str:
    """Return how the facts were found, and the limits of this method."""
    if method_of(methods) == LLM:
        return "A language model extracted the facts; each was checked against its text."
    if LLM in methods:
        return (
            f"A language model extracted the facts of {methods.count(LLM)} of {len(methods)} parts of the text. The "
            "facts of the other parts are sentences of the text."
        )
    return (
        "These are unchanged sentences of the text. Facts that follow from several sentences, or are only implied, are "
        "not found, and small talk may remain."
    )
