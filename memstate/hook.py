"""Hooks of a coding agent: ``memstate hook session-start | prompt | compact | session-end``.

A hook reads its JSON from standard input, as Claude Code sends it. At the start of a session and for each prompt, it
prints what MemState remembers about the project. Before the conversation is compacted, and at its end, MemState
extracts facts from it. A hook never disturbs the session: it ends within ``SECONDS`` with status 0, prints nothing
else, and writes what failed to a log.
"""

import hashlib
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from platformdirs import user_data_path, user_log_path, user_state_path

# Seconds for the whole hook, except the start of Python. Extraction may go on in another process for PATIENCE seconds.
SECONDS, PATIENCE = 1.0, 30.0
# Estimated tokens of what a hook adds to the conversation.
START_TOKENS, PROMPT_TOKENS = 1_500, 500
# The least relevance of what is added to a prompt.
LEAST_RELEVANCE = 0.5
# The longest text of one extraction; the server accepts 50,000 characters.
MAX_CHARS = 45_000
# A longer prompt is asked about by its beginning and its end, because a long question takes long to embed.
PROMPT_CHARS = 400
# How long the position in a transcript is kept.
KEPT_SECONDS = 30 * 86_400
LOG = "hook.log"
LOG_BYTES = 500_000

# What Claude Code adds to messages, and the marks of lines that were not said.
_WRAPPED = re.compile(r"<(system-reminder|(?:local-)?command-[\w-]+|bash-[\w-]+|ide_\w+)>.*?</\1>", re.DOTALL)
_NOT_SAID = ("isMeta", "isSidechain", "isApiErrorMessage", "isCompactSummary")
# The host and path of an address such as https://github.com/owner/name.git or git@github.com:owner/name.git.
_ADDRESS = re.compile(r"^(?:\w+://)?(?:[^@/]*@)?([\w.-]+(?::\d+)?[:/].+?)(?:\.git)?/?$")
_HASH = re.compile(r"-[0-9a-f]{6}$")

Hook = Mapping[str, Any]


