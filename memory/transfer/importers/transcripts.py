"""Reads chat transcripts. A message has a role, a text and perhaps a time, and becomes one topic
(docs/importers.md)."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.transfer.importers.draft import NOTHING, Draft, id_computed, value_field
from memory.transfer.importers.stream import Entry, entries_read
from memory.transfer.importers.times import time_past

KIND = "message"
FIELD = "text"
FOLLOWS = "follows"
LISTS = ("messages", "conversations", "conversation", "turns")
ROLES = ("role", "author", "from", "speaker", "sender")
TEXTS = ("content", "text", "value", "message", "body", "parts")
TIMES = ("time", "timestamp", "created_at", "ts", "date", "create_time", "sent_at")
THREADS = ("conversation_id", "thread_id", "session_id", "chat_id")
# The member in which the importers of exports put the title of a conversation.
SUBJECT = "conversation_title"
_PLACED = {*ROLES, *TEXTS, *TIMES, *THREADS, "name", SUBJECT}
_LOST = {
    "id": "ids are computed from the text",
    **dict.fromkeys(("tool_calls", "tool_call_id", "function_call", "audio"), "only texts are kept"),
}
_WITHOUT_TEXT = "a call of a tool or a picture, for instance"
_NOT_TEXT = "it is not a text"
_TICK = dt.timedelta(microseconds=1)
# At most this many messages at the beginning of a conversation wait for the first message with a time.
MAX_WAITING = 1000


@dataclass(slots=True)
class _Conversation:
    """The state of a conversation: the topic id of the last message, and the latest known time."""

    last: str = ""
    at: dt.datetime | None = None


@dataclass(slots=True)
class _Message:
    """A parsed message. ``at`` is the time of the message, ``stated`` is this time as text in the file."""

    draft: Draft
    conversation: _Conversation
    thread: str
    role: str
    text: str
    name: str
    subject: str
    at: dt.datetime | None
    stated: str


def chat_read(path: Path, scope: str, now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each message of a list of messages, in one conversation or several."""
    return transcript_read(_chat_records(path), scope, now)


def transcript_read(records: Iterable[Draft], scope: str, now: dt.datetime) -> Iterator[Draft]:
    """Parse the ``value`` of each draft, which is a message, and yield the drafts in order. Keeps in memory the state
    of each conversation, and up to ``MAX_WAITING`` messages that wait for a message with a time."""
    waiting: list[tuple[Draft, _Message | None]] = []
    conversations: dict[tuple[str, str], _Conversation] = {}
    for draft in records:
        message = _message(draft, conversations, now=now)
        waiting.append((draft, message))
        waits = (message.at or message.conversation.at) is None if message else len(waiting) > 1
        if not waits or len(waiting) >= MAX_WAITING:
            yield from _placed(waiting, message, scope=scope, now=now)
            waiting.clear()
    yield from _placed(waiting, None, scope=scope, now=now)


def records_within(entry: Entry, messages: Sequence[Draft]) -> Iterator[Draft]:
    """Yield ``messages`` with their places in the file. ``entry`` is the conversation that contains them."""
    if not messages:
        yield Draft(entry.place, entry.offset, lost=[("conversation", "it has no messages")])
    for at, message in enumerate(messages, start=1):
        message.place, message.offset = f"{entry.place}, message {at}", entry.offset
        message.group = f"entry {entry.number}"
        yield message


def _chat_records(path: Path) -> Iterator[Draft]:
    for entry in entries_read(path, members=LISTS):
        within = entry.value
        if isinstance(within, dict):
            within = next((within[name] for name in LISTS if isinstance(within.get(name), list)), None)
        if isinstance(within, list):
            yield from records_within(entry, [Draft(value=value) for value in within])
        else:
            yield Draft(entry.place, entry.offset, entry.value, f"{entry.group}", problem=entry.problem)


