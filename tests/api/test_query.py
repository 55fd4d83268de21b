"""POST /v1/query beyond the basic members: filters, budgets, depth, the past, what is cold, explain."""

import datetime as dt
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from memory.models import AccessLog, TopicVector, Vitality
from tests.cast import Caller, Clock, worker_turn

# --- Filters ---------------------------------------------------------------------------------------------------------


def test_scope_takes_in_what_lies_below_and_nothing_that_only_begins_alike(agent: Caller):
    at, below = agent.remember("Tea", scope="/user/alice"), agent.remember("Tea", scope="/user/alice/notes")
    agent.remember("Tea", scope="/user/alice2")
    agent.remember("Tea", scope="/user")
    assert sorted(agent.found("Tea", scope="/user/alice")) == sorted([at, below])
    assert agent.found("Tea", scope="/user/alice/notes/") == [below]
    assert agent.found("Tea", scope="/nowhere") == []


def test_kinds_and_categories_filter(agent: Caller):
    decision = agent.remember("Tea", topic_kind="decision", categories=["kitchen", "home"])
    finding = agent.remember("Tea", topic_kind="finding", categories=["home"])
    plain = agent.remember("Tea")
    assert agent.found("Tea", kinds=["decision"]) == [decision]
    assert set(agent.found("Tea", kinds=["decision", "finding"])) == {decision, finding}
    assert agent.found("Tea", kinds=[""]) == [plain]
    assert set(agent.found("Tea", categories=["home"])) == {decision, finding}
    assert agent.found("Tea", categories=["kitchen", "garden"]) == [decision]
    assert agent.found("Tea", kinds=["finding"], categories=["kitchen"]) == []
    assert agent.found("Tea", kinds=[]) == []


def test_topic_ids_limit_the_search(agent: Caller):
    ids = [agent.remember(f"Tea {number}") for number in range(5)]
    assert set(agent.found("Tea", topic_ids=ids[1:3])) == set(ids[1:3])
    assert agent.found("Tea", topic_ids=[]) == []


def test_filters_hold_when_more_topics_match_than_are_gathered(agent: Caller):
    items = [{"placement": "new_topic", "title": f"Tea {number}", "topic_kind": "noise"} for number in range(300)]
    agent.post("/v1/ingest/batch", items).ok()
    wanted = {agent.remember(f"Tea of note {number}", topic_kind="rare") for number in range(5)}
    assert set(agent.found("Tea", kinds=["rare"])) == wanted


def test_filters_hold_without_the_semantic_stage(agent: Caller):
    inside, outside = agent.remember("Tea", scope="/a", topic_kind="x"), agent.remember("Tea", scope="/b")
    chosen = {"stages": ["structural"], "topic_ids": [outside, inside]}
    assert agent.found("?", **chosen) == [outside, inside]
    assert agent.found("?", scope="/a", **chosen) == [inside]


def test_top_k_cuts_what_topic_ids_choose(agent: Caller):
    ids = [agent.remember(f"Tea {number}") for number in range(3)]
    assert agent.found("?", stages=[], topic_ids=ids, top_k=2) == ids[:2]


def test_words_and_meaning_find_in_a_large_scope_as_in_a_small_one(agent: Caller, settings: Any):
    wanted = agent.remember("The xylophone stands in the attic", topic_kind="finding", scope="/home")
    items = [{"placement": "new_topic", "title": f"Tea {number}", "scope": "/home"} for number in range(60)]
    agent.post("/v1/ingest/batch", items).ok()
    worker_turn()
    for exact_below in (2000, 0):
        settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "recall_exact_below": exact_below}
        for asked in ({}, {"scope": "/home"}, {"kinds": ["finding"]}, {"scope": "/home", "kinds": ["finding"]}):
            assert agent.found("xylophone", **asked)[0] == wanted
            assert agent.found("The xylophone stands in the attic", **asked)[0] == wanted


# --- Token budget ----------------------------------------------------------------------------------------------------


def test_a_token_budget_keeps_the_best_first_and_nothing_worse_in_their_place(agent: Caller):
    agent.remember("Xylophone", summary="It is loud. " * 50)
    agent.remember("Xylophone xylophone")
    agent.remember("Something else")
    best = agent.found("xylophone")
    assert len(best) == 3
    for budget in (1, 5, 20, 200, 1000):
        found = agent.found("xylophone", token_budget=budget)
        assert found == best[: len(found)]
    assert agent.found("xylophone", token_budget=1) == []
    assert agent.found("xylophone", token_budget=1000) == best


