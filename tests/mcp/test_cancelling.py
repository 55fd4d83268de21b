"""A call that its client gives up runs to its end: it writes once at most, no one waits for it, and nothing stays open.

How long a call may take is the database's to say: a statement that takes too long is ended.
"""

import contextlib
import uuid
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from mcp.shared.exceptions import MCPError

from memory.models import Topic
from tests.cast import Cast, secret_of, store_rows
from tests.mcp.conftest import FEW, Connect
from tests.waiting import waiting
from tests.waits import eventually
from tests.web_server import WebServer


@contextlib.contextmanager
def held(topic_id: str) -> Iterator[None]:
    """Hold a topic, so that whoever writes it waits."""
    with transaction.atomic():
        Topic.objects.select_for_update().get(pk=uuid.UUID(topic_id))
        yield


def in_transactions() -> int:
    """Return how many sessions, besides this one, are inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        )
        (number,) = cursor.fetchone()
    return int(number)


def values(people: Cast, topic_id: str) -> list[str]:
    items = people.reader.get(f"/v1/topics/{topic_id}/fields/kind/history").ok()["items"]
    return [each["value"] for each in items]


def test_a_call_that_is_given_up_writes_once_and_holds_nothing(people: Cast, connect: Connect, web: WebServer):
    said = len(web.log.read_text())
    topic_id = people.agent.remember("Tea", values={"kind": "green"})
    with connect(secret_of("agent")) as link:
        with held(topic_id):
            change = {"topic_id": topic_id, "field": "kind", "value": "black"}
            given_up = link.later("call_tool", "version_field", change)
            eventually(lambda: waiting() == 1)
            given_up.cancel()
            # Others are answered meanwhile.
            assert link.call("history", topic_id=topic_id, field="kind")["revisions"][0]["value"] == "green"
        eventually(lambda: in_transactions() == 0)
        assert values(people, topic_id) == ["black", "green"]
        link.call("version_field", topic_id=topic_id, field="kind", value="white")
        assert values(people, topic_id) == ["white", "black", "green"]
    # Whoever reads the log has nothing to see to.
    assert web.log.read_text()[said:] == ""


@pytest.mark.parametrize("way", FEW, ids="-".join, indirect=True)
def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(people: Cast, connect: Connect):
    topic_id = people.agent.remember("Tea", values={"kind": "green"})
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(connect(secret_of("agent"), fresh=True))
        change = {"topic_id": topic_id, "field": "kind", "value": "black"}
        with held(topic_id):
            link.later("call_tool", "version_field", change)
            eventually(lambda: waiting() == 1)
            with contextlib.suppress(Exception):
                stack.close()
        eventually(lambda: waiting() == in_transactions() == 0)
    assert len(values(people, topic_id)) <= 2


@pytest.mark.parametrize("way", [("stdio", "legacy"), ("stdio", "auto")], ids="-".join, indirect=True)
def test_a_statement_that_takes_too_long_is_ended_and_writes_nothing(people: Cast, connect: Connect):
    topic_id = people.agent.remember("Tea", values={"kind": "green"})
    with connect(secret_of("agent"), fresh=True, MEMSTATE_STATEMENT_TIMEOUT_MS="500") as link:
        before = store_rows()
        change = {"topic_id": topic_id, "field": "kind", "value": "black"}
        with held(topic_id), pytest.raises(MCPError) as failed:
            link.call_tool("version_field", change)
        assert failed.value.error.data == {"code": "database-slow"}
        assert store_rows() == before
        link.call("version_field", **change)
    assert values(people, topic_id) == ["black", "green"]
