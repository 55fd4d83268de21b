"""Whether a word that could be a name is one where it stands."""

import pytest

from memory.text.names import mentions_find
from memory.text.proper_names import name_meant


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mark sings.", "Mark"),
        ("I saw Mark.", "Mark"),
        ("May sings.", "May"),
        ("Will plays chess.", "Will"),
        ("Yes. Mark sings.", "Mark"),
        ("Анна поёт.", "Анна"),
        ("王伟来了", "王伟"),
    ],
)
def test_it_is_written_as_a_name(text: str, name: str) -> None:
    (mention,) = mentions_find(text, name)
    assert name_meant(text, mention)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mark the day.", "Mark"),
        ("Yes. Mark the day.", "Mark"),
        ("we mark it", "Mark"),
        ("in May", "May"),
        ("by May", "May"),
        ("May 5", "May"),
        ("Will you go?", "Will"),
    ],
)
def test_it_is_a_verb_or_a_month(text: str, name: str) -> None:
    (mention,) = mentions_find(text, name)
    assert not name_meant(text, mention)
