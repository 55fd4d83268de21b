"""The language of the lookup box: what it reads, what it refuses, and where it says the mistake is."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.domain.lookup_language import MAX_DEPTH, MAX_LENGTH, MAX_PARTS, LookupFlaw, lookup_parse
from memory.domain.lookup_qualifiers import EXAMPLES
from memory.domain.lookup_tree import (
    AllOf,
    AnyOf,
    Between,
    Compare,
    Elapsed,
    Flag,
    HasField,
    IdBegins,
    Named,
    NeverUsed,
    Not,
    OnRung,
    Phrase,
    Tree,
    Within,
    Word,
    tree_all,
    tree_any,
    tree_question,
    tree_scope,
    tree_standings,
    tree_texts,
    tree_wanted,
    tree_without,
    tree_words,
)
from tests.properties.conftest import examples

DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", None),
        ("  \t ", None),
        ("tea", Word("tea")),
        ("green tea", AllOf((Word("green"), Word("tea")))),
        ("green AND tea", AllOf((Word("green"), Word("tea")))),
        ('"green tea"', Phrase("green tea")),
        ("a OR b c", AnyOf((Word("a"), AllOf((Word("b"), Word("c")))))),
        ("(a OR b) c", AllOf((AnyOf((Word("a"), Word("b"))), Word("c")))),
        ("a OR (b OR c)", AnyOf((Word("a"), Word("b"), Word("c")))),
        ("-tea", Not(Word("tea"))),
        ("NOT tea", Not(Word("tea"))),
        ("-(a b)", Not(AllOf((Word("a"), Word("b"))))),
        ("a - b", AllOf((Word("a"), Word("-"), Word("b")))),
        ("well-known", Word("well-known")),
        ("12:30", Word("12:30")),
        ("and or not", AllOf((Word("and"), Word("or"), Word("not")))),
        ("id:01991F3A-12", IdBegins("01991f3a12")),
        ("01991f3a-aaaa-7bbb-8ccc-000000000000", IdBegins("01991f3aaaaa7bbb8ccc000000000000")),
        ("scope:/user/mara/", Within("/user/mara")),
        ("scope:user", Within("/user")),
        ("kind:note", Named("kind", "note")),
        ('kind:"tool output"', Named("kind", "tool output")),
        ('kind:""', Named("kind", "")),
        ("KIND:note", Named("kind", "note")),
        ("category:work", Named("category", "work")),
        ("provenance:api", Named("provenance", "api")),
        ("rung:Archived", OnRung("archived")),
        ("is:archived", OnRung("archived")),
        ("is:pinned", Flag("pinned")),
        ("is:released", Flag("released")),
        ("is:live", Flag("live")),
        ("pinned:no", Flag("pinned", False)),
        ("field:city", HasField("city")),
        ("field:city=Berlin", HasField("city", "Berlin")),
        ('field:"due date"="next week"', HasField("due date", "next week")),
        ('field:city=""', HasField("city", "")),
        ("field:formula=a=b", HasField("formula", "a=b")),
        ("salience:<0.1", Compare("salience", "<", 0.1)),
        ("salience:≥.5", Compare("salience", ">=", 0.5)),
        ("salience:0.1..0.3", Between("salience", 0.1, 0.3)),
        ("retrievals:>3", Compare("retrievals", ">", 3)),
        ("retrievals:0", Compare("retrievals", "=", 0)),
        ("retrievals:1..5", Between("retrievals", 1, 5)),
        ("created:<2026-05-01", Compare("created", "<", dt.date(2026, 5, 1))),
        ("created:2026-05-01", Compare("created", "=", dt.date(2026, 5, 1))),
        ("created:2026-05-01..2026-05-31", Between("created", dt.date(2026, 5, 1), dt.date(2026, 5, 31))),
        ("created:<=2w", Elapsed("created", "<=", 14 * DAY)),
        ("used:>30d", Elapsed("used", ">", 30 * DAY)),
        ("used:never", NeverUsed()),
    ],
)
def test_what_is_typed_becomes_a_tree(text: str, tree: Tree | None):
    assert lookup_parse(text) == tree


@pytest.mark.parametrize(
    ("text", "wrong", "code"),
    [
        ("scop:/user tea", "scop:", "unknown-lookup-qualifier"),
        ("tea zzzzzz:x", "zzzzzz:", "unknown-lookup-qualifier"),
        ("see https://example.com", "https:", "unknown-lookup-qualifier"),
        ("kind: note", "kind:", "invalid-lookup-value"),
        ("kind:(a OR b)", "kind:", "invalid-lookup-value"),
        ("rung:archive", "archive", "invalid-lookup-value"),
        ("is:lost", "lost", "invalid-lookup-value"),
        ("pinned:maybe", "maybe", "invalid-lookup-value"),
        ("id:xyz", "xyz", "invalid-lookup-value"),
        ("scope:/a/../b", "/a/../b", "invalid-scope"),
        ("field:=x", "=x", "invalid-lookup-value"),
        ("field:city=", "city=", "invalid-lookup-value"),
        ("salience:0.5", "0.5", "invalid-lookup-value"),
        ("salience:<low", "<low", "invalid-lookup-value"),
        ("salience:-1", "-1", "invalid-lookup-value"),
        ("salience:0.5..0.1", "0.5..0.1", "invalid-lookup-value"),
        ("salience:<", "<", "invalid-lookup-value"),
        ("retrievals:>2.5", ">2.5", "invalid-lookup-value"),
        ("created:<2026-02-30", "<2026-02-30", "invalid-lookup-value"),
        ("created:soon", "soon", "invalid-lookup-value"),
        ("created:0001-01-01", "0001-01-01", "invalid-lookup-value"),
        ("used:30d", "30d", "invalid-lookup-value"),
        ("tea OR", "OR", "invalid-lookup"),
        ("OR tea", "OR", "invalid-lookup"),
        ("tea AND OR x", "AND", "invalid-lookup"),
        ("NOT", "NOT", "invalid-lookup"),
        ("(tea", "(", "invalid-lookup"),
        ("(", "(", "invalid-lookup"),
        ("tea)", ")", "invalid-lookup"),
        ("tea ()", "()", "invalid-lookup"),
        ('"tea', '"tea', "invalid-lookup"),
        ('""', '""', "invalid-lookup"),
        ('kind:"tea', '"tea', "invalid-lookup"),
        ('kind:a"b"', 'a"b"', "invalid-lookup-value"),
        ("tea\x00", "\x00", "invalid-lookup"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, wrong: str, code: str):
    with pytest.raises(LookupFlaw) as flaw:
        lookup_parse(text)
    assert text[flaw.value.start : flaw.value.end] == wrong
    assert flaw.value.code == code


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("scop:/user tea", "scope:?"),
        ("tea zzzzzz:x", "id:, scope:"),
        ("kind: note", "kind:note"),
        ("rung:archive", "archived?"),
        ("is:lost", "active, summarized"),
        ("salience:0.5", "salience:<0.5"),
        ("salience:0.5..0.1", "salience:0.1..0.5"),
        ("used:30d", "used:>30d"),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(text: str, right: str):
    with pytest.raises(LookupFlaw) as flaw:
        lookup_parse(text)
    assert right in flaw.value.sentence


def test_length_depth_and_number_of_parts_are_bounded():
    assert lookup_parse("x" * MAX_LENGTH) is not None
    assert lookup_parse(" ".join(["x"] * MAX_PARTS)) is not None
    assert lookup_parse("(" * MAX_DEPTH + "x" + ")" * MAX_DEPTH) == Word("x")
    for text in (
        "x" * (MAX_LENGTH + 1),
        " ".join(["x"] * (MAX_PARTS + 1)),
        "(" * 400 + "x" + ")" * 400,
        "-" * 300 + "x",
    ):
        with pytest.raises(LookupFlaw) as flaw:
            lookup_parse(text)
        assert 0 <= flaw.value.start < flaw.value.end <= len(text)


# Pieces of the language, put together at random, reach deeper than any letters do.
PIECES = (
    "(",
    ")",
    "-",
    " ",
    '"',
    "OR",
    "AND",
    "NOT",
    "tea",
    "kind:",
    "field:",
    "=",
    "..",
    "<",
    ">=",
    "salience:",
    "used:",
    "30d",
    "2026-05-01",
    "0.25",
    "scope:/a",
    "rung:archived",
    "is:",
    "é",
    "\u00a0",
    "\n",
    ":",
    "never",
    "id:",
    "0f",
)
texts = st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@examples(400)
@given(texts)
def test_any_text_gives_a_tree_or_a_place_within_it(text: str):
    tree, flaw = read(text)
    if flaw is None:
        assert lookup_parse(tree_words(tree)) == tree
    else:
        assert 0 <= flaw.start < flaw.end <= len(text)
        assert flaw.sentence


def read(text: str) -> tuple[Tree | None, LookupFlaw | None]:
    try:
        return lookup_parse(text), None
    except LookupFlaw as flaw:
        return None, flaw


plain = st.text(st.characters(blacklist_characters='"\x00', blacklist_categories=("Cs",)), min_size=1, max_size=8)
days = st.dates(dt.date(1000, 1, 1), dt.date(9998, 12, 31))
decimals = st.integers(0, 10**11).map(lambda units: units / 1000)
wholes = st.integers(0, 999_999_999)
order = st.sampled_from(("<", "<=", ">", ">="))


def between(name: str, values: st.SearchStrategy) -> st.SearchStrategy[Tree]:
    return st.tuples(values, values).map(lambda pair: Between(name, min(pair), max(pair)))


leaves: st.SearchStrategy[Tree] = st.one_of(
    st.sampled_from(("tea", "well-known", "-", "12:30", "a:b", "é", "<>", "or")).map(Word),
    plain.filter(str.strip).map(Phrase),
    st.text("0123456789abcdef", min_size=1, max_size=32).map(IdBegins),
    st.sampled_from(("/", "/a", "/a/b(c)", "/a=b")).map(Within),
    st.builds(Named, st.sampled_from(("kind", "category", "provenance")), plain | st.just("")),
    st.sampled_from(("active", "summarized", "detached", "archived")).map(OnRung),
    st.builds(HasField, plain, st.none() | plain | st.just("")),
    st.sampled_from((Flag("pinned"), Flag("pinned", False), Flag("live"), Flag("released"), NeverUsed())),
    st.builds(Compare, st.just("salience"), order, decimals),
    st.builds(Compare, st.just("retrievals"), order | st.just("="), wholes),
    st.builds(Compare, st.sampled_from(("created", "used")), order | st.just("="), days),
    st.builds(Elapsed, st.sampled_from(("created", "used")), order, st.integers(0, 10**10).map(float)),
    between("salience", decimals),
    between("retrievals", wholes),
    between("created", days),
    between("used", days),
)


def _several(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    parts = st.lists(inner, min_size=2, max_size=3)
    return inner.map(Not) | parts.map(lambda some: tree_all(*some)) | parts.map(lambda some: tree_any(*some))


def depth(tree: Tree) -> int:
    """Return how many parentheses and minuses stand around the innermost part, at most."""
    match tree:
        case Not(part):
            return 1 + isinstance(part, (AllOf, AnyOf)) + depth(part)
        case AllOf(parts):
            return max(isinstance(part, AnyOf) + depth(part) for part in parts)
        case AnyOf(parts):
            return max(map(depth, parts))
    return 0


trees = st.recursive(leaves, _several, max_leaves=8)


@examples(400)
@given(trees)
def test_a_tree_in_words_is_read_as_the_same_tree(tree: Tree):
    assume(len(tree_words(tree)) <= MAX_LENGTH and depth(tree) <= MAX_DEPTH)
    assert lookup_parse(tree_words(tree)) == tree, tree_words(tree)


def test_words_at_the_top_ask_and_everything_else_is_a_condition():
    tree = lookup_parse('hot "green tea" rung:active -cold (a OR b)')
    question, conditions = tree_question(tree)
    assert question == "hot green tea"
    assert conditions == lookup_parse('"green tea" rung:active -cold (a OR b)')
    assert tree_texts(tree) == ["hot", "green tea", "cold", "a", "b"]
    assert tree_wanted(tree) == ["hot", "green tea", "a", "b"]
    assert tree_without(tree, {"hot", "a", "cold"}) == lookup_parse('"green tea" rung:active b')


def test_the_narrowest_scope_at_the_top_bounds_everything():
    assert tree_scope(lookup_parse("scope:/user scope:/user/mara tea")) == "/user/mara"
    assert tree_scope(lookup_parse("scope:/user OR tea")) == "/"
    assert tree_scope(lookup_parse("-scope:/user")) == "/"


@pytest.mark.parametrize(
    ("text", "standings"),
    [
        ("tea", ("live", "archived")),
        ("rung:archived", ("archived",)),
        ("-rung:archived", ("live",)),
        ("rung:active", ("live",)),
        ("is:live", ("live",)),
        ("is:released", ("released",)),
        ("is:released OR tea", ("live", "archived", "released")),
        ("-is:released", ("live", "archived")),
    ],
)
def test_only_what_can_hold_anything_is_looked_at(text: str, standings: tuple[str, ...]):
    assert tree_standings(lookup_parse(text)) == standings


def test_every_example_of_a_qualifier_reads():
    for example in EXAMPLES.values():
        assert lookup_parse(example) is not None


def test_every_example_of_the_documentation_reads():
    page = (Path(__file__).parents[2] / "docs" / "lookup.md").read_text()
    shown = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert len(shown) >= 20
    for example in shown:
        assert lookup_parse(example) is not None, example
