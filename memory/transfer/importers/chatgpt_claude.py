"""Reads conversations of ChatGPT, Claude and Claude Code (docs/importers.md). Only texts of the person and the model
are kept. A damaged message is counted and left out."""

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from memory.core.errors import MemoryProblem
from memory.core.json_limits import json_guarded
from memory.transfer.importers.draft import Draft, name_shown
from memory.transfer.importers.stream import BYTE_ORDER_MARK, MAX_ENTRY_BYTES, entries_read
from memory.transfer.importers.transcripts import SUBJECT, records_within, transcript_read

_SKIPPED_PARTS = ("parts of messages", "thoughts, calls and results of tools, pictures")
_TOOLS = ("messages of tools and programs", "only texts of the person and the model are kept")
_BRANCH = ("messages of other branches", "only the branch shown last is kept")
_NO_MESSAGE = "This is not a message."
_SPEAKERS = {"human": "user", "user": "user", "assistant": "assistant"}
# What Claude Code writes into the texts of the person: commands and their output, reminders, notices.
_PROGRAM = re.compile(
    r"<((?:command|local-command|system|task|bash|ide|user-prompt)-[a-z-]+)(?:\s[^>]*)?>.*?</\1>"
    r"|^\s*\[Request interrupted[^\]\n]*\]",
    re.DOTALL,
)


class _Node(NamedTuple):
    """A message in a tree. ``speaker`` is empty if it has no text."""

    id: str
    parent: str
    speaker: str


