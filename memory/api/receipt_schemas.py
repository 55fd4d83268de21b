"""What a purge and the routes of receipts answer, for OpenAPI."""

import datetime as dt

from ninja import Schema
from pydantic import Field


class PurgeReply(Schema):
    """What a purge erased. Kept elsewhere, number and hash prove later that no receipt was taken out since."""

    receipt_id: str
    number: int
    topic_ids: list[str] = Field(
        description="The topic, those that were merged into it, and the texts they were extracted from."
    )
    counts: dict[str, int] = Field(description="Rows erased or masked, by table.")
    hash: str


class ReceiptOut(Schema):
    """That something was erased: ids and keyed hashes, no word of it. Receipts form a chain."""

    receipt_id: str
    number: int
    at: dt.datetime
    actor: str
    reason: str = Field(description="Erased content mentioned in the reason is masked.")
    scope: str
    topic_ids: list[str]
    content_hashes: list[str] = Field(description="HMAC-SHA-256 of each erased text that no other topic contains.")
    identifier_hashes: list[str] = Field(description="The same of each identifier that nothing else names.")
    counts: dict[str, int]
    previous_hash: str = Field(description="Empty for the first receipt.")
    reason_hash: str = Field(description="HMAC-SHA-256 of the reason as it was given; a later purge may mask it.")
    hash: str = Field(description="SHA-256 over all other members but the reason.")


class ReceiptPage(Schema):
    """Receipts, newest first."""

    items: list[ReceiptOut]
    next: str | None
