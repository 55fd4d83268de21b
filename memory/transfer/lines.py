"""Lines of an export, read from a file batch by batch."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from memory.domain.errors import RequestRefused, ValueRefused
from memory.domain.problem_codes import ProblemCode
from memory.transfer.shape import FORMAT, VERSION

END = "end"
LINES = 500
# A batch ends with the line that reaches this.
BATCH_BYTES = 4 * 1024 * 1024
# What PostgreSQL takes as one value, and more than the longest line of an export.
MAX_LINE = 200 * 1024 * 1024

_GZIP = b"\x1f\x8b"
_SORT = re.compile(rb'\s*\{\s*"type"\s*:\s*"([a-z0-9_]{1,20})"')


class Lines(NamedTuple):
    """Lines of one sort that follow each other, without what comes after them; ``first`` is the number of the first,
    ``offset`` the bytes of the file up to their end."""

    sort: str
    lines: Sequence[bytes]
    first: int
    offset: int


class LineProblem(ValueRefused):
    """A line is none of an export, or may not be imported by whoever asks."""

    code = ProblemCode.LINE_DAMAGED


def lines_batches(file: IO[bytes], *, offset: int = 0, done: int = 0) -> Iterator[Lines]:
    """Yield the lines behind ``offset``, of which ``done`` come before, in batches of one sort, ``LINES`` at most.

    The first and the last line are batches of their own. Raises ``LineProblem`` for a line that says not what it is, is
    too long, or lies where its sort has no place.
    """
    file.seek(offset)
    batch: list[bytes] = []
    sort, size, first = "", 0, done + 1
    for number, line in enumerate(_lines(file, done), start=done + 1):
        own = _sort_of(line, number)
        if batch and (own != sort or len(batch) == LINES or size >= BATCH_BYTES):
            yield Lines(sort, batch, first, offset)
            batch, size, first = [], 0, number
        sort = own
        batch.append(line)
        offset, size = offset + len(line), size + len(line)
    if batch:
        yield Lines(sort, batch, first, offset)


def _lines(file: IO[bytes], done: int) -> Iterator[bytes]:
    number = done
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise LineProblem(f"Line {number:,} is longer than {MAX_LINE:,} bytes; this is no export of MemState.")
        yield line


def _sort_of(line: bytes, number: int) -> str:
    found = _SORT.match(line)
    if found is None:
        if number == 1 and line.startswith(_GZIP):
            raise LineProblem("The file is compressed; unpack it first (gunzip).", code=ProblemCode.FILE_NOT_AN_EXPORT)
        what = "is empty" if not line.strip() else 'does not begin with its "type"'
        raise LineProblem(f"Line {number:,} {what}; this is no export of MemState, or a part of it is missing.")
    return found[1].decode()


def header_check(line: bytes) -> None:
    """Raise ``RequestRefused`` unless ``line`` is the first of an export that can be read here."""
    told = object_read(line)
    if told.get("type") != FORMAT:
        raise RequestRefused(
            'This is no export of MemState, which begins with {"type":"memstate".', code=ProblemCode.FILE_NOT_AN_EXPORT
        )
    version = told.get("version")
    if isinstance(version, int) and version > VERSION:
        raise RequestRefused(
            f"The file was written by a newer MemState, in the format {version}; this one reads {VERSION}. Bring this "
            "one up to date first.",
            code=ProblemCode.NEWER_FORMAT,
        )
    if version != VERSION:
        raise RequestRefused(
            "The first line does not say in which format the file is written.", code=ProblemCode.FILE_NOT_AN_EXPORT
        )


def object_read(line: bytes) -> dict[str, Any]:
    """Return the object that a line holds. Raises ``LineProblem`` if it is none."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise LineProblem("This is not JSON; the file is damaged, or no export of MemState.") from problem
    if not isinstance(told, dict):
        raise LineProblem("This is no object of JSON; the file is damaged, or no export of MemState.")
    return told
