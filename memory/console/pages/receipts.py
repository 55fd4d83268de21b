"""Receipts: that something was purged, and that no receipt was changed or taken away since."""

import uuid
from typing import Any

from django.apps import apps
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path

from memory.command.receipts import receipt_get, receipts_count, receipts_list, receipts_verify
from memory.console.listing import ROWS, count_words, export
from memory.console.page import READER, ConsoleRequest, page, show

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
def receipts(request: ConsoleRequest) -> HttpResponse:
    """Show every receipt, newest first. One query; the chain is verified by itself."""
    found, following = receipts_list(principal=request.principal, cursor=request.GET.get("cursor"), limit=ROWS)
    return show(request, "forget_receipts.html", {"receipts": found, "next": following})


@page(get=READER)
def receipts_counted(request: ConsoleRequest) -> HttpResponse:
    """Say how many receipts there are. One query."""
    return count_words(request, lambda most: receipts_count(principal=request.principal, at_most=most), "receipt")


@page(get=READER)
def receipts_chain(request: ConsoleRequest) -> HttpResponse:
    """Say whether the chain of receipts is whole. Reads every receipt, in batches."""
    chain = receipts_verify()
    return show(request, "parts/forget_chain.html" if request.htmx else "forget_receipts_chain.html", {"chain": chain})


@page(get=READER)
def receipts_export(request: ConsoleRequest, form: str) -> HttpResponseBase:
    """Stream every receipt, newest first."""
    principal = request.principal

    def fetch(cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        found, following = receipts_list(principal=principal, cursor=cursor, limit=limit)
        return [{name: getattr(receipt, name) for name in COLUMNS} for receipt in found], following

    return export("receipts", form=form, columns=COLUMNS, fetch=fetch)


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
    """Return a table, or a column of one, in words; one that no model knows stays as it is."""
    name, _dot, column = table.partition(".")
    words = next(
        (str(each._meta.verbose_name_plural) for each in apps.get_models() if each._meta.db_table == name), name
    )
    return f"{words}: {column.replace('_', ' ')}" if column else words


@page(get=READER)
def receipt_export(request: ConsoleRequest, receipt_id: uuid.UUID, form: str) -> HttpResponseBase:
    """Stream one receipt, with every id and hash."""
    found = receipt_get(receipt_id, principal=request.principal)
    row = {name: getattr(found, name) for name in COLUMNS}
    return export(f"receipt-{found.number}", form=form, columns=COLUMNS, fetch=lambda _cursor, _limit: ([row], None))


urlpatterns = [
    path("forget/receipts/", receipts, name="forget_receipts"),
    path("forget/receipts/count/", receipts_counted, name="forget_receipts_count"),
    path("forget/receipts/chain/", receipts_chain, name="forget_receipts_chain"),
    path("forget/receipts/export.<exportform:form>", receipts_export, name="forget_receipts_export"),
    path("forget/receipts/<uuid:receipt_id>/", receipt, name="forget_receipt"),
    path("forget/receipts/<uuid:receipt_id>/export.<exportform:form>", receipt_export, name="forget_receipt_export"),
]
