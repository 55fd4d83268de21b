"""Many become one: near topics that are due become one topic that links to them."""

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.embedding.instant import InstantEmbedder
from memory.forgetting import apply
from memory.forgetting.compaction import LEAST_GROUP, groups_make
from memory.ingest.bulk import vector_binary
from memory.ingest.embed_pending import vectors_fill
from memory.models import ForgetAction, ForgetRun, Link, Topic
from tests.cast import Caller, Clock, worker_turn
from tests.forgetting.shop import JOURNALS, NOON, actions, dump, policy_put, run, rungs, topics_make
from tests.transfer.shop import emptied, exported, imported

RADAR = [
    f"Rain radar at {hour}:{minute:02}: {what}"
    for hour, minute, what in (
        (7, 15, "dry"),
        (8, 2, "first drops in the west"),
        (9, 30, "showers over the harbor"),
        (10, 45, "heavy rain"),
        (11, 10, "heavy rain, hail in the north"),
        (12, 0, "rain"),
        (13, 20, "light rain"),
        (14, 5, "clearing from the west"),
        (15, 50, "dry"),
        (17, 25, "a thunderstorm in the east"),
        (18, 44, "dry"),
        (21, 30, "dry, fog"),
    )
]
OTHERS = ["Ben is allergic to penicillin", "Mara lives in Porto", "The bakery opens at seven"]


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def due(operator: Caller, number: int, *, title: str = "Rain radar", **members: Any) -> list[str]:
    """Return topics with the same text, hence the same vector, that are due to be archived."""
    return topics_make(operator, number, days=400, title=title, **members)


def option(operator: Caller, scope: str = "/", /, **members: Any) -> None:
    policy_put(operator, scope, compact=True, topic_count_soft_limit=0, **members)


def compacting(condition: Any, **members: Any) -> dict[str, Any]:
    return {"name": "near ones", "condition": condition, "action": "compact", **members}


def made(caller: Caller, run_id: str) -> list[str]:
    """Return the topics that a run has written."""
    return [each["topic_id"] for each in actions(caller, run_id) if each["action"] == "compacted"]


def sources(topic_id: str) -> set[str]:
    return {str(each) for each in Link.objects.filter(source=topic_id).values_list("target_id", flat=True)}


@pytest.mark.meaning
def test_near_topics_fade_into_one_that_recall_finds_and_that_leads_to_them(
    agent: Caller, operator: Caller, clock: Clock
) -> None:
    option(operator)
    radar = [agent.remember(title, topic_kind="observation") for title in RADAR]
    others = [agent.remember(title, topic_kind="observation") for title in OTHERS]
    clock.forward(days=200)
    planned = run(operator)
    assert planned["counts"] == {**dict.fromkeys(planned["counts"], 0), "archived": 15, "compacted": 1}
    done = operator.post(f"/v1/runs/{planned['run_id']}/apply").ok()
    assert (done["status"], done["applied"], done["counts"]) == ("done", 15, planned["counts"])
    (compacted,) = made(operator, done["run_id"])
    assert set(rungs(operator, *radar, *others)) == {"archived"}
    assert f"compacted:{compacted}" in done["results"]
    assert set(done["results"]) - {f"compacted:{compacted}"} == set(planned["results"])

    worker_turn()
    assert agent.found("was there rain on the radar?")[0] == compacted
    got = agent.topic(compacted)
    assert got["topic_kind"] == "observation"
    assert got["title"] in {f"{title} (and 11 more)" for title in RADAR}
    assert "thunderstorm" in got["summary"]
    assert {field["name"]: field["current"]["value"] for field in got["fields"]} == {
        "compacted_topics": "12",
        "period": "2026-03-01",
    }
    assert {link["topic_id"] for link in got["neighbors"] if link["kind"] == "compacted_from"} == set(radar)
    assert agent.topic(radar[0])["title"] == RADAR[0]


def test_undo_is_identity_and_hides_the_compacted_topic(agent: Caller, operator: Caller) -> None:
    option(operator)
    radar = due(operator, 4)
    before = dump(*JOURNALS)
    done = run(operator, dry_run=False)
    (compacted,) = made(operator, done["run_id"])
    assert operator.get(f"/v1/runs/{done['run_id']}").ok()["counts"]["compacted"] == 1
    undone = operator.post(f"/v1/runs/{done['run_id']}/undo").ok()
    assert (undone["restored"], undone["conflicts"]) == (4, [])
    after = dump(*JOURNALS, "memory_accesslog")
    for table in ("memory_topic", "memory_vitality", "memory_topicvector", "memory_topicdocument", "memory_field"):
        assert not [row for row in before[table] if row not in after[table]]
    # Nothing is lost: it can still be looked at.
    assert operator.topic(compacted)["released_at"]
    assert operator.post(f"/v1/runs/{done['run_id']}/undo").ok() == undone
    assert dump(*JOURNALS, "memory_accesslog") == after
    assert set(agent.found("rain radar")) == set(radar)


