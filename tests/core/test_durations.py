import pytest

from memory.core.durations import MAX_SECONDS, duration_parse, duration_text, duration_words
from memory.core.errors import ValueRefused
from tests.cast import raises_code


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30d", 30 * 86_400),
        ("2w", 14 * 86_400),
        ("6m", 180 * 86_400),
        ("1y", 365 * 86_400),
        ("24h", 86_400),
        ("90s", 90),
        ("15min", 900),
        (" 7 D ", 7 * 86_400),
        ("0d", 0),
        ("1000y", MAX_SECONDS),
    ],
)
def test_a_duration_is_a_whole_number_and_a_unit(text: str, seconds: float) -> None:
    assert duration_parse(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "d", "30", "-1d", "1.5d", "1d2h", "1 month", "٣d", "1e3d", "30days", "9" * 100 + "d", "nan"]
)
def test_anything_else_is_refused(text: str) -> None:
    with raises_code(ValueRefused, "invalid-member"):
        duration_parse(text)


@pytest.mark.parametrize("text", ["1001y", "999999999999y"])
def test_more_than_a_thousand_years_is_refused(text: str) -> None:
    with raises_code(ValueRefused, "invalid-member"):
        duration_parse(text)


@pytest.mark.parametrize(
    ("seconds", "words", "stored"),
    [
        (7 * 86_400, "7 days", "7d"),
        (86_400, "1 day", "1d"),
        (3_600, "1 hour", "1h"),
        (5_400, "90 minutes", "90min"),
        (1, "1 second", 1),
        (0, "0 seconds", 0),
        (0.5, "0.5 seconds", 0.5),
        (365 * 86_400, "365 days", "365d"),
    ],
)
def test_a_duration_is_reported_in_the_largest_unit_that_fits(seconds: float, words: str, stored: str | float) -> None:
    assert duration_words(seconds) == words
    assert duration_text(seconds) == stored
    assert isinstance(stored, (int, float)) or duration_parse(stored) == seconds
