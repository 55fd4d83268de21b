"""The members of the replies of recall, for the OpenAPI document and the functions that build and read replies."""

import datetime as dt
from typing import Annotated, Any, Literal, NotRequired

from memory.core.replies import TypedDict, doc, one_of
from memory.ingest.waiting import Waiting
from memory.models import Rung

RungName = Annotated[str, one_of(Rung.labels)]


class RevisionOut(TypedDict):
    """One value that a field has had."""

    id: str
    value: str
    valid_from: dt.datetime
    provenance: str
    why_changed: str
    impact_expected: str
    recorded_at: dt.datetime
    seq: int


class FieldSummaryOut(TypedDict):
    """The summary of the cold revisions of a field. At ``depth`` 2, it includes an earlier summary."""

    text: str
    from_seq: int
    through_seq: int
    method: Literal["extractive", "llm"]
    depth: int


class FieldOut(TypedDict):
    """A field with its current revision. ``history`` is oldest first; unless requested, it has only that revision."""

    id: str
    name: str
    field_type: str
    ref_topic_id: str | None
    current: RevisionOut | None
    history: list[RevisionOut]
    summary: NotRequired[
        Annotated[FieldSummaryOut | None, doc("Replaces cold revisions; include_cold returns the revisions.")]
    ]
    salience: float


class NeighborOut(TypedDict):
    """A link by which a topic is reached. A topic that is reached by two links is listed twice."""

    topic_id: str
    kind: str
    title: str
    summary: str
    topic_kind: str
    direction: Literal["out", "in"]
    depth: int


class TopicBase(TypedDict):
    """Members that every reply has for a topic."""

    topic_id: str
    title: str
    summary: str
    label: Annotated[str, doc("The title, else the beginning of the summary, else that of the first value.")]
    topic_kind: str
    salience: Annotated[float, doc("Effective salience at the time of the reply.")]
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

    similarity: NotRequired[Annotated[float | None, doc("Cosine between question and topic.")]]
    relevance: NotRequired[
        Annotated[
            float | None,
            doc("How far the topic answers the question, 0 to 1; comparable between questions. Null if unknown."),
        ]
    ]
    score: NotRequired[Annotated[float | None, doc("The score that determines the rank.")]]
    also: NotRequired[
        Annotated[list[str], doc("Topics that say the same. They come after all others, or are left out.")]
    ]
    neighbors: list[NeighborOut]
    fields: list[FieldOut]
    score_parts: NotRequired[
        Annotated[
            dict[str, float] | None, doc("With explain: the parts of the score; the score is their sum times decay.")
        ]
    ]


class QueryReply(TypedDict):
    """The topics, best first, and their content as text."""

    query: str
    candidates: list[Candidate]
    summary_text: str
    waiting: NotRequired[
        Annotated[Waiting, doc("If topics of the scope wait for the worker and are not found by meaning yet.")]
    ]
    explain: NotRequired[Annotated[dict[str, Any] | None, doc("With explain: milliseconds per stage, and more.")]]


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


class MergedTopic(TypedDict):
    """A merged topic. ``merged_into`` is the topic into which it was merged directly."""

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


class TopicPage(TypedDict):
    """One page; ``next`` is the cursor of the next page, null on the last."""

    items: list[TopicRow]
    next: str | None


class HistoryRevision(RevisionOut):
    """A revision in full."""

    field_type: str
    ref_topic_id: str | None
    actor: str
    cold: bool


class ScopeCount(TypedDict):
    """A scope, and how many topics are directly in it."""

    scope: str
    topics: int


class ScopePage(TypedDict):
    """One page of scopes; ``next`` is the cursor of the next page, null on the last."""

    items: list[ScopeCount]
    next: str | None


class HistoryPage(TypedDict):
    """Revisions, newest first."""

    items: list[HistoryRevision]
    next: str | None


class Stats(TypedDict):
    """Counts for a scope and everything below it. Topics that were released or merged are not counted, and neither are
    their fields and links. ``backlog`` counts the rows that wait for the worker."""

    scope: str
    topics: Annotated[int, doc("Live and archived topics.")]
    live: Annotated[int, doc("Topics that queries return.")]
    rungs: dict[str, int]
    released: int
    pinned: int
    retrievals: int
    fields: int
    revisions: int
    links: int
    scopes: int
    backlog: dict[str, int]
    waiting: Annotated[Waiting | None, doc("Topics without a vector; null if there are none.")]
