"""Merging: one topic of two, with everything both had; and undo, which makes both what they were."""

import uuid
from typing import Any

import pytest

from memory.access.principal import SYSTEM
from memory.core.errors import Conflict
from memory.duplicates.pair_actions import pair_keep_both, pair_merge, pair_supersede, pair_undo, pairs_merge
from memory.duplicates.pairs import pair_detail
from memory.forgetting.previews import undo_preview
from memory.forgetting.runs import run_results, run_undo
from memory.models import AuditEvent, DuplicatePair, Field, ForgetRun, Link, Revision, Topic
from memory.recall.lookup import also_from
from tests.cast import Caller, Clock
from tests.duplicates.shop import PERSON, later, look, only_pair, pair_make, pairs, rows, settle, store, twins
from tests.forgetting.shop import NOON


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


def merge(pair_id: Any, clock: Clock) -> ForgetRun:
    later(clock, minutes=1)
    return pair_merge(pair_id, principal=PERSON, reason="the same", now=clock.now)


def merge_all(pair_ids: list[Any], clock: Clock) -> ForgetRun:
    """Merge pairs together, and return the one run of all."""
    later(clock, minutes=1)
    done = pairs_merge(pair_ids, principal=PERSON, reason="the same", now=clock.now, seen_at=clock.now)
    assert not done.skipped
    (run_id,) = {run.pk for _pair, run in done.merged}
    return ForgetRun.objects.get(pk=run_id)


def undo(pair_id: Any, clock: Clock) -> Any:
    later(clock, minutes=1)
    return pair_undo(pair_id, principal=PERSON, reason="not the same", now=clock.now)


def two(agent: Caller, clock: Clock) -> tuple[str, str]:
    """Two topics with fields of their own, one in common, links and categories."""
    city = {"name": "city", "value": "Oslo"}
    older = agent.remember("Anna", categories=["people"], fields=[city, {"name": "phone", "value": "12"}], salience=5)
    other = agent.remember("Somebody else")
    later(clock, hours=1)
    newer = agent.remember("Anna", categories=["friends"], fields=[city, {"name": "job", "value": "pilot"}])
    later(clock, hours=1)
    agent.ingest("version_field", topic_id=older, fields=[{"name": "city", "value": "Bergen"}])
    agent.ingest("extend_topic", topic_id=older, edges=[{"to_topic_id": other, "kind": "knows"}])
    agent.ingest("extend_topic", topic_id=other, edges=[{"to_topic_id": older, "kind": "knows"}])
    agent.ingest("extend_topic", topic_id=older, edges=[{"to_topic_id": newer, "kind": "near"}])
    later(clock, hours=1)
    agent.ingest("version_field", topic_id=newer, fields=[{"name": "job", "value": "captain"}])
    return older, newer


def test_the_survivor_has_everything_that_both_had(agent: Caller, operator: Caller, clock: Clock):
    older, newer = two(agent, clock)
    revisions = Revision.objects.count()
    run = merge(pair_make(older, newer).pk, clock)
    topic = operator.topic(newer)
    assert {field["name"]: field["current"]["value"] for field in topic["fields"]} == {
        "city": "Bergen",
        "job": "captain",
        "phone": "12",
    }
    assert topic["categories"] == ["friends", "people"]
    assert topic["salience"] > 4.9
    assert {(each["direction"], each["kind"], each["title"]) for each in topic["neighbors"]} == {
        ("out", "knows", "Somebody else"),
        ("in", "knows", "Somebody else"),
    }
    history = operator.get(f"/v1/topics/{newer}/fields/city/history").ok()["items"]
    assert [(each["seq"], each["value"]) for each in history] == [(3, "Bergen"), (2, "Oslo"), (1, "Oslo")]
    assert Revision.objects.count() == revisions
    assert run_results(run) == [f"merged:{older}->:{newer}"]
    assert run.counts == {"merged": 1}


