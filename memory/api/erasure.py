"""Forgetting on request: /v1/forget for operators and agents that may forget, /v1/supersede for all who may write."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from memory.api.authentication import principal_of
from memory.api.erasure_schemas import (
    AmbiguousProblem,
    CandidateOut,
    ForgetReply,
    ForgetRequest,
    SupersededOut,
    SupersedeReply,
    SupersedeRequest,
)
from memory.api.problems import problem_response
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.core.errors import RequestRefused
from memory.core.problem_codes import ProblemCode
from memory.erasure.agent_release import forget_require
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_execute, forget_list
from memory.erasure.forget_lists import ListedTopic, Listing
from memory.erasure.supersede import Ambiguous, supersede

router = Router(tags=["command"])

_CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 429, 503)


@router.post("/forget", summary="Release or purge by query or filter", response={200: ForgetReply, **_CHANGE})
def forget(request: HttpRequest, payload: ForgetRequest) -> HttpResponse:
    """List what would be released or purged, or do it. Operator keys; agent keys that may forget can release.

    A dry run, the default, returns the list with the reason for each topic and a `token`. A request with the token
    executes exactly that list; `409` if one of its topics changed. `dry_run: false` lists and executes in one request.
    If facts about different subjects fit the query equally well, the list is `ambiguous` and cannot be executed.

    Agents may release `agent_forget_share` of the live topics of their scope in 24 hours. A request beyond that
    changes nothing (`403`). Their lists omit topics that are pinned by others, exempt or in a paused scope.
    """
    principal = principal_of(request, "reader")
    forget_require(principal, payload.verb)
    now = timezone.now()
    flat = payload.older_than is not None or payload.categories is not None
    if payload.token is not None:
        if payload.query is not None or payload.filter is not None or flat:
            raise RequestRefused(
                "A token identifies its list. Omit query and filter.", code=ProblemCode.CONTRADICTORY_REQUEST
            )
        done = forget_execute(
            payload.token, verb=payload.verb, principal=principal, now=now, reason=payload.reason or None
        )
        return json_reply(_reply(done.listing, done.listing.matches))
    if flat and payload.filter is not None:
        raise RequestRefused(
            "Put older_than and categories either into filter or beside it, not both.",
            code=ProblemCode.CONTRADICTORY_REQUEST,
        )
    wanted = None if payload.filter is None else ForgetFilter.from_json(payload.filter.model_dump())
    if flat:
        wanted = ForgetFilter.from_json(payload.model_dump(include={"older_than", "categories"}))
    listing = forget_list(
        payload.verb,
        query=payload.query,
        wanted=wanted,
        scope=payload.scope,
        reason=payload.reason,
        principal=principal,
        now=now,
    )
    if payload.dry_run or listing.token is None:
        return json_reply(_reply(listing, listing.matches))
    done = forget_execute(listing.token, verb=payload.verb, principal=principal, now=now)
    return json_reply(_reply(done.listing, listing.matches))


@router.post(
    "/supersede",
    summary="Replace a fact by what is true now",
    response={200: SupersedeReply, **(_CHANGE | {409: AmbiguousProblem})},
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
        candidates: list[CandidateOut] = [
            {
                "topic_id": str(one.topic_id),
                "text": one.text,
                "confidence": one.confidence,
                "by": one.by,
                "token": one.token,
            }
            for one in problem.candidates
        ]
        return problem_response(409, problem.sentence, problem.code, members={"candidates": candidates})
    superseded: list[SupersededOut] = [
        {
            "topic_id": str(entry.topic_id),
            "mode": entry.mode,
            "before": entry.before,
            "after": entry.after,
            "confidence": entry.confidence,
            "by": entry.by,
        }
        for entry in done.superseded
    ]
    return json_reply(SupersedeReply(topic_id=str(done.topic_id), superseded=superseded))


def _reply(listing: Listing, matches: list[ListedTopic]) -> ForgetReply:
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
        "matches": [
            {
                "topic_id": str(match.topic_id),
                "title": match.title,
                "summary": match.summary,
                "scope": match.scope,
                "topic_kind": match.kind,
                "standing": match.standing,
                "pinned": match.pinned,
                "why": match.why,
                "confidence": match.confidence,
                "by": match.by,
                "excerpt": match.excerpt,
                "keeps": match.keeps,
            }
            for match in matches
        ],
    }
