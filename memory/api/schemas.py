"""Reply schemas. Request schemas are next to the code that uses them: ``ingest.items`` and ``recall.request``."""

import datetime as dt
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import BaseModel, Field, StringConstraints

from memory.ingest.items import Category, LongText, ShortText

RungName = Literal["active", "summarized", "detached", "archived"]


class Problem(Schema):
    """An error according to RFC 9457. ``type`` identifies the problem, ``detail`` is a sentence to show."""

    type: str = Field(
        description="urn:memstate:problem: followed by a stable code, such as still-in-progress: another request with "
        "the same Idempotency-Key is running; sent again later, the request gets the reply of the first one. "
        "docs/errors.md lists all codes."
    )
    title: str
    status: int
    detail: str


class IngestReply(Schema):
    """The result of one item."""

    topic_id: str
    applied: list[str] = Field(description="created_topic:<id>, field:<name>, version:<name>, edge:<to>")
    version_ids: dict[str, str] = Field(description="Id of the new revision, by field name.")
    similar_topic_ids: list[str]


class BatchItemReply(Schema):
    """The status of one item of a batch, and either its result or the reason for its refusal."""

    index: int
    status: int
    topic_id: str | None = None
    applied: list[str] = []
    version_ids: dict[str, str] = {}
    similar_topic_ids: list[str] = []
    type: str | None = Field(default=None, description="For a refused item: the type, as in a problem document.")
    detail: str | None = None


class BatchReply(Schema):
    """The outcome of each item, in the order sent."""

    results: list[BatchItemReply]
    accepted: int
    refused: int


class RevisionOut(Schema):
    """One value a field has had."""

    id: str
    value: str
    valid_from: dt.datetime
    provenance: str
    why_changed: str
    impact_expected: str
    recorded_at: dt.datetime
    seq: int


class FieldSummaryOut(Schema):
    """The summary of the cold revisions of a field. ``depth`` 2 includes an earlier summary."""

    text: str
    from_seq: int
    through_seq: int
    method: Literal["extractive", "llm"]
    depth: int


class FieldOut(Schema):
    """A field with its current revision; ``history`` is oldest first."""

    id: str
    name: str
    field_type: str
    ref_topic_id: str | None
    current: RevisionOut | None
    history: list[RevisionOut]
    summary: FieldSummaryOut | None = Field(
        default=None, description="Replaces cold revisions; include_cold returns the revisions."
    )
    salience: float


class NeighborOut(Schema):
    """A topic reached through links."""

    topic_id: str
    kind: str
    title: str
    summary: str
    topic_kind: str
    direction: Literal["out", "in"]
    depth: int


class TopicBase(Schema):
    """Members of a topic in every reply."""

    topic_id: str
    title: str
    summary: str
    topic_kind: str
    salience: float = Field(description="Effective salience at the time of the reply.")
    failed_salience: float
    scope: str
    rung: RungName
    categories: list[str]
    pinned: bool
    created_at: dt.datetime
    updated_at: dt.datetime
    retrieval_count: int
    last_retrieved_at: dt.datetime | None


class Candidate(TopicBase):
    """A topic of the answer, with fields and neighbors."""

    similarity: float | None = Field(default=None, description="Cosine between question and topic.")
    score: float | None = Field(default=None, description="The score that determines the rank.")
    neighbors: list[NeighborOut]
    fields: list[FieldOut]
    score_parts: dict[str, float] | None = Field(
        default=None, description="With explain: the parts of the score; the score is their sum times decay."
    )


class QueryReply(Schema):
    """The topics, best first, and the same as text."""

    query: str
    candidates: list[Candidate]
    summary_text: str
    explain: dict[str, Any] | None = Field(default=None, description="With explain: milliseconds per stage, and more.")


class TopicRow(TopicBase):
    """A topic in lists and lookups."""

    archived: bool
    pin_reason: str
    released_at: dt.datetime | None
    merged_into: str | None
    provenance: str


class DetailField(FieldOut):
    """A field in a lookup: how many revisions it has, how many are cold, and whether it is detached."""

    revisions: int
    cold_revisions: int
    detached: bool


class DetailNeighbor(NeighborOut):
    """A linked topic in a lookup, on any rung."""

    rung: RungName


class MergedTopic(Schema):
    """A topic that was merged into another. ``merged_into`` is the one it went into first."""

    topic_id: str
    title: str
    provenance: str
    created_at: dt.datetime
    merged_into: str


class TopicDetail(TopicRow):
    """A topic with all its fields and links, and what was merged into it."""

    fields: list[DetailField]
    neighbors: list[DetailNeighbor]
    also_from: list[MergedTopic]


class TopicPage(Schema):
    """One page; ``next`` is the cursor of the next page, null on the last."""

    items: list[TopicRow]
    next: str | None


class HistoryRevision(RevisionOut):
    """A revision in full."""

    field_type: str
    ref_topic_id: str | None
    actor: str
    cold: bool


class HistoryPage(Schema):
    """Revisions, newest first."""

    items: list[HistoryRevision]
    next: str | None


# Requests are plain models: Ninja's schemas read attributes of the input, and a str has an attribute ``title``.


class TopicPatch(BaseModel):
    """Members to change; omitted members stay. ``salience`` needs an operator key."""

    title: str | None = Field(default=None, max_length=1000)
    summary: LongText | None = None
    topic_kind: ShortText | None = None
    categories: list[Category] | None = Field(default=None, max_length=50)
    salience: float | None = Field(default=None, ge=0, le=10, allow_inf_nan=False)
    reason: LongText = ""


class Reason(BaseModel):
    """The reason for the journal."""

    reason: Annotated[str, StringConstraints(max_length=500)] = ""


class Stats(Schema):
    """Counts for a scope and everything below it; ``backlog`` counts the whole store."""

    scope: str
    topics: int
    rungs: dict[str, int]
    pinned: int
    retrievals: int
    fields: int
    revisions: int
    links: int
    scopes: int
    backlog: dict[str, int]
