"""Reads the data files of the story (``story/*.toml``, described in ``story/README.md``).

An error in a file raises ``StoryProblem``, whose sentence names the file and the place of the error. A rule is a
function that converts an entry of a file, or raises ``StoryProblem``.
"""

import dataclasses
import json
import re
import tomllib
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from memory.demo.material import (
    Family,
    HandChange,
    Material,
    Measured,
    Minutes,
    Note,
    NoteField,
    NoteRevision,
    Question,
    Section,
)
from memory.demo.records import KINDS, LINK_KINDS, ChangeAction, FieldType

FOLDER: Final = Path(__file__).parent / "story"
# The random draws depend on this order.
NOTE_FILES: Final = (
    *("people", "mara", "household", "kitchen", "leisure"),
    *("atlas", "lantern", "studio", "diary", "weekly_notes", "remarks"),
)
FAMILY_FILES: Final = ("tools_work", "tools_home", "sessions")

Rule = Callable[[Any], Any]

_DATE: Final = re.compile(r"\{(date|isodate|month) (-?\d+)\}")


class StoryProblem(ValueError):
    """A data file of the story is missing or invalid; ``path`` is the place of the error."""

    def __init__(self, sentence: str, *path: str) -> None:
        super().__init__(f"The demo's story, {', '.join(path)}: {sentence}.")
        self.sentence = sentence
        self.path = path


def material_read(*, day_zero: date, folder: Path = FOLDER) -> Material:
    """Return the material of the story, with dates filled in. Raises ``StoryProblem``."""

    def _all(rule: Rule, *names: str) -> tuple[Any, ...]:
        return tuple(made for name in names for made in _file_read(name, rule, day_zero=day_zero, folder=folder))

    material = Material(
        notes=_all(_NOTES, *NOTE_FILES),
        look_alikes=_all(_NOTES, "look_alikes"),
        measured=_all(_MEASURED, "measured"),
        families=_all(_FAMILIES, *FAMILY_FILES),
        questions=_all(_list_under("questions", _QUESTION), "questions"),
        changes=_all(_list_under("changes", _CHANGE), "changes"),
    )
    _keys_check(material)
    return material


def minutes_read(*, day_zero: date, folder: Path = FOLDER) -> Minutes:
    """Return the text that is studied, with dates filled in. Raises ``StoryProblem``."""
    minutes: Minutes = _file_read("retrospective", _MINUTES, day_zero=day_zero, folder=folder)
    return minutes


def dates_fill(text: str, *, day_zero: date) -> str:
    """Replace ``{date 40}`` ("3 June"), ``{isodate 40}`` and ``{month 40}`` by the date of day 40."""

    def _one(match: re.Match[str]) -> str:
        day = day_zero + timedelta(days=int(match[2]))
        if match[1] == "isodate":
            return day.isoformat()
        return f"{day.day} {day:%B}" if match[1] == "date" else f"{day:%B}"

    return _DATE.sub(_one, text)


def _file_read(name: str, rule: Rule, *, day_zero: date, folder: Path) -> Any:
    path = folder / f"{name}.toml"
    try:
        entries = tomllib.loads(dates_fill(path.read_text(encoding="utf-8"), day_zero=day_zero))
    except FileNotFoundError:
        raise StoryProblem("the file is missing", str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise StoryProblem(f"the file is not TOML, {problem}", path.name) from None
    return _inside(path.name, rule, entries)


def _inside(name: str, rule: Rule, entry: object) -> Any:
    try:
        return rule(entry)
    except StoryProblem as problem:
        raise StoryProblem(problem.sentence, name, *problem.path) from None


def _typed(expected: str, *types: type) -> Rule:
    def _rule(entry: object) -> Any:
        # In Python, a bool is also an int. Empty texts and lists are not allowed.
        if not isinstance(entry, types) or isinstance(entry, bool) or entry in ("", []):
            raise StoryProblem(f"{expected} is expected here")
        return entry

    return _rule


_text: Final = _typed("a text", str)
_whole: Final = _typed("a whole number", int)
_number: Final = _typed("a number", int, float)
_list: Final = _typed("a list", list)
_table: Final = _typed("a table", dict)


def _days(entry: object) -> tuple[int, int]:
    """The rule for a day, or for a range given by its first and last day."""
    first, last = entry if isinstance(entry, list) and len(entry) == 2 else (entry, entry)
    span = _whole(first), _whole(last)
    if span[0] > span[1]:
        raise StoryProblem("the last day comes before the first one")
    return span


def _one_of(*allowed: str) -> Rule:
    def _rule(entry: object) -> str:
        if entry not in allowed:
            raise StoryProblem(f"`{entry}` is none of {', '.join(allowed)}")
        return str(entry)

    return _rule


def _list_of(rule: Rule) -> Rule:
    return lambda entry: tuple(
        _inside(f"entry {number}", rule, each) for number, each in enumerate(_list(entry), start=1)
    )


def _list_under(name: str, rule: Rule) -> Rule:
    """Return the rule for a table whose only entry has the key ``name`` and is a list. ``rule`` converts each item of
    the list."""
    return lambda entry: _inside(name, _list_of(rule), entry[name] if list(entry) == [name] else None)


def _table_of(rule: Rule) -> Rule:
    return lambda entry: {name: _inside(name, rule, each) for name, each in _table(entry).items()}


def _keyed(rule: Rule, name: str) -> Rule:
    """Return the rule for a table of tables. Each inner table gets its key as the entry ``name``."""
    return lambda entry: tuple(_inside(key, rule, {**_table(each), name: key}) for key, each in _table(entry).items())


def _record(made: type[Any], **rules: Rule) -> Rule:
    """Return the rule for a table with an entry for each attribute of ``made``. Attributes with a default may be
    missing.

    ``rules`` has the rules of some attributes; the others follow from the types.
    """
    rules = {name: rules.get(name) or _BY_TYPE[hint] for name, hint in get_type_hints(made).items()}
    none = dataclasses.MISSING
    needed = [each.name for each in dataclasses.fields(made) if each.default is each.default_factory is none]

    def _rule(entry: object) -> Any:
        table = _table(entry)
        if unknown := [name for name in table if name not in rules]:
            raise StoryProblem(f"`{unknown[0]}` is unknown")
        if absent := [name for name in needed if name not in table]:
            raise StoryProblem(f"`{absent[0]}` is missing")
        return made(**{name: _inside(name, rules[name], each) for name, each in table.items()})

    return _rule


# The field type for each TOML type, and the check of a value's text for each field type.
_SHOWN_BY: Final[dict[type, FieldType]] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "float",
    date: "date",
    datetime: "datetime",
    list: "list",
    dict: "json",
}
_CHECKS: Final[dict[FieldType, Callable[[str], object]]] = {
    "string": str,
    "bool": ("true", "false").index,
    "int": int,
    "float": float,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "list": json.loads,
    "json": json.loads,
}


