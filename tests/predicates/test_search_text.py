"""The language of the lookup box: what it reads, what it refuses, and where it says the mistake is."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.predicates.search_parts import question_of, scope_of, states_of, texts_of, without_words
from memory.predicates.search_qualifiers import EXAMPLES
from memory.predicates.search_text import MAX_DEPTH, MAX_LENGTH, MAX_PARTS, SearchFlaw, search_parse
from memory.predicates.tree import AllOf, AnyOf, Comparison, Not, Phrase, Predicate, Word, all_of, any_of
from memory.predicates.words import predicate_describe
from tests.generated import examples
from tests.predicates.typed import typed

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
        ("id:01991F3A-12", Comparison("id", "begins", "01991f3a12")),
        ("01991f3a-aaaa-7bbb-8ccc-000000000000", Comparison("id", "begins", "01991f3aaaaa7bbb8ccc000000000000")),
        ("scope:/user/mara/", Comparison("scope", "within", "/user/mara")),
        ("scope:user", Comparison("scope", "within", "/user")),
        ("kind:note", Comparison("kind", "is", "note")),
        ('kind:"tool output"', Comparison("kind", "is", "tool output")),
        ('kind:""', Comparison("kind", "is", "")),
        ("KIND:note", Comparison("kind", "is", "note")),
        ("category:work", Comparison("category", "has", "work")),
        ("provenance:api", Comparison("provenance", "is", "api")),
        ("rung:Archived", Comparison("rung", "is", "archived")),
        ("is:archived", Comparison("rung", "is", "archived")),
        ("is:pinned", Comparison("pinned", "is", True)),
        ("is:released", Comparison("released", "is", True)),
        ("is:live", Comparison("live", "is", True)),
        ("pinned:no", Comparison("pinned", "is", False)),
        ("field:city", Comparison("field", "has", ("city",))),
        ("field:city=Berlin", Comparison("field", "has", ("city", "Berlin"))),
        ('field:"due date"="next week"', Comparison("field", "has", ("due date", "next week"))),
        ('field:city=""', Comparison("field", "has", ("city", ""))),
        ("field:formula=a=b", Comparison("field", "has", ("formula", "a=b"))),
        ("salience:<0.1", Comparison("salience", "<", 0.1)),
        ("salience:≥.5", Comparison("salience", ">=", 0.5)),
        ("salience:0.1..0.3", AllOf((Comparison("salience", ">=", 0.1), Comparison("salience", "<=", 0.3)))),
        ("retrievals:>3", Comparison("retrievals", ">", 3)),
        ("retrievals:0", Comparison("retrievals", "is", 0)),
        ("retrievals:1..5", AllOf((Comparison("retrievals", ">=", 1), Comparison("retrievals", "<=", 5)))),
        ("created:<2026-05-01", Comparison("created", "<", dt.date(2026, 5, 1))),
        ("created:2026-05-01", Comparison("created", "is", dt.date(2026, 5, 1))),
        (
            "created:2026-05-01..2026-05-31",
            AllOf(
                (Comparison("created", ">=", dt.date(2026, 5, 1)), Comparison("created", "<=", dt.date(2026, 5, 31)))
            ),
        ),
        ("created:<=2w", Comparison("age", "<=", 14 * DAY)),
        ("used:>30d", Comparison("idle", ">", 30 * DAY)),
        ("idle:>30d", Comparison("idle", ">", 30 * DAY)),
        ("age:<=24h", Comparison("age", "<=", DAY)),
        ('title:"hot tap"', Comparison("title", "contains", "hot tap")),
        ("summary:tap", Comparison("summary", "contains", "tap")),
        ("used:never", Comparison("used", "is", None)),
    ],
)
def test_what_is_typed_becomes_a_tree(text: str, tree: Predicate | None):
    assert search_parse(text) == tree


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("scop:/user tea", "scop:"),
        ("tea zzzzzz:x", "zzzzzz:"),
        ("see https://example.com", "https:"),
        ("kind: note", "kind:"),
        ("kind:(a OR b)", "kind:"),
        ("rung:archive", "archive"),
        ("is:lost", "lost"),
        ("pinned:maybe", "maybe"),
        ("id:xyz", "xyz"),
        ("scope:/a/../b", "/a/../b"),
        ("field:=x", "=x"),
        ("field:city=", "city="),
        ("salience:0.5", "0.5"),
        ("salience:<low", "<low"),
        ("salience:-1", "-1"),
        ("salience:0.5..0.1", "0.5..0.1"),
        ("salience:<", "<"),
        ("retrievals:>2.5", ">2.5"),
        ("created:<2026-02-30", "<2026-02-30"),
        ("created:soon", "soon"),
        ("created:0001-01-01", "0001-01-01"),
        ("used:30d", "30d"),
        ("idle:30d", "30d"),
        ("age:>", ">"),
        ("age:>2026-05-01", ">2026-05-01"),
        ('title:""', '""'),
        ("tea OR", "OR"),
        ("OR tea", "OR"),
        ("tea AND OR x", "AND"),
        ("NOT", "NOT"),
        ("(tea", "("),
        ("(", "("),
        ("tea)", ")"),
        ("tea ()", "()"),
        ('"tea', '"tea'),
        ('""', '""'),
        ('kind:"tea', '"tea'),
        ('kind:a"b"', 'a"b"'),
        ("tea\x00", "\x00"),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, wrong: str):
    with pytest.raises(SearchFlaw) as flaw:
        search_parse(text)
    assert text[flaw.value.start : flaw.value.end] == wrong
    assert flaw.value.code.startswith(("invalid-", "unknown-lookup-"))


def test_length_depth_and_number_of_parts_are_bounded():
    assert search_parse("x" * MAX_LENGTH) is not None
    assert search_parse(" ".join(["x"] * MAX_PARTS)) is not None
    assert search_parse("(" * MAX_DEPTH + "x" + ")" * MAX_DEPTH) == Word("x")
    for text in (
        "x" * (MAX_LENGTH + 1),
        " ".join(["x"] * (MAX_PARTS + 1)),
        "(" * 400 + "x" + ")" * 400,
        "-" * 300 + "x",
    ):
        with pytest.raises(SearchFlaw) as flaw:
            search_parse(text)
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
        assert search_parse(typed(tree)) == tree
    else:
        assert 0 <= flaw.start < flaw.end <= len(text)
        assert flaw.sentence


def read(text: str) -> tuple[Predicate | None, SearchFlaw | None]:
    try:
        return search_parse(text), None
    except SearchFlaw as flaw:
        return None, flaw


plain = st.text(st.characters(blacklist_characters='"\x00', blacklist_categories=("Cs",)), min_size=1, max_size=8)
days = st.dates(dt.date(1000, 1, 1), dt.date(9998, 12, 31))
decimals = st.integers(0, 10**11).map(lambda units: units / 1000)
wholes = st.integers(0, 999_999_999)
order = st.sampled_from(("<", "<=", ">", ">="))


def between(name: str, values: st.SearchStrategy) -> st.SearchStrategy[Predicate]:
    return st.tuples(values, values).map(
        lambda pair: AllOf((Comparison(name, ">=", min(pair)), Comparison(name, "<=", max(pair))))
    )


def compared(names: tuple[str, ...], op: str | st.SearchStrategy, values: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(Comparison, st.sampled_from(names), st.just(op) if isinstance(op, str) else op, values)


leaves: st.SearchStrategy[Predicate] = st.one_of(
    st.sampled_from(("tea", "well-known", "-", "12:30", "a:b", "é", "<>", "or")).map(Word),
    plain.filter(str.strip).map(Phrase),
    compared(("id",), "begins", st.text("0123456789abcdef", min_size=1, max_size=32)),
    compared(("scope",), "within", st.sampled_from(("/", "/a", "/a/b(c)", "/a=b"))),
    compared(("kind", "provenance"), "is", plain | st.just("")),
    compared(("category",), "has", plain | st.just("")),
    compared(("title", "summary"), "contains", plain),
    compared(("rung",), "is", st.sampled_from(("active", "summarized", "detached", "archived"))),
    compared(("field",), "has", st.tuples(plain) | st.tuples(plain, plain | st.just(""))),
    compared(("live", "released"), "is", st.just(True)),
    compared(("pinned",), "is", st.booleans()),
    compared(("used",), "is", st.none()),
    compared(("salience",), order, decimals),
    compared(("retrievals",), order | st.just("is"), wholes),
    compared(("created", "used"), order | st.just("is"), days),
    compared(("age", "idle"), order, st.integers(0, 10**10).map(float)),
    between("salience", decimals),
    between("retrievals", wholes),
    between("created", days),
    between("used", days),
)


def _several(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    parts = st.lists(inner, min_size=2, max_size=3)
    return inner.map(Not) | parts.map(lambda some: all_of(*some)) | parts.map(lambda some: any_of(*some))


def depth(tree: Predicate) -> int:
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
def test_a_tree_in_words_is_read_as_the_same_tree(tree: Predicate):
    assume(len(typed(tree)) <= MAX_LENGTH and depth(tree) <= MAX_DEPTH)
    assert search_parse(typed(tree)) == tree, typed(tree)


def test_words_at_the_top_ask_and_everything_else_is_a_condition():
    tree = search_parse('hot "green tea" rung:active -cold (a OR b)')
    question, conditions = question_of(tree)
    assert question == "hot green tea"
    assert conditions == search_parse('"green tea" rung:active -cold (a OR b)')
    assert texts_of(tree) == ["hot", "green tea", "cold", "a", "b"]
    assert texts_of(tree, wanted=True) == ["hot", "green tea", "a", "b"]
    assert without_words(tree, {"hot", "a", "cold"}) == search_parse('"green tea" rung:active b')


def test_the_narrowest_scope_at_the_top_bounds_everything():
    assert scope_of(search_parse("scope:/user scope:/user/mara tea")) == "/user/mara"
    assert scope_of(search_parse("scope:/user OR tea")) == "/"
    assert scope_of(search_parse("-scope:/user")) == "/"


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
    assert states_of(search_parse(text)) == standings


def test_every_example_of_a_qualifier_reads():
    for example in EXAMPLES.values():
        assert search_parse(example) is not None


def test_every_example_of_the_documentation_reads():
    page = (Path(__file__).parents[2] / "docs" / "lookup.md").read_text()
    shown = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert len(shown) >= 20
    for example in shown:
        assert search_parse(example) is not None, example


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tea -"hot tap"', "that mention tea and that do not say “hot tap”"),
        ("id:0199 -id:02", "whose id begins with 0199 and whose id does not begin with 02"),
        ("field:city", "that have the field city"),
        ("-field:city=Berlin", "whose field city is not Berlin"),
        ("is:live OR is:released", "that are live or that are released"),
        ("used:never", "that were never used"),
        ("-used:never", "that were used"),
        ("created:<2026-05-01", "whose day of creation is before 2026-05-01"),
        ("-used:>=2026-05-01", "whose day of the last use is not on or after 2026-05-01"),
        ("created:2026-05-01", "whose day of creation is 2026-05-01"),
        ("-created:2026-05-01", "whose day of creation is not 2026-05-01"),
        (
            "used:>30d salience:>=0.1",
            "whose time since the last use is above 30 days and whose salience is at least 0.1",
        ),
        ("-(kind:note rung:active)", "whose kind is not note or whose rung is not active"),
    ],
)
def test_a_search_is_described_in_plain_english(text: str, words: str):
    predicate = search_parse(text)
    assert predicate is not None
    assert predicate_describe(predicate) == words


@examples(200)
@given(trees)
def test_every_search_can_be_described(tree: Predicate):
    assert predicate_describe(tree)
