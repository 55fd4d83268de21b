"""GET /v1/studies and /v1/studies/{id}, POST .../cancel and .../resume: jobs that turn long messages into topics."""

import uuid
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from memory.agents.study.control import study_resume
from memory.agents.study.progress import StudyOut, StudyPage, study_as_json
from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.replies import json_reply
from memory.api.responses import READ_BY_ROLE, problems
from memory.jobs import tasks
from memory.models import StudyJob
from memory.resumable import job_cancel, job_get, jobs_list

router = Router(tags=["studies"])


@router.get("/studies", summary="List studies", response={200: StudyPage, **problems(401, 422, 429, 503)})
@consistency("eventual")
def studies(
    request: HttpRequest,
    conversation_id: Annotated[uuid.UUID | None, Query(description="Only studies of this conversation.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List the caller's studies, newest first. Operator keys list all studies in their scope."""
    principal = principal_of(request, "reader")
    only = {} if conversation_id is None else {"conversation_id": conversation_id}
    page, next_cursor = jobs_list(StudyJob, principal=principal, cursor=cursor, limit=limit_checked(limit), **only)
    return json_reply(StudyPage(items=[study_as_json(job) for job in page], next=next_cursor))


_CHANGE = problems(401, 403, 404, 409, 422, 429, 503)


@router.get("/studies/{topicid:study_id}", summary="Read a study", response={200: StudyOut, **READ_BY_ROLE})
def study_read(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Return the progress of a study, and the time until which it waits."""
    principal = principal_of(request, "reader")
    return json_reply(study_as_json(job_get(StudyJob, study_id, principal=principal)))


@router.post("/studies/{topicid:study_id}/cancel", summary="Stop a study", response={200: StudyOut, **_CHANGE})
def study_stop(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Stop a study before its next request to the model. Its topics stay, and it can be resumed. Agent keys."""
    principal = principal_of(request, "agent")
    return json_reply(study_as_json(job_cancel(StudyJob, study_id, principal=principal, now=timezone.now())))


@router.post("/studies/{topicid:study_id}/resume", summary="Resume a study", response={200: StudyOut, **_CHANGE})
def study_again(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Continue a study that was cancelled or has failed, without repeating finished parts. 409 if the writes of its
    conversation were undone, or if the caller who began the study may no longer write. Agent keys."""
    principal = principal_of(request, "agent")
    job = study_resume(study_id, principal=principal, now=timezone.now(), enqueue=tasks.study_enqueue)
    return json_reply(study_as_json(job))