def _value(entry: object) -> str:
    if type(entry) not in _SHOWN_BY:
        raise StoryProblem("a value of this type cannot be stored")
    if isinstance(entry, date):
        return entry.isoformat()
    return str(entry) if isinstance(entry, (str, float)) else json.dumps(entry, ensure_ascii=False)


def _fields(entry: object) -> tuple[NoteField, ...]:
    return tuple(_inside(name, _field(name), each) for name, each in _table(entry).items())


def _field(name: str) -> Rule:
    def _rule(entry: object) -> NoteField:
        table = entry if isinstance(entry, dict) else {"value": entry}
        shown = _SHOWN_BY.get(type(table.get("value")), "string")
        field: NoteField = _FIELD({"type": shown, **table, "name": name})
        for text in (field.value, *(later.value for later in field.later)):
            try:
                # Text in braces is replaced later, at random.
                if not text.startswith("{") or field.type == "json":
                    _CHECKS[field.type](text)
            except ValueError:
                raise StoryProblem(f"`{text}` is not a value of the type {field.type}") from None
        return field

    return _rule


def _links(entry: object) -> tuple[tuple[str, str], ...]:
    for kind in _table(entry):
        _one_of(*LINK_KINDS)(kind)
    return tuple((kind, to) for kind, keys in _table_of(_list_of(_text))(entry).items() for to in keys)


def _words(entry: object) -> tuple[str, ...]:
    """The rule for an entry of a family's words, which is one text or a list of texts."""
    return _list_of(_text)(entry) if isinstance(entry, list) else (_text(entry),)


_BY_TYPE: Final[dict[object, Rule]] = {
    str: _text,
    str | None: _text,
    int: _whole,
    float: _number,
    FieldType: _one_of(*get_args(FieldType)),
    ChangeAction: _one_of(*get_args(ChangeAction)),
    tuple[str, ...]: _list_of(_text),
    tuple[int, int]: _days,
    tuple[int, int] | None: _days,
    tuple[NoteField, ...]: _fields,
    tuple[tuple[str, str], ...]: _links,
    dict[str, str]: _table_of(_text),
    dict[str, tuple[tuple[str, ...], ...]]: _table_of(_list_of(_words)),
}
_KIND: Final = _one_of(*KINDS)
_FIELD: Final = _record(NoteField, value=_value, later=_list_of(_record(NoteRevision, value=_value)))
_NOTES: Final = _keyed(_record(Note, kind=_KIND), "key")
_MEASURED: Final = _keyed(_record(Measured, kind=_KIND), "key")
_FAMILIES: Final = _keyed(_record(Family, kind=_KIND), "name")
_QUESTION: Final = _record(Question)
_CHANGE: Final = _record(HandChange)
_MINUTES: Final = _record(Minutes, sections=_list_of(_record(Section, notes=_NOTES)))


def _keys_check(material: Material) -> None:
    """Raise ``StoryProblem`` if a key occurs twice, or refers to no topic of the story."""
    notes = (*material.notes, *material.look_alikes)
    keys: set[str] = set()
    for key in [*(note.key for note in notes), *(measured.key for measured in material.measured)]:
        if key in keys:
            raise StoryProblem("this key is given to two topics", key)
        keys.add(key)
    named = [(note.key, to) for note in notes for _kind, to in note.links]
    named += [(note.key, field.stands_for) for note in notes for field in note.fields if field.stands_for]
    named += [(note.key, note.key.partition("-")[2]) for note in material.look_alikes]
    named += [(family.name, key) for family in material.families for key in family.about]
    named += [(question.wordings[0], key) for question in material.questions for key in question.topics]
    named += [(change.reason, key) for change in material.changes for key in change.topics]
    for place, key in named:
        if key not in keys:
            raise StoryProblem(f"a topic with the key `{key}` does not exist", place)