def _message(draft: Draft, conversations: dict[tuple[str, str], _Conversation], *, now: dt.datetime) -> _Message | None:
    """Return the message of a draft. If it has none, the draft contains the reason. The conversation is the one that
    the message names; if it names none, the list that contains the message is the conversation."""
    if (draft.lost and draft.value is None) or not draft.object_is(draft.value, "A message"):
        return None
    # Some systems wrap each message in another object.
    record = draft.value["message"] if isinstance(draft.value.get("message"), dict) else draft.value
    if not any(name in record for name in (*ROLES, *TEXTS)):
        draft.problem = "This is not a message: it has neither a role nor a text."
        return None
    found: list[str] = []
    left_out = False
    for member in TEXTS:
        if not found and record.get(member) not in NOTHING:
            left_out |= _texts_gather(record[member], found)
    if left_out:
        draft.lose("content", "parts that are not text, such as pictures")
    text = "\n".join(found)
    if not draft.text_is(text, "messages", _WITHOUT_TEXT):
        return None
    draft.rest_lose(record, _PLACED, _LOST)
    role, own = _role_of(record), record.get("name")
    if not role and any(record.get(each) not in NOTHING for each in ROLES):
        draft.lose("role", _NOT_TEXT)
    if own not in NOTHING and not isinstance(own, str):
        draft.lose("name", _NOT_TEXT)
    thread = next((str(record[each]) for each in THREADS if _is_name(record.get(each))), "")
    conversation = conversations.setdefault(("" if thread else draft.group, thread), _Conversation())
    stated = next((record[each] for each in TIMES if record.get(each) not in NOTHING), None)
    at = time_past(draft, "time", stated, now=now)
    name, subject = (each if isinstance(each, str) else "" for each in (own, record.get(SUBJECT)))
    return _Message(draft, conversation, thread, role, text, name, subject, at, str(stated or ""))


def _placed(
    waiting: Iterable[tuple[Draft, _Message | None]], newest: _Message | None, *, scope: str, now: dt.datetime
) -> Iterator[Draft]:
    """Yield the drafts of ``waiting``. If the last message has a time, the messages before it in its conversation may
    get this time."""
    for draft, message in waiting:
        if message is not None:
            first = newest.at if newest and newest.conversation is message.conversation else None
            _message_place(message, first=first, scope=scope, now=now)
        yield draft


def _message_place(message: _Message, *, first: dt.datetime | None, scope: str, now: dt.datetime) -> None:
    conversation = message.conversation
    at = _topic_time(message, first)
    at = at if at is None else min(at, now)
    before = conversation.last
    members = {
        FIELD: message.text,
        "role": message.role,
        "name": message.name,
        "conversation": "" if before else message.subject,
    }
    # The id depends on the previous message, so that the same text at another place is another message.
    conversation.last = id_computed("chat", scope, message.thread, before, message.role, message.stated, message.text)
    conversation.at = at or conversation.at
    message.draft.item_set(
        topic_id=conversation.last,
        topic_kind=KIND,
        scope=scope,
        fields=[value_field(name, value) for name, value in members.items() if value],
        created_at=at,
        valid_from=message.at,
        edges=[{"to_topic_id": before, "kind": FOLLOWS}] if before else [],
    )


def _topic_time(message: _Message, first: dt.datetime | None) -> dt.datetime | None:
    """Return the creation time of the topic: the time of the message, unless this time contradicts the order of the
    file. Return None if no time is known; the topic then gets the time of the import. Times are at least a microsecond
    apart, so that lists keep the order."""
    before = message.conversation.at
    if message.at is None:
        used = "time of the message before" if before else "first time in the conversation"
        message.draft.note("time", f"is missing; the {used if before or first else 'time of the import'} is used")
    elif before is not None and message.at < before - MAX_WAITING * _TICK:
        message.draft.note("time", "is earlier than that of the message before; the order is kept")
    return max(message.at or before, before + _TICK) if before else message.at or first


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""


def _role_of(record: dict[str, Any]) -> str:
    for name in ROLES:
        value = record.get(name)
        if isinstance(value, dict):
            value = value.get("role") or value.get("name")
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _texts_gather(value: Any, found: list[str]) -> bool:
    """Add the texts in ``value`` to ``found``. Return whether other parts were left out."""
    if isinstance(value, str):
        found += [value] if value else []
        return False
    if isinstance(value, list):
        # A sum, because any() would stop at the first part that is left out.
        return sum(_texts_gather(part, found) for part in value) > 0
    inner = [value[name] for name in TEXTS if value.get(name) not in NOTHING] if isinstance(value, dict) else []
    return not inner or _texts_gather(inner[0], found)
