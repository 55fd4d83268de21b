"""Hooks of a coding agent: ``memstate hook session-start | prompt | compact | session-end``.

A hook reads its JSON from standard input, as Claude Code sends it. At the start of a session and for each prompt, it
prints what MemState remembers about the project. Before the conversation is compacted, and at its end, MemState
extracts facts from it. A hook never disturbs the session: it ends within ``SECONDS`` with status 0, prints nothing
else, and writes what failed to a log.
"""

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from platformdirs import user_data_path, user_log_path, user_state_path

# Seconds for the whole hook, except the start of Python.
SECONDS = float(os.environ.get("MEMSTATE_HOOK_SECONDS") or 1)
# Estimated tokens of what a hook adds to the conversation.
START_TOKENS, PROMPT_TOKENS = 1_500, 500
# The least relevance of what is added to a prompt.
LEAST_RELEVANCE = 0.5
# The longest text of one extraction; the server accepts 50,000 characters.
MAX_CHARS = 45_000
# What is read at most of a transcript: its end.
MAX_BYTES = 4_000_000
# How long the position in a transcript is kept.
KEPT_SECONDS = 30 * 86_400
LOG = "hook.log"
LOG_BYTES = 500_000

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)

Hook = Mapping[str, Any]


def hook_run(arguments: list[str]) -> int:
    """Run the hook that ``arguments`` names, and return the exit status: 2 for an unknown name, else 0."""
    if len(arguments) != 1 or arguments[0] not in _HOOKS:
        print(f"Usage: memstate hook {' | '.join(_HOOKS)}", file=sys.stderr)
        return 2
    event, printed = arguments[0], list[str]()

    def work() -> None:
        try:
            printed.append(_HOOKS[event](json.load(sys.stdin)))
        except Exception as problem:
            _log(f"{event}: {type(problem).__name__}: {problem}")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        _log(f"{event}: no answer within {SECONDS:g} s")
    elif printed and printed[0]:
        print(printed[0], flush=True)
    # The thread may still wait for the server or for its input, and Python would wait for it.
    os._exit(0)


def _session_start(hook: Hook) -> str:
    scope = project_scope(hook)
    question = f"{scope.rpartition('/')[2]}: decisions, conventions, preferences, problems, open tasks"
    found = _query(question, scope=scope, top_k=20, token_budget=START_TOKENS)
    return _context("SessionStart", f"What MemState remembers about this project ({scope}):\n{found}" if found else "")


def _prompt(hook: Hook) -> str:
    asked = str(hook.get("prompt", "")).strip()[:8_000]
    if not asked:
        return ""
    wanted = {"top_k": 5, "token_budget": PROMPT_TOKENS, "min_relevance": LEAST_RELEVANCE}
    found = _query(asked, scope=project_scope(hook), **wanted)
    return _context("UserPromptSubmit", f"From MemState, about this prompt:\n{found}" if found else "")


def _extract(hook: Hook) -> str:
    session = re.sub(r"[^\w-]", "", str(hook.get("session_id", "")))[:100]
    # The position in the transcript up to which facts were extracted, because a session is compacted several times.
    folder = user_state_path("memstate", ensure_exists=True)
    for old in folder.glob("session-*"):
        if old.stat().st_mtime < time.time() - KEPT_SECONDS:
            old.unlink(missing_ok=True)
    seen = folder / f"session-{session}"
    path = Path(str(hook["transcript_path"])).expanduser()
    size = path.stat().st_size
    start = int(seen.read_text()) if seen.is_file() else 0
    with path.open("rb") as file:
        file.seek(max(start if start <= size else 0, size - MAX_BYTES))
        # A line that is still being written is left for the next hook.
        whole, newline, unfinished = file.read().rpartition(b"\n")
        end = file.tell() - len(unfinished)
    text = transcript_text(whole.decode("utf-8", "replace").splitlines())[-MAX_CHARS:]
    if newline and text:
        body = {"content": text, "scope": project_scope(hook), "store": True}
        _ask("POST", "/v1/extract", body, params={"background": True})
    seen.write_text(str(end))
    return ""


_HOOKS: dict[str, Callable[[Hook], str]] = {
    "session-start": _session_start,
    "prompt": _prompt,
    "compact": _extract,
    "session-end": _extract,
}


def project_scope(hook: Hook) -> str:
    """Return the scope of the project: ``MEMSTATE_PROJECT_SCOPE``, else ``/project/`` and the name of the folder of the
    session, or of the git repository around it."""
    if given := os.environ.get("MEMSTATE_PROJECT_SCOPE"):
        return given
    folder = Path(str(hook.get("cwd") or Path.cwd()))
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    name = re.sub(r"[\s/]+", "-", root.name)
    return f"/project/{name or 'unnamed'}"


def transcript_text(lines: list[str]) -> str:
    """Return what the person and the agent said, from the lines of a transcript. Tool calls, their results, and the
    conversations of other agents are left out."""
    said = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind not in ("user", "assistant") or entry.get("isMeta") or entry.get("isSidechain"):
            continue
        content = (entry.get("message") or {}).get("content", "")
        if isinstance(content, list):
            content = "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
        text = _REMINDER.sub("", str(content)).strip()
        if text:
            said.append(f"{'User' if kind == 'user' else 'Assistant'}: {text}")
    return "\n\n".join(said)


def _context(event: str, text: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}) if text else ""


def _query(question: str, **members: Any) -> str:
    reply = _ask("POST", "/v1/query", {"q": question, "depth": 0, **members})
    return str(reply["summary_text"])


def _ask(method: str, path: str, body: Mapping[str, Any], params: Mapping[str, Any] | None = None) -> Any:
    from memstate.client import MemState

    address = os.environ.get("MEMSTATE_URL", "http://127.0.0.1:8765")
    with MemState(address, _key(), timeout=SECONDS, retries=0) as client:
        return client.request(method, path, json=body, params=params)


def _key() -> str | None:
    """Return the key of the first start, if this machine has an installation and no other key is given."""
    if os.environ.get("MEMSTATE_API_KEY"):
        return None
    folder = Path(os.environ.get("MEMSTATE_DATA_DIR") or user_data_path("memstate"))
    return str(json.loads((folder / "credentials.json").read_text(encoding="utf-8"))["agent_key"])


def _log(line: str) -> None:
    try:
        folder = user_log_path("memstate", ensure_exists=True)
        handler = RotatingFileHandler(folder / LOG, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        # There is no other place for a message that must not disturb the session.
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    handler.emit(logging.LogRecord("memstate", logging.INFO, "", 0, line.replace("\n", " "), (), None))
    handler.close()
