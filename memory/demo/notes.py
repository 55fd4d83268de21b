"""The notes of a story: handwritten ones, repeated measurements, and notes that look alike."""

import random
import re
from collections.abc import Sequence

from memory.demo.material import Material, Measured, Note, NoteField, NoteRevision
from memory.demo.records import FieldType


def notes_gather(material: Material, *, rng: random.Random) -> list[Note]:
    """Return all notes in the order of the files, then the measurements."""
    return _people_named([*material.notes, *(_measured_note(measured, rng=rng) for measured in material.measured)])


def look_alikes_of(notes: Sequence[Note], *, material: Material) -> list[Note]:
    """Return notes that resemble one of ``notes``: duplicates, and notes that differ in one important value."""
    known = {note.key for note in notes}
    return [note for note in material.look_alikes if note.key.partition("-")[2] in known]


def person_name(title: str) -> str:
    """Return the name that texts use for the person whose topic has this title."""
    words = [word.strip(",") for word in title.split()]
    return words[1] if words[0] == "Dr" else words[0]


def _people_named(notes: list[Note]) -> list[Note]:
    """Return the notes, with a field `who` in each event and utterance that names a person with an earlier topic."""
    people = [note for note in notes if note.kind == "person" or note.key == "mara"]
    named: list[Note] = []
    for note in notes:
        if note.kind in ("event", "utterance") and note.days:
            start = f"{note.title} {note.summary}" if note.kind == "event" else note.summary.split('"')[0]
            found = (person for person in people if person_name(person.title) in re.findall(r"\w+", start))
            who = next((person for person in found if person.days and person.days[1] < note.days[0]), None)
            if who:
                field = NoteField(name="who", type="string", value=person_name(who.title), stands_for=who.key)
                note = note.model_copy(update={"fields": (*note.fields, field)})
        named.append(note)
    return named


def _measured_note(measured: Measured, *, rng: random.Random) -> Note:
    first_day, last_day = measured.days
    revisions: list[NoteRevision] = []
    value = first = _measured_value(measured, turn=0, share=0.0, rng=rng)
    count = int((last_day - first_day) / measured.every_days)
    for turn in range(1, count + 1):
        day = first_day + round(turn * measured.every_days + rng.uniform(-0.3, 0.3) * measured.every_days)
        later = _measured_value(measured, turn=turn, share=turn / count, rng=rng)
        if later != value and day < last_day + 2:
            why = rng.choice(measured.reasons)
            revisions.append(NoteRevision(day=day, value=later, why=why, impact=measured.impact))
            value = later
    field_type: FieldType = "string" if measured.values else "float" if measured.decimals else "int"
    return Note(
        key=measured.key,
        scope=measured.scope,
        kind=measured.kind,
        days=(first_day, first_day),
        title=measured.title,
        summary=measured.summary,
        categories=measured.categories,
        fields=(NoteField(name=measured.field, type=field_type, value=first, later=tuple(revisions)),),
    )


def _measured_value(measured: Measured, *, turn: int, share: float, rng: random.Random) -> str:
    if measured.values:
        return measured.values[turn % len(measured.values)]
    wobble = 0.0 if share in (0.0, 1.0) else rng.gauss(0.0, measured.wobble / 2)
    value = measured.start + (measured.end - measured.start) * share + wobble
    bounded = "_of_" in measured.field or "percent" in measured.field
    value = max(0.0, min(value, max(measured.start, measured.end)) if bounded else value)
    return f"{value:.{measured.decimals}f}"
