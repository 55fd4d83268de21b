"""Imports memories of mem0, from ``Memory.get_all()`` or the platform's API (docs/importers.md)."""

import datetime as dt
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory.core.errors import ValueRefused
from memory.core.field_values import MAX_VALUE_LENGTH
from memory.core.scopes import MAX_SCOPE_LENGTH, scope_normalize
from memory.core.text import MAX_CATEGORIES
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

KIND = "memory"
FIELD = "memory"
LISTS = ("results", "memories", "relations")
# The members that name an owner of a memory, and the segment of the scope for each. The user comes first, so that
# /user/alice contains everything about her.
OWNERS = {"user_id": "user", "agent_id": "agent", "app_id": "app", "run_id": "run"}
# Members that name the speaker. They become fields.
SPEAKERS = ("role", "actor_id", "attributed_to")
# Below the limit for an item of ingest, with room for the fields that the importer adds.
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
# Members that are not imported, and why.
_LOST = {
    "hash": "it is made anew from the text",
    "score": "it belonged to the search that found the memory",
    "score_details": "it belonged to the search that found the memory",
    "embedding": "the store embeds with its own model",
    "embeddings": "the store embeds with its own model",
    "vector": "the store embeds with its own model",
    "text_lemmatized": "the store builds its own index of words",
    "expiration_date": "policies decide when a memory is forgotten",
    "structured_attributes": "they repeat the time in parts",
    **dict.fromkeys(("owner", "organization", "org_id", "project_id"), "keys and scopes control access"),
    "internal_metadata": "it has no use outside mem0",
    **dict.fromkeys(("event", "event_id"), "it describes an operation of mem0"),
    "type": "the kind of the memory is memory",
}
# Characters that a segment of a scope cannot contain, and "%", which escapes them.
_ODD = re.compile(r"[/%\s\x00-\x1f\x7f]")
_RELATION = "they connect names, without the memories that they come from"