def test_a_line_says_nothing_twice(agent: Caller):
    agent.ingest(
        title="Ben is allergic to penicillin",
        fields=[{"name": "fact", "value": "Ben is allergic to penicillin."}, {"name": "source", "value": ""}],
    )
    said = agent.query("penicillin")["summary_text"]
    today = timezone.now()
    assert said == f"- {today.day} {today:%B %Y} · Ben is allergic to penicillin"


def test_a_look_at_the_past_is_no_use(agent: Caller):
    topic_id = agent.remember("Xylophone")
    assert agent.found("xylophone", as_of=timezone.now().isoformat()) == [topic_id]
    worker_turn()
    assert Vitality.objects.get(pk=topic_id).retrieval_count == 0


def test_the_text_of_a_budgeted_answer_is_within_the_budget(agent: Caller):
    for number in range(8):
        agent.remember(f"Xylophone {number}", summary="It is loud. " * number)
    for budget in (20, 50, 100):
        text = agent.query("xylophone", token_budget=budget)["summary_text"]
        lines = [line.removeprefix("- ") for line in text.splitlines()]
        assert lines
        assert sum(len(line) for line in lines) <= 4 * budget


def test_what_did_not_fit_is_not_reinforced(agent: Caller):
    made = {agent.remember(f"Xylophone {number}", summary="It is loud. " * 9) for number in range(3)}
    kept = set(agent.found("xylophone", token_budget=60))
    worker_turn()
    counts = {topic_id: Vitality.objects.get(pk=topic_id).retrieval_count for topic_id in made}
    assert 0 < len(kept) < 3
    assert counts == {topic_id: int(topic_id in kept) for topic_id in made}


# --- Links -----------------------------------------------------------------------------------------------------------


def link(agent: Caller, source: str, target: str, kind: str = "follows") -> None:
    agent.ingest("extend_topic", topic_id=source, edges=[{"to_topic_id": target, "kind": kind}])


def neighbors(agent: Caller, topic_id: str, **asked: Any) -> dict[str, int]:
    (bundle,) = agent.query("?", stages=["structural"], topic_ids=[topic_id], **asked)["candidates"]
    links = [(each["topic_id"], each["kind"], each["direction"]) for each in bundle["neighbors"]]
    assert len(set(links)) == len(links)
    return {each["topic_id"]: each["depth"] for each in bundle["neighbors"]}


def test_depth_says_how_far_neighbours_are_followed(agent: Caller):
    a, b, c, d, e = (agent.remember(name) for name in "abcde")
    for source, target in ((a, b), (b, c), (c, d), (d, e)):
        link(agent, source, target)
    assert neighbors(agent, a) == {b: 1}
    assert neighbors(agent, a, depth=0) == {}
    assert neighbors(agent, a, depth=2) == {b: 1, c: 2}
    assert neighbors(agent, a, depth=3) == {b: 1, c: 2, d: 3}
    # Against the direction of the links too.
    assert neighbors(agent, c, depth=2) == {b: 1, d: 1, a: 2, e: 2}


def test_the_direction_and_kind_of_a_link_are_reported(agent: Caller):
    a, b, c = (agent.remember(name) for name in "abc")
    link(agent, a, b, "part_of")
    link(agent, c, a, "mentions")
    (bundle,) = agent.query("?", stages=["structural"], topic_ids=[a])["candidates"]
    got = {each["topic_id"]: (each["kind"], each["direction"]) for each in bundle["neighbors"]}
    assert got == {b: ("part_of", "out"), c: ("mentions", "in")}


def test_every_link_is_reported(agent: Caller):
    a, b, c = (agent.remember(name) for name in "abc")
    for source, target, kind in ((a, b, "owns"), (a, b, "depends_on"), (b, a, "serves"), (b, c, "knows"), (b, c, "on")):
        link(agent, source, target, kind)

    def got(depth: int) -> list[tuple[str, str, str, int]]:
        (bundle,) = agent.query("?", stages=["structural"], topic_ids=[a], depth=depth)["candidates"]
        return [(each["topic_id"], each["kind"], each["direction"], each["depth"]) for each in bundle["neighbors"]]

    near = [(b, "depends_on", "out", 1), (b, "owns", "out", 1), (b, "serves", "in", 1)]
    assert got(1) == near
    assert got(2) == [*near, (c, "knows", "out", 2), (c, "on", "out", 2)]
    assert got(3) == got(2)


