"""Parses the language of the search box (docs/lookup.md): words, phrases, qualifiers, ``-``, OR, parentheses."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memory.core.errors import ValueRefused
from memory.core.nearest import nearest_hint
from memory.core.problem_codes import ProblemCode
from memory.predicates.search_qualifiers import EXAMPLES, qualifier_read
from memory.predicates.tree import Comparison, Not, Phrase, Predicate, Word, all_of, any_of

MAX_LENGTH = 1_000
MAX_PARTS = 60
MAX_DEPTH = 12

# A parenthesis or minus, a phrase, a qualifier with its value, a word, or a quote that is not closed.
_PIECE = re.compile(
    r'(?P<sign>[()]|-(?=[^\s)]))|"(?P<phrase>[^"]*)"|(?P<name>[A-Za-z]{2,30}):(?P<value>(?:[^\s()"]|"[^"]*")*+)'
    r'|(?P<word>[^\s()"]+)|"'
)
_LOWER_CASE_HINT = dict.fromkeys(("AND", "OR", "NOT"), " To search for the word itself, write it in lower case.")
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


class SearchFlaw(ValueRefused):
    """The typed text has a mistake in the span from ``start`` to ``end``. The span is never empty."""

    code = ProblemCode.INVALID_LOOKUP

    def __init__(self, sentence: str, start: int, end: int, *, code: ProblemCode | None = None) -> None:
        super().__init__(sentence, code=code)
        self.start, self.end = start, end


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the text. ``kind`` is "(", ")", "-", "OR", "AND", "NOT" or "leaf"."""

    kind: str
    start: int
    end: int
    leaf: Predicate | None = None


def search_parse(text: str) -> Predicate | None:
    """Return the predicate of the typed text; None for white space. AND binds tighter than OR. Raises
    ``SearchFlaw``."""
    if len(text) > MAX_LENGTH:
        raise SearchFlaw(
            f"A lookup has at most {MAX_LENGTH:,} characters; this one has {len(text):,}.", MAX_LENGTH, len(text)
        )
    for place, letter in enumerate(text):
        if letter == "\x00" or "\ud800" <= letter <= "\udfff":
            raise SearchFlaw("This character cannot be searched for.", place, place + 1)
    tokens = _tokens(text)
    return _Reader(tokens).read() if tokens else None


def search_narrow(text: str, name: str, value: str) -> str:
    """Return the typed text with ``name:value`` added. Conditions with this name at the top level are removed first,
    unless the top level contains OR. An empty ``value`` adds nothing. Raises ``SearchFlaw``."""
    text = text.strip()
    cuts, depth, before, has_or = [], 0, "", False
    for token in _tokens(text):
        depth += (token.kind == "(") - (token.kind == ")")
        if depth == 0 and before not in ("-", "NOT"):
            has_or |= token.kind == "OR"
            if token.kind == "AND" or (token.leaf and text[token.start :].lower().startswith(f"{name}:")):
                cuts.append(token)
        before = token.kind
    if has_or:
        text = f"({text})"
    else:
        for token in reversed(cuts):
            text = f"{text[: token.start].rstrip()} {text[token.end :].lstrip()}".strip()
    qualifier = f'{name}:"{value}"' if re.search(r"[\s()]", value) else f"{name}:{value}" if value else ""
    return f"{text} {qualifier}".strip()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for match in _PIECE.finditer(text):
        start, end = match.span()
        leaf: Predicate | None = None
        kind = match["sign"] or "leaf"
        if match["phrase"] is not None:
            if not match["phrase"].strip():
                raise SearchFlaw("These quotes are empty.", start, end)
            leaf = Phrase(match["phrase"])
        elif match["name"] is not None and text[end : end + 1] != '"':
            leaf = _qualifier(match["name"], match["value"], start, match.start("value"), end)
        elif word := match["word"]:
            if word in ("AND", "OR", "NOT"):
                kind = word
            elif _WHOLE_ID.fullmatch(word):
                leaf = Comparison("id", "begins", word.replace("-", "").lower())
            else:
                leaf = Word(word)
        elif not match["sign"]:
            raise SearchFlaw("This quote is not closed.", end if match["name"] else start, len(text))
        found.append(_Token(kind, start, end, leaf))
        if sum(token.leaf is not None for token in found) > MAX_PARTS:
            raise SearchFlaw(f"A lookup has at most {MAX_PARTS} parts.", start, len(text))
    return found


def _qualifier(typed: str, value: str, start: int, colon: int, end: int) -> Predicate:
    name = typed.lower()
    if name not in EXAMPLES:
        hint = nearest_hint(name, EXAMPLES, noun="qualifiers")
        sentence = f'"{typed}:" is not a qualifier; {hint}. To search for this text, put it in quotes.'
        raise SearchFlaw(sentence, start, colon)
    if not value:
        raise SearchFlaw(f"{name}: needs a value right after it, such as {EXAMPLES[name]}.", start, colon)
    try:
        return qualifier_read(name, value)
    except ValueRefused as problem:
        raise SearchFlaw(problem.sentence, colon, end, code=problem.code) from problem


class _Reader:
    """A recursive descent parser with one method each for OR, AND, NOT and single parts."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def read(self) -> Predicate:
        tree = self._any()
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            raise SearchFlaw("This parenthesis has no opening one.", token.start, token.end)
        return tree

    def _peek(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def _any(self) -> Predicate:
        parts = [self._all()]
        while self._peek() == "OR":
            parts.append(self._after(self._all))
        tree = any_of(*parts)
        assert tree is not None
        return tree

    def _all(self) -> Predicate:
        parts = [self._not()]
        while self._peek() not in ("", "OR", ")"):
            parts.append(self._after(self._not) if self._peek() == "AND" else self._not())
        tree = all_of(*parts)
        assert tree is not None
        return tree

    def _after(self, read: Callable[[], Predicate]) -> Predicate:
        """Parse the condition after OR, AND, NOT or a minus. If there is none, the flaw is at the operator."""
        sign = self.tokens[self.at]
        self.at += 1
        if self._peek() in ("", "OR", "AND", ")"):
            raise SearchFlaw(
                f"Write a condition after {sign.kind}." + _LOWER_CASE_HINT.get(sign.kind, ""), sign.start, sign.end
            )
        return read()

    def _not(self) -> Predicate:
        if self._peek() not in ("-", "NOT"):
            return self._one()
        sign = self.tokens[self.at]
        self._deeper(sign)
        tree = Not(self._after(self._not))
        self.depth -= 1
        return tree

    def _one(self) -> Predicate:
        token = self.tokens[self.at]
        if token.leaf is not None:
            self.at += 1
            return token.leaf
        if token.kind != "(":
            closes = token.kind == ")"
            sentence = "This parenthesis has no opening one." if closes else f"Write a condition before {token.kind}."
            raise SearchFlaw(sentence, token.start, token.end)
        self._deeper(token)
        self.at += 1
        if self._peek() == ")":
            raise SearchFlaw("These parentheses are empty.", token.start, self.tokens[self.at].end)
        if not self._peek():
            raise SearchFlaw("This parenthesis is not closed.", token.start, token.end)
        tree = self._any()
        if self._peek() != ")":
            raise SearchFlaw("This parenthesis is not closed.", token.start, token.end)
        self.at += 1
        self.depth -= 1
        return tree

    def _deeper(self, token: _Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SearchFlaw(
                f"Parentheses and NOT may be nested at most {MAX_DEPTH} levels deep.", token.start, token.end
            )
