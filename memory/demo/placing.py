"""Turns notes into topics with times, fields and links, and into later revisions of the fields."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from memory.demo.material import Note
from memory.demo.records import StoryField, StoryLink, StoryRevision, StoryTopic
from memory.demo.schedule import Calendar, scope_is_work

_SALIENCE: Final[dict[str, float]] = {
    "identity": 2.2,
    "active_decision": 1.6,
    "person": 1.4,
    "preference": 1.3,
    "decision": 1.2,
    "gotcha": 1.2,
    "finding": 1.0,
    "project_status": 0.9,
    "place": 0.9,
    "event": 0.8,
    "observation": 0.8,
    "utterance": 0.6,
    "session_state": 0.5,
    "tool_output": 0.45,
}
_WORK_SOURCES: Final = ("mara, typed", "meeting notes", "mail", "mara, by voice", "chat with the team", "calendar")
_HOME_SOURCES: Final = ("mara, by voice", "mara, typed", "jonas, by message", "mail", "calendar", "photograph")


def salience_draw(kind: str, *, rng: random.Random) -> float:
    """Return the salience of a new topic of this kind."""
    return round(_SALIENCE[kind] * rng.uniform(0.75, 1.3), 2)


def provenance_draw(scope: str, *, rng: random.Random) -> str:
    """Return a possible provenance of a fact in this scope."""
    return rng.choice(_WORK_SOURCES if scope_is_work(scope) else _HOME_SOURCES)


def notes_choose(notes: Sequence[Note], *, most: int, wanted: Sequence[str], rng: random.Random) -> list[Note]:
    """Return at most ``most`` notes in their order. Pinned notes are chosen first, then wanted notes, then others."""
    if len(notes) <= most:
        return list(notes)
    ranks = {key: rank for rank, key in enumerate(wanted)}
    shuffled = rng.sample(notes, len(notes))
    shuffled.sort(key=lambda note: (not note.pinned, ranks.get(note.key, len(ranks))))
    kept = {note.key for note in shuffled[:most]}
    return [note for note in notes if note.key in kept]


def notes_place(
    notes: Sequence[Note], *, calendar: Calendar, rng: random.Random
) -> tuple[list[StoryTopic], list[StoryRevision]]:
    """Return topics and revisions for the notes. A topic is later than the topics to which it refers."""
    by_key = {note.key: note for note in notes}
    times: dict[str, datetime] = {}
    for note in notes:
        _note_time(note, by_key=by_key, times=times, calendar=calendar, rng=rng, above=())
    topics = [_topic(note, times=times, rng=rng) for note in notes]
    revisions = [
        revision for note in notes for revision in _revisions(note, at=times[note.key], calendar=calendar, rng=rng)
    ]
    return topics, revisions


def _targets(note: Note, by_key: dict[str, Note]) -> list[str]:
    refs = [field.stands_for for field in note.fields if field.stands_for]
    return [key for key in [*refs, *(to_key for _, to_key in note.links)] if key in by_key]


def _note_time(
    note: Note,
    *,
    by_key: dict[str, Note],
    times: dict[str, datetime],
    calendar: Calendar,
    rng: random.Random,
    above: tuple[str, ...],
) -> datetime:
    if note.key in above:
        raise ValueError(f"notes point at each other: {' -> '.join((*above, note.key))}")
    if note.key not in times:
        work = scope_is_work(note.scope)
        first, last = note.days or (0, calendar.last_day)
        day = calendar.day_draw(first, last, rng=rng, work=work) if last > first else first
        at = calendar.time_draw(day, rng=rng, work=work)
        for key in _targets(note, by_key):
            before = _note_time(
                by_key[key], by_key=by_key, times=times, calendar=calendar, rng=rng, above=(*above, note.key)
            )
            if before >= at:
                at = before + timedelta(minutes=rng.randint(1, 9), seconds=rng.randint(0, 59))
        times[note.key] = at
    return times[note.key]


def _topic(note: Note, *, times: dict[str, datetime], rng: random.Random) -> StoryTopic:
    fields = tuple(
        StoryField(
            field.name,
            field.value,
            field.type,
            field.stands_for if field.stands_for in times else None,
            provenance_draw(note.scope, rng=rng),
        )
        for field in note.fields
    )
    links = dict.fromkeys(StoryLink(to_key, kind) for kind, to_key in note.links if to_key in times)
    return StoryTopic(
        key=note.key,
        at=times[note.key],
        scope=note.scope,
        kind=note.kind,
        title=note.title,
        summary=note.summary,
        salience=salience_draw(note.kind, rng=rng),
        categories=note.categories,
        pinned=bool(note.pinned),
        pin_reason=note.pinned,
        fields=fields,
        links=tuple(links),
    )


def _revisions(note: Note, *, at: datetime, calendar: Calendar, rng: random.Random) -> list[StoryRevision]:
    found: list[StoryRevision] = []
    for field in note.fields:
        last = at
        for revision in field.later:
            if revision.day > calendar.last_day:
                break
            when = calendar.time_draw(revision.day, rng=rng, work=scope_is_work(note.scope))
            if when <= last:
                when = last + timedelta(minutes=rng.randint(20, 90))
            if when >= calendar.now:
                break
            found.append(
                StoryRevision(
                    at=when,
                    key=note.key,
                    name=field.name,
                    value=revision.value,
                    field_type=field.type,
                    why_changed=revision.why,
                    impact_expected=revision.impact,
                    provenance=provenance_draw(note.scope, rng=rng),
                )
            )
            last = when
    return found