@pytest.mark.parametrize("later", ["written to", "pinned"])
def test_a_compacted_topic_that_was_changed_since_is_a_conflict(
    agent: Caller, operator: Caller, clock: Clock, later: str
) -> None:
    option(operator)
    radar = due(operator, 3)
    done = run(operator, dry_run=False)
    (compacted,) = made(operator, done["run_id"])
    clock.forward(minutes=1)
    if later == "written to":
        agent.ingest("extend_topic", topic_id=compacted, fields=[{"name": "note", "value": "mine"}])
    else:
        agent.post(f"/v1/topics/{compacted}/pin").ok()
    undone = operator.post(f"/v1/runs/{done['run_id']}/undo").ok()
    assert [conflict["topic_id"] for conflict in undone["conflicts"]] == [compacted]
    assert undone["restored"] == 3
    assert operator.topic(compacted)["released_at"] is None
    assert set(rungs(operator, *radar)) == {"active"}


def test_without_the_option_nothing_is_compacted(operator: Caller) -> None:
    policy_put(operator, topic_count_soft_limit=0)
    due(operator, 5)
    assert "compacted" not in run(operator, dry_run=False)["counts"]
    assert not ForgetAction.objects.filter(action="compacted").exists()


def test_a_rule_compacts_what_is_near_and_leaves_the_others_alone(agent: Caller, operator: Caller) -> None:
    policy_put(operator, rules=[compacting({"field": "kind", "op": "is", "value": "observation"})])
    fresh = [agent.remember("Rain radar", topic_kind="observation") for _each in range(3)]
    lone = [agent.remember("Harbor", topic_kind="observation") for _each in range(2)]
    other = [agent.remember("Rain radar", topic_kind="finding") for _each in range(3)]
    planned = run(operator)
    assert sorted(planned["results"]) == sorted(f"archived:{each}" for each in fresh)
    assert planned["counts"]["compacted"] == 1
    done = operator.post(f"/v1/runs/{planned['run_id']}/apply").ok()
    (compacted,) = made(operator, done["run_id"])
    assert sources(compacted) == set(fresh)
    assert set(rungs(operator, *lone, *other, compacted)) == {"active"}
    assert "near ones" in " ".join(operator.get(f"/v1/topics/{fresh[0]}/why").ok()["sentences"])
    # It is an observation itself, and is not due again.
    again = run(operator, dry_run=False)
    assert (again["planned"], again["results"]) == (0, [])


def test_a_rule_compacts_on_its_event(agent: Caller, operator: Caller) -> None:
    condition = {"field": "kind", "op": "is", "value": "observation"}
    policy_put(operator, topic_count_soft_limit=0, rules=[compacting(condition, events=["ingest_complete"])])
    fresh = [agent.remember("Rain radar", topic_kind="observation") for _each in range(3)]
    worker_turn()
    assert set(rungs(operator, *fresh)) == {"archived"}
    runs = ForgetRun.objects.count()
    agent.remember("Harbor", topic_kind="observation")
    worker_turn()
    assert ForgetRun.objects.count() == runs


def test_scope_and_kind_divide_and_two_are_too_few(operator: Caller) -> None:
    option(operator)
    first = due(operator, 3, scope="/a", topic_kind="finding")
    due(operator, 2, scope="/a", topic_kind="decision")
    due(operator, 2, scope="/b", topic_kind="finding")
    done = run(operator, dry_run=False)
    assert (done["counts"]["archived"], done["counts"]["compacted"]) == (7, 1)
    (compacted,) = made(operator, done["run_id"])
    assert sources(compacted) == set(first)
    assert Topic.objects.get(pk=compacted).scope.path == "/a"


def test_what_is_protected_is_never_compacted(operator: Caller) -> None:
    option(operator, exempt_scopes=["/user"])
    pinned = due(operator, 3, pinned=True)
    exempt = due(operator, 3, topic_kind="identity")
    inside = due(operator, 3, scope="/user/ada")
    assert run(operator, dry_run=False)["planned"] == 0
    everything = [compacting({"field": "age", "op": ">=", "value": "1d"})]
    option(operator, exempt_scopes=["/user"], rules=everything)
    assert run(operator, dry_run=False)["planned"] == 0
    assert set(rungs(operator, *pinned, *exempt, *inside)) == {"active"}


