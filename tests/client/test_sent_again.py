"""What is sent again, when, and with which effect: broken connections, waits that the server asks for, time-outs."""

import datetime as dt
import email.utils
import pickle
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory.access.principal import Principal
from memory.ingest.idempotency import idempotency_claim
from memory.models import ApiKey
from memstate import (
    STILL_IN_PROGRESS,
    Conflict,
    ConnectionBroken,
    MemStateError,
    NotAllowed,
    NotFound,
    Refused,
    ServerFault,
    TimedOut,
    TooManyRequests,
    Unavailable,
)
from memstate import client as client_module
from tests.cast import Clock, secret_of
from tests.client.conftest import Maker
from tests.client.proxy import CUT, CUT_IN_THE_MIDST, LOST, PASS, SILENT, Proxy, answer, port_unused

STATS = {"scope": "/", "topics": 0}
FULL_BACKOFF = [0.5, 1.0, 2.0, 4.0]


# --- With the whole application behind -------------------------------------------------------------------------------


def test_what_was_stored_before_the_connection_broke_is_stored_once(agent: Any, proxy: Proxy, waits: list[float]):
    proxy.does(CUT, CUT_IN_THE_MIDST, LOST, PASS)
    stored = agent.ingest("new_topic", title="Tea", scope="/once")
    assert len(proxy.asked) == 4
    assert len(set(proxy.keys)) == 1
    assert len({each.body for each in proxy.asked}) == 1
    assert waits == FULL_BACKOFF[:3]
    assert [row["topic_id"] for row in agent.topics_iter(scope="/once")] == [stored["topic_id"]]

    proxy.asked.clear()
    proxy.does(CUT, PASS)
    items = [{"placement": "new_topic", "title": "Tea", "scope": "/once"}, {"placement": "nowhere"}]
    batch = agent.ingest_batch(items)
    assert [result["status"] for result in batch["results"]] == [200, 422]
    assert len(proxy.asked) == 2
    assert agent.stats(scope="/once")["topics"] == 2


def test_a_key_of_ones_own_tells_calls_apart_over_restarts(agent: Any, proxy: Proxy):
    first = agent.ingest("new_topic", title="Tea", idempotency_key="mara-1")
    assert agent.ingest("new_topic", title="Tea", idempotency_key="mara-1") == first
    with pytest.raises(Refused, match="another body"):
        agent.ingest("new_topic", title="Coffee", idempotency_key="mara-1")
    assert agent.ingest("new_topic", title="Tea") != first
    assert proxy.keys[:3] == ["mara-1"] * 3


def test_other_writes_are_not_sent_again(agent: Any, operator: Any, proxy: Proxy, waits: list[float]):
    topic = agent.ingest("new_topic", title="Tea")["topic_id"]
    proxy.asked.clear()
    proxy.does(CUT)
    with pytest.raises(ConnectionBroken, match=r"^POST /v1/topics/[^ ]+/pin: the connection broke") as broken:
        agent.topic_pin(topic)
    assert (broken.value.status, broken.value.transient) == (None, True)
    proxy.does(answer(503, body="Busy."))
    with pytest.raises(Unavailable):
        operator.request("POST", "/v1/runs", json={})
    assert (len(proxy.asked), waits) == (2, [])
    assert agent.topic(topic)["pinned"]


def test_what_http_lets_be_done_twice_is_sent_again(agent: Any, operator: Any, proxy: Proxy):
    proxy.does(CUT)
    policy = {"values": {"half_life_days": 7}, "reason": "for the test"}
    assert operator.request("PUT", "/v1/policies/twice", json=policy)["version"] == 1
    topic = agent.ingest("new_topic", title="Tea")["topic_id"]
    proxy.does(CUT)
    # It was done the first time, of which there is a receipt.
    with pytest.raises(NotFound):
        operator.request("delete", f"/v1/topics/{topic}")
    receipts = operator.request("GET", "/v1/receipts")["items"]
    assert [receipt["topic_ids"] for receipt in receipts] == [[topic]]


