"""Rules about the tests themselves: each wait has a time limit, and the lists of conftest.py name existing tests."""

import ast
from pathlib import Path

from tests import conftest

TESTS = Path(__file__).resolve().parents[1]
# Methods that wait for ever if they are called without an argument.
ENDLESS = {"wait", "join", "result", "communicate"}
# Calls that wait for ever without the argument `timeout`.
LIMITED = {"subprocess.run", "subprocess.check_output", "threading.Barrier", "socket.create_connection"}


def endless(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    limited = any(argument.arg == "timeout" for argument in call.keywords)
    if name in LIMITED:
        return not limited
    method = isinstance(call.func, ast.Attribute)
    return (
        method
        and not limited
        and (name.endswith("stdout.readline") or (name.split(".")[-1] in ENDLESS and not call.args))
    )


def test_each_wait_has_a_time_limit() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {ast.unparse(node)[:80]}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.name != "waits.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and endless(node)
    ]
    assert found == []


def test_the_lists_of_slow_tests_name_existing_tests() -> None:
    for entry in (*conftest.LONGEST, *conftest.THOROUGH, *conftest.QUICK):
        name, _, test = entry.partition("::")
        path = TESTS.parent / name
        assert path.exists(), entry
        assert not test or f"def {test.rpartition('::')[2].partition('[')[0]}" in path.read_text(), entry
