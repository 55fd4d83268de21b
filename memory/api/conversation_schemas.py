"""What routes about conversations take and answer."""

import uuid
from typing import Annotated, Literal

from ninja import Schema
from pydantic import BaseModel, Field, StringConstraints


class ConversationUndoRequest(BaseModel):
    """Why, and whether it is only looked at."""

    reason: Annotated[str, StringConstraints(max_length=500)] = ""
    dry_run: bool = Field(default=False, description="Only tell what would be taken back; nothing is changed.")
    digest: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Of a dry run; it is refused if something else would be taken back by now."
    )


class TakenBack(Schema):
    """How much of each sort."""

    topics: int = Field(description="Made by the conversation; released.")
    values: int = Field(description="Written over by it; what was there before is a new revision.")
    fields: int = Field(description="Added by it to topics that were there; their newest revision is empty.")
    links: int = Field(description="Made by it between topics that were there; removed.")
    merges: int = Field(description="Of its studies; taken apart.")


class UndoneItem(Schema):
    """One thing that is taken back. A link stands with its source."""

    what: Literal["topic", "value", "field", "link", "merge"]
    topic_id: uuid.UUID
    title: str
    told: str


class LeftItem(UndoneItem):
    """One thing that is left as it is."""

    why: str


class ConversationUndoReply(Schema):
    """What an undo did, or would do. The lists hold the first thousand of each."""

    conversation_id: uuid.UUID
    dry_run: bool
    sentence: str
    taken_back: TakenBack
    items: list[UndoneItem]
    left: list[LeftItem]
    left_count: int
    studies_cancelled: int
    run_id: uuid.UUID | None = Field(description="Takes the release of its topics back.")
    digest: str | None = Field(description="Of a dry run: what tells whether the same would be done later.")