def test_a_request_of_ones_own_is_sent_again_where_that_is_allowed(operator: Any, proxy: Proxy):
    proxy.does(CUT)
    draft = {"values": {"half_life_days": 1}}
    assert operator.request("POST", "/v1/policies/preview", json=draft, repeatable=True)["affected"] == []
    proxy.does(CUT)
    item = {"placement": "new_topic", "title": "Tea", "scope": "/own"}
    operator.request("POST", "/v1/ingest", json=item, idempotency_key="own-1")
    assert operator.stats(scope="/own")["topics"] == 1
    proxy.does(CUT)
    with pytest.raises(ConnectionBroken):
        operator.request("GET", "/v1/stats", repeatable=False)


def test_a_key_that_has_used_up_its_minute_waits_for_the_next(
    agent: Any, settings: Any, clock: Clock, while_waiting: Callable[[Callable[[], object]], list[float]]
):
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 1
    clock.set(dt.datetime(2026, 3, 1, 12, 0, 20, tzinfo=dt.UTC))
    waited = while_waiting(lambda: clock.forward(seconds=40))
    agent.stats()
    assert agent.stats()["topics"] == 0
    assert waited == [40.25]
    with pytest.raises(TooManyRequests, match="429: This key has made 1 requests") as refused:
        agent.topic_pin("01900000-0000-7000-8000-00000000dead")
    assert refused.value.retry_after == 60


def test_a_request_whose_twin_is_still_at_work_is_waited_for(
    agent: Any, monkeypatch: pytest.MonkeyPatch, while_waiting: Callable[[Callable[[], object]], list[float]]
):
    key = ApiKey.objects.get(name="agent")
    twin = Principal(f"key:{key.pk}", "key:agent", "agent", "/")
    monkeypatch.setattr("memory.ingest.request.idempotency_claim", _claim_impatiently)
    transaction.set_autocommit(False)
    try:
        idempotency_claim("twin", "", principal=twin, now=timezone.now())
        # Its transaction holds the key until the client waits.
        waited = while_waiting(connection.connection.rollback)
        assert agent.ingest("new_topic", title="Tea", idempotency_key="twin")["topic_id"]
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert waited == [0.5]


def _claim_impatiently(*args: Any, **more: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '50ms'")
    return idempotency_claim(*args, **more)


@pytest.fixture
def while_waiting(monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> Callable[[Callable[[], object]], list[float]]:
    """Let something happen whenever a client waits; the seconds it would have waited are returned."""

    def let(happen: Callable[[], object]) -> list[float]:
        async def sleep(seconds: float) -> None:
            meanwhile(seconds)

        def meanwhile(seconds: float) -> None:
            waits.append(seconds)
            happen()

        monkeypatch.setattr(client_module.time, "sleep", meanwhile)
        monkeypatch.setattr(client_module.asyncio, "sleep", sleep)
        return waits

    return let


# --- With nothing behind ---------------------------------------------------------------------------------------------


@pytest.fixture
def client(alone: Proxy, make_client: Maker, waits: list[float]) -> Any:
    return make_client(alone.url, "ms_any", timeout=5.0)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_reading_is_tried_again_for_longer_each_time(client: Any, alone: Proxy, waits: list[float], status: int):
    alone.does(*[answer(status, body="Later.")] * 4, answer(200, body=STATS))
    assert client.stats() == STATS
    assert waits == FULL_BACKOFF
    alone.does(*[answer(status, body="Later.")] * 5)
    with pytest.raises((TooManyRequests, Unavailable), match=rf"^{status}: Later\.$"):
        client.query("tea")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, NotAllowed),
        (403, NotAllowed),
        (404, NotFound),
        (405, MemStateError),
        (409, Conflict),
        (413, Refused),
        (422, Refused),
        (500, ServerFault),
        (302, MemStateError),
    ],
)
def test_what_will_not_pass_is_not_tried_again(
    client: Any, alone: Proxy, waits: list[float], status: int, kind: type[MemStateError]
):
    alone.does(answer(status, {"Location": "http://127.0.0.1:9/"}, "An answer."))
    with pytest.raises(MemStateError, match=r"An answer\.") as got:
        client.stats()
    assert (type(got.value), got.value.status, got.value.transient) == (kind, status, False)
    assert (len(alone.asked), waits) == (1, [])


