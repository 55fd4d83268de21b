"""Adds a finished study of a long text. The steps and tools are those of any other study.

A demo has no model, so the notes that a model would have written are in the data file, together with the text
(``story/retrospective.toml``).
"""

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from memory.access.principal import Principal
from memory.agents.chat.conversations import Channel, conversation_begin
from memory.agents.chat.prompts import long_message, study_sentence
from memory.agents.chat.turns import CallLog, Ended, intent_store, turn_begin
from memory.agents.study.control import study_start, worker_released
from memory.agents.study.steps import BuildStep, LinkStep
from memory.agents.study.work import study_step
from memory.agents.tools.loop import LoopEnd
from memory.agents.tools.tool import ToolCalled
from memory.demo.conversations import LEADER, MODEL
from memory.demo.material import Minutes, Note, minutes_read
from memory.demo.records import topic_id
from memory.demo.schedule import Calendar
from memory.extraction.parts import parts_cut
from memory.models import StudyJob, Topic, WakeUp

SCOPE = "/project/atlas"
WRITER = Principal(identity=LEADER, actor=LEADER, role="operator")
STUDY_ID = topic_id("study")
# The study is later than the last run of the half year.
BEFORE = dt.timedelta(hours=3)
# The clock advances by this many seconds with each call.
_BETWEEN = dt.timedelta(seconds=3)

Call = tuple[str, dict[str, Any]]


def study_load(*, now: dt.datetime) -> None:
    """Write a conversation with one message, which is studied. Does nothing if a topic to merge is missing, as in the
    smallest stories. One transaction with about five hundred SQL statements. Raises ``EmbeddingFailed``."""
    minutes = minutes_read(day_zero=Calendar(now).day_zero)
    text, sections = _read(minutes)
    keys = {to for _end, notes in sections for note in notes for _kind, to in note.links} | set(
        minutes.same_as.values()
    )
    there = set(
        Topic.objects.filter(
            pk__in=map(topic_id, keys), vitality__live=True, scope__path__startswith=SCOPE
        ).values_list("pk", flat=True)
    )
    if not {topic_id(key) for key in minutes.same_as.values()} <= there:
        return
    clock = _Clock(now - BEFORE)
    with transaction.atomic():
        talk = conversation_begin(scope=SCOPE, channel=Channel.CONSOLE, principal=WRITER, now=clock())
        turn = turn_begin(talk, message=long_message(len(text)), model=MODEL, now=clock())
        intent_store(turn, intent="ingest", source="model")
        job = study_start(
            text,
            conversation_id=talk.pk,
            scope=SCOPE,
            model=MODEL,
            principal=WRITER,
            now=clock(),
            enqueue=None,
            job_id=STUDY_ID,
            needs_model=False,
        )
        worker_released(job.pk)
        reply = study_sentence(len(text), job.segments)
        CallLog(turn).end(reply=reply, ended=Ended.DONE, rounds=0, now=clock(), study_id=job.pk)
        cuts = parts_cut(text, at_most=job.part_chars)
        taker = _ScriptedModel(sections, minutes.same_as, cuts, there)
        while job.status == StudyJob.Status.WORKING:
            clock.at = max(clock.at, job.not_before or clock.at)
            study_step(job.pk, clock=clock, until=0.0, cuts=cuts, speak=taker)
            job.refresh_from_db()
        # The wake-ups get the present time, because old ones would be reported as a stalled worker.
        late = WakeUp.objects.filter(scope__path=SCOPE, first_at__gte=now - BEFORE, first_at__lt=now)
        late.update(first_at=now, last_at=now)


class _Clock:
    """A clock that advances by some seconds with each call."""

    def __init__(self, at: dt.datetime) -> None:
        self.at = at

    def __call__(self) -> dt.datetime:
        self.at += _BETWEEN
        return self.at


@dataclass(slots=True)
class _ScriptedModel:
    """Replaces the model: calls the tools of each step as a model would."""

    # For each section, the position of its end in the text, and its notes.
    sections: list[tuple[int, tuple[Note, ...]]]
    # Maps the key of a note to the key of a topic of the story that says the same.
    same_as: dict[str, str]
    cuts: list[tuple[int, int]]
    # Other topics to which notes can be linked.
    there: set[uuid.UUID]
    made: dict[str, uuid.UUID] = field(default_factory=dict)

    def __call__(self, _job: StudyJob, step: BuildStep | LinkStep) -> LoopEnd:
        box = step.toolbox()
        if isinstance(step, LinkStep):
            for name, arguments in self._places(set(step.own)):
                _checked(box.call(name, arguments))
        else:
            start, end = self.cuts[step.at]
            for note in [note for to, notes in self.sections if start < to <= end for note in notes]:
                called = _checked(box.call(*self._noted(note)))
                self.made.setdefault(note.key, called.topic_ids[0])
        return LoopEnd(reply="done", rounds=1)

    def _noted(self, note: Note) -> Call:
        fields = [{"name": each.name, "value": each.value} for each in note.fields]
        if note.key in self.made:
            return "extend_topic", {"topic_id": str(self.made[note.key]), "fields": fields}
        links = [{"to_topic_id": str(self.made[to]), "kind": kind} for kind, to in note.links if to in self.made]
        arguments = {"title": note.title, "summary": note.summary, "kind": note.kind, "fields": fields, "links": links}
        return "new_topic", {**arguments, "categories": list(note.categories)}

    def _places(self, own: set[uuid.UUID]) -> Iterator[Call]:
        for note in [note for _to, notes in self.sections for note in notes if self.made[note.key] in own]:
            links = {"from_topic_id": str(self.made[note.key])}
            for kind, to in note.links:
                if topic_id(to) in self.there:
                    yield "link", {**links, "to_topic_id": str(topic_id(to)), "kind": kind}
        for key, into in self.same_as.items():
            if self.made[key] in own:
                yield "merge_into", {"topic_id": str(self.made[key]), "into_topic_id": str(topic_id(into))}


def _read(minutes: Minutes) -> tuple[str, list[tuple[int, tuple[Note, ...]]]]:
    """Return the whole text, and for each section the position of its end and its notes."""
    text, sections = "", []
    for section in minutes.sections:
        text += f"{section.text.strip()}\n\n"
        sections.append((len(text), section.notes))
    return text, sections


def _checked(called: ToolCalled) -> ToolCalled:
    if not called.ok:
        raise ValueError(f"{called.tool} {called.arguments}: {called.result}")
    return called
