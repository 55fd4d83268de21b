"""Divides a text into segments, and extracts the facts of each by the language model, or by rules without one."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings

from memory.extraction.known import fact_key
from memory.extraction.model_cache import answer_get, answer_keep, key_of
from memory.llm.client import model_configured
from memory.llm.facts import CheckedFacts, facts_ask
from memory.llm.wire import ModelProblem
from memory.text.sentences import sentences_find
from memory.text.statements import Reading, facts_read, segments_cut
from memory.text.statements import Statement as Fact

LLM, EXTRACTIVE = "llm", "extractive"
# Long enough to resolve pronouns; short enough for a small model, and to lose little when a job is killed.
SEGMENT_CHARS = 3_000
# Characters before a segment that are sent to the model as context.
BEFORE_CHARS = 400
# The model is not asked if less time is left.
LEAST_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The facts of one segment, the method that found them, and the numbers of dropped parts. ``warning`` says why a
    configured model was not used."""

    facts: list[Fact]
    method: str
    dropped: Counter[str] = field(default_factory=Counter)
    warning: str = ""


class Segments:
    """A text cut at the ends of sentences. The same text is cut the same way each time."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.spans = segments_cut(content, at_most=SEGMENT_CHARS)
        self._reading: Reading | None = None

    def __len__(self) -> int:
        return len(self.spans)

    def reading(self) -> Reading:
        """Return what rules find in the whole text. Thus a name in one segment is known in the next."""
        if self._reading is None:
            self._reading = facts_read(self.content)
        return self._reading

    def facts(self, number: int, *, until: float | None = None) -> SegmentFacts:
        """Return the facts of one segment. Waits for a model at most until ``until`` of the monotonic clock, and at
        most ``MEMSTATE_LLM_TIMEOUT_SECONDS``. No queries; never raises because of a model."""
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
        facts = [fact for fact in self.reading().facts if start <= fact.start < end]
        # Dropped parts are counted for the whole text, and returned with the first segment.
        return SegmentFacts(facts, EXTRACTIVE, self.reading().dropped if number == 0 else Counter())

    def _by_model(self, number: int, seconds: float) -> CheckedFacts:
        start, end = self.spans[number]
        units = [sentence.text for sentence in sentences_find(self.content[start:end])]
        text, before = self.content[start:end], self.content[max(0, start - BEFORE_CHARS) : start]
        key = key_of(settings.MEMSTATE_LLM_MODEL, before, text)
        answer = answer_get(key)
        if answer is None:
            speakers = sorted(self.reading().speakers)
            answer = facts_ask(text, before=before, speakers=speakers, units=units, within=seconds)
            answer_keep(key, answer)
        return answer


@dataclass(slots=True)
class GatheredFacts:
    """The facts of several segments, without repetitions."""

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
    """Return the facts of a whole text. A model may take ``seconds``. ``tick`` is called after each segment."""
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
    """Return a sentence on how the facts were found, and on the limits of this method."""
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
