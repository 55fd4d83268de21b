"""Every regular expression of the store reads 20,000 hostile characters in linear time.

The expressions are found, not listed: a new one is tried without being named here. Hostile texts are made for each from
its own source: what it repeats, what it is made of, and what almost matches.
"""

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import memory

SIGNS = 20_000
# A linear expression takes milliseconds; a quadratic one takes seconds.
SECONDS = 1.0
GROWTH = 12

# Expressions that read nothing a stranger or a store holds, with the reason.
SPARED: dict[str, str] = {}

# Marks an expression that is asked at the beginning of a text only.
_AT_START = " (at the start)"
_CALLS = {"compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
_PIECES = (
    *(
        "a",
        "n",
        "1",
        "ß",
        "é",
        "日",
        " ",
        "\n",
        "\t",
        "-",
        "_",
        ".",
        ",",
        ":",
        "/",
        "@",
        "(",
        "[",
        "{",
        '"',
        "'",
        "`",
        "|",
    ),
    *(
        "a ",
        "A ",
        "a.",
        "1.",
        "1-",
        "1,",
        "a-",
        "a_",
        "a@",
        "a, ",
        "a: ",
        "A b",
        "a\n",
        "- ",
        "> ",
        " \n",
        "\n\n",
        "+1 ",
    ),
    *("ab1-", "a1", "1a", "1:", "1/", "http://a", "www.a.", "a=b&", "not ", "no ", "and ", "of the ", "is "),
)


def _sources() -> Iterator[tuple[str, ast.Module]]:
    root = Path(memory.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if "migrations" not in path.parts:
            yield str(path.relative_to(root.parent)), ast.parse(path.read_text(encoding="utf-8"))


def _patterns_in(value: Any, depth: int = 3) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        for each in (*value.keys(), *value.values()):
            yield from _patterns_in(each, depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _patterns_in(each, depth - 1)
    elif (depth and hasattr(type(value), "__slots__")) or hasattr(value, "__dataclass_fields__"):
        for name in getattr(value, "__dataclass_fields__", getattr(type(value), "__slots__", ())):
            yield from _patterns_in(getattr(value, name, None), depth - 1)


@cache
def patterns() -> dict[tuple[str, int], str]:
    """Return every expression of the store with its flags, and where it was found."""
    found: dict[tuple[str, int], str] = {}
    for module in pkgutil.walk_packages(memory.__path__, "memory."):
        if ".migrations" in module.name or ".management." in module.name:
            continue
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            for pattern in _patterns_in(value):
                if isinstance(pattern.pattern, str):
                    found.setdefault((pattern.pattern, pattern.flags), f"{module.name}.{name}")
    # Those that are written where they are used.
    for path, tree in _sources():
        for call in _calls_within_functions(tree):
            if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
                found.setdefault(
                    (call.args[0].value, re.compile(call.args[0].value).flags),
                    f"{path}:{call.lineno}" + _AT_START * _is_matched(call),
                )
    return found


def _calls_within_functions(tree: ast.Module) -> Iterator[ast.Call]:
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and _is_call_of_re(call):
                    yield call


def _is_matched(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("match", "fullmatch")


@cache
def _only_matched() -> set[str]:
    """Return the names of expressions that are asked at the beginning of a text only, never searched for in it."""
    used: dict[str, set[str]] = {}
    for path, tree in _sources():
        module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.setdefault(f"{module}.{node.value.id}", set()).add(node.attr)
    return {name for name, methods in used.items() if methods <= {"match", "fullmatch"}}


def _is_call_of_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in _CALLS
        and bool(node.args)
    )


def _made_of(source: str) -> Iterator[str]:
    """Yield short texts made of what an expression is made of: its words, and its words with what comes between."""
    words = re.findall(r"[^\W_]{1,20}", re.sub(r"\\.", " ", source))[:12]
    for word in dict.fromkeys(words):
        yield word
        yield f"{word} "
    for sign in dict.fromkeys(re.findall(r"[^\w\s\\()\[\]|?*+{}^$]", source)[:12]):
        yield sign
        yield f"a{sign}"
        yield f"1{sign}"


def _is_searched(where: str) -> bool:
    return where not in _only_matched() and not where.endswith(_AT_START)


def slow(pattern: re.Pattern[str], *, searched: bool = True) -> list[tuple[str, float]]:
    """Return the pieces of texts that an expression takes long to search, and the seconds. On a slow machine, a linear
    expression takes long too, so the growth decides: five times the text takes 5 times as long if it is linear, and 25
    times if it is quadratic."""
    found = []
    for piece in dict.fromkeys((*_PIECES, *_made_of(pattern.pattern))):
        text = (piece * SIGNS)[:SIGNS]
        # A fifth of the text takes a twenty-fifth of quadratic time.
        if _seconds(pattern, text[: SIGNS // 5], searched) < SECONDS / 25:
            continue
        # The best of three: another process may take the same core.
        few = min(_seconds(pattern, text[: SIGNS // 5], searched) for _time in range(3))
        spent = min(_seconds(pattern, text, searched) for _time in range(3))
        if spent > max(SECONDS, GROWTH * few):
            found.append((piece, spent))
            if len(found) == 3:
                break
    return found


def _seconds(pattern: re.Pattern[str], text: str, searched: bool) -> float:
    started = time.process_time()
    if searched:
        for _match in pattern.finditer(text):
            pass
    else:
        pattern.match(text)
        pattern.fullmatch(text)
    return time.process_time() - started


def test_the_expressions_are_found() -> None:
    assert len(patterns()) > 200
    sources = {where.partition(":")[0].rpartition(".")[0] for where in patterns().values()}
    assert {"memory.text.negation", "memory.text.names", "memory.text.keys", "memory.core.summary"} <= sources


def test_a_quadratic_expression_would_be_noticed() -> None:
    assert slow(re.compile(r"\bno\b|\w+n't\b"))
    assert not slow(re.compile(r"\bno\b|(?<!\w)\w{1,20}n't\b"))


def test_an_expression_that_is_made_at_run_time_is_one_of_few() -> None:
    """What is put together from values is not found above, so it is named here and tested where it is used."""
    made = {
        path
        for path, tree in _sources()
        for call in _calls_within_functions(tree)
        if not isinstance(call.args[0], ast.Constant)
    }
    # Escaped names, also between boundaries; two signs; the patterns of rules, which have a time limit of their own.
    assert made <= {
        "memory/core/patterns.py",
        "memory/core/summary.py",
        "memory/erasure/remainder.py",
        "memory/recall/search_hits.py",
        "memory/templatetags/console.py",
        "memory/text/statements.py",
    }


@pytest.mark.parametrize("place", range(16))
def test_every_expression_is_linear(place: int) -> None:
    bad = {
        f"{where}: {source[:80]}": got
        for (source, flags), where in sorted(patterns().items())[place::16]
        if where not in SPARED and (got := slow(re.compile(source, flags), searched=_is_searched(where)))
    }
    assert not bad
