"""Parses the language of the search box: words, "phrases", qualifiers such as ``rung:archived``, ``-``, OR,
parentheses.

docs/lookup.md describes the language.
"""

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

_QUALIFIER = re.compile(r"([A-Za-z]{2,30}):")
_LOWER_CASE_HINT = dict.fromkeys(("AND", "OR", "NOT"), " To search for the word itself, write it in lower case.")
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


class SearchFlaw(ValueRefused):
    """The typed text has a mistake from ``start`` to ``end``, which is never empty."""

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
    """Return the predicate of the typed text; None if it is only white space.

    Adjacent parts are joined by AND. AND binds more tightly than OR. Raises ``SearchFlaw``, which says what is wrong.
    """
    if len(text) > MAX_LENGTH:
        raise SearchFlaw(
            f"A lookup has at most {MAX_LENGTH:,} characters; this one has {len(text):,}.", MAX_LENGTH, len(text)
        )
    for place, letter in enumerate(text):
        if letter == "\x00" or "\ud800" <= letter <= "\udfff":
            raise SearchFlaw("This character cannot be searched for.", place, place + 1)
    tokens = _Tokens(text).all()
    return _Reader(tokens).read() if tokens else None


def search_narrow(text: str, name: str, value: str) -> str:
    """Return the typed text with the condition ``name:value`` in place of those with this name at its top level;
    without a value, with none of them. ``value`` has no quotes. Raises ``SearchFlaw``."""
    text = text.strip()
    cuts, depth, before, has_or = [], 0, "", False
    for token in _Tokens(text).all():
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
    said = f'{name}:"{value}"' if re.search(r"[\s()]", value) else f"{name}:{value}" if value else ""
    return f"{text} {said}".strip()


# --- Pieces ----------------------------------------------------------------------------------------------------------


class _Tokens:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def all(self) -> list[_Token]:
        found: list[_Token] = []
        while True:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            if self.at == len(self.text):
                return found
            found.append(self._next())
            if sum(token.leaf is not None for token in found) > MAX_PARTS:
                raise SearchFlaw(f"A lookup has at most {MAX_PARTS} parts.", found[-1].start, len(self.text))

    def _next(self) -> _Token:
        start, letter = self.at, self.text[self.at]
        if letter in "()":
            return self._token(letter, start, start + 1)
        if letter == '"':
            return self._phrase(start)
        following = self.text[start + 1 : start + 2]
        if letter == "-" and following and not following.isspace() and following != ")":
            return self._token("-", start, start + 1)
        qualifier = _QUALIFIER.match(self.text, start)
        if qualifier:
            return self._qualified(start, qualifier[1], qualifier.end())
        end = self._word_end(start)
        word = self.text[start:end]
        if word in ("AND", "OR", "NOT"):
            return self._token(word, start, end)
        if _WHOLE_ID.fullmatch(word):
            return self._token("leaf", start, end, Comparison("id", "begins", word.replace("-", "").lower()))
        return self._token("leaf", start, end, Word(word))

    def _token(self, kind: str, start: int, end: int, leaf: Predicate | None = None) -> _Token:
        self.at = end
        return _Token(kind, start, end, leaf)

    def _phrase(self, start: int) -> _Token:
        end = self._closing(start)
        inside = self.text[start + 1 : end]
        if not inside.strip():
            raise SearchFlaw("These quotes are empty.", start, end + 1)
        return self._token("leaf", start, end + 1, Phrase(inside))

    def _closing(self, start: int) -> int:
        end = self.text.find('"', start + 1)
        if end < 0:
            raise SearchFlaw("This quote is not closed.", start, len(self.text))
        return end

    def _word_end(self, start: int) -> int:
        end = start
        while end < len(self.text) and not self.text[end].isspace() and self.text[end] not in '()"':
            end += 1
        return end

    def _qualified(self, start: int, name: str, colon: int) -> _Token:
        end = colon
        while end < len(self.text) and not self.text[end].isspace() and self.text[end] not in "()":
            end = self._closing(end) + 1 if self.text[end] == '"' else end + 1
        return self._token("leaf", start, end, _qualifier(name, self.text[colon:end], start, colon, end))


def _qualifier(typed: str, value: str, start: int, colon: int, end: int) -> Predicate:
    name = typed.lower()
    if name not in EXAMPLES:
        hint = nearest_hint(name, EXAMPLES, noun="qualifiers")
        sentence = f'"{typed}:" is not a qualifier; {hint}. To search for this text, put it in quotes.'
        raise SearchFlaw(sentence, start, colon, code=ProblemCode.UNKNOWN_LOOKUP_QUALIFIER)
    if not value:
        raise SearchFlaw(
            f"{name}: needs a value right after it, such as {EXAMPLES[name]}.",
            start,
            colon,
            code=ProblemCode.INVALID_LOOKUP_VALUE,
        )
    try:
        return qualifier_read(name, value)
    except ValueRefused as problem:
        raise SearchFlaw(problem.sentence, colon, end, code=problem.code) from problem


# --- The tree --------------------------------------------------------------------------------------------------------


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
        """Parse the condition after OR, AND, NOT or a minus. Without a condition, the flaw is at this word."""
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
