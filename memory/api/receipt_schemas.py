"""Reply schemas of a purge and of the routes of receipts."""

import datetime as dt

from ninja import Schema
from pydantic import Field


class PurgeReply(Schema):
    """The result of a purge. A copy of number and hash later proves that no receipt was removed."""

    receipt_id: str
    number: int
    topic_ids: list[str] = Field(
        description="The topic, those that were merged into it, and the texts they were extracted from."
    )
    counts: dict[str, int] = Field(description="Rows erased or masked, by table.")
    hash: str


class ReceiptOut(Schema):
    """A record of a purge: ids and keyed hashes, but no erased text. Receipts form a chain."""

    receipt_id: str
    number: int
    at: dt.datetime
    actor: str
    reason: str = Field(description="Erased content mentioned in the reason is masked.")
    scope: str
    topic_ids: list[str]
    content_hashes: list[str] = Field(description="HMAC-SHA-256 of each erased text that no other topic contains.")
    identifier_hashes: list[str] = Field(
        description="HMAC-SHA-256 of each erased identifier that no other topic contains."
    )
    counts: dict[str, int]
    previous_hash: str = Field(description="Empty for the first receipt.")
    reason_hash: str = Field(description="HMAC-SHA-256 of the original reason, which a later purge may mask.")
    hash: str = Field(description="SHA-256 over all other members except the reason.")


class ReceiptPage(Schema):
    """Receipts, newest first."""

    items: list[ReceiptOut]
    next: str | None
