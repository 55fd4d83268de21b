"""Cursors: what a list hands out it reads again, and anything else is refused with one sentence."""

import base64
import datetime as dt

import pytest

from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.core.errors import ValueRefused
from tests.cast import raises_code

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


def packed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def test_a_cursor_comes_back_as_it_was_made() -> None:
    cursor = cursor_make(NOON, "Ümläute \U0001f375 / \\", 7)
    assert cursor_parse(cursor, cursor_time, str, cursor_number) == [NOON, "Ümläute \U0001f375 / \\", 7]


def test_a_title_of_a_thousand_letters_makes_an_address_that_servers_take() -> None:
    cursor = cursor_make("\U0001f375" * 1000, "01991f3a-0000-7000-8000-000000000001")
    assert len(cursor) < 6000
    assert cursor_parse(cursor, str, str)[0] == "\U0001f375" * 1000


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "!!!!",
        "\ud800",
        "\x00",
        packed(""),
        packed("7"),
        packed("null"),
        packed("{}"),
        packed('{"a": "b"}'),
        packed("[" * 3000),
        packed("[" * 1_000_000),
        packed("[1e999]"),
        packed("[7]"),
        packed("[[]]"),
        packed('["a", "b"]'),
        packed('["\\u0000"]'),
        packed('["\\ud800"]'),
    ],
)
def test_anything_else_is_refused(cursor: str) -> None:
    for reader in (str, cursor_time, cursor_number):
        with raises_code(ValueRefused, "invalid-cursor"):
            cursor_parse(cursor, reader)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "noon"])
def test_moments_that_no_clock_shows_are_refused(moment: str) -> None:
    with pytest.raises(ValueRefused):
        cursor_parse(cursor_make(moment), cursor_time)


def test_numbers_that_no_row_has_are_refused() -> None:
    assert cursor_parse(cursor_make(-(2**63)), cursor_number) == [-(2**63)]
    with pytest.raises(ValueRefused):
        cursor_parse(cursor_make(2**63), cursor_number)
