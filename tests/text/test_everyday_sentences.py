"""Everyday sentences in fifteen languages, written by someone who had not seen the code: no language loses a sentence
that English would keep, and a difference in any script counts."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.folding import fold
from memory.text.likeness import differences_of
from memory.text.statements import facts_read

CASES: dict[str, Any] = json.loads(Path(__file__).with_name("everyday.json").read_text())
# "She lives in Linz." on a line of its own does not say who.
LEFT_OUT = {"She lives in Linz."}


def bare(text: str) -> str:
    return re.sub(r"\W", "", text).casefold()


def lost(content: str, sentences: list[str]) -> set[str]:
    """Return the sentences that are in no fact of the content."""
    kept = bare(" ".join(fact.text for fact in facts_read(content).facts))
    return {sentence for sentence in sentences if bare(sentence) not in kept}


def says_the_same(one: str, other: str) -> bool:
    return all(found.kind == "wording" for found in differences_of(one, other))


@pytest.mark.parametrize("language", CASES)
def test_no_sentence_is_lost(language: str) -> None:
    facts = CASES[language]["facts"]
    assert lost("\n".join(facts), facts) <= LEFT_OUT
    assert lost(" ".join(facts), facts) == set()
    spoken = CASES[language]["spoken"]
    assert lost("\n".join(spoken), [line.partition(":")[2] for line in spoken]) == set()


@pytest.mark.parametrize("language", CASES)
def test_texts_with_a_difference_differ_and_others_do_not(language: str) -> None:
    assert [pair for pair in CASES[language]["differs"] if says_the_same(*pair)] == []
    assert [pair for pair in CASES[language]["same"] if not says_the_same(*pair)] == []


# Scripts of whose words nothing is known, with digits and pictures.
SIGNS = "薬日本猫犬会议電話のはがをยานี้กินลาວອາຍຸराम की के دواء كل يوم 0123456789٢٤२४①²👍👎→№±"
LETTERS = "".join(sorted({sign for sign in SIGNS if not sign.isspace()}))


@given(st.text(LETTERS, min_size=1, max_size=20), st.text(LETTERS, min_size=1, max_size=20))
def test_texts_of_other_scripts_are_the_same_only_if_they_are_written_alike(one: str, other: str) -> None:
    assert bool(differences_of(one, other)) == (fold(one) != fold(other))


@given(st.text(LETTERS, min_size=2, max_size=20), st.data())
def test_no_sign_is_skipped(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.sampled_from(LETTERS))
    changed = text[:at] + sign + text[at + 1 :]
    if unicodedata.normalize("NFC", fold(changed)) != unicodedata.normalize("NFC", fold(text)):
        assert differences_of(text, changed)
