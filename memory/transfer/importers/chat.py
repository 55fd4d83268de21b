"""Chat transcripts: messages with a role, a text and perhaps a time, as one topic each (docs/importers.md)."""

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
    id_made,
    name_shown,
    sort_of,
    title_made,
    value_field,
)
from memory.transfer.importers.importer import Importer
from memory.transfer.importers.stream import Entry, entries_read
from memory.transfer.importers.times import moment_past

KIND = "message"
FIELD = "text"
FOLLOWS = "follows"
LISTS = ("messages", "conversations", "conversation", "turns")
ROLES = ("role", "author", "from", "speaker", "sender")
TEXTS = ("content", "text", "value", "message", "body", "parts")
TIMES = ("time", "timestamp", "created_at", "ts", "date", "create_time", "sent_at")
THREADS = ("conversation_id", "thread_id", "session_id", "chat_id")
# The title of the conversation, as the readers of exports name it.
SUBJECT = "conversation_title"
_PLACED = {*ROLES, *TEXTS, *TIMES, *THREADS, "name", SUBJECT}
_LOST = {
    "id": "ids are made of what is said",
    **dict.fromkeys(("tool_calls", "tool_call_id", "function_call", "audio"), "only what is said is kept"),
}
_SILENT = "a call of a tool or a picture, for instance"
_TICK = dt.timedelta(microseconds=1)
# So many messages at the beginning of a conversation wait for the first one that has a time.
MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """A message as a file has it, or, without a value, why there is none. ``group`` tells conversations apart that have
    no name; ``lost`` are members that are not kept, each with a clause."""

    value: Any
    place: str
    offset: int
    group: str = ""
    problem: str = ""
    lost: Sequence[tuple[str, str]] = ()


@dataclass(slots=True)
class _Conversation:
    """What of a conversation is behind: the last message that is a topic, and its time."""

    last: str = ""
    at: dt.datetime | None = None


@dataclass(slots=True)
class _Message:
    """A message on its way into its draft. ``at`` is the time that it states, ``stated`` how."""

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
        """Whether it must be known what comes after it, to tell when it was."""
        return self.at is None and self.conversation.at is None


class Chat(Importer):
    """Messages one after the other, in one conversation or several."""

    name = "chat"
    title = "chat transcript"
    noun = "message"
    nouns = "messages"

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the messages of a file, in its order."""
        for entry in entries_read(path, members=LISTS):
            within = _within(entry.value)
            if within is None:
                yield Record(entry.value, entry.place, entry.offset, f"{entry.group}", entry.problem)
            else:
                yield from records_within(entry, [Record(value, "", 0) for value in within])

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each message, in its order. Holds a note for each conversation, the ids of the last
        messages, and up to ``MAX_WAITING`` messages that stand before the first time."""
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
    """The messages of a file, each with the conversation that it belongs to: the one that it names, or the list that it
    stands in."""

    def __init__(self, now: dt.datetime) -> None:
        self.now = now
        self.number = 0
        self.conversations: dict[tuple[str, str], _Conversation] = {}

    def message(self, found: Record) -> Draft | _Message:
        """Return the message of a record; of one without a message, the draft that says so."""
        self.number += 1
        draft = Draft(found.place, found.offset, self.number, problem=found.problem, lost=list(found.lost))
        value = found.value
        if not draft.problem and not draft.lost and not isinstance(value, dict):
            draft.problem = f"A message is an object; this is {sort_of(value)}."
        if draft.problem or not isinstance(value, dict):
            return draft
        # Some wrap each message into a node of its own.
        record = value["message"] if isinstance(value.get("message"), dict) else value
        if not any(name in record for name in (*ROLES, *TEXTS)):
            draft.problem = "This is no message: it has neither a role nor a text."
            return draft
        text, left_out = _text_of(record)
        if left_out:
            draft.lost.append(("content", "parts that are no text, such as pictures"))
        if not text.strip():
            draft.lost.append(("messages without text", _SILENT))
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
        role, at = _role_of(record), moment_past(draft, "time", stated, now=self.now)
        if not role and any(record.get(name) not in NOTHING for name in ROLES):
            draft.lost.append(("role", "it is no text"))
        if record.get("name") not in NOTHING and not isinstance(record["name"], str):
            draft.lost.append(("name", "it is no text"))
        return _Message(draft, conversation, thread, role, text, record, at, str(stated or ""))


