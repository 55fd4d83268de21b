"""GET /v1/stats."""

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.recall.replies import Stats
from memory.recall.stats import stats_collect

router = Router(tags=["service"])


@router.get(
    "/stats", summary="Count topics, fields and links", response={200: Stats, **problems(401, 404, 422, 429, 503)}
)
@consistency("eventual")
def stats(
    request: HttpRequest, scope: Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)] = None
) -> HttpResponse:
    """Count the topics, fields, revisions and links of a scope and of everything below it."""
    return json_reply(stats_collect(principal_of(request, "reader").scope_chosen(scope)))
