"""Reads the data files of the story (``story/*.toml``, described in ``story/README.md``).

Entries of a file have the names of the attributes. Attributes with a default are optional. Days are counted from day 0,
a Monday, so that texts can name weekdays.
"""

import json
import re
import tomllib
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from memory.demo.records import ChangeAction, FieldType

FOLDER: Final = Path(__file__).parent / "story"
# The random draws depend on this order.
NOTE_FILES: Final = (
    *("people", "mara", "household", "kitchen", "leisure"),
    *("atlas", "lantern", "studio", "diary", "weekly_notes", "remarks"),
)
FAMILY_FILES: Final = ("tools_work", "tools_home", "sessions")

_DATE: Final = re.compile(r"\{(date|isodate|month) (-?\d+)\}")
_TYPES: Final[dict[type, FieldType]] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "float",
    date: "date",
    datetime: "datetime",
    list: "list",
    dict: "json",
}


def _value(entry: Any) -> str:
    """Return the text of a value."""
    if isinstance(entry, date):
        return entry.isoformat()
    return str(entry) if isinstance(entry, str | float) else json.dumps(entry, ensure_ascii=False)


def _fields(entry: Any) -> Any:
    """Return the fields of a table. A field that has only a value can be written as this value."""
    if not isinstance(entry, dict):
        return entry
    tables = {name: each if isinstance(each, dict) else {"value": each} for name, each in entry.items()}
    return [{"type": _TYPES[type(each["value"])], **each, "name": name} for name, each in tables.items()]


def _links(entry: Any) -> list[tuple[str, str]]:
    return [(kind, to) for kind, keys in entry.items() for to in keys]


def _keyed(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of a table as a list. Each has its name as its ``key``."""
    return [{**each, "key": name} for name, each in entry.items()]


Texts = tuple[str, ...]
Value = Annotated[str, BeforeValidator(_value)]
# A range of days, which can be written as one day.
Days = Annotated[tuple[int, int], BeforeValidator(lambda entry: (entry, entry) if isinstance(entry, int) else entry)]
# One text, or several that are used together.
Words = Annotated[Texts, BeforeValidator(lambda entry: (entry,) if isinstance(entry, str) else entry)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NoteRevision(_Entry):
    """A later value of a field from ``day`` on, with the reason and the expected effect."""

    day: int
    value: Value
    why: str = ""
    impact: str = ""


class NoteField(_Entry):
    """A field of a note. ``stands_for`` is the key of a topic that the value refers to."""

    name: str
    type: FieldType
    value: Value
    stands_for: str | None = None
    later: tuple[NoteRevision, ...] = ()


Fields = Annotated[tuple[NoteField, ...], BeforeValidator(_fields)]


class Note(_Entry):
    """One topic. ``days`` is the range from which its day is drawn. ``pinned`` is the reason of its pin, empty if it is
    not pinned. ``links`` has the kind and the key of each linked topic."""

    key: str
    scope: str
    kind: str
    title: str
    summary: str
    days: Days | None = None
    categories: Texts = ()
    fields: Fields = ()
    links: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_links)] = ()
    pinned: str = ""


class Measured(_Entry):
    """A topic whose one field changes about every ``every_days`` days within ``days``.

    Numbers go from ``start`` to ``end`` with random deviations of up to ``wobble``. If ``values`` are given, they are
    used in turn instead.
    """

    key: str
    scope: str
    kind: str
    title: str
    summary: str
    categories: Texts
    field: str
    days: Days
    every_days: float
    reasons: Texts
    impact: str = ""
    values: Texts = ()
    start: float = 0.0
    end: float = 0.0
    wobble: float = 0.0
    decimals: int = 0


class Family(_Entry):
    """Outputs of one kind: their possible titles and texts, and when they occur.

    Titles, summaries, words and fields have placeholders in braces, which ``phrases.py`` replaces. The parts of an
    entry of ``words`` are used together. ``about`` has the keys of topics that an output may be about.
    """

    key: str
    kind: str
    scope: str
    days: Days
    weight: int
    categories: Texts
    titles: Texts
    summaries: Texts
    about: Texts = ()
    words: dict[str, tuple[Words, ...]] = {}
    fields: Fields = ()


class Question(_Entry):
    """A question: its wordings, how often and when it is asked, and the topics that belong to every answer."""

    wordings: Texts
    weight: int
    days: Days
    topics: Texts


class HandChange(_Entry):
    """A manual change of topics on this day."""

    day: int
    action: ChangeAction
    topics: Texts
    reason: str


class Material(_Entry):
    """The material of the story."""

    notes: tuple[Note, ...]
    look_alikes: tuple[Note, ...]
    measured: tuple[Measured, ...]
    families: tuple[Family, ...]
    questions: tuple[Question, ...]
    changes: tuple[HandChange, ...]


class Section(_Entry):
    """A part of the studied text, and its notes."""

    text: str
    notes: Annotated[tuple[Note, ...], BeforeValidator(_keyed)]


class Minutes(_Entry):
    """The studied text. ``same_as`` maps the keys of notes to the keys of topics of the story that say the same."""

    sections: tuple[Section, ...]
    same_as: dict[str, str]


def material_read(*, day_zero: date) -> Material:
    """Return the material of the story, with dates filled in."""

    def _all(*names: str) -> list[Any]:
        return [entry for name in names for entry in _keyed(_file_read(name, day_zero=day_zero))]

    return Material.model_validate(
        {
            "notes": _all(*NOTE_FILES),
            "look_alikes": _all("look_alikes"),
            "measured": _all("measured"),
            "families": _all(*FAMILY_FILES),
            **_file_read("questions", day_zero=day_zero),
            **_file_read("changes", day_zero=day_zero),
        }
    )


def minutes_read(*, day_zero: date) -> Minutes:
    """Return the text that is studied, with dates filled in."""
    return Minutes.model_validate(_file_read("retrospective", day_zero=day_zero))


def _file_read(name: str, *, day_zero: date) -> dict[str, Any]:
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(_dates_fill(text, day_zero=day_zero))


def _dates_fill(text: str, *, day_zero: date) -> str:
    """Replace ``{date 40}`` ("3 June"), ``{isodate 40}`` and ``{month 40}`` by the date of day 40."""

    def _one(match: re.Match[str]) -> str:
        day = day_zero + timedelta(days=int(match[2]))
        if match[1] == "isodate":
            return day.isoformat()
        return f"{day.day} {day:%B}" if match[1] == "date" else f"{day:%B}"

    return _DATE.sub(_one, text)
