"""Runs: the list, one run with its actions, and apply, approve, refuse and undo."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import Attempt, OptionalReasonForm, ReasonForm
from memory.console.list_page import ListPage, ListRequest, NoFilter
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.queries.recalls import recalls_behind
from memory.console.run_forms import FOR_APPROVAL, SORTS, ActionsForm, RunsForm, StartForm
from memory.console.undo import back_to, go_back, undo_offer
from memory.core.errors import Conflict, ValueRefused
from memory.core.scopes import ROOT
from memory.explain.regret import regret_of_run
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.previews import Preview, apply_preview, approve_preview, plan_preview, undo_preview
from memory.forgetting.refusals import policies_new, run_refuse
from memory.forgetting.run_list import (
    ActionFilter,
    RunFilter,
    run_action_counts,
    run_actions_count,
    run_actions_worded,
    run_as_json,
    run_detail,
    run_reasons,
    runs_count,
    runs_held,
    runs_list,
    versions_before,
)
from memory.forgetting.run_text import run_sentence, undo_sentence
from memory.forgetting.runs import run_begin, run_get, run_keep, run_start, run_undo
from memory.health import worker_problem
from memory.jobs import tasks
from memory.jobs.schedule_list import schedules_policies, schedules_soonest
from memory.models import ForgetRun, ImportJob
from memory.policy.effective import policies_current
from memory.policy.explain import versions_behind

COLUMNS = (
    "run_id",
    "at",
    "scope",
    "event",
    "status",
    "dry_run",
    "policy",
    "version",
    "counts",
    "planned",
    "applied",
    "skipped",
    "left_over",
    "actor",
    "approved_by",
    "undone_by",
    "started_at",
    "finished_at",
    "undone_at",
    "sentence",
    "held_because",
    "gate",
    "failure",
)
ACTION_COLUMNS = (
    "place",
    "topic_id",
    "title",
    "action",
    "state",
    "from_rung",
    "to_rung",
    "score",
    "why_words",
    "why",
    "changes",
    "salience_before",
    "salience_after",
    "note",
    "at",
)

# A run with at most this many memories shows them first.
FEW = 20
# The most upcoming scheduled runs shown above the list.
NEXT_SHOWN = 5
# Seconds of work within a request. After that, the worker continues and the page shows the progress.
WORK_SECONDS = 1.0


@page(get=READER, post=OPERATOR)
def runs(request: ConsoleRequest) -> HttpResponse:
    """Show the runs, or plan one over a posted scope and redirect to the plan: a dry run, or a run that is held until
    it is approved. Nothing is forgotten yet."""
    if request.method != "POST":
        return show(request, "runs.html", RUNS.context(request))
    form = StartForm(request.POST)
    if not form.is_valid():
        return show(request, "runs.html", RUNS.context(request) | _start(form), status=422)
    held = form.cleaned_data["then"] == FOR_APPROVAL
    run = run_start(
        form.cleaned_data["scope"] or ROOT,
        event="manual",
        dry_run=not held,
        principal=request.principal,
        now=timezone.now(),
        held_because=f"{request.user.get_username()} asked for approval." if held else "",
    )
    return go(request, "console:run", run_id=run.pk)


@page(get=READER)
def run(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Show one run and its actions. Eight queries, plus at most eleven for a plan, and three if a query started the
    run."""
    found = run_get(run_id, principal=request.principal)
    tally = run_action_counts(run_id)
    actions = ACTIONS.context(request, form=ActionsForm(request.GET, tally=tally), run_id=run_id)
    return show(
        request,
        "run.html",
        {
            "run": run_detail(found),
            "row": found,
            "tally": tally,
            # A purge removes the actions of its topics.
            "purged": max(0, found.planned - sum(tally.by_state.values())) if found.started_at else 0,
            "most": max(tally.by_action.values(), default=0),
            "few": found.planned <= FEW,
            "preview": plan_preview(found),
            "behind": _behind(found),
            "decide": _APPLY.form() if found.status == ForgetRun.Status.PLANNED else _APPROVE.form(),
            "refusal": OptionalReasonForm(),
            "new_policies": policies_new(found) if found.status == ForgetRun.Status.HELD else {},
            "reasons": run_reasons(found) if found.status == ForgetRun.Status.REFUSED else [],
            "recall": recalls_behind([found]).get(run_id),
            "job": ImportJob.objects.filter(run=found).first() if found.event == BY_HAND else None,
            **actions,
            **_progress(found),
        },
    )


@page(post=OPERATOR)
def run_kept(request: ConsoleRequest, run_id: uuid.UUID, topic_id: uuid.UUID) -> HttpResponse:
    """Pin a memory of a plan and take it out of the plan."""
    kept = run_keep(run_id, topic_id, principal=request.principal, now=timezone.now())
    undo_offer(request, "The memory is pinned, and no longer part of this plan.", kept)
    return go_back(request, back_to(request, request.POST.get("next", "")))


