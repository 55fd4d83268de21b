"""What a person does to topics is taken back whole: archive, restore, release and pins, each in one transaction."""

import uuid
from typing import Any

import pytest

from memory.core.errors import Conflict, NotVisible
from memory.forgetting.manual_actions import (
    topics_archive,
    topics_move,
    topics_pin,
    topics_plan,
    topics_release,
    topics_restore,
)
from memory.forgetting.manual_runs import BY_HAND
from memory.forgetting.runs import run_begin, run_undo
from memory.models import AuditEvent, Field, FieldSummary, ForgetAction, ForgetRun, Topic
from tests.cast import Caller, Clock, principal_like, worker_turn
from tests.forgetting.shop import JOURNALS, NOON, dump, policy_put, run
from tests.waits import turns_until_done

ACTS: dict[str, Any] = {
    "archive": topics_archive,
    "restore": topics_restore,
    "release": topics_release,
    "pin": lambda ids, **given: topics_pin(ids, pinned=True, **given),
    "unpin": lambda ids, **given: topics_pin(ids, pinned=False, **given),
}


@pytest.fixture(autouse=True)
def _noon(clock: Clock, operator: Caller) -> None:
    clock.set(NOON)
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0)


def given(clock: Clock, **more: Any) -> dict[str, Any]:
    return {"principal": principal_like("operator"), "reason": "by the test", "now": clock.now, **more}


def counted() -> None:
    turns_until_done(worker_turn)


def harbor(agent: Caller, salience: float = 1.0, **more: Any) -> uuid.UUID:
    topic_id = agent.remember("The harbor", salience=salience, **more)
    for number in range(9):
        value = {"name": "berth", "value": f"berth {number}"}
        agent.ingest("extend_topic", topic_id=topic_id, fields=[value, {"name": "price", "value": str(number)}])
    return uuid.UUID(topic_id)


def ladder(agent: Caller, operator: Caller, clock: Clock) -> dict[str, uuid.UUID]:
    """Topics in every standing, with everything on them that a verb can move."""
    made = {"summarized": harbor(agent, 0.2), "detached": harbor(agent, 0.1), "archived": harbor(agent, 0.01)}
    Field.objects.filter(name="price").update(salience=0.01)
    assert run(operator, dry_run=False)["applied"] == 3
    made["sunken"] = made.pop("detached")
    topics_archive([made["sunken"]], **given(clock))
    made["detached"] = harbor(agent, 0.1)
    Field.objects.filter(name="price", topic_id=made["detached"]).update(salience=0.01)
    run(operator, dry_run=False)
    made["active"] = harbor(agent)
    made["pinned"] = harbor(agent, pinned=True)
    made["released"] = harbor(agent)
    topics_release([made["released"]], **given(clock))
    made["gone"] = harbor(agent, 0.01)
    topics_archive([made["gone"]], **given(clock))
    topics_release([made["gone"]], **given(clock))
    counted()
    return made


POSSIBLE = {
    "archive": {"summarized", "detached", "active", "pinned"},
    "restore": {"archived", "sunken", "released", "gone"},
    "release": {"summarized", "detached", "archived", "sunken", "active", "pinned"},
    "pin": {"summarized", "detached", "archived", "sunken", "active", "released", "gone"},
    "unpin": {"pinned"},
}


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("verb", ACTS)
def test_a_change_by_hand_and_its_undo_are_identity_on_every_table_but_journals(
    agent: Caller, operator: Caller, clock: Clock, verb: str, planned: bool
):
    made = ladder(agent, operator, clock)
    before = dump(*JOURNALS)
    clock.forward(hours=1)
    plan, left = topics_plan(verb, list(made.values()), principal=principal_like("operator"), now=clock.now)
    assert plan is not None
    assert dump(*JOURNALS) == before
    names = {topic_id: name for name, topic_id in made.items()}
    assert {names[topic_id] for topic_id, _why in left} == made.keys() - POSSIBLE[verb]
    if planned:
        changed = run_begin(plan.id, ForgetRun.Status.PLANNED, **given(clock))
    else:
        changed = ACTS[verb]([made[name] for name in POSSIBLE[verb]], **given(clock))
    assert dump(*JOURNALS) != before
    events = AuditEvent.objects.filter(after__run=str(changed.id), reason="by the test").exclude(topic_id=None)
    assert {names[topic_id] for topic_id in events.values_list("topic_id", flat=True)} == POSSIBLE[verb]
    assert (changed.event, changed.status, changed.applied) == (BY_HAND, "done", len(POSSIBLE[verb]))
    clock.forward(minutes=1)
    undone = run_undo(changed.id, **given(clock))
    assert (undone.restored, undone.conflicts) == (len(POSSIBLE[verb]), [])
    counted()
    assert dump(*JOURNALS) == before