class Mem0(Importer):
    """A list of memories."""

    name = "mem0"
    title = "memories of mem0"
    noun = "memory"
    nouns = "memories"

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each memory and each relation."""
        seen = Seen()
        for entry in entries_read(path, members=LISTS):
            draft = Draft(entry.place, entry.offset, entry.number)
            if entry.problem:
                draft.problem = entry.problem
            elif entry.member == "relations":
                draft.lost.append(("relations", _RELATION))
            elif not isinstance(entry.value, dict):
                draft.problem = f"A memory is an object; this is {type_label(entry.value)}."
            else:
                _Memory(draft, entry, scope, now, seen).read()
            yield draft


class _Memory:
    def __init__(self, draft: Draft, entry: Entry, scope: str, now: dt.datetime, seen: Seen) -> None:
        self.draft, self.scope, self.now, self.seen = draft, scope, now, seen
        self.record: dict[str, Any] = entry.value

    def read(self) -> None:
        text = next((self.record[name] for name in ("memory", "text", "data") if self.record.get(name)), None)
        if not isinstance(text, str) or not text.strip():
            self._lost_add("memories without text", "they are empty")
            return
        if len(text) > MAX_VALUE_LENGTH:
            self._lost_add("memories that are too long", f"a field holds {MAX_VALUE_LENGTH:,} characters")
            return
        try:
            where = scope_normalize(self._scope())
        except ValueRefused:
            self._lost_add(
                "memories whose user, agent or run id is too long",
                f"their scope would have more than {MAX_SCOPE_LENGTH} characters",
            )
            return
        topic_id = self._id(text, where)
        if self.seen.before(topic_id):
            self._lost_add("id", "an earlier memory of the file has the same id and is kept")
            return
        created, changed = self._times()
        fields = [value_field(FIELD, text), *self._fields()]
        self.draft.item_set(
            {
                "placement": "new_topic",
                "topic_id": str(topic_id),
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
                self._lost_add(name_shown(name), _LOST.get(name, UNKNOWN))

    def _lost_add(self, name: str, why: str) -> None:
        self.draft.lost.append((name, why))

    def _note_add(self, name: str, how: str) -> None:
        self.draft.notes.append((name, how))

    def _scope(self) -> str:
        segments: list[str] = []
        for name, folder in OWNERS.items():
            value = self.record.get(name)
            if value in NOTHING:
                continue
            if not isinstance(value, (str, int, float)) or isinstance(value, bool):
                self._lost_add(name, "it is neither a text nor a number")
                continue
            segment = scope_segment(str(value))
            if segment != str(value):
                self._note_add(name, "has characters that a scope cannot contain; they are percent-encoded (%20)")
            segments += [folder, segment]
        return "/".join([self.scope, *segments])

    def _id(self, text: str, where: str) -> uuid.UUID:
        value = self.record.get("id")
        if not isinstance(value, (str, int)) or value == "":
            self._note_add("id", "is missing; the memory gets an id computed from the text")
            return id_computed("mem0", where, "text", text)
        try:
            return uuid.UUID(str(value))
        except ValueError:
            self._note_add("id", "is not a UUID; the memory gets an id computed from it")
            return id_computed("mem0", where, "id", str(value))

    def _times(self) -> tuple[dt.datetime | None, dt.datetime | None]:
        created = self._time("created_at") or self._time("timestamp")
        changed = self._time("updated_at")
        if created is None and changed is not None:
            self._note_add("created_at", "is missing; the time of the last change is used")
        elif created is None:
            self._note_add("created_at", "is missing; the time of the import is used")
        return created or changed, changed if changed != created else None

    def _time(self, name: str) -> dt.datetime | None:
        return time_past(self.draft, name, self.record.get(name), now=self.now)

    def _categories(self) -> list[str]:
        value = self.record.get("categories")
        if value in NOTHING:
            return []
        names = value if isinstance(value, list) else [value]
        wanted = list(dict.fromkeys(name for name in names if isinstance(name, str)))
        kept = [name for name in wanted if 0 < len(name) <= MAX_NAME][:MAX_CATEGORIES]
        if len(wanted) < len(names) or len(kept) < len(wanted):
            self._lost_add(
                "categories", f"a memory has at most {MAX_CATEGORIES}, each a name of 1 to {MAX_NAME} characters"
            )
        return kept

    def _pinned(self) -> bool:
        if self.record.get("immutable") is not True:
            return False
        self._note_add("immutable", "becomes a pin, which keeps the memory from being forgotten")
        return True

    def _fields(self) -> list[dict[str, Any]]:
        made = []
        for name in SPEAKERS:
            who = self.record.get(name)
            if isinstance(who, str) and who:
                made.append(value_field(name, who))
            elif who not in NOTHING:
                self._lost_add(name, "it is not a text")
        metadata = self.record.get("metadata")
        if metadata in NOTHING:
            return made
        if not isinstance(metadata, dict):
            self._lost_add("metadata", "it is not an object")
            return made
        taken = {FIELD, *(each["name"] for each in made)}
        for key, value in metadata.items():
            if value is None:
                continue
            name = f"metadata.{key}" if key in taken else key
            if not 0 < len(name) <= MAX_NAME:
                self._lost_add("metadata", f"a field has a name of 1 to {MAX_NAME} characters")
            elif len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) > MAX_VALUE_LENGTH:
                self._lost_add(f"metadata.{name_shown(key)}", f"a field has at most {MAX_VALUE_LENGTH:,} characters")
            elif len(made) >= MAX_FIELDS:
                self._lost_add("metadata", f"a memory keeps at most {MAX_FIELDS} of its members")
            elif name in taken:
                self._lost_add(f"metadata.{name_shown(key)}", "another member has the same name")
            else:
                taken.add(name)
                made.append(value_field(name, value))
        return made


def scope_segment(name: str) -> str:
    """Return ``name`` as one segment of a scope, percent-encoded where necessary: ``%20`` for a space."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _ODD.sub(lambda found: quote(found[0], safe=""), name)
