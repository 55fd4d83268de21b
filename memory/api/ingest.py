"""POST /v1/ingest and /v1/ingest/batch."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Header, Query, Router

from memory import jobs
from memory.api.authentication import principal_of
from memory.api.parsing import batch_parse
from memory.api.problems import problem_status
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.api.schemas import BatchReply, IngestReply
from memory.domain.errors import MemoryProblem
from memory.ingest.batch import MAX_BATCH, batch_ingest
from memory.ingest.items import IngestItem
from memory.ingest.plan import Outcome
from memory.ingest.request import ingest_request

router = Router(tags=["ingest"])

IDEMPOTENCY_KEY: Any = Header(
    None, alias="Idempotency-Key", description="A request sent again with the same key has its effect once."
)
DEFER: Any = Query(False, description="Answer before the topic can be found by meaning; the worker embeds it.")


@router.post("/ingest", response={200: IngestReply, **problems(400, 401, 403, 404, 409, 413, 422, 429, 503)})
def ingest(
    request: HttpRequest, payload: IngestItem, defer: bool = DEFER, idempotency_key: str | None = IDEMPOTENCY_KEY
) -> HttpResponse:
    """Remember one observation: a new topic, more about a topic, or a new version of one field."""
    principal = principal_of(request, "agent")

    def render(outcomes: list[Outcome]) -> tuple[int, Any]:
        outcome = outcomes[0]
        if isinstance(outcome, MemoryProblem):
            raise outcome
        return 200, outcome.as_json()

    status, body = ingest_request(
        [payload],
        route="ingest",
        body=payload.model_dump(mode="json", exclude_unset=True),
        render=render,
        idempotency_key=idempotency_key,
        principal=principal,
        now=timezone.now(),
        defer=defer,
        on_deferred=jobs.upkeep_request,
    )
    jobs.upkeep_nudge()
    return json_reply(body, status=status)


@router.post(
    "/ingest/batch",
    response={200: BatchReply, **problems(400, 401, 403, 413, 422, 429, 503)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "array",
                        "maxItems": MAX_BATCH,
                        "items": {"type": "object", "description": "An item as for POST /v1/ingest."},
                    }
                },
                "application/x-ndjson": {
                    "schema": {"type": "string", "description": "One item as for POST /v1/ingest on each line."}
                },
            },
        }
    },
)
def ingest_batch(
    request: HttpRequest, defer: bool = DEFER, idempotency_key: str | None = IDEMPOTENCY_KEY
) -> HttpResponse:
    """Remember up to 1,000 observations at once. Each is accepted or refused by itself; later ones may name earlier."""
    principal = principal_of(request, "agent")
    status, body = batch_ingest(
        batch_parse(request),
        status_of=problem_status,
        idempotency_key=idempotency_key,
        principal=principal,
        now=timezone.now(),
        defer=defer,
        on_deferred=jobs.upkeep_request,
    )
    jobs.upkeep_nudge()
    return json_reply(body, status=status)
