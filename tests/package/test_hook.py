"""The hooks of a coding agent, as the agent runs them: a process with JSON on its standard input."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.models import ExtractionJob, Topic
from memstate import MemState
from memstate_site.folder import CHECKOUT
from tests.cast import secret_of, worker_turn

Run = Callable[..., subprocess.CompletedProcess[str]]
NOTHING = ("", "", 0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "ferry app" / "src"
    (folder.parent / ".git").mkdir(parents=True)
    folder.mkdir()
    return folder


@pytest.fixture
def agent(http_cast: Any, live_server: Any) -> Iterator[MemState]:
    with MemState(live_server.url, secret_of("agent")) as client:
        yield client


@pytest.fixture
def run(http_cast: Any, live_server: Any, project: Path, tmp_path: Path) -> Run:
    def _run(hook: str, sent: Any, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(CHECKOUT),
            "MEMSTATE_URL": live_server.url,
            "MEMSTATE_API_KEY": secret_of("agent"),
            "MEMSTATE_HOOK_SECONDS": "30",
            **environment,
        }
        text = sent if isinstance(sent, str) else json.dumps({"session_id": "s-1", "cwd": str(project), **sent})
        command = [sys.executable, "-m", "memstate", "hook", hook]
        return subprocess.run(
            command, input=text, env=given, cwd=project, capture_output=True, text=True, timeout=60, check=False
        )

    return _run


def shown(done: subprocess.CompletedProcess[str]) -> tuple[str, str, int]:
    return done.stdout, done.stderr, done.returncode


def added(done: subprocess.CompletedProcess[str], event: str) -> str:
    assert (done.stderr, done.returncode) == ("", 0)
    output = json.loads(done.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == event
    return str(output["additionalContext"])


def logged(tmp_path: Path) -> str:
    (file,) = tmp_path.rglob("hook.log")
    return file.read_text()


def transcript(tmp_path: Path, *lines: Any) -> Path:
    file = tmp_path / "transcript.jsonl"
    with file.open("a") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    return file


def said(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"role": kind, "content": content}, **more}


def test_a_session_starts_with_what_is_known_about_the_project(run: Run, agent: MemState):
    assert shown(run("session-start", {"source": "startup"})) == NOTHING
    agent.ingest("new_topic", title="Decision", summary="The ferry app uses PostgreSQL.", scope="/project/ferry-app")
    agent.ingest("new_topic", title="Elsewhere", summary="The other app uses SQLite.", scope="/project/other")
    context = added(run("session-start", {"source": "startup"}), "SessionStart")
    assert "The ferry app uses PostgreSQL." in context
    assert "SQLite" not in context


def test_a_prompt_gets_what_answers_it_and_nothing_else(run: Run, agent: MemState):
    agent.ingest("new_topic", title="Database", summary="The ferry app uses PostgreSQL.", scope="/project/ferry-app")
    sent = {"hook_event_name": "UserPromptSubmit", "prompt": "The ferry app uses PostgreSQL."}
    assert "PostgreSQL" in added(run("prompt", sent), "UserPromptSubmit")
    assert shown(run("prompt", {**sent, "prompt": "zzz qqq xxx"})) == NOTHING
    assert shown(run("prompt", {**sent, "prompt": "  "})) == NOTHING


def test_what_was_said_is_extracted_once_into_the_scope_of_the_project(run: Run, tmp_path: Path):
    reminder = "<system-reminder>Be brief.</system-reminder>"
    file = transcript(
        tmp_path,
        said("user", f"We deploy on Fridays. {reminder}"),
        said("assistant", [{"type": "text", "text": "The API key of Stripe is in the vault."}, {"type": "tool_use"}]),
        said("user", [{"type": "tool_result", "content": "Secret output of a tool."}]),
        said("user", "A side conversation about birds.", isSidechain=True),
        {"type": "summary", "summary": "A title."},
    )
    sent = {"hook_event_name": "PreCompact", "trigger": "auto", "transcript_path": str(file)}
    assert shown(run("compact", sent)) == NOTHING
    transcript(tmp_path, said("user", "The tests run in parallel."))
    ended = {"hook_event_name": "SessionEnd", "reason": "exit", "transcript_path": str(file)}
    assert shown(run("session-end", ended)) == NOTHING
    first, second = ExtractionJob.objects.order_by("created_at")
    assert (first.scope, second.scope) == ("/project/ferry-app", "/project/ferry-app")
    while any(worker_turn().values()):
        pass
    texts = " ".join(f"{topic.title} {topic.summary}" for topic in Topic.objects.all())
    values = json.dumps(list(Topic.objects.values_list("fields__revisions__value", flat=True)))
    kept = f"{texts} {values}"
    assert "deploy on Fridays" in kept
    assert "vault" in kept
    assert "in parallel" in kept
    for left_out in ("Be brief", "Secret output", "birds", "A title"):
        assert left_out not in kept
    assert shown(run("session-end", ended)) == NOTHING
    assert ExtractionJob.objects.count() == 2


@pytest.mark.parametrize("hook", ["session-start", "prompt", "compact", "session-end"])
def test_a_store_that_is_down_or_refuses_shows_nothing_and_is_logged(run: Run, tmp_path: Path, hook: str):
    file = transcript(tmp_path, said("user", "We deploy on Fridays."))
    sent = {"prompt": "When do we deploy?", "transcript_path": str(file)}
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert shown(run(hook, sent, MEMSTATE_URL=f"http://127.0.0.1:{port}")) == NOTHING
    assert shown(run(hook, sent, MEMSTATE_API_KEY="ms_made-up")) == NOTHING
    assert shown(run(hook, "{")) == NOTHING
    assert shown(run(hook, {**sent, "cwd": "/", "transcript_path": "/nowhere"}, MEMSTATE_URL="no address")) == NOTHING
    lines = logged(tmp_path).splitlines()
    assert len(lines) == 4
    assert all(hook in line for line in lines)
    assert "401" in lines[1]


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A server that accepts a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_store_that_does_not_answer_in_time_is_given_up(run: Run, tmp_path: Path):
    with silent_server() as address:
        assert shown(run("prompt", {"prompt": "When?"}, MEMSTATE_URL=address, MEMSTATE_HOOK_SECONDS="1")) == NOTHING
    assert "prompt" in logged(tmp_path)


def test_a_key_of_this_machine_is_used_if_no_other_is_given(run: Run, agent: MemState, tmp_path: Path):
    agent.ingest("new_topic", title="Decision", summary="The ferry app uses PostgreSQL.", scope="/project/ferry-app")
    (tmp_path / "credentials.json").write_text(json.dumps({"agent_key": secret_of("agent")}))
    done = run("session-start", {}, MEMSTATE_API_KEY="", MEMSTATE_DATA_DIR=str(tmp_path))
    assert "PostgreSQL" in added(done, "SessionStart")


def test_an_unknown_hook_is_a_mistake_of_the_person_who_wrote_it(run: Run):
    done = run("sessionstart", {})
    assert (done.stdout, done.returncode) == ("", 2)
    assert "session-start" in done.stderr


def test_the_plugin_runs_the_hooks(run: Run, agent: MemState, tmp_path: Path, project: Path):
    agent.ingest("new_topic", title="Decision", summary="The ferry app uses PostgreSQL.", scope="/project/ferry-app")
    folder = tmp_path / "plugin"
    command = [sys.executable, "-m", "memstate", "plugin", "claude-code", str(folder)]
    for _ in range(2):
        subprocess.run(command, cwd=CHECKOUT, check=True, timeout=60, capture_output=True)
    about = json.loads((folder / ".claude-plugin" / "plugin.json").read_text())
    listed = json.loads((folder / ".claude-plugin" / "marketplace.json").read_text())
    assert listed["plugins"][0]["name"] == about["name"] == "memstate"
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"]
    names = [hooks[event][0]["hooks"][0]["command"].split()[-1] for event in hooks]
    assert names == ["session-start", "prompt", "compact", "session-end"]
    (folder / "mine.txt").write_text("Keep this.")
    refused = subprocess.run(command, cwd=CHECKOUT, check=False, timeout=60, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "mine.txt" in refused.stderr
