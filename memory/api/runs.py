"""Runs, events and previews: /v1/runs, /v1/events, /v1/policies/preview. Reading runs needs no operator key."""

import uuid
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ_BY_ROLE
from memory.api.run_schemas import (
    ActionPage,
    AffectedOut,
    EventReply,
    EventRequest,
    PreviewReply,
    PreviewRequest,
    RunEventName,
    RunOut,
    RunPage,
    RunRefusal,
    RunRequest,
    StateName,
    StatusName,
    UndoReply,
)
from memory.api.schemas import Reason, reason_of
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.forgetting.refusals import run_refuse
from memory.forgetting.run_list import ActionFilter, RunFilter, run_actions, runs_list
from memory.forgetting.runs import run_begin, run_get, run_results, run_start, run_undo
from memory.forgetting.triggers import event_raise
from memory.jobs import tasks
from memory.models import ForgetRun
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.simulate.whatif import STEPS, Trial, affected_page, whatif

router = Router(tags=["runs"])


def _run(run: ForgetRun, *, results: bool = True) -> RunOut:
    taken = run.applied + run.skipped
    body: RunOut = {
        "run_id": str(run.id),
        "scope": run.scope,
        "event": run.event,
        "status": run.status,
        "dry_run": run.dry_run,
        "policy_version": run.policy_version,
        "policy_versions": run.policy_versions,
        "counts": run.counts,
        "held_because": run.held_because or None,
        "gate": run.gate or None,
        "failure": run.failure or None,
        "planned": run.planned,
        "applied": run.applied,
        "skipped": run.skipped,
        "left_over": run.left_over,
        "progress": 1.0 if not run.planned else taken / run.planned,
        "actor": run.actor,
        "approved_by": run.approved_by or None,
        "undone_by": run.undone_by or None,
        "judged_at": run.judged_at,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "undone_at": run.undone_at,
    }
    if results:
        body["results"] = run_results(run)
    return body


@router.get("/runs", summary="List runs", response={200: RunPage, **READ_BY_ROLE})
@consistency("eventual")
def run_list(
    request: HttpRequest,
    scope: Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)] = None,
    status: StatusName | None = None,
    event: RunEventName | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List the runs of a scope and of everything below it, newest first.

    Manual changes (`by_hand`) and merges of duplicates (`revise`) are listed only with that `event`.
    """
    principal = principal_of(request, "reader")
    wanted = RunFilter(scope=principal.scope_chosen(scope), status=status, event=event)
    runs, following = runs_list(wanted, cursor=cursor, limit=limit_checked(limit))
    return json_reply(RunPage(items=[_run(run, results=False) for run in runs], next=following))


@router.post("/runs", summary="Plan or start a run", response={200: RunOut, **CHANGE})
def run_make(request: HttpRequest, payload: RunRequest) -> HttpResponse:
    """Plan a run; with ``dry_run: false``, also apply it. Operator keys.

    A long run continues in the background; read the run for its progress. A run that would archive too much is held.
    """
    principal = principal_of(request, "operator")
    run = run_start(
        principal.scope_chosen(payload.scope),
        event=payload.event,
        dry_run=payload.dry_run,
        principal=principal,
        now=timezone.now(),
        judged_at=payload.now,
        enqueue=tasks.run_enqueue,
    )
    return json_reply(_run(run))


@router.get("/runs/{topicid:run_id}", summary="Read a run", response={200: RunOut, **READ_BY_ROLE})
def run_read(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Return one run with its progress."""
    return json_reply(_run(run_get(run_id, principal=principal_of(request, "reader"))))


@router.get(
    "/runs/{topicid:run_id}/actions", summary="Read the actions of a run", response={200: ActionPage, **READ_BY_ROLE}
)
@consistency("eventual")
def run_action_list(
    request: HttpRequest, run_id: uuid.UUID, state: StateName | None = None, cursor: Cursor = None, limit: Limit = 50
) -> HttpResponse:
    """Return the action of a run on each topic, with the reason."""
    principal = principal_of(request, "reader")
    wanted = ActionFilter(state=state)
    items, following = run_actions(run_id, wanted, principal=principal, cursor=cursor, limit=limit_checked(limit))
    return json_reply(ActionPage(items=items, next=following))


