"""What a word weighs for a key that is bound to a scope depends on the topics of that scope alone."""

from typing import Any

import pytest
from django.db import connection

from memory.recall import probe
from tests.cast import Caller, Cast, worker_turn

OWN = 60
QUESTION = "methotrexate lisinopril"


@pytest.fixture
def few_are_many(cast: Cast, settings: Any) -> None:
    """A scope of more than some topics is a large one."""
    cast.operator.put("/v1/policies/", {"values": {"recall_exact_below": 10}, "reason": "a test"}).ok()


def filled(caller: Caller, number: int) -> None:
    items = [{"placement": "new_topic", "title": f"Note {at} about the garden"} for at in range(number)]
    caller.post("/v1/ingest/batch", items).ok()


def scores(caller: Caller, question: str = QUESTION) -> dict[str, float]:
    """Return what each candidate got for its words, by title. The other candidates come from an approximate index."""
    found = caller.query(question, explain=True)["candidates"]
    words = {each["title"]: each["score_parts"]["own_words"] for each in found}
    return {title: score for title, score in words.items() if score}


@pytest.mark.usefixtures("few_are_many")
def test_the_scores_of_a_bound_key_do_not_change_with_what_others_say(cast: Cast) -> None:
    filled(cast.alice, OWN)
    cast.alice.remember("methotrexate on Mondays")
    cast.alice.remember("lisinopril in the evening")
    worker_turn()
    before = scores(cast.alice)
    assert set(before) == {"methotrexate on Mondays", "lisinopril in the evening"}
    for at in range(6):
        cast.stranger.remember(f"methotrexate {at}")
    filled(cast.stranger, 30)
    worker_turn()
    assert scores(cast.alice) == before


@pytest.mark.usefixtures("few_are_many")
def test_a_long_question_keeps_words_by_the_topics_of_the_scope(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "MAX_WORDS", 2)
    for word in ("methotrexate", "lisinopril", "aspirin"):
        cast.alice.remember(f"{word} tablets")
    cast.alice.remember("aspirin again")
    worker_turn()
    before = scores(cast.alice, f"{QUESTION} aspirin")
    for at in range(4):
        cast.stranger.remember(f"methotrexate lisinopril {at}")
    worker_turn()
    assert scores(cast.alice, f"{QUESTION} aspirin") == before


@pytest.mark.usefixtures("few_are_many")
def test_rare_words_of_a_large_scope_weigh_more(cast: Cast) -> None:
    filled(cast.alice, OWN)
    rare = cast.alice.remember("Quetzal")
    assert cast.alice.found("garden quetzal")[0] == rare


def test_words_with_signs_of_queries_are_counted(cast: Cast) -> None:
    filled(cast.alice, OWN)
    for q in ("o'clock it''s", "back\\slash a\\'b", "x:* & !y | (z)", "http://a.b/c'd?e=f"):
        cast.alice.remember(q)
    with connection.cursor():
        for q in ("o'clock it''s", "back\\slash a\\'b", "x:* & !y | (z)", "http://a.b/c'd?e=f"):
            assert cast.alice.query(q)["candidates"], q
