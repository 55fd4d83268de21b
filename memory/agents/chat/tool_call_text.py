"""Short records of tool calls, which are stored with a conversation: ids, counts and arguments, but no results."""

from typing import Any

from memory.agents.tools.tool import ToolCalled
from memory.core.truncate import text_cut

# The most characters of one text in the arguments. The whole text is in the topic.
_MOST_TEXT = 600
_MOST_LIST = 20
_MOST_SUMMARY = 300


def call_record(called: ToolCalled) -> dict[str, Any]:
    """Return the tool call in the form that a turn stores: without the result, and with long arguments shortened."""
    return {
        "tool": called.tool[:100],
        "arguments": _shortened(called.arguments),
        "ok": called.ok,
        "ms": round(called.ms, 1),
        "topic_ids": [str(each) for each in called.topic_ids],
        "seen": [str(each) for each in called.seen],
        "said": call_summary(called)[:_MOST_SUMMARY],
    }


def call_summary(called: ToolCalled) -> str:
    """Return a short summary of the result of a call, without any text of a topic."""
    result = called.result if isinstance(called.result, dict) else {}
    if not called.ok:
        return str(result.get("error", "It was refused."))
    match called.tool:
        case "query":
            return _counted(len(called.topic_ids), "topic found", "topics found")
        case "history":
            return _counted(len(result.get("revisions", ())) + result.get("left_out", 0), "value read", "values read")
        case "why":
            return "Explained."
        case "new_topic":
            return "Remembered."
        case "extend_topic" | "version_field":
            return "Written."
        case "link":
            return "Linked."
        case _:
            return "Read."


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}."


def _shortened(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return text_cut(value, _MOST_TEXT)
    if depth >= 4:
        return None if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {str(name)[:100]: _shortened(each, depth + 1) for name, each in list(value.items())[:_MOST_LIST]}
    if isinstance(value, list):
        return [_shortened(each, depth + 1) for each in value[:_MOST_LIST]]
    return value
