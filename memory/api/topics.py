"""Lookup and editing: /v1/topics and the paths below it."""

import datetime as dt
import uuid
from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from django.urls import register_converter
from django.urls.converters import StringConverter, UUIDConverter
from django.utils import timezone
from django.utils.http import parse_etags, quote_etag
from ninja import Path, Query, Router
from pydantic import AwareDatetime

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import Cursor, Limit, LongCursor, limit_checked
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ, problems
from memory.api.schemas import Reason, TopicPatch, reason_of
from memory.core.errors import Conflict, PreconditionFailed
from memory.core.problem_codes import ProblemCode
from memory.core.replies import TypedDict, doc
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.erasure.purge import topics_purge
from memory.forgetting.manual_actions import topics_archive, topics_pin, topics_restore
from memory.ingest.edit import TopicChange, topic_edit
from memory.ingest.items import EARLIEST, LATEST
from memory.predicates.search_text import MAX_LENGTH
from memory.recall.lookup import TopicListFilter, field_history, scopes_list, topic_detail, topics_list
from memory.recall.reinforcement import lookup_record
from memory.recall.replies import HistoryPage, ScopePage, TopicDetail, TopicPage
from memory.recall.search import search_read

router = Router(tags=["topics"])


class TopicIdConverter(UUIDConverter):
    """A UUID in a URL, in lower or upper case."""

    regex = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


class FieldNameConverter(StringConverter):
    """A field name in a URL. It may be any text, also with slashes and line breaks."""

    regex = r"[\s\S]+"


register_converter(TopicIdConverter, "topicid")
register_converter(FieldNameConverter, "fieldname")

RungFilter = Literal["active", "summarized", "detached", "archived", "any"]


class PurgeReply(TypedDict):
    """The result of a purge. Keep a copy of number and hash, to prove later that no receipt was removed."""

    receipt_id: str
    number: int
    topic_ids: Annotated[
        list[str], doc("The topic, those that were merged into it, and the texts they were extracted from.")
    ]
    counts: Annotated[dict[str, int], doc("Rows erased or masked, by table.")]
    hash: str


def _detail(request: HttpRequest, topic_id: uuid.UUID) -> HttpResponse:
    return _tagged(topic_detail(topic_id, principal=principal_of(request, "reader"), now=timezone.now()))


def _tagged(detail: TopicDetail) -> HttpResponse:
    """Return a topic with an ETag, which changes with its texts, kind, categories and fields."""
    return json_reply(detail, headers={"ETag": quote_etag(detail["updated_at"].isoformat())})


def _version_wanted(request: HttpRequest) -> dt.datetime | None:
    """Return the version that If-Match names; None without the header. Raises ``PreconditionFailed`` for a tag that no
    topic has."""
    tags = parse_etags(request.headers.get("If-Match", ""))
    if not tags or tags == ["*"]:
        return None
    try:
        return max(dt.datetime.fromisoformat(tag.strip('"')) for tag in tags).astimezone(dt.UTC)
    except ValueError:
        raise PreconditionFailed("If-Match must have the ETag of the topic.") from None


@router.get("/topics", summary="List topics", response={200: TopicPage, **READ})
@consistency("eventual")
def topic_list(
    request: HttpRequest,
    scope: Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)] = None,
    below: Annotated[bool, Query(description="Whether topics in scopes below are listed.")] = True,
    title: Annotated[AddressText | None, Query(max_length=1000, description="Exactly this title.")] = None,
    kind: Annotated[AddressText | None, Query(max_length=200)] = None,
    rung: RungFilter | None = None,
    pinned: bool | None = None,
    text: Annotated[AddressText | None, Query(max_length=MAX_LENGTH)] = None,
    q: Annotated[AddressText | None, Query(max_length=MAX_LENGTH)] = None,
    created_after: Annotated[AwareDatetime | None, Query(ge=EARLIEST, le=LATEST)] = None,
    created_before: Annotated[AwareDatetime | None, Query(ge=EARLIEST, le=LATEST)] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List topics, newest first.

    Archived topics are listed only with ``rung``. Merged topics are never listed. ``text`` is any text, whose words and
    "phrases" must occur. ``q`` is a search as in the console's Lookup, such as ``kind:note created:<7d tea OR coffee``.
    It may name archived and released topics: ``rung:archived``, ``is:released``.
    """
    principal = principal_of(request, "reader")
    wanted = TopicListFilter(
        scope=principal.scope_chosen(scope),
        below=below,
        title=title,
        search=None if q is None else search_read(q, principal=principal),
        words=text,
        kind=kind,
        rung=rung,
        pinned=pinned,
        created_after=created_after,
        created_before=created_before,
    )
    page = topics_list(wanted, cursor=cursor, limit=limit_checked(limit), now=timezone.now())
    return json_reply(page)


@router.get("/scopes", summary="List scopes", response={200: ScopePage, **READ})
@consistency("eventual")
def scope_list(
    request: HttpRequest,
    scope: Annotated[AddressText | None, Query(max_length=MAX_SCOPE_LENGTH)] = None,
    kind: Annotated[AddressText | None, Query(max_length=200, description="Counts topics of this kind.")] = None,
    cursor: LongCursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """List the scopes that have topics, at and below a scope, ordered by path."""
    within = principal_of(request, "reader").scope_chosen(scope)
    return json_reply(scopes_list(within, kind=kind, cursor=cursor, limit=limit_checked(limit)))


@router.get("/topics/{topicid:topic_id}", summary="Look up a topic", response={200: TopicDetail, **READ})
def topic_lookup(request: HttpRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Look up one topic on any rung. This does not raise the salience of the topic."""
    principal = principal_of(request, "reader")
    now = timezone.now()
    detail = topic_detail(topic_id, principal=principal, now=now)
    lookup_record(topic_id, scope=detail["scope"], principal=principal, now=now)
    return _tagged(detail)


