"""Tool and Toolbox: a function of a room with the schema of its arguments; called with what a model wrote.

Nothing that forgets is a tool, and no box holds more than its maker put in: a call of anything else is answered as
unknown. Whatever is wrong with a call is an answer to the model and never an exception, except where the store itself
fails.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from django.db import OperationalError, connection
from pydantic import BaseModel, ConfigDict, ValidationError

from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.json_limits import json_guarded
from memory.core.problem_codes import ProblemCode, validation_code
from memory.core.replies import TypedDict, doc
from memory.models.locks import lock_missed


class Arguments(BaseModel):
    """What a tool takes. Members that are not known are refused, so that a model learns of its mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)
_DEPTH = 12
# So many things that are wrong with one call are told.
_MOST_WRONG = 5


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool gives back: anything that JSON can say, the topics that it read or wrote, and others of which
    something is to be seen in it, such as the title of a neighbor."""

    result: Any
    topic_ids: Sequence[uuid.UUID] = ()
    seen: Sequence[uuid.UUID] = ()


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """A function that may be called by name. ``run`` raises ``MemoryProblem`` for what it refuses."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A], ToolReply]
    writes: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments: an object."""
        return self.arguments.model_json_schema()


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
    """One call and what came of it. ``arguments`` are as the model sent them, or their text if they are no JSON."""

    tool: str
    arguments: Any
    result: Any
    ok: bool
    ms: float
    topic_ids: list[uuid.UUID] = field(default_factory=list)
    # Others of which something was to be seen.
    seen: list[uuid.UUID] = field(default_factory=list)
    # Whether the store is another than before.
    wrote: bool = False

    def as_json(self) -> ToolCallOut:
        """Return the members of the wire format."""
        return {
            "tool": self.tool,
            "arguments": self.arguments,
            "result": self.result,
            "ok": self.ok,
            "ms": round(self.ms, 1),
            "topic_ids": self.topic_ids,
        }


class Toolbox:
    """The tools of one conversation, session or segment."""

    def __init__(self, tools: Sequence[Tool[Any]]) -> None:
        self.tools: Mapping[str, Tool[Any]] = {tool.name: tool for tool in tools}

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> ToolCalled:
        """Call a tool with arguments as JSON text or as an object, and return what came of it.

        Costs what the tool costs. Raises nothing for a wrong call, nor where the embedder is away; what the database
        raises goes on.
        """
        started = time.perf_counter()
        told: Any = arguments
        reply, ok, wrote = ToolReply({}), False, False
        try:
            if isinstance(arguments, str):
                told = json_guarded(arguments.encode() or b"{}", max_depth=_DEPTH, what="The text of the arguments")
            tool = self.tools.get(name)
            if tool is None:
                raise ValueRefused(
                    f"There is no tool {name[:100]!r}. There are: {', '.join(self.tools)}.",
                    code=ProblemCode.TOOL_NOT_FOUND,
                )
            reply, ok = tool.run(tool.arguments.model_validate(told)), True
            wrote = tool.writes
        except ValidationError as problem:
            wrong = [
                f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
                for each in problem.errors()[:_MOST_WRONG]
            ]
            sentence = "The arguments do not fit. " + "; ".join(wrong)
            reply = ToolReply({"error": sentence, "code": validation_code(problem.errors())})
        except MemoryProblem as problem:
            reply = ToolReply({"error": problem.sentence, "code": problem.code})
        except OperationalError as problem:
            if connection.in_atomic_block or not lock_missed(problem):
                raise
            sentence = "Others are writing to the same topics; try again."
            reply = ToolReply({"error": sentence, "code": ProblemCode.DATABASE_BUSY})
        ms = (time.perf_counter() - started) * 1000
        topic_ids = list(dict.fromkeys(reply.topic_ids))
        seen = [each for each in dict.fromkeys(reply.seen) if each not in set(topic_ids)]
        return ToolCalled(name, told, reply.result, ok, ms, topic_ids, seen, wrote)
