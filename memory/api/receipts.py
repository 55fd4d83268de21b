"""Receipts of purges: /v1/receipts."""

import datetime as dt
import uuid
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.replies import json_reply
from memory.api.responses import READ
from memory.core.replies import TypedDict, doc
from memory.erasure.receipts import receipt_get, receipts_list
from memory.models import ErasureReceipt

router = Router(tags=["command"])


class ReceiptOut(TypedDict):
    """A record of a purge: ids and keyed hashes, but no erased text. Receipts form a chain."""

    receipt_id: str
    number: int
    at: dt.datetime
    actor: str
    reason: Annotated[str, doc("Erased content mentioned in the reason is masked.")]
    scope: str
    topic_ids: list[str]
    content_hashes: Annotated[list[str], doc("HMAC-SHA-256 of each erased text that no other topic contains.")]
    identifier_hashes: Annotated[list[str], doc("HMAC-SHA-256 of each erased identifier that no other topic contains.")]
    spelling_hashes: Annotated[
        list[str], doc("HMAC-SHA-256 of each spelling of names and identifiers that was searched.")
    ]
    counts: dict[str, int]
    elsewhere: Annotated[
        dict[str, int],
        doc("How many of its `texts` and `identifiers` other topics contain, too. They stay there, and have no hash."),
    ]
    previous_hash: Annotated[str, doc("Empty for the first receipt.")]
    reason_hash: Annotated[str, doc("HMAC-SHA-256 of the original reason, which a later purge may mask.")]
    hash: Annotated[str, doc("SHA-256 over all other members except the reason.")]


class ReceiptPage(TypedDict):
    """Receipts, newest first."""

    items: list[ReceiptOut]
    next: str | None


@router.get("/receipts", summary="List receipts of purges", response={200: ReceiptPage, **READ})
@consistency("eventual")
def receipt_list(request: HttpRequest, cursor: Cursor = None, limit: Limit = 50) -> HttpResponse:
    """List receipts within the scope of the key, newest first."""
    principal = principal_of(request, "reader")
    found, following = receipts_list(principal=principal, cursor=cursor, limit=limit_checked(limit))
    return json_reply(ReceiptPage(items=[_receipt_as_dict(receipt) for receipt in found], next=following))


@router.get("/receipts/{topicid:receipt_id}", summary="Read a receipt", response={200: ReceiptOut, **READ})
def receipt_read(request: HttpRequest, receipt_id: uuid.UUID) -> HttpResponse:
    """Read the receipt of one purge."""
    return json_reply(_receipt_as_dict(receipt_get(receipt_id, principal=principal_of(request, "reader"))))


def _receipt_as_dict(receipt: ErasureReceipt) -> ReceiptOut:
    return {
        "receipt_id": str(receipt.pk),
        "number": receipt.number,
        "at": receipt.at,
        "actor": receipt.actor,
        "reason": receipt.reason,
        "scope": receipt.scope,
        "topic_ids": receipt.topic_ids,
        "content_hashes": receipt.content_hashes,
        "identifier_hashes": receipt.identifier_hashes,
        "spelling_hashes": receipt.spelling_hashes,
        "counts": receipt.counts,
        "elsewhere": receipt.elsewhere,
        "previous_hash": receipt.previous_hash,
        "reason_hash": receipt.reason_hash,
        "hash": receipt.hash,
    }
