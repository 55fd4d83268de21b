"""POST /v1/extract: turn a text into facts. GET /v1/extract/{job_id}: progress of a background extraction."""

import uuid
from typing import Annotated

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router
from pydantic import Field, StringConstraints

from memory.api.authentication import principal_of
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ_BY_ROLE, problems
from memory.api.run_schemas import ScopeText
from memory.core.errors import RequestRefused
from memory.core.requests import RequestModel
from memory.extraction.lists import extraction_as_json
from memory.extraction.replies import ExtractAccepted, ExtractionOut, ExtractReply
from memory.extraction.request import extract
from memory.extraction.work import extraction_start
from memory.ingest.items import ShortText
from memory.jobs import tasks
from memory.models import ExtractionJob
from memory.resumable import job_cancel, job_get

router = Router(tags=["extract"])

# An upper bound for every configuration. The code checks the configured limit, so that the error message can name it.
Content = Annotated[str, StringConstraints(max_length=2_000_000)]


class ExtractRequest(RequestModel):
    """A text to extract facts from. With ``store`` the facts become topics that refer to the text as their source."""

    content: Content = Field(description="Prose, a list, a transcript; MEMSTATE_EXTRACT_MAX_CHARS characters at most.")
    scope: ScopeText | None = None
    store: bool = False
    kind: ShortText | None = Field(default=None, description="Kind of the stored topics; default: fact.")


Background = Annotated[bool, Query(description="Answer at once with 202 and the id of a job. Requires `store: true`.")]


@router.post(
    "/extract", summary="Extract facts from a text", response={200: ExtractReply, 202: ExtractAccepted, **CHANGE}
)
def extract_facts(request: HttpRequest, payload: ExtractRequest, background: Background = False) -> HttpResponse:
    """Extract atomic facts from a text, and with `store: true` store the new ones. Reader keys; agent keys to store.

    If a language model is configured, it extracts the facts, and they are checked against the text. Without a model, or
    if the model fails, rules split the text into facts; `method` and `note` state which was used. Instructions in the
    text are not followed.
    """
    principal = principal_of(request, "agent" if payload.store else "reader")
    now = timezone.now()
    if background:
        if not payload.store:
            raise RequestRefused("`background` requires `store: true`.", member="background")
        job = extraction_start(
            payload.content,
            scope=payload.scope,
            kind=payload.kind,
            principal=principal,
            now=now,
            enqueue=tasks.extraction_enqueue,
        )
        accepted: ExtractAccepted = {
            "job_id": str(job.id),
            "status": job.status,
            "segments": job.segments,
            "source_topic_id": str(job.source_id) if job.source_id else None,
        }
        return json_reply(accepted, status=202)
    done = extract(
        payload.content, scope=payload.scope, kind=payload.kind, store=payload.store, principal=principal, now=now
    )
    if done["stored"]:
        tasks.upkeep_nudge()
    if done["warning"] and payload.store and len(payload.content) > settings.MEMSTATE_EXTRACT_INLINE_CHARS:
        done["warning"] += " For a text of this length, use `background=1`: it has no time limit."
    return json_reply(done)


@router.get("/extract/{topicid:job_id}", summary="Read an extraction", response={200: ExtractionOut, **READ_BY_ROLE})
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
    """Stop an extraction in the background; the facts that it has stored stay. Agent keys."""
    principal = principal_of(request, "agent")
    job = job_cancel(ExtractionJob, job_id, principal=principal, now=timezone.now())
    return json_reply(extraction_as_json(job))
