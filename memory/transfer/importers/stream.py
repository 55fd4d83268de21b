"""Reads the entries of a JSON file of any size one by one. Entries are the elements of a list, the lines of a JSON
Lines file, or the elements of the known lists of an object. ``ijson`` gets the file in pieces that end at brackets,
commas and line ends, so that the place of each entry is known."""

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
_PIECE = re.compile(rb"[^\[\]{},\n]*+[\]},\n]|[^\[\]{},\n]++|[\[{]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A depth that no value reaches. ``_level`` has this value outside the known lists of an object, because members there
# are not entries.
_NOWHERE = MAX_DEPTH + 1
# Maps a part of an error message of ijson to the sentence for it.
_ERRORS = {
    "premature EOF": "it is cut off",
    "invalid char in json text": "a value is expected",
    "unallowed token": "a value is expected, or a bracket or comma is misplaced",
    "I expect ','": "a comma or a closing bracket is missing",
    "separated by a colon": "a colon is missing",
    "invalid object key": "a name in quotes is missing",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a file, or the problem with it.

    ``start`` and ``offset`` are the positions of its beginning and end in bytes. ``number`` counts from 1. ``line`` is
    the number of its first line. ``member`` and ``group`` are the name and the number of the list that contains it (""
    and 0 for none)."""

    value: Any
    start: int
    offset: int
    number: int
    line: int
    member: str = ""
    group: int = 0
    problem: str = ""

    @property
    def place(self) -> str:
        """The place in the file, as text for people."""
        return f"Entry {self.number} (line {self.line})"


def entries_read(path: Path, *, members: Collection[str]) -> Iterator[Entry]:
    """Yield the entries of a file; ``members`` are the names of lists of entries. Keeps one block and one entry in
    memory. Raises ``OSError``, and ``RequestRefused`` with the number of the line for a file that is not JSON in UTF-8
    or has an entry longer than ``MAX_ENTRY_BYTES``."""
    with path.open("rb") as file:
        yield from _Reader(file, members).entries()


class _Reader:
    """The state of reading. ``_held`` is the part of the current entry that was read so far, with the separator before
    it."""

    def __init__(self, file: IO[bytes], members: Collection[str]) -> None:
        self._file, self._members = file, members
        self._held = bytearray()
        self._offset, self._line = 0, 1
        # ``_level`` is the depth of entries.
        self._depth = self._level = 0
        # The name of the last member of the outermost object.
        self._name = ""
        self._number = self._groups = 0

    def entries(self) -> Iterator[Entry]:
        """Yield all entries of the file."""
        events = ijson.sendable_list()
        parser = ijson.basic_parse_coro(events, multiple_values=True)
        for piece in self._pieces():
            self._send(parser, piece)
            self._held += piece
            self._offset += len(piece)
            if len(self._held) > MAX_ENTRY_BYTES:
                raise self._refused(f"an entry is longer than {MAX_ENTRY_BYTES:,} bytes, or not JSON")
            self._line += piece.count(b"\n")
            for event, value in events:
                if (entry := self._entry_ended(event, value)) is not None:
                    yield entry
                if entry is not None or self._depth <= self._level:
                    self._held.clear()
            events.clear()
        # A number or word at the end of the file is complete only here. The condition accepts a file without any value.
        if self._number or self._groups or self._held.strip():
            self._send(parser, None)
            if self._held.strip() and not events:
                # The parser does not report a truncated string outside of lists and objects.
                raise self._refused(_ERRORS["premature EOF"])
            for event, value in events:
                if (entry := self._entry_ended(event, value)) is not None:
                    yield entry

    def _pieces(self) -> Iterator[bytes]:
        block = self._file.read(len(_BYTE_ORDER_MARK))
        if block == _BYTE_ORDER_MARK:
            self._offset, block = len(block), self._file.read(BLOCK)
        while block:
            yield from _PIECE.findall(block)
            block = self._file.read(BLOCK)

    def _send(self, parser: Any, piece: bytes | None) -> None:
        try:
            if piece is None:
                parser.close()
            else:
                parser.send(piece)
        except ijson.JSONError as problem:
            raise self._not_json(str(problem)) from problem
        except UnicodeDecodeError as problem:
            raise self._refused("a text contains half of a surrogate pair, which is not a character") from problem
        except (ValueError, ArithmeticError, SystemError) as problem:
            # Python refuses the number, and the C code of ijson may report this as another error.
            raise self._refused("a number has too many digits") from problem

    def _entry_ended(self, event: str, value: Any) -> Entry | None:
        """Process one event of the parser. Return the entry that ends with this event, if any."""
        if event == "map_key":
            if self._depth == 1:
                self._name = value
        elif event in ("start_map", "start_array"):
            if self._depth == 0:
                self._name = ""
            known = self._depth == 0 or (self._depth == 1 and self._name in self._members)
            if event == "start_array" and known:
                self._groups += 1
                self._level = self._depth + 1
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._refused("it is nested too deeply")
        elif event in ("end_map", "end_array"):
            self._depth -= 1
            if self._depth == self._level:
                return self._entry(None)
            if self._depth < self._level:
                self._level = _NOWHERE if self._depth else 0
        elif self._depth == self._level:
            return self._entry(float(value) if isinstance(value, Decimal) else value)
        return None

    def _entry(self, value: Any) -> Entry:
        """Return the entry that ends here: the object or list in ``_held``, otherwise ``value``."""
        self._number += 1
        raw, problem = bytes(self._held.lstrip(b" \t\r\n,")), ""
        if raw.startswith((b"{", b"[")):
            try:
                value = json_guarded(raw, max_depth=settings.MEMSTATE_MAX_JSON_DEPTH, what="The entry")
            except MemoryProblem as refused:
                problem = refused.sentence
        start, line = self._offset - len(raw), self._line - raw.count(b"\n")
        member, group = (self._name, self._groups) if self._level else ("", 0)
        return Entry(value, start, self._offset, self._number, line, member, group, problem)

    def _not_json(self, error: str) -> RequestRefused:
        # The first line is the error; a part of the file follows, sometimes with escaped line ends.
        error = error.partition("\n")[0].partition("\\n")[0]
        if "UTF8" in error or "utf-8" in error:
            return RequestRefused(
                f"The file is not UTF-8: a byte in line {self._line} cannot be read.", code=ProblemCode.FILE_NOT_JSON
            )
        own = error.partition("error: ")[2].rstrip(".") or "it cannot be read"
        return self._refused(next((sentence for part, sentence in _ERRORS.items() if part in error), own))

    def _refused(self, why: str) -> RequestRefused:
        return RequestRefused(
            f"The file is not whole JSON: at line {self._line}, {why}.", code=ProblemCode.FILE_NOT_JSON
        )
