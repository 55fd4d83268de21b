"""The typed client for TypeScript that docs/client.md describes, made from the OpenAPI document and compiled."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from memstate_site.folder import CHECKOUT

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm"),
]

DOCUMENT = CHECKOUT / "docs" / "openapi.json"
PAGE = CHECKOUT / "docs" / "client.md"
WRONG = """
import createClient from "openapi-fetch";
import type { paths } from "./memstate";

const memory = createClient<paths>({ baseUrl: "" });
await memory.POST("/v1/query", { body: { q: 1 } });
await memory.GET("/v1/nowhere");
"""


def test_the_example_of_the_page_is_made_and_compiled(tmp_path: Path):
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## TypeScript") :]
    commands = re.findall(r"^```\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)[0].splitlines()
    (program,) = re.findall(r"^```typescript\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    install, make = commands
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')

    def run(*command: str, fails: bool = False) -> str:
        done = subprocess.run(command, cwd=tmp_path, timeout=300, check=False, capture_output=True, text=True)
        assert bool(done.returncode) is fails, done.stdout + done.stderr
        return done.stdout

    run(*install.split(), "--no-audit", "--no-fund")
    run(*make.replace("http://127.0.0.1:8765/v1/openapi.json", str(DOCUMENT)).split())
    options = ("--strict", "--noEmit", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")
    (tmp_path / "use.ts").write_text(program)
    run("npx", "tsc", *options, "use.ts")
    (tmp_path / "wrong.ts").write_text(WRONG)
    errors = run("npx", "tsc", *options, "wrong.ts", fails=True)
    assert len(re.findall(r"^wrong\.ts\(", errors, re.MULTILINE)) == 2