def test_a_twin_at_work_is_known_by_its_type_and_not_by_words(client: Any, alone: Proxy, waits: list[float]):
    problem = {"type": STILL_IN_PROGRESS, "title": "Conflict", "status": 409, "detail": "Hay otra en curso."}
    alone.does(answer(409, body=problem), answer(200, body={"topic_id": "1"}))
    assert client.ingest("new_topic", title="Tea") == {"topic_id": "1"}
    assert waits == [0.5]
    alone.does(answer(409, body="A merge is still in progress."))
    with pytest.raises(Conflict) as refused:
        client.ingest("new_topic", title="Tea")
    assert (refused.value.type, refused.value.transient, waits) == ("about:blank", False, [0.5])


def test_waits_are_as_long_as_the_server_says_and_never_shorter(client: Any, alone: Proxy, waits: list[float]):
    in_ten = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=10), usegmt=True)
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    for header, expected in [
        ("7", 7.25),
        (in_ten, pytest.approx(9.8, abs=1.5)),
        (past, 0.5),
        ("soon", 0.5),
        ("9" * 400, 0.5),
    ]:
        alone.does(answer(429, {"Retry-After": header}, "Later."), answer(200, body=STATS))
        client.stats()
        assert waits.pop() == expected, header
    alone.does(answer(503, {"Retry-After": "61"}, "Much later."))
    with pytest.raises(Unavailable) as too_long:
        client.stats()
    assert (too_long.value.retry_after, waits) == (61.0, [])


def test_a_silent_server_is_waited_for_as_long_as_was_said(
    client: Any, alone: Proxy, waits: list[float], make_client: Maker
):
    impatient = client.with_timeout(0.5)
    alone.does(SILENT, answer(200, body={"topic_id": "1"}))
    assert impatient.ingest("new_topic", title="Tea") == {"topic_id": "1"}
    assert len(set(alone.keys)) == 1
    assert waits == [0.5]
    alone.does(SILENT)
    with pytest.raises(TimedOut, match="longer than the timeout"):
        impatient.topic_pin("1")
    # Whoever wants no second attempt gets none.
    alone.does(SILENT)
    with pytest.raises(TimedOut):
        make_client(alone.url, "ms_any", timeout=0.5, retries=0).stats()


def test_an_unreachable_address_raises_connection_broken(make_client: Maker, waits: list[float]):
    with port_unused() as port:
        client = make_client(f"http://127.0.0.1:{port}", "ms_any", retries=2)
        with pytest.raises(ConnectionBroken, match="nothing was sent"):
            client.ingest("new_topic", title="Tea")
    assert waits == FULL_BACKOFF[:2]
    with pytest.raises(ConnectionBroken, match="Request URL"):
        make_client("127.0.0.1:8765", "ms_any").stats()
    assert len(waits) == 2

    def crowded(_request: httpx2.Request) -> httpx2.Response:
        raise httpx2.PoolTimeout("")

    with pytest.raises(ConnectionBroken, match="nothing was sent") as none_free:
        make_client(api_key="ms_any", retries=0, transport=httpx2.MockTransport(crowded)).stats()
    assert not isinstance(none_free.value, TimedOut)


def test_replies_of_others_are_not_taken_for_memstates(client: Any, alone: Proxy):
    alone.does(answer(200, {"Content-Type": "text/html"}, b"<html>Welcome to the hotel"))
    with pytest.raises(MemStateError, match="not JSON; is the base_url the address of MemState"):
        client.stats()
    alone.does(answer(403, {"Content-Type": "text/html"}, b"<html>No \xff"))
    with pytest.raises(NotAllowed, match="403 Forbidden"):
        client.stats()
    alone.does(answer(301, {"Location": "https://example.org"}, b""))
    with pytest.raises(MemStateError, match="redirects"):
        client.stats()
    assert all(each.headers["x-api-key"] == "ms_any" for each in alone.asked)


# --- What is wrong before anything is sent ---------------------------------------------------------------------------


