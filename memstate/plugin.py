"""``memstate plugin claude-code DIR``: writes a plugin for Claude Code that runs the hooks of ``memstate hook``."""

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

NAME = "memstate"
DESCRIPTION = "Gives each session what MemState remembers about the project, and keeps what the session finds out."
# The hooks of Claude Code, and those of ``memstate hook``.
HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PreCompact": "compact",
    "SessionEnd": "session-end",
}
# The seconds after which Claude Code ends a hook.
SECONDS = 5


def plugin_run(arguments: list[str]) -> int:
    """Write the plugin into the folder that ``arguments`` names, and return the exit status. A folder with other files
    is refused."""
    if len(arguments) != 2 or arguments[0] != "claude-code":
        print("Usage: memstate plugin claude-code DIR", file=sys.stderr)
        return 2
    folder = Path(arguments[1]).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        print(f"{folder} is not a folder.", file=sys.stderr)
        return 2
    files = plugin_files(_program())
    others = [each for each in folder.rglob("*") if each.is_file() and str(each.relative_to(folder)) not in files]
    if others:
        print(f"{folder} has other files, such as {others[0].relative_to(folder)}. Name a new folder.", file=sys.stderr)
        return 2
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    shown = shlex.quote(str(folder))
    print(f"The plugin is in {folder}. Try it: claude --plugin-dir {shown}")
    print(f"Install it: claude plugin marketplace add {shown} && claude plugin install {NAME}@{NAME}")
    return 0


def plugin_files(program: str) -> dict[str, Any]:
    """Return the files of the plugin: names relative to its folder, and their JSON. ``program`` is the command that
    runs ``memstate``."""
    try:
        number = version("memstate")
    except PackageNotFoundError:
        number = "0"
    about = {"name": NAME, "description": DESCRIPTION, "version": number, "author": {"name": NAME}}
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"{program} hook {name}", "timeout": SECONDS}]}]
        for event, name in HOOKS.items()
    }
    listed = {"name": NAME, "source": "./", "description": DESCRIPTION}
    return {
        ".claude-plugin/plugin.json": about,
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": {"name": NAME},
            "metadata": {"description": DESCRIPTION},
            "plugins": [listed],
        },
        "hooks/hooks.json": {"hooks": hooks},
    }


def _program() -> str:
    """Return the command that runs ``memstate`` from any folder."""
    if found := shutil.which("memstate"):
        return f'"{found}"' if " " in found else found
    return f'"{sys.executable}" -m memstate'
