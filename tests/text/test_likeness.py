"""Two texts say the same, or differ in something that matters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.grammar import name_known, word_known
from memory.text.likeness import ComparedTexts, differences_of, topics_compare, words_shared

SAME = [
    ("Anna prefers oat milk in her coffee", "anna prefers oat milk in her coffee."),
    ("Anna prefers oat milk in her coffee", "In her coffee, Anna really prefers oat milk"),
    ("The deploy script needs Python 3.12", "Deploy scripts need Python 3.12"),
    ("On Friday Anna meets Bob", "Anna meets Bob on Friday"),
    ("The budget is $1,000", "Budget: $1000"),
    ("Due March 3, 2026", "due on 3rd of March 2026"),
    ("Due March 3, 2026", "due 2026-03-03"),
    ("He can't eat peanuts", "He cannot eat peanuts"),
    ("He does not eat fish", "he doesn't eat fish"),
    ("10 kg of rice", "10kg rice"),
    ("two cats", "2 cats"),
    ("Allergic to peanuts", "allergic to peanut"),
    ("东京的会议室在三楼", "东京的会议室在三楼。"),
    ("Müller mag Tee", "Muller mag Tee"),
    ("She flies to Rome tomorrow", "tomorrow she flies to Rome"),
    ("Wait, the train from Oslo leaves at 7", "the train from Oslo leaves at 7, wait"),
]
DIFFERENT = [
    ("Dentist on Monday at 9 am", "Dentist on Tuesday at 9 am", "date"),
    ("Meeting at 9 am", "Meeting at 9 pm", "date"),
    ("Meet at 5:30", "Meet at 5:30 pm", "date"),
    ("Due March 3", "Due March 13", "date"),
    ("Anna eats fish", "Anna doesn't eat fish", "negation"),
    ("Anna eats fish", "Anna never eats fish", "negation"),
    ("会议在三楼", "会议不在三楼", "negation"),
    ("Иван не живёт в Москве", "Иван живёт в Москве", "negation"),
    ("Anna isst Fisch", "Anna isst keinen Fisch", "negation"),
    ("Bob's phone number is 555-0142", "Bob's phone number is 555-0143", "identifier"),
    ("version 2.1", "version 2.10", "number"),
    ("-5 degrees", "5 degrees", "number"),
    ("The budget is 1.5k", "The budget is 15k", "number"),
    ("5 boxes have 3 bolts", "3 boxes have 5 bolts", "order"),
    ("Anna lives in Oslo", "Anna lives in Bergen", "name"),
    ("Anna lives in Oslo", "Marta lives in Oslo", "name"),
    ("williams lives in oslo", "william lives in oslo", "name"),
    ("Иван живёт в Москве", "Иван живёт в Казани", "name"),
    ("Write to a@x.io", "Write to a.b@x.io", "identifier"),
    ("Order A-1001 has shipped", "Order A-1002 has shipped", "identifier"),
    ("The password is hunter2", "The password is hunter3", "identifier"),
    ("He moved from Oslo to Bergen", "He moved from Bergen to Oslo", "order"),
    ("Anna likes Bob", "Bob likes Anna", "order"),
    ("Dogs chase cats", "Cats chase dogs", "order"),
    ("prefers tea to coffee", "prefers coffee to tea", "order"),
    ("likes tea, not coffee", "likes coffee, not tea", "order"),
    ("gym on Monday, yoga on Tuesday", "yoga on Monday, gym on Tuesday", "order"),
    ("Anna in Oslo, Bob in Bergen", "Anna in Bergen, Bob in Oslo", "order"),
    ("from Oslo with Anna, from Bergen with Bob", "from Bergen with Anna, from Oslo with Bob", "order"),
    ("the left arm", "the right arm", "word"),
    ("before lunch", "after lunch", "word"),
    ("10 kg of rice", "10 g of rice", "word"),
    ("He likes tea", "She likes tea", "word"),
    ("Anna was the director", "Anna is the director", "word"),
    ("It is available", "It is unavailable", "word"),
    ("a dessert at noon", "a desert at noon", "word"),
    ("a causal link", "a casual link", "word"),
    ("tea and coffee", "tea or coffee", "word"),
    ("with sugar", "without sugar", "negation"),
    ("a C++ guide", "a C guide", "identifier"),
    ("every week", "every month", "word"),
    ("x < 5", "x > 5", "number"),
]


def test_texts_that_say_the_same_differ_in_wording_only() -> None:
    pairs = [*SAME, *(pair[::-1] for pair in SAME)]
    assert [pair for pair in pairs if {each.kind for each in differences_of(*pair)} - {"wording"}] == []


def test_a_difference_is_found_from_either_side() -> None:
    for one, other, kind in DIFFERENT:
        found = differences_of(one, other)
        assert kind in {each.kind for each in found}, (one, other)
        assert differences_of(other, one), (one, other)
        assert all(each.one in one and each.other in other for each in found)


def test_fields_of_one_name_are_compared_and_others_are_not():
    one = ComparedTexts("Anna", fields={"city": "Oslo", "phone": "12"})
    assert topics_compare(one, ComparedTexts("Anna", fields={"city": "Oslo", "job": "pilot"})) == []
    (found,) = topics_compare(one, ComparedTexts("anna", fields={"city": "Bergen"}))
    assert (found.kind, found.one, found.other, found.where) == ("name", "Oslo", "Bergen", "city")


def test_a_summary_may_say_what_the_title_of_the_other_says():
    found = topics_compare(ComparedTexts("Oat milk", "Anna prefers oat milk"), ComparedTexts("Anna prefers oat milk"))
    assert [each.kind for each in found] == ["wording"]
    (found, *_more) = topics_compare(
        ComparedTexts("Tea", "Anna drinks 3 cups"), ComparedTexts("Tea", "Anna drinks 4 cups")
    )
    assert (found.kind, found.where) == ("number", "summary")


def test_words_in_common_tell_of_one_subject():
    shared = words_shared("We use MySQL for the orders service", "The orders service now runs on PostgreSQL")
    assert (shared.share >= 0.5, shared.words, shared.names) == (True, 2, 0)
    shared = words_shared("Anna lives in Oslo", "Anna prefers oat milk")
    assert (shared.words, shared.names) == (0, 1)


@pytest.mark.parametrize("letters", ["aardvark", "xq", "-a"])
def test_a_word_of_any_length_is_compared(letters: str):
    # The tagger would need hours for it.
    long = (letters * 20_000)[:20_000]
    assert not word_known(long)
    assert not name_known(long)
    assert differences_of(long[:-5], f"{long[:-5]} harbor")
    assert words_shared(f"{long[:-500]} harbor", "the harbor opens").words == 1


@pytest.mark.parametrize("said", ["我们在三楼开会", "a-", "w1,", "a@b ", "\n", " "])
def test_ten_thousand_signs_are_compared(said: str):
    one = (said * 10_000)[:10_000]
    (found, *_more) = differences_of(f"{one} harbor", f"{one} quay")
    assert (found.one, found.other) == ("harbor", "quay")


texts = st.text(st.characters(codec="utf-8"), max_size=80)


@given(texts, texts)
def test_every_text_can_be_compared_and_is_like_itself(one: str, other: str):
    assert differences_of(one, one) == []
    assert bool(differences_of(one, other)) == bool(differences_of(other, one))
    assert 0 <= words_shared(one, other).share <= 1
