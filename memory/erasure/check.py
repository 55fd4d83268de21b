"""The verification of erasures as a background job: one step per table, so that a killed worker repeats one."""

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
from memory.jobs.resumable import (
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
from memory.models import ErasureCheck

# Matches of each sort that a result lists.
MOST_SHOWN = 100
# A worker that takes too long with one table is killed, and begins it again.
MOST_BEGUN = 4
_TOO_LONG = (
    "The table {table} was begun {begun} times and not read to its end: the worker gives up what takes longer than "
    "MEMSTATE_JOB_TIMEOUT. manage.py verify_erasure takes as long as it needs."
)


def erasure_check_start(*, principal: Principal, now: dt.datetime, enqueue: Enqueue | None) -> ErasureCheck:
    """Enqueue a verification of all receipts, or return the one at work. Seven queries. Raises ``NotAllowed``."""
    principal.require("operator")
    with transaction.atomic():
        # What a running purge erases is verified too. Two who start at once start one.
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
    """Read tables until all are read or ``seconds`` have passed, and return the verification (see ``job_work``). The
    table at work is read to its end."""
    search: ErasureSearch | None = None

    def step() -> bool:
        nonlocal search
        job = job_at_work(ErasureCheck, job_id)
        if search is None or search.tables != len(job.read):
            search = ErasureSearch(erased_hashes(through=job.receipts), job.found)
        try:
            return _step(job, search, clock=clock)
        except Exception:
            # A step that was not stored is repeated from what was stored.
            search = None
            raise

    return job_work(ErasureCheck, job_id, step, clock=clock, seconds=seconds, enqueue=enqueue)


def erasure_checks_last(*, principal: Principal) -> tuple[ErasureCheck | None, ErasureCheck | None]:
    """Return the newest verification, and the newest one that came to its end, if there are any. Two queries."""
    found = jobs_visible(ErasureCheck, principal).order_by("-created_at", "-id")
    return found.first(), found.filter(status=Status.DONE).first()


def _step(job: ErasureCheck, search: ErasureSearch, *, clock: Clock) -> bool:
    tables, unreadable = tables_read()
    table = next((each for each in tables if each.label not in job.read), None)
    if table is None:
        report = _report_as_json(search.report(unreadable))
        with transaction.atomic():
            job = job_hold(job)
            job.report = report
            job_finish(job, Status.DONE, now=clock())
        return False
    job = _begin(job, table, now=clock())
    search.read(table)
    with transaction.atomic():
        job = job_hold(job)
        job.read, job.begun = [*job.read, table.label], 0
        job.done, job.found, job.failure, job.moved_at = search.rows, search.as_json(), "", clock()
        job.save()
    return True


def _begin(job: ErasureCheck, table: SearchedTable, *, now: dt.datetime) -> ErasureCheck:
    """Count the beginning of a table before it is read: who is killed cannot count it."""
    with transaction.atomic():
        job = job_hold(job)
        if job.begun >= MOST_BEGUN:
            raise JobFailed(_TOO_LONG.format(table=table.label, begun=job.begun))
        job.begun, job.moved_at = job.begun + 1, now
        job.save(update_fields=["begun", "moved_at"])
    return job


def _report_as_json(report: VerificationReport) -> dict[str, Any]:
    """Return a result with the numbers of all matches, and the first of each sort."""
    found = {"traces": report.traces, "stored_again": report.stored_again, "addresses": report.addresses}
    return {
        "ok": report.ok,
        "tables": report.tables,
        "rows": report.rows,
        "unreadable": report.unreadable,
        "ours": report.ours,
        "chain": list(report.chain.sentences),
        "counts": {name: len(each) for name, each in found.items()},
        "receipts": sorted({trace.receipt for trace in report.traces}),
        **{
            name: [asdict(trace) | {"sentence": trace.sentence()} for trace in each[:MOST_SHOWN]]
            for name, each in found.items()
        },
    }
