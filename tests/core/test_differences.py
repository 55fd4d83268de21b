"""Differences between texts, word by word."""

from hypothesis import given
from hypothesis import strategies as st

from memory.core.differences import MAX_WORDS, Piece, pieces_shorten, words_differ

TEXT = st.lists(st.sampled_from(["tea", "rent", "the", "the", " ", "\n", "é", "<b>", "."]), max_size=30).map(" ".join)


def side(pieces: list[Piece], kind: str) -> str:
    return "".join(piece.text for piece in pieces if piece.kind in ("same", kind))


@given(TEXT | st.text(max_size=60), TEXT | st.text(max_size=60))
def test_both_texts_can_be_read_back_from_their_difference(before: str, after: str):
    pieces = words_differ(before, after)
    assert side(pieces, "removed") == before
    assert side(pieces, "added") == after


@given(TEXT)
def test_a_text_does_not_differ_from_itself(text: str):
    assert words_differ(text, text) == ([Piece("same", text)] if text else [])


def test_one_changed_word_is_all_that_is_marked():
    assert words_differ("rent is 900 a month", "rent is 950 a month") == [
        Piece("same", "rent is"),
        Piece("removed", " 900"),
        Piece("added", " 950"),
        Piece("same", " a month"),
    ]


def test_signs_are_compared_apart_from_words_and_numbers_are_whole():
    assert words_differ("950 a month", "950 a month, bills included") == [
        Piece("same", "950 a month"),
        Piece("added", ", bills included"),
    ]
    assert words_differ("at 10:30", "at 10:45") == [
        Piece("same", "at"),
        Piece("removed", " 10:30"),
        Piece("added", " 10:45"),
    ]


def test_very_long_texts_are_compared_within_the_time_limit_of_a_test():
    before = " ".join("ab"[n % 2] for n in range(20 * MAX_WORDS))
    after = " ".join("abc"[n % 3] for n in range(20 * MAX_WORDS))
    pieces = words_differ(before, after)
    assert side(pieces, "removed") == before


def test_what_stayed_is_cut_in_the_middle_and_what_changed_is_not():
    pieces = words_differ("a " * 300 + "tea " + "b " * 300, "a " * 300 + "coffee " + "b " * 300)
    shown = pieces_shorten(pieces)
    assert [piece.kind for piece in shown] == ["same", "removed", "added", "same"]
    assert shown[1:3] == pieces[1:3]
    assert len(shown[0].text) < 100
    assert shown[0].text.startswith(" … ")
    assert pieces_shorten([Piece("same", "a" * 999)]) == [Piece("same", "a" * 999)]
