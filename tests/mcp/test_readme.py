"""The agents' configurations in the docs: they parse, start what there is, and keep the key to themselves."""

import json
import re
import shlex
import tomllib

from django.core.management import get_commands

from memstate_site.folder import CHECKOUT

TEXT = (CHECKOUT / "docs" / "mcp.md").read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index("## Connect an agent") : TEXT.index("## Tools and resources")]
BLOCKS = re.findall(r"^```\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
PYTHON, MANAGE = "/home/you/memstate/.venv/bin/python", "/home/you/memstate/manage.py"
ADDRESS = "http://127.0.0.1:8765/mcp"


def test_files_say_what_their_agents_read():
    whole = [json.loads(block) for block in BLOCKS if block.startswith("{")]
    cursor, code, desktop = whole
    bearer = {"Authorization": "Bearer ms_..."}
    assert cursor == {"mcpServers": {"memstate": {"url": ADDRESS, "headers": bearer}}}
    (asked,) = code["inputs"]
    assert (asked["type"], asked["password"]) == ("promptString", True)
    server = code["servers"]["memstate"]
    assert (server["type"], server["url"]) == ("http", ADDRESS)
    assert server["headers"] == {"Authorization": f"Bearer ${{input:{asked['id']}}}"}
    started = {"command": PYTHON, "args": [MANAGE, "mcp"], "env": {"MEMSTATE_API_KEY": "ms_..."}}
    assert desktop == {"mcpServers": {"memstate": started}}
    (codex,) = [tomllib.loads(block) for block in BLOCKS if block.startswith("[")]
    assert codex == {"mcp_servers": {"memstate": {"url": ADDRESS, "bearer_token_env_var": "MEMSTATE_API_KEY"}}}


def test_commands_are_reported_in_an_order_that_their_programs_understand():
    lines = [shlex.split(line) for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]
    added = [line for line in lines if line[1:3] == ["mcp", "add"]]
    assert len(added) == 3
    for words in added:
        if "--" not in words:
            assert {ADDRESS, "memstate", "Authorization: Bearer ms_..."} < set(words)
            continue
        before, started = words[: words.index("--")], words[words.index("--") + 1 :]
        assert started == [PYTHON, MANAGE, "mcp"]
        # Claude Code takes what follows the value of --env for another one, up to the next option.
        assert before[before.index("--env") + 1 :] == ["MEMSTATE_API_KEY=ms_..."]
        assert "memstate" in before
    assert "mcp" in get_commands()
    (made,) = [line for line in lines if line[1:3] == ["manage.py", "key"]]
    assert made[3:] == ["create", "My assistant", "--role", "agent", "--scope", "/user/mara"]
