"""Identifiers: every spelling of one is found and equal to the others, and none is found in a part of another."""

import itertools
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.text.folding import fold, latin
from memory.text.identifiers import KINDS, STRONG, Identifier, identifiers_find
from tests.text.spellings import APART, AROUND, HOSTILE, SPELLINGS


def one(text: str, kind: str) -> Identifier:
    """The first identifier in ``text``, which is of this kind, or of another that stands for it."""
    found = identifiers_find(text)
    return next((it for it in found if it.kind == kind), found[0])


def same(asked: str, said: str) -> bool:
    """Whether a request that says ``asked`` finds a text that says ``said``."""
    told = {key for it in identifiers_find(said) for key in it.stored}
    return any(it.search_keys & told for it in identifiers_find(asked) if it.kind in STRONG) or (
        not any(it.kind in STRONG for it in identifiers_find(asked) + identifiers_find(said))
        and any(it.search_keys & told for it in identifiers_find(asked))
    )


def test_more_than_22_kinds_have_spellings() -> None:
    assert len(SPELLINGS) >= 22
    assert set(SPELLINGS) == KINDS


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [(kind, group) for kind, groups in SPELLINGS.items() for group in groups],
    ids=lambda it: str(it)[:40],
)
def test_every_spelling_is_found_by_every_other(kind: str, spellings: list[str]) -> None:
    failed = [
        (asked, said)
        for asked in spellings
        for said in spellings
        if not any(one(asked, kind).search_keys & it.stored for it in identifiers_find(said))
    ]
    # Where each leaves another part out, as in "0170 ..." and "0049 170 ...", they meet in the full spelling.
    assert not failed


def test_different_identifiers_are_never_equal() -> None:
    for (left, right), around in itertools.product(APART, ("{}", "Ask about {} today.", "「{}」")):
        assert not same(around.format(left), around.format(right)), (left, right)
        assert not same(around.format(right), around.format(left)), (left, right)


@pytest.mark.parametrize("kind", sorted(SPELLINGS))
def test_surrounding_text_is_not_part_of_an_identifier(kind: str) -> None:
    for around, group in itertools.product(AROUND, SPELLINGS[kind]):
        spelling = group[0]
        text = around.format(spelling)
        found = [it for it in identifiers_find(text) if it.kind == kind]
        assert [it.canonical for it in found][:1] == [one(spelling, kind).canonical], text
        assert found[0].text == text[found[0].start : found[0].end]
        assert spelling in found[0].text or found[0].text in spelling


def test_both_readings_of_a_date_are_found() -> None:
    found = identifiers_find("on 03/04/2024")
    assert [it.canonical for it in found] == ["2024-03-04", "2024-04-03"]
    assert len({(it.start, it.end) for it in found}) == 1
    assert same("03/04/2024", "3 April 2024")
    assert same("03/04/2024", "March 4, 2024")
    assert not same("3 April 2024", "March 4, 2024")


def test_a_spelling_that_lacks_a_part_may_be_either_and_two_whole_ones_are_not_one() -> None:
    assert same("020 7946 0958", "+44 20 7946 0958")
    assert same("+44 20 7946 0958", "020 7946 0958")
    assert not same("+44 20 7946 0958", "+49 20 7946 0958")
    assert same("#4711", "invoice #4711")
    assert same("#4711", "ticket no. 4711")
    assert not same("ticket 4711", "invoice 4711")
    assert same("INV2024001", "INV-2024-001")
    assert not same("INV-2024-001", "INV-20240-01")


@pytest.mark.parametrize("text", ["DE/report.pdf", "see Io/a/b.txt", "COM/x/y"])
def test_a_folder_named_like_a_country_can_be_read(text: str) -> None:
    assert identifiers_find(text) == identifiers_find(text.lower())


def test_letters_that_only_look_alike_are_different() -> None:
    assert not same("ann@example.com", "\u0430nn@example.com")
    assert not same("paypal.com", "p\u0430ypal.com")
    assert not same("@ann_dev", "@\u0430nn_dev")


@pytest.mark.parametrize(
    "text",
    [
        "She moved to Berlin and works as a nurse.",
        "He has two cats, and either/or is fine.",
        "e.g. tea, i.e. a drink",
        "It ended.So we left",
        "Mr. Smith vs. Mrs. Jones",
        "and/or",
        "It may well rain in May.",
        "Q&A, R&D",
        "the end... or not",
        "C# and F#",
        "Meet me at home",
        "well-known, long-term",
    ],
)
def test_plain_words_name_nothing(text: str) -> None:
    assert identifiers_find(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Order 3 pizzas for 8 people",
        "a 30-day trial in the 1990s",
        "the 5th floor",
        "a 24/7 hotline",
        "He ran 10 km in 50 minutes",
        "a ratio of 3 to 1",
        "room temperature is 21 °C",
    ],
)
def test_what_only_counts_names_nothing(text: str) -> None:
    assert [it for it in identifiers_find(text) if it.kind != "time"] == []


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_of_20_000_signs_takes_long(piece: str) -> None:
    text = (piece * 20_000)[:20_000]
    for whole in (text, f"{text}@x.io", f" {text}!"):
        started = time.process_time()
        identifiers_find(whole)
        fold(whole)
        # A fifth of this is usual; a search that is not linear takes minutes.
        assert time.process_time() - started < 5


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=120))
@example("\ue000a@x.io\ue000")
@example("ı mınute 5 mıllıon ſeptember 3")
@example("a\u0301@x.io \u200b10.0.0.1\u200b")
def test_any_text_can_be_read_and_places_are_right(text: str) -> None:
    for it in identifiers_find(text):
        assert 0 <= it.start < it.end <= len(text)
        assert it.text == text[it.start : it.end]
        assert it.kind in KINDS
        assert it.canonical
        assert len(it.key.encode()) < 2_000
        assert it.key in it.stored & it.search_keys


PIECES = st.sampled_from([spelling for groups in SPELLINGS.values() for group in groups for spelling in group])


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=5), st.sampled_from([" and ", ", ", "; ", "\n", " | "]))
def test_the_same_things_are_found_side_by_side(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    for it in identifiers_find(text):
        assert it.text == text[it.start : it.end]
    assert [it.key for it in identifiers_find(text)] == [it.key for it in identifiers_find(text)]


# Others are told by what stands with them (the number of an order), or are not spelled as their canonical form.
SELF_TOLD = KINDS - {"coordinates", "ssn", "datetime", "handle", "hashtag", "date", "phone", "code"}


@pytest.mark.parametrize("kind", sorted(SELF_TOLD))
def test_the_canonical_form_of_a_canonical_form_is_itself(kind: str) -> None:
    for group in SPELLINGS[kind]:
        for spelling in group:
            it = one(spelling, kind)
            if it.canonical.startswith("//") or " " in it.canonical:
                # A share of Windows might be a comment with these slashes, and a folder with a space two words.
                continue
            again = [found for found in identifiers_find(it.canonical) if found.kind == it.kind]
            assert [found.canonical for found in again][:1] == [it.canonical], spelling


@settings(max_examples=200, deadline=None)
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