def test_cycles_end(agent: Caller):
    a, b, c = (agent.remember(name) for name in "abc")
    for source, target in ((a, b), (b, c), (c, a), (a, a), (b, a)):
        link(agent, source, target)
    assert neighbors(agent, a, depth=3) == {b: 1, c: 1}
    assert set(agent.found("a b c", depth=3)) == {a, b, c}


def test_a_topic_with_very_many_links_answers_with_a_bounded_number(agent: Caller):
    hub = agent.remember("Hub")
    items = [
        {"placement": "new_topic", "title": f"Spoke {number}", "edges": [{"to_topic_id": hub, "kind": "on"}]}
        for number in range(120)
    ]
    agent.post("/v1/ingest/batch", items).ok()
    assert len(neighbors(agent, hub)) == 50
    assert len(neighbors(agent, hub, depth=3)) == 50


def test_the_limit_counts_neighbours_and_not_links(agent: Caller):
    hub = agent.remember("Hub")
    spokes = [agent.remember(f"Spoke {number}") for number in range(50)]
    agent.ingest("extend_topic", topic_id=hub, edges=[{"to_topic_id": each, "kind": "has"} for each in spokes])
    for each in spokes:
        link(agent, each, hub, "on")
    (bundle,) = agent.query("?", stages=["structural"], topic_ids=[hub])["candidates"]
    assert {each["topic_id"] for each in bundle["neighbors"]} == set(spokes)
    assert len(bundle["neighbors"]) == 100


def test_a_linked_topic_lends_its_words(agent: Caller):
    question = agent.remember("Which instrument do you play?")
    answer = agent.remember("The xylophone")
    for number in range(20):
        agent.remember(f"Tea {number}")
    link(agent, answer, question)
    found = agent.query("xylophone", top_k=2, explain=True)["candidates"]
    assert [candidate["topic_id"] for candidate in found] == [answer, question]
    assert found[1]["score_parts"]["own_words"] == 0
    assert found[1]["score_parts"]["neighbor_words"] > 0


# --- The past --------------------------------------------------------------------------------------------------------


def test_as_of_answers_as_things_were_believed_then(agent: Caller, clock: Clock):
    start = clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    mara = agent.remember("Mara", summary="A student", values={"city": "Leipzig"})
    clock.forward(days=10)
    agent.ingest("version_field", topic_id=mara, fields=[{"name": "city", "value": "Berlin"}])
    agent.ingest("extend_topic", topic_id=mara, fields=[{"name": "tea", "value": "green"}])
    clock.forward(days=10)
    agent.patch(f"/v1/topics/{mara}", {"title": "Mara Lindt", "summary": "A translator"}).ok()
    later = agent.remember("Mara's sister")
    clock.forward(days=10)

    def believed(days: int) -> Any:
        moment = (start + dt.timedelta(days=days)).isoformat()
        found = agent.query("Mara", as_of=moment, explain=True)["candidates"]
        return {
            bundle["topic_id"]: (
                bundle["title"],
                bundle["summary"],
                {entry["name"]: entry["current"]["value"] for entry in bundle["fields"]},
                [revision["value"] for entry in bundle["fields"] for revision in entry["history"]],
            )
            for bundle in found
        }

    assert believed(-1) == {}
    assert believed(5) == {mara: ("Mara", "A student", {"city": "Leipzig"}, ["Leipzig"])}
    both = {"city": "Berlin", "tea": "green"}
    assert believed(15) == {mara: ("Mara", "A student", both, ["Leipzig", "Berlin", "green"])}
    assert believed(25)[mara] == ("Mara Lindt", "A translator", both, ["Leipzig", "Berlin", "green"])
    assert set(believed(25)) == {mara, later}


def test_as_of_knows_no_links_made_later(agent: Caller, clock: Clock):
    start = clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    a, b = agent.remember("a"), agent.remember("b")
    clock.forward(days=10)
    link(agent, a, b)
    then = (start + dt.timedelta(days=5)).isoformat()
    assert neighbors(agent, a, as_of=then) == {}
    assert neighbors(agent, a) == {b: 1}


