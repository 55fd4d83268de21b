"""/v1/duplicates: possible duplicates and the decisions about them. Readers may list them; operators decide."""

import uuid
from collections.abc import Sequence
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from memory.access.principal import Principal
from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ_BY_ROLE
from memory.api.schemas import Reason, reason_of
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.duplicates.pair_actions import pair_keep_both, pair_merge, pair_supersede, pair_undo
from memory.duplicates.pairs import PairFilter, pair_detail, pair_summary, pairs_list
from memory.duplicates.replies import PairConflict, PairDecided, PairDetail, PairPage
from memory.forgetting.runs import run_results
from memory.models import ForgetRun

router = Router(tags=["duplicates"])

PairState = Literal["open", "merged", "kept", "superseded", "lapsed"]
PairVerdict = Literal["duplicate", "supersedes"]


@router.get("/duplicates", summary="List possible duplicates", response={200: PairPage, **READ_BY_ROLE})
@consistency("eventual")
def duplicate_list(
    request: HttpRequest,
    scope: Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)] = None,
    state: PairState | None = "open",
    verdict: PairVerdict | None = None,
    held: bool | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List the pairs of a scope and below, newest first. Without `state`, only open pairs are listed."""
    principal = principal_of(request, "reader")
    wanted = PairFilter(scope=principal.scope_chosen(scope), state=state, verdict=verdict, held=held)
    pairs, following = pairs_list(wanted, principal=principal, cursor=cursor, limit=limit_checked(limit))
    return json_reply(PairPage(items=pairs, next=following))


@router.get("/duplicates/{topicid:pair_id}", summary="Show one pair", response={200: PairDetail, **READ_BY_ROLE})
def duplicate_show(request: HttpRequest, pair_id: uuid.UUID) -> HttpResponse:
    """Return the differences that matter between two topics, and the effect of a merge."""
    detail = pair_detail(pair_id, principal=principal_of(request, "reader"), now=timezone.now())
    return json_reply(
        {name: value for name, value in detail.items() if name not in ("title", "summary", "fields", "sides")}
    )


@router.post("/duplicates/{topicid:pair_id}/merge", summary="Merge a pair", response={200: PairDecided, **CHANGE})
def duplicate_merge(request: HttpRequest, pair_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Merge two topics. The topic that was written to last survives and takes over the fields and history of the other
    topic. Operator keys."""
    principal = principal_of(request, "operator")
    run = pair_merge(pair_id, principal=principal, reason=reason_of(payload), now=timezone.now())
    return _decision_reply(pair_id, principal, run)


@router.post("/duplicates/{topicid:pair_id}/keep", summary="Keep both of a pair", response={200: PairDecided, **CHANGE})
def duplicate_keep(request: HttpRequest, pair_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Record that both topics stay. The pair is not offered again unless one of the texts changes. Operator keys."""
    principal = principal_of(request, "operator")
    pair_keep_both(pair_id, principal=principal, reason=reason_of(payload), now=timezone.now())
    return _decision_reply(pair_id, principal, None)


@router.post(
    "/duplicates/{topicid:pair_id}/supersede",
    summary="Supersede the older topic",
    response={200: PairDecided, **CHANGE},
)
def duplicate_supersede(request: HttpRequest, pair_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Release the older topic, and link the newer topic to it as `supersedes`. Operator keys."""
    principal = principal_of(request, "operator")
    run = pair_supersede(pair_id, principal=principal, reason=reason_of(payload), now=timezone.now())
    return _decision_reply(pair_id, principal, run)


@router.post("/duplicates/{topicid:pair_id}/undo", summary="Undo a decision", response={200: PairDecided, **CHANGE})
def duplicate_undo(request: HttpRequest, pair_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Restore both topics. If one has changed since, nothing is changed and `conflicts` lists why. Operator keys."""
    principal = principal_of(request, "operator")
    left = pair_undo(pair_id, principal=principal, reason=reason_of(payload), now=timezone.now())
    conflicts: list[PairConflict] = [{"topic_id": topic_id, "why": why} for topic_id, why in left]
    return _decision_reply(pair_id, principal, None, restored=not left, conflicts=conflicts)


def _decision_reply(
    pair_id: uuid.UUID,
    principal: Principal,
    run: ForgetRun | None,
    *,
    restored: bool | None = None,
    conflicts: Sequence[PairConflict] = (),
) -> HttpResponse:
    body: PairDecided = {
        "pair": pair_summary(pair_id, principal=principal),
        "run_id": run.pk if run else None,
        "results": run_results(run) if run else [],
        "restored": restored,
        "conflicts": list(conflicts),
    }
    return json_reply(body)
