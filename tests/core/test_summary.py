"""What older values amount to: from their own words, within bounds, and the same every time."""

import datetime as dt
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.summary import MAX_SUMMARY, DatedValue, date_words, values_summarize


def on(day: str, text: str) -> DatedValue:
    return DatedValue(text, dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC))


def test_short_values_are_listed_with_their_dates() -> None:
    assert (
        values_summarize([on("2026-01-02", "Lisbon"), on("2026-03-14", "Porto")])
        == "Lisbon (2 Jan 2026), then Porto (14 Mar 2026)"
    )


def test_a_value_that_was_only_written_again_is_reported_once_with_its_first_date() -> None:
    days = [on("2026-01-02", "Lisbon"), on("2026-02-01", " Lisbon "), on("2026-03-14", "Porto")]
    assert values_summarize([*days, on("2026-04-01", "Lisbon")]) == (
        "Lisbon (2 Jan 2026), then Porto (14 Mar 2026), then Lisbon (1 Apr 2026)"
    )


def test_an_empty_value_is_reported_as_nothing() -> None:
    assert values_summarize([on("2026-01-02", "Lisbon"), on("2026-03-14", "")]).endswith("then nothing (14 Mar 2026)")


def test_no_values_are_no_summary() -> None:
    assert values_summarize([]) == ""


def test_where_not_all_fit_the_first_and_the_last_ones_stay_and_the_others_are_counted() -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    summary = values_summarize([DatedValue(f"city number {n}", start + dt.timedelta(days=n)) for n in range(200)])
    assert summary.startswith("city number 0 (1 Jan 2026), then ")
    assert summary.endswith("then city number 199 (19 Jul 2026)")
    got = len(re.findall(r"city number", summary))
    match = re.search(r"then (\d+) other values,", summary)
    assert match is not None
    assert got + int(match.group(1)) == 200
    # As many as fit: one more would not.
    assert MAX_SUMMARY - 40 < len(summary) <= MAX_SUMMARY


def test_a_list_goes_on_from_an_earlier_list() -> None:
    first = values_summarize([on("2026-01-02", "Lisbon"), on("2026-03-14", "Porto")])
    later = [on("2026-04-01", "Porto"), on("2026-05-05", "Berlin")]
    assert values_summarize(later, earlier=first) == (
        "Lisbon (2 Jan 2026), then Porto (14 Mar 2026), then Berlin (5 May 2026)"
    )


def test_what_an_earlier_list_left_out_is_still_counted() -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    days = [DatedValue(f"city number {n}", start + dt.timedelta(days=n)) for n in range(300)]
    summary = values_summarize(days[200:], earlier=values_summarize(days[:200]))
    match = re.search(r"then (\d+) other values,", summary)
    assert match is not None
    assert len(re.findall("city number", summary)) + int(match.group(1)) == 300


def test_an_earlier_summary_in_prose_comes_first() -> None:
    summary = values_summarize([on("2026-05-05", "Berlin")], earlier="She lived in Lisbon and later in Porto.")
    assert summary == "She lived in Lisbon and later in Porto. 5 May 2026: Berlin"


LONG = (
    "The team meets every Monday at nine in the small room. "
    "The team meets every Monday. "
    "Deployments need two approvals since the outage in Frankfurt. "
    "The team meets in the small room."
)


def test_of_long_texts_the_sentences_stay_that_say_something_new_in_their_order() -> None:
    later = LONG.replace("two approvals", "three approvals")
    assert values_summarize([on("2026-01-02", LONG), on("2026-02-03", later)]) == (
        "2 Jan 2026: The team meets every Monday at nine in the small room. "
        "Deployments need two approvals since the outage in Frankfurt. "
        "3 Feb 2026: Deployments need three approvals since the outage in Frankfurt."
    )


def test_a_number_alone_is_new() -> None:
    text = "The rent of the flat in the old town by the river is {} euros a month, heating and water not included."
    summary = values_summarize([on("2026-01-02", text.format(900)), on("2026-02-03", text.format(950))])
    assert "900" in summary
    assert "950" in summary


def test_texts_without_spaces_between_words_are_reported_too() -> None:
    text = "彼女はリスボンに住んでいます。" * 3 + "来年はポルトへ引っ越す予定です。" + "仕事は図書館の司書です。" * 5
    summary = values_summarize([on("2026-01-02", text)])
    assert summary == (
        "2 Jan 2026: 彼女はリスボンに住んでいます。 来年はポルトへ引っ越す予定です。 仕事は図書館の司書です。"
    )


def test_text_without_whole_words_is_summarized_by_its_length() -> None:
    assert values_summarize([on("2026-01-02", "x" * 5000)]) == "5,000 characters that cannot be summarized"


def test_many_long_texts_are_summarized_from_all_over() -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    texts = [DatedValue(f"word{n} " * 40, start + dt.timedelta(hours=n)) for n in range(3000)]
    assert 0 < len(values_summarize(texts)) <= MAX_SUMMARY


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2 Jan 2026"),
        (dt.datetime(2026, 12, 31, 23, 30, tzinfo=dt.timezone(dt.timedelta(hours=-2))), "1 Jan 2027"),
    ],
)
def test_dates_are_reported_in_utc(at: dt.datetime, words: str) -> None:
    assert date_words(at) == words


moments = st.integers(86_400, 4_000_000_000).map(lambda seconds: dt.datetime.fromtimestamp(seconds, dt.UTC))
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=120),
    st.lists(
        st.sampled_from(["tea", "coffee.", "Monday", "42", "2026,", "Lisbon!", "of", "the", "引っ越す。", "naïve"]),
        max_size=200,
    ).map(" ".join),
    st.just("y" * 700),
)
values = st.lists(st.builds(DatedValue, texts, moments), max_size=30)


@given(values, st.one_of(st.none(), texts))
def test_a_summary_is_bounded_and_the_same_every_time_and_cuts_no_word(
    values: list[DatedValue], earlier: str | None
) -> None:
    summary = values_summarize(values, earlier=earlier)
    assert len(summary) <= MAX_SUMMARY
    assert summary == values_summarize(list(values), earlier=earlier)
    assert summary == " ".join(summary.split())
    spoken = " ".join([earlier or "", *(value.text for value in values)])
    # Japanese sentences are parted where the original has no space.
    own = set(spoken.split()) | set(re.sub(r"(?<=[。！？])", " ", spoken).split())
    about = {"then", "nothing", "other", "values", "value", "characters", "that", "cannot", "be", "summarized"}
    for word in summary.split():
        bare = word.rstrip(",:")
        date = re.fullmatch(r"\(?\d{1,2}|[A-Z][a-z]{2}|\d{4}\)?|[\d,]+", bare)
        assert word in own or bare in own or bare.rstrip(")") in own or date or bare in about, word


@given(values, values)
def test_a_summary_of_a_summary_is_within_the_same_bounds(first: list[DatedValue], second: list[DatedValue]) -> None:
    assert len(values_summarize(second, earlier=values_summarize(first))) <= MAX_SUMMARY
