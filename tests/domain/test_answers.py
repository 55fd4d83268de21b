"""Whether a sentence holds the kind of thing that a question asks for."""

import pytest

from memory.domain.reading.answers import answers


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("where the key is", "The key is in the drawer."),
        ("when the meeting is", "The meeting is on Monday."),
        ("when the meeting is", "The meeting is at 15:00."),
        ("how much it costs", "It costs 5 euros."),
        ("who the boss is", "The boss is Anna."),
    ],
)
def test_it_answers(question: str, sentence: str) -> None:
    assert answers(question, sentence) == 1


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("where the key is", "The key is red."),
        ("when the meeting is", "The meeting is in Oslo."),
        ("how much it costs", "It costs nothing."),
        ("who the boss is", "The boss is kind."),
    ],
)
def test_it_does_not(question: str, sentence: str) -> None:
    assert answers(question, sentence) == -1


def test_a_request_that_asks_for_no_kind_prefers_none() -> None:
    assert answers("the key", "The key is red.") == 0
    assert answers("", "") == 0
