"""An agent whose key may forget: it releases what lies in its scope, little a day, and nothing that is protected."""

import threading
from typing import Any

import pytest

from memory.access.keys import key_create
from memory.models import AuditEvent, ForgetRun, Topic
from tests.cast import Caller, Cast, Clock, store_rows
from tests.forgetting.shop import policy_put

SECRET = "ms_the-secret-of-one-that-may-forget"
SCOPE = "/user/alice"


@pytest.fixture
def forgetter(operator: Caller) -> Caller:
    """An agent of SCOPE whose key may forget."""
    key_create(name="forgetter", role="agent", secret=SECRET, scope=SCOPE, may_forget=True)
    return Caller(operator.send, SECRET)


def fill(operator: Caller, count: int, **members: Any) -> list[str]:
    """Store ``count`` notes below SCOPE and return their ids."""
    item = {"placement": "new_topic", "topic_kind": "note", "scope": f"{SCOPE}/notes", **members}
    items = [{**item, "title": f"Note {number}"} for number in range(count)]
    return [str(each["topic_id"]) for each in operator.post("/v1/ingest/batch", items).ok()["results"]]


def released() -> set[str]:
    return {str(topic) for topic in Topic.objects.filter(released_at__isnull=False).values_list("pk", flat=True)}


def test_it_lists_then_releases_and_an_operator_can_undo_it(operator: Caller, forgetter: Caller) -> None:
    fill(operator, 39)
    (gone,) = fill(operator, 1, categories=["logs"])
    outside = operator.remember("Elsewhere", scope="/user/bob", categories=["logs"])

    listed = forgetter.post("/v1/forget", {"verb": "release", "filter": {"categories": ["logs"]}}).ok()
    assert [match["topic_id"] for match in listed["matches"]] == [gone]
    assert not released()
    done = forgetter.post("/v1/forget", {"verb": "release", "token": listed["token"], "reason": "asked to"}).ok()

    assert released() == {gone}
    assert outside not in released()
    run = ForgetRun.objects.get(pk=done["run_id"])
    assert run.actor == "key:forgetter"
    assert AuditEvent.objects.get(topic_id=gone, action="released").actor == "key:forgetter"
    assert operator.post(f"/v1/runs/{run.pk}/undo", {}).ok()["conflicts"] == []
    assert not released()


def test_it_may_do_nothing_else_than_an_agent(operator: Caller, forgetter: Caller) -> None:
    (topic,) = fill(operator, 1)
    outside = operator.remember("Elsewhere", scope="/user/bob")
    before = store_rows()
    for method, path, body, status, code in [
        ("POST", "/v1/forget", {"verb": "purge", "filter": {"ids": [topic]}}, 403, "role-too-low"),
        ("POST", "/v1/forget", {"verb": "release", "scope": "/user", "query": "x"}, 404, "not-found"),
        ("POST", "/v1/forget", {"filter": {"scope": "/"}}, 404, "not-found"),
        ("DELETE", f"/v1/topics/{topic}", None, 403, "role-too-low"),
        ("POST", f"/v1/topics/{topic}/archive", {}, 403, "role-too-low"),
        ("POST", "/v1/runs", {}, 403, "role-too-low"),
        ("PUT", f"/v1/policies{SCOPE}", {"values": {"agent_forget_share": 1}, "reason": "x"}, 403, "role-too-low"),
    ]:
        answer = forgetter.request(method, path, body)
        assert (answer.status, answer.code) == (status, code), path
    assert store_rows() == before
    assert forgetter.post("/v1/forget", {"filter": {"ids": [outside]}}).ok()["token"] is None


@pytest.mark.parametrize("role", ["agent", "reader"])
def test_all_other_keys_are_refused_as_before(cast: Cast, role: str) -> None:
    before = store_rows()
    for body in ({"verb": "release", "query": "tea"}, {"older_than": "1d"}, {"token": "x"}):
        refused = getattr(cast, role).post("/v1/forget", body)
        assert refused.code == "role-too-low"
        # Only for a release is an operator not the only one.
        assert "may forget" in refused.detail
    purge = getattr(cast, role).post("/v1/forget", {"verb": "purge", "query": "tea"})
    assert (purge.code, "may forget" in purge.detail) == ("role-too-low", False)
    assert store_rows() == before


def test_above_its_share_of_a_day_nothing_happens(operator: Caller, forgetter: Caller, clock: Clock) -> None:
    clock.stop()
    ids = fill(operator, 60)
    key_create(name="second", role="agent", secret=SECRET + "2", scope=f"{SCOPE}/notes", may_forget=True)
    second = Caller(operator.send, SECRET + "2")

    def forget(caller: Caller, topics: list[str]) -> Any:
        return caller.post("/v1/forget", {"verb": "release", "filter": {"ids": topics}, "dry_run": False})

    refused = forget(forgetter, ids[:4])
    assert (refused.status, refused.code) == (403, "agent-forget-limit")
    assert all(part in refused.detail for part in ("5%", "3 of 60", "has 4"))
    assert not released()
    forget(forgetter, ids[:1]).ok()
    forget(second, ids[1:2]).ok()
    # An operator is not counted, and not limited.
    forget(operator, ids[58:]).ok()
    assert forget(forgetter, ids[2:4]).code == "agent-forget-limit"
    assert released() == {*ids[:2], *ids[58:]}
    clock.forward(hours=25)
    forget(forgetter, ids[2:4]).ok()
    assert forget(forgetter, ids[4:5]).code == "agent-forget-limit"


