"""Undo of conversations: /v1/chat/{conversation_id}/undo."""

import uuid

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from memory import jobs
from memory.api.authentication import principal_of
from memory.api.conversation_schemas import ConversationUndoReply, ConversationUndoRequest
from memory.api.replies import json_reply
from memory.api.responses import problems
from memory.assistant.undo import conversation_undo, conversation_undo_look
from memory.assistant.undo_words import undone_words
from memory.assistant.undoable import Part

router = Router(tags=["chat"])

# So many of each list are told; all are counted.
MOST_TOLD = 1000


@router.post(
    "/chat/{topicid:conversation_id}/undo",
    summary="Take back what a conversation wrote",
    response={200: ConversationUndoReply, **problems(400, 401, 403, 404, 409, 413, 422, 429, 503)},
)
def conversation_take_back(
    request: HttpRequest, conversation_id: uuid.UUID, payload: ConversationUndoRequest | None = None
) -> HttpResponse:
    """Take back everything that a conversation and its studies wrote, as far as nobody has built on it since. Topics it
    made are released, values it wrote become what they were, links it made are removed; history only grows. What others
    have touched since is left, each with the reason. Refused while the assistant is at a message of it. Operator keys.
    """
    principal = principal_of(request, "operator")
    asked, now = payload or ConversationUndoRequest(), timezone.now()
    if asked.dry_run:
        undone = conversation_undo_look(conversation_id, principal=principal, now=now)
    else:
        undone = conversation_undo(
            conversation_id, principal=principal, reason=asked.reason, now=now, digest=asked.digest
        )
        jobs.upkeep_nudge()
    return json_reply(
        {
            "conversation_id": conversation_id, "dry_run": asked.dry_run,
            "sentence": undone_words(undone, done=not asked.dry_run),
            "taken_back": {f"{what}s": number for what, number in undone.counts.items()},
            "items": [_told(part) for part in undone.taken_back[:MOST_TOLD]],
            "left": [{**_told(part), "why": part.why} for part in undone.left[:MOST_TOLD]],
            "left_count": len(undone.left), "studies_cancelled": undone.cancelled, "run_id": undone.run_id,
            "digest": undone.digest if asked.dry_run else None,
        }
    )  # fmt: skip


def _told(part: Part) -> dict[str, object]:
    return {"what": part.what, "topic_id": part.topic_id, "title": part.title, "told": part.told}
