"""GET /v1/studies and /v1/studies/{id}, POST .../cancel and .../resume: jobs that turn long messages into topics."""

import datetime as dt
import uuid
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from memory.agents.study.control import study_resume
from memory.agents.study.progress import study_as_json
from memory.api.authentication import principal_of
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.jobs import tasks
from memory.jobs.resumable import job_cancel, job_get, jobs_list
from memory.models import StudyJob

router = Router(tags=["studies"])


class StudyOut(Schema):
    """The progress of the study of a long message, without the message itself."""

    study_id: str
    conversation_id: str
    status: Literal["working", "done", "cancelled", "failed"]
    phase: Literal["building", "waiting", "linking"] = Field(
        description="building creates topics from the text, linking connects or merges them with existing topics."
    )
    scope: str
    kind: str = Field(description="The kind of its topics.")
    model: str = Field(description="The requested model; empty for the default.")
    actor: str
    segments: int = Field(description="Number of parts of the text.")
    done: int = Field(description="Parts whose topics are stored.")
    to_link: int = Field(description="Topics to link; 0 until linking starts.")
    linked: int
    progress: float = Field(description="0 to 1, over both phases.")
    topics: int = Field(description="Topics made so far.")
    links: int = Field(description="Links made so far.")
    merged: int = Field(description="Topics that were merged into earlier topics.")
    source_topic_id: str | None = Field(description="The topic that stores the text; no query returns it.")
    warning: str | None = Field(description="Warnings about the result.")
    failure: str | None = Field(description="Why the study has failed or is waiting.")
    waits_until: dt.datetime | None = Field(description="When it continues, if it is waiting.")
    created_at: dt.datetime
    moved_at: dt.datetime
    finished_at: dt.datetime | None


class StudyPage(Schema):
    """Studies, newest first, and the cursor of the next page."""

    items: list[StudyOut]
    next: str | None


@router.get("/studies", summary="List studies", response={200: StudyPage, **problems(401, 422, 429, 503)})
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
    return json_reply({"items": [study_as_json(job) for job in page], "next": next_cursor})


_JOB = problems(401, 403, 404, 422, 429, 503)
_CHANGE = problems(401, 403, 404, 409, 422, 429, 503)


@router.get("/studies/{topicid:study_id}", summary="Read a study", response={200: StudyOut, **_JOB})
def study_read(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Return the progress of a study, and until when it waits."""
    principal = principal_of(request, "reader")
    return json_reply(study_as_json(job_get(StudyJob, study_id, principal=principal)))


@router.post("/studies/{topicid:study_id}/cancel", summary="Stop a study", response={200: StudyOut, **_CHANGE})
def study_stop(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Stop a study before its next request to the model. Its topics stay, and it can be resumed."""
    principal = principal_of(request, "agent")
    return json_reply(study_as_json(job_cancel(StudyJob, study_id, principal=principal, now=timezone.now())))


@router.post("/studies/{topicid:study_id}/resume", summary="Resume a study", response={200: StudyOut, **_CHANGE})
def study_again(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Continue a study that was cancelled or has failed; no part is studied twice. 409 if the writes of its
    conversation were undone, or if the caller who began it may no longer write."""
    principal = principal_of(request, "agent")
    job = study_resume(study_id, principal=principal, now=timezone.now(), enqueue=tasks.study_enqueue)
    return json_reply(study_as_json(job))
