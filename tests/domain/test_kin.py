"""Whom a sentence is about beside the person it names."""

import pytest

from memory.domain.reading.kin import kin_of


@pytest.mark.parametrize(
    ("text", "kin"),
    [
        ("Maria's sister lives in Rome.", {"sister"}),
        ("My boss's wife sings.", {"boss", "wife"}),
        ("The dog of Ben sleeps.", {"dog"}),
        ("Ben's cats are asleep.", {"cat"}),
        ("Maria's sister", {"sister"}),
        ("сестра Анны живёт в Омске", {"сестра"}),
        ("王伟的妹妹", {"妹妹"}),
    ],
)
def test_kin_in_the_subject_is_told(text: str, kin: set[str]) -> None:
    assert kin_of(text) == kin


@pytest.mark.parametrize(
    "text", ["Maria lives in Rome.", "Maria lives with her sister.", "Maria visits Ben's dog.", ""]
)
def test_kin_elsewhere_in_a_sentence_makes_it_nobody_elses(text: str) -> None:
    assert kin_of(text) == frozenset()
