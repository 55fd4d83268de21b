"""Receipts of purges, and the verification of their chain."""

import uuid

from django.apps import apps
from django.http import HttpResponse
from django.urls import path

from memory.console.list_page import ListPage, NoFilter
from memory.console.page import READER, ConsoleRequest, page, show
from memory.erasure.receipts import receipt_get, receipts_count, receipts_list, receipts_verify

COLUMNS = (
    "number",
    "id",
    "at",
    "actor",
    "reason",
    "scope",
    "topic_ids",
    "counts",
    "content_hashes",
    "identifier_hashes",
    "previous_hash",
    "reason_hash",
    "hash",
)


@page(get=READER)
def receipts_chain(request: ConsoleRequest) -> HttpResponse:
    """Show whether the chain of receipts is valid. Reads every receipt, in batches."""
    chain = receipts_verify()
    return show(request, "parts/forget_chain.html" if request.htmx else "forget_receipts_chain.html", {"chain": chain})


@page(get=READER)
def receipt(request: ConsoleRequest, receipt_id: uuid.UUID) -> HttpResponse:
    """Show one receipt. One query."""
    found = receipt_get(receipt_id, principal=request.principal)
    counts = sorted(
        ((table, _table_words(table), times) for table, times in found.counts.items()),
        key=lambda each: (-each[2], each[0]),
    )
    return show(
        request,
        "forget_receipt.html",
        {"receipt": found, "topic_count": len(found.topic_ids), "counts": counts, "rows": sum(found.counts.values())},
    )


def _table_words(table: str) -> str:
    """Return the label of a table or column; unknown names stay unchanged."""
    name, _dot, column = table.partition(".")
    words = next(
        (str(each._meta.verbose_name_plural) for each in apps.get_models() if each._meta.db_table == name), name
    )
    return f"{words}: {column.replace('_', ' ')}" if column else words


# Receipts, newest first. One query for a page, one to count; the chain is verified separately.
RECEIPTS = ListPage(
    name="forget_receipts",
    address="forget/receipts/",
    form=NoFilter,
    fetch=lambda asked, cursor, limit: receipts_list(principal=asked.principal, cursor=cursor, limit=limit),
    count=lambda asked, most: receipts_count(principal=asked.principal, at_most=most),
    noun="receipt",
    columns=COLUMNS,
    file=lambda _asked: "receipts",
)
# One receipt, which is exported with every id and hash. One query.
RECEIPT = ListPage(
    name="forget_receipt",
    address="forget/receipts/<uuid:receipt_id>/",
    read=lambda request, receipt_id: receipt_get(receipt_id, principal=request.principal),
    fetch=lambda asked, _cursor, _limit: ([asked.filter], None),
    columns=COLUMNS,
    file=lambda asked: f"receipt-{asked.filter.number}",
    view=receipt,
)

urlpatterns = [
    *RECEIPTS.urlpatterns,
    path("forget/receipts/chain/", receipts_chain, name="forget_receipts_chain"),
    *RECEIPT.urlpatterns,
]
