"""Divides a text into sentences, each with its position and speaker. Abbreviations, decimals, ordinals, quotations and
brackets do not end a sentence. Every character except white space is in a sentence."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memory.text.layout import Block, Kind, blocks_find
from memory.text.word_lists import wordset

# Longer sentences are cut between words.
MAX_SENTENCE = 1_000
# Sentences do not end within quotation marks or brackets of at most this length.
MAX_ENCLOSED = 300

_END = re.compile(r"(?P<sign>[.!?…‽]+|[。！？｡؟۔।]+)(?P<close>[\"'”’»)\]」』*_]*)(?P<tight>(?=\S))?")
_PAIRS = (("“", "”"), ("«", "»"), ("「", "」"), ("『", "』"), ("(", ")"), ("（", "）"))
_ENCLOSED = re.compile(
    "|".join(rf"\{a}[^\{a}\{b}]{{1,{MAX_ENCLOSED}}}\{b}" for a, b in _PAIRS)
    + rf'|(?<!\w)"[^"]{{1,{MAX_ENCLOSED}}}"(?!\w)'
)
_FULL_WIDTH = "。！？｡؟۔।"
_LAST_WORD = re.compile(r"[^\s(\[\"'“”«»/]+$")
_FIRST_WORD = re.compile(r"[\w'’]+")

# A full stop after these words never ends a sentence.
_NEVER = wordset(
    "mr mrs ms dr prof mx messrs mme mlle hr fr frau herr e.g i.e eg ie vs cf al fig approx ca resp z.b d.h u.a bzw "
    "gen col sgt capt lt cmdr rev hon sen rep gov pres sra sr srta dipl ing dept est vol pp mt ft bl.a f.eks incl excl"
)
# A full stop after these words ends a sentence only if the next word is in ``_STARTERS``.
_SELDOM = wordset(
    "etc a.m p.m am pm inc ltd co corp jr st ave rd blvd u.s u.k u.s.a e.u ph.d m.d b.a m.a b.sc m.sc usw osv jan feb "
    "mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun tel ext p nr no bros gmbh "
    "min max sec hrs"
)
_MONTHS = re.compile(
    r"(?:jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[csz])\w*|stock|etage|klasse|jahrhundert",
    re.IGNORECASE,
)
_STARTERS = wordset(
    "i he she it we they you the a an this that these those there his her its our their my your in on at after before "
    "when while if but and so then also however what who where why how no yes er sie es wir ich der die das ein eine "
    "il elle le la les un une el los las"
)

# Marks of Markdown within a line.
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)\s]*\)")
_LINK = re.compile(r"\[([^\]]{1,300})\]\((\S+?)(?:\s+\"[^\"]*\")?\)")
_STRONG = re.compile(r"(\*\*\*|\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*_])([*_])(?=[^\s*_])([^*_\n]+?)(?<=[^\s*_])\1(?![\w*_])")
_CODE = re.compile(r"(`{1,3})([^`]+)\1")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. ``text`` is without marks of layout; the span from ``start`` to ``end`` includes them. ``block`` is
    the number of its block. ``under`` is the heading or lead-in above it."""

    text: str
    start: int
    end: int
    kind: Kind = "prose"
    speaker: str | None = None
    block: int = 0
    under: str = ""


def sentences_find(content: str) -> list[Sentence]:
    """Return the sentences of ``content`` in order. Their spans cover everything except white space. A mark without
    words has an empty text. Linear time."""
    found: list[Sentence] = []
    for number, block in enumerate(blocks_find(content)):
        if block.kind in ("code", "row", "mark"):
            text = _whole(block)
            found.append(Sentence(text, block.start, block.end, block.kind, block.speaker, number, block.under))
            continue
        at, text = block.start, block.text
        cuts = list(_bounded(text, sentence_ends(text) if block.kind != "heading" else [len(text)]))
        for begin, cut in zip([0, *cuts], cuts, strict=False):
            end = block.end if cut == len(text) else block.offsets[cut - 1] + 1
            if at >= end:
                # Only white space is left.
                continue
            found.append(Sentence(plain(text[begin:cut]), at, end, block.kind, block.speaker, number, block.under))
            at = _skip(content, end)
    return found


