"""/v1/topics/{id}/why, /v1/policies/backtest and /v1/regret."""

import datetime as dt
import uuid
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router
from pydantic import AwareDatetime, Field, StringConstraints

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import limit_checked
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import READ, problems
from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.explain.regret import regret_report
from memory.explain.replies import RegretReply, WhyReply
from memory.explain.why import topic_why
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.simulate.backtest import backtest
from memory.simulate.replies import BacktestReply

router = Router(tags=["evidence"])

Scope = Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)]
Moment = Annotated[AwareDatetime | None, Query(description="ISO 8601 with an offset, such as 2026-03-01T00:00:00Z.")]
Limit = Annotated[int, Query(ge=1, description="Topics to list.")]


class BacktestRequest(RequestModel):
    """A draft to replay. Without preset, values and rules, the policy in force is replayed."""

    scope: Annotated[str, StringConstraints(max_length=MAX_SCOPE_LENGTH)] | None = None
    preset: str | None = Field(default=None, max_length=50)
    values: dict[str, Any] | None = None
    rules: list[Any] | None = Field(default=None, description="Default: the rules of the scope.")
    start: AwareDatetime
    end: AwareDatetime
    step_days: float = Field(default=1.0, gt=0, le=366, allow_inf_nan=False, description="Days between runs.")
    seed: int = Field(default=1, ge=0, le=2**31 - 1, description="Seed of the random draws.")


@router.get("/topics/{topicid:topic_id}/why", summary="Explain the state of a topic", response={200: WhyReply, **READ})
def topic_why_card(request: HttpRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Return the state of a topic, its next step, its history with reasons, and what would have prevented the
    archiving."""
    return json_reply(topic_why(topic_id, principal=principal_of(request, "reader"), now=timezone.now()))


@router.post(
    "/policies/backtest",
    summary="Replay a draft over the past",
    response={200: BacktestReply, **problems(400, 401, 403, 404, 413, 422, 429, 503)},
)
@consistency("eventual")
def policy_backtest(request: HttpRequest, payload: BacktestRequest) -> HttpResponse:
    """Return what a draft would have archived between two dates, and how much of that was used later. Read only.
    Operator keys."""
    scope = principal_of(request, "operator").scope_chosen(payload.scope)
    policies = policies_current()
    if payload.preset is not None or payload.values is not None or payload.rules is not None:
        policies = policies_drafted(
            policies, scope, preset=payload.preset, values=payload.values or {}, rules=payload.rules
        )
    replayed = backtest(
        policies,
        scope,
        start=payload.start,
        end=payload.end,
        now=timezone.now(),
        step=dt.timedelta(days=payload.step_days),
        seed=payload.seed,
    )
    return json_reply(replayed)


@router.get("/regret", summary="Report regretted archivings", response={200: RegretReply, **READ})
@consistency("eventual")
def regret(
    request: HttpRequest, scope: Scope = None, since: Moment = None, until: Moment = None, limit: Limit = 50
) -> HttpResponse:
    """Return archived topics that were looked up, restored or missed later, per policy version and per rung."""
    principal = principal_of(request, "reader")
    report = regret_report(
        scope=principal.scope_chosen(scope),
        principal=principal,
        now=timezone.now(),
        since=since,
        until=until,
        limit=limit_checked(limit),
    )
    return json_reply(report)
