"""What ingest returns: the members of each reply, for the OpenAPI document and for those that build them."""

from typing import Annotated, NotRequired

from pydantic import Field

from memory.core.replies import TypedDict


class IngestReply(TypedDict):
    """What one item did."""

    topic_id: str
    applied: Annotated[list[str], Field(description="created_topic:<id>, field:<name>, version:<name>, edge:<to>")]
    version_ids: Annotated[dict[str, str], Field(description="Id of the new revision, by field name.")]
    similar_topic_ids: list[str]


class BatchItemReply(TypedDict):
    """One item of a batch: its status, and either what it did or why it was refused."""

    index: int
    status: int
    topic_id: NotRequired[str | None]
    applied: NotRequired[Annotated[list[str], Field(default=[])]]
    version_ids: NotRequired[Annotated[dict[str, str], Field(default={})]]
    similar_topic_ids: NotRequired[Annotated[list[str], Field(default=[])]]
    type: NotRequired[
        Annotated[str | None, Field(description="What is wrong, as in a problem document; of a refused item.")]
    ]
    detail: NotRequired[str | None]


class BatchReply(TypedDict):
    """The outcome of each item, in the order sent."""

    results: list[BatchItemReply]
    accepted: int
    refused: int