@router.post("/runs/{topicid:run_id}/apply", summary="Apply a plan", response={200: RunOut, **CHANGE})
def run_plan_apply(request: HttpRequest, run_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Apply exactly the plan of a dry run. 409 if the policy or a planned topic has changed since. Operator keys."""
    return _run_begin(request, run_id, payload, ForgetRun.Status.PLANNED)


@router.post("/runs/{topicid:run_id}/approve", summary="Approve a held run", response={200: RunOut, **CHANGE})
def run_held_approve(request: HttpRequest, run_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Approve and apply a held run. Topics that have changed since the plan are skipped and listed. Operator keys."""
    return _run_begin(request, run_id, payload, ForgetRun.Status.HELD)


@router.post("/runs/{topicid:run_id}/refuse", summary="Refuse a held run", response={200: RunOut, **CHANGE})
def run_held_refuse(request: HttpRequest, run_id: uuid.UUID, payload: RunRefusal | None = None) -> HttpResponse:
    """Refuse a held run, which changes no memory. ``roll_back`` also rolls back the policies that are new since the
    previous run. Operator keys."""
    run = run_refuse(
        run_id,
        principal=principal_of(request, "operator"),
        reason=reason_of(payload),
        roll_back=payload is not None and payload.roll_back,
        now=timezone.now(),
    )
    return json_reply(_run(run))


def _run_begin(
    request: HttpRequest, run_id: uuid.UUID, payload: Reason | None, status: ForgetRun.Status
) -> HttpResponse:
    run = run_begin(
        run_id,
        status,
        principal=principal_of(request, "operator"),
        reason=reason_of(payload),
        now=timezone.now(),
        enqueue=tasks.run_enqueue,
    )
    return json_reply(_run(run))


@router.post("/runs/{topicid:run_id}/undo", summary="Undo a run", response={200: UndoReply, **CHANGE})
def run_done_undo(request: HttpRequest, run_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Restore, byte for byte, all topics that have not changed since the run. Topics that have changed are listed with
    the reason. Operator keys."""
    undone = run_undo(
        run_id, principal=principal_of(request, "operator"), reason=reason_of(payload), now=timezone.now()
    )
    reply: UndoReply = {
        "run_id": str(run_id),
        "restored": undone.restored,
        "conflicts": [{"topic_id": str(topic_id), "why": why} for topic_id, why in undone.conflicts],
        "conflict_count": undone.conflict_count,
    }
    return json_reply(reply)


@router.post("/events", summary="Raise memory pressure", response={202: EventReply, **CHANGE})
def event_note(request: HttpRequest, payload: EventRequest) -> HttpResponse:
    """Let the worker forget all due topics of a scope, even below the soft limit. Operator keys."""
    scope = principal_of(request, "operator").scope_chosen(payload.scope)
    event_raise(scope, event=payload.event, now=timezone.now())
    tasks.upkeep_nudge()
    return json_reply(EventReply(event=payload.event, scope=scope, accepted=True), status=202)


@router.post("/policies/preview", summary="Preview a policy", response={200: PreviewReply, **CHANGE})
@consistency("eventual")
def policy_preview(request: HttpRequest, payload: PreviewRequest) -> HttpResponse:
    """Count what a draft of a policy would forget, now and later, and list the topics. Read only. Operator keys."""
    scope = principal_of(request, "operator").scope_chosen(payload.scope)
    now, limit = timezone.now(), limit_checked(payload.limit)
    present = draft = policies_current()
    if payload.preset is not None or payload.values is not None or payload.rules is not None:
        draft = policies_drafted(
            present, scope, preset=payload.preset, values=payload.values or {}, rules=payload.rules
        )
    trial = Trial(scope, present, draft, now, event=payload.event)
    found = whatif(trial, at=payload.at, scale=payload.scale)
    affected, following = affected_page(trial, only_new=payload.only_new, cursor=payload.cursor, limit=limit)
    preview: PreviewReply = {
        "scope": scope,
        "gate": trial.gate,
        "active": found.active,
        "held_because": found.held_because or None,
        "rungs": {
            name: {"now": step.now, "draft": step.draft, "gained": step.gained, "lost": step.lost}
            for name, step in found.today.steps.items()
            if name in STEPS
        },
        "projections": [
            {
                "at": each.at,
                "rungs": {name: each.steps[name].draft for name in STEPS},
                "present": {name: each.steps[name].now for name in STEPS},
            }
            for each in found.projections
        ],
        "histogram": {"scale": payload.scale, "edges": found.histogram.edges, "rungs": found.histogram.rungs},
        "affected": [_affected(topic) for topic in affected],
        "next": following,
    }
    return json_reply(preview)


def _affected(topic: dict[str, Any]) -> AffectedOut:
    return {
        "topic_id": str(topic["topic_id"]),
        "title": topic["title"],
        "topic_kind": topic["kind"],
        "scope": topic["scope"],
        "action": topic["action"],
        "from_rung": topic["from_rung"],
        "to_rung": topic["to_rung"],
        "score": topic["score"],
        "why": topic["why"],
        "new": topic["new"],
    }
