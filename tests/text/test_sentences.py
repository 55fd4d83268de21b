"""Texts as sentences: what ends one, what does not, and that nothing of a text is lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.sentences import Sentence, sentences_find


def said(content: str) -> list[str]:
    return [sentence.text for sentence in sentences_find(content)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Anna lives in Oslo. She works.", ["Anna lives in Oslo.", "She works."]),
        ("Dr. Berg met Mr. Holm at 5 p.m. They talked.", ["Dr. Berg met Mr. Holm at 5 p.m.", "They talked."]),
        ("J. R. Smith earns 3.5 million.", ["J. R. Smith earns 3.5 million."]),
        ("It costs $4.50. Version 2.0.1 is out.", ["It costs $4.50.", "Version 2.0.1 is out."]),
        ("Write to a@x.io. Or see x.io/a.b?c=1. Done.", ["Write to a@x.io.", "Or see x.io/a.b?c=1.", "Done."]),
        ('"I like it. Really," she said. He left.', ['"I like it. Really," she said.', "He left."]),
        ("He asked (twice. Or more.) for help. No.", ["He asked (twice. Or more.) for help.", "No."]),
        ('"Really?" she said. Yes!', ['"Really?" she said.', "Yes!"]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("i moved to rome. i like it.", ["i moved to rome.", "i like it."]),
        ("Am 3. Mai kam er. Dann ging er.", ["Am 3. Mai kam er.", "Dann ging er."]),
        ("彼は東京に住んでいる。寿司が好き！", ["彼は東京に住んでいる。", "寿司が好き！"]),
        ("他说「我住在北京。很好。」然后走了。", ["他说「我住在北京。很好。」然后走了。"]),
        ("वह दिल्ली में रहता है। वह डॉक्टर है।", ["वह दिल्ली में रहता है।", "वह डॉक्टर है।"]),
        ("این خانه است؟ بله.", ["این خانه است؟", "بله."]),
        (
            "The flat is in St. Gallen, No. 5. He said no. Then he left.",
            ["The flat is in St. Gallen, No. 5.", "He said no.", "Then he left."],
        ),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(content: str, expected: list[str]) -> None:
    assert said(content) == expected


def test_a_wrapped_line_goes_on_and_a_short_one_ends() -> None:
    wrapped = "This line was wrapped at some place that lies rather far to the right and\ngoes on here."
    assert len(said(wrapped)) == 1
    assert said("Anna lives in Oslo\nBob lives in Rome") == ["Anna lives in Oslo", "Bob lives in Rome"]


def test_lists_stand_under_their_heading() -> None:
    found = sentences_find("# Health\n\nAllergies:\n- peanuts\n2) shellfish\n\n## Pets\n* [x] a cat")
    assert [(sentence.kind, sentence.text, sentence.under) for sentence in found] == [
        ("heading", "Health", ""),
        ("heading", "Allergies:", ""),
        ("item", "peanuts", "Allergies"),
        ("item", "shellfish", "Allergies"),
        ("heading", "Pets", ""),
        ("item", "[x] a cat", "Pets"),
    ]


def test_a_table_is_reported_with_its_header() -> None:
    found = sentences_find("| Name | Age |\n|---|---|\n| Bob | 42 |")
    assert [sentence.text for sentence in found if sentence.kind == "row"] == ["Name: Bob; Age: 42"]


def test_marks_of_markdown_are_no_words() -> None:
    assert said("**Anna** lives in _Oslo_, see [her page](https://x.io/a_b).") == [
        "Anna lives in Oslo, see her page (https://x.io/a_b)."
    ]
    assert said("snake_case_name and 2*3*4 stay.") == ["snake_case_name and 2*3*4 stay."]


@pytest.mark.parametrize(
    "content",
    [
        "Anna: I live in Oslo.\nBob: Really? I like it.",
        "[10:02] Anna: I live in Oslo.\n[10:03] Bob: Really? I like it.",
        "12/05/2023, 10:02 - Anna: I live in Oslo.\n12/05/2023, 10:03 - Bob: Really? I like it.",
        "**Anna:** I live in Oslo.\n\n**Bob:** Really? I like it.",
        "<Anna> I live in Oslo.\n<Bob> Really? I like it.",
        "Anna (10:02): I live in Oslo.\nBob (10:03): Really?\nI like it.",
    ],
)
def test_transcripts_tell_who_speaks(content: str) -> None:
    assert [(sentence.speaker, sentence.text) for sentence in sentences_find(content)] == [
        ("Anna", "I live in Oslo."),
        ("Bob", "Really?"),
        ("Bob", "I like it."),
    ]


def test_a_key_with_a_value_is_no_one_speaking() -> None:
    content = "Name: Anna Berg\nPhone: +47 555 12 345\nEmail: a@x.io\nNote: I called her. Thanks!"
    assert {sentence.speaker for sentence in sentences_find(content)} == {None}


def test_roles_of_a_chat_have_names() -> None:
    found = sentences_find("user: my name is Al\nassistant: Noted!")
    assert [sentence.speaker for sentence in found] == ["the user", "the assistant"]


def covered(content: str, sentences: list[Sentence]) -> str:
    return "".join(content[sentence.start : sentence.end] for sentence in sentences)


ROUGH = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("ab AB.!?…。\n\r\t-*#>|:;\"'()[]`~_=1,9@/「」“”<>\u2028")), st.characters()
    ),
    max_size=200,
)


@given(
    st.lists(st.one_of(ROUGH, st.sampled_from(["Anna: hi\n", "```\n", "- x\n", "# h\n", "|a|b|\n", "---\n", "Dr. "])))
)
def test_nothing_of_a_text_is_lost(parts: list[str]) -> None:
    content = "".join(parts)
    sentences = sentences_find(content)
    assert "".join(covered(content, sentences).split()) == "".join(content.split())
    assert all(one.end <= two.start for one, two in pairwise(sentences))
    assert all(0 <= sentence.start <= sentence.end <= len(content) for sentence in sentences)


def test_a_long_gap_is_no_sentence() -> None:
    content = f"Anna{' ' * 20_000}lives in Oslo."
    sentences = sentences_find(content)
    assert [sentence.text for sentence in sentences] == ["Anna", "lives in Oslo."]
    assert all(sentence.start < sentence.end for sentence in sentences)
    assert covered(content, sentences).split() == content.split()
