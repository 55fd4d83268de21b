"""The tools that read topics of one scope: query, topic, history, why."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from memory.access.principal import Principal
from memory.agents.tools.tool import Arguments, Tool, ToolReply
from memory.agents.tools.write_tools import Moment
from memory.core.callbacks import Clock
from memory.core.truncate import text_cut
from memory.explain.why import topic_why
from memory.recall.lookup import field_history, topic_detail
from memory.recall.query import query_answer
from memory.recall.reinforcement import lookup_record
from memory.recall.replies import Candidate, FieldOut, TopicDetail
from memory.recall.request import QueryRequest, QueryText

# The maximum number of characters of one text, in lists and in the reply of the tool ``topic``.
_MAX_CHARS_IN_LIST = 1_000
_MAX_CHARS = 8_000
_MAX_NEIGHBORS = 20
# The maximum number of fields of one topic, in lists and in the reply of the tool ``topic``.
_MAX_FIELDS, _MAX_FIELDS_ALONE = 60, 200


class QueryArguments(Arguments):
    """A question to the store."""

    q: QueryText = Field(description="What is to be known, in plain words; names and details help.")
    top_k: int = Field(default=8, ge=1, le=50, description="How many topics to return at most.")
    kinds: list[str] | None = Field(default=None, max_length=50, description="Only topics of these kinds.")
    as_of: Moment | None = Field(default=None, description="As things were known then, with an offset.")
    created_after: Moment | None = Field(default=None, description="Only topics created then or later.")
    created_before: Moment | None = Field(default=None, description="Only topics created before then.")
    include_archived: bool = Field(default=False, description="Look among forgotten (archived) topics too.")


class TopicArguments(Arguments):
    """One topic."""

    topic_id: uuid.UUID


class HistoryArguments(TopicArguments):
    """One field of a topic."""

    field: str = Field(min_length=1, max_length=200, description="The name of the field.")
    limit: int = Field(default=20, ge=1, le=100)


def reading_tools(principal: Principal, *, clock: Clock) -> list[Tool[Any]]:
    """Return the tools that read in the scope of ``principal``. Reading reinforces topics, like reading by the API."""

    def query(asked: QueryArguments) -> ToolReply:
        found = query_answer(QueryRequest(**dict(asked)), principal=principal, now=clock()).body["candidates"]
        result = [_bundle(each) | ({"also": each["also"]} if "also" in each else {}) for each in found]
        ids = [uuid.UUID(each["topic_id"]) for each in found]
        return ToolReply({"topics": result}, ids, [each for topic in result for each in _linked(topic)])

    def topic(asked: TopicArguments) -> ToolReply:
        now = clock()
        detail = topic_detail(asked.topic_id, principal=principal, now=now)
        lookup_record(asked.topic_id, scope=detail["scope"], principal=principal, now=now)
        result = _bundle(detail, fields=_MAX_FIELDS_ALONE, chars=_MAX_CHARS) | {
            "scope": detail["scope"],
            "stands": detail["rung"],
            "categories": detail["categories"],
        }
        return ToolReply(result, [asked.topic_id], _linked(result))

    def history(asked: HistoryArguments) -> ToolReply:
        page = field_history(
            asked.topic_id, asked.field, principal=principal, cursor=None, limit=asked.limit, now=clock()
        )
        result = [_revision(each) for each in page["items"]]
        return ToolReply(
            {"field": asked.field, "revisions": result, "more": page["next"] is not None}, [asked.topic_id]
        )

    def why(asked: TopicArguments) -> ToolReply:
        card = topic_why(asked.topic_id, principal=principal, now=clock())
        return ToolReply({"topic_id": str(asked.topic_id), "sentences": card["sentences"]}, [asked.topic_id])

    return [
        Tool(
            "query",
            "Ask the memory store. Returns the topics that answer best, each with its fields, their current values and "
            "the topics it is linked with. Use it before you say that something is not known.",
            QueryArguments,
            query,
        ),
        Tool(
            "topic",
            "Read one topic whole, by its id: all fields, links, where it stands. Archived topics too.",
            TopicArguments,
            topic,
        ),
        Tool(
            "history",
            "Read all values that one field of a topic has had, newest first, with when and why each was changed.",
            HistoryArguments,
            history,
        ),
        Tool(
            "why",
            "Explain where a topic stands on the way to being forgotten: what happened to it and why, what comes next.",
            TopicArguments,
            why,
        ),
    ]


def _cut(text: object, most: int) -> object:
    return text_cut(text, most) if isinstance(text, str) else text


def _fields(fields: Sequence[FieldOut], most: int, longest: int) -> dict[str, Any]:
    values = {each["name"]: each["current"]["value"] for each in fields if each["current"]}
    shown = {name: _cut(value, longest) for name, value in list(values.items())[:most]}
    left_out = {"fields_left_out": len(values) - most} if len(values) > most else {}
    return {"fields": shown, **left_out}


def _bundle(
    found: Candidate | TopicDetail, *, fields: int = _MAX_FIELDS, chars: int = _MAX_CHARS_IN_LIST
) -> dict[str, Any]:
    linked = [
        {"topic_id": each["topic_id"], "kind": each["kind"], "direction": each["direction"], "title": each["title"]}
        for each in found["neighbors"][:_MAX_NEIGHBORS]
    ]
    return {
        "topic_id": found["topic_id"],
        "title": found["title"],
        "summary": _cut(found["summary"], chars),
        "kind": found["topic_kind"],
        "created_at": found["created_at"].isoformat(),
        **_fields(found["fields"], fields, chars),
        "linked": linked,
    }


def _linked(result: dict[str, Any]) -> list[uuid.UUID]:
    return [uuid.UUID(str(each["topic_id"])) for each in result["linked"]]


def _revision(revision: Mapping[str, object]) -> dict[str, Any]:
    members = ("value", "valid_from", "recorded_at", "provenance", "why_changed")
    given = {name: revision[name] for name in members if revision.get(name) not in (None, "")}
    return {
        name: value.isoformat() if isinstance(value, dt.datetime) else _cut(value, _MAX_CHARS_IN_LIST)
        for name, value in given.items()
    }
