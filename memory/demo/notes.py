"""The notation in which the hand-written part of the story is kept, and its reader.

A chapter is a block of text. Five marks begin a line; any other line continues the summary above it:

    @ /user/mara/health                                     the scope of what follows
    + mara-dose | preference | 4 | Thyroid tablets | health key, kind, day (or `20-60`, or `-`), title, categories
    = dose int 75                                           a field: name, type, value, `-> key` if it stands for one
    ~ 40 88 | blood test | remind about the new box         from day 40 on, its value; why; what that will affect
    > about mara                                            a link
    ! never suggest anything else                           pinned, for this reason

A key of `-` is made from the title. `{D40}` reads as the date of day 40 ("3 June"), `{I40}` as its ISO date and
`{M40}` as its month. Day 0 is a Monday, so that weekdays can be written down as words.
"""

import re
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import cast, get_args

from memory.demo.shapes import KINDS, LINK_KINDS, FieldType

_DATE = re.compile(r"\{([DIM])(-?\d+)\}")
_FIELD_TYPES: tuple[str, ...] = get_args(FieldType)


@dataclass(frozen=True, slots=True)
class NoteRevision:
    """A later value of a field, by day of the story."""

    day: int
    value: str
    why: str
    impact: str


@dataclass(frozen=True, slots=True)
class NoteField:
    """A field as written in a chapter."""

    name: str
    field_type: FieldType
    value: str
    ref_key: str | None = None
    revisions: tuple[NoteRevision, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """One topic as written in a chapter; `days` is the span in which it may have happened."""

    key: str
    scope: str
    kind: str
    days: tuple[int, int] | None
    title: str
    summary: str = ""
    categories: tuple[str, ...] = ()
    fields: tuple[NoteField, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    pin_reason: str = ""


@dataclass(slots=True)
class _Draft:
    note: Note
    summary: list[str] = field(default_factory=list)
    fields: list[NoteField] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)

    def finish(self) -> Note:
        if not self.summary:
            raise ValueError(f"{self.note.key} has no summary")
        return replace(self.note, summary=" ".join(self.summary), fields=tuple(self.fields), links=tuple(self.links))


def slug(title: str) -> str:
    """The title as a key: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def person_name(title: str) -> str:
    """The name by which texts call the person whose topic has this title."""
    words = [word.strip(",") for word in title.split()]
    return words[1] if words[0] == "Dr" else words[0]


def notes_read(chapter: str) -> list[Note]:
    """The notes of a chapter in the order written; a malformed line raises `ValueError` and quotes it."""
    notes: list[Note] = []
    draft: _Draft | None = None
    scope = ""
    for line in (raw.strip() for raw in chapter.splitlines()):
        if not line:
            continue
        mark, rest = line[:2], line[2:].strip()
        if mark in ("@ ", "+ ") and draft:
            notes.append(draft.finish())
            draft = None
        if mark == "@ ":
            scope = rest
        elif mark == "+ ":
            draft = _Draft(_head_read(rest, scope))
        elif draft is None:
            raise ValueError(f"text before the first note: {line!r}")
        elif mark == "= ":
            draft.fields.append(_field_read(rest))
        elif mark == "~ ":
            if not draft.fields:
                raise ValueError(f"a later value without a field: {line!r}")
            last = draft.fields[-1]
            draft.fields[-1] = replace(last, revisions=(*last.revisions, _revision_read(rest)))
        elif mark == "> ":
            kind, to_key = rest.split()
            if kind not in LINK_KINDS:
                raise ValueError(f"unknown link kind: {line!r}")
            draft.links.append((kind, to_key))
        elif mark == "! ":
            draft.note = replace(draft.note, pin_reason=rest)
        else:
            draft.summary.append(line)
    if draft:
        notes.append(draft.finish())
    return notes


def dates_fill(text: str, *, day_zero: date) -> str:
    """The text with its `{D..}`, `{I..}` and `{M..}` written out as dates."""

    def _one(match: re.Match[str]) -> str:
        day = day_zero + timedelta(days=int(match[2]))
        if match[1] == "I":
            return day.isoformat()
        return f"{day.day} {day:%B}" if match[1] == "D" else f"{day:%B}"

    return _DATE.sub(_one, text)


def _head_read(rest: str, scope: str) -> Note:
    parts = [part.strip() for part in rest.split("|")]
    if len(parts) not in (4, 5):
        raise ValueError(f"a note begins `key | kind | day | title | categories`: {rest!r}")
    key, kind, days, title = parts[:4]
    if kind not in KINDS:
        raise ValueError(f"unknown kind: {rest!r}")
    categories = tuple(word.strip() for word in parts[4].split(",")) if len(parts) == 5 else ()
    return Note(slug(title) if key == "-" else key, scope, kind, _days_read(days), title, categories=categories)


def _days_read(text: str) -> tuple[int, int] | None:
    if text == "-":
        return None
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _field_read(rest: str) -> NoteField:
    name, field_type, value = rest.split(maxsplit=2)
    if field_type not in _FIELD_TYPES:
        raise ValueError(f"unknown field type: {rest!r}")
    value, _, ref_key = (part.strip() for part in value.partition("->"))
    return NoteField(name, cast(FieldType, field_type), value, ref_key or None)


def _revision_read(rest: str) -> NoteRevision:
    parts = [part.strip() for part in rest.split("|")]
    day, value = parts[0].split(maxsplit=1)
    why, impact = (*parts[1:], "", "")[:2]
    return NoteRevision(int(day), value, why, impact)