@router.get(
    "/topics/{topicid:topic_id}/fields/{fieldname:name}/history",
    summary="Read the history of a field",
    response={200: HistoryPage, **READ},
)
def field_history_page(
    request: HttpRequest,
    topic_id: uuid.UUID,
    name: Annotated[AddressText, Path()],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> HttpResponse:
    """Return all revisions of a field, warm and cold, newest first."""
    page = field_history(
        topic_id,
        name,
        principal=principal_of(request, "reader"),
        cursor=cursor,
        limit=limit_checked(limit),
        now=timezone.now(),
    )
    return json_reply(page)


@router.patch(
    "/topics/{topicid:topic_id}",
    summary="Edit a topic",
    response={200: TopicDetail, **problems(400, 401, 403, 404, 409, 412, 413, 422, 429, 503)},
)
def topic_edit_members(request: HttpRequest, topic_id: uuid.UUID, payload: TopicPatch) -> HttpResponse:
    """Edit a topic. Previous versions are kept; ``as_of`` returns them. Agent keys; operator keys for `salience`. With
    the ETag of a lookup in If-Match, a topic that was changed since is refused (412).
    """
    change = TopicChange(
        title=payload.title,
        summary=payload.summary,
        kind=payload.topic_kind,
        categories=payload.categories,
        salience=payload.salience,
    )
    principal = principal_of(request, "agent")
    wanted = _version_wanted(request)
    seen_at = min(filter(None, (wanted, payload.base_updated_at)), default=None)
    try:
        topic_edit(topic_id, change, principal=principal, reason=payload.reason, now=timezone.now(), seen_at=seen_at)
    except Conflict as problem:
        if wanted is None or problem.code != ProblemCode.CHANGED_MEANWHILE:
            raise
        raise PreconditionFailed(problem.sentence) from None
    return _detail(request, topic_id)


@router.post("/topics/{topicid:topic_id}/pin", summary="Pin a topic", response={200: TopicDetail, **CHANGE})
def topic_pin(request: HttpRequest, topic_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Protect a topic from forgetting. Agent keys."""
    principal = principal_of(request, "agent")
    topics_pin([topic_id], pinned=True, principal=principal, reason=reason_of(payload), now=timezone.now())
    return _detail(request, topic_id)


@router.post("/topics/{topicid:topic_id}/unpin", summary="Unpin a topic", response={200: TopicDetail, **CHANGE})
def topic_unpin(request: HttpRequest, topic_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Remove the protection of a topic. Agent keys."""
    principal = principal_of(request, "agent")
    topics_pin([topic_id], pinned=False, principal=principal, reason=reason_of(payload), now=timezone.now())
    return _detail(request, topic_id)


@router.post("/topics/{topicid:topic_id}/archive", summary="Archive a topic", response={200: TopicDetail, **CHANGE})
def topic_archive(request: HttpRequest, topic_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Archive one topic, so that queries no longer return it. Operator keys."""
    principal = principal_of(request, "operator")
    topics_archive([topic_id], principal=principal, reason=reason_of(payload), now=timezone.now())
    return _detail(request, topic_id)


@router.post("/topics/{topicid:topic_id}/restore", summary="Restore a topic", response={200: TopicDetail, **CHANGE})
def topic_restore(request: HttpRequest, topic_id: uuid.UUID, payload: Reason | None = None) -> HttpResponse:
    """Restore one archived topic. Operator keys."""
    principal = principal_of(request, "operator")
    topics_restore([topic_id], principal=principal, reason=reason_of(payload), now=timezone.now())
    return _detail(request, topic_id)


@router.delete("/topics/{topicid:topic_id}", summary="Purge a topic", response={200: PurgeReply, **CHANGE})
def topic_purge(
    request: HttpRequest,
    topic_id: uuid.UUID,
    reason: Annotated[
        AddressText | None, Query(max_length=500, description="The reason; it may also be sent in the body.")
    ] = None,
    payload: Reason | None = None,
) -> HttpResponse:
    """Erase a topic with its history, its links and its text in logs. There is no undo. Operator keys.

    Topics that were merged into this topic are erased too. A receipt proves the erasure without the erased text.
    """
    principal = principal_of(request, "operator")
    why = reason_of(payload) or reason or ""
    receipt = topics_purge([topic_id], principal=principal, reason=why, now=timezone.now())
    purged: PurgeReply = {
        "receipt_id": str(receipt.pk),
        "number": receipt.number,
        "topic_ids": receipt.topic_ids,
        "counts": receipt.counts,
        "hash": receipt.hash,
    }
    return json_reply(purged)
