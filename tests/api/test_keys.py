"""Keys: which role may do what, what is said to those that open nothing, and how often one may ask."""

import datetime as dt
import re
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.access.keys import key_create
from memory.api.app import api
from memory.duplicates.detect import duplicates_find
from memory.models import ApiKey, Conversation, StudyJob
from tests.agents.chat.shop import Talk
from tests.agents.study.shop import study_ready
from tests.cast import Caller, Cast, Clock, cast_make, in_process, secret_of, store_rows
from tests.client.proxy import port_unused

ROLES = ("reader", "agent", "operator")

# The least role for each route, and a request that succeeds with it.
ROUTES: list[tuple[str, str, str, Any]] = [
    ("reader", "POST", "/v1/query", {"q": "tea"}),
    ("reader", "GET", "/v1/topics", None),
    ("reader", "GET", "/v1/topics/{id}", None),
    ("reader", "GET", "/v1/topics/{id}/fields/kind/history", None),
    ("reader", "GET", "/v1/topics/{id}/why", None),
    ("reader", "GET", "/v1/regret", None),
    ("reader", "GET", "/v1/runs", None),
    ("reader", "GET", "/v1/pause", None),
    ("reader", "GET", "/v1/runs/{planned}", None),
    ("reader", "GET", "/v1/runs/{planned}/actions", None),
    ("reader", "GET", "/v1/stats", None),
    ("reader", "GET", "/v1/scopes", None),
    ("reader", "GET", "/v1/policies/", None),
    ("reader", "GET", "/v1/policies/versions", None),
    ("reader", "GET", "/v1/policies/user/alice", None),
    ("reader", "GET", "/v1/policies/user/alice/versions", None),
    ("reader", "POST", "/v1/extract", {"content": "Tea is green."}),
    ("reader", "GET", "/v1/extract/{extraction}", None),
    ("agent", "POST", "/v1/extract", {"content": "Tea is green.", "store": True}),
    ("agent", "POST", "/v1/extract/{extraction}/cancel", {}),
    ("reader", "GET", "/v1/studies", None),
    ("reader", "GET", "/v1/studies/{study}", None),
    ("agent", "POST", "/v1/studies/{study}/cancel", {}),
    ("agent", "POST", "/v1/studies/{stopped}/resume", {}),
    ("agent", "POST", "/v1/ingest", {"placement": "new_topic", "title": "New"}),
    ("agent", "POST", "/v1/ingest/batch", [{"placement": "new_topic", "title": "New"}]),
    ("agent", "PATCH", "/v1/topics/{id}", {"title": "Other"}),
    ("agent", "POST", "/v1/topics/{id}/pin", {}),
    ("agent", "POST", "/v1/topics/{id}/unpin", {}),
    ("reader", "GET", "/v1/duplicates", None),
    ("reader", "GET", "/v1/duplicates/{pair}", None),
    ("reader", "GET", "/v1/receipts", None),
    ("reader", "GET", "/v1/receipts/{receipt}", None),
    ("agent", "POST", "/v1/supersede", {"old_query": "Tea is green.", "new_text": "Tea is black."}),
    ("operator", "POST", "/v1/forget", {"verb": "release", "query": "Tea", "dry_run": False}),
    ("operator", "POST", "/v1/forget", {"older_than": "1d"}),
    ("operator", "DELETE", "/v1/topics/{id}", None),
    ("reader", "POST", "/v1/chat", {"messages": [{"role": "user", "content": "Hello"}]}),
    ("agent", "POST", "/v1/chat", {"messages": [{"role": "user", "content": "Hello"}], "intent_override": "ingest"}),
    ("reader", "GET", "/v1/chat", None),
    ("reader", "GET", "/v1/chat/{conversation}", None),
    ("operator", "POST", "/v1/chat/{conversation}/undo", {}),
    ("operator", "POST", "/v1/duplicates/{pair}/merge", {}),
    ("operator", "POST", "/v1/duplicates/{pair}/keep", {}),
    ("operator", "POST", "/v1/duplicates/{pair}/supersede", {}),
    ("operator", "POST", "/v1/duplicates/{merged}/undo", {}),
    ("operator", "PATCH", "/v1/topics/{id}", {"salience": 2}),
    (
        "operator",
        "POST",
        "/v1/ingest",
        {"placement": "new_topic", "title": "Old", "created_at": "2020-01-01T00:00:00Z"},
    ),
    ("operator", "POST", "/v1/topics/{id}/archive", {}),
    ("operator", "POST", "/v1/topics/{archived}/restore", {}),
    ("operator", "POST", "/v1/runs", {}),
    ("operator", "POST", "/v1/runs", {"dry_run": False}),
    ("operator", "POST", "/v1/runs/{planned}/apply", {}),
    ("operator", "POST", "/v1/runs/{held}/approve", {}),
    ("operator", "POST", "/v1/runs/{held}/refuse", {}),
    ("operator", "POST", "/v1/runs/{done}/undo", {}),
    ("operator", "POST", "/v1/events", {"event": "memory_pressure"}),
    ("operator", "POST", "/v1/pause", {"scope": "/faded", "reason": "a drill"}),
    ("operator", "POST", "/v1/pause/lift", {"scope": "/resting"}),
    ("operator", "POST", "/v1/policies/preview", {}),
    ("operator", "PUT", "/v1/policies/", {"values": {"half_life_days": 20}, "reason": "too much noise"}),
    ("operator", "POST", "/v1/policies/backtest", {"start": "2020-01-01T00:00:00Z", "end": "2020-02-01T00:00:00Z"}),
    ("operator", "POST", "/v1/policies/rollback", {"to": 0, "reason": "was better"}),
    ("operator", "PUT", "/v1/policies/user/alice", {"values": {"half_life_days": 20}, "reason": "too much noise"}),
    ("operator", "POST", "/v1/policies/user/alice/rollback", {"to": 0, "reason": "was better"}),
]
# For each route, the lowest role that may use it, and the role below, which may not.
ROUTES_AT_THE_LIMIT = [
    (*route, role) for route in ROUTES for role in ROLES[max(0, ROLES.index(route[0]) - 1) : ROLES.index(route[0]) + 1]
]


