"""Memories of mem0: what ``Memory.get_all()`` and the pages of the platform's API hold (docs/importers.md)."""

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.field_values import MAX_VALUE_LENGTH
from memory.core.scopes import MAX_SCOPE_LENGTH, scope_normalize
from memory.core.text import MAX_CATEGORIES
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
from memory.transfer.importers.places import scope_segment
from memory.transfer.importers.stream import Entry, entries_read
from memory.transfer.importers.times import moment_past

KIND = "memory"
FIELD = "memory"
LISTS = ("results", "memories", "relations")
# Whose memory it is, from the widest to the narrowest: forgetting below /user/alice reaches all that is hers.
OWNERS = {"user_id": "user", "agent_id": "agent", "app_id": "app", "run_id": "run"}
# Members with a word for who said it; they become fields.
SPEAKERS = ("role", "actor_id", "attributed_to")
# What an item of ingest takes, with room for the fields of its own.
MAX_FIELDS = 190
MAX_NAME = 200
_PLACED = {
    "id",
    "memory",
    "text",
    "data",
    "created_at",
    "updated_at",
    "timestamp",
    "categories",
    "metadata",
    "immutable",
    *OWNERS,
    *SPEAKERS,
}
# What has no place here, and why.
_LOST = {
    "hash": "it is made anew from the text",
    "score": "it belonged to the search that found the memory",
    "score_details": "it belonged to the search that found the memory",
    "embedding": "the store embeds with its own model",
    "embeddings": "the store embeds with its own model",
    "vector": "the store embeds with its own model",
    "text_lemmatized": "the store makes its own index of words",
    "expiration_date": "when a topic is forgotten is for the policy to say",
    "structured_attributes": "they say in parts what the time says",
    "owner": "access goes by keys and scopes",
    "organization": "access goes by keys and scopes",
    "org_id": "access goes by keys and scopes",
    "project_id": "access goes by keys and scopes",
    "internal_metadata": "it is of no use outside mem0",
    "event": "it says what mem0 did with the memory",
    "event_id": "it says what mem0 did with the memory",
    "type": "a topic has a kind, and this one is a memory",
}
_RELATION = "they join names, and do not say which memories they come from"


