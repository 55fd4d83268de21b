"""The tool loop: asks the model, makes the tool calls that it requests, and repeats until the model answers."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from memory.agents.tools.tool import Toolbox, ToolCalled
from memory.llm.chat_request import Purpose
from memory.llm.client import ModelProblem
from memory.llm.dialogue import Message, ToolSpec, dialogue_turn, result_bounded, result_message, turn_message

Ended = Literal["done", "rounds", "time", "model"]
# More calls in one round are refused. No task needs so many, and each call may write.
MOST_CALLS = 32
# The most characters of arguments and results in the log of one loop. Later calls are logged without both.
MOST_LOGGED = 500_000
_LEFT_OUT = {"left_out": "Left out because the log is too long. The model got the result."}
# If fewer seconds than this remain after a time-out of the model, the time of the loop is over.
_MOMENT = 0.1


@dataclass(slots=True)
class LoopEnd:
    """The result of a loop. ``reply`` is the last text of the model; empty if there is none. ``rounds`` counts the
    rounds of tool calls. ``problem`` is the failure of the model, if ``ended`` is ``model`` or ``time``."""

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

    The new messages are appended to ``messages``. ``tick`` is called after each tool call with the result that the
    model gets. ``LoopEnd.log`` contains the same results, up to ``MOST_LOGGED`` characters. ``go_on`` is called before
    and after each request; if it returns False, the loop ends as if the time were over. The calls of a round are made
    one after the other while there is time. Costs only the queries of the tools. Raises the errors of the store. A
    ``ModelProblem`` is not raised but returned in ``LoopEnd.problem``, because tools may have written something.
    """
    until = time.monotonic() + seconds
    specs = [ToolSpec(tool.name, tool.description, tool.schema()) for tool in toolbox.tools.values()]
    end, room = LoopEnd(), MOST_LOGGED
    while True:
        left = until - time.monotonic()
        if left <= 0 or not go_on():
            end.ended = "time"
            return end
        try:
            turn = dialogue_turn(messages, tools=specs, purpose=purpose, model=model, within=left)
        except ModelProblem as problem:
            over = problem.kind == "timeout" and until - time.monotonic() < _MOMENT
            end.ended, end.problem = "time" if over else "model", problem
            return end
        end.reply = turn.text or end.reply
        if not turn.calls:
            end.ended = "done"
            return end
        if end.rounds >= most_rounds:
            end.ended = "rounds"
            return end
        if not go_on():
            end.ended = "time"
            return end
        end.rounds += 1
        messages.append(turn_message(turn))
        for number, call in enumerate(turn.calls):
            if number >= MOST_CALLS:
                called = _not_made(call.name, f"At most {MOST_CALLS} tools can be called at once")
            elif number and time.monotonic() >= until:
                called = _not_made(call.name, "The time limit was reached")
            else:
                called = toolbox.call(call.name, call.arguments)
            called = replace(called, result=result_bounded(called.result))
            logged, room = _logged(called, room)
            end.log.append(logged)
            if tick is not None:
                tick(called)
            messages.append(result_message(call, called.result, mark=mark))


def _logged(called: ToolCalled, room: int) -> tuple[ToolCalled, int]:
    """Return (the call for the log, the number of characters that remain for later calls)."""
    size = sum(len(json.dumps(each, ensure_ascii=False)) for each in (called.arguments, called.result))
    if size <= room:
        return called, room - size
    return replace(called, arguments={}, result=dict(_LEFT_OUT)), room


def _not_made(name: str, why: str) -> ToolCalled:
    return ToolCalled(name, {}, {"error": f"{why}; this one was not called."}, False, 0.0)
