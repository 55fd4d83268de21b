"""The members of the replies of ingest, for the OpenAPI document and the functions that build replies."""

from typing import Annotated, NotRequired

from pydantic import Field

from memory.core.replies import TypedDict, doc
from memory.ingest.waiting import Waiting

WaitingTopics = Annotated[Waiting, doc("If topics of the request wait for the worker.")]


class IngestReply(TypedDict):
    """The result of one item."""

    topic_id: str
    applied: Annotated[list[str], doc("created_topic:<id>, field:<name>, version:<name>, edge:<to>")]
    version_ids: Annotated[dict[str, str], doc("Id of the new revision, by field name.")]
    similar_topic_ids: list[str]
    waiting: NotRequired[WaitingTopics]


class BatchItemReply(TypedDict):
    """The status of one item of a batch, and either its result or the reason for its refusal."""

    index: int
    status: int
    topic_id: NotRequired[str | None]
    applied: NotRequired[Annotated[list[str], Field(default=[])]]
    version_ids: NotRequired[Annotated[dict[str, str], Field(default={})]]
    similar_topic_ids: NotRequired[Annotated[list[str], Field(default=[])]]
    type: NotRequired[Annotated[str | None, doc("For a refused item: the type, as in a problem document.")]]
    detail: NotRequired[str | None]
    member: NotRequired[Annotated[str | None, doc("For a refused item: the path of the wrong value, if it is known.")]]


class BatchReply(TypedDict):
    """The outcome of each item, in the order sent."""

    results: list[BatchItemReply]
    accepted: int
    refused: int
    waiting: NotRequired[WaitingTopics]