def test_the_description_of_each_route_names_the_least_role():
    described = api.get_openapi_schema(path_prefix="/v1/")["paths"]
    # Only scopes have slashes; the longest of several patterns is that of the route.
    patterns = {path: re.sub(r"\{\w+\}", "[^/]+", path.replace("{scope}", ".+")) for path in described}
    least: dict[tuple[str, str], str] = {}
    for role, method, asked, _body in ROUTES:
        fitting = [path for path in described if re.fullmatch(patterns[path], asked.partition("?")[0])]
        path = asked if asked in fitting else max(fitting, key=len)
        least[path, method] = min(role, least.get((path, method), role), key=ROLES.index)
    for path, operations in described.items():
        for method, operation in operations.items():
            description = " ".join(operation["description"].split())
            said = re.search(r"(Reader|Agent|Operator) keys(?=[.;]| for the whole)", description)
            if path != "/v1/client.py":
                assert (said[1].lower() if said else "reader") == least[path, method.upper()], (method, path)


@pytest.fixture(scope="module")
def cast(lasting: None) -> Cast:
    return cast_make(in_process)


@pytest.fixture(scope="module")
def topics(cast: Cast) -> dict[str, str]:
    topic_id, archived = (cast.agent.remember(title, values={"kind": "green"}) for title in ("Tea", "Old tea"))
    cast.operator.post(f"/v1/topics/{archived}/archive").ok()
    text = {"content": "Coffee is black.", "store": True, "scope": "/coffee"}
    extraction = cast.agent.post("/v1/extract?background=1", text).json["job_id"]
    talk = Talk()
    talk.new("Made in a conversation")
    made = {
        "id": topic_id,
        "archived": archived,
        "extraction": extraction,
        "conversation": str(talk.row.pk),
        "study": study_ready(),
        "stopped": study_ready("resume", scope="/stopped"),
        **_pairs(cast),
        **_runs(cast.operator),
    }
    # The keys are as good as new for the tests about their use.
    ApiKey.objects.update(last_used_at=None)
    connection.check_constraints()
    return made


def _pairs(cast: Cast) -> dict[str, str]:
    """Make a pair that waits and one that was merged, and purge something; return their ids and that of the receipt."""
    made = {}
    for name in ("pair", "merged"):
        for _time in range(2):
            cast.agent.remember("Said twice", values={"kind": "green"}, scope=f"/{name}")
        duplicates_find(f"/{name}", now=timezone.now())
        (found,) = cast.operator.get(f"/v1/duplicates?scope=/{name}").ok()["items"]
        made[name] = found["id"]
    cast.operator.post(f"/v1/duplicates/{made['merged']}/merge", {}).ok()
    gone = cast.agent.remember("To be purged", scope="/gone")
    receipt = cast.operator.request("DELETE", f"/v1/topics/{gone}").ok()["receipt_id"]
    return {**made, "receipt": receipt}


