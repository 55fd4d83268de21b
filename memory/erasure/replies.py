"""The types of the replies about forgetting on request. The OpenAPI document describes them."""

import datetime as dt
from typing import Annotated, Literal, NotRequired, get_args

from pydantic import Field

from memory.core.replies import TypedDict, doc, one_of

Verb = Literal["release", "purge"]
_FOUND_BY = ("identifier", "name", "meaning")


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
    spelling: Annotated[str, doc("The name as the topic writes it, if in another script or spelling.")]
    chosen: Annotated[bool, doc("Whether the token forgets it. If not, it is perhaps meant, in another spelling.")]
    keeps: Annotated[str, doc("The remaining content of the topic; it is kept as a separate topic.")]


class ForgetReply(TypedDict):
    """A list and its outcome. ``token`` is null if there is nothing to execute."""

    token: str | None
    expires_at: dt.datetime
    verb: Annotated[str, one_of(get_args(Verb))]
    count: Annotated[int, doc("How many topics the token forgets.")]
    ambiguous: bool
    question: Annotated[str, doc("The question to the caller, or why nothing was found.")]
    matches: Annotated[list[ForgetMatch], doc("At most 200 topics.")]
    executed: bool
    run_id: NotRequired[str | None]
    receipt_id: NotRequired[str | None]


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
