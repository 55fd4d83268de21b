"""Every notation of an identifier has a common key, another identifier has none, and keys are found where they are."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.text.keys import MAX_KEY, dates_of, keys_certain, keys_index, keys_of, keys_placed
from memory.text.word_lists import FUNCTION
from tests.text.spellings import APART, AROUND, NOTATIONS

WORDS = st.text("abcdefghkpqrstuvwxz", min_size=3, max_size=6).filter(lambda word: word not in FUNCTION)
SEPARATORS = st.sampled_from(["-", "_", " ", ""])
PIECES = st.sampled_from([each for notations in NOTATIONS for each in notations])


def test_all_notations_of_an_identifier_have_a_common_key() -> None:
    pairs = [pair for notations in NOTATIONS for pair in itertools.combinations(notations, 2)]
    assert [pair for pair in pairs if not set.intersection(*map(keys_index, pair))] == []


@pytest.mark.parametrize("around", ["{}", "Ask about {} today.", "「{}」"])
def test_two_identifiers_are_never_the_same(around: str) -> None:
    pairs = [(around.format(one), around.format(other)) for one, other in APART]
    pairs += [pair[::-1] for pair in pairs]
    assert [pair for pair in pairs if keys_certain(pair[0]).keys() & keys_index(pair[1])] == []


@given(WORDS, st.integers(10, 9_999), SEPARATORS, SEPARATORS)
def test_a_code_is_the_same_with_any_separator_and_no_other_number(
    word: str, number: int, one: str, other: str
) -> None:
    mine = keys_index(f"{word}{one}{number}")
    assert mine & keys_index(f"{word.upper()}{other}{number}")
    assert not mine & keys_index(f"{word}{other}{number}0")


def test_the_text_around_an_identifier_is_not_part_of_it() -> None:
    for around, notations in itertools.product(AROUND, NOTATIONS):
        text = around.format(notations[0])
        places = [(start, end) for key, start, end in keys_placed(text) if key in keys_index(notations[0])]
        found = [text[start:end].strip("\u200b") for start, end in places]
        assert found, text
        assert all(notations[0].strip("<>[](){}'") in part or part in notations[0] for part in found), text


def test_every_occurrence_is_found() -> None:
    text = "Ｋ（at）x.io, k (at) x (dot) io; KX-8841 and kx 8841"
    assert [text[start:end] for key, start, end in keys_placed(text) if key == "key:k@x.io"] == [
        "Ｋ（at）x.io",
        "k (at) x (dot) io",
    ]
    assert [text[start:end] for key, start, end in keys_placed(text) if key == "key:kx8841"] == ["KX-8841", "kx 8841"]


@pytest.mark.parametrize(
    "text",
    [
        "He has two cats, and either/or is fine, i.e. a drink.",
        "It ended.So we left, Mr. Smith vs. Mrs. Jones",
        "Q&A, R&D, C# and F#, AC/DC, well-known, long-term, Jean-Luc",
        "Order 3 pizzas for 8 people, a 30-day trial in the 1990s, in 2023-2024",
        "the 5th floor, a 24/7 hotline, 10 km in 50 minutes, 10.5 km, 500mg",
    ],
)
def test_plain_words_and_measures_identify_nothing(text: str) -> None:
    assert keys_certain(text) == {}


def test_a_date_with_a_day_and_a_month_below_13_has_two_readings() -> None:
    assert dates_of("on 03/04/2024").keys() == dates_of("3 April 2024").keys() | dates_of("March 4, 2024").keys()
    assert not dates_of("3 April 2024").keys() & dates_of("March 4, 2024").keys()


@given(st.text(max_size=120))
@example("\ue000a@x.io\ue000")
@example("ı mınute 5 mıllıon ſeptember 3")
@example("a\u0301@x.io \u200b10.0.0.1\u200b")
@example("ﬁ-1234 (at) ½kx-88 ann at ﬁ dot com")
def test_any_text_can_be_read_and_places_are_right(text: str) -> None:
    for key, start, end in keys_placed(text):
        assert 0 <= start < end <= len(text)
        assert len(key) <= MAX_KEY + 4
    assert keys_certain(text).keys() <= keys_of(text).keys()


@given(st.lists(PIECES, min_size=1, max_size=4), st.sampled_from([", ", "; ", "\n", " | "]))
def test_identifiers_side_by_side_are_all_found(pieces: list[str], between: str) -> None:
    found = keys_index(between.join(pieces))
    assert [piece for piece in pieces if not found & keys_index(piece)] == []


def test_a_very_long_key_fits_the_index() -> None:
    address = "https://x.io/" + "a" * 5_000
    assert max(map(len, keys_index(address))) <= MAX_KEY
    assert keys_index(address) & keys_index(address.upper())
    assert not keys_index(address) & keys_index(address + "b")