def _runs(operator: Caller) -> dict[str, str]:
    """Make a run that was done, one that waits for approval, and one that is only planned; return their ids."""
    values = {"strategy": "static", "prune_after_days": 0, "mode": "review", "topic_count_soft_limit": 0}
    operator.put("/v1/policies/faded", {"values": values, "reason": "for the test"}).ok()
    made = {}
    for name, dry_run in (("done", False), ("held", False), ("planned", True)):
        operator.remember("Faded", salience=0.01, scope="/faded")
        got = operator.post("/v1/runs", {"scope": "/faded", "event": "manual", "dry_run": dry_run}).ok()
        if name == "done":
            operator.post(f"/v1/runs/{got['run_id']}/approve").ok()
        made[name] = got["run_id"]
    operator.remember("At rest", scope="/resting")
    operator.post("/v1/pause", {"scope": "/resting", "reason": "a drill"}).ok()
    return made


@pytest.mark.parametrize(("least", "method", "path", "body", "role"), ROUTES_AT_THE_LIMIT)
def test_a_route_admits_its_lowest_role_and_refuses_the_role_below(
    cast: Cast,
    topics: dict[str, str],
    least: str,
    method: str,
    path: str,
    body: Any,
    role: str,
    request: pytest.FixtureRequest,
):
    if (method, path) == ("POST", "/v1/chat"):
        request.getfixturevalue("model").answers("Hello.")
    if path in ("/v1/studies/{study}", "/v1/chat/{conversation}"):
        # Whoever began it may look at it.
        leader = f"key:{ApiKey.objects.get(name=role).pk}"
        StudyJob.objects.filter(pk=topics["study"]).update(identity=leader)
        Conversation.objects.filter(pk=topics["conversation"]).update(identity=leader)
    caller: Caller = getattr(cast, role)
    before = store_rows()
    answer = caller.request(method, path.format(**topics), **({} if body is None else {"json": body}))
    if ROLES.index(role) >= ROLES.index(least):
        assert answer.status == (202 if path == "/v1/events" else 200), answer.body
    else:
        assert answer.status == 403
        # A route may ask for one role first and, for some members, for a higher one.
        asked = {least, "agent"} if role == "reader" else {least}
        assert answer.code == "role-too-low"
        assert any(f" {each} " in answer.detail for each in asked)
        assert store_rows() == before


def test_every_route_is_in_the_table_and_asks_for_a_key(cast: Cast, topics: dict[str, str]):
    from memory.api.app import api

    placed = "{(archived|planned|held|done|extraction|pair|merged|receipt|conversation|study|stopped)}"
    tabled = {(method, re.sub(placed, "{id}", path)) for _least, method, path, _body in ROUTES}
    served = {
        (
            method.upper(),
            re.sub("{(topic|run|job|pair|receipt|conversation|study)_id}", "{id}", path)
            .replace("{name}", "kind")
            .replace("{scope}", "user/alice"),
        )
        for path, operations in api.get_openapi_schema(path_prefix="/v1/")["paths"].items()
        for method in operations
    }
    assert served - tabled == {("GET", "/v1/client.py")}
    assert tabled <= served
    for _least, method, path, body in ROUTES:
        more = {} if body is None else {"json": body}
        answer = cast.anonymous.request(method, path.format(**topics), **more)
        assert answer.status == 401
        assert answer.code == "key-missing"
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_an_unknown_key_opens_nothing(cast: Cast):
    answer = Caller(cast.agent.send, "ms_made-up").get("/v1/stats")
    assert (answer.status, answer.code) == (401, "key-unknown")


def test_a_revoked_key_opens_nothing(cast: Cast):
    ApiKey.objects.filter(name="agent").update(revoked_at=dt.datetime(2026, 3, 1, 12, 30, tzinfo=dt.UTC))
    before = store_rows()
    answer = cast.agent.post("/v1/ingest", {"placement": "new_topic"})
    assert (answer.status, answer.code) == (401, "key-revoked")
    assert store_rows() == before


