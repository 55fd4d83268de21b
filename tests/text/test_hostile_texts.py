"""Texts that are made to take long, or that no writer would write, are read in linear time."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.finding.request import asks_for_all, request_divide
from memory.text.keys import keys_of
from memory.text.layout import blocks_find
from memory.text.name_match import name_mentioned, names_of
from memory.text.negation import negated
from memory.text.statements import facts_read
from memory.text.stems import stems

READERS: tuple[Callable[[str], Any], ...] = (
    stems,
    negated,
    request_divide,
    asks_for_all,
    keys_of,
    lambda text: names_of(text, [text]),
    lambda text: name_mentioned(text, ("Anna", "Ли")),
    blocks_find,
    facts_read,
)
PIECES = [
    "a b c ",
    "A  b",
    "neither ",
    "-",
    ", ",
    "except ",
    "a\n",
    "a\n>\n",
    "> ",
    "a\n---\n",
    "```\nx\n",
    "- - ",
    "|a|\n",
    "not a ",
]


@pytest.mark.parametrize("read", READERS)
def test_texts_of_100_000_signs_are_read_within_the_time_limit_of_a_test(read: Callable[[str], Any]) -> None:
    # A reader that is not linear takes minutes.
    for piece in PIECES:
        read((piece * 100_000)[:100_000])


def test_a_code_block_keeps_each_line_in_its_place() -> None:
    content = "See:\n\n```\none\n\n  two\n```\nThat is all."
    (code,) = [block for block in blocks_find(content) if block.kind == "code"]
    assert [content[at] for at in code.offsets if not content[at].isspace()] == list("```onetwo```")
    assert "one" in code.text.splitlines()
