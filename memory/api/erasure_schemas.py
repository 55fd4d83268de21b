"""Request and reply schemas of forgetting on request."""

import datetime as dt
import uuid
from typing import Annotated, Literal, NotRequired, get_args

from pydantic import Field, StringConstraints

from memory.api.run_schemas import ScopeText
from memory.api.schemas import Problem
from memory.core.replies import TypedDict, doc, one_of
from memory.core.requests import RequestModel
from memory.ingest.items import Category, LongText, ShortText

Verb = Literal["release", "purge"]
_FOUND_BY = ("identifier", "name", "meaning")
Request = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]


Age = Annotated[str, StringConstraints(max_length=50), Field(description="Age since creation: 30d, 2w, 6m, 1y, 24h.")]
Categories = Annotated[list[Category], Field(max_length=50, description="Any of them.")]


class FilterIn(RequestModel):
    """Conditions that all topics must meet. Omitted members do not filter."""

    scope: ScopeText | None = None
    older_than: Age | None = None
    categories: Categories | None = None
    kinds: list[ShortText] | None = Field(default=None, max_length=50)
    ids: list[uuid.UUID] | None = Field(default=None, max_length=10_000)


class ForgetRequest(RequestModel):
    """A request to forget. ``token`` executes exactly the list that a dry run returned. ``scope``, ``older_than`` and
    ``categories`` are a short form of ``filter``."""

    verb: Verb = "release"
    query: Request | None = Field(default=None, description="What to forget, in words.")
    filter: FilterIn | None = None
    scope: ScopeText | None = None
    older_than: Age | None = None
    categories: Categories | None = None
    reason: LongText = ""
    dry_run: bool = Field(default=True, description="False lists and executes at once.")
    token: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        default=None, description="Of a list: executes exactly that list."
    )


class ForgetMatch(TypedDict):
    """A topic of the list."""

    topic_id: str
    title: str
    summary: str
    scope: str
    topic_kind: str
    standing: str
    pinned: bool
    why: str
    confidence: Annotated[float, doc("0 to 1.")]
    by: Annotated[str, one_of((*_FOUND_BY, "filter")), doc("By what it was found.")]
    excerpt: str
    keeps: Annotated[str, doc("The remaining content of the topic; it is kept as a separate topic.")]


class ForgetReply(TypedDict):
    """A list and its outcome. ``token`` is null if there is nothing to execute."""

    token: str | None
    expires_at: dt.datetime
    verb: Annotated[str, one_of(get_args(Verb))]
    count: int
    ambiguous: bool
    question: Annotated[str, doc("The question to the caller, or why nothing was found.")]
    matches: Annotated[list[ForgetMatch], doc("At most 200 topics.")]
    executed: bool
    run_id: NotRequired[str | None]
    receipt_id: NotRequired[str | None]


class SupersedeRequest(RequestModel):
    """A fact and the text that replaces it."""

    old_query: Request
    new_text: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    scope: ScopeText | None = None
    reason: LongText = ""
    token: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        default=None, description="The token of a candidate from a 409, which chooses that fact."
    )


class SupersededOut(TypedDict):
    """The change of one topic."""

    topic_id: str
    mode: Annotated[str, one_of(("whole", "part"))]
    before: str
    after: str
    confidence: Annotated[float, doc("0 to 1.")]
    by: Annotated[str, one_of(_FOUND_BY), doc("By what it was found.")]


class SupersedeReply(TypedDict):
    """The topic with the new text, and what was replaced."""

    topic_id: str
    superseded: list[SupersededOut]


class CandidateOut(TypedDict):
    """A fact that may be meant."""

    topic_id: str
    text: str
    confidence: NotRequired[Annotated[float, Field(default=0.0, description="0 to 1.")]]
    by: NotRequired[Annotated[str, one_of(_FOUND_BY), Field(default="meaning")]]
    token: NotRequired[
        Annotated[
            str, Field(default="", description="Send it with the same request to choose this fact. Valid for an hour.")
        ]
    ]


class AmbiguousProblem(Problem):
    """Facts about different subjects match equally well. Send the token of the one that is meant."""

    candidates: list[CandidateOut] = []
