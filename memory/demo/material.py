"""The records that ``loader.py`` makes of the data files of the story.

Entries of a file have the names of the attributes; those with a default are optional. Days are counted from day 0, a
Monday, so that texts can name weekdays.
"""

from dataclasses import dataclass, field

from memory.demo.records import ChangeAction, FieldType


@dataclass(frozen=True, slots=True)
class NoteRevision:
    """A later value of a field, from this day on; why, and what that will affect."""

    day: int
    value: str
    why: str = ""
    impact: str = ""


@dataclass(frozen=True, slots=True)
class NoteField:
    """A field of a note; ``stands_for`` is the key of the topic that the value stands for."""

    name: str
    type: FieldType
    value: str
    stands_for: str | None = None
    later: tuple[NoteRevision, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """One topic; ``days`` is the span in which it may have happened, ``pinned`` the reason for which it is pinned."""

    key: str
    scope: str
    kind: str
    title: str
    summary: str
    days: tuple[int, int] | None = None
    categories: tuple[str, ...] = ()
    fields: tuple[NoteField, ...] = ()
    # Kind and key of each.
    links: tuple[tuple[str, str], ...] = ()
    pinned: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """A topic whose one field changes about every ``every_days`` days within ``days``.

    Numbers wander from ``start`` to ``end`` by up to ``wobble``; ``values``, if given, are taken in turn instead.
    """

    key: str
    scope: str
    kind: str
    title: str
    summary: str
    categories: tuple[str, ...]
    field: str
    days: tuple[int, int]
    every_days: float
    reasons: tuple[str, ...]
    impact: str = ""
    values: tuple[str, ...] = ()
    start: float = 0.0
    end: float = 0.0
    wobble: float = 0.0
    decimals: int = 0


@dataclass(frozen=True, slots=True)
class Family:
    """Outputs of one sort: what they may be called, what they may say, and when they come.

    Titles, summaries, words and fields have places in braces that ``phrases.py`` fills. The parts of an entry of
    ``words`` go together. ``about`` names known topics that such an output may be about.
    """

    name: str
    kind: str
    scope: str
    days: tuple[int, int]
    weight: int
    categories: tuple[str, ...]
    titles: tuple[str, ...]
    summaries: tuple[str, ...]
    about: tuple[str, ...] = ()
    words: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    fields: tuple[NoteField, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A thing that is asked: its wordings, how often and when, and the topics that surely belong to the answer."""

    wordings: tuple[str, ...]
    weight: int
    days: tuple[int, int]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HandChange:
    """A manual change of topics on this day."""

    day: int
    action: ChangeAction
    topics: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Material:
    """The material of the story."""

    notes: tuple[Note, ...]
    look_alikes: tuple[Note, ...]
    measured: tuple[Measured, ...]
    families: tuple[Family, ...]
    questions: tuple[Question, ...]
    changes: tuple[HandChange, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the text that is studied, and what is noted of it."""

    text: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Minutes:
    """The text that is studied; ``same_as`` maps its notes to equal topics of the story."""

    sections: tuple[Section, ...]
    same_as: dict[str, str]
