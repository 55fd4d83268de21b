"""The records that ``loader.py`` creates from the data files of the story.

Entries of a file have the names of the attributes. Attributes with a default are optional. Days are counted from day 0,
a Monday, so that texts can name weekdays.
"""

from dataclasses import dataclass, field

from memory.demo.records import ChangeAction, FieldType


@dataclass(frozen=True, slots=True)
class NoteRevision:
    """A later value of a field from ``day`` on, with the reason and the expected effect."""

    day: int
    value: str
    why: str = ""
    impact: str = ""


@dataclass(frozen=True, slots=True)
class NoteField:
    """A field of a note. ``stands_for`` is the key of a topic that the value refers to."""

    name: str
    type: FieldType
    value: str
    stands_for: str | None = None
    later: tuple[NoteRevision, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """One topic. ``days`` is the range from which its day is drawn. ``pinned`` is the reason of its pin, empty if it is
    not pinned."""

    key: str
    scope: str
    kind: str
    title: str
    summary: str
    days: tuple[int, int] | None = None
    categories: tuple[str, ...] = ()
    fields: tuple[NoteField, ...] = ()
    # Kind and key of each linked topic.
    links: tuple[tuple[str, str], ...] = ()
    pinned: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """A topic whose one field changes about every ``every_days`` days within ``days``.

    Numbers go from ``start`` to ``end`` with random deviations of up to ``wobble``. If ``values`` are given, they are
    used in turn instead.
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
    """Outputs of one kind: their possible titles and texts, and when they occur.

    Titles, summaries, words and fields have placeholders in braces, which ``phrases.py`` replaces. The parts of an
    entry of ``words`` are used together. ``about`` has the keys of topics that an output may be about.
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
    """A question: its wordings, how often and when it is asked, and the topics that belong to every answer."""

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
    """A part of the studied text, and its notes."""

    text: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Minutes:
    """The studied text. ``same_as`` maps the keys of notes to the keys of topics of the story that say the same."""

    sections: tuple[Section, ...]
    same_as: dict[str, str]
