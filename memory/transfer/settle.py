"""What an import has brought counts from its end on, however it has ended."""

import datetime as dt

from django.db.models import F, Value
from django.db.models.functions import Concat, Replace

from memory.models import ForgetRun, ImportJob
from memory.policy.rekey import half_lives_stray_check
from memory.policy.schedules import cron_schedules_sync
from memory.transfer.report import BROUGHT
from memory.transfer.shape import ORDER

# Said of a run behind what else is said of its failure, and taken off again.
CUT = " The import that brought this run has stopped before all of it was here. Import the file again to go on."
_BEHIND_ACTIONS = ORDER[ORDER.index("action") + 1 :]


def import_settle(job: ImportJob, *, now: dt.datetime) -> None:
    """Let the runs that were at work or held take up their status, and have schedules and half-lives follow the
    policies that came. Needs the transaction that ends the import. Two statements for each status, and those of the
    policies.

    A run of which only a part is here is neither gone on with nor asked about: it has failed, until the rest has come.
    """
    if not job.counts:
        return
    whole = job.status == ImportJob.Status.DONE or any(sort in job.counts for sort in _BEHIND_ACTIONS)
    by_status: dict[str, list[str]] = {}
    for run_id, status in job.numbers.get("open", {}).items():
        by_status.setdefault(status, []).append(run_id)
    for status, ids in by_status.items():
        planned = ForgetRun.objects.filter(pk__in=ids, status=ForgetRun.Status.PLANNED)
        if whole:
            planned.update(status=status)
            cut = ForgetRun.objects.filter(pk__in=ids, status=ForgetRun.Status.FAILED, failure__endswith=CUT)
            cut.update(status=status, failure=Replace(F("failure"), Value(CUT)))
        else:
            planned.update(status=ForgetRun.Status.FAILED, failure=Concat(F("failure"), Value(CUT)))
    if job.counts.get("policy", {}).get(BROUGHT):
        cron_schedules_sync(now=now)
    half_lives_stray_check(now=now)
