"""GET /v1/topics/{id}/why: the card of a topic, and what it says is checked against what happens."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.core.policy_values import Knobs
from memory.explain.why import topic_why
from memory.models import AccessLog, ForgetRun, Topic
from tests.cast import Caller, Cast, Clock, principal_like, store_rows
from tests.explain.past import BEGIN, folded, policy_set, run_now

pytestmark = pytest.mark.django_db
FREE = {"topic_count_soft_limit": 0, "max_archive_share": 1.0}
STRATEGIES: dict[str, dict[str, Any]] = {
    "half_life": FREE,
    "half_life without a gate": {**FREE, "prune_after_days": 0},
    "active_forgetting": {**FREE, "strategy": "active_forgetting", "active_half_life_days": 30},
    "relevance": {
        **FREE,
        "strategy": "relevance",
        "theta_summary": 0.5,
        "theta_detach": 0.4,
        "forget_salience_threshold": 0.3,
        "prune_after_days": 20,
    },
    "idle rule": {
        **FREE,
        "rules": [{"name": "idle", "action": "archive", "condition": {"field": "idle", "op": ">", "value": "40d"}}],
    },
}


def why(caller: Caller, topic_id: str) -> Any:
    return caller.get(f"/v1/topics/{topic_id}/why").ok()


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def used_at(topic_id: str, at: dt.datetime) -> None:
    """Log one more retrieval at a moment of the past, as a query would have."""
    AccessLog.objects.create(
        at=at,
        actor="key:1",
        scope="/",
        query="what about it",
        query_hash=uuid.uuid4().hex,
        bump=Knobs().query_salience_bump,
        field_bump=0.1,
        topic_ids=[topic_id],
    )


def archived_by_run(cast: Cast, clock: Clock, *, days: float = 400) -> tuple[str, str]:
    """Make two alike topics, let time pass, and make the run that archives them."""
    clock.set(BEGIN)
    one, other = (cast.agent.remember(title, salience=0.9) for title in ("Tea", "Rent"))
    clock.forward(days=days)
    run_now(clock)
    assert {cast.reader.topic(each)["rung"] for each in (one, other)} == {"archived"}
    return one, other


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_step_ahead_happens_when_the_card_says_and_not_a_day_before(cast: Cast, clock: Clock, name: str):
    policy_set(**STRATEGIES[name])
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea", salience=0.9, topic_kind="finding")
    clock.forward(days=3)
    cast.agent.query("Tea")
    folded(clock.now)
    seen = 0
    for rung in ("summarized", "detached", "archived"):
        step = next((step for step in why(cast.reader, topic)["next"]["steps"] if step["rung"] == rung), None)
        if step is None or step["due"]:
            continue
        seen += 1
        clock.set(moment(step["at"]) - dt.timedelta(days=1))
        run_now(clock)
        before = cast.reader.topic(topic)["rung"]
        clock.set(moment(step["at"]))
        run_now(clock)
        assert before != rung
        assert cast.reader.topic(topic)["rung"] == rung
    assert seen
    assert cast.reader.topic(topic)["rung"] == "archived"


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_retrieval_when_the_card_says_would_have_kept_it_and_one_a_day_earlier_not(
    cast: Cast, clock: Clock, name: str
):
    policy_set(**STRATEGIES[name])
    topic, _other = archived_by_run(cast, clock)
    rescue = why(cast.reader, topic)["rescue"]
    assert rescue["possible"]
    assert moment(rescue["latest"]) == clock.now == moment(rescue["run_at"])
    since = moment(rescue["earliest_sufficient"])
    outcomes = {}
    # The same life lived again, with one more retrieval.
    for label, at in (("then", since), ("earlier", since - dt.timedelta(days=1)), ("at last", clock.now)):
        clock.set(BEGIN)
        again = cast.agent.remember(f"Tea again, {label}", salience=0.9)
        clock.set(at)
        used_at(again, at)
        folded(clock.now)
        clock.set(moment(rescue["run_at"]))
        run_now(clock)
        outcomes[label] = cast.reader.topic(again)["rung"] != "archived"
    assert outcomes == {"then": True, "earlier": False, "at last": True}
    assert not rescue["any_later_use"]
    sentence = next(text for text in why(cast.reader, topic)["sentences"] if "would have kept it" in text)
    assert sentence.startswith("One more recall between ")


def test_where_any_retrieval_after_the_last_use_would_have_done_the_card_says_before(cast: Cast, clock: Clock):
    policy_set(**FREE, strategy="static")
    clock.set(dt.datetime(2026, 9, 1, 12, tzinfo=dt.UTC))
    topic = cast.agent.remember("Tea", salience=0.04)
    clock.set(dt.datetime(2026, 10, 3, 3, tzinfo=dt.UTC))
    run_now(clock)
    card = why(cast.reader, topic)
    assert card["rescue"]["any_later_use"]
    assert "One more recall before 3 October 2026 03:00 UTC would have kept it." in card["sentences"]


def test_where_no_retrieval_would_have_helped_the_card_says_so(cast: Cast, clock: Clock):
    policy_set(
        **FREE, rules=[{"name": "old", "condition": {"field": "age", "op": ">", "value": "9d"}, "action": "archive"}]
    )
    topic, _other = archived_by_run(cast, clock, days=10)
    card = why(cast.reader, topic)
    assert (card["rescue"]["possible"], card["rescue"]["earliest_sufficient"]) == (False, None)
    assert "One more recall would not have kept it." in card["sentences"]
    (entry,) = [entry for entry in card["history"] if entry["what"] == "archived"]
    assert (entry["rule"], entry["threshold"]) == ("old", None)


def test_the_rescue_is_judged_by_the_policy_of_then(cast: Cast, clock: Clock):
    policy_set(**FREE)
    topic, _other = archived_by_run(cast, clock)
    before = why(cast.reader, topic)["rescue"]
    policy_set(**FREE, half_life_days=300, query_salience_bump=0)
    assert why(cast.reader, topic)["rescue"] == before


def test_the_history_tells_run_threshold_score_version_author_and_reason(cast: Cast, clock: Clock):
    policy_set(**FREE)
    topic, _other = archived_by_run(cast, clock)
    run = ForgetRun.objects.get()
    card = why(cast.reader, topic)
    archived, created = card["history"]
    score = 0.9 * 0.5 ** (400 / 30)
    assert archived | {"score": None} == archived | {
        "by": "run",
        "what": "archived",
        "state": "applied",
        "run_id": str(run.id),
        "event": "cron",
        "rule": None,
        "threshold": "forget_salience_threshold",
        "theta": 0.05,
        "policy": "/",
        "version": 1,
        "policy_author": "test:operator",
        "policy_reason": "for the test",
        "score": None,
        "actor": "system",
    }
    assert archived["score"] == pytest.approx(score)
    assert (created["what"], created["salience"], created["actor"]) == ("created", 0.9, "key:agent")
    assert card["standing"]["rung"] == "archived"
    assert card["next"] == {"now": None, "may_compact": False, "steps": [], "gate": ""}
    assert any("below forget_salience_threshold (0.05)." in text for text in card["sentences"])


def test_moves_by_hand_and_undone_runs_are_in_the_history(cast: Cast, clock: Clock):
    policy_set(**FREE)
    topic, _other = archived_by_run(cast, clock)
    clock.forward(hours=1)
    from memory.forgetting.runs import run_undo

    run_undo(ForgetRun.objects.get().id, principal=principal_like("operator"), reason="oops", now=clock.now)
    for verb in ("pin", "unpin", "archive", "restore"):
        clock.forward(hours=1)
        cast.operator.post(f"/v1/topics/{topic}/{verb}", {"reason": f"to {verb}"}).ok()
    card = why(cast.reader, topic)
    assert [(entry["what"], entry["by"], entry["state"]) for entry in card["history"]] == [
        ("restored", "hand", "applied"),
        ("archived", "hand", "applied"),
        ("unpinned", "hand", "applied"),
        ("pinned", "hand", "applied"),
        ("archived", "run", "undone"),
        ("created", "hand", "applied"),
    ]
    assert card["history"][0] | {"at": None} == card["history"][0] | {
        "reason": "to restore",
        "actor": "key:operator",
    } | {"at": None}
    assert card["history"][4]["undone_by"] == "system"
    assert card["rescue"] is None
    assert any(text.startswith("Restored on ") and " by key:operator" in text for text in card["sentences"])


def test_a_protected_topic_is_reported_to_be_never_forgotten_and_why(cast: Cast, clock: Clock):
    policy_set(**FREE, exempt_scopes=["/user"])
    policy_set("/off", **FREE, mode="off")
    clock.set(BEGIN)
    pinned = cast.agent.remember("Tea", pinned=True)
    kind = cast.agent.remember("Mara", topic_kind="identity")
    scope = cast.agent.remember("Rent", scope="/user/alice")
    off = cast.agent.remember("Paint", scope="/off")
    said = {
        pinned: "It is pinned.",
        kind: "Memories of kind identity are never forgotten.",
        scope: "Nothing in /user is ever forgotten.",
        off: "Forgetting is switched off in /off.",
    }
    clock.forward(days=500)
    run_now(clock)
    for topic, sentence in said.items():
        card = why(cast.reader, topic)
        assert card["standing"]["protected_because"] == [sentence]
        assert {step["at"] for step in card["next"]["steps"]} == {None}
        assert {step["never_because"] for step in card["next"]["steps"]} == {sentence}
        assert card["sentences"][0] == f"Active: runs skip it. {sentence}"
        assert card["standing"]["rung"] == "active"


def test_what_never_fades_is_reported_to_stay(cast: Cast):
    policy_set(preset="memstate")
    card = why(cast.reader, cast.agent.remember("Tea"))
    assert {step["at"] for step in card["next"]["steps"]} == {None}
    assert "no run will change it." in " ".join(card["sentences"])


def test_the_soft_limit_is_named_while_it_holds_runs_back(cast: Cast):
    card = why(cast.reader, cast.agent.remember("Tea"))
    assert card["next"]["gate"].startswith("/ has 1 live memory, fewer than its soft limit of 500")


@pytest.mark.parametrize("place", ["/", "/user", "/user/alice"])
def test_a_pause_is_the_gate_of_the_topics_in_its_scope(cast: Cast, clock: Clock, place: str):
    policy_set(**FREE)
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea", scope="/user/alice")
    beside = cast.agent.remember("Tea", scope="/home")
    clock.forward(days=400)
    cast.operator.post("/v1/pause", {"scope": place, "reason": "a drill"}).ok()
    # Whoever may see the topic may see that it is paused, wherever the pause was made.
    for caller in (cast.reader, cast.alice):
        card = why(caller, topic)
        assert card["next"]["now"] == "archived"
        assert "paused" in card["next"]["gate"]
        assert card["next"]["gate"].endswith(f" in {place}.")
        assert card["next"]["gate"] in card["sentences"]
        assert not any(sentence.startswith("The next run") for sentence in card["sentences"])
    assert bool(why(cast.reader, beside)["next"]["gate"]) is (place == "/")
    cast.operator.post("/v1/pause/lift", {"scope": place}).ok()
    assert why(cast.reader, topic)["next"]["gate"] == ""


def test_the_last_uses_are_reported_with_question_and_asker(cast: Cast, clock: Clock):
    clock.set(BEGIN)
    policy_set(reinforce_min_relevance=0)
    topic = cast.agent.remember("Tea", scope="/user/alice")
    for hour in range(25):
        clock.forward(hours=1)
        cast.alice.query(f"tea {hour}")
    clock.forward(hours=1)
    cast.agent.query("what does alice drink")
    cast.agent.query("what does alice drink")
    folded(clock.now)
    uses = why(cast.reader, topic)["reinforced"]
    assert uses["total"] == 26
    assert [use["query"] for use in uses["last"]] == [
        "what does alice drink",
        *(f"tea {hour}" for hour in range(24, 5, -1)),
    ]
    # Alice may see her topic and her own questions; what was asked from above is not hers.
    own = why(cast.alice, topic)["reinforced"]
    assert (own["last"][0]["query"], own["last"][0]["actor"]) == (None, None)
    assert own["last"][1]["query"] == "tea 24"


def test_what_was_returned_without_being_renewed_is_reported_apart(cast: Cast, clock: Clock):
    clock.set(BEGIN)
    topic = cast.agent.remember("Boiler", summary="The glasshouse is warmed by the old boiler.")
    assert why(cast.reader, topic)["returned"]["total"] == 0
    for relevance in (0.04, 0.25):
        clock.forward(hours=1)
        used_at(topic, clock.now)
        AccessLog.objects.filter(at=clock.now).update(relevances=[relevance], min_relevance=0.3)
    folded(clock.now)
    card = why(cast.reader, topic)
    assert card["reinforced"]["total"] == 0
    assert card["returned"] == {
        "total": 2,
        "too_weak": 2,
        "last_at": card["returned"]["last_at"],
        "best_relevance": 0.25,
        "needed_relevance": 0.3,
        "all": True,
    }
    assert moment(card["returned"]["last_at"]) == clock.now
    # Of two equal questions soon after each other, only the first counts.
    policy_set(reinforce_min_relevance=0)
    clock.forward(hours=1)
    for _time in range(2):
        cast.agent.query("the old boiler")
    folded(clock.now)
    card = why(cast.reader, topic)
    assert (card["reinforced"]["total"], card["returned"]["total"], card["returned"]["too_weak"]) == (1, 3, 2)


def test_what_lies_above_the_callers_scope_is_left_out(cast: Cast, clock: Clock):
    policy_set(**FREE)
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea", scope="/user/alice")
    clock.forward(days=400)
    run_now(clock)
    entry = why(cast.alice, topic)["history"][0]
    assert (entry["what"], entry["version"]) == ("archived", 1)
    assert (entry["actor"], entry["policy_author"], entry["policy_reason"]) == (None, None, None)
    assert why(cast.auditor, topic)["next"]["gate"] == ""


def test_an_unseen_or_unknown_topic_is_not_there(cast: Cast):
    topic = cast.agent.remember("Tea", scope="/user/alice")
    for caller, wanted in ((cast.stranger, topic), (cast.operator, str(uuid.uuid4()))):
        answer = caller.get(f"/v1/topics/{wanted}/why")
        assert (answer.status, answer.code) == (404, "not-found")


def test_released_topics_have_a_card(cast: Cast):
    topic = cast.agent.remember("Tea")
    Topic.objects.filter(pk=topic).update(released_at=BEGIN)
    card = why(cast.reader, topic)
    assert card["sentences"][0] == "Released on 1 January 2026 00:00 UTC."
    assert card["next"]["steps"] == []


def test_a_card_costs_the_same_number_of_queries_however_long_the_history(cast: Cast, clock: Clock):
    policy_set(**FREE)
    topic, _other = archived_by_run(cast, clock)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as caught:
            topic_why(uuid.UUID(topic), principal=principal_like("reader"), now=clock.now)
        counts.append(len(caught))
        for _again in range(5):
            cast.operator.post(f"/v1/topics/{topic}/restore", {}).ok()
            cast.agent.query("Tea")
            clock.forward(days=400)
            run_now(clock)
    # The last uses are asked for only where there are some.
    assert counts[1] <= counts[0] + 1


def test_a_card_writes_nothing(cast: Cast):
    topic = cast.agent.remember("Tea")
    before = store_rows()
    why(cast.reader, topic)
    assert store_rows() == before
