"""Adds a conversation that explains one of the story's last changes, without changing a topic."""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import F

from memory.core.ids import uuid7_at
from memory.models import Conversation, ConversationTurn, ConversationWrite, Revision, Rung

MODEL = "demo"
LEADER = "mara"
SCOPE = "/"
# The time between the first question and the change.
BEFORE = dt.timedelta(minutes=2)


def conversation_load(topics: Sequence[uuid.UUID]) -> None:
    """Write a conversation that led to the latest change with a reason in ``topics``. Six queries. Does nothing if
    there is no such change."""
    changes = Revision.objects.filter(
        field__topic__in=topics,
        field__topic__rung=Rung.ACTIVE,
        seq=F("field__last_seq"),
        seq__gt=1,
        field_type="string",
    ).exclude(why_changed="")
    change = changes.order_by("-recorded_at", "-id").select_related("field__topic").first()
    if change is None:
        return
    topic, name = change.field.topic, change.field.name.replace("_", " ")
    before = Revision.objects.get(field=change.field, seq=change.seq - 1).value
    began = change.recorded_at - BEFORE
    talk = Conversation.objects.create(
        id=uuid7_at(began),
        scope=SCOPE,
        actor=LEADER,
        identity=LEADER,
        turns=2,
        created_at=began,
        moved_at=change.recorded_at,
    )
    called = {
        "topic_id": str(topic.pk),
        "field": change.field.name,
        "value": change.value,
        "why_changed": change.why_changed,
    }
    _turn(
        talk,
        1,
        f"What do I know about {topic.title}?",
        f"{topic.summary} The {name} is {before}.".strip(),
        "query",
        [
            _call("query", {"q": topic.title, "top_k": 5}, topic.pk, "1 topic found.", 41.3),
            _call("topic", {"topic_id": str(topic.pk)}, topic.pk, "Read.", 6.2),
        ],
        at=began,
    )
    _turn(
        talk,
        2,
        f"Remember that the {name} is {change.value} now: {change.why_changed}.",
        f"The {name} of {topic.title} is {change.value} now. What it was before, {before}, stays in its history.",
        "ingest",
        [_call("version_field", called, topic.pk, "Written.", 58.7)],
        at=change.recorded_at,
    )
    ConversationWrite.objects.create(
        conversation=talk,
        topic=topic,
        at=change.recorded_at,
        what=ConversationWrite.What.VERSION,
        revision_id=change.pk,
    )


def _turn(
    talk: Conversation,
    place: int,
    message: str,
    reply: str,
    intent: str,
    calls: list[dict[str, Any]],
    *,
    at: dt.datetime,
) -> None:
    ConversationTurn.objects.create(
        conversation=talk,
        place=place,
        scope=SCOPE,
        at=at,
        message=message,
        reply=reply,
        intent=intent,
        intent_source="model",
        model=MODEL,
        rounds=len(calls),
        ended=ConversationTurn.Ended.DONE,
        tool_log=calls,
    )


def _call(tool: str, arguments: dict[str, Any], topic_id: uuid.UUID, said: str, ms: float) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments, "ok": True, "ms": ms, "topic_ids": [str(topic_id)], "said": said}
