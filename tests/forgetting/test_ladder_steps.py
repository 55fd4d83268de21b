"""Down the ladder and up again: summarize, detach, archive, and what is shown of a topic on each rung."""

from typing import Any

import pytest

from memory.models import Field, FieldSummary, Revision, Vitality
from tests.cast import Caller, Clock, store_rows
from tests.forgetting.shop import JOURNALS, NOON, actions, dump, policy_put, run, rungs


@pytest.fixture(autouse=True)
def _noon(clock: Clock, operator: Caller) -> None:
    clock.set(NOON)
    # One threshold after the other can be reached without waiting.
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0)


def weigh(operator: Caller, salience: float, *topic_ids: str) -> Any:
    """Give topics a salience and run."""
    for topic_id in topic_ids:
        operator.patch(f"/v1/topics/{topic_id}", {"salience": salience}).ok()
    return run(operator, dry_run=False)


def written(agent: Caller, revisions: int, *, title: str = "The harbor") -> str:
    """Return a topic whose field ``berth`` had so many values."""
    topic_id = agent.remember(title, values={"berth": "berth 1"})
    for number in range(2, revisions + 1):
        value = {"name": "berth", "value": f"berth {number}"}
        agent.ingest("version_field", topic_id=topic_id, fields=[value])
    return topic_id


def shown(caller: Caller, topic_id: str, **asked: Any) -> Any:
    (bundle,) = caller.query("?", stages=["structural", "temporal"], topic_ids=[topic_id], explain=True, **asked)[
        "candidates"
    ]
    return {entry["name"]: entry for entry in bundle["fields"]}


def history(caller: Caller, topic_id: str, **asked: Any) -> list[str]:
    return [revision["value"] for revision in shown(caller, topic_id, **asked)["berth"]["history"]]