def test_as_of_shows_what_was_archived_since(agent: Caller, operator: Caller, clock: Clock):
    clock.stop()
    mara, tea = agent.remember("Mara", values={"city": "Leipzig"}), agent.remember("Tea")
    link(agent, mara, tea)
    before = clock.forward(days=1)
    clock.forward(days=1)
    operator.post(f"/v1/topics/{tea}/archive").ok()
    after = clock.forward(days=1)
    clock.forward(days=1)
    for topic_id in (mara, tea):
        operator.post(f"/v1/topics/{topic_id}/{'archive' if topic_id == mara else 'restore'}").ok()
    operator.post(f"/v1/topics/{tea}/archive").ok()
    clock.forward(days=1)
    assert agent.found("Mara Tea") == []
    for asked in ({}, {"stages": ["structural"], "topic_ids": [mara, tea]}, {"scope": "/"}, {"kinds": [""]}):
        assert set(agent.found("Mara Tea", as_of=before.isoformat(), **asked)) == {mara, tea}
        assert agent.found("Mara Tea", as_of=after.isoformat(), **asked) == [mara]
        assert agent.found("Mara Tea", as_of=clock.now.isoformat(), **asked) == []
    assert neighbors(agent, mara, as_of=before.isoformat()) == {tea: 1}
    assert neighbors(agent, mara, as_of=after.isoformat()) == {}


def test_as_of_shows_what_was_archived_since_in_a_large_scope(
    agent: Caller, operator: Caller, clock: Clock, settings: Any
):
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "recall_exact_below": 1}
    clock.stop()
    tea, kept = agent.remember("Green tea"), agent.remember("Black tea")
    others = {agent.remember(f"Chair {number}") for number in range(5)}
    worker_turn()
    then = clock.forward(days=1)
    clock.forward(days=1)
    operator.post(f"/v1/topics/{tea}/archive").ok()
    assert agent.found("green tea", as_of=then.isoformat())[0] == tea
    assert set(agent.found("green tea", as_of=then.isoformat())) == {tea, kept, *others}
    assert tea not in agent.found("green tea")


def test_as_of_does_not_show_what_was_released_or_purged_since(agent: Caller, operator: Caller, clock: Clock):
    clock.stop()
    released, purged, archived = (agent.remember(f"Tea {number}") for number in range(3))
    then = clock.forward(days=1)
    clock.forward(days=1)
    operator.post("/v1/forget", {"verb": "release", "filter": {"ids": [released]}, "dry_run": False}).ok()
    for topic_id in (purged, archived):
        operator.post(f"/v1/topics/{topic_id}/archive").ok()
    operator.delete(f"/v1/topics/{purged}").ok()
    assert operator.topic(released)["released_at"]
    assert agent.found("Tea", as_of=then.isoformat()) == [archived]


def test_valid_from_is_reported_but_does_not_move_as_of(agent: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    topic_id = agent.remember("Mara", values={"city": "Leipzig"}, valid_from="2019-05-01T00:00:00Z")
    assert agent.found("Mara", as_of="2025-01-01T00:00:00Z") == []
    (bundle,) = agent.query("Mara")["candidates"]
    assert bundle["topic_id"] == topic_id
    moment = dt.datetime.fromisoformat(bundle["fields"][0]["current"]["valid_from"])
    assert moment == dt.datetime(2019, 5, 1, tzinfo=dt.UTC)


# --- Archived and cold -----------------------------------------------------------------------------------------------


def test_include_archived_brings_archived_topics_back_into_an_answer(agent: Caller, operator: Caller):
    gone, kept = agent.remember("Tea one"), agent.remember("Tea two")
    operator.post(f"/v1/topics/{gone}/archive").ok()
    for asked in ({}, {"stages": ["structural"], "topic_ids": [gone, kept]}, {"kinds": [""]}):
        assert agent.found("Tea", **asked) == [kept]
        found = agent.query("Tea", include_archived=True, **asked)["candidates"]
        assert {each["topic_id"]: each["rung"] for each in found} == {gone: "archived", kept: "active"}


def test_revisions_past_the_limit_turn_cold_and_are_kept(agent: Caller, settings: Any):
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "max_field_history": 3}
    topic_id = agent.remember("Mara", values={"city": "City 0"})
    for number in range(1, 8):
        agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "city", "value": f"City {number}"}])

    def history(**asked: Any) -> list[str]:
        (bundle,) = agent.query("Mara", explain=True, **asked)["candidates"]
        assert bundle["fields"][0]["current"]["value"] == "City 7"
        return [revision["value"] for revision in bundle["fields"][0]["history"]]

    assert history() == ["City 5", "City 6", "City 7"]
    assert history(include_cold=True) == [f"City {number}" for number in range(8)]
    got = agent.topic(topic_id)["fields"][0]
    assert (got["revisions"], got["cold_revisions"]) == (8, 5)
    page = agent.get(f"/v1/topics/{topic_id}/fields/city/history").ok()["items"]
    assert [revision["cold"] for revision in page] == [False] * 3 + [True] * 5


