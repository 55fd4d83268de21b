"""The tool loop: asks the model, makes the tool calls that the model requests, and repeats until the model answers."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from memory.agents.tools.tool import Toolbox, ToolCalled
from memory.llm.chat_request import Purpose
from memory.llm.dialogue import Message, ToolSpec, dialogue_turn, result_bounded, result_message, turn_message
from memory.llm.wire import ModelProblem

Ended = Literal["done", "rounds", "time", "model"]
# The maximum number of tool calls in one round. Further calls are refused, because no task needs so many, and each call
# may write.
MAX_CALLS = 32
# The maximum number of characters of arguments and results that one loop logs. A call that would exceed this limit is
# logged without its arguments and its result.
MAX_LOGGED = 500_000
_LEFT_OUT = {"left_out": "Left out because the log is too long. The model got the result."}
# If the model times out when fewer than these seconds remain, the loop ends because of its own time limit.
_MOMENT = 0.1


@dataclass(slots=True)
class LoopEnd:
    """The result of a loop: the model's last text, the number of rounds, the logged calls, and the failure, if any."""

    reply: str = ""
    rounds: int = 0
    ended: Ended = "done"
    problem: ModelProblem | None = None
    log: list[ToolCalled] = field(default_factory=list)


def tool_loop_run(
    messages: list[Message],
    toolbox: Toolbox,
    *,
    mark: str,
    most_rounds: int,
    seconds: float,
    purpose: Purpose,
    model: str | None = None,
    tick: Callable[[ToolCalled], None] | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> LoopEnd:
    """Run the dialogue until the model calls no more tools, ``most_rounds`` rounds are done, or ``seconds`` are over.

    The new messages are appended to ``messages``. ``tick`` is called after each tool call, with the result that the
    model gets. ``go_on`` is called before and after each request to the model. If it returns False, the loop ends as if
    the time were over. No queries except those of the tools. Raises database errors. A ``ModelProblem`` is not raised
    but returned in ``LoopEnd.problem``, because tools may have written something.
    """
    until = time.monotonic() + seconds
    specs = [ToolSpec(tool.name, tool.description, tool.schema()) for tool in toolbox.tools.values()]
    end, room = LoopEnd(), MAX_LOGGED
    while True:
        left = until - time.monotonic()
        if left <= 0 or not go_on():
            return replace(end, ended="time")
        try:
            turn = dialogue_turn(messages, tools=specs, purpose=purpose, model=model, within=left)
        except ModelProblem as problem:
            over = problem.kind == "timeout" and until - time.monotonic() < _MOMENT
            return replace(end, ended="time" if over else "model", problem=problem)
        end.reply = turn.text or end.reply
        if not turn.calls:
            return end
        if end.rounds >= most_rounds:
            return replace(end, ended="rounds")
        if not go_on():
            return replace(end, ended="time")
        end.rounds += 1
        messages.append(turn_message(turn))
        for number, call in enumerate(turn.calls):
            if number >= MAX_CALLS:
                called = _refused_call(call.name, f"At most {MAX_CALLS} tools can be called at once")
            elif number and time.monotonic() >= until:
                called = _refused_call(call.name, "The time limit was reached")
            else:
                called = toolbox.call(call.name, call.arguments)
            called = replace(called, result=result_bounded(called.result))
            logged, room = _logged(called, room)
            end.log.append(logged)
            if tick is not None:
                tick(called)
            messages.append(result_message(call, called.result, mark=mark))


def _logged(called: ToolCalled, room: int) -> tuple[ToolCalled, int]:
    """Return the call for the log, and the number of characters that remain for later calls."""
    size = sum(len(json.dumps(each, ensure_ascii=False)) for each in (called.arguments, called.result))
    if size <= room:
        return called, room - size
    return replace(called, arguments={}, result=dict(_LEFT_OUT)), room


def _refused_call(name: str, why: str) -> ToolCalled:
    return ToolCalled(name, {}, {"error": f"{why}; this one was not called."}, False, 0.0)
