"""Imports conversations of ChatGPT, Claude and Claude Code (docs/importers.md). Only texts of the person and the model
are kept. A damaged message is counted and left out."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from memory.core.errors import MemoryProblem
from memory.core.json_limits import json_guarded
from memory.transfer.importers.draft import name_shown
from memory.transfer.importers.stream import MAX_ENTRY_BYTES, entries_read
from memory.transfer.importers.transcripts import SUBJECT, Chat, Record, records_within

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


def _abandoned(nodes: Sequence[_Node]) -> set[str]:
    """Return the messages of branches that were given up: of several messages of one speaker after the same message,
    all but the one whose branch was continued last. ``nodes`` are in the order of the file. Linear time."""
    last = {node.id: at for at, node in enumerate(nodes)}
    for at in range(len(nodes) - 1, -1, -1):
        node = nodes[at]
        if node.parent in last and node.parent != node.id:
            last[node.parent] = max(last[node.parent], last[node.id])
    branches: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        if node.speaker and node.parent in last:
            branches.setdefault((node.parent, node.speaker), []).append(node.id)
    left: set[str] = set()
    for ids in branches.values():
        kept = max(ids, key=last.__getitem__)
        left.update(each for each in ids if each != kept)
    for node in nodes:
        if node.parent in left:
            left.add(node.id)
    return left


def _node(line: bytes) -> _Node | None:
    """Return the place of a line of a session in its tree, or None if it has none."""
    try:
        value = json_guarded(line, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH, what="The line")
    except MemoryProblem:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("uuid"), str) or value.get("isSidechain"):
        return None
    texts, _skipped = _blocks(_object(value.get("message")).get("content"))
    speaker = value["type"] if texts and not value.get("isMeta") and value.get("type") in _SPEAKERS else ""
    return _Node(value["uuid"], str(value.get("parentUuid") or value.get("logicalParentUuid")), speaker)


class _Export(Chat):
    forgiving = True

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the messages of a file, in its order."""
        for entry in entries_read(path, members=("conversations",)):
            value = entry.value
            if entry.problem or not isinstance(value, dict):
                yield Record(None, entry.place, entry.offset, problem=entry.problem or "This is not a conversation.")
            else:
                yield from records_within(entry, list(self.messages(value)))

    @abstractmethod
    def messages(self, conversation: dict[str, Any]) -> Iterator[Record]:
        """Yield the messages of a conversation, as records with the members that ``Chat`` reads, but without a place in
        the file."""


class ChatGPT(_Export):
    """``conversations.json`` of ChatGPT: a tree of messages for each conversation."""

    name = "chatgpt"
    title = "ChatGPT export"

    def messages(self, conversation: dict[str, Any]) -> Iterator[Record]:
        """Yield the messages from the root to ``current_node``, then the messages of other branches, marked as lost."""
        nodes = conversation.get("mapping")
        if not isinstance(nodes, dict):
            yield _record(None, problem="This is not a conversation: it has no mapping.")
            return
        shown = _branch(nodes, conversation.get("current_node"))
        about = {"thread_id": conversation.get("conversation_id") or conversation.get("id")}
        about[SUBJECT] = conversation.get("title")
        for key in (*shown, *(key for key in nodes if key not in shown)):
            node = nodes[key]
            message = node.get("message") if isinstance(node, dict) else node
            # The root has no message.
            if message is None:
                continue
            if key in shown or not isinstance(message, dict):
                yield self._message(message, about)
            else:
                yield _record(None, _BRANCH)

    def _message(self, message: Any, about: dict[str, Any]) -> Record:
        if not isinstance(message, dict):
            return _record(None, problem=_NO_MESSAGE)
        author, content, more = (_object(message.get(name)) for name in ("author", "content", "metadata"))
        role = _SPEAKERS.get(str(author.get("role")), "")
        spoken = content.get("content_type", "text") in ("text", "multimodal_text")
        hidden = more.get("is_visually_hidden_from_conversation") or message.get("recipient", "all") != "all"
        if not role or not spoken or hidden:
            return _record(None, _TOOLS)
        parts = content.get("parts")
        return _record({"role": role, "content": parts, "time": message.get("create_time"), **about})