# --- Explain and reinforcement ---------------------------------------------------------------------------------------


def test_the_parts_of_a_score_sum_up_to_it(agent: Caller):
    a = agent.remember("The xylophone is loud")
    b = agent.remember("It stands in the attic")
    link(agent, a, b)
    agent.remember("Tea with a xylophone player")
    found = agent.query("xylophone attic", explain=True)["candidates"]
    assert len(found) == 3
    for candidate in found:
        parts = candidate["score_parts"]
        assert set(parts) == {"meaning", "own_words", "neighbor_words", "time", "decay"}
        assert parts.pop("decay") == 1.0
        assert sum(parts.values()) == pytest.approx(candidate["score"])
        assert all(-1e-9 <= part <= 1 + 1e-9 for part in parts.values())
    scores = [candidate["score"] for candidate in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


def test_explain_tells_milliseconds_per_stage(agent: Caller):
    agent.remember("Tea")
    got = agent.query("Tea", explain=True)["explain"]["milliseconds"]
    assert set(got) == {"embedding", "semantic", "structural", "record"}
    assert all(0 < milliseconds < 60_000 for milliseconds in got.values())
    assert "explain" not in agent.query("Tea")
    assert "score_parts" not in agent.query("Tea")["candidates"][0]


def test_a_query_raises_salience_once_the_worker_has_been(agent: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    topic_id = agent.remember("Tea", values={"kind": "green"})
    (found,) = agent.query("Tea")["candidates"]
    assert AccessLog.objects.count() == 1
    worker_turn()
    topic = agent.topic(topic_id)
    assert found["relevance"] >= 0.5
    assert topic["salience"] == pytest.approx(1 + found["relevance"])
    assert topic["fields"][0]["salience"] == pytest.approx(1 + found["relevance"])
    assert topic["retrieval_count"] == 1


def test_a_repeat_within_a_minute_counts_once(agent: Caller, operator: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    topic_id = agent.remember("Tea")

    def count() -> int:
        worker_turn()
        return int(agent.topic(topic_id)["retrieval_count"])

    agent.found("Tea")
    agent.found("Tea", explain=True)
    assert count() == 1
    operator.found("Tea")
    assert count() == 2
    agent.found("tea")
    assert count() == 3
    clock.forward(seconds=61)
    agent.found("Tea")
    assert count() == 4


def test_lookups_and_lists_raise_nothing(agent: Caller, clock: Clock):
    clock.set(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    topic_id = agent.remember("Tea", values={"kind": "green"})
    agent.topic(topic_id)
    agent.get("/v1/topics?text=tea").ok()
    agent.get(f"/v1/topics/{topic_id}/fields/kind/history").ok()
    worker_turn()
    topic = agent.topic(topic_id)
    assert (topic["salience"], topic["retrieval_count"], topic["last_retrieved_at"]) == (1.0, 0, None)


def test_a_query_takes_the_same_number_of_statements_however_much_is_found(
    agent: Caller, django_assert_num_queries: Any
):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def statements() -> int:
        with CaptureQueriesContext(connection) as caught:
            agent.query("Tea", explain=True, top_k=50)
        return len(caught)

    agent.remember("Tea")
    few = statements()
    items = [
        {"placement": "new_topic", "title": f"Tea {number}", "fields": [{"name": "a", "value": "b"}]}
        for number in range(60)
    ]
    agent.post("/v1/ingest/batch", items).ok()
    assert statements() == few


# --- Vectors of another model ----------------------------------------------------------------------------------------


def test_topics_whose_vector_is_of_another_model_are_still_found_by_their_words(agent: Caller):
    tea, coffee = agent.remember("Tea in the garden"), agent.remember("Coffee at the harbour")
    TopicVector.objects.update(model="another model of the same width")
    answer = agent.query("harbour")["candidates"]
    assert [candidate["topic_id"] for candidate in answer] == [coffee]
    assert answer[0]["similarity"] is None
    call_command("reembed", stdout=StringIO())
    assert {candidate["topic_id"] for candidate in agent.query("harbour")["candidates"]} == {tea, coffee}
    assert set(TopicVector.objects.values_list("model", flat=True)) == {"instant"}
