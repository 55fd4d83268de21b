"""The records of a story, and the id of a topic.

The records are plain data in order of time. ``store.py`` writes them to a store.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID, uuid5

FieldType = Literal["string", "int", "float", "bool", "date", "datetime", "list", "json"]
ChangeAction = Literal["archive", "restore", "pin", "unpin"]

KINDS: Final[tuple[str, ...]] = (
    "identity",
    "preference",
    "decision",
    "active_decision",
    "finding",
    "gotcha",
    "observation",
    "tool_output",
    "session_state",
    "project_status",
    "utterance",
    "event",
    "person",
    "place",
)
LINK_KINDS: Final[tuple[str, ...]] = ("follows", "about", "part_of", "depends_on", "contradicts", "mentions")

NAMESPACE: Final[UUID] = UUID("6f2b7c0e-4a51-5d83-9c1e-2f60b1d7a944")


def topic_id(key: str) -> UUID:
    """Return the id of the topic with this key. The same story always has the same ids."""
    return uuid5(NAMESPACE, key)


@dataclass(frozen=True, slots=True)
class StoryField:
    """The first value of a typed field. `ref_key` is the key of a topic that the value refers to."""

    name: str
    value: str
    field_type: FieldType
    ref_key: str | None
    provenance: str


@dataclass(frozen=True, slots=True)
class StoryLink:
    """A typed link to an earlier topic."""

    to_key: str
    kind: str


@dataclass(frozen=True, slots=True)
class StoryTopic:
    """A topic with its time."""

    key: str
    at: datetime
    scope: str
    kind: str
    title: str
    summary: str
    salience: float
    categories: tuple[str, ...]
    pinned: bool
    pin_reason: str
    fields: tuple[StoryField, ...]
    links: tuple[StoryLink, ...]


@dataclass(frozen=True, slots=True)
class StoryRevision:
    """A later value of a field of an earlier topic."""

    at: datetime
    key: str
    name: str
    value: str
    field_type: FieldType
    why_changed: str
    impact_expected: str
    provenance: str


@dataclass(frozen=True, slots=True)
class StoryRetrieval:
    """One query and its results, best first."""

    at: datetime
    query: str
    keys: tuple[str, ...]
    actor: str


@dataclass(frozen=True, slots=True)
class StoryChange:
    """A manual change of a topic."""

    at: datetime
    key: str
    action: ChangeAction
    reason: str


@dataclass(frozen=True, slots=True)
class Story:
    """The whole half year, each part in order of time."""

    topics: tuple[StoryTopic, ...]
    revisions: tuple[StoryRevision, ...]
    retrievals: tuple[StoryRetrieval, ...]
    changes: tuple[StoryChange, ...]
