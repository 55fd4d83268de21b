"""Forgetting on request: /v1/forget for operators and for agents that may forget; /v1/supersede for all who may
write."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from memory.api.authentication import principal_of
from memory.api.erasure_schemas import AmbiguousProblem, ForgetRequest, SupersedeRequest
from memory.api.problems import problem_response
from memory.api.replies import json_reply
from memory.api.responses import CHANGE
from memory.core.errors import RequestRefused
from memory.erasure.agent_release import forget_require
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_execute, forget_list
from memory.erasure.forget_list_read import listing_matches
from memory.erasure.replies import ForgetMatch, ForgetReply, SupersedeReply
from memory.erasure.supersede import Ambiguous, supersede
from memory.models import ForgetListing

router = Router(tags=["command"])


@router.post("/forget", summary="Release or purge by query or filter", response={200: ForgetReply, **CHANGE})
def forget(request: HttpRequest, payload: ForgetRequest) -> HttpResponse:
    """List what would be released or purged, or do it. Operator keys; agent keys that may forget can release.

    A dry run, the default, returns the list with the reason for each topic and a `token`. A request with the token
    executes exactly that list; `409` if one of its topics changed. `dry_run: false` lists and executes in one request.
    If facts about different subjects fit the query equally well, the list is `ambiguous` and cannot be executed.

    In 24 hours, agents may release the share `agent_forget_share` of the live topics of their scope. A request beyond
    that changes nothing (`403`). Lists for agents omit topics that are exempt, in a paused scope, or pinned by others.
    """
    principal = principal_of(request, "reader")
    forget_require(principal, payload.verb)
    now = timezone.now()
    flat = payload.older_than is not None or payload.categories is not None
    if payload.token is not None:
        if payload.query is not None or payload.filter is not None or flat:
            raise RequestRefused("The token already selects the listed topics. Omit query and filter.")
        listing = forget_execute(
            payload.token, verb=payload.verb, principal=principal, now=now, reason=payload.reason or None
        )
        return json_reply(_reply(listing, listing_matches(listing)))
    if flat and payload.filter is not None:
        raise RequestRefused("Put older_than and categories either into filter or beside it, not both.")
    wanted = None if payload.filter is None else ForgetFilter(**payload.filter.model_dump())
    if flat:
        wanted = ForgetFilter(older_than=payload.older_than, categories=payload.categories)
    listing = forget_list(
        payload.verb,
        query=payload.query,
        wanted=wanted,
        scope=payload.scope,
        reason=payload.reason,
        principal=principal,
        now=now,
    )
    matches = listing_matches(listing)
    if not payload.dry_run and listing.token is not None:
        listing = forget_execute(listing.token, verb=payload.verb, principal=principal, now=now)
    return json_reply(_reply(listing, matches))


@router.post(
    "/supersede",
    summary="Replace a fact by what is true now",
    response={200: SupersedeReply, **(CHANGE | {409: AmbiguousProblem})},
)
def supersede_fact(request: HttpRequest, payload: SupersedeRequest) -> HttpResponse:
    """Replace a fact by `new_text`; `old_query` describes the fact. The old value stays in the history. Agent keys.

    In a sentence with two facts, only the described one is replaced. If no fact matches, the new text is stored and
    `superseded` is empty. If facts about different subjects match equally well, nothing is changed: `409` lists them,
    each with a `token` that selects it.
    """
    principal = principal_of(request, "agent")
    try:
        done = supersede(
            payload.old_query,
            payload.new_text,
            scope=payload.scope,
            reason=payload.reason,
            token=payload.token,
            principal=principal,
            now=timezone.now(),
        )
    except Ambiguous as problem:
        return problem_response(409, problem.sentence, problem.code, members={"candidates": problem.candidates})
    return json_reply(done)


def _reply(listing: ForgetListing, matches: list[ForgetMatch]) -> ForgetReply:
    return {
        "token": listing.token,
        "expires_at": listing.expires_at,
        "verb": listing.verb,
        "count": listing.count,
        "ambiguous": listing.ambiguous,
        "question": listing.question,
        "executed": listing.executed_at is not None,
        "run_id": str(listing.run_id) if listing.run_id else None,
        "receipt_id": str(listing.receipt_id) if listing.receipt_id else None,
        "matches": matches,
    }
