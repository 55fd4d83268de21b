"""One entry of a file as an item of ingest, with the parts of the entry that the item does not contain."""

import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.crypto import salted_hmac

from memory.core.errors import MemoryProblem
from memory.core.field_values import MAX_VALUE_LENGTH
from memory.ingest.batch import item_parse
from memory.ingest.items import IngestItem

# Values that count as empty.
NOTHING: tuple[Any, ...] = (None, "", [], {})
UNKNOWN = "it is not known here"
TOO_LONG = f"a field holds {MAX_VALUE_LENGTH:,} characters"
# Below the limit for an item of ingest, with room for the fields that an importer adds.
MAX_FIELDS = 190
MAX_NAME = 200
# For the types of JSON values: (Python type, field type, name in sentences).
_TYPES: tuple[tuple[type, str, str], ...] = (
    (str, "string", "a text"),
    (bool, "bool", "true or false"),
    (int, "int", "a number"),
    (float, "float", "a number"),
    (list, "list", "a list"),
    (dict, "json", "an object"),
)


@dataclass(slots=True)
class Draft:
    """One parsed entry. An entry without an ``item`` is not imported; ``lost`` contains the reason. A ``problem``
    prevents the import of the file, unless the importer is forgiving. ``offset`` is the place in bytes, ``number``
    counts drafts from 1. ``lost`` are the members that are not imported, ``notes`` the members that are imported in
    another form; both contain pairs of a member and a clause about it. ``value`` is a message that is still to be
    parsed, and ``group`` identifies its conversation if it names none."""

    place: str = ""
    offset: int = 0
    value: Any = None
    group: str = ""
    number: int = 0
    item: IngestItem | None = None
    problem: str = ""
    lost: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def object_is(self, value: Any, what: str) -> bool:
        """Return whether the entry has no problem so far and ``value`` is an object. Otherwise set the problem."""
        if not self.problem and not isinstance(value, dict):
            label = next((label for of, _name, label in _TYPES if isinstance(value, of)), "null")
            self.problem = f"{what} is an object; this is {label}."
        return not self.problem

    def lose(self, name: str, why: str) -> None:
        """Note that a member is not imported."""
        self.lost.append((name, why))

    def note(self, name: str, how: str) -> None:
        """Note that a member is imported in another form."""
        self.notes.append((name, how))

    def text_is(self, text: Any, nouns: str, why_empty: str) -> bool:
        """Return whether ``text`` can be the value of a field. Otherwise note that the entry is not imported."""
        if not isinstance(text, str) or not text.strip():
            self.lose(f"{nouns} without text", why_empty)
        elif len(text) > MAX_VALUE_LENGTH:
            self.lose(f"{nouns} that are too long", TOO_LONG)
        else:
            return True
        return False

    def rest_lose(self, record: dict[str, Any], read: Collection[str], why: Mapping[str, str] = {}) -> None:
        """Note that the members of ``record`` other than ``read`` are not imported."""
        for name, value in record.items():
            if name not in read and value not in NOTHING:
                self.lose(name_shown(name), why.get(name, UNKNOWN))

    def item_set(self, **members: Any) -> None:
        """Set the item, or the problem if it is invalid. Without ``placement``, it creates a topic."""
        item = item_parse({"placement": "new_topic", **members})
        if isinstance(item, MemoryProblem):
            self.problem = item.sentence
        else:
            self.item = item


def value_field(name: str, value: Any) -> dict[str, Any]:
    """Return a JSON value as a field of the matching type."""
    field_type = next(name for of, name, _label in _TYPES if isinstance(value, of))
    return {"name": name, "value": value, "provenance": "import", "field_type": field_type}


def id_computed(source: str, *parts: str) -> str:
    """Return a topic id for an entry without an id. A second import computes the same id. The id must not reveal
    anything about the text, because receipts of purges contain ids."""
    digest = salted_hmac(f"memory.transfer.{source}", json.dumps(parts), algorithm="sha256").digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def name_shown(name: str) -> str:
    """Return the name of a member, shortened for sentences."""
    return name if len(name) <= 40 else f"{name[:40]}…"