def _bounded(text: str, ends: Iterable[int]) -> Iterator[int]:
    begin = 0
    for end in ends:
        while end - begin > MAX_SENTENCE:
            space = text.rfind(" ", begin + MAX_SENTENCE // 2, begin + MAX_SENTENCE)
            begin = space if space > 0 else begin + MAX_SENTENCE
            yield begin
        begin = end
        yield end


def _skip(content: str, at: int) -> int:
    while at < len(content) and content[at].isspace():
        at += 1
    return at


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the ends of the sentences of one paragraph; the last is the length of ``text``."""
    # Quotations and brackets.
    closed = [found.span() for found in _ENCLOSED.finditer(text)]
    starts = [start for start, _end in closed]
    # If a text begins in lower case, its other sentences may begin in lower case, too.
    informal = text.lstrip()[:1].islower()
    begin, last = 0, len(text.rstrip())
    for found in _END.finditer(text):
        at = found.end()
        if at >= last:
            break
        within = bisect_right(starts, found.start()) - 1
        if within >= 0 and found.start() < closed[within][1]:
            if at < closed[within][1]:
                continue
            # The sentence continues after the quotation: 他说「很好。」然后走了。
            if not text[at].isspace() and text[begin : closed[within][0]].strip():
                continue
        if _ends_here(text, begin, found, informal=informal):
            yield at
            begin = at
    if text:
        yield len(text)


def plain(text: str) -> str:
    """Return ``text`` on one line and without the marks of Markdown; the address of a link is kept in brackets."""
    if len(text) > 2 * MAX_SENTENCE:
        return " ".join(text.split())
    text = _LINK.sub(
        lambda found: found[1] if found[1] == found[2] else f"{found[1]} ({found[2]})", _IMAGE.sub(r"\1", text)
    )
    text = _CODE.sub(r"\2", text)
    for _ in range(2):
        text = _STRONG.sub(r"\2", text)
    return " ".join(_EMPHASIS.sub(r"\2", text).split())


def _whole(block: Block) -> str:
    if block.kind != "row":
        return plain(block.text) if block.kind == "code" else ""
    names = block.header + ("",) * (len(block.cells) - len(block.header))
    # The column "#" has only the numbers of the rows.
    cells = [
        f"{name}: {cell}" if name else cell
        for name, cell in zip(names, block.cells, strict=False)
        if cell and name != "#"
    ]
    return plain("; ".join(cells))


def _ends_here(text: str, begin: int, found: re.Match[str], *, informal: bool) -> bool:
    sign, close = found["sign"], found["close"]
    if sign[0] in _FULL_WIDTH:
        return not (close and text[found.end() : found.end() + 1] in "と、，")
    if found["tight"] is not None:
        # Without a following space, Latin punctuation ends a sentence only in scripts without spaces.
        return text[found.end()] > "\u2fff" and sign[0] in "!?"
    following = text[_skip(text, found.end())]
    if sign[0] != "." and "…" not in sign:
        # The sentence continues after the quotation: "Really?" she said.
        return not (following.islower() and close)
    if sign in ("...", "…") or len(sign) > 2:
        return not following.islower() or informal
    return _stop_ends(text, begin, found, following, informal=informal)


def _stop_ends(text: str, begin: int, found: re.Match[str], following: str, *, informal: bool) -> bool:
    word = _LAST_WORD.search(text, max(begin, found.start() - 60), found.start())
    before = word.group() if word else ""
    plain_word = before.lower().rstrip(".")
    nxt = _FIRST_WORD.search(text, found.end(), found.end() + 40)
    starts = nxt is not None and nxt.group().lower() in _STARTERS and (nxt.group()[0].isupper() or informal)
    if following.islower() and not informal:
        return False
    if plain_word in _NEVER or (following.isdigit() and len(plain_word) < 5 and before.islower()):
        return False
    if plain_word in ("no", "nr", "p"):
        return not following.isdigit()
    if plain_word in _SELDOM:
        return starts
    if len(plain_word) == 1 and before[:1].isupper() and before != "I":
        return starts
    if before.isdigit():
        # "1. First" begins a list, and "3. Mai" is a date.
        only = not text[begin : found.start()].strip().strip("(").removesuffix(before)
        return not only and not (len(before) < 3 and nxt is not None and bool(_MONTHS.fullmatch(nxt.group())))
    return True
