"""What the pages show of the client can be run as it stands there, and what they name exists."""

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from memstate import client as module
from tests.cast import secret_of
from tests.client.test_fits_the_api import arguments_of, methods_of

BASE = Path(django_settings.BASE_DIR)
PAGE = BASE / "docs" / "client.md"


def programs(file: Path) -> list[str]:
    """The blocks of a page that are Python."""
    return re.findall(r"^```python\n(.*?)^```$", file.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("program", [*programs(PAGE), *programs(BASE / "README.md")])
def test_examples_can_be_run(
    program: str, http_cast: Any, live_server: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "memstate", module)
    here = f'"{live_server.url}", api_key="{secret_of("agent")}"'
    said, changed = re.subn(r'(?:"http://127\.0\.0\.1:8765", )?api_key="ms_\.\.\."', lambda _found: here, program)
    assert changed == 1
    begun = eval(compile(said, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
    if inspect.iscoroutine(begun):
        asyncio.run(begun)
    assert "Mara drinks green tea." in capsys.readouterr().out


def test_every_method_and_argument_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| wish |") : text.index("* `ingest(")]
    named = re.findall(r"`(\w+)(?:\(([^`]*)\))?`", table)
    assert {name for name, _arguments in named} | {"close", "with_timeout"} == methods_of(module.MemState).keys()
    for name, arguments in named:
        known: Any = arguments_of(getattr(module.MemState, name))
        for argument in re.findall(r"(\w+)=", arguments):
            assert argument in known, (name, argument)
    known = inspect.signature(module.MemState).parameters
    settings = re.findall(r"^\| `(\w+)` \| (.*?) \|", text[: text.index("## Methods")], re.MULTILINE)
    assert [name for name, _default in settings] == list(known)
    for name, default in settings:
        if default.isdigit():
            assert known[name].default == float(default), name
