"""POST /v1/ingest and /v1/ingest/batch."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from memory.api.authentication import principal_of
from memory.api.parsing import IdempotencyKey, batch_parse
from memory.api.problems import problem_status
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, problems
from memory.core.errors import MemoryProblem
from memory.ingest.batch import MAX_BATCH, batch_ingest
from memory.ingest.items import IngestItem
from memory.ingest.metrics import items_count
from memory.ingest.plan import ItemOutcome
from memory.ingest.replies import BatchReply, IngestReply
from memory.ingest.request import ingest_request
from memory.ingest.waiting import Waiting
from memory.jobs import tasks

router = Router(tags=["ingest"])

Defer = Annotated[
    bool, Query(description="Reply before the topic can be found by meaning; the worker embeds it later.")
]


@router.post("/ingest", summary="Ingest one item", response={200: IngestReply, **CHANGE})
def ingest(
    request: HttpRequest, payload: IngestItem, defer: Defer = False, idempotency_key: IdempotencyKey = None
) -> HttpResponse:
    """Store one observation: a new topic, more fields of a topic, or a new revision of one field. Agent keys; operator
    keys for `created_at` and `last_used_at`.

    The item is written completely or not at all. After the reply, queries find the topic by word and by meaning.
    """
    principal = principal_of(request, "agent")

    def render(outcomes: list[ItemOutcome], waiting: Waiting | None) -> tuple[int, Any]:
        outcome = outcomes[0]
        if isinstance(outcome, MemoryProblem):
            raise outcome
        return 200, outcome.as_json() | ({"waiting": waiting} if waiting is not None else {})

    status, body = ingest_request(
        [payload],
        route="ingest",
        body=payload.model_dump(mode="json", exclude_unset=True),
        render=render,
        idempotency_key=idempotency_key,
        principal=principal,
        now=timezone.now(),
        defer=defer,
        on_deferred=tasks.upkeep_request,
    )
    tasks.upkeep_nudge()
    items_count(accepted=1, refused=0)
    return json_reply(body, status=status)


@router.post(
    "/ingest/batch",
    summary="Ingest up to 1,000 items",
    response={200: BatchReply, **problems(400, 401, 403, 409, 413, 422, 429, 503)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "array",
                        "maxItems": MAX_BATCH,
                        "items": {
                            "description": "An item as for POST /v1/ingest. Invalid items are refused individually.",
                            "anyOf": [{"$ref": "#/components/schemas/IngestItem"}, {}],
                        },
                    }
                },
                "application/x-ndjson": {
                    "schema": {"type": "string", "description": "One item as for POST /v1/ingest on each line."}
                },
            },
        }
    },
)
def ingest_batch(request: HttpRequest, defer: Defer = False, idempotency_key: IdempotencyKey = None) -> HttpResponse:
    """Store many observations at once, as a JSON list or as JSON Lines. Agent keys.

    Each item is accepted or refused individually, with the status that it would have as a single request. Later items
    may refer to topics that earlier items create. The results are in the order of the items.
    """
    principal = principal_of(request, "agent")
    status, body = batch_ingest(
        batch_parse(request),
        status_of=problem_status,
        idempotency_key=idempotency_key,
        principal=principal,
        now=timezone.now(),
        defer=defer,
        on_deferred=tasks.upkeep_request,
    )
    tasks.upkeep_nudge()
    items_count(accepted=body["accepted"], refused=body["refused"])
    return json_reply(body, status=status)
