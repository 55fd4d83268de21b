"""A name is found however it is written, in any script, and never inside of a longer word."""

import sys
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memory.text.folding import WORD
from memory.text.name_match import name_mentioned
from memory.text.names import name_keys, words_index

LETTERS = "abcdefghijklmnoprstuvwyzéöłńABERSÉÖ"
PARTS = st.text(LETTERS, min_size=3, max_size=8)
LEAST = 0.5
"""A text mentions a name if it is surer than this."""


def mentions(text: str, name: str) -> bool:
    return name_mentioned(text, tuple(name.split())) > LEAST


def test_a_name_is_found_in_other_spellings_and_scripts() -> None:
    cases = [
        ("Write to Anna today.", "Anna"),
        ("Anna's car", "Anna"),
        ("ANNA IS HERE", "Anna"),
        ("a Berlin-based firm", "Berlin"),
        ("Lukasz called", "Łukasz"),
        ("Mueller paid", "Müller"),
        ("Анной", "Анна"),
        ("Телефон Ольги", "Olga"),
        ("Дмитрий", "Dmitriy"),
        ("Чайковский", "Tchaikovsky"),
        ("Chaikovsky", "Tchaikovsky"),
        ("Ђорђе Петровић", "Đorđe Petrović"),
        ("Η Ελένη Παππά", "Eleni Pappa"),
        ("محمد الحداد", "Mohammed al-Haddad"),
        ("דוד לוי", "David Levi"),
        ("Карлос Марков", "Carlos Marcov"),
        ("राहुल", "Rahul"),
        ("ნინო ბერიძე", "Nino Beridze"),
        ("王伟住在北京", "Wang Wei"),
        ("김민수는 부산에 산다", "Kim Minsu"),
        ("タナカさん", "Tanaka"),
    ]
    assert [case for case in cases if not mentions(*case)] == []


def test_a_name_is_not_found_in_another_one() -> None:
    cases = [
        ("Annabel sings", "Ann"),
        ("Ann-Kathrin sings", "Ann"),
        ("ann@x.io", "Ann"),
        ("mark the day", "Mark"),
        ("C++ is hard", "C"),
        ("Berg", "Anna Berg"),
        ("Ivana Petrova", "Иван Петров"),
        ("Чуковский", "Tchaikovsky"),
        ("محمود", "Mohammed"),
        ("王伟明来了", "王伟"),
        ("김민지는", "Kim Minsu"),
        ("Maria", "Mario"),
    ]
    assert [case for case in cases if mentions(*case)] == []


@settings(max_examples=300)
@given(word=PARTS, before=st.text("bcdfg", max_size=4), after=st.text("bcdfg", max_size=4))
def test_no_name_is_found_inside_of_a_longer_word(word: str, before: str, after: str) -> None:
    name = word.capitalize()
    longer = before + name + after
    assume(before or after)
    assert name_mentioned(longer, (name,)) < 1
    assert name_mentioned(f"It is {longer} who called.", (longer,)) == 1


@settings(max_examples=300)
@given(text=st.text(max_size=80), name=st.text(min_size=1, max_size=12))
def test_any_text_is_read(text: str, name: str) -> None:
    assert 0 <= name_mentioned(text, (name,)) <= 1


@pytest.mark.parametrize("name", ["Müller", "José", "Дмитрий", "Анна", "Γιώργος", "Łukasz", "王伟", "김민수"])
def test_every_name_has_words_by_which_the_index_finds_it(name: str) -> None:
    assert name_keys(name)
    assert all(keys & words_index(f"It is {name} who called.") for keys in name_keys(name))


def test_a_vowel_sign_of_whatever_script_goes_on_with_the_word() -> None:
    signs = [each for each in map(chr, range(0x300, sys.maxunicode + 1)) if unicodedata.category(each) in ("Mn", "Mc")]
    assert [each for each in signs if not WORD.fullmatch(f"a{each}b")] == []
    assert not WORD.fullmatch("a-b")