def test_summarize_folds_all_but_the_latest_five_and_keeps_every_revision(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    before = store_rows()
    got = weigh(operator, 0.2, topic_id)
    assert got["results"] == [f"summarized:{topic_id}"]
    field, summary = Field.objects.get(), FieldSummary.objects.get()
    assert (field.cold_through, summary.from_seq, summary.through_seq, summary.depth) == (4, 1, 4, 1)
    assert summary.method == "extractive"
    assert "berth 4" in summary.text
    assert sorted(history(agent, topic_id)) == [f"berth {number}" for number in range(5, 10)]
    assert sorted(history(agent, topic_id, include_cold=True)) == [f"berth {number}" for number in range(1, 10)]
    assert Revision.objects.count() == before["memory_revision"] == 9
    # Fully active: found, and a neighbour to others.
    assert agent.found("harbor") == [topic_id]
    assert operator.topic(topic_id)["rung"] == "summarized"


def test_a_field_with_five_revisions_is_not_folded(agent: Caller, operator: Caller):
    topic_id = written(agent, 5)
    assert weigh(operator, 0.2, topic_id)["results"] == [f"summarized:{topic_id}"]
    assert not FieldSummary.objects.exists()
    assert len(history(agent, topic_id)) == 5


def test_a_detached_topic_leaves_its_neighbours_and_hides_its_faded_fields(agent: Caller, operator: Caller):
    hub, loose = agent.remember("Kitchen"), agent.remember("Tea", values={"kind": "green", "price": "4"})
    agent.ingest("extend_topic", topic_id=hub, edges=[{"to_topic_id": loose, "kind": "holds"}])
    agent.ingest("extend_topic", topic_id=loose, edges=[{"to_topic_id": hub, "kind": "in"}])

    def neighbours(topic_id: str) -> list[str]:
        (bundle,) = operator.query("?", stages=["structural"], topic_ids=[topic_id])["candidates"]
        return list({each["topic_id"] for each in bundle["neighbors"]})

    Field.objects.filter(name="price").update(salience=0.119)
    Field.objects.filter(name="kind").update(salience=0.121)
    assert neighbours(hub) == [loose]
    assert weigh(operator, 0.1, loose)["results"] == [f"detached:{loose}"]
    assert neighbours(hub) == []
    assert neighbours(loose) == [hub]
    assert agent.found("tea")[0] == loose
    assert set(shown(agent, loose)) == {"kind"}
    assert set(shown(agent, loose, field_names=["price"])) == {"price"}
    assert {entry["name"] for entry in operator.topic(loose)["fields"]} == {"kind", "price"}


def test_archiving_halves_the_salience_or_takes_what_the_policy_says(agent: Caller, operator: Caller):
    one, other = agent.remember("Tea"), agent.remember("Coffee", scope="/project")
    policy_put(operator, "/project", archive_attenuation=0.25)
    got = weigh(operator, 0.04, one, other)
    assert sorted(got["results"]) == sorted([f"archived:{one}", f"archived:{other}"])
    assert Vitality.objects.get(pk=one).salience == 0.02
    assert Vitality.objects.get(pk=other).salience == 0.01
    assert agent.found("tea") == agent.found("coffee") == []
    assert sorted(agent.found("tea", include_archived=True)) == sorted([one, other])


@pytest.mark.parametrize(("down", "theta"), [(0.2, 0.25), (0.11, 0.12)])
def test_a_topic_climbs_back_only_ten_percent_above_the_threshold(
    agent: Caller, operator: Caller, down: float, theta: float
):
    topic_id = agent.remember("Tea")
    weigh(operator, down, topic_id)
    (rung,) = rungs(operator, topic_id)
    assert rung != "active"
    for factor in (1.0, 1.05, 1.1):
        assert weigh(operator, theta * factor, topic_id)["results"] == []
    assert rungs(operator, topic_id) == [rung]
    assert weigh(operator, theta * 1.11, topic_id)["results"] == [f"restored:{topic_id}"]
    assert rungs(operator, topic_id) == ["active" if rung == "summarized" else "summarized"]
    # And it goes down again below the threshold itself.
    assert weigh(operator, theta, topic_id)["results"] == []
    assert [result.partition(":")[0] for result in weigh(operator, theta * 0.99, topic_id)["results"]] == [rung]


def test_who_climbs_back_has_all_fields_and_revisions_again(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    Field.objects.update(salience=0.01)
    assert weigh(operator, 0.1, topic_id)["results"] == [f"detached:{topic_id}"]
    assert shown(agent, topic_id) == {}
    assert FieldSummary.objects.filter(withdrawn_at=None).count() == 1
    assert weigh(operator, 1.0, topic_id)["results"] == [f"restored:{topic_id}"]
    assert rungs(operator, topic_id) == ["active"]
    assert sorted(history(agent, topic_id)) == [f"berth {number}" for number in range(1, 10)]
    assert not FieldSummary.objects.filter(withdrawn_at=None).exists()
    assert (Field.objects.get().cold_through, Field.objects.get().detached) == (0, False)


def test_climbing_back_half_the_way_brings_the_fields_and_keeps_the_summary(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    Field.objects.update(salience=0.01)
    weigh(operator, 0.1, topic_id)
    assert weigh(operator, 0.2, topic_id)["results"] == [f"restored:{topic_id}"]
    assert rungs(operator, topic_id) == ["summarized"]
    assert len(history(agent, topic_id)) == 5
    assert FieldSummary.objects.get().withdrawn_at is None


def test_who_climbs_back_has_no_more_warm_revisions_than_the_policy_allows(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    weigh(operator, 0.2, topic_id)
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, max_field_history=7)
    assert weigh(operator, 1.0, topic_id)["results"] == [f"restored:{topic_id}"]
    assert sorted(history(agent, topic_id)) == [f"berth {number}" for number in range(3, 10)]


def test_a_summary_of_a_summary_is_the_last(agent: Caller, operator: Caller):
    topic_id = written(agent, 7)

    def more(number: int) -> None:
        for each in range(number):
            agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "berth", "value": f"more {each}"}])

    weigh(operator, 0.2, topic_id)
    more(6)
    weigh(operator, 0.1, topic_id)
    assert list(FieldSummary.objects.order_by("id").values_list("from_seq", "through_seq", "depth")) == [
        (1, 2, 1),
        (1, 8, 2),
    ]
    more(8)
    # Up to the rung of summaries and down again: nothing is summarized a third time.
    weigh(operator, 0.2, topic_id)
    assert rungs(operator, topic_id) == ["summarized"]
    weigh(operator, 0.1, topic_id)
    assert rungs(operator, topic_id) == ["detached"]
    assert FieldSummary.objects.count() == 2
    assert Field.objects.get().cold_through == 8
    weigh(operator, 0.01, topic_id)
    assert rungs(operator, topic_id) == ["archived"]
    assert Revision.objects.count() == 21


