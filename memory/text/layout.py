"""The layout of a text: paragraphs, lists, headings, tables, code and speakers. Every character except white space
belongs to exactly one block, and its offset is kept."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from memory.text.word_lists import wordset

Kind = Literal["prose", "item", "heading", "row", "code", "mark"]

# The assumed least width of wrapped lines, in characters.
WRAPPED_FROM = 50
# The usual difference in width between lines that were wrapped by hand.
RAGGED = 10
_FENCE = re.compile(r"\s*(?:```|~~~)")
_RULE = re.compile(r"\s*(?:[-*_=~]\s*){3,}")
_TABLE_RULE = frozenset(" \t:|-")
_QUOTED = re.compile(r"\s*(?:>\s?)+")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+")
_ITEM = re.compile(
    r"\s*(?:\[ \]\s+|(?=\[[xX]\]\s)|[-*+•‣◦·▪▫●○–—]\s+(?:\[ \]\s+)?|\(?\d{1,2}[.)]\s+|\(?[a-z]\)\s+|[①-⑳]\s*)"
)
_ROW = re.compile(r"\s*\|.*\|\s*")
_WHEN = (
    r"(?:\[[^\]\n]{3,30}\]\s*"
    r"|\[?\(?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s+\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?\)?\]?\s*[-–:]?\s*"
    r"|\(?\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?\)?\s*[-–]?\s*)?"
)
_NAME = r"(?:[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}|\+\d[\d ()-]{6,20}\d)"
# 10:02 Anna: hello | **Anna** (10:02): hello | <anna> hello
_MESSAGE = re.compile(
    rf"\s*{_WHEN}(?:(?:\*\*|__)?(?P<name>{_NAME})(?:\*\*|__)?(?:\s?[(\[][^)\]\n]{{1,30}}[)\]])?"
    rf"\s?[:：](?:\*\*|__)?(?=\s|[^\x00-\x7f])\s*|<(?P<nick>[^<>\s]{{1,30}})>\s+)"
)
_SPOKEN = re.compile(
    r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Ww]e|[Yy]ou|[Yy]our|[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks)\b|[?!？！]|[我你私]"
)

# The roles of speakers in transcripts, and the names of these roles in facts.
ROLES = {
    **dict.fromkeys(("user", "human", "customer", "client", "caller", "me"), "the user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent", "chatgpt", "claude"), "the assistant"),
}
# Words before a colon that are labels, not speakers.
_KEYS = wordset(
    "name phone mobile tel telephone fax email e-mail mail address street city country zip date time day year born "
    "birthday birthdate age note notes title subject from to cc bcc re fwd summary ps todo tip tips warning caution "
    "important example examples question answer q a location place url link website status price cost total amount "
    "number id key value type kind category tags tag version author source reference result results conclusion "
    "context background goal goals plan plans task tasks next update updates step steps hint remember fact facts "
    "http https job work company role system contact password wifi login account"
)


@dataclass(slots=True)
class Block:
    """A unit of the text. ``start`` and ``end`` include the marks, such as bullets and the name of a speaker.
    ``offsets`` has one entry for each character of ``text``: its offset in the whole text."""

    kind: Kind
    start: int
    end: int
    # The lines of the text, and the last line that is not empty.
    parts: list[str] = field(default_factory=list)
    last: str = ""
    offsets: list[int] = field(default_factory=list)
    speaker: str | None = None
    # The heading above the block. For an item of a list, the line above the list if it ends with a colon.
    under: str = ""
    # The cells of a row of a table, and of the header of that table.
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the block, without marks and with lines joined."""
        return "".join(self.parts)


def blocks_find(content: str) -> list[Block]:
    """Return the blocks of ``content`` in order. Linear in its length."""
    return _Layout(content).read()


def speakers_find(content: str) -> set[str]:
    """Return the names of the speakers in a transcript, as written; empty for other texts. A text is a transcript if
    two speakers have a message in spoken language, or if one speaker has a message in spoken language and another
    message. Spoken language has words such as "I" and "you". Labels such as "Phone: 555" are not names of speakers."""
    times: Counter[str] = Counter()
    spoken: set[str] = set()
    for start, end in _lines(content):
        # An item of a list that begins with a name is a note about that person, not a message.
        message = _message(content, _unquoted(content, start, end), end)
        if message is None:
            continue
        name, begin = message
        text = content[begin:end]
        times[name] += 1
        if _SPOKEN.search(text) or name.lower() in ROLES:
            spoken.add(name)
    several = len(spoken) > 1
    found = {name for name in spoken if several or times[name] > 1}
    # If there are two speakers, every other name before a message is also a speaker.
    return found | {name for name in times if len(found) > 1}


