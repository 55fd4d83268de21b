"""Parts of speech: right where clauses begin, and never long at it."""

import pytest

from memory.text.grammar import words_tag


def tags(sentence: str) -> dict[str, str]:
    return {word.text: word.tag for word in words_tag(sentence)}


def test_a_verb_behind_a_conjunction_is_no_plural() -> None:
    assert tags("Anna lives in Oslo and works at Telenor.")["works"] == "VVZ"
    assert tags("The server atlas-1 runs Debian and hosts the wiki.")["runs"] == "VVZ"


def test_an_apostrophe_is_reported_from_a_verb() -> None:
    assert tags("Ben's in Rome now.")["'s"] == "VBZ"
    assert tags("Ben's cat sleeps.")["'s"] == "POS"


def test_every_word_keeps_its_place_whatever_it_is() -> None:
    sentence = "Юлия and 王伟 wrote " + "x" * 3000 + " to a.smith@x.io."
    words = words_tag(sentence)

    assert all(sentence[word.start : word.end] == word.text for word in words)
    assert {word.text: word.tag for word in words}["Юлия"] == "UNC"


@pytest.mark.parametrize("text", ["a" * 20_000, "王伟" * 5_000, "1" * 20_000, "(" * 5_000, "just " * 4_000])
def test_no_text_keeps_the_tagger_for_long(text: str) -> None:
    # It took minutes for a word of two thousand letters.
    assert words_tag(text)
