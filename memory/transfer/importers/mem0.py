"""Reads memories of mem0, from ``Memory.get_all()`` or the platform's API (docs/importers.md)."""

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
from memory.transfer.importers.draft import MAX_FIELDS, MAX_NAME, NOTHING, Draft, id_computed, name_shown, value_field
from memory.transfer.importers.stream import entries_read
from memory.transfer.importers.times import time_past

KIND = "memory"
FIELD = "memory"
LISTS = ("results", "memories", "relations")
TEXTS = ("memory", "text", "data")
# The members that name an owner of a memory, and the segment of the scope for each. The user comes first, so that
# /user/alice contains everything about her.
OWNERS = {"user_id": "user", "agent_id": "agent", "app_id": "app", "run_id": "run"}
# Members that name the speaker. They become fields.
SPEAKERS = ("role", "actor_id", "attributed_to")
_PLACED = {
    "id",
    "created_at",
    "updated_at",
    "timestamp",
    "categories",
    "metadata",
    "immutable",
    *TEXTS,
    *OWNERS,
    *SPEAKERS,
}
# Members that are not imported, and why.
_LOST = {
    "hash": "it is made anew from the text",
    **dict.fromkeys(("score", "score_details"), "it belonged to the search that found the memory"),
    **dict.fromkeys(("embedding", "embeddings", "vector"), "the store embeds with its own model"),
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


def mem0_read(path: Path, scope: str, now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each memory and each relation."""
    for entry in entries_read(path, members=LISTS):
        draft = Draft(entry.place, entry.offset, problem=entry.problem)
        if entry.member == "relations" and not entry.problem:
            draft.lose("relations", _RELATION)
        elif draft.object_is(entry.value, "A memory"):
            _memory_read(draft, entry.value, scope, now)
        yield draft


def _memory_read(draft: Draft, record: dict[str, Any], scope: str, now: dt.datetime) -> None:
    text = next((record[name] for name in TEXTS if record.get(name)), None)
    if not draft.text_is(text, "memories", "they are empty"):
        return
    try:
        where = scope_normalize("/".join([scope, *_segments(draft, record)]))
    except ValueRefused:
        why = f"their scope would have more than {MAX_SCOPE_LENGTH} characters"
        draft.lose("memories whose user, agent or run id is too long", why)
        return

    def time(name: str) -> dt.datetime | None:
        return time_past(draft, name, record.get(name), now=now)

    created, changed = time("created_at") or time("timestamp"), time("updated_at")
    if created is None:
        used = "the time of the last change" if changed else "the time of the import"
        draft.note("created_at", f"is missing; {used} is used")
    pinned = record.get("immutable") is True
    if pinned:
        draft.note("immutable", "becomes a pin, which keeps the memory from being forgotten")
    draft.item_set(
        topic_id=_id(draft, record.get("id"), str(text), where),
        topic_kind=KIND,
        scope=where,
        categories=_categories(draft, record.get("categories")),
        fields=[value_field(FIELD, text), *_fields(draft, record)],
        pinned=pinned,
        created_at=created or changed,
        valid_from=changed if changed != created else None,
    )
    draft.rest_lose(record, _PLACED, _LOST)


def _segments(draft: Draft, record: dict[str, Any]) -> Iterator[str]:
    for name, folder in OWNERS.items():
        value = record.get(name)
        if value in NOTHING:
            continue
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            draft.lose(name, "it is neither a text nor a number")
            continue
        segment = scope_segment(str(value))
        if segment != str(value):
            draft.note(name, "has characters that a scope cannot contain; they are percent-encoded (%20)")
        yield from (folder, segment)


def _id(draft: Draft, value: Any, text: str, where: str) -> str:
    if not isinstance(value, (str, int)) or value == "":
        draft.note("id", "is missing; the memory gets an id computed from the text")
        return id_computed("mem0", where, "text", text)
    try:
        return str(uuid.UUID(str(value)))
    except ValueError:
        draft.note("id", "is not a UUID; the memory gets an id computed from it")
        return id_computed("mem0", where, "id", str(value))


def _categories(draft: Draft, value: Any) -> list[str]:
    names = value if isinstance(value, list) else [] if value in NOTHING else [value]
    kept = [name for name in names if isinstance(name, str) and 0 < len(name) <= MAX_NAME]
    found = list(dict.fromkeys(kept))
    if len(kept) < len(names) or len(found) > MAX_CATEGORIES:
        draft.lose("categories", f"a memory has at most {MAX_CATEGORIES}, each a name of 1 to {MAX_NAME} characters")
    return found[:MAX_CATEGORIES]


def _fields(draft: Draft, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the speakers and the metadata as fields."""
    made = {}
    for name in SPEAKERS:
        who = record.get(name)
        if isinstance(who, str) and who:
            made[name] = value_field(name, who)
        elif who not in NOTHING:
            draft.lose(name, "it is not a text")
    metadata = record.get("metadata")
    if metadata not in NOTHING and not isinstance(metadata, dict):
        draft.lose("metadata", "it is not an object")
    for key, value in metadata.items() if isinstance(metadata, dict) else ():
        if value is None:
            continue
        name = f"metadata.{key}" if key == FIELD or key in made else key
        shown = f"metadata.{name_shown(key)}"
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not 0 < len(name) <= MAX_NAME:
            draft.lose("metadata", f"a field has a name of 1 to {MAX_NAME} characters")
        elif len(said) > MAX_VALUE_LENGTH:
            draft.lose(shown, f"a field has at most {MAX_VALUE_LENGTH:,} characters")
        elif len(made) >= MAX_FIELDS:
            draft.lose("metadata", f"a memory keeps at most {MAX_FIELDS} of its members")
        elif name in made:
            draft.lose(shown, "another member has the same name")
        else:
            made[name] = value_field(name, value)
    return list(made.values())


def scope_segment(name: str) -> str:
    """Return ``name`` as one segment of a scope, percent-encoded where necessary: ``%20`` for a space."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return _ODD.sub(lambda found: quote(found[0], safe=""), name)
