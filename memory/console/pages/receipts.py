"""Receipts of purges, the verification of their chain, and the search for remains of erased content."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.apps import apps
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.principal import Principal
from memory.console.list_page import FilterForm, ListPage, ListRequest, sort_columns, sort_field
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.erasure.check import erasure_check_start, erasure_checks_last
from memory.erasure.receipts import ORDERS, receipt_get, receipts_count, receipts_list, receipts_verify
from memory.health import worker_problem
from memory.jobs.tasks import erasure_check_enqueue
from memory.models import ErasureCheck, ErasureReceipt

COLUMNS = (
    "number",
    "id",
    "at",
    "actor",
    "reason",
    "scope",
    "topic_ids",
    "counts",
    "elsewhere",
    "content_hashes",
    "identifier_hashes",
    "spelling_hashes",
    "previous_hash",
    "reason_hash",
    "hash",
)
# For each table: the noun for one erased row, and for several.
SAID = {
    "memory_topic": ("memory", "memories"),
    "memory_revision": ("value", "values"),
    "memory_lexeme": ("word", "words"),
    "memory_link": ("link", "links"),
    "memory_accesslog": ("recall record", "recall records"),
    "memory_conversationturn": ("message", "messages"),
}


SORTS = sort_columns(ORDERS)


class ReceiptsForm(FilterForm[str]):
    """The order of the list."""

    sort = sort_field(SORTS)

    def to_filter(self) -> str:
        """Return the order, newest first if none is given."""
        return self.cleaned_data.get("sort") or "number"


class OfReceiptForm(forms.Form):
    """The receipt whose page requested a verification."""

    receipt = forms.UUIDField(required=False)

    def receipt_of(self, principal: Principal) -> ErasureReceipt | None:
        """Return the receipt, None if none is named. One query. Raises ``NotVisible``."""
        named = self.cleaned_data["receipt"] if self.is_valid() else None
        return receipt_get(named, principal=principal) if named else None


@page(post=OPERATOR)
def receipts_check(request: ConsoleRequest) -> HttpResponse:
    """Start a verification, unless one is running. At most eight queries."""
    receipt = OfReceiptForm(request.POST).receipt_of(request.principal)
    erasure_check_start(principal=request.principal, now=timezone.now(), enqueue=erasure_check_enqueue)
    return go(request, "console:forget_receipt", receipt.pk) if receipt else go(request, "console:forget_receipts")


@page(get=READER)
def receipts_check_progress(request: ConsoleRequest) -> HttpResponse:
    """Return the progress of a verification and, at the end, its result, for a page that polls it. Four queries."""
    receipt = OfReceiptForm(request.GET).receipt_of(request.principal)
    if not request.htmx:
        return go(request, "console:forget_receipt", receipt.pk) if receipt else go(request, "console:forget_receipts")
    return show(request, "parts/forget_check.html", _verification(request.principal, receipt))


def _verification(principal: Principal, receipt: ErasureReceipt | None = None) -> dict[str, Any]:
    """Return the running verification, the last result, and the part of this result about ``receipt``. Three queries at
    most."""
    newest, done = erasure_checks_last(principal=principal)
    working = newest is not None and newest.status == ErasureCheck.Status.WORKING
    verified = done if done and (receipt is None or done.receipts >= receipt.number) else None
    report = verified.report if verified else {}
    traces = [each for each in report.get("traces", ()) if receipt is None or each["receipt"] == receipt.number]
    return {
        "receipt": receipt,
        "check": newest,
        "working": working,
        "worker": worker_problem(timezone.now(), waits=working),
        "verified": verified,
        "report": report,
        "traces": traces,
        "left": bool(traces) or (receipt is not None and receipt.number in report.get("receipts", ())),
    }


def _erased_words(receipt: ErasureReceipt) -> str:
    """Return what a purge erased, in words: ``2 memories, 29 words, 1 recall record``."""
    counts = {"memory_topic": len(receipt.topic_ids), **receipt.counts}
    found = ((counts.get(table, 0), words) for table, words in SAID.items())
    return ", ".join(f"{times:,} {one if times == 1 else many}" for times, (one, many) in found if times)


@page(get=READER)
def receipts_chain(request: ConsoleRequest) -> HttpResponse:
    """Show whether the chain of receipts is valid. Reads every receipt, in batches."""
    chain = receipts_verify()
    return show(request, "parts/forget_chain.html" if request.htmx else "forget_receipts_chain.html", {"chain": chain})


@page(get=READER)
def receipt(request: ConsoleRequest, receipt_id: uuid.UUID) -> HttpResponse:
    """Show one receipt, and the last verification of its purge. Four queries at most."""
    found = receipt_get(receipt_id, principal=request.principal)
    counts = sorted(
        ((table, _table_words(table), times) for table, times in found.counts.items()),
        key=lambda each: (-each[2], each[0]),
    )
    return show(
        request,
        "forget_receipt.html",
        {
            **_verification(request.principal, found),
            "said": _erased_words(found),
            "topic_count": len(found.topic_ids),
            "counts": counts,
            "rows": sum(found.counts.values()),
        },
    )


def _table_words(table: str) -> str:
    name, _dot, column = table.partition(".")
    words = next(
        (str(each._meta.verbose_name_plural) for each in apps.get_models() if each._meta.db_table == name), name
    )
    return f"{words}: {column.replace('_', ' ')}" if column else words


def _more(asked: ListRequest[str], rows: Sequence[ErasureReceipt]) -> Mapping[str, Any]:
    return {**_verification(asked.principal), "lines": [(each, _erased_words(each)) for each in rows]}


# Receipts. Four queries for a page, one for the count. The chain is verified separately.
RECEIPTS = ListPage(
    name="forget_receipts",
    address="forget/receipts/",
    form=ReceiptsForm,
    fetch=lambda asked, cursor, limit: receipts_list(
        principal=asked.principal, sort=asked.filter, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: receipts_count(principal=asked.principal, at_most=most),
    noun="receipt",
    columns=COLUMNS,
    file=lambda _asked: "receipts",
    more=_more,
    sorts=SORTS,
)
# One receipt. Its export contains every id and hash. One query.
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
    path("forget/receipts/verify/", receipts_check, name="forget_receipts_check"),
    path("forget/receipts/verify/progress/", receipts_check_progress, name="forget_receipts_check_progress"),
    path("forget/receipts/chain/", receipts_chain, name="forget_receipts_chain"),
    *RECEIPT.urlpatterns,
]