def test_the_share_is_a_value_of_the_policy_also_of_a_scope_below(operator: Caller, forgetter: Caller) -> None:
    ids = fill(operator, 20)
    policy_put(operator, SCOPE, agent_forget_share=0.5)
    policy_put(operator, f"{SCOPE}/notes", agent_forget_share=0.1)
    body = {"filter": {"ids": ids[:3]}, "dry_run": False}
    assert forgetter.post("/v1/forget", body).code == "agent-forget-limit"
    policy_put(operator, f"{SCOPE}/notes", agent_forget_share=0.15)
    forgetter.post("/v1/forget", body).ok()
    policy_put(operator, SCOPE, agent_forget_share=0)
    assert forgetter.post("/v1/forget", {"filter": {"ids": ids[3:4]}, "dry_run": False}).code == "agent-forget-limit"


def test_of_fewer_than_twenty_topics_none_may_go(operator: Caller, forgetter: Caller) -> None:
    ids = fill(operator, 19)
    body = {"filter": {"ids": ids[:1]}, "dry_run": False}
    assert forgetter.post("/v1/forget", body).code == "agent-forget-limit"
    fill(operator, 1)
    forgetter.post("/v1/forget", body).ok()


def test_an_undone_release_is_not_counted(operator: Caller, forgetter: Caller) -> None:
    ids = fill(operator, 20)
    done = forgetter.post("/v1/forget", {"filter": {"ids": ids[:1]}, "dry_run": False}).ok()
    assert forgetter.post("/v1/forget", {"filter": {"ids": ids[1:2]}, "dry_run": False}).code == "agent-forget-limit"
    operator.post(f"/v1/runs/{done['run_id']}/undo", {}).ok()
    forgetter.post("/v1/forget", {"filter": {"ids": ids[1:2]}, "dry_run": False}).ok()


def test_what_is_protected_is_left_out_and_pins_between_list_and_token_hold(
    operator: Caller, forgetter: Caller
) -> None:
    ids = fill(operator, 100)
    pinned, pinned_by_itself, free = ids[:3]
    (identity,) = fill(operator, 1, topic_kind="identity")
    resting = operator.remember("At rest", scope=f"{SCOPE}/resting")
    exempt = operator.remember("Exempt", scope=f"{SCOPE}/exempt")
    operator.post("/v1/pause", {"scope": f"{SCOPE}/resting", "reason": "a drill"}).ok()
    policy_put(operator, SCOPE, exempt_scopes=[f"{SCOPE}/exempt"])
    operator.post(f"/v1/topics/{pinned}/pin", {}).ok()
    forgetter.post(f"/v1/topics/{pinned_by_itself}/pin", {}).ok()

    wanted = {"filter": {"ids": [pinned, pinned_by_itself, free, identity, resting, exempt]}}
    listed = forgetter.post("/v1/forget", wanted).ok()
    assert {match["topic_id"] for match in listed["matches"]} == {pinned_by_itself, free}
    assert listed["question"]
    assert {match["topic_id"] for match in operator.post("/v1/forget", wanted).ok()["matches"]} >= {pinned, identity}

    operator.post(f"/v1/topics/{free}/pin", {}).ok()
    assert forgetter.post("/v1/forget", {"token": listed["token"]}).code == "changed-meanwhile"
    assert not released()
    nothing = forgetter.post("/v1/forget", {"filter": {"ids": [pinned, identity]}, "dry_run": False}).ok()
    assert (nothing["count"], nothing["executed"], nothing["token"]) == (0, False, None)


@pytest.mark.meaning
def test_what_a_topic_says_beside_stays_with_its_age(operator: Caller, forgetter: Caller) -> None:
    fill(operator, 40)
    text = "Nils lives in Bergen and works as a glazier."
    old = {"created_at": "2024-05-01T00:00:00Z", "scope": SCOPE}
    operator.remember(text, values={"fact": text}, **old)
    done = forgetter.post("/v1/forget", {"query": "Nils lives in Bergen", "dry_run": False}).ok()
    assert done["matches"][0]["keeps"] == "Nils works as a glazier."
    (rest,) = Topic.objects.filter(fields__revisions__value__contains="glazier", released_at__isnull=True)
    assert rest.created_at.year == 2024


def test_the_flat_shape_is_a_filter(operator: Caller) -> None:
    old, new = (
        operator.remember(f"{age} log", categories=["logs"], scope="/a", created_at=moment)
        for age, moment in (("Old", "2024-05-01T00:00:00Z"), ("New", None))
    )
    flat = {"scope": "/a", "older_than": "30d", "categories": ["logs"]}
    listed = operator.post("/v1/forget", flat).ok()
    assert [match["topic_id"] for match in listed["matches"]] == [old]
    assert listed["verb"] == "release"
    both = operator.post("/v1/forget", {**flat, "filter": {"kinds": ["note"]}})
    assert (both.status, both.code) == (400, "contradictory-request")
    assert operator.post("/v1/forget", {**flat, "token": listed["token"]}).code == "contradictory-request"
    assert operator.post("/v1/forget", {"categories": []}).code == "missing-member"
    assert operator.post("/v1/forget", {"scope": "/a"}).code == "missing-member"
    operator.post("/v1/forget", {"token": listed["token"]}).ok()
    assert released() == {old}
    assert new not in released()


@pytest.mark.django_db(transaction=True)
def test_concurrent_agent_releases_do_not_exceed_the_share(http_cast: Cast) -> None:
    operator = http_cast.operator
    key_create(name="forgetter", role="agent", secret=SECRET, scope=SCOPE, may_forget=True)
    ids = fill(operator, 100)
    bodies = [{"filter": {"ids": ids[start : start + 5]}, "dry_run": False} for start in range(0, 40, 5)]
    codes: list[int] = []

    def forget(body: dict[str, Any]) -> None:
        codes.append(Caller(operator.send, SECRET).post("/v1/forget", body).status)

    threads = [threading.Thread(target=forget, args=[body]) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(codes) == [200] + [403] * 7
    assert len(released()) == 5
