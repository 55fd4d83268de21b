"""Pronouns in words where the text leaves no choice, and left alone where it does."""

import pytest

from memory.domain.reading.pronouns import Context, pronouns_resolve

Line = str | tuple[str, str]


def told(*lines: Line, speakers: tuple[str, ...] = ()) -> list[str]:
    context = Context(frozenset(speakers))
    return [
        pronouns_resolve(line, context=context) if isinstance(line, str)
        else pronouns_resolve(line[1], context=context, speaker=line[0])
        for line in lines
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "statement", "expected"),
    [
        ("Anna Berg lives in Oslo.", "She works at Telenor.", "Anna Berg works at Telenor."),
        ("Anna lives in Oslo.", "Her dog is called Rex.", "Anna's dog is called Rex."),
        ("Anna lives in Oslo.", "Bob met her in May.", "Bob met Anna in May."),
        ("Anna met Bob.", "He lives in Rome.", "Bob lives in Rome."),
        ("Xilo moved to Rome.", "He's a nurse.", "Xilo is a nurse."),
        ("My sister is a nurse.", "She's been in Rome.", "My sister has been in Rome."),
        ("Anna and Bob got married.", "They live in Rome.", "Anna and Bob live in Rome."),
        ("Telenor is a Norwegian company.", "It has 15,000 employees.", "Telenor has 15,000 employees."),
    ],
)
def test_one_antecedent_that_fits_takes_the_place_of_its_pronoun(before: str, statement: str, expected: str) -> None:
    assert told(before, statement)[1] == expected


@pytest.mark.parametrize(
    ("before", "statement"),
    [
        ("Anna met Lisa.", "She is nice."),
        ("Anna called her mother.", "She was ill."),
        ("Anna lives in Oslo.", "He is tall."),
        ("The house is in Oslo.", "It is old."),
        ("Oslo is cold.", "She left."),
        ("Anna lives in Oslo.", "Lisa says she is ill."),
        ("Anna lives in Oslo.", "Everyone likes her."),
        ("The dogs bark.", "They are loud."),
    ],
)
def test_where_two_would_fit_or_nobody_nothing_is_guessed(before: str, statement: str) -> None:
    assert told(before, statement)[1] == statement


def test_an_antecedent_is_forgotten_after_three_statements() -> None:
    lines = told("Anna lives in Oslo.", "It rains.", "It snows.", "It is cold.", "She works.")
    assert lines[-1] == "She works."


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("I live in Oslo.", "Anna lives in Oslo."),
        ("I'm vegan.", "Anna is vegan."),
        ("I've been to Rome.", "Anna has been to Rome."),
        ("I'd love to go.", "Anna would love to go."),
        ("I'd been ill.", "Anna had been ill."),
        ("I really don't like my job.", "Anna really doesn't like her job."),
        ("I went to Rome and I hurt myself.", "Anna went to Rome and she hurt herself."),
        ("Tom and I are married.", "Tom and Anna are married."),
        ("She told me about it.", "She told Anna about it."),
        ("I love that it teaches me.", "Anna loves that it teaches her."),
        ("I met Lisa and I like her.", "Anna met Lisa and Anna likes her."),
        ("You're a nurse.", "Bob is a nurse."),
        ("I can help you move.", "Anna can help Bob move."),
        ("Your sister called me.", "Bob's sister called Anna."),
        ('Tom said "I hate it".', 'Tom said "I hate it".'),
        ("World War I ended.", "World War I ended."),
        ("You can feel it when you are here.", "You can feel it when you are here."),
        ("We went to Rome.", "We went to Rome."),
    ],
)
def test_in_a_conversation_i_and_you_are_the_speakers(statement: str, expected: str) -> None:
    assert told(("Anna", statement), speakers=("Anna", "Bob")) == [expected]


def test_with_three_speakers_you_is_nobody_in_particular() -> None:
    assert told(("Anna", "You are late."), speakers=("Anna", "Bob", "Carla")) == ["You are late."]


def test_a_speaker_is_nobodys_she() -> None:
    assert told(("Anna", "I live in Oslo."), ("Bob", "She is nice."), speakers=("Anna", "Bob"))[1] == "She is nice."


def test_other_languages_pass_through_unchanged() -> None:
    lines = ["Anna wohnt in Oslo.", "Sie arbeitet dort.", "彼女は東京に住んでいる。"]
    assert told(*lines) == lines
