"""Reply schemas of the routes of duplicates."""

import datetime as dt
import uuid
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

PairState = Literal["open", "merged", "kept", "superseded", "undone", "lapsed"]
PairVerdict = Literal["duplicate", "supersedes"]
PairVerb = Literal["merge", "keep", "supersede", "undo"]


class PairTopic(Schema):
    """One of two topics."""

    topic_id: uuid.UUID
    title: str
    summary: str
    updated_at: dt.datetime


class PairOut(Schema):
    """Two possibly duplicate topics of one scope and kind. A merge keeps ``newer``."""

    id: uuid.UUID
    scope: str
    kind: str
    verdict: PairVerdict = Field(
        description="duplicate: they say the same; supersedes: the newer may replace the older."
    )
    state: PairState = Field(
        description="lapsed: one of the two has changed or is inactive; the pair will be compared again."
    )
    similarity: float | None = Field(description="Cosine of the two texts.")
    same_title: bool
    held: bool = Field(description="A difference that matters was found, so the pair is never merged automatically.")
    held_because: list[str] = Field(description="The differences that matter, in sentences.")
    newer: PairTopic
    older: PairTopic
    survivor: uuid.UUID | None
    found_at: dt.datetime
    decided_at: dt.datetime | None
    decided_by: str
    reason: str
    run_id: uuid.UUID | None = Field(description="The run to undo if the decision is to be undone.")


class PairPage(Schema):
    """Pairs, newest first."""

    items: list[PairOut]
    next: str | None


class PairDifference(Schema):
    """A difference that matters; empty for a side without such a value."""

    sort: str
    older: str
    newer: str
    where: str
    sentence: str


class PairDetail(PairOut):
    """A pair with the differences that matter and the effect of a merge."""

    differences: list[PairDifference]
    merge: dict[str, Any] = Field(description="Effect of a merge; empty if the pair cannot be merged.")
    may: list[PairVerb] = Field(description="The possible decisions.")
    gone: str = Field(description="Why the pair cannot be decided or merged, or empty.")


class PairConflict(Schema):
    """A topic that has changed since the decision, and how."""

    topic_id: uuid.UUID
    why: str


class PairDecided(Schema):
    """The decision. After an undo, ``restored`` states whether both topics were restored."""

    pair: PairOut
    run_id: uuid.UUID | None
    results: list[str] = Field(description="One result per action, such as merged:<topic>->:<survivor>.")
    restored: bool | None = None
    conflicts: list[PairConflict] = []
