"""GET /v1/studies, GET /v1/studies/{id}, POST .../cancel and .../resume: long messages that become topics."""

import datetime as dt
import uuid
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from memory.agents.study.control import study_cancel, study_get, study_resume
from memory.agents.study.progress import studies_list, study_as_json
from memory.api.authentication import principal_of
from memory.api.paging import Cursor, Limit, limit_checked
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.jobs import tasks

router = Router(tags=["studies"])


class StudyOut(Schema):
    """How far the study of a long message has come. No word of the message is in it."""

    study_id: str
    conversation_id: str
    status: Literal["working", "done", "cancelled", "failed"]
    phase: Literal["building", "waiting", "linking"] = Field(
        description="building makes topics of the text by themselves, linking puts them in their place among the rest."
    )
    scope: str
    kind: str = Field(description="The kind of its topics, by which they are listed.")
    model: str = Field(description="The model that was asked for; empty for the usual one.")
    actor: str
    segments: int = Field(description="Parts that the text is cut into.")
    done: int = Field(description="Parts whose topics are stored.")
    to_link: int = Field(description="Topics to link; 0 until linking starts.")
    linked: int
    progress: float = Field(description="0 to 1, over both phases.")
    topics: int = Field(description="Topics made so far.")
    links: int = Field(description="Links that linking has made.")
    merged: int = Field(description="Of the topics, those that were merged into topics known before.")
    source_topic_id: str | None = Field(description="The topic that holds the text, outside every query.")
    warning: str | None = Field(description="What went otherwise than it should, in sentences.")
    failure: str | None = Field(description="Why it has failed, or why it waits.")
    waits_until: dt.datetime | None = Field(description="When it goes on, if it waits.")
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
    conversation_id: Annotated[uuid.UUID | None, Query(description="Only those of one conversation.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List the studies that the caller began, newest first; those of everybody in its scope with an operator's key."""
    principal = principal_of(request, "reader")
    page, next_cursor = studies_list(
        principal=principal, cursor=cursor, limit=limit_checked(limit), conversation_id=conversation_id
    )
    return json_reply({"items": [study_as_json(job) for job in page], "next": next_cursor})


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