def hook_run(arguments: list[str]) -> int:
    """Run the hook that ``arguments`` names, and return the exit status: 2 for an unknown name, else 0."""
    if len(arguments) != 1 or arguments[0] not in _HOOKS:
        print(f"Usage: memstate hook {' | '.join(_HOOKS)}", file=sys.stderr)
        return 2
    event = arguments[0]
    limit = _seconds()
    if _HOOKS[event] is _extract:
        _extract_apart(event, limit)
        return 0
    printed: list[str] = []
    thread = threading.Thread(target=lambda: printed.append(_answer(event, limit)), daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        _log(f"{event}: no answer within {limit:g} s")
    elif printed[0]:
        print(printed[0], flush=True)
    # The thread may still wait for the server or for its input, and Python would wait for it.
    os._exit(0)


def _seconds() -> float:
    try:
        return float(os.environ.get("MEMSTATE_HOOK_SECONDS") or SECONDS)
    except ValueError:
        return SECONDS


def _answer(event: str, limit: float) -> str:
    """Return what the hook prints. Log a failure."""
    try:
        return _HOOKS[event](json.load(sys.stdin), limit)
    except Exception as problem:
        _log(f"{event}: {type(problem).__name__}: {problem}")
        return ""


def _extract_apart(event: str, limit: float) -> None:
    """Run a hook in a process of its own, and wait for it for ``limit`` seconds. So a slow server does not delay the
    session, and gets the text all the same."""
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        _answer(event, PATIENCE)
        os._exit(0)
    until = time.monotonic() + limit
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
    _log(f"{event}: no answer within {limit:g} s; another process goes on for {PATIENCE:g} s")


def _session_start(hook: Hook, limit: float) -> str:
    scope = project_scope(hook)
    question = f"{_HASH.sub('', scope).rpartition('/')[2]}: decisions, conventions, preferences, problems, open tasks"
    found = _query(question, limit, scope=scope, top_k=20, token_budget=START_TOKENS)
    return _context("SessionStart", f"What MemState remembers about this project ({scope}):\n{found}" if found else "")


def _prompt(hook: Hook, limit: float) -> str:
    asked = str(hook.get("prompt", "")).strip()
    if not asked:
        return ""
    if len(asked) > 2 * PROMPT_CHARS:
        asked = f"{asked[:PROMPT_CHARS]} … {asked[-PROMPT_CHARS:]}"
    wanted = {"top_k": 5, "token_budget": PROMPT_TOKENS, "min_relevance": LEAST_RELEVANCE}
    found = _query(asked, limit, scope=project_scope(hook), **wanted)
    return _context("UserPromptSubmit", f"From MemState, about this prompt:\n{found}" if found else "")


def _extract(hook: Hook, limit: float) -> str:
    session = re.sub(r"[^\w-]", "", str(hook.get("session_id", "")))[:100]
    # The position in the transcript up to which facts were extracted, because a session is compacted several times.
    folder = user_state_path("memstate", ensure_exists=True)
    for old in folder.glob("session-*"):
        if old.stat().st_mtime < time.time() - KEPT_SECONDS:
            old.unlink(missing_ok=True)
    seen = folder / f"session-{session}"
    path = Path(str(hook["transcript_path"])).expanduser()
    start = int(seen.read_text()) if seen.is_file() else 0
    scope = project_scope(hook)

    def send(text: str, end: int) -> None:
        if text:
            body = {"content": text[:MAX_CHARS], "scope": scope, "store": True}
            _post("/v1/extract", body, limit, params={"background": True})
        seen.write_text(str(end))

    text = ""
    with path.open("rb") as file:
        end = file.seek(start if start <= path.stat().st_size else 0)
        for line in file:
            # A line that is still being written is left for the next hook.
            if not line.endswith(b"\n"):
                break
            said = line_text(line.decode("utf-8", "replace"))
            longer = "\n\n".join(filter(None, (text, said)))
            if text and len(longer) > MAX_CHARS:
                send(text, end)
                longer = said
            text = longer
            end += len(line)
    send(text, end)
    return ""


_HOOKS: dict[str, Callable[[Hook, float], str]] = {
    "session-start": _session_start,
    "prompt": _prompt,
    "compact": _extract,
    "session-end": _extract,
}


def project_scope(hook: Hook) -> str:
    """Return the scope of the project: ``MEMSTATE_PROJECT_SCOPE``, else ``/project/`` and the address of the git
    repository, such as ``/project/github.com/owner/name``. A project without an address has the name of its folder and
    a hash of the path, so that two folders of one name are two projects. Worktrees of a repository are one project."""
    if given := os.environ.get("MEMSTATE_PROJECT_SCOPE"):
        return given
    folder = str(hook.get("cwd") or Path.cwd())
    address = _git(folder, "config", "--get", "remote.origin.url")
    if found := _ADDRESS.search(address):
        path = re.sub(r"[^\w./-]+", "-", found[1].replace(":", "/"))
        return f"/project/{path.replace('..', '-')}"
    common = _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    root = Path(common).parent if common else Path(folder).resolve()
    name = re.sub(r"[^\w.-]+", "-", root.name).strip(".")
    return f"/project/{name or 'unnamed'}-{hashlib.sha256(str(root).encode()).hexdigest()[:6]}"


def _git(folder: str, *arguments: str) -> str:
    try:
        command = ["git", "-C", folder, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def line_text(line: str) -> str:
    """Return what the person or the agent said in a line of a transcript, with the speaker; "" for other lines. Tool
    calls, their results, commands with their output, and the conversations of other agents are left out."""
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in ("user", "assistant") or any(entry.get(mark) for mark in _NOT_SAID):
        return ""
    content = (entry.get("message") or {}).get("content", "")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    text = _WRAPPED.sub("", str(content)).strip()
    return f"{'User' if kind == 'user' else 'Assistant'}: {text}" if text else ""


def _context(event: str, text: str) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}) if text else ""


def _query(question: str, limit: float, **members: Any) -> str:
    reply = _post("/v1/query", {"q": question, "depth": 0, **members}, limit)
    return str(reply["summary_text"])


def _post(path: str, body: Mapping[str, Any], limit: float, params: Mapping[str, Any] | None = None) -> Any:
    from memstate.client import MemState

    address = os.environ.get("MEMSTATE_URL")
    key = None
    if not address:
        # The installation of this machine, with the key of its first start.
        address = f"http://127.0.0.1:{os.environ.get('MEMSTATE_API_PORT') or 8765}"
        if not os.environ.get("MEMSTATE_API_KEY"):
            folder = Path(os.environ.get("MEMSTATE_DATA_DIR") or user_data_path("memstate"))
            key = str(json.loads((folder / "credentials.json").read_text(encoding="utf-8"))["agent_key"])
    with MemState(address, key, timeout=limit, retries=0) as client:
        return client.request("POST", path, json=body, params=params)


def _log(line: str) -> None:
    try:
        folder = user_log_path("memstate", ensure_exists=True)
        handler = RotatingFileHandler(folder / LOG, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        # There is no other place for a message that must not disturb the session.
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    handler.emit(logging.makeLogRecord({"msg": line.replace("\n", " ")}))
    handler.close()
