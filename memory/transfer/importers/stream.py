"""Entries of a JSON file, one by one, however large it is: a list, JSON Lines, or an object that holds lists.

One reader takes them all, because they are all values one after the other. A list is opened and gives its elements, an
object is opened if one of its members is a list that is known to hold entries (``results``), and anything else is an
entry itself. What is not JSON has no place from which reading could go on, so it refuses the file as a whole.
"""

import codecs
import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.conf import settings

from memory.domain.errors import MemoryProblem, RequestRefused
from memory.domain.jsonguard import json_guarded
from memory.domain.problem_codes import ProblemCode

BLOCK = 256 * 1024
# Of one entry. The longest text that a topic can hold is far below; a list of vectors may be as long.
MAX_ENTRY_CHARS = 8 * 1024 * 1024
_SPACE = re.compile(r"[ \t\r\n]*")
# Of a number or word at the end of what has been read, there may be more to come.
_OPEN_ENDED = re.compile(r"[\w.+-]")


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
    what is not JSON in UTF-8 or holds an entry longer than ``MAX_ENTRY_CHARS``; ``OSError``.
    """
    with path.open("rb") as file:
        yield from _Reader(file, members).entries()


class _Reader:
    """A window of text that moves along the file: ``_text[_at:]`` is what comes next."""

    def __init__(self, file: IO[bytes], members: Collection[str]) -> None:
        self._file, self._members = file, members
        # A mark at the beginning is no part of the text.
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._json = json.JSONDecoder()
        self._text, self._at, self._ended = "", 0, False
        self._bytes, self._read, self._line = 0, 0, 1
        self._number = self._group = 0

    def entries(self) -> Iterator[Entry]:
        """Yield all entries of the file."""
        if self._peek() == "\ufeff":
            self._move(self._at + 1)
        while char := self._next():
            if char == "[":
                yield from self._list("")
            elif char == "{":
                yield from self._object()
            else:
                yield self._element("", 0)
            if self._next() == ",":
                raise self._refused("a comma stands between values that belong to no list")

    def _list(self, member: str) -> Iterator[Entry]:
        self._group += 1
        group = self._group
        self._move(self._at + 1)
        yield from self._parts("]", lambda: iter([self._element(member, group)]))

    def _object(self) -> Iterator[Entry]:
        """Yield the entries of the lists in an object; if there is none, the object is an entry."""
        start, line, group = self._bytes, self._line, self._group
        said: list[str] = []
        length = 0

        def member() -> Iterator[Entry]:
            nonlocal length
            name = self._name()
            if name in self._members and self._next() == "[":
                yield from self._list(name)
                return
            said.append(f"{json.dumps(name)}:{self._value()}")
            length += len(said[-1])
            if length > MAX_ENTRY_CHARS:
                raise self._too_long()

        self._move(self._at + 1)
        yield from self._parts("}", member)
        # Pages and counts that stand beside a list are of no interest.
        if group == self._group:
            yield self._entry(f"{{{','.join(said)}}}", start=start, line=line)

    def _parts(self, end: str, one: Callable[[], Iterator[Entry]]) -> Iterator[Entry]:
        """Yield what stands between the opening bracket, which is behind, and the closing one."""
        if self._next() == end:
            self._move(self._at + 1)
            return
        while True:
            yield from one()
            char = self._next()
            if char not in (",", end) or not char:
                raise self._refused(f"{end!r} or a comma is missing" if char else "it ends in the middle")
            self._move(self._at + 1)
            if char == end:
                return

    def _name(self) -> str:
        if self._next() != '"':
            raise self._refused("a name in quotes is missing" if self._next() else "it ends in the middle")
        name, end = self._decode()
        self._move(end)
        if self._next() != ":":
            raise self._refused("a colon is missing")
        self._move(self._at + 1)
        return str(name)

    def _entry(self, text: str, *, start: int, line: int, member: str = "", group: int = 0) -> Entry:
        self._number += 1
        value, problem = None, ""
        try:
            value = json_guarded(text.encode(), max_depth=settings.MEMSTATE_MAX_JSON_DEPTH, what="The entry")
        except MemoryProblem as refused:
            problem = refused.sentence
        return Entry(value, start, self._bytes, self._number, line, member, group, problem)

    def _element(self, member: str, group: int) -> Entry:
        self._next()
        start, line = self._bytes, self._line
        return self._entry(self._value(), start=start, line=line, member=member, group=group)

    def _value(self) -> str:
        """Move behind the value that comes next and return its text."""
        if not self._next():
            raise self._refused("it ends in the middle")
        _value, end = self._decode()
        text = self._text[self._at : end]
        self._move(end)
        return text

    def _decode(self) -> tuple[Any, int]:
        """Return the value that comes next and where it ends, reading on until all of it is there."""
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as problem:
                if self._ended:
                    raise self._refused(problem.msg, at=problem.pos) from problem
            except RecursionError as problem:
                raise self._refused("it nests too deep") from problem
            except ValueError as problem:
                raise self._refused("a number has too many digits") from problem
            else:
                if self._ended or end < len(self._text) or not _OPEN_ENDED.match(self._text[end - 1]):
                    return value, end
            have = len(self._text) - self._at
            if have > MAX_ENTRY_CHARS:
                raise self._too_long()
            # Twice as much each time, so that a long entry is not read anew for each of its blocks.
            self._fill(max(BLOCK, have))

    def _next(self) -> str:
        """Move to the next character that is no white space and return it; "" at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            self._move(found.end())
            if char := self._peek():
                if char not in " \t\r\n":
                    return char
            else:
                return ""

    def _peek(self) -> str:
        while self._at >= len(self._text) and not self._ended:
            self._fill(BLOCK)
        return self._text[self._at : self._at + 1]

    def _fill(self, size: int) -> None:
        block = self._file.read(size)
        self._ended = not block
        try:
            more = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as problem:
            raise RequestRefused(
                f"The file is not UTF-8: a byte soon after line {self._line} cannot be read.",
                code=ProblemCode.FILE_NOT_JSON,
            ) from problem
        self._text, self._at = self._text[self._at :] + more, 0

    def _move(self, to: int) -> None:
        passed = self._text[self._at : to]
        self._bytes += len(passed.encode(errors="surrogatepass"))
        self._line += passed.count("\n")
        self._at = to

    def _too_long(self) -> RequestRefused:
        return self._refused(f"an entry is longer than {MAX_ENTRY_CHARS:,} characters, or not JSON")

    def _refused(self, why: str, *, at: int | None = None) -> RequestRefused:
        line = self._line + (self._text.count("\n", self._at, at) if at is not None else 0)
        return RequestRefused(
            f"The file is not whole JSON: at line {line}, {why[:1].lower()}{why[1:]}.", code=ProblemCode.FILE_NOT_JSON
        )
