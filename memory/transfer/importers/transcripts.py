"""Imports chat transcripts. A message has a role, a text and perhaps a time, and becomes one topic
(docs/importers.md)."""

import dataclasses
import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.core.field_values import MAX_VALUE_LENGTH
from memory.transfer.importers.draft import (
    NOTHING,
    UNKNOWN,
    Draft,
    Seen,
    id_computed,
    name_shown,
    type_label,
    value_field,
)
from memory.transfer.importers.importer import Importer
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


@dataclass(frozen=True, slots=True)
class Record:
    """A message as it is in the file, or the reason why it is missing. ``group`` identifies a conversation without a
    name. ``lost`` are pairs of a member that is not imported and the reason as a clause."""

    value: Any
    place: str
    offset: int
    group: str = ""
    problem: str = ""
    lost: Sequence[tuple[str, str]] = ()


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
    record: dict[str, Any]
    at: dt.datetime | None
    stated: str

    @property
    def waits(self) -> bool:
        """Whether the time depends on later messages."""
        return self.at is None and self.conversation.at is None


class Chat(Importer):
    """A list of messages, in one conversation or several."""

    name = "chat"
    title = "chat transcript"
    noun = "message"
    nouns = "messages"

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the messages of a file in order."""
        for entry in entries_read(path, members=LISTS):
            within = _messages_within(entry.value)
            if within is None:
                yield Record(entry.value, entry.place, entry.offset, f"{entry.group}", entry.problem)
            else:
                yield from records_within(entry, [Record(value, "", 0) for value in within])

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each message in order. Keeps in memory the state of each conversation, the latest ids, and
        up to ``MAX_WAITING`` messages that wait for a message with a time."""
        seen = Seen()
        waiting: list[Draft | _Message] = []
        transcript = _Transcript(now)
        for record in self.records(path):
            found = transcript.message(record)
            waiting.append(found)
            waits = found.waits if isinstance(found, _Message) else len(waiting) > 1
            if waits and len(waiting) < MAX_WAITING:
                continue
            yield from _placed(waiting, scope=scope, now=now, seen=seen)
        yield from _placed(waiting, scope=scope, now=now, seen=seen)


class _Transcript:
    """Assigns each message of a file to the conversation that the message names. If it names none, the list that
    contains the message is the conversation."""

    def __init__(self, now: dt.datetime) -> None:
        self.now = now
        self.number = 0
        self.conversations: dict[tuple[str, str], _Conversation] = {}

    def message(self, found: Record) -> Draft | _Message:
        """Return the message of a record, or a draft with the reason why the record has no message."""
        self.number += 1
        draft = Draft(found.place, found.offset, self.number, problem=found.problem, lost=list(found.lost))
        value = found.value
        if not draft.problem and not draft.lost and not isinstance(value, dict):
            draft.problem = f"A message is an object; this is {type_label(value)}."
        if draft.problem or not isinstance(value, dict):
            return draft
        # Some systems wrap each message in another object.
        record = value["message"] if isinstance(value.get("message"), dict) else value
        if not any(name in record for name in (*ROLES, *TEXTS)):
            draft.problem = "This is not a message: it has neither a role nor a text."
            return draft
        text, left_out = _text_of(record)
        if left_out:
            draft.lost.append(("content", "parts that are not text, such as pictures"))
        if not text.strip():
            draft.lost.append(("messages without text", _WITHOUT_TEXT))
            return draft
        if len(text) > MAX_VALUE_LENGTH:
            draft.lost.append(("messages that are too long", f"a field holds {MAX_VALUE_LENGTH:,} characters"))
            return draft
        for name, part in record.items():
            if name not in _PLACED and part not in NOTHING:
                draft.lost.append((name_shown(name), _LOST.get(name, UNKNOWN)))
        thread = next((str(record[name]) for name in THREADS if _is_name(record.get(name))), "")
        conversation = self.conversations.setdefault((found.group if not thread else "", thread), _Conversation())
        stated = next((record[name] for name in TIMES if record.get(name) not in NOTHING), None)
        role, at = _role_of(record), time_past(draft, "time", stated, now=self.now)
        if not role and any(record.get(name) not in NOTHING for name in ROLES):
            draft.lost.append(("role", _NOT_TEXT))
        if record.get("name") not in NOTHING and not isinstance(record["name"], str):
            draft.lost.append(("name", _NOT_TEXT))
        return _Message(draft, conversation, thread, role, text, record, at, str(stated or ""))


