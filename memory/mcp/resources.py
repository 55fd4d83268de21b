"""Topics as resources: ``memstate://topics/{topic_id}``, and pages of the newest topics."""

import datetime as dt
import json
import uuid
from typing import Any

from memory.access.principal import Principal
from memory.agents.tools.read_tools import reading_tools
from memory.agents.tools.tool import Toolbox
from memory.core.callbacks import Clock
from memory.core.errors import NotVisible
from memory.mcp.shapes import TOPIC_URI
from memory.recall.lookup import TopicListFilter, topics_list
from memory.recall.replies import TopicRow

PREFIX = TOPIC_URI.removesuffix("{topic_id}")
PAGE = 50
# The most characters of a title or summary in a list.
_SHORT = 300


def resources_page(
    cursor: str | None, *, principal: Principal, now: dt.datetime
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of the topics in the scope of the key, newest first, and the cursor of the next page.

    Archived topics are left out. One query. Raises ``ValueRefused`` for an invalid cursor.
    """
    page = topics_list(TopicListFilter(scope=principal.scope), cursor=cursor, limit=PAGE, now=now)
    return [_resource(topic) for topic in page["items"]], page["next"]


def resource_read(uri: str, *, principal: Principal, clock: Clock) -> str:
    """Return one topic as JSON text, like the tool ``topic``. Five queries.

    Raises ``NotVisible`` if the URI names no topic that this key can see.
    """
    try:
        topic_id = uuid.UUID(uri.removeprefix(PREFIX) if uri.startswith(PREFIX) else "")
    except ValueError:
        raise NotVisible(
            f"Resource {uri[:200]!r} does not exist. Topic URIs have the form {TOPIC_URI}, with a UUID."
        ) from None
    called = Toolbox(reading_tools(principal, clock=clock)).call("topic", {"topic_id": str(topic_id)})
    if not called.ok:
        raise NotVisible(called.result["error"], code=called.result["code"])
    return json.dumps(called.result, ensure_ascii=False)


def _resource(topic: TopicRow) -> dict[str, Any]:
    return {
        "uri": PREFIX + topic["topic_id"],
        "name": topic["topic_id"],
        "title": topic["title"][:_SHORT],
        "description": topic["summary"][:_SHORT] or None,
    }
