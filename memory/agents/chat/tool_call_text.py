"""The short records of tool calls that are stored with a conversation. They do not contain the results."""

from typing import Any

from memory.agents.tools.tool import ToolCalled
from memory.core.truncate import text_cut

# The maximum number of characters of one text in the stored arguments. The whole text is in the topic.
_MAX_TEXT = 600
_MAX_LIST = 20
_MAX_SUMMARY = 300
# The summaries of some tools. ``query`` and ``history`` have a count instead, and all other tools have "Read."
_SUMMARIES = {
    "why": "Explained.",
    "new_topic": "Remembered.",
    "extend_topic": "Written.",
    "version_field": "Written.",
    "link": "Linked.",
}


def call_record(called: ToolCalled) -> dict[str, Any]:
    """Return the call as a turn stores it: without the result, with long arguments shortened."""
    return {
        "tool": called.tool[:100],
        "arguments": _shortened(called.arguments),
        "ok": called.ok,
        "ms": round(called.ms, 1),
        "topic_ids": [str(each) for each in called.topic_ids],
        "seen": [str(each) for each in called.seen],
        "said": _summary(called)[:_MAX_SUMMARY],
    }


def _summary(called: ToolCalled) -> str:
    """Return a short summary of the result, without any text of a topic."""
    result = called.result if isinstance(called.result, dict) else {}
    if not called.ok:
        return str(result.get("error", "It was refused."))
    if called.tool == "query":
        return _counted(len(called.topic_ids), "memory found", "memories found")
    if called.tool == "history":
        return _counted(len(result.get("revisions", ())) + result.get("left_out", 0), "value read", "values read")
    return _SUMMARIES.get(called.tool, "Read.")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}."


def _shortened(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return text_cut(value, _MAX_TEXT)
    if depth >= 4:
        return None if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {str(name)[:100]: _shortened(each, depth + 1) for name, each in list(value.items())[:_MAX_LIST]}
    if isinstance(value, list):
        return [_shortened(each, depth + 1) for each in value[:_MAX_LIST]]
    return value
