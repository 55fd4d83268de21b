"""A name is found as a whole word, however it is written, and never inside of a longer one."""

import sys
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memory.text.folding import WORD, fold
from memory.text.names import mentions_find, name_keys, words_index

LETTERS = "abcdefghijklmnoprstuvwyzéöłńABERSÉÖ"
PARTS = st.text(LETTERS, min_size=1, max_size=6)
WORDS = st.sampled_from(
    [
        "Ann",
        "Anna",
        "Anna-Lena",
        "ann@x.io",
        "@ann",
        "#ann",
        "Müller",
        "Mueller",
        "Muller",
        "Łukasz",
        "José",
        "Jose",
        "O'Brien",
        "D’Angelo",
        "Анна",
        "Анной",
        "Александр",
        "Александра",
        "Дмитрий",
        "Dmitriy",
        "Юрий",
        "Yuri",
        "王伟",
        "王伟明",
        "來",
        "山田さん",
        "カタカナ",
        "김민수는",
        "سمير",
        "שרה",
        "दिल्ली",
        "สมชาย",
        "Ὀδυσσεύς",
        "node-1",
        "node-1-b",
        "v1.2",
        "C++",
        "C",
        "C#",
        "/api/users",
        "Berlin-based",
        "Straße",
        "STRASSE",
        "ß",
        "ﬁn",
        "a",
        "A",
        "x_y",
        "Ann/Ben",
        "1",
        "２",
        "İstanbul",
        "ǆ",
    ]
)
SIGNS = st.sampled_from([" ", " ", ", ", ". ", "-", "/", "_", "\n", "'s ", "…", "(", ") ", "", "\u200b", "\u00ad"])
TEXTS = st.lists(st.tuples(WORDS, SIGNS), max_size=8).map(lambda parts: "".join(word + sign for word, sign in parts))


@pytest.mark.parametrize(
    ("text", "name", "how"),
    [
        ("Ann is here.", "Ann", "whole"),
        ("(ANN)", "ann", "whole"),
        ("Ann's bike", "Ann", "whole"),
        ("Ann’s bike", "Ann", "whole"),
        ("Ann  Lee\nsings", "Ann Lee", "whole"),
        ("Ann\nLee", "Ann Lee", "whole"),
        ("Ann/Ben", "Ann", "whole"),
        ("a Berlin-based firm", "Berlin", "whole"),
        ("node-1, node-2", "node-1", "whole"),
        ("C++ is hard", "C++", "whole"),
        ("plan A", "A", "whole"),
        ("mark the day", "Mark", "whole"),
        ("José sings", "Jose", "whole"),
        ("Jose sings", "José", "whole"),
        ("Lukasz", "Łukasz", "whole"),
        ("Muller", "Müller", "whole"),
        ("Straße", "Strasse", "whole"),
        ("سمير هنا", "سمير", "whole"),
        ("王伟来了", "王伟", "whole"),
        ("山田さん", "山田", "whole"),
        ("김민수는 왔다", "김민수", "whole"),
        ("दिल्ली में", "दिल्ली", "whole"),
        ("@ann wrote", "Ann", "tagged"),
        ("see #ann", "Ann", "tagged"),
        ("с Анной", "Анна", "inflected"),
        ("Иван", "Иваном", "inflected"),
        ("Mueller", "Müller", "latin"),
        ("Müller", "Mueller", "latin"),
        ("Dmitriy", "Дмитрий", "latin"),
        ("Дмитрий", "Dmitry", "latin"),
    ],
)
def test_a_name_is_found_in_other_spellings_and_scripts(text: str, name: str, how: str) -> None:
    (mention,) = mentions_find(text, name)
    assert mention.how == how


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Anna is here.", "Ann"),
        ("Annn", "Ann"),
        ("Anna-Lena sings", "Anna"),
        ("Lena-Anna sings", "Anna"),
        ("O'Brien", "Brien"),
        ("node-1-b is up", "node-1"),
        ("node-12 is up", "node-1"),
        ("v1.2", "v1"),
        ("/api/users", "api"),
        ("ann@x.io", "Ann"),
        ("a.smith@x.io", "smith"),
        ("Ann_Lee", "Ann"),
        ("AT&T", "AT"),
        ("C++ is hard", "C"),
        ("C# too", "C"),
        ("a plan", "A"),
        ("Ann, Lee", "Ann Lee"),
        ("Lee Ann", "Ann Lee"),
        ("Ann\n\nLee", "Ann Lee"),
        ("Александра", "Александр"),
        ("王伟明来了", "王伟"),
        ("김민수정", "김민수"),
        ("カタカナ", "カタ"),
        ("anything", "!!"),
        ("", "Ann"),
    ],
)
def test_a_name_is_not_found_in_another_one(text: str, name: str) -> None:
    assert mentions_find(text, name) == ()


@settings(max_examples=300)
@given(word=PARTS, before=st.text(LETTERS, max_size=4), after=st.text(LETTERS, max_size=4), frame=TEXTS)
def test_no_name_is_found_inside_of_a_longer_word(word: str, before: str, after: str, frame: str) -> None:
    assume(before or after)
    longer = before + word + after
    assert not mentions_find(longer, word)
    # Without other words, since one of them could be the name itself.
    assert not mentions_find(f"({longer})?", word)
    # It is found as itself, wherever it stands.
    assert mentions_find(f"{frame} {longer} {frame}", longer)


@settings(max_examples=300)
@given(name=PARTS, other=PARTS, sign=st.sampled_from("_.@:&~\\"))
def test_what_is_joined_by_a_sign_is_another_name(name: str, other: str, sign: str) -> None:
    assume(fold(name) != fold(other))
    assert not mentions_find(f"{name}{sign}{other}", name)
    assert not mentions_find(f"{other}{sign}{name}", name)
    assert not mentions_find(f"see {other}-{name}", name)


@settings(max_examples=500)
@given(text=TEXTS, name=st.one_of(WORDS, st.lists(WORDS, min_size=2, max_size=2).map(" ".join)))
def test_the_words_in_the_index_hold_whatever_a_name_is_found_by(text: str, name: str) -> None:
    if mentions_find(text, name):
        assert all(keys & words_index(text) for keys in name_keys(name))


@settings(max_examples=300)
@given(text=st.text(max_size=80), more=TEXTS, name=st.text(max_size=12))
def test_any_text_is_read_and_what_is_found_stands_in_it(text: str, more: str, name: str) -> None:
    whole = text + more
    for mention in mentions_find(whole, name):
        assert 0 <= mention.start < mention.end <= len(whole)
        assert all(keys & words_index(whole) for keys in name_keys(name))


@pytest.mark.parametrize("name", ["Müller", "José", "Дмитрий", "Анна", "Γιώργος", "Łukasz", "王伟", "김민수"])
def test_every_name_has_words_by_which_the_index_finds_it(name: str) -> None:
    assert name_keys(name)
    assert all(keys & words_index(f"It is {name} who called.") for keys in name_keys(name))


def test_a_vowel_sign_of_whatever_script_goes_on_with_the_word() -> None:
    signs = [each for each in map(chr, range(0x300, sys.maxunicode + 1)) if unicodedata.category(each) in ("Mn", "Mc")]
    assert [each for each in signs if not WORD.fullmatch(f"a{each}b")] == []
    assert not WORD.fullmatch("a-b")
