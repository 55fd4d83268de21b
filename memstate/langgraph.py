"""A store for LangGraph: ``MemStateStore`` keeps items in MemState, over its HTTP API.

A namespace is a scope, an item is a topic of the kind ``item`` whose title is the key, and each member of its value is
a field. So an item has a history, fades by the policy of its scope, and can be restored after a deletion. What differs
from other stores is in docs/integrations.md. Needs ``pip install 'memstate[langgraph]'``.
"""

import asyncio
import contextlib
import json
import re
import urllib.parse
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from memstate.client import AsyncMemState, Conflict, MemState, NotAllowed, _finished

KIND = "item"
# The category of an item that was put with ``index=False``.
UNSEARCHED = "not-searched"
# The largest page of the API, the most topics of a query, the most fields of one request, and the longest question.
PAGE, FIELDS, MAX_QUERY = 200, 200, 8_000

# Sends a request with the arguments of the client's ``request``, and returns the reply. The operations are written for
# both clients, in the way of ``memstate.client``: that of the blocking client never waits for an event loop.
Ask = Callable[..., Awaitable[Any]]

_IDS = uuid.UUID("9d3c0a52-5a5e-4c58-9d0e-8f5b4a6c2f71")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda one, other: bool(one == other),
    "$ne": lambda one, other: bool(one != other),
    "$gt": lambda one, other: bool(one > other),
    "$gte": lambda one, other: bool(one >= other),
    "$lt": lambda one, other: bool(one < other),
    "$lte": lambda one, other: bool(one <= other),
}


