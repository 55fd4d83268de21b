import pytest

from memory.domain.errors import ValueRefused
from memory.domain.patterns import pattern_check, pattern_to_postgres


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
    ("pattern", "because"),
    [
        ("", "An empty pattern matches every text"),
        ("a" * 201, "at most 200 characters; this one has 201"),
        ("(", "cannot be read: missing \\), unterminated subpattern at position 0"),
        (r"\q", "cannot be read: bad escape"),
        ("*a", "cannot be read: nothing to repeat"),
        ("[b-a]", "cannot be read: bad character range"),
        (r"(a)\1", "must not use back-references"),
        ("(?P<name>a)", "must not use named groups"),
        ("(?P<name>a)(?P=name)", "must not use"),
        ("(a)?(?(1)b|c)", "must not use conditional groups"),
        ("(?=a)b", "must not use look-ahead and look-behind"),
        ("(?!a)b", "must not use look-ahead and look-behind"),
        ("(?<=a)b", "must not use look-ahead and look-behind"),
        ("(?<!a)b", "must not use look-ahead and look-behind"),
        ("(?i)a", "must not use flags"),
        ("(?s:a)", "must not use flags"),
        ("(?a)a", "must not use flags"),
        ("a++b", "must not use possessive repeats"),
        ("(?>a+)b", "must not use atomic groups"),
        ("a\x00", "must not use NUL characters"),
        (r"\ud800", "must not use NUL characters or halves of surrogate pairs"),
    ],
)
def test_what_python_and_the_database_do_not_share_is_refused(pattern: str, because: str) -> None:
    with pytest.raises(ValueRefused, match=because):
        pattern_check(pattern)


@pytest.mark.parametrize("pattern", ["(a*b?)*c", "(a?){50}", "(a?)*", "(|a)+", r"(\s*)*x", "((a|)(b|))+"])
def test_what_repeats_a_part_that_can_be_empty_is_refused(pattern: str) -> None:
    with pytest.raises(ValueRefused, match="must not repeat a part that can be empty"):
        pattern_check(pattern)


@pytest.mark.parametrize(
    ("pattern", "because"),
    [
        ("a{101}", "counts to 100 at most; this one counts to 101"),
        ("a{5,1000}", "counts to 100 at most; this one counts to 1000"),
        ("a{101,}", "counts to 100 at most"),
        ("(a{50}){21}", "multiply to 1000 at most"),
        ("((a{11}){10}){10}", "multiply to 1000 at most"),
        ("a*b" * 11, "at most 10 repeats without an end; this one has 11"),
    ],
)
def test_repeats_are_bounded(pattern: str, because: str) -> None:
    with pytest.raises(ValueRefused, match=because):
        pattern_check(pattern)


def test_the_translation_spells_out_what_differs() -> None:
    assert pattern_to_postgres(r"\ballerg(y|ic|ies)\b") == r"\yallerg(?:(?:y|ic|ies))\y"
    assert pattern_to_postgres("a.c$") == r"a[^\u000A]c(?=\u000A?\Z)"
    assert pattern_to_postgres("^50%") == r"\A50\u0025"
