"""Questions that name a time, and the filters by time of creation."""

from typing import Any
from urllib.parse import quote

import pytest

from memory.core.policy_values import Knobs
from memory.models import AccessLog
from tests.cast import Caller

pytestmark = pytest.mark.django_db

FRIDAY = "2026-11-27T12:00:00Z"


@pytest.fixture(params=[100_000, 0], ids=["exact", "index"])
def _searched(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.MEMSTATE_KNOBS = {"recall_exact_below": request.param}


def diary(operator: Caller, days: dict[str, str], **more: Any) -> dict[str, str]:
    """Store a text for each day; return the ids by day."""
    return {
        day: operator.remember("", summary=text, created_at=f"{day}T18:30:00Z", **more) for day, text in days.items()
    }


WALKS = {
    "2026-05-01": "We talked about the lake and the weather at breakfast.",
    "2026-05-02": "The weather was mild and we talked about a walk to the mill.",
    "2026-05-03": "We talked about the weather, the mill and the wind.",
    "2026-11-25": "We talked about the weather and a broken lamp.",
    "2026-11-26": "We talked about rain, the weather and the garden.",
}


@pytest.mark.usefixtures("_searched")
@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("What did we talk about on May 2nd?", "2026-05-02"),
        ("Worüber haben wir gestern gesprochen?", "2026-11-26"),
        ("5月3号我们聊了什么？", "2026-05-03"),
        ("What was our first conversation about?", "2026-05-01"),
        ("What about the weather in our latest conversation?", "2026-11-26"),
        ("weather two days ago", "2026-11-25"),
    ],
)
def test_a_question_about_a_day_finds_that_day(operator: Caller, question: str, day: str) -> None:
    ids = diary(operator, WALKS)
    found = operator.query(question, asked_at=FRIDAY, explain=True)["candidates"]
    assert found[0]["topic_id"] == ids[day]
    assert found[0]["score_parts"]["time"] > 0
    # A time never excludes topics.
    assert {each["topic_id"] for each in found} == set(ids.values())
    assert all(each["score_parts"]["time"] == 0 for each in found[1:])
    assert sum(value for name, value in found[0]["score_parts"].items() if name != "decay") == pytest.approx(
        found[0]["score"], abs=1e-5
    )


@pytest.mark.meaning
def test_a_covered_day_reaches_the_floor_and_another_day_does_not(operator: Caller) -> None:
    ids = diary(operator, WALKS)
    found = operator.query("What did we say about the walk to the mill on May 2nd?", asked_at=FRIDAY)["candidates"]
    floor = Knobs().reinforce_min_relevance
    assert [each["topic_id"] for each in found if each["relevance"] >= floor] == [ids["2026-05-02"]]


@pytest.mark.usefixtures("_searched")
def test_a_day_without_a_year_is_the_latest_one_with_memories(operator: Caller) -> None:
    ids = diary(operator, {"2023-05-02": "A walk", "2024-05-02": "A swim", "2025-05-03": "A flight"})
    found = operator.query("What happened on May 2nd?", asked_at=FRIDAY, explain=True)["candidates"]
    assert {each["topic_id"] for each in found if each["score_parts"]["time"]} == {ids["2024-05-02"]}


@pytest.mark.usefixtures("_searched")
def test_a_date_in_a_field_counts_as_long_as_it_is_the_current_value(operator: Caller) -> None:
    dentist = operator.remember("Dentist", fields=[{"name": "on", "field_type": "date", "value": "2026-12-03"}])
    operator.remember("Barber", fields=[{"name": "on", "field_type": "date", "value": "2026-12-10"}])

    def of_time() -> list[str]:
        found = operator.query("What is on 2026-12-03?", asked_at=FRIDAY, explain=True)["candidates"]
        return [each["topic_id"] for each in found if each["score_parts"]["time"]]

    assert of_time() == [dentist]
    operator.ingest(
        "version_field", topic_id=dentist, fields=[{"name": "on", "field_type": "date", "value": "2026-12-04"}]
    )
    assert of_time() == []


def test_a_time_in_another_scope_says_nothing(operator: Caller) -> None:
    diary(operator, {"2026-05-02": "A walk"}, scope="/team")
    mine = operator.remember("", summary="A walk", scope="/user", created_at="2025-05-02T10:00:00Z")
    found = operator.query("A walk on May 2nd", scope="/user", asked_at=FRIDAY, explain=True)["candidates"]
    assert [(each["topic_id"], each["score_parts"]["time"] > 0) for each in found] == [(mine, True)]


@pytest.mark.meaning
def test_a_time_without_memories_does_not_lower_the_relevance(operator: Caller) -> None:
    ids = diary(operator, WALKS)
    # Nothing was stored the day before, so the lamp must be what the question is about.
    best, *_others = operator.query("the broken lamp of yesterday", asked_at="2020-02-02T00:00:00Z")["candidates"]
    assert best["topic_id"] == ids["2026-11-25"]
    assert best["relevance"] >= Knobs().reinforce_min_relevance


def test_filters_by_time_of_creation(operator: Caller) -> None:
    ids = diary(operator, WALKS)
    period = {"created_after": "2026-05-02T00:00:00Z", "created_before": "2026-11-26T18:30:00Z"}
    within = {ids[day] for day in ("2026-05-02", "2026-05-03", "2026-11-25")}
    assert set(operator.found("weather", **period)) == within
    listed = "&".join(f"{name}={quote(value)}" for name, value in period.items())
    assert {each["topic_id"] for each in operator.get(f"/v1/topics?{listed}").ok()["items"]} == within
    # Also topics that the caller names.
    assert set(operator.found("", stages=["structural"], topic_ids=list(ids.values()), **period)) == within
    assert AccessLog.objects.filter(request__created_after=period["created_after"]).exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"asked_at": "2999-01-01T00:00:00Z"},
        {"created_after": "2026-01-02T00:00:00Z", "created_before": "2026-01-02T00:00:00Z"},
    ],
)
def test_a_period_that_cannot_be_is_refused(operator: Caller, wrong: dict[str, str]) -> None:
    reply = operator.post("/v1/query", {"q": "weather", **wrong})
    assert (reply.status, reply.code) == (422, "invalid-period")
    assert not AccessLog.objects.exists()
