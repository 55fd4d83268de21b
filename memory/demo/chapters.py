"""Every hand-written chapter, gathered into one list of notes."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.demo import (
    diary,
    household,
    kitchen,
    leisure,
    mara,
    people,
    said,
    weeklog,
    work_atlas,
    work_lantern,
    work_studio,
)
from memory.demo.again import AGAIN
from memory.demo.notes import Note, NoteField, NoteRevision, notes_read, person_name
from memory.demo.series import SERIES, Series
from memory.demo.shapes import FieldType

CHAPTERS: Final[tuple[str, ...]] = (
    people.SELF,
    people.COLLEAGUES,
    mara.HEALTH,
    mara.TASTES,
    household.HOME,
    household.THINGS,
    kitchen.KITCHEN,
    leisure.TRAVEL,
    leisure.BOOKS,
    work_atlas.ATLAS,
    work_lantern.LANTERN,
    work_studio.PEBBLE,
    work_studio.STUDIO,
    diary.WORKDAYS,
    diary.HOMEDAYS,
    weeklog.WEEKLOG,
    said.SAID,
    said.TWICE,
)


def chapters_read(*, rng: random.Random) -> list[Note]:
    """All notes of all chapters, then the measured series, each key once."""
    notes = [note for chapter in CHAPTERS for note in notes_read(chapter)]
    notes.extend(_series_note(series, rng=rng) for series in SERIES)
    notes = _people_named(notes)
    keys = {note.key for note in notes}
    if len(keys) != len(notes):
        raise ValueError("two notes share a key")
    return notes


def again_read(notes: Sequence[Note]) -> list[Note]:
    """What resembles one of these notes: written down twice, or different in the one thing that matters."""
    known = {note.key for note in notes}
    return [note for note in notes_read(AGAIN) if note.key.partition("-")[2] in known]


def _people_named(notes: list[Note]) -> list[Note]:
    """The notes, with a field `who` in each event and utterance that names a person already known by then."""
    people = [note for note in notes if note.kind == "person" or note.key == "mara"]
    named: list[Note] = []
    for note in notes:
        if note.kind in ("event", "utterance") and note.days:
            start = f"{note.title} {note.summary}" if note.kind == "event" else note.summary.split('"')[0]
            found = (person for person in people if person_name(person.title) in re.findall(r"\w+", start))
            who = next((person for person in found if person.days and person.days[1] < note.days[0]), None)
            if who:
                field = NoteField("who", "string", person_name(who.title), who.key)
                note = replace(note, fields=(*note.fields, field))
        named.append(note)
    return named


def _series_note(series: Series, *, rng: random.Random) -> Note:
    revisions: list[NoteRevision] = []
    value = first = _series_value(series, turn=0, share=0.0, rng=rng)
    count = int((series.last - series.first) / series.every)
    for turn in range(1, count + 1):
        day = series.first + round(turn * series.every + rng.uniform(-0.3, 0.3) * series.every)
        later = _series_value(series, turn=turn, share=turn / count, rng=rng)
        if later != value and day < series.last + 2:
            revisions.append(NoteRevision(day, later, rng.choice(series.whys), series.impact))
            value = later
    field_type: FieldType = "string" if series.words else "float" if series.decimals else "int"
    return Note(
        series.key,
        series.scope,
        series.kind,
        (series.first, series.first),
        series.title,
        series.summary,
        series.categories,
        (NoteField(series.field, field_type, first, revisions=tuple(revisions)),),
    )


def _series_value(series: Series, *, turn: int, share: float, rng: random.Random) -> str:
    if series.words:
        return series.words[turn % len(series.words)]
    wobble = 0.0 if share in (0.0, 1.0) else rng.gauss(0.0, series.wobble / 2)
    value = series.start + (series.end - series.start) * share + wobble
    bounded = "_of_" in series.field or "percent" in series.field
    value = max(0.0, min(value, max(series.start, series.end)) if bounded else value)
    return f"{value:.{series.decimals}f}"
