"""Parts of a long text: where it is cut, and that nothing of it is lost."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.parts import parts_cut

WORDS = [
    "Anna",
    "Oslo",
    "walks",
    "every",
    "day",
    "to",
    "work",
    "with",
    "her",
    "dog",
    "because",
    "it",
    "rains",
    "in",
    "May",
]


def prose(sentences: int, *, seed: int = 1) -> str:
    chance = random.Random(seed)
    return " ".join(f"{' '.join(chance.choices(WORDS, k=chance.randint(4, 14)))}." for _ in range(sentences))


def parts(content: str, at_most: int) -> list[str]:
    return [content[start:end] for start, end in parts_cut(content, at_most=at_most)]


def test_a_part_begins_with_a_heading_where_there_is_one() -> None:
    chapters = [
        f"# Chapter {number}\n\n{prose(12, seed=number)}\n\n{prose(9, seed=-number)}\n\n" for number in range(8)
    ]
    found = parts("".join(chapters), 2 * max(map(len, chapters)))
    assert len(found) < len(chapters)
    assert all(part.startswith("# Chapter") for part in found)
    # Nothing is left behind a heading that stands alone.
    assert not any(part.rstrip().endswith(f"Chapter {number}") for part in found for number in range(8))


def test_between_paragraphs_it_is_cut_rather_than_within_one() -> None:
    paragraphs = [f"{prose(6, seed=number)}\n\n" for number in range(30)]
    found = parts("".join(paragraphs), 3 * max(map(len, paragraphs)))
    assert len(found) > 5
    assert all(part.endswith("\n\n") for part in found)


def test_one_long_paragraph_is_cut_between_sentences_and_one_long_sentence_between_words() -> None:
    assert all(part.rstrip().endswith(".") for part in parts(prose(200), 800))
    assert all(part.endswith(("walks ", "walks")) for part in parts("walks " * 500, 600))
    assert all(len(part) == 600 for part in parts("x" * 1200, 600))


@pytest.mark.parametrize("blank", ["", " \n\t\n"])
def test_what_is_blank_has_no_parts(blank: str) -> None:
    assert parts_cut(blank, at_most=500) == []


@given(
    st.lists(
        st.sampled_from(["# Title\n", "word ", "It ends. ", "\n\n", "- item\n", "x" * 90, "Anna: hi\n", "。"]),
        max_size=200,
    ),
    st.integers(min_value=50, max_value=700),
)
def test_together_they_are_the_text_and_none_is_too_long(pieces: list[str], at_most: int) -> None:
    content = "".join(pieces)
    found = parts(content, at_most)
    assert "".join(found) == (content if content.strip() else "")
    assert all(0 < len(part) <= at_most for part in found)
    assert found == parts(content, at_most)
