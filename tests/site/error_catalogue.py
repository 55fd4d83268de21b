"""The sentences of all problems, read from where they are raised, and what the docs say of their codes.

``python -m tests.site.error_catalogue`` writes both files anew; ``test_error_catalogue.py`` compares them.
"""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = Path(__file__).with_name("error_sentences.txt")
DOCS = ROOT / "docs" / "errors.md"
TABLE_BEGINS = "code | status | what is wrong"
# Where a sentence has a value.
GAP = "{}"
# The code comes from the problem that is reported again.
FROM_CAUSE = "(code of the cause)"
# The client has exceptions of its own for what the server answers.
_LEFT_OUT = set[Path]()
# Functions and classes that take a sentence and a code, with the places of both among the arguments.
_TELLERS = {
    "CommandRefused": (0, 1),
    "Failure": (1, 2),
    "problem_response": (1, 2),
    "refusal": (3, 4),
    "ValidationError": (0, None),
}


@dataclass(frozen=True, order=True)
class Told:
    """One sentence, its code as a word, and who tells it: the name of a class or of a function."""

    code: str
    teller: str
    sentence: str
    status: int | None


@cache
def catalogue() -> tuple[Told, ...]:
    """Return every sentence once, by code."""
    found = set()
    for path in sorted((ROOT / "memory").rglob("*.py")):
        if path not in _LEFT_OUT and "migrations" not in path.parts:
            found.update(_Module(path).got())
    return tuple(sorted(found, key=lambda got: (got.code, got.teller, got.sentence)))


def sentences_text() -> str:
    """Return what ``error_sentences.txt`` holds: the sentences below their codes."""
    by_code: dict[str, dict[str, None]] = defaultdict(dict)
    for got in catalogue():
        # What is nothing but the sentence of another problem says nothing here.
        if got.sentence.replace(GAP, "").strip(" .:"):
            by_code[got.code][got.sentence] = None
    parts = [f"[{code}]\n" + "".join(f"{sentence!r}\n" for sentence in by_code[code]) for code in sorted(by_code)]
    return "\n".join(parts)


def docs_table() -> str:
    """Return the table of ``docs/errors.md``: each code with the statuses of the API that it comes with."""
    from memory.core.problem_codes import ProblemCode

    statuses: dict[str, set[int]] = defaultdict(set)
    for got in catalogue():
        if got.status is not None:
            statuses[got.code].add(got.status)
    rows = [
        f"`{code}` | {', '.join(map(str, sorted(statuses[code]))) or '–'} | {code.description}"
        for code in sorted(ProblemCode)
    ]
    return "\n".join([TABLE_BEGINS, "---|---|---", *rows]) + "\n"


def fixed_pieces() -> list[str]:
    """Return what of the sentences is the same each time, as pieces between values."""
    pieces = {piece.strip(" .:,;") for got in catalogue() for piece in got.sentence.split(GAP)}
    return sorted(piece for piece in pieces if piece)


