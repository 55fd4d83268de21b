"""Prepares the turns of a conversation for display: tool calls, their arguments as text, and the topics they name."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.access.principal import Principal
from memory.agents.study.progress import StudyOut, study_as_json
from memory.forgetting.manual_actions import MAX_AT_ONCE, TopicState, topics_states
from memory.models import ConversationTurn

# Texts with more characters are collapsed to their beginning.
FOLDED_CHARS = 1200
# The number of calls at the end of a turn that stay expanded.
LAST_CALLS = 8
# The most topics that are listed per call.
MAX_TOPICS = 8

TOOLS = {
    "query": "Searched the memory",
    "topic": "Read a memory",
    "history": "Read the history of a field",
    "why": "Asked for the reasons",
    "new_topic": "Remembered something new",
    "extend_topic": "Added to a memory",
    "version_field": "Changed a value",
    "link": "Linked two memories",
}
INTENTS = {"query": "asks", "ingest": "remembers", "both": "remembers and asks"}
SOURCES = {"override": "as you chose", "model": "as the model understood it", "rule": "by rules"}
# For each way in which a turn can end early: the sentence to show.
ENDINGS = {
    "stopped": "It was stopped.",
    "failed": "A server error occurred; see the server log. Changes made before it are kept.",
    "lost": "The process that answered has ended. Changes made before are kept.",
}
FAULTS = {"model": "model", "failed": "server", "lost": "server"}


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One argument of a call. ``topic`` is set if the value is the id of a topic."""

    name: str
    text: str
    topic: TopicState | None = None


@dataclass(frozen=True, slots=True)
class CallShown:
    """One call of a tool."""

    tool: str
    words: str
    ok: bool
    ms: float
    said: str
    arguments: list[CallArgument]
    topics: list[TopicState]
    more: int


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text. ``begin`` is its beginning if the text is long, otherwise empty."""

    whole: str
    begin: str = ""


@dataclass(frozen=True, slots=True)
class TurnShown:
    """A message and its answer."""

    place: int
    at: Any
    working: bool
    message: FoldedText
    reply: FoldedText
    intent: str
    model: str
    rounds: int
    ended: str
    # The cause of a missing answer: ``model``, ``server`` or "".
    failed: str
    calls: list[CallShown] = field(default_factory=list)
    study: StudyOut | None = None

    @property
    def earlier(self) -> list[CallShown]:
        """The calls to collapse: all but the last ``LAST_CALLS``. Empty while the turn runs, or if calls are few."""
        return [] if self.working or len(self.calls) <= 2 * LAST_CALLS else self.calls[:-LAST_CALLS]

    @property
    def latest(self) -> list[CallShown]:
        """The calls after ``earlier``."""
        return self.calls[len(self.earlier) :]


def turns_shown(turns: Sequence[ConversationTurn], *, principal: Principal) -> list[TurnShown]:
    """Return turns as their page shows them. At most one query, for the topics that the calls name."""
    ids = list(dict.fromkeys(each for turn in turns for call in turn.tool_log for each in _ids(call)))[:MAX_AT_ONCE]
    known = {topic.id: topic for topic in topics_states(ids, principal=principal)} if ids else {}
    return [_turn(turn, known) for turn in turns]


def _turn(turn: ConversationTurn, known: Mapping[uuid.UUID, TopicState]) -> TurnShown:
    intent = ", ".join(part for part in (INTENTS.get(turn.intent, ""), SOURCES.get(turn.intent_source, "")) if part)
    return TurnShown(
        turn.place,
        turn.at,
        turn.ended == ConversationTurn.Ended.WORKING,
        _text(turn.message),
        _text(turn.reply),
        intent,
        turn.model,
        turn.rounds,
        _ending(turn),
        FAULTS.get(turn.ended, ""),
        [_call(call, known) for call in turn.tool_log],
        study_as_json(turn.study) if turn.study else None,
    )


def _ending(turn: ConversationTurn) -> str:
    # If a turn was refused, its reply already gives the reason.
    refused = turn.ended == ConversationTurn.Ended.FAILED and turn.reply
    return "" if refused else ENDINGS.get(turn.ended, "")


def _call(call: Mapping[str, Any], known: Mapping[uuid.UUID, TopicState]) -> CallShown:
    tool = str(call.get("tool", ""))
    arguments = call.get("arguments")
    pairs = arguments.items() if isinstance(arguments, dict) else [("sent", arguments)] if arguments else []
    topics = [known[each] for each in _touched(call) if each in known]
    return CallShown(
        tool,
        TOOLS.get(tool, "Called an unknown tool") if tool else "A call",
        bool(call.get("ok")),
        float(call.get("ms") or 0),
        str(call.get("said", "")),
        [each for name, value in pairs for each in _arguments(str(name), value, known)],
        topics[:MAX_TOPICS],
        max(0, len(topics) - MAX_TOPICS),
    )


def _arguments(name: str, value: Any, known: Mapping[uuid.UUID, TopicState]) -> Iterator[CallArgument]:
    """Yield an argument as one line of text, or a list of objects as one line for each object."""
    if value in (None, "", [], {}):
        return
    words = name.replace("_", " ")
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        for each in value:
            if "name" in each:
                yield CallArgument(f"field {each['name']}", str(each.get("value", "")))
            elif "to_topic_id" in each:
                yield _argument(f"{each.get('kind', 'related')} →", each["to_topic_id"], known)
            else:
                yield CallArgument(words, _flat(each))
        return
    yield _argument(words.removesuffix(" id"), value, known)


def _argument(name: str, value: Any, known: Mapping[uuid.UUID, TopicState]) -> CallArgument:
    named = _id(value)
    return CallArgument(name, _flat(value), known.get(named) if named else None)


def _flat(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_flat(each)}" for name, each in value.items())
    return str(value)


def _touched(call: Mapping[str, Any]) -> list[uuid.UUID]:
    return [found for each in call.get("topic_ids", ()) if (found := _id(each))]


def _ids(call: Mapping[str, Any]) -> Iterator[uuid.UUID]:
    yield from _touched(call)
    arguments = call.get("arguments")
    for value in arguments.values() if isinstance(arguments, dict) else ():
        for each in value if isinstance(value, list) else [value]:
            if found := _id(each.get("to_topic_id") if isinstance(each, dict) else each):
                yield found


def _id(value: Any) -> uuid.UUID | None:
    """Return a text as an id; None for anything else, such as an id that a purge has masked."""
    try:
        return uuid.UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(whole: str) -> FoldedText:
    return FoldedText(whole, f"{whole[: FOLDED_CHARS // 2].rstrip()}…" if len(whole) > FOLDED_CHARS else "")