def test_the_other_is_on_no_read_path_and_says_where_it_went(agent: Caller, operator: Caller, clock: Clock):
    older, newer = two(agent, clock)
    merge(pair_make(older, newer).pk, clock)
    for asked in ({"q": "Anna"}, {"q": "12"}, {"q": "Anna phone 12", "include_archived": True}):
        found = [each["topic_id"] for each in agent.post("/v1/query", asked).ok()["candidates"]]
        assert older not in found
        assert newer in found
    assert older not in [each["topic_id"] for each in agent.get("/v1/topics?rung=any").ok()["items"]]
    assert operator.topic(older)["merged_into"] == newer
    assert [each["topic_id"] for each in also_from(uuid.UUID(newer))] == [older]
    assert rows("SELECT live FROM memory_topicvector WHERE topic_id = %s", older) == [(False,)]


def test_merge_and_undo_is_identity_over_all_tables(agent: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    settle()
    before = store()
    merge(pair.pk, clock)
    settle()
    assert store() != before
    assert not undo(pair.pk, clock)
    settle()
    assert store() == before
    pair.refresh_from_db()
    assert pair.state == "open"


def test_the_undo_of_the_run_is_the_undo_of_the_pair(agent: Caller, operator: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    settle()
    before = store()
    run = merge(pair.pk, clock)
    got = operator.post(f"/v1/runs/{run.pk}/undo", {"reason": "no"}).ok()
    assert (got["restored"], got["conflicts"]) == (2, [])
    settle()
    assert store() == before
    pair.refresh_from_db()
    assert pair.state == "open"
    assert operator.get(f"/v1/runs/{run.pk}").ok()["status"] == "undone"
    # Asked once more, it tells the same.
    assert operator.post(f"/v1/runs/{run.pk}/undo", {"reason": "no"}).ok()["restored"] == 2


@pytest.mark.parametrize("what", ["write", "edit", "pin", "release"])
def test_a_change_since_then_is_reported_and_changes_neither(agent: Caller, operator: Caller, clock: Clock, what: str):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    merge(pair.pk, clock)
    later(clock, minutes=5)
    if what == "write":
        agent.ingest("version_field", topic_id=newer, fields=[{"name": "city", "value": "Rome"}])
    elif what == "edit":
        agent.patch(f"/v1/topics/{newer}", {"title": "Anna B."}).ok()
    elif what == "pin":
        agent.post(f"/v1/topics/{newer}/pin", {"reason": "dear"}).ok()
    else:
        Topic.objects.filter(pk=newer).update(released_at=clock.now)
    settle()
    before = store()
    undone = undo(pair.pk, clock)
    assert undone
    words = {"write": "written to", "edit": "edited", "pin": "pinned", "release": "released"}
    assert [(str(topic), words[what] in why) for topic, why in undone] == [(newer, True)]
    assert store() == before
    pair.refresh_from_db()
    assert pair.state == "merged"


def test_many_merges_are_one_run_and_its_undo_restores_all(agent: Caller, operator: Caller, clock: Clock):
    made = [pair_make(*twins(agent, f"Harbor {number}", scope=f"/home/{number}")).pk for number in range(3)]
    settle()
    before = store()
    run = merge_all(made, clock)
    assert (run.scope, run.planned, run.applied, run.counts) == ("/home", 6, 6, {"merged": 3})
    assert len(run_results(run)) == 3
    reply = operator.post(f"/v1/runs/{run.pk}/undo", {"reason": "no"}).ok()
    assert (reply["restored"], reply["conflicts"]) == (6, [])
    settle()
    assert store() == before
    assert set(DuplicatePair.objects.values_list("state", "run")) == {("open", None)}
    assert operator.get(f"/v1/runs/{run.pk}").ok()["status"] == "undone"


def test_each_merge_of_a_run_is_undone_alone_or_left_alone(agent: Caller, operator: Caller, clock: Clock):
    one, two, three = [pair_make(*twins(agent, f"Harbor {number}")) for number in range(3)]
    run = merge_all([one.pk, two.pk, three.pk], clock)
    assert not undo(one.pk, clock)
    assert operator.get(f"/v1/runs/{run.pk}").ok()["counts"] == {"merged": 3, "undone": 1}
    two.refresh_from_db()
    agent.ingest("version_field", topic_id=str(two.survivor_id), fields=[{"name": "depth", "value": "3 m"}])
    preview = undo_preview(ForgetRun.objects.get(pk=run.pk))
    assert (preview.by_action, preview.left) == ({"merged": 1, "took_in": 1}, 1)
    undone = run_undo(run.pk, principal=PERSON, reason="", now=clock.now)
    assert [topic for topic, _why in undone.conflicts] == [two.survivor_id]
    states = [DuplicatePair.objects.get(pk=pair.pk).state for pair in (one, two, three)]
    assert states == ["open", "merged", "open"]
    assert ForgetRun.objects.get(pk=run.pk).status == "done"


def test_merges_that_share_a_memory_are_not_one_run(agent: Caller, clock: Clock):
    first, second = twins(agent)
    third = agent.remember("The harbor")
    made = [pair_make(first, second).pk, pair_make(second, third).pk]
    later(clock, minutes=1)
    done = pairs_merge(made, principal=SYSTEM, reason="", now=clock.now, seen_at=clock.now)
    assert len({run.pk for _pair, run in done.merged}) == 2


def test_a_retrieval_is_no_reason_to_leave_two_in_one(agent: Caller, operator: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    merge(pair.pk, clock)
    later(clock, minutes=5)
    assert agent.post("/v1/query", {"q": "Anna captain"}).ok()["candidates"]
    settle()
    used = operator.topic(newer)["salience"]
    assert not undo(pair.pk, clock)
    assert operator.topic(newer)["salience"] == pytest.approx(used, abs=1e-4)
    assert operator.topic(older)["merged_into"] is None
    assert {field["name"] for field in operator.topic(older)["fields"]} == {"city", "phone"}


def test_who_writes_to_the_one_that_went_is_reported_to_write_to_the_other(agent: Caller, clock: Clock):
    older, newer = two(agent, clock)
    merge(pair_make(older, newer).pk, clock)
    refused = agent.post("/v1/ingest", {"placement": "extend_topic", "topic_id": older, "fields": []})
    assert refused.status == 400
    assert refused.code == "topic-gone"


def test_a_decided_pair_is_not_decided_again(agent: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    merge(pair.pk, clock)
    for verb in (pair_merge, pair_keep_both, pair_supersede):
        with pytest.raises(Conflict):
            verb(pair.pk, principal=PERSON, reason="", now=clock.now)


def test_merges_of_merges_are_undone_from_the_last(agent: Caller, operator: Caller, clock: Clock):
    first, second = twins(agent)
    later(clock, minutes=1)
    third = agent.remember("The harbor", fields=[{"name": "depth", "value": "3 m"}])
    one, two = pair_make(first, second), pair_make(second, third)
    settle()
    before = store()
    merge(one.pk, clock)
    later(clock, minutes=1)
    agent.ingest("version_field", topic_id=third, fields=[{"name": "depth", "value": "3 m"}])
    merge(two.pk, clock)
    assert {each["topic_id"] for each in also_from(uuid.UUID(third))} == {first, second}
    assert undo(one.pk, clock)
    assert not undo(two.pk, clock)
    assert not undo(one.pk, clock)
    settle()
    after = store()
    for table in ("memory_link", "memory_topicdocument"):
        assert after[table] == before[table]


def test_keeping_both_is_remembered_until_a_text_changes(agent: Caller, clock: Clock):
    older, _newer = twins(agent)
    assert look() == 1
    pair_keep_both(only_pair()["id"], principal=PERSON, reason="two harbors", now=clock.now)
    assert look("/") == 0
    assert only_pair()["state"] == "kept"
    later(clock, minutes=1)
    agent.patch(f"/v1/topics/{older}", {"summary": "the old one"}).ok()
    assert look() == 1
    assert only_pair()["state"] == "open"


def test_keeping_both_can_be_taken_back(agent: Caller, clock: Clock):
    twins(agent)
    look()
    pair_keep_both(only_pair()["id"], principal=PERSON, reason="", now=clock.now)
    assert not undo(only_pair()["id"], clock)
    assert only_pair()["state"] == "open"


def test_superseding_takes_the_older_out_of_queries_and_can_be_undone(agent: Caller, operator: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer, verdict="supersedes")
    settle()
    before = store()
    later(clock, minutes=1)
    run = pair_supersede(pair.pk, principal=PERSON, reason="moved", now=clock.now)
    assert run_results(run) == [f"superseded:{older}"]
    assert older not in [each["topic_id"] for each in agent.get("/v1/topics?rung=any").ok()["items"]]
    assert Link.objects.filter(source=newer, target=older, kind="supersedes").count() == 1
    assert not undo(pair.pk, clock)
    settle()
    assert store() == before
    assert not Link.objects.filter(kind="supersedes").exists()


def test_every_decision_is_in_the_journal_with_actor_and_reason(agent: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    merge(pair.pk, clock)
    got = AuditEvent.objects.filter(action__in=["merged", "took_in"]).order_by("id")
    assert [(each.action, str(each.topic_id), each.actor, each.reason) for each in got] == [
        ("merged", older, "Ada", "the same"),
        ("took_in", newer, "Ada", "the same"),
    ]
    undo(pair.pk, clock)
    assert AuditEvent.objects.filter(action="undone").count() == 2


def test_the_page_of_a_pair_says_what_a_merge_would_do(agent: Caller, clock: Clock):
    older, newer = two(agent, clock)
    pair = pair_make(older, newer)
    got = pair_detail(pair.pk, principal=SYSTEM, now=clock.now)
    assert got["newer"]["topic_id"] == uuid.UUID(newer)
    assert got["merge"]["fields_moved"] == ["phone"]
    assert got["merge"]["histories_merged"] == [{"name": "city", "revisions": 3}]
    assert got["merge"]["links_moved"] == 2
    assert got["may"] == ["merge", "keep", "supersede"]
    assert {field["name"]: field["change"] for field in got["fields"]} == {
        "city": "differs",
        "job": "only_newer",
        "phone": "only_older",
    }
    assert [each["sort"] for each in got["differences"]] == ["name"]
    merge(pair.pk, clock)
    got = pair_detail(pair.pk, principal=SYSTEM, now=clock.now)
    assert (got["may"], got["survivor"]) == (["undo"], uuid.UUID(newer))
    run = DuplicatePair.objects.get(pk=pair.pk).run_id
    run_undo(run, principal=PERSON, reason="", now=clock.now)
    assert pair_detail(pair.pk, principal=SYSTEM, now=clock.now)["may"] == ["merge", "keep", "supersede"]


def test_summarized_histories_turn_warm_where_they_no_longer_fit(agent: Caller, operator: Caller, clock: Clock):
    older = agent.remember("Berth", fields=[{"name": "berth", "value": "0"}])
    newer = agent.remember("Berth", fields=[{"name": "berth", "value": "0"}])
    for number in range(1, 9):
        later(clock, minutes=1)
        for topic_id in (older, newer):
            agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "berth", "value": f"{number}"}])
    operator.patch(f"/v1/topics/{newer}", {"salience": 0.2}).ok()
    operator.put("/v1/policies/", {"values": {"strategy": "static", "prune_after_days": 0}, "reason": "test"}).ok()
    operator.post("/v1/runs", {"event": "manual", "dry_run": False}).ok()
    assert Field.objects.get(topic=newer).cold_through == 4
    pair = pair_make(older, newer)
    settle()
    before = store()
    merge(pair.pk, clock)
    field = Field.objects.get(topic=newer)
    assert (field.last_seq, field.cold_through) == (18, 0)
    assert list(field.revisions.order_by("seq").values_list("seq", flat=True)) == list(range(1, 19))
    moments = list(field.revisions.order_by("seq").values_list("recorded_at", flat=True))
    assert moments == sorted(moments)
    assert not undo(pair.pk, clock)
    settle()
    assert store() == before


def test_pairs_of_a_topic_that_went_lapse(agent: Caller, clock: Clock):
    one = agent.remember("The harbor")
    two_ = agent.remember("The harbor")
    agent.remember("The harbor")
    assert look() == 3
    pair = next(
        each for each in pairs() if {str(each["newer"]["topic_id"]), str(each["older"]["topic_id"])} == {one, two_}
    )
    merge(pair["id"], clock)
    states = sorted(each["state"] for each in pairs())
    assert states == ["lapsed", "merged", "open"]
    assert not undo(pair["id"], clock)
    look()
    assert sorted(each["state"] for each in pairs()) == ["open", "open", "open"]