def test_a_restore_withdraws_summaries_and_its_undo_puts_them_in_force(agent: Caller, operator: Caller, clock: Clock):
    made = ladder(agent, operator, clock)
    in_force = FieldSummary.objects.filter(field__topic=made["sunken"], withdrawn_at=None)
    assert in_force.count()
    restored = topics_restore([made["sunken"]], **given(clock))
    assert not in_force.exists()
    run_undo(restored.id, **given(clock))
    assert in_force.count()


def test_what_was_changed_since_is_left_alone_with_the_reason(agent: Caller, operator: Caller, clock: Clock):
    one, other = (uuid.UUID(agent.remember(title, salience=0.3)) for title in ("one", "other"))
    archived = topics_archive([one, other], **given(clock))
    clock.forward(minutes=1)
    topics_restore([other], **given(clock))
    undone = run_undo(archived.id, **given(clock))
    assert (undone.restored, undone.conflicts) == (1, [(other, "It has since been moved: it is active now.")])


def test_the_text_written_after_a_change_by_hand_stays(agent: Caller, operator: Caller, clock: Clock):
    topic = uuid.UUID(agent.remember("one"))
    pinned = topics_pin([topic], pinned=True, **given(clock))
    clock.forward(minutes=1)
    operator.patch(f"/v1/topics/{topic}", {"title": "two"}).ok()
    written = operator.topic(str(topic))["updated_at"]
    assert run_undo(pinned.id, **given(clock)).restored == 1
    after = operator.topic(str(topic))
    assert (after["pinned"], after["title"], after["updated_at"]) == (False, "two", written)


def test_the_audit_and_the_why_card_tell_of_the_undo(agent: Caller, operator: Caller, clock: Clock):
    topic = uuid.UUID(agent.remember("Tea", salience=0.01))
    run(operator, dry_run=False)
    clock.forward(days=1)
    restored = topics_restore([topic], **given(clock))
    clock.forward(minutes=1)
    run_undo(restored.id, **given(clock, reason="the wrong one"))
    event = AuditEvent.objects.get(action="undone")
    assert (event.topic_id, event.scope, event.reason) == (topic, "/", "the wrong one")
    assert (event.before["action"], event.after) == ("restored", {"run": str(restored.id), "rung": "archived"})
    card = operator.get(f"/v1/topics/{topic}/why").ok()
    history = [(entry["by"], entry["what"], entry["state"]) for entry in card["history"]]
    assert history == [
        ("hand", "undone", "applied"),
        ("hand", "restored", "undone"),
        ("run", "archived", "applied"),
        ("hand", "created", "applied"),
    ]
    assert card["sentences"][0].startswith("Archived on ")
    assert "by a manual run" in card["sentences"][0]
    assert (card["regret"], operator.get("/v1/regret").ok()["regretted"]) == ([], 0)


def test_an_archiving_by_hand_counts_once_and_not_after_its_undo(agent: Caller, operator: Caller, clock: Clock):
    topic = uuid.UUID(agent.remember("Tea"))
    archived = topics_archive([topic], **given(clock))
    assert operator.get("/v1/regret").ok()["archived"] == 1
    run_undo(archived.id, **given(clock))
    assert operator.get("/v1/regret").ok()["archived"] == 0


