"""Two names are one where a text says so, and nowhere else."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.text.aliases import aliases_find


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Robert, also known as Bob, sings.", ("Robert", "Bob")),
        ("Bob is short for Robert.", ("Bob", "Robert")),
        ("Robert and Bob are the same person.", ("Robert", "Bob")),
        ("JK = Jan Kok", ("JK", "Jan Kok")),
        ("Robert's nickname is Bob.", ("Robert", "Bob")),
        ("Rob goes by “Bobby”.", ("Rob", "Bobby")),
        ("Anna Holm, née Berg, sings.", ("Anna Holm", "Berg")),
        ("The server quail is also known as db-7.", ("quail", "db-7")),
        ("Samir (سمير) called.", ("Samir", "سمير")),
        ("The Latin spelling of Дмитрий is Dmitry.", ("Дмитрий", "Dmitry")),
    ],
)
def test_a_text_says_that_two_names_are_one(text: str, pair: tuple[str, str]) -> None:
    assert aliases_find(text) == [pair]


@pytest.mark.parametrize(
    "text",
    [
        "Robert likes Bob.",
        "Robert and Bob are here.",
        "Ann (Berlin) called.",
        "Robert met Bob, known as a joker.",
        "The result is the same as yesterday.",
        "Robert knows Bob.",
        "a = b",
        "",
    ],
)
def test_two_names_in_one_text_are_two(text: str) -> None:
    assert aliases_find(text) == []


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["Ann ", "Bob ", "also known as ", "= ", "(", ")", "“", "”", "سمير ", "is ", "the same as "]
            ),
            st.text(max_size=6),
        ),
        max_size=20,
    ).map("".join)
)
def test_both_names_of_a_pair_stand_in_the_text(text: str) -> None:
    plain = " ".join(text.split())
    for one, other in aliases_find(text):
        assert one
        assert other
        assert one.casefold() != other.casefold()
        assert " ".join(one.split()) in plain
        assert " ".join(other.split()) in plain


@pytest.mark.parametrize(
    "piece", ["A ", "Ann Bob ", "also known as ", "A = ", "(((", "Ann's ", "Ann, also ", "the name of ", "“Ann ", "А "]
)
def test_no_text_takes_long_to_read(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    begun = time.process_time()
    aliases_find(text)
    half = time.process_time() - begun
    # Not a matter of speed but of growth: what is quadratic takes minutes here.
    assert half < 30
