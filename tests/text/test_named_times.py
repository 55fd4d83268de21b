"""The times that questions name, in ten languages."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.named_times import NamedTimes, times_named

FRIDAY = dt.date(2026, 11, 27)
CASES = [
    line.split("\t")
    for line in Path(__file__).with_name("named_times.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
LANGUAGES = sorted({language.lstrip("!") for language, *_rest in CASES})


def days(named: NamedTimes) -> list[tuple[str, str]]:
    """Return the first and the last day of each time in its most likely meaning."""
    return [
        (str(time.spans[0].begin), str(time.spans[0].end - dt.timedelta(days=1)))
        if time.spans
        else ("", str(time.edge))
        for time in named.times
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_cases_of_each_language(language: str) -> None:
    assert len([case for case in CASES if case[0].lstrip("!") == language]) == 20
    for _language, first, last, question in (case for case in CASES if case[0] == language):
        expected = [] if first == "-" else [(first, last)]
        assert days(times_named(question, today=FRIDAY)) == expected, question


def test_a_day_without_a_year_may_be_of_an_earlier_year() -> None:
    (time,) = times_named("What did we say on April 27th?", today=FRIDAY).times
    assert [span.begin.isoformat() for span in time.spans[:3]] == ["2026-04-27", "2025-04-27", "2024-04-27"]
    (leap,) = times_named("am 29. Februar", today=FRIDAY).times
    assert [span.begin.year for span in leap.spans] == [2024, 2020, 2016]


@pytest.mark.parametrize(
    ("question", "edge"),
    [
        ("What was our first conversation about?", "first"),
        ("Worum ging es in unserem letzten Gespräch?", "latest"),
        ("我们第一次聊天聊了什么？", "first"),
        ("¿De qué trató nuestra última conversación?", "latest"),
        ("my first car", ""),
    ],
)
def test_the_first_and_the_latest_conversation(question: str, edge: str) -> None:
    assert [time.edge for time in times_named(question, today=FRIDAY).times] == ([edge] if edge else [])


def test_several_times_and_the_rest_of_the_question() -> None:
    named = times_named("Was it on May 2nd or on 2026-03-01 that I bought the lamp?", today=FRIDAY)
    assert sorted(days(named)) == [("2026-03-01", "2026-03-01"), ("2026-05-02", "2026-05-02")]
    assert "lamp" in named.rest
    assert "may" not in named.rest


@pytest.mark.parametrize("today", [dt.date.min, FRIDAY, dt.date.max])
@pytest.mark.parametrize(
    "question",
    [
        "in April 3000 years ago",
        "on Monday",
        "in May",
        "9999 days ago",
        "today",
        "last week",
        "two months ago",
        "2024-12",
    ],
)
def test_a_time_outside_the_calendar_is_not_read(question: str, today: dt.date) -> None:
    for time in times_named(question, today=today).times:
        assert all(span.begin < span.end for span in time.spans)


@given(st.text(max_size=200), st.dates())
def test_no_text_and_no_day_fails(text: str, today: dt.date) -> None:
    for time in times_named(text, today=today).times:
        assert all(span.begin < span.end for span in time.spans)
