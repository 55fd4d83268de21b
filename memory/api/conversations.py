"""One conversation: GET /v1/chat/{conversation_id}, and its undo."""

import uuid
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router
from pydantic import Field, StringConstraints

from memory.agents.chat.conversations import conversation_get, conversation_page
from memory.agents.chat.replies import (
    ConversationDetail,
    ConversationUndoReply,
    UndoneItem,
    conversation_as_json,
    conversation_writes,
    turn_as_json,
)
from memory.agents.chat.undo import UndoItem, conversation_undo, conversation_undo_preview, undo_summary
from memory.api.authentication import principal_of
from memory.api.paging import Cursor, limit_checked
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ
from memory.core.requests import RequestModel
from memory.jobs import tasks

router = Router(tags=["chat"])

# The reply lists at most this number of items. Its counts include all items.
MAX_LISTED = 1000


class ConversationUndoRequest(RequestModel):
    """The reason for the journal, and whether this is only a preview."""

    reason: Annotated[str, StringConstraints(max_length=500)] = ""
    dry_run: bool = Field(default=False, description="Only report what would be undone; nothing is changed.")
    digest: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="From a dry run; 409 if the effect has changed since."
    )


@router.get(
    "/chat/{topicid:conversation_id}", summary="Read a conversation", response={200: ConversationDetail, **READ}
)
def conversation_read(
    request: HttpRequest,
    conversation_id: uuid.UUID,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, description="Messages per page.")] = 50,
) -> HttpResponse:
    """Return the turns of a conversation with their tool calls, and what the conversation wrote. A conversation is
    visible to the caller who began it, and to operator keys in its scope."""
    principal, now = principal_of(request, "reader"), timezone.now()
    found = conversation_get(conversation_id, principal=principal)
    turns, next_cursor = conversation_page(found, cursor=cursor, limit=limit_checked(limit), now=now)
    detail: ConversationDetail = {
        **conversation_as_json(found),
        "wrote": conversation_writes(found, most=MAX_LISTED),
        "items": [turn_as_json(turn) for turn in turns],
        "next": next_cursor,
    }
    return json_reply(detail)


@router.post(
    "/chat/{topicid:conversation_id}/undo",
    summary="Undo what a conversation wrote",
    response={200: ConversationUndoReply, **CHANGE},
)
def conversation_take_back(
    request: HttpRequest, conversation_id: uuid.UUID, payload: ConversationUndoRequest | None = None
) -> HttpResponse:
    """Undo everything that a conversation and its studies wrote, unless later changes depend on it. Its topics are
    released, new revisions restore the former values, and its links are removed. Content that others have changed since
    is kept and listed in `left`, with the reason. 409 while the assistant answers a message of the conversation.
    Operator keys."""
    principal = principal_of(request, "operator")
    wanted, now = payload or ConversationUndoRequest(), timezone.now()
    if wanted.dry_run:
        undone = conversation_undo_preview(conversation_id, principal=principal, now=now)
    else:
        undone = conversation_undo(
            conversation_id, principal=principal, reason=wanted.reason, now=now, digest=wanted.digest
        )
        tasks.upkeep_nudge()
    counts = undone.counts
    reply: ConversationUndoReply = {
        "conversation_id": conversation_id,
        "dry_run": wanted.dry_run,
        "sentence": undo_summary(undone, done=not wanted.dry_run),
        "taken_back": {
            "topics": counts["topic"],
            "values": counts["value"],
            "fields": counts["field"],
            "links": counts["link"],
            "merges": counts["merge"],
        },
        "items": [_item(part) for part in undone.taken_back[:MAX_LISTED]],
        "left": [{**_item(part), "why": part.why} for part in undone.left[:MAX_LISTED]],
        "left_count": len(undone.left),
        "studies_cancelled": undone.cancelled,
        "run_id": undone.run_id,
        "digest": undone.digest if wanted.dry_run else None,
    }
    return json_reply(reply)


def _item(part: UndoItem) -> UndoneItem:
    return {"what": part.what, "topic_id": part.topic_id, "title": part.title, "told": part.told}
