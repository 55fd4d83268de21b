"""Prints the size of each room as a table: ``python -m tests.size``.

A statement is an ``ast.stmt``, docstrings included. Lines mislead, because formatters and long SQL texts change them.
"""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("memory", "memstate", "memstate_site", "manage.py")


def room_of(path: Path) -> str:
    """Return the room of a file: its folder, at most two levels down."""
    return "/".join(path.relative_to(ROOT).parts[:-1][:2]) or path.name


def sizes(*folders: str) -> dict[str, Counter[str]]:
    """Return files, lines, statements and functions of each room, without migrations."""
    found: dict[str, Counter[str]] = {}
    for folder in folders:
        top = ROOT / folder
        for path in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
            if "migrations" in path.parts:
                continue
            text = path.read_text(encoding="utf-8")
            nodes = list(ast.walk(ast.parse(text)))
            found.setdefault(room_of(path), Counter()).update(
                files=1,
                lines=text.count("\n"),
                statements=sum(isinstance(node, ast.stmt) for node in nodes),
                functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
            )
    return found


def table(found: dict[str, Counter[str]]) -> str:
    """Return the sizes as Markdown, the largest room first, and their sum."""
    columns = ("files", "lines", "statements", "functions")
    rows = sorted(found.items(), key=lambda row: -row[1]["statements"])
    rows.append(("sum", sum(found.values(), Counter())))
    lines = ["| room | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    lines += [f"| {room} | " + " | ".join(f"{size[each]:,}" for each in columns) + " |" for room, size in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sizes(*PRODUCT)))
    print(table(sizes("tests")))