class _Module:
    """One module of the product, and the problems that are made in it."""

    def __init__(self, path: Path) -> None:
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        # What validators of request bodies raise is reported as the sentence of a member.
        self._has_schemas = any(
            isinstance(node, ast.ImportFrom) and node.module == "pydantic" for node in self.tree.body
        )

    @cached_property
    def _makers(self) -> dict[str, ast.Call]:
        """Return the functions that take a sentence and return a problem with it, and the call that makes it."""
        found = {}
        for function in self.tree.body:
            if not isinstance(function, ast.FunctionDef) or not function.args.args:
                continue
            last = function.body[-1]
            made = last.value if isinstance(last, ast.Return) else None
            if isinstance(made, ast.Call) and made.args and _is_name(made.args[0], function.args.args[0].arg):
                found[function.name] = made
        return found

    def got(self) -> Iterator[Told]:
        yield from self._walk(self.tree, (self.tree,))

    def _walk(self, node: ast.AST, around: tuple[ast.AST, ...]) -> Iterator[Told]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield from self._call(child, around)
            scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            yield from self._walk(child, (*around, child) if isinstance(child, scope) else around)

    def _call(self, call: ast.Call, around: tuple[ast.AST, ...]) -> Iterator[Told]:
        name = _name_of(call.func)
        if name in _TELLERS:
            at, code_at = _TELLERS[name]
            code = _keyword(call, "code")
            if code is None and code_at is not None and len(call.args) > code_at:
                code = call.args[code_at]
            if len(call.args) > at and code is not None:
                first = call.args[0]
                of_api = name in ("Failure", "problem_response") and isinstance(first, ast.Constant)
                status = first.value if of_api else None
                for sentence in _texts(call.args[at], around):
                    for word in self._codes(code):
                        yield Told(word, name, sentence, status)
            return
        if name == "ValueError" and self._has_schemas and call.args:
            for sentence in _texts(call.args[0], around):
                yield Told("invalid-member", name, sentence, None)
            return
        made = self._makers.get(name, call)
        kind = self._problem_class(made, around)
        if kind is None:
            return
        code = _keyword(made, "code")
        given = self._codes(code) if code is not None else [self._default_code(kind, made)]
        for sentence in _texts(call.args[0], around) if call.args else ():
            for word in given:
                yield Told(word, kind.__name__, sentence, _status(kind))

    def _problem_class(self, call: ast.Call, around: tuple[ast.AST, ...]) -> type | None:
        """Return the class of problems that a call makes one of, or begins one of within its own class."""
        from memory.core.errors import MemoryProblem

        name = _name_of(call.func)
        if name == "__init__" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
            name = next((each.name for each in reversed(around) if isinstance(each, ast.ClassDef)), "")
        elif not isinstance(call.func, ast.Name):
            return None
        if not name or not name[:1].isupper() or name == "MemoryProblem":
            return None
        found = getattr(importlib.import_module(self.name), name, None)
        return found if isinstance(found, type) and issubclass(found, MemoryProblem) else None

    def _default_code(self, kind: type, call: ast.Call) -> str:
        from memory.core.problem_codes import MODEL_CODES

        of_model = _keyword(call, "kind")
        if isinstance(of_model, ast.Constant) and of_model.value in MODEL_CODES:
            return MODEL_CODES[of_model.value].value
        return str(MODEL_CODES.get(getattr(kind, "kind", ""), kind.code))  # type: ignore[attr-defined]

    def _codes(self, code: ast.expr) -> list[str]:
        from memory.core.problem_codes import ProblemCode

        if isinstance(code, ast.Attribute) and isinstance(code.value, ast.Name) and code.value.id == "ProblemCode":
            return [ProblemCode[code.attr].value]
        if isinstance(code, ast.Call) and _name_of(code.func) == "validation_code":
            return [ProblemCode.INVALID_MEMBER, ProblemCode.MISSING_MEMBER, ProblemCode.UNKNOWN_MEMBER]
        if isinstance(code, ast.Attribute) and code.attr == "not_found":
            # Every kind of job has a code of its own.
            from memory.models import Job

            return [kind.not_found for kind in Job.__subclasses__()]
        return [FROM_CAUSE]


def _status(kind: type) -> int | None:
    from memory.api.problems import STATUSES

    return next((status for each, status in STATUSES.items() if issubclass(kind, each)), None)


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_name(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _texts(value: ast.expr, around: tuple[ast.AST, ...], depth: int = 0) -> list[str]:
    """Return what an expression may say, with gaps for what is not known before."""
    if isinstance(value, ast.Constant):
        return [str(value.value)]
    if isinstance(value, ast.JoinedStr):
        texts = [""]
        for part in value.values:
            own = [GAP] if isinstance(part, ast.FormattedValue) else _texts(part, around, depth)
            texts = [text + each for text in texts for each in own]
        return texts
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = _texts(value.left, around, depth), _texts(value.right, around, depth)
        return [one + other for one in left for other in right]
    if isinstance(value, ast.IfExp):
        return _texts(value.body, around, depth) + _texts(value.orelse, around, depth)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and depth < 4:
        # What a function of the module returns, where it has one of this name.
        own = [node for node in around[0].body if isinstance(node, ast.FunctionDef) and node.name == value.func.id]  # type: ignore[attr-defined]
        returned = [node.value for each in own for node in ast.walk(each) if isinstance(node, ast.Return)]
        found = [text for each in returned if each is not None for text in _texts(each, (*around, *own), depth + 1)]
        return found or [GAP]
    if isinstance(value, ast.Name) and depth < 4:
        for scope in reversed(around):
            # Of the module only what stands at its top: names within other functions are their own.
            found = [
                node.value
                for node in (scope.body if isinstance(scope, ast.Module) else ast.walk(scope))
                if isinstance(node, ast.Assign)
                and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
            ]
            if found:
                return [text for each in found for text in _texts(each, around, depth + 1)]
    return [GAP]


def files_write() -> None:
    """Write the sentences and the table of the docs anew."""
    SENTENCES.write_text(sentences_text(), encoding="utf-8")
    lead = DOCS.read_text(encoding="utf-8").partition(TABLE_BEGINS)[0]
    DOCS.write_text(lead + docs_table(), encoding="utf-8")


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
    django.setup()
    files_write()
