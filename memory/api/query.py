"""POST /v1/query."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.metrics import stages_observe
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.jobs import tasks
from memory.recall.query import query_answer
from memory.recall.replies import QueryReply
from memory.recall.request import QueryRequest

router = Router(tags=["query"])


@router.post(
    "/query", summary="Ask for context", response={200: QueryReply, **problems(400, 401, 403, 404, 413, 422, 429, 503)}
)
@consistency("strong")
def query(request: HttpRequest, payload: QueryRequest) -> HttpResponse:
    """Return the topics that answer a question, best first, each with its fields and neighbours.

    Returned topics gain salience shortly afterwards. If the semantic stage is omitted, nothing is searched:
    ``topic_ids`` selects the topics.
    """
    principal = principal_of(request, "reader")
    answer = query_answer(payload, principal=principal, now=timezone.now())
    tasks.upkeep_nudge()
    stages_observe(answer.timings)
    timing = ", ".join(f"{stage};dur={milliseconds:.2f}" for stage, milliseconds in answer.timings.items())
    return json_reply(answer.body, headers={"Server-Timing": timing})
