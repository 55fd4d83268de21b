"""Agents whose key opens nothing, and agents whose server is not the one they began with."""

import contextlib
import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from memory.access.keys import key_create, key_revoke
from memstate_site.folder import CHECKOUT
from tests.cast import Cast, secret_of
from tests.mcp.conftest import FEW, Connect
from tests.waits import eventually
from tests.web_server import PATIENCE, WebServer, database_address, environment

# The name under which the connections of one process are counted.
OWN = "an-agents-own-process"
FLEETING = "ms_a-key-that-will-not-last-for-long"


def at_the_terminal(*arguments: str, **more: str) -> subprocess.Popen[str]:
    """Start the command with nothing to read."""
    return subprocess.Popen(
        [sys.executable, CHECKOUT / "manage.py", "mcp", *arguments],
        env=environment(**more),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_command_without_a_key_that_opens_says_so_and_ends(people: Cast, tmp_path: Path):
    file, missing = tmp_path / "key", tmp_path / "no-key"
    file.write_text(f"{secret_of('agent')}\n", encoding="utf-8")
    # Side by side, because each takes seconds to start.
    begun = [
        (at_the_terminal(), 2, "key-missing"),
        (at_the_terminal(MEMSTATE_API_KEY="ms_wrong"), 2, "key-unknown"),
        (at_the_terminal("--key-file", str(missing)), 2, "invalid-file"),
        (at_the_terminal("--key-file", str(file)), 0, ""),
    ]
    for process, status, code in begun:
        out, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (status, ""), said
        assert (f"[{code}]" in said) == (status != 0)
        assert "Traceback" not in said


@pytest.mark.parametrize("way", [("http", "auto"), ("http", "legacy")], ids="-".join, indirect=True)
def test_a_wrong_key_opens_no_session(people: Cast, connect: Connect):
    for secret in ("ms_wrong", ""):
        with pytest.raises(BaseException) as said, connect(secret):  # noqa: PT011 - groups within groups
            pass
        assert "Server returned an error response" in "".join(_all(said.value))


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_a_key_that_is_revoked_meanwhile_opens_nothing_more(people: Cast, connect: Connect, way: tuple[str, str]):
    now = timezone.now()
    key = key_create(name="short", role="agent", secret=FLEETING, expires_at=now + dt.timedelta(days=1))
    with contextlib.suppress(ExceptionGroup), connect(FLEETING, fresh=True) as link:
        assert link.call("query", q="tea")["topics"] == []
        key_revoke(key.prefix, actor="test", reason="", now=now)
        if way[0] == "stdio":
            assert link.refused("new_topic", title="Cup") == "key-revoked"
        else:
            with pytest.raises(Exception, match="Server returned an error response"):
                link.call_tool("new_topic", {"title": "Cup"})
    assert people.reader.get("/v1/topics").ok()["items"] == []


@pytest.mark.parametrize("way", [("http", "legacy")], ids="-".join, indirect=True)
def test_a_session_goes_on_with_another_process(people: Cast, connect: Connect, web: WebServer):
    with connect(secret_of("agent")) as link:
        topic_id = link.call("new_topic", title="Cup")["topic_id"]
        web.restart()
        # What is lost is a connection, as with any server; the session is not.
        eventually(lambda: _answered(link, topic_id))
        assert link.call("topic", topic_id=topic_id)["title"] == "Cup"


@pytest.mark.parametrize("way", [("stdio", "auto")], ids="-".join, indirect=True)
def test_a_process_of_its_own_keeps_to_the_minute_and_holds_no_connection(people: Cast, connect: Connect):
    # The web server beside it keeps connections of its own, so that those of the process have a name.
    mark = "&" if "?" in database_address() else "?"
    address = f"{database_address()}{mark}application_name={OWN}"
    with psycopg.connect(address):
        assert _connections() == 1
    with connect(secret_of("agent"), fresh=True, MEMSTATE_REQUESTS_PER_MINUTE="2", DATABASE_URL=address) as link:
        eventually(lambda: _connections() == 0)
        results = [link.call_tool("query", {"q": "tea"}) for _time in range(5)]
        eventually(lambda: _connections() == 0)
    refused = [result.meta["code"] for result in results if result.is_error]
    assert set(refused) == {"too-many-requests"}


def _answered(link: Any, topic_id: str) -> bool:
    try:
        return bool(link.call("topic", topic_id=topic_id))
    except Exception:
        return False


def _all(problem: BaseException) -> list[str]:
    if isinstance(problem, BaseExceptionGroup):
        return [text for each in problem.exceptions for text in _all(each)]
    return [str(problem)]


def _connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s", [OWN]
        )
        (number,) = cursor.fetchone()
    return int(number)
