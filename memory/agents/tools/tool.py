"""Tool and Toolbox: functions that a model can call, with the schemas of their arguments.

The errors of a call are returned to the model. Only database errors are raised.
"""

import functools
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from django.db import OperationalError, connection
from pydantic import BaseModel, ConfigDict, ValidationError

from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.json_limits import json_guarded
from memory.core.problem_codes import ProblemCode
from memory.core.replies import TypedDict, doc
from memory.core.requests import RequestModel, validation_problem
from memory.models.locks import lock_missed


class Arguments(RequestModel):
    """The arguments of a tool."""

    model_config = ConfigDict(frozen=True)


A = TypeVar("A", bound=Arguments)
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The reply of a tool. ``result`` can be encoded as JSON. ``topic_ids`` are the topics that the tool read or wrote.
    ``seen`` are other topics of which the result contains a part, such as a title."""

    result: Any
    topic_ids: Sequence[uuid.UUID] = ()
    seen: Sequence[uuid.UUID] = ()


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """A function that the model can call by name. ``run`` raises ``MemoryProblem`` to refuse a call."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A], ToolReply]
    writes: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, for models: see ``schema_plain``."""
        return schema_plain(self.arguments)


# What the function calling of all vendors understands.
_KEYWORDS = frozenset(
    ("type", "properties", "items", "required", "enum", "description", "minimum", "maximum", "minLength", "maxLength",
     "minItems", "maxItems")
)  # fmt: skip
_FORMATS = {
    "uuid": "A UUID.",
    "date": "A date, such as 2026-03-01.",
    "date-time": "A time in ISO 8601, such as 2026-03-01T09:30:00Z.",
}


@functools.cache
def schema_plain(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of ``model`` without references and alternatives, with ``_KEYWORDS`` only. A member that
    may be null is one that may be left out."""
    whole = model.model_json_schema()
    definitions = whole.get("$defs", {})

    def plain(schema: Mapping[str, Any]) -> dict[str, Any]:
        schema = dict(schema)
        if "$ref" in schema:
            return plain({**definitions[schema.pop("$ref").rpartition("/")[2]], **schema})
        if "anyOf" in schema:
            (only,) = (each for each in schema.pop("anyOf") if each != {"type": "null"})
            return plain({**only, **schema})
        found: dict[str, Any] = {name: value for name, value in schema.items() if name in _KEYWORDS}
        if (meant := _FORMATS.get(schema.get("format", ""))) is not None:
            found["description"] = f"{found.get('description', '')} {meant}".strip()
        if "properties" in found:
            found["properties"] = {name: plain(member) for name, member in found["properties"].items()}
        if "items" in found:
            found["items"] = plain(found["items"])
        return found

    return plain(whole)


class ToolCallOut(TypedDict):
    """A function that the model called."""

    tool: str
    arguments: Annotated[Any, doc("As the model sent them; text if they were not JSON.")]
    result: Annotated[
        Any,
        doc(
            "The result as sent to the model, at most 16,000 characters, with left_out where a list "
            "was cut; {error} if the call was refused."
        ),
    ]
    ok: bool
    ms: float
    topic_ids: Annotated[list[uuid.UUID], doc("The topics that the call read or wrote.")]


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """One call and its result. ``arguments`` are the parsed JSON, or the text if it is not valid JSON."""

    tool: str
    arguments: Any
    result: Any
    ok: bool
    ms: float
    topic_ids: list[uuid.UUID] = field(default_factory=list)
    seen: list[uuid.UUID] = field(default_factory=list)
    # Whether the call may have changed the store.
    wrote: bool = False

    def as_json(self) -> ToolCallOut:
        """Return the call in the form that the API returns."""
        return {
            "tool": self.tool,
            "arguments": self.arguments,
            "result": self.result,
            "ok": self.ok,
            "ms": round(self.ms, 1),
            "topic_ids": self.topic_ids,
        }


class Toolbox:
    """The tools that a model may call in one dialogue."""

    def __init__(self, tools: Sequence[Tool[Any]]) -> None:
        self.tools: Mapping[str, Tool[Any]] = {tool.name: tool for tool in tools}

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> ToolCalled:
        """Call a tool and return the call with its result or error. ``arguments`` are JSON text or an object.

        No queries except those of the tool. Raises database errors. Outside a transaction, a lock time-out becomes the
        error of the call.
        """
        started = time.perf_counter()
        parsed: Any = arguments
        reply, ok, tool = ToolReply({}), False, self.tools.get(name)
        try:
            if isinstance(arguments, str):
                parsed = json_guarded(arguments.encode() or b"{}", max_depth=_DEPTH, what="The text of the arguments")
            if tool is None:
                raise ValueRefused(
                    f"Tool {name[:100]!r} does not exist. Tools are: {', '.join(self.tools)}.",
                    code=ProblemCode.NOT_FOUND,
                )
            reply, ok = tool.run(tool.arguments.model_validate(parsed)), True
        except ValidationError as problem:
            reply = _refusal(validation_problem(problem.errors()))
        except MemoryProblem as problem:
            reply = _refusal(problem)
        except OperationalError as problem:
            if connection.in_atomic_block or not lock_missed(problem):
                raise
            sentence = "The same topics are being changed by another request. Try again."
            reply = ToolReply({"error": sentence, "code": ProblemCode.BUSY})
        ms = (time.perf_counter() - started) * 1000
        topic_ids = list(dict.fromkeys(reply.topic_ids))
        seen = [each for each in dict.fromkeys(reply.seen) if each not in set(topic_ids)]
        return ToolCalled(
            name, parsed, reply.result, ok, ms, topic_ids, seen, wrote=ok and tool is not None and tool.writes
        )


def _refusal(problem: MemoryProblem) -> ToolReply:
    return ToolReply({"error": problem.sentence, **problem.as_members()})