class _Layout:
    def __init__(self, content: str) -> None:
        self.content = content
        self.blocks: list[Block] = []
        self.speakers = speakers_find(content)
        self.width = _width(content)
        # The length of the line above.
        self.above = 0
        self.speaker: str | None = None
        self.heading = self.lead_in = ""
        self.header: tuple[str, ...] = ()
        self.open: Block | None = None
        self.fence: Block | None = None

    def read(self) -> list[Block]:
        for start, end in _lines(self.content):
            self._line(start, end)
            self.above = len(self.content[start:end].rstrip())
        return self.blocks

    def _line(self, start: int, end: int) -> None:
        line = self.content[start:end]
        if self.fence is not None:
            self._join(self.fence, start, end)
            if _FENCE.match(line):
                self.fence = None
            return
        if not line.strip():
            self.open, self.header = None, ()
            return
        if _FENCE.match(line):
            self.fence = self._new("code", start, end, start)
            self.open = None
        elif _RULE.fullmatch(line) or ("|" in line and "-" in line and _TABLE_RULE.issuperset(line)):
            self._new("mark", start, end, end)
            self.open = None
        elif _ROW.fullmatch(line):
            block = self._new("row" if self.header else "heading", start, end, start)
            block.cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
            self.header = block.header = self.header or block.cells
            self.open = None
        else:
            self._text(start, end)

    def _text(self, start: int, end: int) -> None:
        at = _unquoted(self.content, start, end)
        if heading := _HEADING.match(self.content, at, end):
            self.open, self.lead_in = None, ""
            block = self._new("heading", start, end, heading.end())
            self.heading = block.text.strip().rstrip("#").strip()
            return
        item = _ITEM.match(self.content, at, end)
        if (message := _message(self.content, at, end)) and message[0] in self.speakers:
            self.speaker = ROLES.get(message[0].lower(), message[0])
            self.open = self._new("prose", start, end, message[1])
            self.lead_in = ""
        elif item:
            self.open = self._new("item", start, end, item.end())
        elif self.open is not None and self._continues(self.open, at, end):
            self._join(self.open, at, end, marked=start)
        else:
            text = self.content[at:end].strip()
            leads = text[-1:] in ":：" and len(text) <= 2 * WRAPPED_FROM
            self.lead_in = text[:-1].strip() if leads else ""
            block = self._new("heading" if leads else "prose", start, end, at)
            self.open = None if leads else block

    def _continues(self, block: Block, at: int, end: int) -> bool:
        """Return whether a line continues the block above it, because the last line of that block was wrapped."""
        before, line = block.last, self.content[at:end].strip()
        if not before or not line or line[0].islower():
            return True
        if before[-1] in ",;，、":
            return True
        # The line above was not wrapped if the first word of this line would have fitted into it.
        if self.above + 1 + len(line.split(maxsplit=1)[0]) <= self.width - RAGGED:
            return False
        return block.kind == "prose" or before[-1] not in '.!?…。！？"”»)'

    def _new(self, kind: Kind, start: int, end: int, at: int) -> Block:
        block = Block(kind, start, end, speaker=self.speaker)
        if kind == "item":
            block.under = self.lead_in or self.heading
        elif kind in ("prose", "row") and not self.speaker:
            block.under = self.heading
        self._join(block, at, end)
        self.blocks.append(block)
        return block

    def _join(self, block: Block, at: int, end: int, *, marked: int | None = None) -> None:
        text = self.content[at:end].rstrip()
        # Wrapped lines are joined with white space, except in Chinese and Japanese.
        if block.parts and not (block.last[-1:] > "\u2fff" and text[:1] > "\u2fff"):
            block.parts.append("\n")
            block.offsets.append((marked if marked is not None else at) - 1)
        if text:
            block.parts.append(text)
            block.last = text
        block.offsets.extend(range(at, at + len(text)))
        block.end = max(block.end, end)


def _message(content: str, at: int, end: int) -> tuple[str, int] | None:
    """Return (speaker, start of the text) if a line has the form of a message, otherwise None."""
    found = _MESSAGE.match(content, at, end)
    if found is None or found.end() >= end:
        return None
    name = found["name"] or found["nick"]
    plain = name.lower()
    labels = plain in _KEYS or plain.split()[-1] in _KEYS
    if plain not in ROLES and (labels or (found["name"] and any(word[0].islower() for word in name.split()))):
        return None
    return name, found.end()


def _width(content: str) -> int:
    """Return the width at which lines are wrapped: the length of the longest line before a line that begins in lower
    case."""
    lines = [content[start:end].rstrip() for start, end in _lines(content)]
    wrapped = [len(line) for line, after in pairwise(lines) if after.lstrip()[:1].islower()]
    return max(wrapped, default=WRAPPED_FROM + RAGGED)


def _unquoted(content: str, at: int, end: int) -> int:
    found = _QUOTED.match(content, at, end)
    return found.end() if found else at


def _lines(content: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line, without its line break."""
    at = 0
    for line in content.splitlines(keepends=True):
        yield at, at + len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
        at += len(line)
