"""Codes in any spelling, and the words that texts are compared by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.codes import codes_find
from memory.text.stems import numbers, same_text, stems, subject
from memory.text.word_lists import CALENDAR, FUNCTION

# "but 437" is no code: a word of grammar is none.
WORDS = st.text("abcdefghkpqrstuvwxz", min_size=3, max_size=6).filter(lambda word: word not in FUNCTION | CALENDAR)
SEPARATORS = st.sampled_from(["-", "_", " ", ""])


@given(WORDS, st.integers(1, 9_999), SEPARATORS, SEPARATORS)
def test_a_code_is_one_in_any_spelling_and_no_other(word: str, number: int, one: str, other: str) -> None:
    mine, theirs = codes_find(f"{word}{one}{number}"), codes_find(f"{word.upper()}{other}{number}")
    assert mine.keys() & theirs.keys()
    assert not mine.keys() & codes_find(f"{word}{other}{number}0").keys()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NOVA-7", "Nova 7"),
        ("invoice no. 18", "invoice #18"),
        ("max_retries", "maxRetries"),
        ("Terminal 2", "terminal2"),
    ],
)
def test_spellings_of_one_code(one: str, other: str) -> None:
    assert codes_find(one).keys() & codes_find(other).keys()


@pytest.mark.parametrize(
    ("one", "other"), [("INV-100-2", "INV-1002"), ("TKT-9", "TKT-90"), ("the 5th of May", "the 6th of May")]
)
def test_what_is_no_spelling_of_the_same_code(one: str, other: str) -> None:
    assert not codes_find(one).keys() & codes_find(other).keys()


def test_words_are_compared_by_stem_number_and_subject() -> None:
    assert set(stems("The meetings were moved")) & set(stems("moving the meeting"))
    assert numbers("three of 04 at 9:30") == {"3", "4", "9:30", "9"}
    assert same_text("The Café is closed.", "cafe is closed")
    assert subject("Anna's sister lives in Oslo") == frozenset(stems("Anna sister"))
    assert subject("安娜住在奥斯陆") is None
