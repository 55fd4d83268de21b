"""One entry of a file as an item of ingest, with the parts of the entry that the item does not contain."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.utils.crypto import salted_hmac

from memory.core.errors import MemoryProblem
from memory.ingest.batch import item_parse
from memory.ingest.items import IngestItem

# Values that count as empty.
NOTHING: tuple[Any, ...] = (None, "", [], {})
UNKNOWN = "it is not known here"
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
    prevents the import of the file, unless the importer is forgiving. ``offset`` rises with every draft, so that a
    stopped import can continue after any draft. ``lost`` are the members that are not imported, ``notes`` the members
    that are imported in another form; both contain pairs of a member and a clause about it."""

    place: str
    offset: int
    number: int
    item: IngestItem | None = None
    problem: str = ""
    lost: list[tuple[str, str]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def item_set(self, raw: dict[str, Any]) -> None:
        """Parse ``raw`` and set the item, or the problem."""
        item = item_parse(raw)
        if isinstance(item, MemoryProblem):
            self.problem = item.sentence
        else:
            self.item = item


def value_field(name: str, value: Any) -> dict[str, Any]:
    """Return a JSON value as a field of the matching type."""
    field_type = next(name for of, name, _label in _TYPES if isinstance(value, of))
    return {"name": name, "value": value, "provenance": "import", "field_type": field_type}


def id_computed(source: str, *parts: str) -> uuid.UUID:
    """Return a topic id for an entry without an id. A second import computes the same id. The id must not reveal
    anything about the text, because receipts of purges contain ids."""
    digest = salted_hmac(f"memory.transfer.{source}", json.dumps(parts), algorithm="sha256").digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def type_label(value: Any) -> str:
    """Return the type of a JSON value in words."""
    return next((label for of, _name, label in _TYPES if isinstance(value, of)), "null")


def name_shown(name: str) -> str:
    """Return the name of a member, shortened for sentences."""
    return name if len(name) <= 40 else f"{name[:40]}…"


class Seen:
    """The ids of a file's topics, to find duplicates. Only the latest ids are kept, so that memory stays bounded.
    Earlier ids are found in the store."""

    MAX = 500_000

    def __init__(self) -> None:
        self._now: set[uuid.UUID] = set()
        self._before: set[uuid.UUID] = set()

    def before(self, topic_id: uuid.UUID) -> bool:
        """Return whether an id occurred before, and remember it."""
        if topic_id in self._now or topic_id in self._before:
            return True
        if len(self._now) >= self.MAX:
            self._now, self._before = set(), self._now
        self._now.add(topic_id)
        return False
