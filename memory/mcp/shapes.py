"""Shapes of the protocol that the server and its requests share."""

from typing import Any

import mcp_types as types

# The form of the URIs of topics.
TOPIC_URI = "memstate://topics/{topic_id}"
TOPIC_TEMPLATE = types.ResourceTemplate(
    name="topic",
    title="A topic",
    uri_template=TOPIC_URI,
    mime_type="application/json",
    description="One topic with its fields, its links and its state. Archived topics too.",
)


def error_result(sentence: str, members: dict[str, Any]) -> types.CallToolResult:
    """Return an error as the result of a tool. An error does not have the output schema of the tool, so there is no
    structured content."""
    meta: dict[str, Any] = {name: members[name] for name in ("code", "member") if name in members}
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True, _meta=meta or None)