def records_within(entry: Entry, messages: Sequence[Record]) -> Iterator[Record]:
    """Yield ``messages`` with their places in the file. ``entry`` is the conversation that contains them."""
    if not messages:
        yield Record(None, entry.place, entry.offset, lost=[("conversation", "it has no messages")])
    for at, message in enumerate(messages, start=1):
        # Each message needs an offset of its own, from which an import can continue.
        offset = entry.offset if at == len(messages) else entry.start + at
        place, group = f"{entry.place}, message {at}", f"entry {entry.number}"
        yield dataclasses.replace(message, place=place, offset=offset, group=group)


def _placed(waiting: list[Draft | _Message], *, scope: str, now: dt.datetime, seen: Seen) -> Iterator[Draft]:
    """Yield the drafts of ``waiting``, and empty the list. If the last message has a time, the messages before it in
    its conversation may get this time."""
    newest = waiting[-1] if waiting else None
    for found in waiting:
        if isinstance(found, _Message):
            first = newest.at if isinstance(newest, _Message) and newest.conversation is found.conversation else None
            _message_place(found, first=first, scope=scope, now=now, seen=seen)
            yield found.draft
        else:
            yield found
    waiting.clear()


def _message_place(message: _Message, *, first: dt.datetime | None, scope: str, now: dt.datetime, seen: Seen) -> None:
    conversation, draft = message.conversation, message.draft
    at = _topic_time(message, first)
    at = at if at is None else min(at, now)
    fields = [value_field(FIELD, message.text)]
    fields += [value_field("role", message.role)] if message.role else []
    name = message.record.get("name")
    fields += [value_field("name", name)] if isinstance(name, str) and name else []
    before = conversation.last
    subject = message.record.get(SUBJECT)
    fields += [value_field("conversation", subject)] if isinstance(subject, str) and subject and not before else []
    # The id depends on the previous message, so that the same text at another place is another message.
    topic_id = id_computed("chat", scope, message.thread, before, message.role, message.stated, message.text)
    conversation.last, conversation.at = str(topic_id), at or conversation.at
    if seen.before(topic_id):
        draft.lost.append(("message", "an earlier conversation of the file begins with the same messages"))
        return
    draft.item_set(
        {
            "placement": "new_topic",
            "topic_id": str(topic_id),
            "topic_kind": KIND,
            "scope": scope,
            "fields": fields,
            "created_at": at,
            "valid_from": message.at,
            "edges": [{"to_topic_id": before, "kind": FOLLOWS}] if before else [],
        }
    )


def _topic_time(message: _Message, first: dt.datetime | None) -> dt.datetime | None:
    """Return the creation time of the topic: the time of the message, unless this time contradicts the order of the
    file. Return None if no time is known; the topic then gets the time of the import. Times are at least a microsecond
    apart, so that lists keep the order."""
    before = message.conversation.at
    if before is None:
        if message.at is None:
            message.draft.notes.append(
                (
                    "time",
                    "is missing; the first time in the conversation is used"
                    if first
                    else "is missing; the time of the import is used",
                )
            )
        return message.at or first
    if message.at is None:
        message.draft.notes.append(("time", "is missing; the time of the message before is used"))
    elif message.at < before - MAX_WAITING * _TICK:
        message.draft.notes.append(("time", "is earlier than that of the message before; the order is kept"))
    return max(message.at or before, before + _TICK)


def _messages_within(value: Any) -> list[Any] | None:
    """Return the messages of an entry that is a conversation, None for any other entry."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)


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


def _text_of(record: dict[str, Any]) -> tuple[str, bool]:
    """Return (the text of a message, whether parts that are not text were left out)."""
    found: list[str] = []
    left_out = False
    for name in TEXTS:
        if record.get(name) not in NOTHING:
            left_out = _text_gather(record[name], found) or left_out
        if found:
            break
    return "\n".join(found), left_out


def _text_gather(value: Any, found: list[str]) -> bool:
    """Add the texts in ``value`` to ``found``. Return whether other parts were left out."""
    if isinstance(value, str):
        found += [value] if value else []
        return False
    if isinstance(value, list):
        # A sum, because any() would stop at the first part that is left out.
        return sum(_text_gather(part, found) for part in value) > 0
    if isinstance(value, dict):
        inner = next((value[name] for name in TEXTS if value.get(name) not in NOTHING), None)
        if inner is not None:
            return _text_gather(inner, found)
    return True
