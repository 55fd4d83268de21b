"""Answers to the requests of MCP clients: tools and resources, in the types of the protocol."""

import datetime as dt
import functools
import json
from typing import Any

import mcp_types as types
from pydantic import BaseModel

from memory.access.principal import Principal
from memory.agents.tools.tool import Tool
from memory.core.callbacks import Clock
from memory.mcp.resources import resource_read, resources_page
from memory.mcp.results import RESULTS
from memory.mcp.shapes import error_result
from memory.mcp.tools import tool_call, tools_make

# A second call of these tools with the same arguments has no effect. All other writing tools write again.
_IDEMPOTENT = frozenset({"link"})


def tools_listed(principal: Principal, *, clock: Clock) -> types.ListToolsResult:
    """Return the tools that this key may call. No query."""
    return types.ListToolsResult(tools=[_tool_as_protocol(tool) for tool in tools_make(principal, clock=clock)])


def tool_called(
    name: str, arguments: dict[str, Any] | None, *, principal: Principal, clock: Clock
) -> types.CallToolResult:
    """Call a tool and return its result, which may be an error. Queries and exceptions are those of ``tool_call``."""
    # The arguments are passed as JSON text, so that they are checked like those of any other request.
    called = tool_call(name, json.dumps(arguments or {}), principal=principal, clock=clock)
    if not called.ok:
        return error_result(str(called.result["error"]), called.result)
    text = json.dumps(called.result, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=called.result)


def resources_listed(cursor: str | None, *, principal: Principal, now: dt.datetime) -> types.ListResourcesResult:
    """Return a page of topics. Queries and exceptions are those of ``resources_page``."""
    found, following = resources_page(cursor, principal=principal, now=now)
    return types.ListResourcesResult(
        resources=[types.Resource(mime_type="application/json", **each) for each in found], next_cursor=following
    )


def resource_content(uri: str, *, principal: Principal, clock: Clock) -> types.ReadResourceResult:
    """Return one topic. Queries and exceptions are those of ``resource_read``."""
    text = resource_read(uri, principal=principal, clock=clock)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
    )


@functools.cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    # The schema is cached, because building it takes a millisecond.
    return model.model_json_schema()


def _tool_as_protocol(tool: Tool[Any]) -> types.Tool:
    title = tool.name.replace("_", " ").capitalize()
    return types.Tool(
        name=tool.name,
        title=title,
        description=tool.description,
        input_schema=tool.schema(),
        output_schema=_schema(RESULTS[tool.name]),
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=not tool.writes,
            destructive_hint=tool.name == "forget",
            idempotent_hint=not tool.writes or tool.name in _IDEMPOTENT,
            open_world_hint=False,
        ),
    )