class Claude(_Export):
    """``conversations.json`` of Claude: a list of messages for each conversation."""

    name = "claude"
    title = "Claude export"

    def messages(self, conversation: dict[str, Any]) -> Iterator[Record]:
        """Yield the messages in their order."""
        found = conversation.get("chat_messages")
        if not isinstance(found, list):
            yield _record(None, problem="This is not a conversation: it has no chat_messages.")
            return
        about = {"thread_id": conversation.get("uuid"), SUBJECT: conversation.get("name")}
        nodes = [
            _Node(str(each.get("uuid")), str(each.get("parent_message_uuid")), str(each.get("sender")))
            for each in found
            if isinstance(each, dict) and each.get("uuid")
        ]
        left = _abandoned(nodes)
        for message in found:
            if isinstance(message, dict) and message.get("uuid") in left:
                yield _record(None, _BRANCH)
                continue
            role = _SPEAKERS.get(str(message.get("sender"))) if isinstance(message, dict) else None
            if role is None:
                yield _record(None, problem=_NO_MESSAGE)
                continue
            texts, skipped = _blocks(message.get("content"))
            lost = [_SKIPPED_PARTS] if skipped else []
            if message.get("attachments") or message.get("files"):
                lost.append(("attachments", "only texts are kept"))
            content = texts or message.get("text")
            value = {"role": role, "content": content, "time": message.get("created_at"), **about}
            yield _record(value, *lost)


class ClaudeCode(Chat):
    """A session file of Claude Code: one object per line, some of them messages."""

    name = "claude-code"
    title = "Claude Code session"
    forgiving = True

    def records(self, path: Path) -> Iterator[Record]:
        """Yield a record for each line, in order. The file is read twice, because a later line decides whether a
        message belongs to an abandoned branch. Keeps the ids of all messages in memory."""
        left = _abandoned([node for _number, _offset, line in _lines(path) if (node := _node(line)) is not None])
        for number, offset, line in _lines(path):
            place = f"Line {number}"
            try:
                value = json_guarded(line, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH, what="The line")
            except MemoryProblem as problem:
                yield Record(None, place, offset, problem=problem.sentence)
                continue
            record = self._line(value, left)
            yield Record(record.value, place, offset, problem=record.problem, lost=record.lost)

    def _line(self, line: Any, left: set[str]) -> Record:
        kind = line.get("type") if isinstance(line, dict) else None
        if not isinstance(kind, str):
            return _record(None, problem="This is not a line of a session: it has no type.")
        if kind not in _SPEAKERS:
            return _record(None, (f"lines of the type {name_shown(kind)}", "they are not messages"))
        message = line.get("message")
        if not isinstance(message, dict):
            return _record(None, problem=_NO_MESSAGE)
        if any(line.get(name) for name in ("isMeta", "isSidechain", "isCompactSummary")):
            return _record(None, _TOOLS)
        if line.get("uuid") in left:
            return _record(None, _BRANCH)
        texts, skipped = _blocks(message.get("content"))
        if kind == "user":
            spoken = [said for text in texts if (said := _PROGRAM.sub("", text).strip())]
            texts, skipped = spoken, skipped or spoken != texts
        if skipped and not texts:
            return _record(None, _TOOLS)
        value = {
            "role": _SPEAKERS[kind],
            "content": texts,
            "time": line.get("timestamp"),
            "session_id": line.get("sessionId"),
        }
        return _record(value, *([_SKIPPED_PARTS] if skipped else []))


def _record(value: Any, *lost: tuple[str, str], problem: str = "") -> Record:
    return Record(value, "", 0, problem=problem, lost=lost)


def _branch(nodes: dict[str, Any], current: Any) -> dict[str, None]:
    """Return the keys from the root to ``current``, or to the last node of the file if ``current`` is missing."""
    key = current if isinstance(current, str) and current in nodes else next(reversed(nodes), None)
    found: dict[str, None] = {}
    while isinstance(key, str) and key in nodes and key not in found:
        found[key] = None
        key = _object(nodes[key]).get("parent")
    return dict.fromkeys(reversed(found))


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


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number, offset of the end of the line, line) for each line that is not empty. A line that is too long
    is cut and is therefore not valid JSON."""
    with path.open("rb") as file:
        number = offset = 0
        while line := file.readline(MAX_ENTRY_BYTES):
            number, offset, rest = number + 1, offset + len(line), line
            while not rest.endswith(b"\n") and (rest := file.readline(MAX_ENTRY_BYTES)):
                offset += len(rest)
            if stripped := line.removeprefix(b"\xef\xbb\xbf").strip():
                yield number, offset, stripped