def test_a_ttl_compacts_and_a_rule_without_time_does_not(operator: Caller) -> None:
    ttl = {"all": [{"field": "kind", "op": "is", "value": "note"}, {"field": "age", "op": ">=", "value": "7d"}]}
    at_once = {"field": "kind", "op": "is", "value": "scrap"}
    option(
        operator,
        rules=[
            {"name": "ttl", "condition": ttl, "action": "archive"},
            {"name": "scrap", "condition": at_once, "action": "archive"},
        ],
    )
    topics_make(operator, 3, days=8, title="Rain radar", topic_kind="note")
    topics_make(operator, 3, days=8, title="Rain radar", topic_kind="scrap")
    done = run(operator, dry_run=False)
    assert (done["counts"]["archived"], done["counts"]["compacted"]) == (6, 1)
    (compacted,) = made(operator, done["run_id"])
    assert operator.topic(compacted)["topic_kind"] == "note"
    assert run(operator, dry_run=False)["planned"] == 0


def test_the_depth_is_two_and_never_three(operator: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = InstantEmbedder.embed_passages
    monkeypatch.setattr(InstantEmbedder, "embed_passages", lambda self, texts: plain(self, ["same"] * len(texts)))
    option(operator)

    def compacted_once() -> str:
        due(operator, 3)
        (compacted,) = made(operator, run(operator, dry_run=False)["run_id"])
        list(vectors_fill())
        return compacted

    def compacted_twice() -> str:
        once = [compacted_once() for _each in range(3)]
        clock.forward(days=200)
        (compacted,) = made(operator, run(operator, dry_run=False)["run_id"])
        assert sources(compacted) == set(once)
        got = operator.topic(compacted)
        assert [field["current"]["value"] for field in got["fields"] if field["name"] == "compacted_topics"] == ["9"]
        assert got["title"] == "Rain radar (and 8 more)"
        operator.post(f"/v1/topics/{compacted}/pin").ok()
        list(vectors_fill())
        return compacted

    twice = [compacted_twice() for _each in range(3)]
    for each in twice:
        operator.post(f"/v1/topics/{each}/unpin").ok()
    clock.forward(days=200)
    last = run(operator, dry_run=False)
    assert sorted(last["results"]) == sorted(f"archived:{each}" for each in twice)
    assert "compacted" not in last["counts"]


def test_a_group_that_became_too_small_waits(agent: Caller, operator: Caller) -> None:
    option(operator, mode="review")
    radar = due(operator, 3)
    harbor = due(operator, 4, title="Harbor")
    held = run(operator, dry_run=False)
    assert (held["status"], held["counts"]["archived"], held["counts"]["compacted"]) == ("held", 7, 2)
    for each in (radar[0], harbor[0]):
        agent.post(f"/v1/topics/{each}/pin").ok()
    done = operator.post(f"/v1/runs/{held['run_id']}/approve").ok()
    assert (done["applied"], done["skipped"]) == (3, 4)
    assert (done["counts"]["archived"], done["counts"]["compacted"]) == (3, 1)
    (compacted,) = made(operator, done["run_id"])
    assert sources(compacted) == set(harbor[1:])
    assert set(rungs(operator, *radar, harbor[0])) == {"active"}


def test_a_group_is_never_cut(operator: Caller) -> None:
    option(operator, max_topics_for_forget_scan=4)
    due(operator, 9)
    first = run(operator, dry_run=False)
    # Two groups of four and one alone, which comes first.
    assert (first["planned"], first["left_over"]) == (1, 8)
    second = run(operator, dry_run=False)
    assert (second["planned"], second["left_over"], second["counts"]["compacted"]) == (4, 4, 1)
    assert run(operator, dry_run=False)["planned"] == 4
    option(operator, max_topics_for_forget_scan=2)
    due(operator, 3)
    assert "compacted" not in run(operator, dry_run=False)["counts"]


def test_a_cluster_becomes_several_topics_that_are_not_due_again(operator: Caller) -> None:
    option(operator)
    due(operator, 45)
    done = run(operator, dry_run=False)
    assert (done["counts"]["archived"], done["counts"]["compacted"]) == (45, 3)
    assert sorted(len(sources(each)) for each in made(operator, done["run_id"])) == [5, 20, 20]
    assert run(operator, dry_run=False)["planned"] == 0


def test_it_is_reported_on_both_sides(operator: Caller) -> None:
    option(operator)
    radar = due(operator, 3)
    done = run(operator, dry_run=False)
    (compacted,) = made(operator, done["run_id"])
    source = operator.get(f"/v1/topics/{radar[0]}/why").ok()
    assert source["history"][0]["into"] == compacted
    assert compacted in " ".join(source["sentences"])
    card = operator.get(f"/v1/topics/{compacted}/why").ok()
    first = card["history"][0]
    assert (first["what"], first["run_id"], first["sources"]) == ("compacted", done["run_id"], 3)
    assert any("3 memories" in sentence for sentence in card["sentences"])


def compacts(caller: Caller, topic_id: str) -> bool:
    """Return whether the why-card of a topic says that it may be compacted."""
    card = caller.get(f"/v1/topics/{topic_id}/why").ok()
    assert any("compact" in sentence for sentence in card["sentences"]) is card["next"]["may_compact"]
    return bool(card["next"]["may_compact"])


def test_the_card_says_what_may_be_compacted(operator: Caller) -> None:
    young = operator.remember("Rain radar at noon")
    radar = due(operator, 3)
    policy_put(operator, topic_count_soft_limit=0)
    assert [compacts(operator, topic) for topic in (young, *radar)] == [False] * 4
    option(operator)
    assert [compacts(operator, topic) for topic in (young, *radar)] == [False] + [True] * 3
    assert run(operator)["counts"]["compacted"] == 1
    # What a rule archives at any age is not compacted.
    archive = {"name": "radar", "condition": {"field": "title", "op": "contains", "value": "radar"}}
    option(operator, rules=[{**archive, "action": "archive"}])
    assert [compacts(operator, topic) for topic in radar] == [False] * 3
    policy_put(operator, topic_count_soft_limit=0, rules=[{**archive, "action": "compact"}])
    assert compacts(operator, young)


def test_a_pause_stops_it(operator: Caller, clock: Clock) -> None:
    option(operator)
    due(operator, 3, scope="/user/ada")
    due(operator, 3, scope="/user/ben")
    operator.post("/v1/pause", {"scope": "/user/ada", "reason": "wait"}).ok()
    clock.forward(minutes=1)
    done = run(operator, dry_run=False)
    (compacted,) = made(operator, done["run_id"])
    assert Topic.objects.get(pk=compacted).scope.path == "/user/ben"


def test_small_batches_and_a_second_worker_change_nothing(operator: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    option(operator)
    due(operator, 2, title="Harbor")
    due(operator, 4)
    due(operator, 3, title="Bakery")
    monkeypatch.setattr(apply, "BATCH", 2)
    done = run(operator, dry_run=False)
    assert (done["applied"], done["counts"]["archived"], done["counts"]["compacted"]) == (9, 9, 2)
    assert sorted(len(sources(each)) for each in made(operator, done["run_id"])) == [3, 4]
    undone = operator.post(f"/v1/runs/{done['run_id']}/undo").ok()
    assert (undone["restored"], undone["conflict_count"]) == (9, 0)
    # A step that another worker has overtaken prepares anew.
    plan = run(operator)["run_id"]
    ForgetRun.objects.filter(pk=plan).update(status="applying")
    prepare = apply._prepare

    def overtaken(*asked: Any) -> Any:
        ahead = prepare(*asked)
        monkeypatch.setattr(apply, "_prepare", prepare)
        apply.run_step(uuid.UUID(plan), now=NOON)
        return ahead

    monkeypatch.setattr(apply, "_prepare", overtaken)
    while apply.run_step(uuid.UUID(plan), now=NOON):
        pass
    assert len(made(operator, plan)) == 2


def test_an_export_keeps_what_leads_to_the_sources(operator: Caller, tmp_path: Path, clock: Clock) -> None:
    option(operator)
    radar = due(operator, 3)
    (compacted,) = made(operator, run(operator, dry_run=False)["run_id"])
    clock.forward(minutes=1)
    file = exported()
    emptied()
    imported(file, tmp_path)
    assert sources(compacted) == set(radar)
    assert set(Topic.objects.values_list("rung", "provenance")) == {(3, "api"), (0, "compaction")}


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_near_disjoint_and_leave_none_behind(seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(60, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = float(chance.uniform(0.5, 0.95))
    rows = [
        (uuid.UUID(int=place), place % 2, "note", "model", near, vector_binary(vector))
        for place, vector in enumerate(vectors)
    ]
    groups = groups_make(rows, most=5)
    assert groups_make(rows, most=5) == groups
    members = [each.int for group in groups for each in group]
    assert len(members) == len(set(members))
    for group in groups:
        own = [each.int for each in group]
        assert LEAST_GROUP <= len(own) <= 5
        assert len({place % 2 for place in own}) == 1
        assert any(all(vectors[first] @ vectors[other] >= near - 1e-6 for other in own) for first in own)
    assert groups_make([row for row in rows if row[0].int not in members], most=5) == []


def test_more_groups_need_no_more_statements(operator: Caller) -> None:
    option(operator)
    spent = []
    for themes in (2, 12):
        for theme in range(themes):
            due(operator, 3, title=f"Theme {theme} of {themes}")
        with CaptureQueriesContext(connection) as captured:
            done = run(operator, dry_run=False)
        assert done["counts"]["compacted"] == themes
        spent.append(len(captured))
    assert spent[0] == spent[1]
