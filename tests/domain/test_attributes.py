"""What a sentence says of its subject, whatever words it uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.reading.attributes import WEAK, attributes_agree, attributes_of, attributes_shared

NAMES = st.frozensets(st.sampled_from(["residence", "employer", "phone", "color", *sorted(WEAK)]), max_size=3)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("where Maria lives", "Maria's home town is Madrid.", "residence"),
        ("Maria's job", "Maria works at Acme.", "employer"),
        ("my phone", "Call me on 0444 120 555.", "phone"),
        ("the deadline", "The report has to be handed in by 3 May.", "deadline"),
        ("her mother tongue", "She speaks Finnish.", "language"),
        ("what he drives", "He has a blue Volvo car.", "car"),
    ],
)
def test_other_words_for_the_same_attribute_are_told(one: str, other: str, shared: str) -> None:
    assert shared in attributes_of(one) & attributes_of(other)
    assert attributes_shared(one, other) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Maria's job", "Maria lives in Madrid."),
        ("favourite colour", "Ann's favourite food is rice."),
        ("the wifi password", "The door code is 7."),
        ("Anna's birthday", "Anna drives a Volvo."),
    ],
)
def test_another_attribute_speaks_against_a_fact(asked: str, said: str) -> None:
    assert attributes_shared(asked, said) < 0


def test_a_word_that_both_say_does_not_hide_what_is_asked_of_it() -> None:
    phone, place = "The dentist's phone is 0444 120 555.", "The dentist is located in Kiel."
    assert attributes_shared("the dentist's phone number", phone) == 1
    assert attributes_shared("how to call the dentist", phone) > attributes_shared("how to call the dentist", place)


def test_who_names_no_attribute_prefers_none() -> None:
    assert attributes_shared("Anna", "Anna lives in Oslo.") == 0
    assert attributes_of("") == frozenset()


@given(NAMES, NAMES)
def test_agreement_is_mutual_and_within_bounds(one: frozenset[str], other: frozenset[str]) -> None:
    assert attributes_agree(one, other) == attributes_agree(other, one)
    assert -1 <= attributes_agree(one, other) <= 1
    if one & other - WEAK:
        assert attributes_agree(one, other) == 1
