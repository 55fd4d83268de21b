import pytest

from memory.core.errors import ValueRefused
from memory.core.patterns import pattern_check, pattern_to_postgres
from tests.cast import raises_code


@pytest.mark.parametrize(
    "pattern",
    [
        r"\ballerg(y|ic|ies)\b",
        r"(\d{1,3}\.){3}\d{1,3}",
        r"(?:\w+\W+){0,5}nuts",
        r"\w+(, \w+)*",
        "(foo|foobar)+",
        r"^\s*todo:",
        r"(\d{3}){2}",
        "[^\\W_]+",
        r"a.*b.*c",
        r"(a{10}){100}",
        "colou?r",
        "(ab?c)+",
        r"x{100}",
        r"\(\+?\d+\)",
        "été|hiver",
        r"(\w|\d)+",
        "(a|b)*",
        "(a|A)*",
    ],
)
def test_what_people_write_is_accepted(pattern: str) -> None:
    pattern_check(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a" * 201,
        "(",
        r"\q",
        "*a",
        "[b-a]",
        r"(a)\1",
        "(?P<name>a)",
        "(?P<name>a)(?P=name)",
        "(a)?(?(1)b|c)",
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        "(?i)a",
        "(?s:a)",
        "(?a)a",
        "a++b",
        "(?>a+)b",
        "a\x00",
        r"\ud800",
    ],
)
def test_syntax_outside_the_subset_is_refused(pattern: str) -> None:
    with raises_code(ValueRefused, "invalid-pattern"):
        pattern_check(pattern)


@pytest.mark.parametrize("pattern", ["(a*b?)*c", "(a?){50}", "(a?)*", "(|a)+", r"(\s*)*x", "((a|)(b|))+"])
def test_what_repeats_a_part_that_can_be_empty_is_refused(pattern: str) -> None:
    with raises_code(ValueRefused, "invalid-pattern"):
        pattern_check(pattern)


@pytest.mark.parametrize("pattern", ["a{101}", "a{5,1000}", "a{101,}", "(a{50}){21}", "((a{11}){10}){10}", "a*b" * 11])
def test_repeats_are_bounded(pattern: str) -> None:
    with raises_code(ValueRefused, "invalid-pattern"):
        pattern_check(pattern)


def test_only_what_postgres_writes_differently_is_translated() -> None:
    assert pattern_to_postgres(r"\ballerg(y|ic|ies)\b") == r"\yallerg(y|ic|ies)\y"
    assert pattern_to_postgres(r"a{,3}\x41b{2}{") == r"a{0,3}\u0041b{2}\{"