def records_within(entry: Entry, messages: Sequence[Record]) -> Iterator[Record]:
    """Yield the messages of an entry that is a whole conversation, each with its place."""
    if not messages:
        yield Record(None, entry.place, entry.offset, lost=[("conversation", "it has no messages")])
    for at, message in enumerate(messages, start=1):
        # Each needs a place of its own to go on from; a message has more characters than one.
        offset = entry.offset if at == len(messages) else entry.start + at
        place, group = f"{entry.place}, message {at}", f"entry {entry.number}"
        yield dataclasses.replace(message, place=place, offset=offset, group=group)


def _placed(waiting: list[Draft | _Message], *, scope: str, now: dt.datetime, seen: Seen) -> Iterator[Draft]:
    """Yield the drafts of what waits, and empty it. The last may bring the time that the others wait for."""
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
    at = _moment_kept(message, first)
    at = at if at is None else min(at, now)
    fields = [value_field(FIELD, message.text)]
    fields += [value_field("role", message.role)] if message.role else []
    name = message.record.get("name")
    fields += [value_field("name", name)] if isinstance(name, str) and name else []
    before = conversation.last
    subject = message.record.get(SUBJECT)
    fields += [value_field("conversation", subject)] if isinstance(subject, str) and subject and not before else []
    # What went before is part of it: the same word at another place is another message.
    topic_id = id_made("chat", scope, message.thread, before, message.role, message.stated, message.text)
    conversation.last, conversation.at = str(topic_id), at or conversation.at
    if seen.before(topic_id):
        draft.lost.append(("message", "it stands in the file before, with the same beginning"))
        return
    draft.item_make(
        {
            "placement": "new_topic",
            "topic_id": str(topic_id),
            "title": title_made(message.text),
            "topic_kind": KIND,
            "scope": scope,
            "fields": fields,
            "created_at": at,
            "valid_from": message.at,
            "edges": [{"to_topic_id": before, "kind": FOLLOWS}] if before else [],
        }
    )


def _moment_kept(message: _Message, first: dt.datetime | None) -> dt.datetime | None:
    """Return the moment that a topic is dated with: what the message states, unless the order of the file says
    otherwise. Messages are a microsecond apart at least, so that lists have them in their order."""
    before = message.conversation.at
    if before is None:
        if message.at is None:
            message.draft.told.append(
                (
                    "time",
                    "is missing; that of the first message that has one is taken"
                    if first
                    else "is missing; the topic is as old as the import",
                )
            )
        return message.at or first
    if message.at is None:
        message.draft.told.append(("time", "is missing; it is dated just after the message before"))
    elif message.at < before - MAX_WAITING * _TICK:
        message.draft.told.append(("time", "lies before that of the message before; the order of the file is kept"))
    return max(message.at or before, before + _TICK)


def _within(value: Any) -> list[Any] | None:
    """Return the messages of an entry that is a whole conversation; None if it is something else."""
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
    """Return what a message says, and whether a part of it is no text."""
    found: list[str] = []
    left_out = False
    for name in TEXTS:
        if record.get(name) not in NOTHING:
            left_out = _text_gather(record[name], found) or left_out
        if found:
            break
    return "\n".join(found), left_out


def _text_gather(value: Any, found: list[str]) -> bool:
    """Add the texts of a content to ``found``; return whether something of it is no text."""
    if isinstance(value, str):
        found += [value] if value else []
        return False
    if isinstance(value, list):
        # All of them are gathered, so no short cut.
        return sum(_text_gather(part, found) for part in value) > 0
    if isinstance(value, dict):
        inner = next((value[name] for name in TEXTS if value.get(name) not in NOTHING), None)
        if inner is not None:
            return _text_gather(inner, found)
    return True
