"""Texts of four kinds, written with what is worth keeping and what is noise by people who had not seen the code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memory.text.folding import fold
from memory.text.statements import facts_read

TEXTS = sorted((Path(__file__).parent / "by_others").glob("*.txt"))
# Shares of what was noted as worth keeping and as noise.
LEAST_KEPT = 0.75
MAX_NOISE = 0.1


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", fold(text))


def noted(file: Path) -> Any:
    return json.loads(file.with_suffix(".expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.stem)
def test_every_fact_stands_in_the_text_word_by_word(file: Path) -> None:
    content = file.read_text(encoding="utf-8")
    source = letters(content)
    for fact in facts_read(content).facts:
        # In front may stand who says it, or a heading.
        parts = fact.text.split(": ")
        endings = [": ".join(parts[at:]) for at in range(len(parts))]
        cells = [cell for piece in fact.text.split("; ") for cell in piece.split(": ")]
        assert any(letters(ending) in source for ending in endings) or all(letters(cell) in source for cell in cells)
        assert 0 <= fact.start < fact.end <= len(content)


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.stem)
def test_facts_are_kept_and_noise_is_not(file: Path) -> None:
    stored = [fact.text for fact in facts_read(file.read_text(encoding="utf-8")).facts]
    kept = [letters(text) for text in stored]
    # A heading in front of an item is where it belongs.
    said = [*kept, *(letters(text.rpartition(": ")[2]) for text in stored)]
    expected = noted(file)
    facts = [any(letters(fact) in text for text in kept) for fact in expected["facts"]]
    noise = [letters(one) in said for one in expected["noise"]]
    assert sum(facts) >= LEAST_KEPT * len(facts)
    assert sum(noise) <= MAX_NOISE * len(noise)


@pytest.mark.parametrize(
    "text",
    [
        "Ben is allergic to penicillin.",
        "Olga has diabetes.",
        "Anna is vegan.",
        "The user is allergic to peanuts.",
        "Allergies: penicillin",
        "Blood type: 0 negative",
    ],
)
def test_a_short_fact_about_someone_is_kept(text: str) -> None:
    assert [fact.text for fact in facts_read(text).facts] == [text]


def test_what_someone_says_of_themselves_in_a_conversation_is_kept() -> None:
    facts = facts_read("Ana: I am allergic to nuts.\nBob: I moved to Kiel last week.").facts
    assert [fact.text for fact in facts] == ["Ana: I am allergic to nuts.", "Bob: I moved to Kiel last week."]
