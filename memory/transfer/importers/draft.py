"""What becomes of one entry of a file: an item of ingest, and what of the entry has no place in it."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.utils.crypto import salted_hmac

from memory.core.errors import MemoryProblem
from memory.ingest.batch import item_parse
from memory.ingest.items import IngestItem

# What says nothing, wherever it stands.
NOTHING: tuple[Any, ...] = (None, "", [], {})
UNKNOWN = "it is not known here"
# A title is read in lists; the whole text stands in a field.
MAX_TITLE = 200


@dataclass(slots=True)
class Draft:
    """One entry, read. Without an item nothing is brought of it: it is told among what is lost, or it has a problem,
    for which the whole file is refused.

    ``offset`` rises with every draft of a file and is at most the bytes up to there, so that an import that stopped can
    go on behind it; ``number`` counts entries. ``lost`` and ``told`` are pairs of a member and a clause: what is not
    kept, and what is kept in another way."""

    place: str
    offset: int
    number: int
    item: IngestItem | None = None
    problem: str = ""
    lost: list[tuple[str, str]] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)

    def item_make(self, raw: dict[str, Any]) -> None:
        """Take on the item that ``raw`` stands for, or the problem with it."""
        item = item_parse(raw)
        if isinstance(item, MemoryProblem):
            self.problem = item.sentence
        else:
            self.item = item


def title_made(text: str) -> str:
    """Return a title for ``text``: the whole if it is short, else its first words."""
    line = " ".join(text[: 4 * MAX_TITLE].split())
    if len(line) <= MAX_TITLE:
        return line
    words = line[:MAX_TITLE].rsplit(" ", 1)[0]
    return words.rstrip(" ,;:") + "…"


def value_field(name: str, value: Any) -> dict[str, Any]:
    """Return a JSON value as a field with the type that holds it."""
    kinds: list[tuple[type, str]] = [
        (str, "string"),
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (list, "list"),
        (dict, "json"),
    ]
    return {
        "name": name,
        "value": value,
        "provenance": "import",
        "field_type": next(kind for of, kind in kinds if isinstance(value, of)),
    }


def id_made(source: str, *parts: str) -> uuid.UUID:
    """Return the id of a topic for something that has none: the same each time, so that a second import finds it, and
    no trace of the text, since receipts of a purge keep ids."""
    digest = salted_hmac(f"memory.transfer.{source}", json.dumps(parts), algorithm="sha256").digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def sort_of(value: Any) -> str:
    """Return what a JSON value is, in words."""
    words: list[tuple[type, str]] = [
        (str, "a text"),
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "an object"),
    ]
    return next((said for of, said in words if isinstance(value, of)), "nothing")


def name_shown(name: str) -> str:
    """Return the name of a member as it is told to people: foreign names may be of any length."""
    return name if len(name) <= 40 else f"{name[:40]}…"


class Seen:
    """The ids of a file's topics, to find one that comes twice. Of very many the latest are kept, so that memory stays
    bounded; the store knows those that were written."""

    MOST = 500_000

    def __init__(self) -> None:
        self._now: set[uuid.UUID] = set()
        self._before: set[uuid.UUID] = set()

    def before(self, topic_id: uuid.UUID) -> bool:
        """Tell whether an id came before, and note it."""
        if topic_id in self._now or topic_id in self._before:
            return True
        if len(self._now) >= self.MOST:
            self._now, self._before = set(), self._now
        self._now.add(topic_id)
        return False
