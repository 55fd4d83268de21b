"""What a client gives up ends on the server too: the statement, the transaction, and the thread's waiting."""

import contextlib
import uuid
from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from memory.models import Topic
from tests.cast import Cast, secret_of, store_rows
from tests.mcp.conftest import FEW, Connect, WebServer
from tests.site.conftest import eventually
from tests.waiting import waiting

_NAMED = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'memstate-mcp%' AND datname = current_database()"
)


def named() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_NAMED)
        (number,) = cursor.fetchone()
    return int(number)


@contextlib.contextmanager
def held(topic_id: str) -> Iterator[None]:
    """Hold a topic, so that whoever writes it waits."""
    with transaction.atomic():
        Topic.objects.select_for_update().get(pk=uuid.UUID(topic_id))
        yield


def test_a_call_that_is_given_up_ends_and_writes_nothing(people: Cast, connect: Connect, web: WebServer):
    said = len(web.log.read_text())
    topic_id = people.agent.remember("Tea", values={"kind": "green"})
    with connect(secret_of("agent")) as link:
        before = store_rows()
        with held(topic_id):
            # More than once, so that of two web processes each is told of a call of the other.
            for _time in range(4):
                change = {"topic_id": topic_id, "field": "kind", "value": "black"}
                given_up = link.later("call_tool", "version_field", change)
                eventually(lambda: waiting() == 1)
                given_up.cancel()
                eventually(lambda: waiting() == 0, seconds=9)
        eventually(lambda: named() == 0)
        assert store_rows() == before
        # Nobody waits for anything: the next one is answered, and nothing of the others comes later.
        assert link.call("history", topic_id=topic_id, field="kind")["revisions"][0]["value"] == "green"
        link.call("version_field", topic_id=topic_id, field="kind", value="white")
        assert len(link.call("history", topic_id=topic_id, field="kind")["revisions"]) == 2
    # Whoever reads the log has nothing to see to.
    assert web.log.read_text()[said:] == ""


# Not in the older protocol over HTTP, where a connection that is lost says nothing.
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
            eventually(lambda: waiting() == 0, seconds=9)
    assert len(people.reader.get(f"/v1/topics/{topic_id}/fields/kind/history").ok()["items"]) == 1
