"""What was erased is found in other texts, in any spelling, and nothing else is."""

import re

import pytest

from memory.erasure.redact_text import (
    Eraser,
    Weight,
    anchors_of,
    anchors_pattern,
    distinctive_words,
    names_of,
    passage_of,
    passage_weight,
)
from memory.text.keys import keys_certain


def eraser(*texts: str, identifiers: str = "", ids: tuple[str, ...] = ()) -> Eraser:
    return Eraser({passage_of(text) for text in texts}, set(keys_certain(identifiers)), set(ids))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Ann Lee", "[erased]"),
        ("when did ANN  lee call?", "when did [erased] call?"),
        ("Ann, Lee", "[erased]"),
        ("Ann Leeman and Joann Lee", "Ann Leeman and Joann Lee"),
        ("Ann-Lee", "[erased]"),
        ("Ann Lee-Smith, Mary-Ann Lee", "Ann Lee-Smith, Mary-Ann Lee"),
        ("Ánn Lée’s", "[erased]’s"),
        ("Lee Ann", "Lee Ann"),
        ("", ""),
    ],
)
def test_a_passage_is_found_as_whole_words_in_their_order(text: str, masked: str) -> None:
    assert eraser("Ann Lee").masked(text) == masked


def test_signs_of_scripts_without_spaces_are_words() -> None:
    assert eraser("田中さん").masked("東京に住む田中さんの電話") == "東京に住む[erased]の電話"


# However it is written; and what is only like it.
SPELLINGS = [
    ("anna+work@X.io", "write to ANNA@x.io", "write to anna@x.io.example"),
    ("+48 601 234 567", "call 0048601234567 now", "call 00486012345678 now"),
    ("INV-2024-001", "see inv 2024 001", "see INV-2024-0012"),
    ("https://www.x.io/a/", "at x.io/a", "at x.io/ab"),
    ("2001:db8::1", "host 2001:0db8:0000:0000:0000:0000:0000:0001", "host 2001:db8::11"),
    ("{6F9619FF-8B86-D011-B42D-00CF4FC964FF}", "6f9619ff8b86d011b42d00cf4fc964ff", "6f9619ff8b86d011b42d00cf4fc964fe"),
    ("GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432", "GB29NWBK60161331926819"),
    ("10.0.0.1", "at 10.0.0.1", "at 10.0.0.12"),
    ("4111 1111 1111 1111", "4111-1111-1111-1111", "5500 0000 0000 0004"),
    ("j.o.e@gmail.com", "joe@googlemail.com", "joe2@googlemail.com"),
    ("a@x.io", "to a@x.io.", "to b@x.io, a@xx.io"),
    ("00:1A:2B:3C:4D:5E", "001a.2b3c.4d5e", "00:1A:2B:3C:4D:5F"),
]


def test_an_identifier_is_found_in_any_spelling_and_never_as_a_part() -> None:
    for stored, written, another in SPELLINGS:
        gone = eraser(identifiers=stored)
        assert "[erased]" in gone.masked(written), written
        assert gone.masked(another) == another
        # What is looked for first is in every spelling.
        pattern = anchors_pattern(anchors_of((), gone.identifiers, most=10))
        assert pattern is not None
        assert re.search(pattern, written.lower()), written
        assert gone._certain


def test_ids_are_found_with_hyphens_and_without_and_a_list_of_rows_loses_them() -> None:
    gone = eraser(ids=("01a1fec7-2f40-7b45-9981-c1d9c863359f",))
    assert gone.masked("edge:01A1FEC7-2F40-7B45-9981-C1D9C863359F") == "edge:[erased]"
    assert gone.masked("/01a1fec72f407b459981c1d9c863359f/") == "/[erased]/"
    assert gone.masked("01a1fec7-2f40-7b45-9981-c1d9c863359f0") == "01a1fec7-2f40-7b45-9981-c1d9c863359f0"
    listed = {"stored": ["01a1fec7-2f40-7b45-9981-c1d9c863359f", "x"], "into": "01a1fec7-2f40-7b45-9981-c1d9c863359f"}
    assert gone.masked_value(listed) == {"stored": ["x"], "into": "[erased]"}


def test_short_passages_are_looked_for_in_sentences_and_never_where_programs_read() -> None:
    gone = eraser("orchid", "the orchid stands in the kitchen window")
    got = {
        "kind": "orchid",
        "categories": ["orchid"],
        "reason": "an orchid",
        "at": "orchid",
        "at_length": "The orchid stands in the kitchen window.",
        "changes": {"title": "Orchid", "n": 7, "on": None},
    }
    assert gone.masked_value(got) == {
        "kind": "orchid",
        "categories": ["orchid"],
        "reason": "an [erased]",
        "at": "orchid",
        "at_length": "[erased].",
        "changes": {"title": "[erased]", "n": 7, "on": None},
    }
    same = {"reason": "a rose", "list": ["a", 1]}
    assert gone.masked_value(same) is same


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("a", Weight.NONE),
        ("blue", Weight.NONE),
        ("7", Weight.NONE),
        ("2024 100 200 300 400", Weight.NONE),
        ("orchid", Weight.SHORT),
        ("Ann Lee", Weight.SHORT),
        ("田中", Weight.SHORT),
        ("", Weight.NONE),
        ("Ann lives in Graz since March", Weight.LONG),
        ("東京に住む田中さん", Weight.LONG),
        ("a b c d", Weight.NONE),
    ],
)
def test_how_much_a_passage_says(text: str, weight: Weight) -> None:
    assert passage_weight(passage_of(text)) is weight


def test_names_in_titles_and_words_of_requests() -> None:
    assert names_of("Dinner with Zofia and her brother") == {("dinner",), ("zofia",)}
    assert distinctive_words("please forget everything about Zofia's wifi password") == {("zofia",), ("wifi",)}
