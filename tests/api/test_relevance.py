"""How far a topic answers a question: what a query tells of it, leaves out, logs and reinforces."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.models import AccessLog, Field
from tests.cast import Caller, principal_like, worker_turn

pytestmark = [pytest.mark.django_db, pytest.mark.meaning]

SAID = {
    "Rita": "Rita is allergic to shellfish and carries her tablets with her.",
    "Bicycle": "Tom repaired the gears of the green bicycle in March.",
    "Choir": "The choir sings on Thursday evenings in the old school.",
    "Garden": "Tomatoes and beans grow behind the shed.",
}
ASKED = "What is Rita allergic to?"
OTHER = ("Lisbon was late", "Kiel was full", "Oslo left early", "Porto stood still", "Graz was new")
NONSENSE = ("zxqv wrtk plomf", "boiling point of tungsten")


@pytest.fixture
def topics(agent: Caller) -> dict[str, str]:
    return {title: agent.remember(title, summary=text, values={"note": text}) for title, text in SAID.items()}


def relevances(answer: dict[str, Any]) -> dict[str, float]:
    return {each["title"]: each["relevance"] for each in answer["candidates"]}


def test_an_answer_is_relevant_and_nothing_is_for_nonsense(agent: Caller, topics: dict[str, str]) -> None:
    found = relevances(agent.query(ASKED))
    assert found["Rita"] > 0.5
    assert all(0 <= found[title] < 0.3 for title in SAID if title != "Rita")
    for question in NONSENSE:
        assert all(0 <= each < 0.3 for each in relevances(agent.query(question)).values())


@pytest.mark.parametrize("exact_below", [2000, 0])
def test_a_large_store_tells_the_same_as_a_small_one(
    agent: Caller, topics: dict[str, str], settings: Any, exact_below: int
) -> None:
    worker_turn()
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "recall_exact_below": exact_below}
    assert relevances(agent.query(ASKED))["Rita"] == pytest.approx(0.75, abs=0.1)
    assert max(relevances(agent.query(NONSENSE[0])).values()) < 0.3


def test_a_store_of_one_topic_tells_an_answer_from_nonsense(agent: Caller) -> None:
    agent.remember("Rita", summary=SAID["Rita"])
    assert relevances(agent.query(ASKED))["Rita"] > 0.5
    for question in NONSENSE:
        assert relevances(agent.query(question))["Rita"] < 0.3


@pytest.mark.parametrize("others", [0, 1, 5, 40])
def test_the_relevance_does_not_depend_on_the_number_of_topics(agent: Caller, others: int) -> None:
    agent.remember("Rita", summary="Rita is allergic to shellfish.")
    for number in range(others):
        agent.remember(f"Note {number}", summary=f"On day {number} the train to {OTHER[number % 5]}.")
    assert relevances(agent.query("Is Rita allergic to anything?"))["Rita"] >= 0.4
    assert max(relevances(agent.query(NONSENSE[1])).values()) < 0.3


def test_of_near_alike_topics_the_right_one_is_relevant(agent: Caller) -> None:
    for name, minutes in [("nova", 12), ("vega", 31), ("lyra", 7), ("rigel", 44), ("mira", 18)]:
        agent.remember(f"Backup of {name}", summary=f"The backup of {name} took {minutes} minutes.")
    found = relevances(agent.query("How long did the backup of nova take?"))
    assert found["Backup of nova"] == max(found.values())
    assert found["Backup of nova"] >= 0.3


def test_a_question_without_words_is_compared_by_meaning_and_a_topic_without_vector_by_words(
    agent: Caller, topics: dict[str, str]
) -> None:
    assert all(0 <= each <= 1 for each in relevances(agent.query("What is it?")).values())
    agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": "Lamp in the hall"}).ok()
    assert relevances(agent.query("lamp in the hall"))["Lamp in the hall"] == 1


def test_without_a_search_there_is_no_relevance(agent: Caller, topics: dict[str, str]) -> None:
    answer = agent.query("", stages=["structural"], topic_ids=[topics["Choir"]])
    assert "relevance" not in answer["candidates"][0]
    worker_turn()
    # Who names a topic wants this one: it counts whole.
    assert agent.topic(topics["Choir"])["salience"] == pytest.approx(2)


def test_min_relevance_leaves_out_what_is_below(agent: Caller, topics: dict[str, str]) -> None:
    whole = relevances(agent.query(ASKED))
    assert set(relevances(agent.query(ASKED, min_relevance=0.5))) == {"Rita"}
    assert relevances(agent.query(ASKED, min_relevance=0)) == whole
    assert agent.query(NONSENSE[0], min_relevance=0.3) == {"query": NONSENSE[0], "candidates": [], "summary_text": ""}
    got = agent.query(ASKED, min_relevance=0.5, explain=True)["explain"]
    assert (got["min_relevance"], got["reinforce_min_relevance"]) == (0.5, 0.3)
    for wrong in (-0.1, 1.1, "much", "nan"):
        assert agent.post("/v1/query", {"q": ASKED, "min_relevance": wrong}).status == 422


def test_only_what_answers_is_reinforced_and_in_proportion(agent: Caller, topics: dict[str, str]) -> None:
    for question in NONSENSE:
        agent.query(question)
    worker_turn()
    for topic_id in topics.values():
        topic = agent.topic(topic_id)
        assert (topic["retrieval_count"], topic["last_retrieved_at"]) == (0, None)
        assert topic["salience"] <= 1
    relevance = relevances(agent.query(ASKED))["Rita"]
    worker_turn()
    rita, choir = agent.topic(topics["Rita"]), agent.topic(topics["Choir"])
    assert rita["salience"] == pytest.approx(1 + relevance, abs=1e-4)
    assert rita["fields"][0]["salience"] == pytest.approx(1 + relevance, abs=1e-4)
    assert (rita["retrieval_count"], choir["retrieval_count"]) == (1, 0)
    assert choir["salience"] == pytest.approx(1, abs=1e-4)
    assert choir["fields"][0]["salience"] == pytest.approx(1, abs=1e-4)


def test_under_a_published_design_everything_counts_whole(
    agent: Caller, operator: Caller, topics: dict[str, str]
) -> None:
    operator.put("/v1/policies/", {"preset": "memstate", "reason": "as published"}).ok()
    agent.query(NONSENSE[0])
    worker_turn()
    for topic_id in topics.values():
        topic = agent.topic(topic_id)
        assert (topic["salience"], topic["retrieval_count"]) == (pytest.approx(1.1), 1)


def test_the_log_keeps_rank_score_relevance_and_what_was_cut(agent: Caller, topics: dict[str, str]) -> None:
    answer = agent.query(ASKED, top_k=2)
    row = AccessLog.objects.get()
    assert [str(each) for each in row.topic_ids] == [each["topic_id"] for each in answer["candidates"]]
    assert row.min_relevance == 0.3
    cut = {str(each) for each in row.cut_ids}
    assert cut == set(topics.values()) - {each["topic_id"] for each in answer["candidates"]}
    # With what a larger limit would have returned, in the same order.
    everything = agent.query(ASKED, top_k=4)["candidates"]
    assert [str(each) for each in (*row.topic_ids, *row.cut_ids)] == [each["topic_id"] for each in everything]
    assert row.scores == [each["score"] for each in everything]
    assert row.relevances == [each["relevance"] for each in everything]
    for limit in ({"min_relevance": 0.5}, {"token_budget": 1}):
        returned = agent.query(ASKED, **limit)["candidates"]
        row = AccessLog.objects.latest("id")
        assert len(row.topic_ids) == len(returned) == 4 - len(row.cut_ids) < 4
        measured = dict(zip(map(str, row.topic_ids + row.cut_ids), row.relevances, strict=True))
        assert measured == {each["topic_id"]: each["relevance"] for each in everything}


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({}, None),
        ({"scope": "/", "depth": 2, "explain": True, "field_names": ["note"], "top_k": 8, "as_of": None}, None),
        (
            {"kinds": ["x", "observation"], "include_archived": True},
            {"kinds": ["x", "observation"], "include_archived": True},
        ),
        ({"categories": [], "min_relevance": 0}, {"categories": [], "min_relevance": 0.0}),
        ({"as_of": "2030-01-01T00:00:00Z", "token_budget": 9}, {"as_of": "2030-01-01T00:00:00Z", "token_budget": 9}),
        ({"stages": ["semantic"], "top_k": 2}, {"stages": ["semantic"], "top_k": 2}),
    ],
)
def test_the_log_keeps_what_limits_an_answer(
    agent: Caller, topics: dict[str, str], asked: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    agent.query(ASKED, **asked)
    assert AccessLog.objects.get().request == kept


def traces_left() -> list[str]:
    """Return the tables that still hold erased content. Browser tests keep copies of the demo in other schemas of the
    same database, and the demo shares words with these topics."""
    return [trace.table for trace in erasure_verify().traces if not trace.table.startswith("kept_")]


@pytest.mark.parametrize("logged_before", [True, False])
def test_a_purge_erases_in_the_log_too(agent: Caller, topics: dict[str, str], logged_before: bool) -> None:
    agent.query(ASKED, top_k=3)
    before = AccessLog.objects.get()
    gone = [before.topic_ids[0], before.cut_ids[0]]
    if not logged_before:
        # The row of a question that was answered while the purge was running.
        AccessLog.objects.all().delete()
    topics_purge(gone, principal=principal_like("operator"), reason="asked for", now=timezone.now())
    if not logged_before:
        before.save(force_insert=True)
        worker_turn()
    row = AccessLog.objects.get()
    # The others keep their places.
    assert row.topic_ids == [None, *before.topic_ids[1:]]
    assert row.scores == [None, *before.scores[1:3], None]
    assert row.relevances == [None, *before.relevances[1:3], None]
    assert (row.cut_ids, row.query_hash) == ([None], "")
    assert row.field_ids == [each for each in before.field_ids if Field.objects.filter(pk=each).exists()]
    assert len(row.field_ids) == 2
    assert traces_left() == []
    # A second purge of the same row.
    topics_purge(before.topic_ids[1:], principal=principal_like("operator"), reason="asked for", now=timezone.now())
    row = AccessLog.objects.get()
    assert (row.topic_ids, row.scores, row.query, row.request) == ([None] * 3, [None] * 4, "", None)
    assert traces_left() == []


@pytest.mark.parametrize("logged_before", [True, False])
def test_a_purge_erases_in_the_request_too(agent: Caller, topics: dict[str, str], logged_before: bool) -> None:
    named = [topics["Choir"], topics["Rita"]]
    agent.query(ASKED, topic_ids=named, min_relevance=0.5)
    # Only the request names the topic.
    AccessLog.objects.update(cut_ids=[])
    before = AccessLog.objects.get()
    if not logged_before:
        AccessLog.objects.all().delete()
    gone = [uuid.UUID(topics["Choir"])]
    topics_purge(gone, principal=principal_like("operator"), reason="asked for", now=timezone.now())
    if not logged_before:
        before.save(force_insert=True)
        worker_turn()
    row = AccessLog.objects.get()
    assert row.request == {"topic_ids": [topics["Rita"]], "min_relevance": 0.5}
    assert (row.query, row.query_hash, list(map(str, row.topic_ids))) == (ASKED, "", [topics["Rita"]])
    assert traces_left() == []


def test_a_purge_masks_text_in_the_request(agent: Caller, topics: dict[str, str]) -> None:
    gone = agent.remember("Jana", values={"mail": "jana@lumen.example"})
    AccessLog.objects.create(
        at=timezone.now(),
        actor="x",
        scope="/",
        query=ASKED,
        query_hash="x",
        topic_ids=[],
        bump=0,
        field_bump=0,
        request={"token_budget": 5, "note": ["about jana@lumen.example"]},
    )
    topics_purge([uuid.UUID(gone)], principal=principal_like("operator"), reason="asked for", now=timezone.now())
    row = AccessLog.objects.get()
    assert row.request == {"token_budget": 5, "note": ["about [erased]"]}
    assert row.query_hash == ""


def test_what_a_purge_left_in_the_log_is_folded_and_replayed(
    agent: Caller, operator: Caller, topics: dict[str, str]
) -> None:
    agent.query(ASKED, topic_ids=[topics["Choir"], topics["Rita"]])
    agent.topic(topics["Choir"])
    now = timezone.now()
    topics_purge([uuid.UUID(topics["Choir"])], principal=principal_like("operator"), reason="asked for", now=now)
    worker_turn()
    assert agent.topic(topics["Rita"])["retrieval_count"] == 1
    days = {"start": (now - timedelta(days=1)).isoformat(), "end": (now + timedelta(seconds=1)).isoformat()}
    tried = operator.post("/v1/policies/backtest", days).ok()
    assert (tried["topics"], tried["retrievals"]) == (3, 1)
