"""GET /v1/studies, GET /v1/studies/{id}, POST .../cancel and .../resume: long messages that become topics."""

import uuid
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from memory.agents.study.control import study_cancel, study_get, study_resume
from memory.agents.study.progress import StudyOut, StudyPage, studies_list, study_as_json
from memory.api.authentication import principal_of
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.jobs import tasks

router = Router(tags=["studies"])


@router.get("/studies", summary="List studies", response={200: StudyPage, **problems(401, 422, 429, 503)})
def studies(
    request: HttpRequest,
    conversation_id: Annotated[uuid.UUID | None, Query(description="Only those of one conversation.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List the studies that the caller began, newest first; those of everybody in its scope with an operator's key."""
    principal = principal_of(request, "reader")
    page, next_cursor = studies_list(
        principal=principal, cursor=cursor, limit=limit_checked(limit), conversation_id=conversation_id
    )
    return json_reply(StudyPage(items=[study_as_json(job) for job in page], next=next_cursor))


_JOB = problems(401, 403, 404, 422, 429, 503)
_CHANGE = problems(401, 403, 404, 409, 422, 429, 503)


@router.get("/studies/{topicid:study_id}", summary="Read a study", response={200: StudyOut, **_JOB})
def study_read(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Return the progress of a study, and whether and until when it waits."""
    principal = principal_of(request, "reader")
    return json_reply(study_as_json(study_get(study_id, principal=principal)))


@router.post("/studies/{topicid:study_id}/cancel", summary="Stop a study", response={200: StudyOut, **_CHANGE})
def study_stop(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Stop a study before it asks the model again; what it has stored stays, and it can be resumed."""
    principal = principal_of(request, "agent")
    return json_reply(study_as_json(study_cancel(study_id, principal=principal, now=timezone.now())))


@router.post("/studies/{topicid:study_id}/resume", summary="Resume a study", response={200: StudyOut, **_CHANGE})
def study_again(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Let a study that was cancelled or has failed go on where it was; no part is studied twice. Not if what its
    conversation wrote was taken back, and not if whoever began it may write no longer."""
    principal = principal_of(request, "agent")
    job = study_resume(study_id, principal=principal, now=timezone.now(), enqueue=tasks.study_enqueue)
    return json_reply(study_as_json(job))
