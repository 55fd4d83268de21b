"""The tool loop: the model is asked, what it calls is called and answered, until it has its last word or is stopped."""

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
# Calls of one round beyond this are answered with a refusal: no task needs them, and each may write.
MOST_CALLS = 32
# So many characters of arguments and results are in the log of one loop; of what goes beyond, only the call.
MOST_LOGGED = 500_000
_LEFT_OUT = {"left_out": "This log has become too long; the model was told the result."}
# What is left of the time when a request has used it up.
_MOMENT = 0.1


@dataclass(slots=True)
class LoopEnd:
    """How a loop ended. ``rounds`` counts the times that tools were used; ``problem`` is why the model was of no more
    help, if ``ended`` is ``model``. ``reply`` is the model's last word; empty if it did not get to one."""

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
    """Speak with the model until it calls no more tools, has used them ``most_rounds`` times, or ``seconds`` are over.

    ``messages`` grows by what is said. ``tick`` is told each call when it is answered, with what of its result the
    model is told; ``LoopEnd.log`` holds the same, as far as all of it is no longer than ``MOST_LOGGED``. ``go_on`` is
    asked before each request and after it, and False ends the loop as time does. Calls of one round are made one after
    the other, as long as there is time. Costs no queries but those of the tools. Raises what the store raises, and no
    ``ModelProblem``: what was written is written, so it is told in ``LoopEnd.problem``.
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
                called = _not_made(call.name, "The time is over")
            else:
                called = toolbox.call(call.name, call.arguments)
            called = replace(called, result=result_bounded(called.result))
            logged, room = _logged(called, room)
            end.log.append(logged)
            if tick is not None:
                tick(called)
            messages.append(result_message(call, called.result, mark=mark))


def _logged(called: ToolCalled, room: int) -> tuple[ToolCalled, int]:
    """Return a call as the log holds it, and how much room that leaves."""
    size = sum(len(json.dumps(each, ensure_ascii=False)) for each in (called.arguments, called.result))
    if size <= room:
        return called, room - size
    return replace(called, arguments={}, result=dict(_LEFT_OUT)), room


def _not_made(name: str, why: str) -> ToolCalled:
    return ToolCalled(name, {}, {"error": f"{why}; this one was not called."}, False, 0.0)
