"""Reads the entries of a JSON file of any size one by one. Entries are the elements of a list, the lines of a JSON
Lines file, or the elements of the known lists of an object. ``ijson`` gets the file in pieces that end at brackets,
commas and line ends, so that the place of each entry is known."""

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import ijson
from django.conf import settings

from memory.core.errors import MemoryProblem, RequestRefused
from memory.core.json_limits import json_guarded
from memory.core.problem_codes import ProblemCode

BLOCK = 256 * 1024
# The limit for one entry. Topics are far smaller, but a conversation over years may be this long.
MAX_ENTRY_BYTES = 32 * 1024 * 1024
# The limit of nesting in a file. The limit for one entry is far lower.
MAX_DEPTH = 1000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECE = re.compile(rb"[^\[\]{},\n]*+[\]},\n]|[^\[\]{},\n]++|[\[{]")
# A depth that no value reaches: the depth of entries outside the known lists of an object.
_NOWHERE = MAX_DEPTH + 1
# Maps a part of an error message of ijson to the sentence for it.
_ERRORS = {
    "premature EOF": "it is cut off",
    "invalid char in json text": "a value is expected",
    "unallowed token": "a value is expected, or a bracket or comma is misplaced",
    "I expect ','": "a comma or a closing bracket is missing",
    "separated by a colon": "a colon is missing",
    "invalid object key": "a name in quotes is missing",
    "UTF8": "a byte is not UTF-8",
    "utf-8": "a byte is not UTF-8",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a file, or the problem with it. ``place`` is for people. ``offset`` is the position of its end in
    bytes. ``number`` counts from 1. ``member`` and ``group`` are the name and the number of the list that contains it
    ("" and 0 for none)."""

    value: Any
    problem: str
    place: str
    offset: int
    number: int
    member: str
    group: int


def entries_read(path: Path, *, members: Collection[str]) -> Iterator[Entry]:
    """Yield the entries of a file; ``members`` are the names of lists of entries. Keeps one block and one entry in
    memory. Raises ``OSError``, and ``RequestRefused`` with the number of the line for a file that is not JSON in UTF-8
    or has an entry longer than ``MAX_ENTRY_BYTES``."""
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events, multiple_values=True)
    # The part of the current entry that was read so far, with the separator before it.
    held = bytearray()
    depth = level = number = groups = offset = 0
    line, name = 1, ""
    with path.open("rb") as file:
        for piece in itertools.chain(_pieces(file), [b""]):
            # A number or word at the end of the file is complete only when the parser is closed. A file without any
            # value is accepted.
            if piece or number or groups or held.strip():
                _send(parser, piece, line)
            held += piece
            offset, line = offset + len(piece), line + piece.count(b"\n")
            if len(held) > MAX_ENTRY_BYTES:
                raise _refused(line, f"an entry is longer than {MAX_ENTRY_BYTES:,} bytes, or not JSON")
            if not piece and held.strip() and not events:
                # The parser does not report a truncated string outside of lists and objects.
                raise _refused(line, _ERRORS["premature EOF"])
            for event, value in events:
                if event == "map_key":
                    name = value if depth == 1 else name
                elif event in ("start_map", "start_array"):
                    name = name if depth else ""
                    if event == "start_array" and (depth == 0 or (depth == 1 and name in members)):
                        groups, level = groups + 1, depth + 1
                    depth += 1
                    if depth > MAX_DEPTH:
                        raise _refused(line, "it is nested too deeply")
                else:
                    depth -= event in ("end_map", "end_array")
                    if depth == level:
                        number += 1
                        raw = bytes(held.lstrip(b" \t\r\n,"))
                        began = line - raw.count(b"\n")
                        place = f"Entry {number} (line {began})"
                        member, group = (name, groups) if level else ("", 0)
                        yield Entry(*_value(raw, value), place, offset, number, member, group)
                    elif depth < level:
                        level = _NOWHERE if depth else 0
                if depth <= level:
                    held.clear()
            events.clear()


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    block = file.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK) or file.read(BLOCK)
    while block:
        yield from _PIECE.findall(block)
        block = file.read(BLOCK)


def _send(parser: Any, piece: bytes, line: int) -> None:
    try:
        if piece:
            parser.send(piece)
        else:
            parser.close()
    except ijson.JSONError as problem:
        # The first line is the error; a part of the file follows, sometimes with escaped line ends.
        error = str(problem).partition("\n")[0].partition("\\n")[0]
        own = error.partition("error: ")[2].rstrip(".") or "it cannot be read"
        why = next((sentence for part, sentence in _ERRORS.items() if part in error), own)
        raise _refused(line, why) from problem
    except UnicodeDecodeError as problem:
        raise _refused(line, "a text contains half of a surrogate pair, which is not a character") from problem
    except (ValueError, ArithmeticError, SystemError) as problem:
        # Python refuses the number, and the C code of ijson may report this as another error.
        raise _refused(line, "a number has too many digits") from problem


def _value(raw: bytes, value: Any) -> tuple[Any, str]:
    """Return (value, problem) of an entry: of the object or list ``raw``, or else ``value``."""
    if not raw.startswith((b"{", b"[")):
        return float(value) if isinstance(value, Decimal) else value, ""
    try:
        return json_guarded(raw, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH, what="The entry"), ""
    except MemoryProblem as refused:
        return None, refused.sentence


def _refused(line: int, why: str) -> RequestRefused:
    return RequestRefused(f"The file is not whole JSON: at line {line}, {why}.", code=ProblemCode.INVALID_FILE)