@page(get=READER)
def run_peek(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Return the counts of a run and the reasons for it, for a panel beside the list. Ten queries at most."""
    if not request.htmx:
        return go(request, "console:run", run_id)
    found = run_get(run_id, principal=request.principal)
    tally = run_action_counts(run_id)
    return show(
        request,
        "parts/run_peek.html",
        {
            "run": run_detail(found),
            "tally": tally,
            "reasons": run_reasons(found),
            "recall": recalls_behind([found]).get(run_id),
        },
    )


@page(get=READER)
def run_progress(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Return the progress of a run for its page, which is reloaded at the end."""
    found = run_get(run_id, principal=request.principal)
    if not request.htmx:
        return go(request, "console:run", run_id=run_id)
    reply = show(request, "parts/run_progress.html", {"run": run_as_json(found), **_progress(found)})
    if found.status != ForgetRun.Status.APPLYING:
        reply.headers["HX-Refresh"] = "true"
    return reply


@page(get=READER)
def run_regret(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Show how many of the topics that a run archived were needed afterwards. Two queries."""
    found = run_get(run_id, principal=request.principal)
    context = {"run": run_as_json(found), "regret": regret_of_run(run_id, now=timezone.now())}
    return show(request, "parts/run_regret.html" if request.htmx else "run_regret.html", context)


def _progress(found: ForgetRun) -> dict[str, Any]:
    if found.status != ForgetRun.Status.APPLYING:
        return {}
    return {"taken": found.applied + found.skipped, "worker": worker_problem(timezone.now(), waits=True)}


@dataclass(frozen=True)
class _RunConfirmation:
    title: str
    button: str
    lead: str
    due: tuple[ForgetRun.Status, ...]
    preview: Callable[[ForgetRun], Preview]
    take: Callable[[ConsoleRequest, uuid.UUID, str], None]
    form: type[ReasonForm | OptionalReasonForm] = ReasonForm


def _apply(request: ConsoleRequest, run_id: uuid.UUID, reason: str) -> None:
    run = run_begin(
        run_id,
        ForgetRun.Status.PLANNED,
        principal=request.principal,
        reason=reason,
        now=timezone.now(),
        enqueue=tasks.run_enqueue,
        seconds=WORK_SECONDS,
    )
    _say(request, run, run_sentence(run))


def _approve(request: ConsoleRequest, run_id: uuid.UUID, reason: str) -> None:
    run = run_begin(
        run_id,
        ForgetRun.Status.HELD,
        principal=request.principal,
        reason=reason,
        now=timezone.now(),
        enqueue=tasks.run_enqueue,
        seconds=WORK_SECONDS,
    )
    _say(request, run, f"Approved. {run_sentence(run)}")


@page(get=OPERATOR, post=OPERATOR)
def run_refused(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Refuse a held run, and on request roll back the policies that are new since the previous run."""
    if request.method == "POST":
        roll_back = "roll_back" in request.POST
        form = OptionalReasonForm(request.POST)
        if form.is_valid():
            reason = form.cleaned_data["reason"]
            try:
                run_refuse(run_id, principal=request.principal, reason=reason, now=timezone.now(), roll_back=roll_back)
            except (Conflict, ValueRefused) as problem:
                messages.error(request, problem.sentence)
            else:
                rolled = " The policy was rolled back." if roll_back else ""
                messages.success(request, f"Refused. No memory was changed.{rolled}")
                tasks.upkeep_nudge()
        else:
            messages.error(request, "The reason is too long.")
    return go(request, "console:run", run_id=run_id)


def _say(request: ConsoleRequest, run: ForgetRun, sentence: str) -> None:
    """Show what a run did, with an Undo button if the run can be undone now."""
    if run.status == ForgetRun.Status.DONE and run.applied:
        undo_offer(request, sentence, run)
    else:
        messages.success(request, sentence)


def _undo(request: ConsoleRequest, run_id: uuid.UUID, reason: str) -> None:
    undone = run_undo(run_id, principal=request.principal, reason=reason, now=timezone.now())
    messages.success(request, undo_sentence(undone))


_APPLY = _RunConfirmation(
    "Apply this plan",
    "Apply",
    "Applies exactly what the dry run planned. This can be undone.",
    (ForgetRun.Status.PLANNED,),
    apply_preview,
    _apply,
    OptionalReasonForm,
)
_APPROVE = _RunConfirmation(
    "Approve this run",
    "Approve",
    "The run was held and starts when you approve it. It can be undone.",
    (ForgetRun.Status.HELD,),
    approve_preview,
    _approve,
)
_UNDO = _RunConfirmation(
    "Undo this run",
    "Undo",
    "Restores every memory that has not changed since the run. "
    "An undo cannot be undone. Under the same policy, these memories are due again in the next run.",
    (ForgetRun.Status.DONE, ForgetRun.Status.FAILED),
    undo_preview,
    _undo,
)


def _behind(run: ForgetRun) -> list[dict[str, Any]]:
    """Return the policy versions of a run, each with whether it is new since the previous run. Three queries."""
    return versions_behind(run.policy_versions, before=versions_before(run))


def _confirm(request: ConsoleRequest, run_id: uuid.UUID, step: _RunConfirmation) -> HttpResponse:
    form = step.form(request.POST if request.method == "POST" else None)
    attempt = Attempt(form)
    with attempt:
        if form.is_valid():
            step.take(request, run_id, form.cleaned_data["reason"])
            return go(request, "console:run", run_id=run_id)
    found = run_get(run_id, principal=request.principal)
    if found.status not in step.due:
        # Another request was faster; the page of the run shows the result.
        messages.warning(request, f"{step.title}: nothing to do, the run is already {found.status}.")
        return go(request, "console:run", run_id=run_id)
    context = {
        "run": run_as_json(found),
        "step": step,
        "preview": step.preview(found),
        "form": form,
        "refused": attempt.refused,
    }
    if step is _UNDO and found.event not in (BY_HAND, REVISE):
        # Restored topics are due again while the same policy is in force.
        context["culprits"] = [version for version in _behind(found) if version["is_present"] and version["is_new"]]
    return show(request, "run_confirm.html", context, status=attempt.status)


@page(get=OPERATOR, post=OPERATOR)
def run_applied(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Preview and apply a plan."""
    return _confirm(request, run_id, _APPLY)


@page(get=OPERATOR, post=OPERATOR)
def run_approved(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Preview and approve a held run."""
    return _confirm(request, run_id, _APPROVE)


@page(get=OPERATOR, post=OPERATOR)
def run_undone(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Preview and undo a run."""
    return _confirm(request, run_id, _UNDO)


def _runs(asked: ListRequest[RunFilter], cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """Return the runs, each with the query that started it, if any. At most four queries."""
    found, following = runs_list(asked.filter, cursor=cursor, limit=limit)
    recalls = recalls_behind(found)
    return [
        run_as_json(run) | {"recall": recalls.get(run.pk), "taken": run.applied + run.skipped} for run in found
    ], following


def _beside_list(asked: ListRequest[RunFilter], _rows: Sequence[Any]) -> dict[str, Any]:
    """Return the held runs, unless the list itself shows them. On the first page of the list, also return the next
    scheduled runs and the form for a new run. Seven queries."""
    held, waiting = ([], 0) if asked.filter.status == ForgetRun.Status.HELD else runs_held()
    around = {"held": [run_as_json(run) for run in held], "held_more": waiting - len(held)}
    if "cursor" in asked.request.GET:
        return around
    coming, more = schedules_soonest(now=asked.now, most=NEXT_SHOWN)
    start = StartForm(initial={"scope": "" if asked.filter.scope == ROOT else asked.filter.scope})
    return around | {"coming": coming, "coming_more": more} | _start(start)


def _start(form: StartForm) -> dict[str, Any]:
    return {"start": form, "soft_limit": policies_current().knobs(ROOT).topic_count_soft_limit}


def _file(asked: ListRequest[ActionFilter]) -> str:
    return f"run-{run_get(asked.arguments['run_id'], principal=asked.principal).pk}"


# All runs. Above the list, the page shows the held runs and the next scheduled runs. Eleven queries at most for a page,
# one for the count.
RUNS = ListPage(
    name="runs",
    address="runs/",
    form=RunsForm,
    fetch=_runs,
    count=lambda asked, most: runs_count(asked.filter, at_most=most),
    noun="run",
    columns=COLUMNS,
    more=_beside_list,
    sorts=SORTS,
    view=runs,
)
# The next scheduled run of each policy, ordered by scope. Five queries.
NEXT = ListPage(
    name="runs_next",
    address="runs/next/",
    form=NoFilter,
    fetch=lambda asked, cursor, limit: schedules_policies(now=asked.now, cursor=cursor, limit=limit),
)
# The actions of one run. Two queries for the count.
ACTIONS = ListPage(
    name="run",
    address="runs/<uuid:run_id>/",
    form=ActionsForm,
    fetch=lambda asked, cursor, limit: run_actions_worded(
        asked.arguments["run_id"], asked.filter, principal=asked.principal, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: run_actions_count(
        asked.arguments["run_id"], asked.filter, principal=asked.principal, at_most=most
    ),
    noun="action",
    columns=ACTION_COLUMNS,
    file=_file,
    view=run,
)

urlpatterns = [
    *RUNS.urlpatterns,
    *NEXT.urlpatterns,
    *ACTIONS.urlpatterns,
    path("runs/<uuid:run_id>/peek/", run_peek, name="run_peek"),
    path("runs/<uuid:run_id>/keep/<uuid:topic_id>/", run_kept, name="run_keep"),
    path("runs/<uuid:run_id>/progress/", run_progress, name="run_progress"),
    path("runs/<uuid:run_id>/regret/", run_regret, name="run_regret"),
    path("runs/<uuid:run_id>/apply/", run_applied, name="run_apply"),
    path("runs/<uuid:run_id>/approve/", run_approved, name="run_approve"),
    path("runs/<uuid:run_id>/refuse/", run_refused, name="run_refuse"),
    path("runs/<uuid:run_id>/undo/", run_undone, name="run_undo"),
]
