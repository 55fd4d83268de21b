"""The verification of erasures as a background job. Each table is a step. If a worker is killed, one step is lost."""

import datetime as dt
import uuid
from dataclasses import asdict
from typing import Any

from django.db import transaction

from memory.access.principal import Principal
from memory.core.callbacks import Clock, Enqueue
from memory.core.scopes import ROOT
from memory.erasure.receipt_search import erased_hashes
from memory.erasure.receipts import purges_wait
from memory.erasure.verify import ErasureSearch, SearchedTable, VerificationReport, rows_expected, tables_read
from memory.models import ErasureCheck
from memory.resumable import (
    JobFailed,
    Status,
    job_at_work,
    job_finish,
    job_hold,
    job_new,
    job_start,
    job_work,
    jobs_visible,
)
from memory.stores.pending import work_pending

# The most matches of each kind in a result.
MAX_SHOWN = 100
# A worker that takes too long for one table is killed, and the table is begun again. A table is begun at most this
# number of times.
MAX_BEGUN = 4
_TOO_LONG = (
    "The worker began the table {table} {begun} times and never finished it within MEMSTATE_JOB_TIMEOUT. Use "
    "manage.py verify_erasure instead, which has no time limit."
)


def erasure_check_start(*, principal: Principal, now: dt.datetime, enqueue: Enqueue | None) -> ErasureCheck:
    """Enqueue a verification of all receipts, or return the running one. Seven queries. Raises ``NotAllowed``."""
    principal.require("operator")
    work_pending()
    with transaction.atomic():
        # Wait for a running purge, so that the verification includes it. The same lock ensures that two callers do not
        # both start a job.
        last = purges_wait() - 1
        working = ErasureCheck.objects.filter(status=Status.WORKING).first()
        if working is not None:
            return working
        job = job_new(ErasureCheck, principal=principal, now=now, scope=ROOT, receipts=last, expected=rows_expected())
        job_start(job, now=now, enqueue=enqueue)
    return job


def erasure_check_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, enqueue: Enqueue | None = None
) -> ErasureCheck:
    """Read tables until all are read or ``seconds`` have passed, and return the verification (see ``job_work``). A
    table is always read to its end."""
    search: ErasureSearch | None = None
    left: list[SearchedTable] = []

    def step() -> bool:
        nonlocal search
        job = job_at_work(ErasureCheck, job_id)
        if search is None or search.tables != len(job.read):
            search = ErasureSearch(erased_hashes(through=job.receipts), job.found)
            left.clear()
        try:
            return _step(job, search, left, clock=clock)
        except Exception:
            # The step was not stored, so the next attempt continues from the stored state.
            search = None
            raise

    return job_work(ErasureCheck, job_id, step, clock=clock, seconds=seconds, enqueue=enqueue)


def erasure_checks_last(*, principal: Principal) -> tuple[ErasureCheck | None, ErasureCheck | None]:
    """Return the newest verification and the newest finished verification; None for one that is missing. Two
    queries."""
    found = jobs_visible(ErasureCheck, principal).order_by("-created_at", "-id")
    return found.first(), found.filter(status=Status.DONE).first()


def _step(job: ErasureCheck, search: ErasureSearch, left: list[SearchedTable], *, clock: Clock) -> bool:
    """Read the first of the tables that are ``left``, which are listed if there are none: at the beginning, and again
    at the end, for tables that were created meanwhile."""
    unreadable: list[str] = []
    if not left:
        tables, unreadable = tables_read()
        left += [each for each in tables if each.label not in job.read]
    if not left:
        report = _report_as_json(search.report(unreadable))
        with transaction.atomic():
            job = job_hold(job)
            job.report = report
            job_finish(job, Status.DONE, now=clock())
        return False
    table = left.pop(0)
    job = _begin(job, table, now=clock())
    search.read(table)
    with transaction.atomic():
        job = job_hold(job)
        job.read, job.begun = [*job.read, table.label], 0
        job.done, job.found, job.failure, job.moved_at = search.rows, search.as_json(), "", clock()
        job.save()
    return True


def _begin(job: ErasureCheck, table: SearchedTable, *, now: dt.datetime) -> ErasureCheck:
    """Store that a worker begins this table. Raises ``JobFailed`` if the table was begun too often.

    This is stored before the table is read, because a killed worker could not store it later.
    """
    with transaction.atomic():
        job = job_hold(job)
        if job.begun >= MAX_BEGUN:
            raise JobFailed(_TOO_LONG.format(table=table.label, begun=job.begun))
        job.begun, job.moved_at = job.begun + 1, now
        job.save(update_fields=["begun", "moved_at"])
    return job


def _report_as_json(report: VerificationReport) -> dict[str, Any]:
    found = {"traces": report.traces, "stored_again": report.stored_again, "addresses": report.addresses}
    return {
        "ok": report.ok,
        "tables": report.tables,
        "rows": report.rows,
        "unreadable": report.unreadable,
        "nodes_away": report.nodes_away,
        "ours": report.ours,
        "chain": list(report.chain.sentences),
        "counts": {name: len(each) for name, each in found.items()},
        "receipts": sorted({trace.receipt for trace in report.traces}),
        **{
            name: [asdict(trace) | {"sentence": trace.sentence()} for trace in each[:MAX_SHOWN]]
            for name, each in found.items()
        },
    }
