"""Reads the memory files of assistants: the knowledge graph of the reference memory server for MCP, and
``memories.json`` of a Claude account (docs/importers.md)."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory.core.field_values import MAX_VALUE_LENGTH
from memory.transfer.importers.draft import (
    MAX_FIELDS,
    MAX_NAME,
    TOO_LONG,
    UNKNOWN,
    Draft,
    id_computed,
    name_shown,
    value_field,
)
from memory.transfer.importers.stream import Entry, entries_read

MAX_TITLE = 1000
OBSERVATION = "observation"
_HEADING = re.compile(r"(?:#{1,6}\s+|\*\*)([^*\n]{1,200}?)(?:\*\*)?:?")


def graph_read(path: Path, scope: str, _now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each entity of ``memory.jsonl`` of the reference memory server for MCP, and for each relation
    an extension of the entity where it begins. The file is read twice, because a link can only be stored when both
    topics are. Keeps the names of all entities in memory."""
    names: set[str] = set()
    for wants_entities in (True, False):
        for entry in entries_read(path, members=("entities", "relations")):
            if (_kind_of(entry) != "relation") is not wants_entities:
                continue
            draft = Draft(entry.place, entry.offset, problem=entry.problem)
            if draft.object_is(entry.value, "An entity"):
                read = _entity_read if wants_entities else _relation_read
                read(draft, entry.value, scope, names)
            yield draft


def _kind_of(entry: Entry) -> Any:
    if entry.member:
        return {"entities": "entity", "relations": "relation"}[entry.member]
    return entry.value.get("type") if isinstance(entry.value, dict) else None


def _entity_read(draft: Draft, record: dict[str, Any], scope: str, names: set[str]) -> None:
    name, kind, given = record.get("name"), record.get("entityType"), record.get("observations")
    if record.get("type", "entity") != "entity":
        draft.lose(f"lines of the type {name_shown(str(record.get('type')))}", UNKNOWN)
        return
    if not isinstance(name, str) or not name.strip():
        draft.problem = "This entity has no name."
        return
    names.add(name.strip())
    observations = [each for each in given if isinstance(each, str) and each.strip()] if isinstance(given, list) else []
    kept = [each for each in observations if len(each) <= MAX_VALUE_LENGTH]
    for lost, why in (
        (given and len(observations) < len(given), "they are empty or no texts"),
        (len(kept) < len(observations), TOO_LONG),
        (len(kept) > MAX_FIELDS, f"a topic gets at most {MAX_FIELDS} of them"),
    ):
        if lost:
            draft.lose("observations", why)
    draft.rest_lose(record, ("type", "name", "entityType", "observations"))
    draft.item_set(
        topic_id=id_computed("mcp-memory", scope, name.strip()),
        title=name.strip()[:MAX_TITLE],
        topic_kind=kind.strip()[:MAX_NAME] if isinstance(kind, str) else "",
        scope=scope,
        fields=[
            value_field(OBSERVATION if at == 1 else f"{OBSERVATION} {at}", each)
            for at, each in enumerate(kept[:MAX_FIELDS], start=1)
        ],
    )


def _relation_read(draft: Draft, record: dict[str, Any], scope: str, names: set[str]) -> None:
    given = [record.get(name) for name in ("from", "to", "relationType")]
    if not all(isinstance(each, str) and each.strip() for each in given):
        draft.problem = "A relation has from, to and relationType."
        return
    source, target, kind = (str(each).strip() for each in given)
    if source not in names or target not in names:
        draft.lose("relations", "the file has no entity with one of the names")
    elif source == target:
        draft.lose("relations", "a topic cannot be linked to itself")
    else:
        ids = [id_computed("mcp-memory", scope, name) for name in (source, target)]
        edges = [{"to_topic_id": ids[1], "kind": kind[:MAX_NAME]}]
        draft.item_set(placement="extend_topic", topic_id=ids[0], edges=edges)


def claude_memories_read(path: Path, scope: str, _now: dt.datetime) -> Iterator[Draft]:
    """Yield a draft for each paragraph of what Claude has noted: of ``conversations_memory`` and ``project_memories``
    in ``memories.json`` of a Claude account."""
    for entry in entries_read(path, members=("memories",)):
        about = Draft(entry.place, entry.offset, problem=entry.problem)
        if about.object_is(entry.value, "An account"):
            for at, (project, section, text) in enumerate(_paragraphs(entry.value), start=1):
                draft = Draft(f"{entry.place}, paragraph {at}", entry.offset)
                if draft.text_is(text, "paragraphs", ""):
                    named = {"memory": text, "section": section, "project": project}
                    draft.item_set(
                        topic_id=id_computed("claude-memories", scope, project, text),
                        topic_kind="memory",
                        scope=scope,
                        fields=[value_field(name, value) for name, value in named.items() if value],
                    )
                yield draft
            about.rest_lose(entry.value, ("conversations_memory", "project_memories", "account_uuid"))
        if about.problem or about.lost:
            yield about


def _paragraphs(account: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (project, heading, paragraph)."""
    projects = account.get("project_memories")
    texts = [("", account.get("conversations_memory")), *(projects.items() if isinstance(projects, dict) else ())]
    for project, text in texts:
        section = ""
        for part in re.split(r"\n\s*\n", text if isinstance(text, str) else ""):
            first, _newline, rest = part.strip().partition("\n")
            if heading := _HEADING.fullmatch(first.strip()):
                section, part = heading[1].strip(), rest
            if part.strip():
                yield project, section, part.strip()
