"""Spellings of one word fold to the same text, and other letters stay other letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.folding import fold, latin


@given(st.text(max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert latin(latin(text)) == latin(text)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Müller", "muller"),
        ("Łódź", "lodz"),
        ("STRASSE", "straße"),
        ("“It’s”", '"it\'s"'),
        ("ｗｉｄｅ", "wide"),
        ("a\u200bb", "ab"),
        ("٤٢", "42"),
        ("  a \n b ", "a b"),
        ("Ё", "е"),
        ("İstanbul", "istanbul"),
    ],
)
def test_spellings_fold_to_one(left: str, right: str) -> None:
    assert fold(left) == fold(right)


def test_other_letters_stay_other_letters() -> None:
    assert fold("й") != fold("и")
    assert fold("が") != fold("か")
    assert fold("а") != fold("a")
    assert latin("Иван Петров") == "ivan petrov"
    assert latin("北京") == "beijing"
