"""The members of the replies about duplicates, for the OpenAPI document and the functions that build replies."""

import datetime as dt
import uuid
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field

from memory.core.differences import Piece
from memory.core.replies import TypedDict, doc, one_of
from memory.models import DuplicatePair

PairVerb = Literal["merge", "keep", "supersede", "undo"]


class PairTopic(TypedDict):
    """One of two topics."""

    topic_id: uuid.UUID
    title: str
    summary: str
    updated_at: dt.datetime


class PairOut(TypedDict):
    """Two possibly duplicate topics of one scope and kind. A merge keeps ``newer``."""

    id: uuid.UUID
    scope: str
    kind: str
    verdict: Annotated[
        Annotated[str, one_of(DuplicatePair.Verdict.values)],
        doc("duplicate: they say the same; supersedes: the newer may replace the older."),
    ]
    state: Annotated[
        Annotated[str, one_of(DuplicatePair.State.values)],
        doc(
            "lapsed: one of the two has changed or is inactive, and the pair will be compared again; or both are "
            "records of a series."
        ),
    ]
    similarity: Annotated[float | None, doc("Cosine of the two texts.")]
    same_title: bool
    held: Annotated[bool, doc("A difference that matters was found, so the pair is never merged automatically.")]
    held_because: Annotated[list[str], doc("The differences that matter, in sentences.")]
    newer: PairTopic
    older: PairTopic
    survivor: uuid.UUID | None
    found_at: dt.datetime
    decided_at: dt.datetime | None
    decided_by: str
    reason: str
    run_id: Annotated[uuid.UUID | None, doc("The run to undo if the decision is to be undone.")]


class PairPage(TypedDict):
    """Pairs, newest first."""

    items: list[PairOut]
    next: str | None


class PairDifference(TypedDict):
    """A difference that matters; empty for a side without such a value."""

    sort: str
    older: str
    newer: str
    where: str
    sentence: str


class PairDetail(PairOut):
    """A pair with the differences that matter and the effect of a merge."""

    differences: list[PairDifference]
    merge: Annotated[dict[str, Any], doc("Effect of a merge; empty if the pair cannot be merged.")]
    may: Annotated[list[PairVerb], doc("The possible decisions.")]
    gone: Annotated[str, doc("Why the pair cannot be decided or merged, or empty.")]


class PairCompared(PairDetail):
    """A pair with both sides in full, for a page: texts as pieces that are the same or differ, fields by name."""

    title: dict[str, list[Piece]]
    summary: dict[str, list[Piece]]
    fields: list[dict[str, Any]]
    sides: dict[str, dict[str, Any]]


class PairConflict(TypedDict):
    """A topic that has changed since the decision, and how."""

    topic_id: uuid.UUID
    why: str


class PairDecided(TypedDict):
    """The decision. After an undo, ``restored`` states whether both topics were restored."""

    pair: PairOut
    run_id: uuid.UUID | None
    results: Annotated[list[str], doc("One result per action, such as merged:<topic>->:<survivor>.")]
    restored: NotRequired[bool | None]
    conflicts: NotRequired[Annotated[list[PairConflict], Field(default=[])]]
