"""Entries of a JSON file, one by one, however large it is: a list, JSON Lines, or an object that holds lists.

A list is opened and gives its elements. An object is opened if one of its members is a list that is known to hold
entries (``results``). Anything else is an entry itself. ``ijson`` reads the file and tells where values begin and end.
It is given the file in pieces that end at brackets, commas and lines, so that the place of each entry is known.
"""

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
# Of one entry. The longest text that a topic can hold is far below; a conversation of years may be as long.
MAX_ENTRY_BYTES = 32 * 1024 * 1024
# Of the file. What an entry may have is far below.
MAX_DEPTH = 1000
_PIECE = re.compile(rb"[^\[\]{},\n]*+[\]},\n]|[^\[\]{},\n]++|[\[{]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A depth that no value has: inside an opened object, beside its lists, nothing is an entry.
_NOWHERE = MAX_DEPTH + 1
# What ijson says of a file that is not JSON, in words for people.
_TOLD = {
    "premature EOF": "it ends in the middle",
    "invalid char in json text": "a value is expected and something else stands there",
    "unallowed token": "a value is expected, or a bracket or comma stands where none may stand",
    "I expect ','": "a comma or a closing bracket is missing",
    "separated by a colon": "a colon is missing",
    "invalid object key": "a name in quotes is missing",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of a file, or the problem with it.

    ``start`` and ``offset`` are the bytes before it and up to its end, ``number`` counts from 1, ``line`` is where it
    begins, ``member`` the name of the list that it stands in, "" for none, and ``group`` tells the lists apart."""

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
        """Where it stands, for people."""
        return f"Entry {self.number} (line {self.line})"


def entries_read(path: Path, *, members: Collection[str]) -> Iterator[Entry]:
    """Yield the entries of a file; ``members`` are the names of lists that hold some.

    Holds one block and one entry at a time. Raises ``RequestRefused`` with the line, as soon as reading gets there, for
    what is not JSON in UTF-8 or holds an entry longer than ``MAX_ENTRY_BYTES``; ``OSError``.
    """
    with path.open("rb") as file:
        yield from _Reader(file, members).entries()


class _Reader:
    """What has been read of a file: ``_held`` is the entry that has begun, with what separates it from the last."""

    def __init__(self, file: IO[bytes], members: Collection[str]) -> None:
        self._file, self._members = file, members
        self._held = bytearray()
        self._offset, self._line = 0, 1
        # ``_level`` is the depth at which values are entries now.
        self._depth = self._level = 0
        # The last name in the outermost object.
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
        # A number or word at the very end ends with the file. A file without any value is no mistake here.
        if self._number or self._groups or self._held.strip():
            self._send(parser, None)
            if self._held.strip() and not events:
                # The parser passes over a text that is cut off outside of lists and objects.
                raise self._refused("it ends in the middle")
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
        """Give the parser a piece of the file, or its end."""
        try:
            if piece is None:
                parser.close()
            else:
                parser.send(piece)
        except ijson.JSONError as problem:
            raise self._not_json(str(problem)) from problem
        except UnicodeDecodeError as problem:
            raise self._refused("a text contains half of a surrogate pair, which is no character") from problem
        except (ValueError, ArithmeticError, SystemError) as problem:
            # Python refuses the number, and the C code of ijson may report that as an error of its own.
            raise self._refused("a number has too many digits") from problem

    def _entry_ended(self, event: str, value: Any) -> Entry | None:
        """Follow one event of the parser; return the entry that ends with it, if one does."""
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
                raise self._refused("it nests too deep")
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
        """Return the entry that ends here: the object or list that is held, else ``value``."""
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
        # Behind its first line stands a part of the file, sometimes with line ends that are written out.
        error = error.partition("\n")[0].partition("\\n")[0]
        if "UTF8" in error or "utf-8" in error:
            return RequestRefused(
                f"The file is not UTF-8: a byte in line {self._line} cannot be read.", code=ProblemCode.FILE_NOT_JSON
            )
        own = error.partition("error: ")[2].rstrip(".") or "it cannot be read"
        return self._refused(next((told for part, told in _TOLD.items() if part in error), own))

    def _refused(self, why: str) -> RequestRefused:
        return RequestRefused(
            f"The file is not whole JSON: at line {self._line}, {why}.", code=ProblemCode.FILE_NOT_JSON
        )