class MemStateStore(BaseStore):
    """A LangGraph store. ``scope`` is the scope under which all namespaces lie; ``base_url``, ``api_key`` and
    ``options`` are those of the client. To delete items, an agent key must be allowed to forget.

    ``ttl`` is refused: how long an item stays is decided by the policy of its scope, and by its use.
    """

    __slots__ = ("_async", "_loop", "_root", "_settings", "_sync")

    def __init__(self, base_url: str | None = None, api_key: str | None = None, *, scope: str = "/", **options: Any):
        self._root = tuple(segment for segment in scope.split("/") if segment)
        self._settings: dict[str, Any] = {"api_key": api_key, **options}
        if base_url is not None:
            self._settings["base_url"] = base_url
        self._sync: MemState | None = None
        self._async: AsyncMemState | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in their order. Raises ``MemStateError`` for a request that failed."""
        if self._sync is None:
            self._sync = MemState(**self._settings)
        client = self._sync

        async def ask(method: str, path: str, **more: Any) -> Any:
            return client.request(method, path, **more)

        return _finished(self._execute(ask, ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in their order. Raises ``MemStateError`` for a request that failed."""
        loop = asyncio.get_running_loop()
        if self._async is None or self._loop is not loop:
            # Connections belong to the loop in which they were made.
            self._async, self._loop = AsyncMemState(**self._settings), loop
        return await self._execute(self._async.request, ops)

    def close(self) -> None:
        """Close the connections of the blocking methods."""
        if self._sync is not None:
            self._sync.close()

    async def aclose(self) -> None:
        """Close the connections of the asynchronous methods."""
        if self._async is not None:
            await self._async.close()

    async def _execute(self, ask: Ask, ops: Iterable[Op]) -> list[Result]:
        return [await self._result(ask, op) for op in ops]

    async def _result(self, ask: Ask, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(ask, op)
            case PutOp():
                await self._put(ask, op)
                return None
            case SearchOp():
                return await self._search(ask, op)
            case ListNamespacesOp():
                return await self._namespaces(ask, op)
        raise TypeError(f"{type(op).__name__} is not an operation of this store.")

    def _scope(self, namespace: Iterable[str]) -> str:
        return "/" + "/".join([*self._root, *map(_segment, namespace)])

    def _namespace(self, scope: str) -> tuple[str, ...]:
        segments = [segment for segment in scope.split("/") if segment]
        return tuple(urllib.parse.unquote(segment) for segment in segments[len(self._root) :])

    async def _get(self, ask: Ask, op: GetOp) -> Item | None:
        scope = self._scope(op.namespace)
        found = await self._topic(ask, scope, op.key)
        return None if found is None else Item(**self._item(found))

    async def _topic(self, ask: Ask, scope: str, key: str, *, again: bool = True) -> dict[str, Any] | None:
        """Return the topic of an item with its fields, or None. One request for most items, three for those that were
        deleted and put again; ``again`` says whether these are looked for."""
        topics = await _read(ask, [str(_first_id(scope, key))], scope)
        if not topics and again:
            where = {"scope": scope, "below": False, "title": _title(key), "kind": KIND, "rung": "any", "limit": 1}
            page = await ask("GET", "/v1/topics", params=where)
            topics = await _read(ask, [row["topic_id"] for row in page["items"]], scope)
        return topics[0] if topics else None

    async def _put(self, ask: Ask, op: PutOp) -> None:
        scope = self._scope(op.namespace)
        found = await self._topic(ask, scope, op.key, again=op.value is None)
        if op.value is None:
            if found is not None:
                wanted = {"verb": "release", "filter": {"ids": [found["topic_id"]]}, "dry_run": False}
                await ask("POST", "/v1/forget", json={**wanted, "reason": "deleted from a LangGraph store"})
            return
        if found is None:
            found = await self._create(ask, scope, op, op.value)
        if found is not None:
            await self._change(ask, found, op, op.value)

    async def _create(self, ask: Ask, scope: str, op: PutOp, value: Mapping[str, Any]) -> dict[str, Any] | None:
        """Create an item. If another call has just created it, return its topic unchanged."""
        fields = [_field(name, each) for name, each in value.items()]
        item: dict[str, Any] = {
            "placement": "new_topic",
            "title": _title(op.key),
            "topic_kind": KIND,
            "scope": scope,
            "fields": fields[:FIELDS],
            "categories": [UNSEARCHED] if op.index is False else [],
        }
        try:
            # The chosen id lets only one of two concurrent calls create the item.
            made = await _ingest(ask, {**item, "topic_id": str(_first_id(scope, op.key))})
        except Conflict:
            # Another call has just created the item, or an item with this id was deleted.
            found = await self._topic(ask, scope, op.key)
            if found is not None:
                return found
            made = await _ingest(ask, item)
        await _extend(ask, made["topic_id"], fields[FIELDS:], [], None)
        return None

    async def _change(self, ask: Ask, found: Mapping[str, Any], op: PutOp, value: Mapping[str, Any]) -> None:
        if found["rung"] == "archived":
            # What was just written is found again. Only operators can restore a topic.
            with contextlib.suppress(NotAllowed):
                await ask("POST", f"/v1/topics/{found['topic_id']}/restore", json={"reason": "written again"})
        present = _value(found)
        changed = [
            _field(name, each)
            for name, each in value.items()
            if name not in present or type(present[name]) is not type(each) or present[name] != each
        ]
        emptied = [name for name in present if name not in value]
        await _extend(ask, found["topic_id"], changed, emptied, op.index)

    async def _search(self, ask: Ask, op: SearchOp) -> list[SearchItem]:
        scope, end = self._scope(op.namespace_prefix), op.offset + op.limit
        equal, topics = _equal_values(op.filter or {}), []
        if op.query:
            # Filters other than equality apply to what the query returns, so it returns as much as it can.
            wanted = {
                "q": op.query[:MAX_QUERY],
                "kinds": [KIND],
                "top_k": PAGE if op.filter else min(end, PAGE),
                **equal,
            }
            reply = await _query(ask, wanted, scope)
            topics = [topic for topic in reply["candidates"] if UNSEARCHED not in topic["categories"]]
            # Items that say the same as a better one.
            topics += await _read(ask, [other for topic in topics for other in topic.get("also", ())], scope, equal)
            topics = [topic for topic in topics if _holds(_value(topic), op.filter)]
        else:
            where: dict[str, Any] = {"scope": scope, "kind": KIND, "limit": PAGE}
            while len(topics) < end:
                page = await ask("GET", "/v1/topics", params=where)
                read = await _read(ask, [row["topic_id"] for row in page["items"]], scope, equal)
                topics += [topic for topic in read if _holds(_value(topic), op.filter)]
                if page["next"] is None:
                    break
                where["cursor"] = page["next"]
        return [SearchItem(**self._item(topic), score=topic.get("relevance")) for topic in topics[op.offset : end]]

    async def _namespaces(self, ask: Ask, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        where: dict[str, Any] = {"scope": self._scope(()), "kind": KIND, "limit": PAGE}
        found: dict[tuple[str, ...], None] = {}
        while True:
            page = await ask("GET", "/v1/scopes", params=where)
            for row in page["items"]:
                namespace = self._namespace(row["scope"])
                if namespace and all(_fits(namespace, condition) for condition in op.match_conditions or ()):
                    found[namespace[: op.max_depth]] = None
            if page["next"] is None:
                return sorted(found)[op.offset : op.offset + op.limit]
            where["cursor"] = page["next"]

    def _item(self, topic: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "value": _value(topic),
            "key": urllib.parse.unquote(topic["title"]),
            "namespace": self._namespace(topic["scope"]),
            "created_at": datetime.fromisoformat(topic["created_at"]),
            "updated_at": datetime.fromisoformat(topic["updated_at"]),
        }


def _segment(label: str) -> str:
    """Return a label of a namespace as a segment of a scope. Characters that a scope cannot have are escaped."""
    return re.sub(r"[%/\s\x00-\x1f\x7f]", lambda found: urllib.parse.quote(found[0], safe=""), label)


def _title(key: str) -> str:
    """Return a key as a title. White space at its ends is escaped, because titles have none there."""
    return re.sub(r"%|^\s+|\s+$", lambda found: urllib.parse.quote(found[0], safe=""), key)


def _first_id(scope: str, key: str) -> uuid.UUID:
    """Return the id that an item has unless it was deleted and put again."""
    return uuid.uuid5(_IDS, f"{scope}\n{key}")


async def _query(ask: Ask, members: Mapping[str, Any], scope: str) -> Any:
    body = {"scope": scope, "depth": 0, "include_detached": True, **members}
    return await ask("POST", "/v1/query", json=body, repeatable=True)


async def _read(
    ask: Ask, ids: Sequence[str], scope: str, equal: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return topics with their fields, also archived ones. This counts as a use."""
    if not ids:
        return []
    wanted = {"q": "", "stages": ["structural"], "topic_ids": list(ids), "top_k": len(ids), "include_archived": True}
    reply = await _query(ask, {**wanted, **(equal or {})}, scope)
    return list(reply["candidates"])


async def _ingest(ask: Ask, item: Mapping[str, Any]) -> Any:
    return await ask("POST", "/v1/ingest", json=item, idempotency_key=str(uuid.uuid4()))


async def _extend(
    ask: Ask, topic_id: str, fields: Sequence[Mapping[str, Any]], emptied: Sequence[str], index: object
) -> None:
    """Write fields, and empty others, in requests of ``FIELDS`` fields."""
    categories = [UNSEARCHED] if index is False else []
    for start in range(0, max(len(fields), len(emptied)), FIELDS):
        part = slice(start, start + FIELDS)
        item = {
            "placement": "extend_topic",
            "topic_id": topic_id,
            "fields": fields[part],
            "empty_fields": emptied[part],
        }
        await _ingest(ask, {**item, "categories": categories})


def _field(name: str, value: Any) -> dict[str, Any]:
    """Return a member of a value as a field. What no other type stores unchanged is JSON."""
    match value:
        case bool():
            kind = "bool"
        case int():
            kind = "int"
        case float():
            kind = "float"
        case str() if _is_plain(value):
            kind = "string"
        case _:
            kind, value = "json", json.dumps(value, ensure_ascii=False)
    return {"name": name, "value": value, "field_type": kind, "provenance": "langgraph"}


def _is_plain(text: str) -> bool:
    return bool(text) and text == text.strip() and "\x00" not in text


def _value(topic: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of an item. Empty fields are members that it no longer has."""
    return {
        field["name"]: _read_as(field["field_type"], field["current"]["value"])
        for field in topic["fields"] or ()
        if field["current"]["value"]
    }


def _read_as(kind: str, text: str) -> Any:
    match kind:
        case "bool":
            return text == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "list" | "json":
            return json.loads(text)
    return text


def _equal_values(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filter of the API that covers the equalities of ``wanted`` whose text is known."""
    equal = {}
    for name, value in wanted.items():
        value = value["$eq"] if isinstance(value, Mapping) and set(value) == {"$eq"} else value
        # Equal numbers have several texts, such as 1 and 1.0.
        if isinstance(value, str) and _is_plain(value):
            equal[name] = value
    return {"field_values": dict(list(equal.items())[:20])} if equal else {}


def _holds(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    for name, other in (wanted or {}).items():
        present = value.get(name)
        operators = isinstance(other, Mapping) and other and all(str(each).startswith("$") for each in other)
        for operator, operand in other.items() if operators else [("$eq", other)]:
            if operator not in _ORDER:
                raise ValueError(f"The filter operator {operator} is unknown; use one of {', '.join(_ORDER)}.")
            try:
                if not _ORDER[operator](present, operand):
                    return False
            except TypeError:
                return False
    return True


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
