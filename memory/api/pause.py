"""/v1/pause. Operators pause and resume forgetting; every key can read the pauses that concern its scope."""

import datetime as dt
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Router, Schema
from pydantic import AwareDatetime

from memory.api.authentication import principal_of
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ_BY_ROLE, problems
from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH, scope_within
from memory.forgetting.pause import pause_lift, pause_start, pauses_active
from memory.models import ForgetPause

router = Router(tags=["runs"])


class PauseRequest(RequestModel):
    """Where forgetting stops, why, and until when."""

    scope: str | None = Field(default=None, max_length=MAX_SCOPE_LENGTH)
    reason: str = Field(max_length=500)
    until: AwareDatetime | None = Field(default=None, description="If left out, the pause lasts until it is lifted.")


class ResumeRequest(RequestModel):
    """Where forgetting resumes, and why."""

    scope: str | None = Field(default=None, max_length=MAX_SCOPE_LENGTH)
    reason: str = Field(default="", max_length=500)


class PauseOut(Schema):
    """A pause of forgetting in a scope and everything below it."""

    scope: str
    reason: str | None = Field(description="Null where the pause was made above the scope of the key.")
    actor: str | None
    created_at: dt.datetime
    until: dt.datetime | None
    lifted_at: dt.datetime | None


class PauseList(Schema):
    """The pauses in force that concern the scope of the key."""

    items: list[PauseOut]


def _pause(pause: ForgetPause, *, seen: bool = True) -> dict[str, Any]:
    return {
        "scope": pause.scope,
        "reason": pause.reason if seen else None,
        "actor": pause.actor if seen else None,
        "created_at": pause.created_at,
        "until": pause.until,
        "lifted_at": pause.lifted_at,
    }


@router.get("/pause", summary="List the pauses in force", response={200: PauseList, **READ_BY_ROLE})
def pause_list(request: HttpRequest) -> HttpResponse:
    """List where forgetting is paused: at, above and below the scope of the key."""
    principal = principal_of(request, "reader")
    found = pauses_active(timezone.now(), principal.scope)
    return json_reply({"items": [_pause(each, seen=scope_within(each.scope, principal.scope)) for each in found]})


@router.post("/pause", summary="Pause forgetting", response={200: PauseOut, **CHANGE})
def pause_make(request: HttpRequest, payload: PauseRequest) -> HttpResponse:
    """Stop automatic forgetting in a scope and below it: no run, event or rule forgets there until the pause is lifted.
    Operator keys.

    A run that is being applied there stops after its batch. Its changes stay and can be undone.
    """
    principal = principal_of(request, "operator")
    pause = pause_start(
        principal.scope_chosen(payload.scope),
        reason=payload.reason,
        until=payload.until,
        principal=principal,
        now=timezone.now(),
    )
    return json_reply(_pause(pause))


@router.post(
    "/pause/lift", summary="Lift a pause", response={200: PauseOut, **problems(400, 401, 403, 404, 413, 422, 429, 503)}
)
def pause_end(request: HttpRequest, payload: ResumeRequest) -> HttpResponse:
    """Lift the pause of a scope. Events during the pause have no later effect; a missed scheduled run is made up for.
    Operator keys."""
    principal = principal_of(request, "operator")
    scope = principal.scope_chosen(payload.scope)
    return json_reply(_pause(pause_lift(scope, reason=payload.reason, principal=principal, now=timezone.now())))
