"""POST /v1/extract: turn a text into facts. GET /v1/extract/{job_id}: progress of a background extraction."""

import datetime as dt
import uuid
from dataclasses import asdict
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import BaseModel, Field, StringConstraints

from memory.api.authentication import principal_of
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.api.run_schemas import ScopeText
from memory.core.errors import RequestRefused
from memory.core.problem_codes import ProblemCode
from memory.extraction.lists import extraction_as_json
from memory.extraction.request import extract
from memory.extraction.work import extraction_start
from memory.ingest.items import ShortText
from memory.jobs import tasks
from memory.jobs.resumable import job_cancel, job_get
from memory.models import ExtractionJob

router = Router(tags=["extract"])

# The configured limit is checked in the code, so that its error names the limit; this is an upper bound.
Content = Annotated[str, StringConstraints(max_length=2_000_000)]
Method = Literal["llm", "extractive"]


class ExtractRequest(BaseModel):
    """A text to extract facts from. With ``store`` the facts become topics that refer to the text as their source."""

    content: Content = Field(description="Prose, a list, a transcript; MEMSTATE_EXTRACT_MAX_CHARS characters at most.")
    scope: ScopeText | None = None
    store: bool = False
    kind: ShortText | None = Field(default=None, description="Kind of the stored topics; default: fact.")


class KnownFact(Schema):
    """A fact that was already known, and the topic that contains it."""

    text: str
    topic_id: str


class ExtractReply(Schema):
    """The facts of a text."""

    extracted: list[str] = Field(description="Each a self-contained sentence of at most 500 characters.")
    stored: list[str] = Field(description="Ids of the new topics, in the order of their facts.")
    skipped_duplicates: list[KnownFact]
    method: Method = Field(description="llm only if a language model extracted everything.")
    methods: list[Method] = Field(description="One for each part of the text.")
    note: str = Field(description="How the facts were found, and the limits of that method.")
    warning: str | None = None
    source_topic_id: str | None = Field(
        default=None, description="The topic that stores the text; no query returns it."
    )
    dropped: dict[str, int] = Field(
        description="What was omitted: sentences by type, facts by what is wrong with them."
    )


class ExtractAccepted(Schema):
    """The text is kept, and the worker extracts its facts."""

    job_id: str
    status: str
    segments: int
    source_topic_id: str | None


class ExtractionOut(ExtractReply):
    """An extraction in the background, and what it has come to so far."""

    job_id: str
    status: Literal["working", "done", "cancelled", "failed"]
    scope: str
    kind: str
    segments: int
    done: int
    progress: float = Field(description="Share of the segments that are stored, 0 to 1.")
    actor: str
    failure: str | None
    created_at: dt.datetime
    finished_at: dt.datetime | None


Background = Annotated[bool, Query(description="Answer 202 with the id of a job at once. Needs store.")]


@router.post(
    "/extract",
    summary="Extract facts from a text",
    response={200: ExtractReply, 202: ExtractAccepted, **problems(400, 401, 403, 404, 409, 413, 422, 429, 503)},
)
def extract_facts(request: HttpRequest, payload: ExtractRequest, background: Background = False) -> HttpResponse:
    """Extract atomic facts from a text, and with `store: true` store those that are new.

    A configured language model extracts the facts, which are checked against the text. Without a model, or if it fails,
    rules divide the sentences of the text; `method` and `note` state which was used. Instructions in the text are not
    followed. Reader keys may extract; agent keys may also store.
    """
    principal = principal_of(request, "agent" if payload.store else "reader")
    now = timezone.now()
    if background:
        if not payload.store:
            raise RequestRefused("`background` requires `store: true`.", code=ProblemCode.CONTRADICTORY_REQUEST)
        job = extraction_start(
            payload.content,
            scope=payload.scope,
            kind=payload.kind,
            principal=principal,
            now=now,
            enqueue=tasks.extraction_enqueue,
        )
        return json_reply(
            {
                "job_id": str(job.id),
                "status": job.status,
                "segments": job.segments,
                "source_topic_id": str(job.source_id) if job.source_id else None,
            },
            status=202,
        )
    done = extract(
        payload.content, scope=payload.scope, kind=payload.kind, store=payload.store, principal=principal, now=now
    )
    if done.stored:
        tasks.upkeep_nudge()
    return json_reply(_reply(asdict(done), payload))


def _reply(body: dict[str, Any], payload: ExtractRequest) -> dict[str, Any]:
    body["skipped_duplicates"] = [
        {"text": each["text"], "topic_id": str(each["topic_id"])} for each in body["skipped_duplicates"]
    ]
    long = len(payload.content) > settings.MEMSTATE_EXTRACT_INLINE_CHARS
    body["warning"] = body["warning"] or None
    if body["warning"] and long and payload.store:
        body["warning"] += " For a text of this length, background=1 gives it all the time it needs."
    return body


_JOB = problems(401, 403, 404, 422, 429, 503)


@router.get("/extract/{topicid:job_id}", summary="Read an extraction", response={200: ExtractionOut, **_JOB})
def extraction_read(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Return the progress of a background extraction and the facts found so far."""
    principal = principal_of(request, "reader")
    job = job_get(ExtractionJob, job_id, principal=principal)
    return json_reply(extraction_as_json(job))


@router.post(
    "/extract/{topicid:job_id}/cancel",
    summary="Stop an extraction",
    response={200: ExtractionOut, **problems(401, 403, 404, 409, 422, 429, 503)},
)
def extraction_stop(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Stop an extraction in the background; what it has stored stays."""
    principal = principal_of(request, "agent")
    job = job_cancel(ExtractionJob, job_id, principal=principal, now=timezone.now())
    return json_reply(extraction_as_json(job))