def test_a_detached_and_then_archived_topic_is_restored_whole(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    Field.objects.update(salience=0.01)
    weigh(operator, 0.1, topic_id)
    weigh(operator, 0.01, topic_id)
    assert rungs(operator, topic_id) == ["archived"]
    assert agent.found("harbor") == []
    got = operator.post(f"/v1/topics/{topic_id}/restore").ok()
    assert (got["rung"], got["archived"], got["salience"]) == ("active", False, pytest.approx(1.0))
    assert sorted(history(agent, topic_id)) == [f"berth {number}" for number in range(1, 10)]
    assert agent.found("harbor") == [topic_id]
    assert run(operator, dry_run=False)["results"] == []


def test_archived_topics_never_return_by_a_run(agent: Caller, operator: Caller):
    topic_id = agent.remember("Tea")
    weigh(operator, 0.01, topic_id)
    assert weigh(operator, 9, topic_id)["results"] == []
    assert rungs(operator, topic_id) == ["archived"]


def test_a_retrieval_lets_a_topic_climb_back(agent: Caller, operator: Caller, clock: Clock):
    from tests.cast import worker_turn

    policy_put(operator, topic_count_soft_limit=0)
    topic_id = agent.remember("Tea")
    clock.forward(days=70)
    assert run(operator, dry_run=False)["results"] == [f"summarized:{topic_id}"]
    agent.query("tea")
    clock.forward(seconds=61)
    agent.query("tea")
    # The worker folds the accesses and answers the query with a run.
    worker_turn()
    assert rungs(operator, topic_id) == ["active"]


def test_each_action_tells_its_threshold_and_score(agent: Caller, operator: Caller):
    made = [agent.remember(title) for title in ("one", "two", "three")]
    for topic_id, salience in zip(made, (0.2, 0.1, 0.01), strict=True):
        operator.patch(f"/v1/topics/{topic_id}", {"salience": salience}).ok()
    got = run(operator)
    found = [
        (item["topic_id"], item["action"], item["why"]["threshold"], item["why"]["theta"], item["score"])
        for item in actions(operator, got["run_id"])
    ]
    # Lowest score first.
    assert found == [
        (made[2], "archived", "forget_salience_threshold", 0.05, 0.01),
        (made[1], "detached", "theta_detach", 0.12, 0.1),
        (made[0], "summarized", "theta_summary", 0.25, 0.2),
    ]


def test_a_summarized_topic_folds_again_once_it_has_grown_by_what_it_keeps(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    weigh(operator, 0.2, topic_id)

    def grow(start: int, number: int) -> None:
        for place in range(start, start + number):
            field = {"name": "berth", "value": f"berth {place}"}
            agent.ingest("version_field", topic_id=topic_id, fields=[field])

    grow(10, 4)
    assert run(operator, dry_run=False)["planned"] == 0
    grow(14, 1)
    before = dump(*JOURNALS, "memory_fieldsummary")
    planned = run(operator)
    assert planned["results"] == [f"folded:{topic_id}"]
    assert planned["counts"]["folded"] == 1
    done = operator.post(f"/v1/runs/{planned['run_id']}/apply").ok()
    assert done["results"] == planned["results"]
    operator.post(f"/v1/runs/{done['run_id']}/undo").ok()
    assert dump(*JOURNALS, "memory_fieldsummary") == before
    run(operator, dry_run=False)
    latest = FieldSummary.objects.latest("id")
    assert (latest.from_seq, latest.through_seq, latest.depth) == (1, 9, 2)
    assert len(history(agent, topic_id)) == 5
    assert operator.topic(topic_id)["rung"] == "summarized"
    # The next ones stay warm: a summary of summaries is the last.
    grow(15, 10)
    assert run(operator, dry_run=False)["planned"] == 0


def test_a_rule_that_does_something_else_does_not_put_off_the_fold(agent: Caller, operator: Caller):
    topic_id = written(agent, 9)
    weigh(operator, 0.2, topic_id)
    for place in range(10, 15):
        agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "berth", "value": f"berth {place}"}])
    tag = {"name": "tag", "action": "categorize", "category": "port"}
    condition = {"field": "title", "op": "contains", "value": "harbor"}
    values = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0}
    policy_put(operator, rules=[{**tag, "condition": condition}], **values)
    assert run(operator, dry_run=False)["results"] == [f"categorized:{topic_id}"]
    assert Field.objects.get().cold_through == 9
    assert run(operator, dry_run=False)["planned"] == 0