def test_runs_by_hand_are_listed_on_request_and_read_by_their_id(agent: Caller, operator: Caller, clock: Clock):
    topic = uuid.UUID(agent.remember("Tea", scope="/user/alice"))
    other = uuid.UUID(agent.remember("Milk", scope="/user/alice/kitchen"))
    pinned = topics_pin([topic, other], pinned=True, **given(clock))
    assert operator.get("/v1/runs").ok()["items"] == []
    assert [run["run_id"] for run in operator.get("/v1/runs?event=by_hand").ok()["items"]] == [str(pinned.id)]
    assert operator.get("/v1/runs?event=revise").ok()["items"] == []
    read = operator.get(f"/v1/runs/{pinned.id}").ok()
    assert (read["scope"], read["event"], read["counts"]) == ("/user/alice", "by_hand", {"pinned": 2})
    assert sorted(read["results"]) == sorted([f"pinned:{topic}", f"pinned:{other}"])
    assert operator.post(f"/v1/runs/{pinned.id}/undo", {}).ok()["restored"] == 2


def test_a_refused_change_writes_nothing(agent: Caller, clock: Clock):
    topic = uuid.UUID(agent.remember("Tea"))
    before = dump()
    with pytest.raises(Conflict):
        topics_restore([topic], **given(clock))
    with pytest.raises(NotVisible):
        topics_archive([topic, uuid.UUID(int=1)], **given(clock))
    assert dump() == before


def test_a_change_of_many_leaves_out_what_it_cannot_or_must_not_touch(agent: Caller, clock: Clock):
    active, archived, late = (uuid.UUID(agent.remember(title)) for title in ("active", "archived", "late"))
    topics_archive([archived], **given(clock))
    seen_at = clock.now
    clock.forward(minutes=1)
    topics_pin([late], pinned=True, **given(clock))
    agent.ingest("extend_topic", topic_id=str(late), fields=[{"name": "berth", "value": "4"}])
    wanted = [active, archived, late, uuid.UUID(int=9)]
    moved = topics_move("archive", wanted, seen_at=seen_at, **given(clock))
    assert moved.run is not None
    assert [action.topic_id for action in ForgetAction.objects.filter(run=moved.run)] == [active]
    assert dict(moved.left) == {
        archived: "It is archived already.",
        late: "It was changed since.",
        uuid.UUID(int=9): "This memory does not exist.",
    }
    again = topics_move("archive", wanted, seen_at=clock.now, **given(clock))
    assert again.run is not None
    assert ForgetRun.objects.filter(event=BY_HAND).count() == 4


def test_a_planned_change_skips_what_was_changed_since_and_not_what_was_used(
    agent: Caller, operator: Caller, clock: Clock
):
    used, edited, pinned = (uuid.UUID(agent.remember(title)) for title in ("a lighthouse", "a bakery", "a school"))
    plan, _left = topics_plan("archive", [used, edited, pinned], principal=principal_like("operator"), now=clock.now)
    assert plan is not None
    clock.forward(minutes=1)
    agent.post("/v1/query", {"q": "a lighthouse", "top_k": 1}).ok()
    counted()
    topics_pin([pinned], pinned=True, **given(clock))
    operator.patch(f"/v1/topics/{edited}", {"title": "another"}).ok()
    done = run_begin(plan.id, ForgetRun.Status.PLANNED, **given(clock))
    assert (done.status, done.applied, done.skipped, done.counts) == ("done", 1, 2, {"archived": 1})
    assert set(Topic.objects.filter(rung=3).values_list("id", flat=True)) == {used}
    with pytest.raises(Conflict):
        run_begin(plan.id, ForgetRun.Status.PLANNED, **given(clock))


def test_a_pause_does_not_stop_a_planned_change(agent: Caller, operator: Caller, clock: Clock):
    topic = uuid.UUID(agent.remember("Tea"))
    plan, _left = topics_plan("archive", [topic], principal=principal_like("operator"), now=clock.now)
    assert plan is not None
    operator.post("/v1/pause", {"scope": "/", "reason": "a holiday"}).ok()
    assert run_begin(plan.id, ForgetRun.Status.PLANNED, **given(clock)).applied == 1
