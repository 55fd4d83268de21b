"""Imports the memory files of assistants: the knowledge graph of the reference memory server for MCP, and
``memories.json`` of a Claude account (docs/importers.md)."""

import datetime as dt
import re
import uuid
from collections.abc import Iterator
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

MAX_TITLE = 1000
MAX_KIND = 200
# Below the limit for an item of ingest.
MAX_OBSERVATIONS = 190
OBSERVATION = "observation"
_TOO_LONG = f"a field holds {MAX_VALUE_LENGTH:,} characters"
_HEADING = re.compile(r"(?:#{1,6}\s+|\*\*)([^*\n]{1,200}?)(?:\*\*)?:?")


class MemoryGraph(Importer):
    """``memory.jsonl`` of the reference memory server for MCP: entities with observations, and relations."""

    name = "mcp-memory"
    title = "knowledge graph of an MCP memory server"
    noun = "entity or relation"
    nouns = "entities or relations"

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each entity, and for each relation an extension of the entity where it begins. The file is
        read twice, because a relation may come before its entities. Keeps the names of all entities in memory."""
        names = {name for entry in _graph(path) if (name := _entity_name(entry))}
        # A link can only be stored when both topics are, so that all entities come first.
        offset = number = 0
        for wants_entities in (True, False):
            seen = Seen()
            for entry in _graph(path):
                if (_kind_of(entry) != "relation") is not wants_entities:
                    continue
                number += 1
                # Offsets rise with each draft, also in the second reading.
                offset += 1
                draft = Draft(entry.place, offset, number)
                if entry.problem:
                    draft.problem = entry.problem
                elif not isinstance(entry.value, dict):
                    draft.problem = f"An entity is an object; this is {type_label(entry.value)}."
                elif wants_entities:
                    _entity_read(draft, entry.value, scope, seen)
                else:
                    _relation_read(draft, entry.value, scope, names)
                yield draft


def _graph(path: Path) -> Iterator[Entry]:
    return entries_read(path, members=("entities", "relations"))


def _kind_of(entry: Entry) -> str:
    if entry.member:
        return {"entities": "entity", "relations": "relation"}[entry.member]
    kind = entry.value.get("type") if isinstance(entry.value, dict) else None
    return kind if isinstance(kind, str) else ""


def _entity_name(entry: Entry) -> str:
    if not isinstance(entry.value, dict) or _kind_of(entry) != "entity":
        return ""
    name = entry.value.get("name")
    return name.strip() if isinstance(name, str) else ""


def _entity_id(scope: str, name: str) -> uuid.UUID:
    return id_computed("mcp-memory", scope, name)


def _entity_read(draft: Draft, record: dict[str, Any], scope: str, seen: Seen) -> None:
    name, kind, given = record.get("name"), record.get("entityType"), record.get("observations")
    if record.get("type", "entity") != "entity":
        draft.lost.append((f"lines of the type {name_shown(str(record.get('type')))}", UNKNOWN))
        return
    if not isinstance(name, str) or not name.strip():
        draft.problem = "This entity has no name."
        return
    name = name.strip()
    topic_id = _entity_id(scope, name)
    if seen.before(topic_id):
        draft.lost.append(("entities", "an earlier entity of the file has the same name and is kept"))
        return
    observations = [each for each in given if isinstance(each, str) and each.strip()] if isinstance(given, list) else []
    if len(observations) < len(given or ()):
        draft.lost.append(("observations", "they are empty or no texts"))
    kept = [each for each in observations if len(each) <= MAX_VALUE_LENGTH][:MAX_OBSERVATIONS]
    if any(len(each) > MAX_VALUE_LENGTH for each in observations):
        draft.lost.append(("observations", _TOO_LONG))
    elif len(kept) < len(observations):
        draft.lost.append(("observations", f"a topic gets at most {MAX_OBSERVATIONS} of them"))
    for member, value in record.items():
        if member not in ("type", "name", "entityType", "observations") and value not in NOTHING:
            draft.lost.append((name_shown(member), UNKNOWN))
    draft.item_set(
        {
            "placement": "new_topic",
            "topic_id": str(topic_id),
            "title": name[:MAX_TITLE],
            "topic_kind": kind.strip()[:MAX_KIND] if isinstance(kind, str) else "",
            "scope": scope,
            "fields": [
                value_field(OBSERVATION if at == 1 else f"{OBSERVATION} {at}", each)
                for at, each in enumerate(kept, start=1)
            ],
        }
    )


def _relation_read(draft: Draft, record: dict[str, Any], scope: str, names: set[str]) -> None:
    ends = [record.get("from"), record.get("to")]
    kind = record.get("relationType")
    if not all(isinstance(each, str) and each.strip() for each in (*ends, kind)):
        draft.problem = "A relation has from, to and relationType."
        return
    source, target = (str(each).strip() for each in ends)
    if source not in names or target not in names:
        draft.lost.append(("relations", "the file has no entity with one of the names"))
        return
    if source == target:
        draft.lost.append(("relations", "a topic cannot be linked to itself"))
        return
    draft.item_set(
        {
            "placement": "extend_topic",
            "topic_id": str(_entity_id(scope, source)),
            "edges": [{"to_topic_id": str(_entity_id(scope, target)), "kind": str(kind).strip()[:MAX_KIND]}],
        }
    )


class ClaudeMemories(Importer):
    """``memories.json`` in the export of a Claude account: what Claude has noted, as texts with headings."""

    name = "claude-memories"
    title = "memories of a Claude account"
    noun = "paragraph"
    nouns = "paragraphs"

    def drafts(self, path: Path, *, scope: str, now: dt.datetime) -> Iterator[Draft]:
        """Yield a draft for each paragraph of ``conversations_memory`` and ``project_memories``."""
        seen = Seen()
        number = 0
        for entry in entries_read(path, members=("memories",)):
            if entry.problem or not isinstance(entry.value, dict):
                problem = entry.problem or f"An account is an object; this is {type_label(entry.value)}."
                number += 1
                yield Draft(entry.place, number, number, problem=problem)
                continue
            for project, section, text in _paragraphs(entry.value):
                number += 1
                # Several drafts come from one entry, so that the place in the file is counted in drafts.
                draft = Draft(f"Paragraph {number}", number, number)
                _paragraph_read(draft, project, section, text, scope, seen)
                yield draft
            lost = [
                name
                for name, value in entry.value.items()
                if name not in ("conversations_memory", "project_memories", "account_uuid") and value not in NOTHING
            ]
            if lost:
                number += 1
                yield Draft(entry.place, number, number, lost=[(name_shown(name), UNKNOWN) for name in lost])


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


def _paragraph_read(draft: Draft, project: str, section: str, text: str, scope: str, seen: Seen) -> None:
    if len(text) > MAX_VALUE_LENGTH:
        draft.lost.append(("paragraphs", _TOO_LONG))
        return
    topic_id = id_computed("claude-memories", scope, project, text)
    if seen.before(topic_id):
        draft.lost.append(("paragraphs", "an earlier paragraph of the file is the same"))
        return
    about = [("section", section), ("project", project)]
    draft.item_set(
        {
            "placement": "new_topic",
            "topic_id": str(topic_id),
            "topic_kind": "memory",
            "scope": scope,
            "fields": [value_field("memory", text), *(value_field(name, each) for name, each in about if each)],
        }
    )
