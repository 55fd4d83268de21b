"""Reads the content words of a text, and normalizes them for ``likeness``. Each character is part of a word, except
spaces and punctuation: two texts with a difference that nobody understands must not count as equal."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from memory.text.folding import UNSPACED_SIGNS, VOWEL_SIGNS, digits_plain, fold
from memory.text.grammar import name_known, word_known
from memory.text.likeness_words import (
    CONTRACTED,
    DIRECTED,
    FILLERS,
    MONTHS,
    NEGATION_SIGNS,
    NEGATIONS,
    NUMBERS,
    RELATIVE,
    SAME,
    SUBJECTS,
    UNITS,
    WEAK,
    WEEKDAYS,
)

Kind = Literal["number", "date", "identifier", "name", "negation", "word", "order"]

# Hangul has spaces.
_UNSPACED = UNSPACED_SIGNS.replace("\uac00-\ud7af", "")
_OF_WORD = rf"[^\W_{_UNSPACED}]|[{VOWEL_SIGNS}]"
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
# Repetitions are bounded, because the pattern is tried at every character of a text without spaces.
_TOKEN: Final = re.compile(
    rf"""(?P<iso>\b\d{{4}}-\d\d?-\d\d?\b)
    |(?P<dmy>\b(?P<d1>\d\d?)(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH})\b\.?(?:,?\s+(?P<y1>\d{{4}})\b)?)
    |(?P<mdy>\b(?P<m2>{_MONTH})\b\.?\s+(?P<d2>\d\d?)(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<y2>\d{{4}})\b)?)
    |(?P<clock>\b(?P<h>\d\d?)(?:[:.](?P<min>\d\d))?\s*(?P<half>[ap])\.?m\b\.?|\b(?P<h24>\d\d?):(?P<min24>\d\d)\b(?!:))
    |(?P<short>\bw/o?(?!\w)|\bb/c\b)
    |(?P<code>[^\W_](?:[\w+-]|[.:/@\#=&?~%](?=[\w/])){{0,200}}[/@:\#_=\\](?:[\w+/-]|[.:/@\#=&?~%](?=[\w/]))*
       |[^\W\d_]\w{{0,99}}(?:-\w{{1,100}}){{0,20}}-\d[\w-]*|[^\W\d_]{{1,60}}\+\+)
    |(?P<number>(?:(?<!\w)|(?<=[{_UNSPACED}]))[-+]?\d+(?:[.,:/-]\d+)*)(?P<unit>[^\W\d_{_UNSPACED}]+\b|%)?
    |(?P<sign>[{_UNSPACED}])
    |(?P<money>[$€£¥%°<>≤≥≠±])
    |(?P<word>[^\W\d_{_UNSPACED}](?:\.[^\W\d_](?:\.[^\W\d_])*\.?|(?:{_OF_WORD})*(?:['’](?:[^\W_])+)*))
    |(?P<rest>\d+|[^\s\d])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_END: Final = re.compile(r"[.!?:;\n][\s\"')]*$")
_JOIN: Final = re.compile(r"(?:,|&|/|,?\s*(?:and|or|und|et|y|e|og|och))$", re.IGNORECASE)


@dataclass(slots=True)
class Token:
    """A content word. ``key`` is equal for all spellings. ``soft`` means that the word may be inflected or misspelled.
    ``preposition`` is the preposition before the word, or before the name of which it is a part. ``listed`` means that
    the word is the second or a later member of a list."""

    text: str
    key: str
    kind: Kind
    span: tuple[int, int]
    soft: bool = False
    capital: bool = False
    preposition: str = ""
    listed: bool = False
    # A sign of a script without spaces, which may be a word or a part of one.
    alone: bool = False


def tokens_read(text: str) -> list[Token]:
    """Return the content words of a text in order."""
    plain = digits_plain(text).replace("−", "-")
    found: list[Token] = []
    preposition, end = "", 0
    for match in _TOKEN.finditer(plain):
        if match["rest"] and _says_nothing(match["rest"]):
            continue
        between = text[end : match.start()]
        initial = not found or bool(_END.search(text[max(0, match.start() - 4) : match.start()]))
        # Only the last characters are tested, because the pattern is tried from every position.
        if _END.search(between[-40:]):
            preposition = ""
        end = match.end()
        for token in _tokens(match, text, initial=initial):
            previous = found[-1] if found else None
            token.listed = (
                previous is not None
                and previous.kind == token.kind
                # A pronoun begins a new clause, not another member of a list.
                and token.key not in SUBJECTS
                and bool(_JOIN.match(text[previous.span[1] : token.span[0]].strip()))
            )
            if token.key in DIRECTED or token.kind == "negation":
                preposition = token.key
                if token.key in ("to", "about", "around"):
                    continue
            elif token.key in WEAK:
                preposition = preposition or "in"
                continue
            elif token.key in FILLERS:
                continue
            elif preposition:
                token.preposition, preposition = preposition, ""
            elif previous is not None and previous.preposition and token.capital and previous.capital:
                # "from New York": the preposition applies to all words of a name.
                token.preposition = previous.preposition if not between.strip() else ""
            elif previous is not None and previous.preposition and token.listed:
                token.preposition = previous.preposition
            found.append(token)
    return found


def _tokens(match: re.Match[str], text: str, *, initial: bool) -> Iterator[Token]:
    written, span = text[match.start() : match.end()], match.span()
    group = match.lastgroup or "word"
    if (key := _date_key(match)) is not None:
        yield Token(written, key, "date", span)
    elif match["short"]:
        yield Token(written, CONTRACTED[written.casefold()], "word", span)
    elif match["code"]:
        yield Token(written, fold(written).rstrip("/.,:"), "identifier", span)
    elif match["number"]:
        yield from _number(match, written, span)
    elif match["sign"]:
        yield Token(written, fold(written), "negation" if written in NEGATION_SIGNS else "word", span, alone=True)
    elif group == "rest":
        yield Token(written, written, "word", span)
    elif group == "money":
        yield Token(written, written, "number", span)
    else:
        yield from _word(written, span, initial=initial)


def _says_nothing(sign: str) -> bool:
    """Return whether a character is punctuation or invisible, unlike signs of mathematics, pictures and marks."""
    return sign in "`^~|´¨" or unicodedata.category(sign[0])[0] in "PZC"


def _date_key(match: re.Match[str]) -> str | None:
    if match["iso"]:
        year, month, day = map(int, match["iso"].split("-"))
        return f"{year}-{month}-{day}"
    if match["dmy"]:
        return f"{match['y1'] or ''}-{MONTHS[match['m1'].casefold()]}-{int(match['d1'])}"
    if match["mdy"]:
        return f"{match['y2'] or ''}-{MONTHS[match['m2'].casefold()]}-{int(match['d2'])}"
    if match["h24"]:
        return f"{int(match['h24'])}:{match['min24']}"
    if match["h"]:
        hour = int(match["h"]) % 12 + (12 if match["half"].casefold() == "p" else 0)
        return f"{hour}:{match['min'] or '00'}"
    return None


def _number(match: re.Match[str], written: str, span: tuple[int, int]) -> Iterator[Token]:
    number, unit = match["number"], (match["unit"] or "").casefold()
    if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", number):
        number = number.replace(",", "")
    if not unit or unit in ("st", "nd", "rd", "th"):
        yield Token(written, number.lstrip("+") + unit, "number", span)
    elif unit in UNITS:
        middle = match.end("number")
        yield Token(written[: middle - span[0]], number.lstrip("+"), "number", (span[0], middle))
        yield Token(written[middle - span[0] :], SAME.get(unit, unit), "word", (middle, span[1]))
    else:
        yield Token(written, fold(written), "identifier", span)


def _word(written: str, span: tuple[int, int], *, initial: bool) -> Iterator[Token]:
    folded = fold(written)
    folded = CONTRACTED.get(folded, folded)
    if folded.endswith("n't"):
        yield Token(written, folded.removesuffix("n't"), "word", span, soft=False)
        yield Token(written, "not", "negation", span)
        return
    # Remove the ending of a possessive or of a shortened verb: "Anna's".
    folded, _sign, ending = folded.partition("'") if not folded.startswith("o'") else (folded, "", "")
    capital = written[:1] != written[:1].lower()
    if ending in ("d", "ll"):
        yield Token(written, "would" if ending == "d" else "will", "word", span)
    folded = folded.replace(".", "")
    single = folded.removesuffix("s")
    if (day := WEEKDAYS.get(folded) or WEEKDAYS.get(single)) and (len(folded) > 4 or capital):
        # "on Tuesdays" equals "on Tuesday".
        yield Token(written, day, "date", span)
    elif folded in NUMBERS:
        yield Token(written, NUMBERS[folded], "number", span)
    elif folded in NEGATIONS:
        yield Token(written, "not" if folded in ("cannot", "no", "never") else folded, "negation", span)
    elif folded in RELATIVE or single in RELATIVE:
        yield Token(written, folded if folded in RELATIVE else single, "date", span)
    else:
        key = SAME.get(folded, folded)
        # A name may be in lower case, and any word is capitalised at the beginning of a sentence.
        name = name_known(folded) or (capital and not (initial and word_known(folded)))
        soft = not name and (written.islower() or (initial and not written.isupper()))
        kind: Kind = "identifier" if any(sign.isdigit() for sign in folded) else "name" if name else "word"
        yield Token(written, key, kind, span, soft=soft and kind == "word", capital=capital)
