"""The hooks of a coding agent, as the agent runs them: a process with JSON on its standard input."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.models import ExtractionJob, Revision, Topic
from memstate import MemState
from memstate.hook import project_scope
from memstate_site.folder import CHECKOUT
from tests.cast import secret_of, worker_turn

Run = Callable[..., subprocess.CompletedProcess[str]]
NOTHING = ("", "", 0)
SCOPE = "/project/example.org/mara/ferry-app"


def git(*arguments: str, cwd: Path) -> None:
    me = ("-c", "user.name=Mara", "-c", "user.email=mara@example.org")
    subprocess.run(["git", *me, *arguments], cwd=cwd, check=True, timeout=60, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout" / "src"
    folder.mkdir(parents=True)
    git("init", "--quiet", cwd=folder.parent)
    git("remote", "add", "origin", "git@example.org:mara/ferry-app.git", cwd=folder.parent)
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
    agent.ingest("new_topic", title="Decision", summary="The ferry app uses PostgreSQL.", scope=SCOPE)
    agent.ingest("new_topic", title="Elsewhere", summary="The other app uses SQLite.", scope="/project/other")
    context = added(run("session-start", {"source": "startup"}), "SessionStart")
    assert "The ferry app uses PostgreSQL." in context
    assert "SQLite" not in context


def test_a_prompt_gets_what_answers_it_and_nothing_else(run: Run, agent: MemState):
    agent.ingest("new_topic", title="Database", summary="The ferry app uses PostgreSQL.", scope=SCOPE)
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
        said("user", "<bash-input>cat .env</bash-input>"),
        said("user", "<bash-stdout>The password is swordfish.</bash-stdout><bash-stderr></bash-stderr>"),
        said("user", "<command-name>/clear</command-name><command-args></command-args>"),
        said("user", "<local-command-stdout>Set the model.</local-command-stdout>"),
        said("assistant", "API Error: 529", isApiErrorMessage=True),
        said("user", "An earlier conversation is continued.", isCompactSummary=True),
    )
    sent = {"hook_event_name": "PreCompact", "trigger": "auto", "transcript_path": str(file)}
    assert shown(run("compact", sent)) == NOTHING
    transcript(tmp_path, said("user", "The tests run in parallel."))
    ended = {"hook_event_name": "SessionEnd", "reason": "exit", "transcript_path": str(file)}
    assert shown(run("session-end", ended)) == NOTHING
    first, second = ExtractionJob.objects.order_by("created_at")
    assert (first.scope, second.scope) == (SCOPE, SCOPE)
    while any(worker_turn().values()):
        pass
    texts = " ".join(f"{topic.title} {topic.summary}" for topic in Topic.objects.all())
    values = json.dumps(list(Topic.objects.values_list("fields__revisions__value", flat=True)))
    kept = f"{texts} {values}"
    assert "deploy on Fridays" in kept
    assert "vault" in kept
    assert "in parallel" in kept
    others = ("password", "clear", "the model", "API Error", "earlier conversation")
    for left_out in ("Be brief", "Secret output", "birds", "A title", *others):
        assert left_out not in kept
    assert shown(run("session-end", ended)) == NOTHING
    assert ExtractionJob.objects.count() == 2


def test_a_long_conversation_is_sent_in_parts(run: Run, tmp_path: Path):
    words = "The harbour master writes a note about each ferry. " * 20
    file = transcript(tmp_path, *(said("user", f"Number {number}: {words}") for number in range(120)))
    sent = {"hook_event_name": "SessionEnd", "transcript_path": str(file)}
    for _ in range(2):
        assert shown(run("session-end", sent)) == NOTHING
    jobs = ExtractionJob.objects.order_by("created_at")
    assert len(jobs) == 3
    sources = Revision.objects.filter(field__topic__in=[job.source_id for job in jobs])
    assert sum(source.value.count("Number ") for source in sources) == 120


def test_a_project_is_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MEMSTATE_PROJECT_SCOPE", raising=False)
    folders = [tmp_path / place / "api" for place in ("work", "other")]
    for folder in folders:
        folder.mkdir(parents=True)
        git("init", "--quiet", cwd=folder)
        git("commit", "--quiet", "--allow-empty", "--message", "x", cwd=folder)
    git("worktree", "add", "--quiet", str(tmp_path / "task"), cwd=folders[0])
    (folders[0] / "deep").mkdir()
    one, two = (project_scope({"cwd": str(folder)}) for folder in folders)
    assert one != two
    assert re.fullmatch(r"/project/api-[0-9a-f]{6}", one)
    assert project_scope({"cwd": str(tmp_path / "task")}) == one
    assert project_scope({"cwd": str(folders[0] / "deep")}) == one
    for address in ("https://mara:x@example.org/mara/ferry-app.git", "ssh://git@example.org/mara/ferry-app/"):
        git("config", "remote.origin.url", address, cwd=folders[0])
        assert project_scope({"cwd": str(folders[0])}) == SCOPE
    (tmp_path / "no repository").mkdir()
    assert re.fullmatch(r"/project/no-repository-\w{6}", project_scope({"cwd": str(tmp_path / "no repository")}))
    monkeypatch.setenv("MEMSTATE_PROJECT_SCOPE", "/mine")
    assert project_scope({"cwd": str(folders[0])}) == "/mine"


@pytest.mark.parametrize("hook", ["session-start", "prompt", "compact", "session-end"])
def test_a_store_that_is_down_or_refuses_shows_nothing_and_is_logged(run: Run, tmp_path: Path, hook: str):
    file = transcript(tmp_path, said("user", "We deploy on Fridays."))
    sent = {"prompt": "When do we deploy?", "transcript_path": str(file)}
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert shown(run(hook, sent, MEMSTATE_URL=f"http://127.0.0.1:{port}")) == NOTHING
    assert shown(run(hook, sent, MEMSTATE_API_KEY="ms_made-up")) == NOTHING
    assert shown(run(hook, "{")) == NOTHING
    nowhere = {**sent, "cwd": "/", "transcript_path": "/nowhere"}
    assert shown(run(hook, nowhere, MEMSTATE_URL="no address", MEMSTATE_HOOK_SECONDS="x")) == NOTHING
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
    file = transcript(tmp_path, said("user", "We deploy on Fridays."))
    with silent_server() as address:
        for hook in ("prompt", "session-end"):
            sent = {"prompt": "When?", "transcript_path": str(file)}
            assert shown(run(hook, sent, MEMSTATE_URL=address, MEMSTATE_HOOK_SECONDS="1")) == NOTHING
    assert [line.split()[2] for line in logged(tmp_path).splitlines()][:2] == ["prompt:", "session-end:"]


def test_a_key_of_this_machine_is_used_if_no_other_is_given(
    run: Run, agent: MemState, tmp_path: Path, live_server: Any
):
    agent.ingest("new_topic", title="Decision", summary="The ferry app uses PostgreSQL.", scope=SCOPE)
    (tmp_path / "credentials.json").write_text(json.dumps({"agent_key": secret_of("agent")}))
    here = {"MEMSTATE_URL": "", "MEMSTATE_API_KEY": "", "MEMSTATE_DATA_DIR": str(tmp_path)}
    port = live_server.url.rpartition(":")[2]
    done = run("session-start", {}, **here, MEMSTATE_API_PORT=port)
    assert "PostgreSQL" in added(done, "SessionStart")
    # The key of this machine is not sent elsewhere.
    assert shown(run("session-start", {}, **{**here, "MEMSTATE_URL": live_server.url})) == NOTHING


def test_an_unknown_hook_is_a_mistake_of_the_person_who_wrote_it(run: Run):
    done = run("sessionstart", {})
    assert (done.stdout, done.returncode) == ("", 2)
    assert "session-start" in done.stderr


def test_the_plugin_runs_the_hooks(run: Run, agent: MemState, tmp_path: Path, project: Path):
    agent.ingest("new_topic", title="Decision", summary="The ferry app uses PostgreSQL.", scope=SCOPE)
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