class Mem0(Importer):
    """A list of memories."""

    name = "mem0"
    title = "memories of mem0"
    noun = "memory"
    nouns = "memories"

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each memory and each relation. Holds the ids of the last ones."""
        seen = Seen()
        for entry in entries_read(path, members=LISTS):
            draft = Draft(entry.place, entry.offset, entry.number)
            if entry.problem:
                draft.problem = entry.problem
            elif entry.member == "relations":
                draft.lost.append(("relations", _RELATION))
            elif not isinstance(entry.value, dict):
                draft.problem = f"A memory is an object; this is {sort_of(entry.value)}."
            else:
                _Memory(draft, entry, scope, now, seen).read()
            yield draft


class _Memory:
    """One memory on its way into its draft."""

    def __init__(self, draft: Draft, entry: Entry, scope: str, now: dt.datetime, seen: Seen) -> None:
        self.draft, self.scope, self.now, self.seen = draft, scope, now, seen
        self.record: dict[str, Any] = entry.value

    def read(self) -> None:
        text = next((self.record[name] for name in ("memory", "text", "data") if self.record.get(name)), None)
        if not isinstance(text, str) or not text.strip():
            self._lose("memories without text", "they say nothing")
            return
        if len(text) > MAX_VALUE_LENGTH:
            self._lose("memories that are too long", f"a field holds {MAX_VALUE_LENGTH:,} characters")
            return
        try:
            where = scope_normalize(self._scope())
        except ValueRefused:
            self._lose("memories of ids that are too long", f"a scope has at most {MAX_SCOPE_LENGTH} characters")
            return
        topic_id = self._id(text, where)
        if self.seen.before(topic_id):
            self._lose("id", "it stands in the file before, and the first is taken")
            return
        created, changed = self._times()
        fields = [value_field(FIELD, text), *self._fields()]
        self.draft.item_make(
            {
                "placement": "new_topic",
                "topic_id": str(topic_id),
                "title": title_made(text),
                "topic_kind": KIND,
                "scope": where,
                "categories": self._categories(),
                "fields": fields,
                "pinned": self._pinned(),
                "created_at": created,
                "valid_from": changed,
            }
        )
        for name, value in self.record.items():
            if name not in _PLACED and value not in NOTHING:
                self._lose(name_shown(name), _LOST.get(name, UNKNOWN))

    def _lose(self, name: str, why: str) -> None:
        self.draft.lost.append((name, why))

    def _tell(self, name: str, how: str) -> None:
        self.draft.told.append((name, how))

    def _scope(self) -> str:
        segments: list[str] = []
        for name, folder in OWNERS.items():
            value = self.record.get(name)
            if value in NOTHING:
                continue
            if not isinstance(value, (str, int, float)) or isinstance(value, bool):
                self._lose(name, "it is neither text nor a number")
                continue
            segment = scope_segment(str(value))
            if segment != str(value):
                self._tell(name, "has characters that a scope cannot hold; they are written as in addresses (%20)")
            segments += [folder, segment]
        return "/".join([self.scope, *segments])

    def _id(self, text: str, where: str) -> uuid.UUID:
        value = self.record.get("id")
        if not isinstance(value, (str, int)) or value == "":
            self._tell("id", "is missing; the topic gets an id computed from the text")
            return id_made("mem0", where, "text", text)
        try:
            return uuid.UUID(str(value))
        except ValueError:
            self._tell("id", "is not a UUID; the topic gets an id computed from it")
            return id_made("mem0", where, "id", str(value))

    def _times(self) -> tuple[dt.datetime | None, dt.datetime | None]:
        created = self._moment("created_at") or self._moment("timestamp")
        changed = self._moment("updated_at")
        if created is None and changed is not None:
            self._tell("created_at", "is missing; the topic is as old as its last change")
        elif created is None:
            self._tell("created_at", "is missing; the topic is as old as the import")
        return created or changed, changed if changed != created else None

    def _moment(self, name: str) -> dt.datetime | None:
        return moment_past(self.draft, name, self.record.get(name), now=self.now)

    def _categories(self) -> list[str]:
        value = self.record.get("categories")
        if value in NOTHING:
            return []
        names = value if isinstance(value, list) else [value]
        wanted = list(dict.fromkeys(name for name in names if isinstance(name, str)))
        kept = [name for name in wanted if 0 < len(name) <= MAX_NAME][:MAX_CATEGORIES]
        if len(wanted) < len(names) or len(kept) < len(wanted):
            self._lose("categories", f"a topic has at most {MAX_CATEGORIES}, each a name of 1 to {MAX_NAME} characters")
        return kept

    def _pinned(self) -> bool:
        if self.record.get("immutable") is not True:
            return False
        self._tell("immutable", "becomes a pin, which keeps the topic from being forgotten")
        return True

    def _fields(self) -> list[dict[str, Any]]:
        made = []
        for name in SPEAKERS:
            who = self.record.get(name)
            if isinstance(who, str) and who:
                made.append(value_field(name, who))
            elif who not in NOTHING:
                self._lose(name, "it is no text")
        metadata = self.record.get("metadata")
        if metadata in NOTHING:
            return made
        if not isinstance(metadata, dict):
            self._lose("metadata", "it is no object")
            return made
        taken = {FIELD, *(each["name"] for each in made)}
        for key, value in metadata.items():
            if value is None:
                continue
            name = f"metadata.{key}" if key in taken else key
            if not 0 < len(name) <= MAX_NAME:
                self._lose("metadata", f"a field has a name of 1 to {MAX_NAME} characters")
            elif len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) > MAX_VALUE_LENGTH:
                self._lose(f"metadata.{name_shown(key)}", f"a field has at most {MAX_VALUE_LENGTH:,} characters")
            elif len(made) >= MAX_FIELDS:
                self._lose("metadata", f"a topic takes {MAX_FIELDS} of its members")
            elif name in taken:
                self._lose(f"metadata.{name_shown(key)}", "another member has its name")
            else:
                taken.add(name)
                made.append(value_field(name, value))
        return made
