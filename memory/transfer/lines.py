"""The lines of an export: a model for each kind, and a reader of files in batches."""

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import IO, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.ingest.history import OlderRevisions, Past, PastLink, PastMerge, Reference, TopicHistory
from memory.policy.restore import PastVersion

FORMAT, VERSION = "memstate", 2
END = "end"
# A batch ends with the line that reaches one of these limits.
LINES, BATCH_BYTES = 500, 4 * 1024 * 1024
# More than the longest line of an export.
MAX_LINE = 128 * 1024 * 1024

_GZIP = b"\x1f\x8b"
_KIND = re.compile(rb'\s*\{\s*"type"\s*:\s*"([a-z0-9_]{1,20})"')
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
# Longer names of members are cut in error messages.
_MAX_NAME = 100
_SENTENCES = {"missing": "is missing", "extra_forbidden": "is not known; was the file written by a newer MemState?"}


class LineProblem(ValueRefused):
    """A line is not valid in an export, or the caller may not import it."""

    code = ProblemCode.INVALID_FILE


class Header(BaseModel):
    """The first line. Newer versions may add members."""

    version: int


class End(Past):
    """The last line. A file without this line is truncated."""

    type: Literal["end"]
    lines: int


class PolicyLine(Past):
    """A scope with all versions of its policy."""

    type: Literal["policy"]
    scope: str
    versions: Annotated[list[PastVersion], Field(min_length=1)]


# The model of each kind of line, in the order of the file.
MODELS: dict[str, type[BaseModel]] = {
    "policy": PolicyLine,
    "topic": TopicHistory,
    "history": OlderRevisions,
    "reference": Reference,
    "merged": PastMerge,
    "link": PastLink,
}


# By kind: the members by which lines are sorted, those that name the topics that a line belongs to, and those that name
# other topics.
_KEYS = {
    "policy": ("scope",),
    "topic": ("id",),
    "reference": ("to", "topic", "field", "seq"),
    "merged": ("into", "topic"),
    "link": ("source", "target", "kind"),
}
_OWNERS = {
    "topic": ("id",),
    "history": ("topic",),
    "reference": ("topic",),
    "merged": ("topic",),
    "link": ("source", "target"),
}
_OTHERS = {"reference": ("to",), "merged": ("into",)}


def line_key(kind: str, line: Any) -> tuple[Any, ...]:
    """Return the sort key of a line within its kind."""
    return tuple(getattr(line, name) for name in _KEYS.get(kind, ()))


def line_topics(line: Any) -> tuple[set[uuid.UUID], set[uuid.UUID]]:
    """Return (the topics that a line belongs to, the other topics that it refers to)."""
    owners = {getattr(line, name) for name in _OWNERS[line.type]}
    return owners, {getattr(line, name) for name in _OTHERS.get(line.type, ())}


class Lines(NamedTuple):
    """Consecutive lines of one kind. ``first`` is the number of the first line. ``offset`` is the position in the file
    at which the last line ends."""

    kind: str
    lines: Sequence[bytes]
    first: int
    offset: int


def lines_batches(file: IO[bytes], *, offset: int = 0, done: int = 0) -> Iterator[Lines]:
    """Yield the lines after ``offset`` in batches of one kind. ``done`` is the number of lines before ``offset``.
    Raises ``LineProblem`` for a line that is too long or does not begin with its type."""
    file.seek(offset)
    batch: list[bytes] = []
    kind, size, number = "", 0, done
    while line := file.readline(MAX_LINE + 1):
        number += 1
        own = _kind_of(line, number)
        if batch and (own != kind or len(batch) == LINES or size >= BATCH_BYTES):
            yield Lines(kind, batch, number - len(batch), offset)
            batch, size = [], 0
        kind = own
        batch.append(line)
        offset, size = offset + len(line), size + len(line)
    if batch:
        yield Lines(kind, batch, number - len(batch) + 1, offset)


def line_parse(model: type[BaseModel], line: bytes) -> Any:
    """Parse a line. Raises ``LineProblem`` with the reason if it is invalid."""
    if not line.endswith(b"\n"):
        raise LineProblem("The file ends within this line. Make the export again.")
    if _NUL.search(line):
        raise LineProblem("It contains a NUL character, which cannot be stored.")
    try:
        return model.model_validate_json(line, strict=True)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            sentence = f"This is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}"
        else:
            why = _SENTENCES.get(first["type"], f"is not valid: {first['msg'][0].lower()}{first['msg'][1:]}")
            place = ".".join(map(str, first["loc"]))
            sentence = f"The member {place if len(place) <= _MAX_NAME else f'{place[:_MAX_NAME]}…'} {why}"
        raise LineProblem(sentence if sentence.endswith("?") else f"{sentence.rstrip('.')}.") from problem


def _kind_of(line: bytes, number: int) -> str:
    if len(line) > MAX_LINE:
        raise LineProblem(f"Line {number:,} is longer than {MAX_LINE:,} bytes; this is not an export of MemState.")
    found = _KIND.match(line)
    if found is not None:
        return found[1].decode()
    if number == 1 and line.startswith(_GZIP):
        raise LineProblem("The file is compressed; unpack it first (gunzip).")
    what = "is empty" if not line.strip() else 'does not begin with its "type"'
    raise LineProblem(f"Line {number:,} {what}; this is not an export of MemState, or a part of it is missing.")
