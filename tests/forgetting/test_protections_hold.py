"""What an operator or a rule has protected, no agent makes forgettable."""

from typing import Any

import pytest

from memory.models import AuditEvent, Vitality
from tests.cast import Caller, Cast


def rules_set(operator: Caller, *rules: dict[str, Any]) -> None:
    operator.put("/v1/policies/", {"rules": list(rules), "reason": "a test"}).ok()


def is_pinned(topic_id: str) -> bool:
    return Vitality.objects.get(pk=topic_id).pinned


def test_an_agent_ends_its_own_pin_and_no_other(cast: Cast) -> None:
    own = cast.agent.remember("Own", pinned=True)
    later = cast.agent.remember("Later")
    cast.agent.post(f"/v1/topics/{later}/pin").ok()
    extended = cast.agent.remember("Extended")
    cast.agent.ingest("extend_topic", topic_id=extended, pinned=True)
    for topic_id in (own, later, extended):
        cast.agent.post(f"/v1/topics/{topic_id}/unpin").ok()
        assert not is_pinned(topic_id)
    by_operator = cast.operator.remember("Of an operator", pinned=True)
    after = cast.agent.remember("Pinned afterwards")
    cast.operator.post(f"/v1/topics/{after}/pin", {"reason": "never forget"}).ok()
    taken_over = cast.agent.remember("Taken over", pinned=True)
    cast.operator.post(f"/v1/topics/{taken_over}/pin", {"reason": "never forget"}).ok()
    for topic_id in (by_operator, after, taken_over):
        answer = cast.agent.post(f"/v1/topics/{topic_id}/unpin")
        assert (answer.status, answer.code) == (403, "role-too-low")
        assert is_pinned(topic_id)
        cast.operator.post(f"/v1/topics/{topic_id}/unpin").ok()
        assert not is_pinned(topic_id)


def test_an_agent_does_not_get_hold_of_a_pin_by_pinning_once_more(cast: Cast) -> None:
    topic_id = cast.operator.remember("Of an operator", pinned=True)
    cast.agent.post(f"/v1/topics/{topic_id}/pin").ok()
    cast.agent.ingest("extend_topic", topic_id=topic_id, pinned=True)
    assert cast.agent.post(f"/v1/topics/{topic_id}/unpin").status == 403
    assert is_pinned(topic_id)


def test_the_pin_of_a_rule_is_an_operators(cast: Cast) -> None:
    condition = {"field": "text", "op": "matches", "value": "allergy"}
    rules_set(cast.operator, {"name": "keep", "events": ["ingest_complete"], "condition": condition, "action": "pin"})
    topic_id = cast.agent.remember("allergy to penicillin")
    assert is_pinned(topic_id)
    assert cast.agent.post(f"/v1/topics/{topic_id}/unpin").status == 403
    assert is_pinned(topic_id)


def test_the_pin_of_a_rule_or_an_operator_on_ingest_takes_the_place_of_an_agents(cast: Cast) -> None:
    by_rule, by_operator, own = (cast.agent.remember(title, pinned=True) for title in ("a", "b", "c"))
    condition = {"field": "text", "op": "matches", "value": "allergy"}
    rules_set(cast.operator, {"name": "keep", "events": ["ingest_complete"], "condition": condition, "action": "pin"})
    cast.agent.ingest("extend_topic", topic_id=by_rule, fields=[{"name": "note", "value": "allergy to penicillin"}])
    cast.operator.ingest("extend_topic", topic_id=by_operator, pinned=True)
    new = cast.agent.remember("allergy to nuts", pinned=True)
    for topic_id in (by_rule, by_operator, new):
        assert cast.agent.post(f"/v1/topics/{topic_id}/unpin").status == 403
        assert is_pinned(topic_id)
    cast.agent.post(f"/v1/topics/{own}/unpin").ok()
    # What is the rule's already is not pinned again.
    events = AuditEvent.objects.filter(topic_id=by_rule, action="pinned").count()
    cast.agent.ingest("extend_topic", topic_id=by_rule)
    assert AuditEvent.objects.filter(topic_id=by_rule, action="pinned").count() == events == 1


def test_the_pin_of_a_rule_in_a_run_takes_the_place_of_an_agents(cast: Cast) -> None:
    topic_id = cast.agent.remember("allergy to penicillin", pinned=True)
    condition = {"field": "text", "op": "matches", "value": "allergy"}
    rules_set(cast.operator, {"name": "keep", "events": ["manual"], "condition": condition, "action": "pin"})
    asked = {"scope": "/", "event": "manual", "dry_run": False}
    run = cast.operator.post("/v1/runs", asked).ok()
    assert run["counts"]["pinned"] == 1
    assert cast.agent.post(f"/v1/topics/{topic_id}/unpin").status == 403
    # Once is enough, and undo gives it back to the agent.
    assert cast.operator.post("/v1/runs", asked).ok()["counts"].get("pinned", 0) == 0
    assert cast.operator.post(f"/v1/runs/{run['run_id']}/undo", {}).ok()["restored"] == 1
    assert is_pinned(topic_id)
    cast.agent.post(f"/v1/topics/{topic_id}/unpin").ok()


def test_a_pin_that_undo_brings_back_is_whose_it_was(cast: Cast) -> None:
    by_operator = cast.operator.remember("Of an operator", pinned=True)
    by_agent = cast.agent.remember("By an agent", pinned=True)
    for topic_id in (by_operator, by_agent):
        cast.operator.post(f"/v1/topics/{topic_id}/unpin").ok()
        run_id = cast.operator.get(f"/v1/topics/{topic_id}/why").ok()["history"][0]["run_id"]
        cast.operator.post(f"/v1/runs/{run_id}/undo", {}).ok()
        assert is_pinned(topic_id)
    assert cast.agent.post(f"/v1/topics/{by_operator}/unpin").status == 403
    cast.agent.post(f"/v1/topics/{by_agent}/unpin").ok()


@pytest.mark.parametrize("kind", ["note", "", "Identity"])
def test_an_agent_takes_no_topic_out_of_an_exempt_kind(cast: Cast, kind: str) -> None:
    cast.operator.put("/v1/policies/", {"values": {"exempt_kinds": ["identity", "law"]}, "reason": "a test"}).ok()
    topic_id = cast.agent.remember("Who she is", topic_kind="identity")
    answer = cast.agent.patch(f"/v1/topics/{topic_id}", {"topic_kind": kind, "title": "x"})
    assert (answer.status, answer.code) == (403, "role-too-low")
    cast.agent.ingest("extend_topic", topic_id=topic_id, topic_kind=kind)
    got = cast.agent.topic(topic_id)
    assert (got["topic_kind"], got["title"]) == ("identity", "Who she is")
    # From one exempt kind to another, and other edits.
    cast.agent.patch(f"/v1/topics/{topic_id}", {"title": "Who she is now"}).ok()
    cast.agent.patch(f"/v1/topics/{topic_id}", {"topic_kind": "law"}).ok()
    cast.operator.patch(f"/v1/topics/{topic_id}", {"topic_kind": kind}).ok()
    assert cast.agent.topic(topic_id)["topic_kind"] == kind
