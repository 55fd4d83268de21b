"""A sentence is divided into its facts, and without one of them it still says all the others."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.text.clauses import clause_removed, clauses_split

SUBJECTS = ["Anna", "Ben Holm", "My sister", "The server"]
SAID = [
    "lives in Oslo",
    "works at Telenor",
    "plays chess",
    "drives a Volvo",
    "speaks Finnish",
    "has two cats",
    "was born in 1980",
    "owns a boat",
]
OPEN = st.sampled_from(
    [
        "Anna",
        "Ben",
        "she",
        "his",
        "the",
        "a",
        "dog",
        "lives",
        "works",
        "is",
        "was",
        "are",
        "red",
        "vegan",
        "not",
        "and",
        "but",
        ",",
        "who",
        "which",
        ";",
        "while",
        "in",
        "at",
        "Oslo",
        "tea",
        "coffee",
        "never",
        "eats",
        "7",
        "both",
        "between",
        "where",
        "likes",
        "to",
        "swim",
        "'s",
        "plus",
    ]
)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Anna lives in Oslo and works at Telenor.", ["Anna lives in Oslo.", "Anna works at Telenor."]),
        ("Anna is vegan but Ben eats meat.", ["Anna is vegan.", "Ben eats meat."]),
        (
            "Anna's dentist is Dr Roe and her doctor is Dr Poe.",
            ["Anna's dentist is Dr Roe.", "Anna's doctor is Dr Poe."],
        ),
        ("Anna likes tea and coffee.", ["Anna likes tea.", "Anna likes coffee."]),
        ("Anna eats fish and never eats meat.", ["Anna eats fish.", "Anna never eats meat."]),
        ("Anna eats fish but rarely eats meat.", ["Anna eats fish.", "Anna rarely eats meat."]),
        ("Anna lives in Oslo and now Ben works at Acme.", ["Anna lives in Oslo.", "Now Ben works at Acme."]),
    ],
)
def test_each_fact_of_a_sentence_is_said_by_itself(sentence: str, facts: list[str]) -> None:
    assert [clause.text for clause in clauses_split(sentence)] == facts


@pytest.mark.parametrize(
    "sentence",
    [
        "Anna lives in Oslo.",
        "The train runs between Rome and Paris.",
        "Anna likes both tea and coffee.",
        "Bread and butter is cheap.",
        "In August we drove to Bled and camped there.",
        "Roast the peppers and peel them.",
        "Anna lebt in Oslo und arbeitet bei Telenor.",
        "",
        "and",
        "Oslo",
    ],
)
def test_what_belongs_together_or_is_not_plain_stays_one_fact(sentence: str) -> None:
    (whole,) = clauses_split(sentence)
    assert whole.text == sentence.strip()
    assert clause_removed(sentence, (whole,), 0) == ""


@pytest.mark.parametrize(
    ("sentence", "gone", "left"),
    [
        ("Anna lives in Oslo and works at Telenor and plays chess.", 1, "Anna lives in Oslo. Anna plays chess."),
        ("Anna lives in Oslo and Ben works at Telenor and plays chess.", 1, "Anna lives in Oslo. Ben plays chess."),
        ("Anna lives in Oslo and Ben works at Telenor and plays chess.", 0, "Ben works at Telenor. Ben plays chess."),
        ("Anna lives in Oslo, works at Telenor, and plays chess.", 2, "Anna lives in Oslo, works at Telenor."),
    ],
)
def test_what_stays_is_still_said_of_the_same_subject(sentence: str, gone: int, left: str) -> None:
    assert clause_removed(sentence, clauses_split(sentence), gone) == left


@settings(max_examples=150)
@given(
    subject=st.sampled_from(SUBJECTS),
    said=st.lists(st.sampled_from(SAID), min_size=2, max_size=3, unique=True),
    gone=st.integers(0, 2),
)
def test_without_one_fact_all_others_are_still_said_and_it_is_not(subject: str, said: list[str], gone: int) -> None:
    gone %= len(said)
    sentence = f"{subject} {', '.join(said[:-1])}{',' if len(said) > 2 else ''} and {said[-1]}."
    clauses = clauses_split(sentence)
    assert [clause.text for clause in clauses] == [f"{subject} {each}." for each in said]
    left = clause_removed(sentence, clauses, gone)
    assert said[gone] not in left
    assert all(each in left for at, each in enumerate(said) if at != gone)
    assert left.startswith(subject)


@settings(max_examples=400)
@given(st.lists(OPEN, max_size=14).map(" ".join))
def test_no_word_is_lost_that_does_not_go_with_its_fact(sentence: str) -> None:
    clauses = clauses_split(sentence)
    joining = {"and", "but", "while", "whereas", "although", "though", "yet", "plus", "who", "which", "s"}
    changing = {"are", "was", "is", "she", "his", "her", "their", "its"}
    for at, clause in enumerate(clauses):
        left = clause_removed(sentence, clauses, at)
        lost = words(sentence) - words(left) - words(clause.text) - joining - changing
        # "live" becomes "lives" where one of two is left.
        assert not {word for word in lost if f"{word}s" not in words(left)}, (clause.text, left)