def test_a_client_needs_a_key_and_keeps_it_to_itself(make_client: Maker, monkeypatch: pytest.MonkeyPatch, alone: Proxy):
    monkeypatch.delenv("MEMSTATE_API_KEY", raising=False)
    with pytest.raises(ValueError, match="set MEMSTATE_API_KEY"):
        make_client(alone.url)
    for wrong in ("ms_a\nb", "ms_ä", "Bearer ms_a"):
        with pytest.raises(ValueError, match="not allowed in a key") as refused:
            make_client(alone.url, wrong)
        assert "ms_" not in str(refused.value)
    monkeypatch.setenv("MEMSTATE_API_KEY", "ms_of-the-environment")
    client = make_client(alone.url)
    alone.does(answer(200, body=STATS))
    client.stats()
    assert alone.asked[0].headers["x-api-key"] == "ms_of-the-environment"
    assert "ms_" not in repr(getattr(client, "client", client))
    behind = make_client("https://mara:sesame@example.org/memory", "ms_a")
    assert repr(getattr(behind, "client", behind)).endswith("MemState at https://example.org/memory>")


def test_values_that_cannot_be_meant_are_refused_here(client: Any, alone: Proxy):
    with pytest.raises(ValueError, match="has no offset"):
        client.query("tea", as_of=dt.datetime(2026, 3, 1))  # noqa: DTZ001
    with pytest.raises(TypeError, match="set cannot be converted"):
        client.ingest("new_topic", categories={"a"})
    with pytest.raises(ValueError, match="JSON"):
        client.ingest("new_topic", salience=float("nan"))
    with pytest.raises(TypeError, match="Unknown argument 'topk'; possible are stages, explain, top_k"):
        client.query("tea", topk=3)
    for elsewhere in ("https://example.org/v1/stats", "example.org", ""):
        with pytest.raises(ValueError, match="begin with a slash"):
            client.request("GET", elsewhere)
    with pytest.raises(ValueError, match="at least 1"):
        list(client.ingest_all([{"placement": "new_topic"}], size=0))
    assert alone.asked == []


def test_values_of_the_kinds_that_the_types_name_are_sent(client: Any, alone: Proxy):
    alone.does(answer(200, body={"topic_id": "1"}))
    field = types.MappingProxyType({"name": "city", "value": "Lisbon"})
    client.ingest("new_topic", title="Tea", fields=deque([field]), categories=deque(["a"]))
    assert alone.asked[0].json["fields"] == [dict(field)]
    assert alone.asked[0].json["categories"] == ["a"]


def test_a_path_with_two_slashes_is_no_other_server(client: Any, alone: Proxy):
    alone.does(answer(200, body=STATS))
    client.request("GET", "//example.org/v1/stats")
    assert [each.path for each in alone.asked] == ["/v1/stats"]


def test_what_a_request_is_given_is_sent_as_it_is(client: Any, alone: Proxy):
    alone.does(*[answer(200, body={"items": []})] * 2)
    since = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    client.request("GET", "/v1/regret", params={"since": since, "scope": None, "limit": 2, "held": True})
    assert alone.asked[0].path == "/v1/regret?since=2026-03-01T00%3A00%3A00%2B00%3A00&limit=2&held=true"
    assert alone.asked[0].body == b""
    client.request("POST", "/v1/policies/preview", json={"scope": None, "at": (since,)}, cursor="there")
    assert alone.asked[1].json == {"scope": None, "at": [since.isoformat()], "cursor": "there"}


def test_an_error_can_be_handed_to_another_process(client: Any, alone: Proxy):
    alone.does(*[answer(429, {"Retry-After": "61"}, "Later.")] * 5)
    with pytest.raises(TooManyRequests) as refused:
        client.stats()
    there = pickle.loads(pickle.dumps(refused.value))
    assert (str(there), there.retry_after, there.members["status"]) == ("429: Later.", 61.0, 429)


def test_the_address_may_have_a_path(alone: Proxy, make_client: Maker):
    alone.does(answer(200, body=STATS))
    make_client(f"{alone.url}/memory/", secret_of("agent")).stats(scope="/user/ü x")
    assert alone.asked[0].path == "/memory/v1/stats?scope=%2Fuser%2F%C3%BC+x"
