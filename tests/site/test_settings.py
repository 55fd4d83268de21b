"""What every answer of the site carries, and what processes make of the settings."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from memstate_site.child import Child, Patience, how_it_ended
from memstate_site.env import SettingError
from memstate_site.folder import CHECKOUT
from memstate_site.listening import listening_socket, shown_address


def fresh_process(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process with this environment besides its own."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def settings_with(*names: str, **environment: str) -> dict[str, Any]:
    """The settings of a fresh process with this environment."""
    program = (
        "import json; from memstate_site import settings as s;"
        f"print(json.dumps({{name: getattr(s, name) for name in {names!r}}}, default=str))"
    )
    values: dict[str, Any] = json.loads(fresh_process(program, **environment).stdout)
    return values


def test_debugging_is_off_unless_it_is_asked_for() -> None:
    assert settings_with("DEBUG")["DEBUG"] is False
    assert settings_with("DEBUG", MEMSTATE_DEBUG="yes")["DEBUG"] is True


def test_only_the_web_server_has_a_pool_and_short_statements() -> None:
    web = settings_with("DATABASES", MEMSTATE_PROCESS="web", MEMSTATE_WEB_THREADS="8")["DATABASES"]["default"]
    assert web["OPTIONS"]["pool"]["max_size"] == 10
    assert "statement_timeout=30000" in web["OPTIONS"]["options"]
    # The job cluster forks, and a pool does not survive that.
    default = {"MEMSTATE_PROCESS": "worker", "MEMSTATE_STATEMENT_TIMEOUT_MS": ""}
    worker = settings_with("DATABASES", **default)["DATABASES"]["default"]
    assert "pool" not in worker["OPTIONS"]
    assert "statement_timeout=600000" in worker["OPTIONS"]["options"]


def test_a_shared_cache_counts_requests_and_nothing_else() -> None:
    plain = settings_with("CACHES")["CACHES"]
    assert plain["requests"] == plain["default"]
    given = settings_with("CACHES", MEMSTATE_CACHE_URL="redis://cache/0")["CACHES"]
    assert "redis" in given["requests"]["BACKEND"]
    assert given["default"] == plain["default"]


def test_a_job_is_never_handed_out_while_it_still_runs() -> None:
    assert settings.Q_CLUSTER["timeout"] < settings.Q_CLUSTER["retry"]
    assert settings.Q_CLUSTER["max_attempts"] > 0


def test_a_batch_gets_through_to_the_api() -> None:
    assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE >= settings.MEMSTATE_MAX_BATCH_BYTES


@pytest.mark.django_db
def test_pages_allow_scripts_from_our_own_address_only() -> None:
    policy = Client().get("/admin/login/")["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_who_guesses_passwords_is_locked_out(settings: Any) -> None:
    # Slow hashing is what makes guessing slow; here it would only make the test slow.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    User.objects.create_superuser("admin", password="the right one")
    client = Client()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post("/sign-in/", {"username": "admin", "password": "wrong"})
    answer = client.post("/sign-in/", {"username": "admin", "password": "the right one"})
    assert answer.status_code == 429
    # Someone else at the same address still gets in.
    User.objects.create_superuser("other", password="another one")
    assert client.post("/sign-in/", {"username": "other", "password": "another one"}).status_code == 302


def test_log_lines_are_json_when_a_program_reads_them() -> None:
    program = (
        "import django; django.setup(); import logging, structlog;"
        "logging.getLogger('somewhere').warning('plain %s', 'line');"
        "structlog.get_logger('elsewhere').error('rich line', topic=7)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "memstate_site.settings", "MEMSTATE_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    plain, rich = [json.loads(line) for line in result.stderr.splitlines()]
    assert (plain["event"], plain["level"], plain["logger"]) == ("plain line", "warning", "somewhere")
    assert (rich["event"], rich["topic"]) == ("rich line", 7)


# --- The parts of the supervisor ---


def test_failures_in_a_row_are_met_with_growing_patience() -> None:
    patience = Patience()
    assert patience.due
    assert [patience.failed(1) for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert not patience.due
    assert patience.failed(3600) == 0.5, "what ran for an hour has proven itself"


def test_how_a_process_ended_is_said_in_words() -> None:
    assert how_it_ended(3) == "ended with status 3"
    assert how_it_ended(-9) == "was killed by SIGKILL"


def test_output_of_a_child_has_its_prefix_and_its_process_group_ends_with_it() -> None:
    lines: list[str] = []
    script = "sleep 60 & echo $!; echo two; exit 4"
    child = Child("The child", "kid", ["/bin/sh", "-c", script], dict(os.environ), lines.append)
    child.start()
    assert child.process is not None
    child.process.wait(60)
    assert child.ended() == 4
    assert child.ended() is None, "it is reported once"
    assert [line.split(" | ")[0].strip() for line in lines] == ["kid", "kid"]
    assert lines[1].endswith("| two")
    orphan = int(lines[0].split("| ")[1])
    for _ in range(100):
        state = Path(f"/proc/{orphan}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            break
        time.sleep(0.02)
    else:
        os.kill(orphan, signal.SIGKILL)
        raise AssertionError("a process of the group was left behind")


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(SettingError, match=r"192\.0\.2\.1, which is not an address of this machine"):
        listening_socket("192.0.2.1", 8765)


def test_a_name_that_means_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="not an address of this machine"):
        listening_socket("no.such.host.invalid", 8765)


def test_a_port_that_is_freed_in_time_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(SettingError, match="is in use by"):
            listening_socket("127.0.0.1", port)
    with listening_socket("127.0.0.1", port, patience=2) as second:
        assert second.getsockname()[1] == port


def test_an_address_for_everybody_is_shown_as_one_that_a_browser_can_open() -> None:
    assert shown_address("0.0.0.0", 80) == "http://127.0.0.1:80"
    assert shown_address("::", 80) == "http://[::1]:80"
    assert shown_address("fe80::1", 80) == "http://[fe80::1]:80"
    assert shown_address("memory.example", 8765) == "http://memory.example:8765"


def settings_read(**environment: str) -> tuple[list[str], str]:
    """What a fresh process with this environment finds unknown, and what it writes to stderr."""
    program = "import json; from memstate_site import settings as s; print(json.dumps(s.MEMSTATE_UNKNOWN_VARIABLES))"
    result = fresh_process(program, **environment)
    return json.loads(result.stdout), result.stderr


def test_an_unknown_variable_is_named_with_the_nearest_and_stops_nothing() -> None:
    (sentence,), said = settings_read(MEMSTATE_HALFLIFE_DAYS="3", MEMSTATE_TEST_ANYTHING="1")
    assert {"MEMSTATE_HALFLIFE_DAYS", "MEMSTATE_HALF_LIFE_DAYS"} <= set(sentence.replace(".", "").split())
    assert said.strip() == sentence
    # What `up` has said, its children do not say again.
    again, said = settings_read(MEMSTATE_HALFLIFE_DAYS="3", MEMSTATE_RUN="1")
    assert (again, said) == ([sentence], "")


def test_every_variable_that_is_read_or_documented_is_known() -> None:
    sources = [
        *(CHECKOUT / "memstate_site").rglob("*.py"),
        *(CHECKOUT / "memory").rglob("*.py"),
        CHECKOUT / "manage.py",
    ]
    read = {
        name
        for path in sources
        for name in re.findall(r"\b(?:env\w+|environ(?:\.\w+)?)[(\[]\s*\"(MEMSTATE_\w+)\"", path.read_text())
    }
    pages = "".join(page.read_text() for page in (CHECKOUT / "docs").glob("*.md"))
    # Benchmarks have variables of their own.
    theirs = {"MEMSTATE_COMMAND_TOPICS", "MEMSTATE_LOCOMO"}
    documented = set(re.findall(r"`(MEMSTATE_[A-Z0-9_]*[A-Z0-9])[`=]", pages)) - theirs
    assert len(read) > 50
    assert len(documented) > 20
    assert settings_read(**dict.fromkeys(read | documented, "")) == ([], "")