def test_a_key_expires_at_its_moment(cast: Cast, clock: Clock):
    end = dt.datetime(2026, 3, 1, 12, 30, tzinfo=dt.UTC)
    ApiKey.objects.filter(name="agent").update(expires_at=end)
    clock.set(end - dt.timedelta(seconds=1))
    cast.agent.get("/v1/stats").ok()
    clock.set(end)
    answer = cast.agent.get("/v1/stats")
    assert (answer.status, answer.code) == (401, "key-expired")


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_a_key_may_come_as_a_bearer_token(anonymous: Caller, scheme: str):
    anonymous.get("/v1/stats", headers={"Authorization": scheme + secret_of("reader")}).ok()


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Basic " + secret_of("reader")},
        {"Authorization": secret_of("reader")},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"X-API-Key": ""},
        {"X-API-Key": "ms_é"},
        {"X-API-Key": secret_of("reader")[:-1]},
        {"X-API-Key": "x" * 10_000},
        {"Authorization": "Bearer ms_made-up"},
    ],
)
def test_anything_else_is_no_key(anonymous: Caller, headers: dict[str, str]):
    answer = anonymous.get("/v1/stats", headers=headers)
    assert answer.status == 401
    assert answer.detail


def test_a_wrong_key_is_not_made_good_by_a_right_token(cast: Cast):
    headers = {"X-API-Key": "ms_made-up", "Authorization": "Bearer " + secret_of("reader")}
    assert cast.anonymous.get("/v1/stats", headers=headers).status == 401


def test_only_a_hash_of_the_key_is_stored(cast: Cast):
    from django.core import serializers

    stored = serializers.serialize("json", ApiKey.objects.all())
    for name in ("agent", "operator", "reader"):
        assert secret_of(name) not in stored
        assert secret_of(name)[9:] not in stored


def test_the_last_use_is_kept_to_the_minute(cast: Cast, clock: Clock):
    def last() -> dt.datetime | None:
        return ApiKey.objects.get(name="agent").last_used_at

    start = clock.set(dt.datetime(2026, 1, 1, 10, 0, tzinfo=dt.UTC))
    assert last() is None
    cast.agent.get("/v1/stats").ok()
    assert last() == start
    clock.forward(seconds=30)
    cast.agent.get("/v1/stats").ok()
    assert last() == start
    clock.forward(seconds=31)
    cast.agent.get("/v1/stats").ok()
    assert last() == clock.now


def test_a_key_has_its_requests_per_minute_and_no_more(cast: Cast, clock: Clock, settings: Any):
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 3
    clock.set(dt.datetime(2026, 1, 1, 10, 0, 42, tzinfo=dt.UTC))
    for _ in range(3):
        cast.agent.get("/v1/stats").ok()
    answer = cast.agent.post("/v1/ingest", {"placement": "new_topic"})
    assert answer.status == 429
    assert answer.code == "too-many-requests"
    assert answer.headers["retry-after"] == "18"
    cast.reader.get("/v1/stats").ok()
    clock.forward(seconds=18)
    cast.agent.get("/v1/stats").ok()


def test_without_the_shared_cache_requests_are_answered_and_limited(cast: Cast, clock: Clock, settings: Any):
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 2
    with port_unused() as port:
        away = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"redis://127.0.0.1:{port}/0"}
        settings.CACHES = {**settings.CACHES, "requests": away}
        clock.set(dt.datetime(2026, 1, 1, 10, 0, tzinfo=dt.UTC))
        assert [cast.agent.get("/v1/stats").status for _ in range(3)] == [200, 200, 429]


def test_requests_that_are_refused_count_too(cast: Cast, clock: Clock, settings: Any):
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 2
    clock.set(dt.datetime(2026, 1, 1, 10, 0, tzinfo=dt.UTC))
    assert [cast.agent.post("/v1/ingest", {}).status for _ in range(3)] == [422, 422, 429]


def test_a_key_of_another_scope_is_made_with_its_canonical_path(cast: Cast):
    key = key_create(name="loose", role="agent", secret="ms_a-loose-path-in-the-tests-of-keys", scope="user//carol/")
    assert key.scope == "/user/carol"
    carol = Caller(cast.agent.send, "ms_a-loose-path-in-the-tests-of-keys")
    assert carol.topic(carol.remember("Hers"))["scope"] == "/user/carol"