def chatgpt_read(path: Path, scope: str, now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each message of ``conversations.json`` of ChatGPT: a tree of messages for each conversation."""
    return transcript_read(_records(path, _chatgpt_messages), scope, now)


def claude_read(path: Path, scope: str, now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each message of ``conversations.json`` of Claude: a list of messages for each conversation."""
    return transcript_read(_records(path, _claude_messages), scope, now)


def claude_code_read(path: Path, scope: str, now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each line of a session file of Claude Code. The file is read twice, because a later line
    decides whether a message belongs to an abandoned branch. Keeps the ids of all messages in memory."""
    left = _abandoned([node for _draft, line in _lines(path) if (node := _node(line)) is not None])
    return transcript_read((_line_read(draft, line, left) for draft, line in _lines(path)), scope, now)


def _records(path: Path, messages: Callable[[dict[str, Any]], Iterator[Draft]]) -> Iterator[Draft]:
    for entry in entries_read(path, members=("conversations",)):
        if entry.problem or not isinstance(entry.value, dict):
            yield Draft(entry.place, entry.offset, problem=entry.problem or "This is not a conversation.")
        else:
            yield from records_within(entry, list(messages(entry.value)))


def _chatgpt_messages(conversation: dict[str, Any]) -> Iterator[Draft]:
    """Yield the messages from the root to ``current_node``, then the messages of other branches, marked as lost."""
    nodes = conversation.get("mapping")
    if not isinstance(nodes, dict):
        yield Draft(problem="This is not a conversation: it has no mapping.")
        return
    current = conversation.get("current_node")
    key = current if isinstance(current, str) and current in nodes else next(reversed(nodes), None)
    shown: dict[str, None] = {}
    while isinstance(key, str) and key in nodes and key not in shown:
        shown[key] = None
        key = _object(nodes[key]).get("parent")
    about = {"thread_id": conversation.get("conversation_id") or conversation.get("id")}
    about[SUBJECT] = conversation.get("title")
    for key in (*reversed(shown), *(other for other in nodes if other not in shown)):
        message = nodes[key].get("message") if isinstance(nodes[key], dict) else nodes[key]
        if not isinstance(message, dict):
            # The root has no message.
            yield from [] if message is None else [Draft(problem=_NO_MESSAGE)]
            continue
        author, content, more = (_object(message.get(name)) for name in ("author", "content", "metadata"))
        role = _SPEAKERS.get(str(author.get("role")))
        spoken = content.get("content_type", "text") in ("text", "multimodal_text")
        hidden = more.get("is_visually_hidden_from_conversation") or message.get("recipient", "all") != "all"
        if key not in shown:
            yield Draft(lost=[_BRANCH])
        elif not role or not spoken or hidden:
            yield Draft(lost=[_TOOLS])
        else:
            time = message.get("create_time")
            yield Draft(value={"role": role, "content": content.get("parts"), "time": time, **about})


def _claude_messages(conversation: dict[str, Any]) -> Iterator[Draft]:
    """Yield the messages in their order."""
    found = conversation.get("chat_messages")
    if not isinstance(found, list):
        yield Draft(problem="This is not a conversation: it has no chat_messages.")
        return
    about = {"thread_id": conversation.get("uuid"), SUBJECT: conversation.get("name")}
    left = _abandoned(
        [
            _Node(str(each.get("uuid")), str(each.get("parent_message_uuid")), str(each.get("sender")))
            for each in map(_object, found)
            if each.get("uuid")
        ]
    )
    for message in map(_object, found):
        role = _SPEAKERS.get(str(message.get("sender")))
        if str(message.get("uuid")) in left:
            yield Draft(lost=[_BRANCH])
        elif role is None:
            yield Draft(problem=_NO_MESSAGE)
        else:
            texts, skipped = _blocks(message.get("content"))
            lost = [_SKIPPED_PARTS] if skipped else []
            if message.get("attachments") or message.get("files"):
                lost.append(("attachments", "only texts are kept"))
            content, time = texts or message.get("text"), message.get("created_at")
            yield Draft(value={"role": role, "content": content, "time": time, **about}, lost=lost)


def _lines(path: Path) -> Iterator[tuple[Draft, Any]]:
    """Yield (draft, value) for each line that is not empty. The rest of a line that is too long counts as a line."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_ENTRY_BYTES), b""), start=1):
            offset += len(line)
            draft, value = Draft(f"Line {number}", offset), None
            if not (stripped := line.removeprefix(BYTE_ORDER_MARK).strip()):
                continue
            try:
                value = json_guarded(stripped, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH, what="The line")
            except MemoryProblem as problem:
                draft.problem = problem.sentence
            yield draft, value


def _line_read(draft: Draft, line: Any, left: set[str]) -> Draft:
    kind = _object(line).get("type")
    message = _object(line).get("message")
    if draft.problem:
        return draft
    if not isinstance(kind, str):
        draft.problem = "This is not a line of a session: it has no type."
    elif kind not in _SPEAKERS:
        draft.lose(f"lines of the type {name_shown(kind)}", "they are not messages")
    elif not isinstance(message, dict):
        draft.problem = _NO_MESSAGE
    elif any(line.get(name) for name in ("isMeta", "isSidechain", "isCompactSummary")):
        draft.lose(*_TOOLS)
    elif str(line.get("uuid")) in left:
        draft.lose(*_BRANCH)
    else:
        texts, skipped = _blocks(message.get("content"))
        if kind == "user":
            spoken = [said for text in texts if (said := _PROGRAM.sub("", text).strip())]
            texts, skipped = spoken, skipped or spoken != texts
        if skipped:
            draft.lose(*(_SKIPPED_PARTS if texts else _TOOLS))
        if texts or not skipped:
            draft.value = {"role": _SPEAKERS[kind], "content": texts, "time": line.get("timestamp")}
            draft.value["session_id"] = line.get("sessionId")
    return draft


def _node(line: Any) -> _Node | None:
    """Return the place of a line of a session in its tree, or None if it has none."""
    if not isinstance(line, dict) or not isinstance(line.get("uuid"), str) or line.get("isSidechain"):
        return None
    texts, _skipped = _blocks(_object(line.get("message")).get("content"))
    speaker = line["type"] if texts and not line.get("isMeta") and line.get("type") in _SPEAKERS else ""
    return _Node(line["uuid"], str(line.get("parentUuid") or line.get("logicalParentUuid")), speaker)


def _abandoned(nodes: Sequence[_Node]) -> set[str]:
    """Return the messages of branches that were given up: of several messages of one speaker after the same message,
    all but the one whose branch was continued last. ``nodes`` are in the order of the file. Linear time."""
    known = {node.id: node for node in nodes}
    kept: dict[tuple[str, str], str] = {}
    for node in reversed(nodes):
        here: _Node | None = node
        while here is not None and (here.parent, here.speaker) not in kept:
            kept[here.parent, here.speaker] = here.id
            here = known.get(here.parent)
    left: set[str] = set()
    for node in nodes:
        given_up = node.speaker and node.parent in known and kept[node.parent, node.speaker] != node.id
        if given_up or node.parent in left:
            left.add(node.id)
    return left


def _blocks(content: Any) -> tuple[list[str], bool]:
    """Return (texts, whether there are other blocks) for the content of a message, which is a text or a list of
    blocks."""
    if isinstance(content, str):
        return ([content] if content.strip() else []), False
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    kept = [text for text in texts if isinstance(text, str) and text.strip()]
    return kept, len(texts) < len(blocks)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
