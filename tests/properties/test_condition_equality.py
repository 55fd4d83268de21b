"""The SQL of a condition against what the condition says; the database reads every pattern that passes the check."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.core.errors import ValueRefused
from memory.core.ids import uuid7
from memory.core.patterns import pattern_check
from memory.formulas.salience import fade_key, salience_effective
from memory.models import Scope, Topic, Vitality
from memory.models import patterns as trial
from memory.predicates.rule_conditions import (
    FIELDS,
    LIST_OPERATORS,
    OPERATORS,
    ORDER_NAMES,
    condition_json,
    condition_parse,
)
from memory.predicates.sql import predicate_sql
from memory.predicates.tree import RUNGS, Predicate
from memory.predicates.words import predicate_describe
from tests.cast import raises_code
from tests.generated import examples
from tests.predicates.oracle import TopicFacts, condition_holds

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
DAY = 86_400.0
HALF_LIFE = 30 * DAY
SCORE = "(v.retrieval_count * 0.125)"

KINDS = ("tool_output", "decision", "Decision", "it's", "100%s", "")
CATEGORIES = ("work", "home", "a,b", "100%", '"quoted"')
SCOPES = ("/", "/project", "/project/old", "/project/old/deep", "/project/older", "/user/alice")
TEXTS = ("Allergy to nuts", "allergic", "an Allergist", "50% off_", "", "line\nnext", "\\d+", "état ÉTÉ")
PATTERNS = (r"\ballerg(y|ic|ies)\b", "^a", "f_$", r"\d+%", "T.*n", r"line$", "[^a-z]", r"next\Z", "été")
# Moments around which ages are compared: the very second, a little before and after.
AGES = (0.0, 1.0, 3600.0, DAY, 7 * DAY, 30 * DAY)


def ages() -> st.SearchStrategy[float]:
    return st.builds(lambda age, off: age + off, st.sampled_from(AGES), st.sampled_from((-0.000001, 0.0, 0.000001, 1)))


@st.composite
def topics(draw: st.DrawFn) -> dict[str, Any]:
    created = NOW - dt.timedelta(seconds=draw(ages()))
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "scope": draw(st.sampled_from(SCOPES)),
        "categories": draw(st.lists(st.sampled_from(CATEGORIES), unique=True)),
        "created_at": created,
        "last_retrieved_at": draw(st.none() | ages().map(lambda age: NOW - dt.timedelta(seconds=age))),
        "retrievals": draw(st.integers(0, 5)),
        "salience": draw(st.sampled_from((0.0, 0.1, 1.0, 3.3, 10.0))),
        "reinforced_at": NOW - dt.timedelta(days=draw(st.integers(0, 90))),
        "provenance": draw(st.sampled_from(("api", "import", "Import"))),
        "rung": draw(st.integers(0, 3)),
        "pinned": draw(st.booleans()),
        "title": draw(st.sampled_from(TEXTS)),
        "summary": draw(st.sampled_from(TEXTS)),
    }


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    field = draw(st.sampled_from(sorted(FIELDS)))
    kind = FIELDS[field]
    op = draw(st.sampled_from(OPERATORS[kind]))
    words = {
        "kind": st.sampled_from(KINDS),
        "provenance": st.sampled_from(("api", "import", "IMPORT", "")),
        "scope": st.sampled_from((*SCOPES, "/nowhere", "/project/")),
        "category": st.sampled_from((*CATEGORIES, "x")),
        "rung": st.sampled_from(RUNGS),
    }
    match kind:
        case "duration":
            value: Any = draw(st.sampled_from((0, 1, 3600, "24h", "7d", "1d", 0.000001, 2_591_999.999999, "1000y")))
        case "count":
            value = draw(st.integers(0, 5))
        case "number" if field == "score":
            # Scores here are eighths, so that equality is exact on both sides.
            value = draw(st.integers(-1, 6)) / 8
        case "number":
            value = draw(st.sampled_from((-1, 0, 0.012345, 0.7771, 5)))
        case "switch":
            value = draw(st.booleans())
        case "text":
            value = draw(
                st.sampled_from(PATTERNS if op == "matches" else (*(text for text in TEXTS if text), "É", "%"))
            )
        case _ if op in LIST_OPERATORS:
            value = draw(st.lists(words[field], min_size=1, max_size=3))
        case _:
            value = draw(words[field])
    names = {sign: name for name, sign in ORDER_NAMES.items()}
    return {"field": field, "op": draw(st.sampled_from((op, names.get(op, op)))), "value": value}


conditions = st.recursive(
    comparisons(),
    lambda inner: (
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"not": inner})
    ),
    max_leaves=8,
)


class Bound(dict[str, Any]):
    def bind(self, value: Any) -> str:
        self[f"p{len(self)}"] = value
        return f"%(p{len(self) - 1})s"


def fade_of(row: dict[str, Any]) -> float:
    return fade_key(row["salience"], reinforced_at=row["reinforced_at"].timestamp(), half_life=HALF_LIFE)


def store(rows: list[dict[str, Any]]) -> None:
    Vitality.objects.all().delete()
    Topic.objects.all().delete()
    scopes = {path: Scope.objects.get_or_create(path=path)[0] for path in {row["scope"] for row in rows}}
    made = [uuid7(now_ms=1_790_000_000_000) for _ in rows]
    Topic.objects.bulk_create(
        Topic(
            id=topic_id,
            scope=scopes[row["scope"]],
            kind=row["kind"],
            title=row["title"],
            summary=row["summary"],
            categories=row["categories"],
            provenance=row["provenance"],
            created_at=row["created_at"],
            updated_at=row["created_at"],
            rung=row["rung"],
        )
        for topic_id, row in zip(made, rows, strict=True)
    )
    Vitality.objects.bulk_create(
        Vitality(
            topic_id=topic_id,
            scope=scopes[row["scope"]],
            kind=row["kind"],
            created_at=row["created_at"],
            rung=row["rung"],
            live=row["rung"] < 3,
            pinned=row["pinned"],
            retrieval_count=row["retrievals"],
            last_retrieved_at=row["last_retrieved_at"],
            reinforced_at=row["reinforced_at"],
            salience=row["salience"],
            half_life=HALF_LIFE,
            fade=fade_of(row),
            fade_floor=fade_of(row),
        )
        for topic_id, row in zip(made, rows, strict=True)
    )


def facts_of(row: dict[str, Any], categories: frozenset[str] = frozenset()) -> TopicFacts:
    return TopicFacts(
        kind=row["kind"],
        scope=row["scope"],
        categories=frozenset(row["categories"]) | categories,
        created_at=row["created_at"],
        last_retrieved_at=row["last_retrieved_at"],
        retrievals=row["retrievals"],
        score=row["retrievals"] * 0.125,
        salience=salience_effective(
            row["salience"], reinforced_at=row["reinforced_at"].timestamp(), half_life=HALF_LIFE, now=NOW.timestamp()
        ),
        provenance=row["provenance"],
        rung=RUNGS[row["rung"]],
        pinned=row["pinned"],
        title=row["title"],
        summary=row["summary"],
    )


def chosen(condition: Predicate, added: dict[str, Predicate] | None = None, *, topic_id: str = "") -> list[bool]:
    """Return for every stored topic, in the order of storing, what the SQL says; null fails the test. ``topic_id`` may
    refer to ``x``."""
    bound = Bound()
    now = f"{bound.bind(NOW)}::timestamptz"
    given_by = {
        category: predicate_sql(part, now=now, score_sql=SCORE, bind=bound.bind).sql
        for category, part in (added or {}).items()
    }
    compiled = predicate_sql(
        condition, now=now, score_sql=SCORE, bind=bound.bind, categories_added=given_by, topic_id=topic_id
    )
    source = "memory_vitality v JOIN memory_vitality x ON x.topic_id = v.topic_id"
    join = "JOIN memory_topic t ON t.id = v.topic_id" if compiled.needs_topic or given_by else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {compiled.sql} FROM {source} {join} ORDER BY v.topic_id", bound)
        return [row[0] for row in cursor.fetchall()]


@examples(150)
@given(st.lists(topics(), min_size=5, max_size=15), st.lists(conditions, min_size=1, max_size=10))
def test_the_filter_chooses_what_the_condition_says(rows: list[dict[str, Any]], trees: list[dict[str, Any]]) -> None:
    store(rows)
    for tree in trees:
        condition = condition_parse(tree)
        expected = [condition_holds(condition, facts_of(row), now=NOW) for row in rows]
        assert chosen(condition) == expected, tree
        assert chosen(condition, topic_id="x.topic_id") == expected, tree
        assert chosen(condition_parse({"not": tree})) == [not one for one in expected], tree


@examples(100)
@given(conditions)
def test_the_canonical_form_says_the_same_and_is_a_fixed_point(tree: dict[str, Any]) -> None:
    condition = condition_parse(tree)
    assert condition_parse(condition_json(condition)) == condition
    assert condition_json(condition_parse(condition_json(condition))) == condition_json(condition)
    assert predicate_describe(condition).startswith(("whose ", "that ", "("))


@examples(60)
@given(st.lists(topics(), min_size=5, max_size=15), conditions, st.sampled_from(CATEGORIES))
def test_a_category_that_another_rule_gives_counts_as_there(
    rows: list[dict[str, Any]], giving: dict[str, Any], category: str
) -> None:
    store(rows)
    gives = condition_parse(giving)
    asks = condition_parse({"all": [{"field": "category", "op": "has_any", "value": [category, "x"]}]})
    expected = []
    for row in rows:
        added = frozenset({category}) if condition_holds(gives, facts_of(row), now=NOW) else frozenset[str]()
        expected.append(condition_holds(asks, facts_of(row, added), now=NOW))
    assert chosen(asks, {category: gives}) == expected


# Patterns: built from what the subset is made of, so that most are accepted.

_ATOMS = st.one_of(
    st.sampled_from(list("abzAZ019_ -,/%'\"#&~")),
    st.sampled_from([r"\.", r"\\", r"\[", r"\]", r"\^", r"\$", r"\(", r"\)", r"\{", r"\|", r"\*", r"\+", r"\?", r"\-"]),
    st.sampled_from([r"\n", r"\t", r"\x41", r"\x1c", r"\v", "\n", "{", "}", "]"]),
    st.sampled_from([".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"]),
    st.sampled_from(["[abc]", "[^abc]", "[a-z]", "[^A-Z]", "[Z-a]", "[]a]", "[^]]", "[a^]", "[-a]", "[a-]", r"[\]\\]"]),
    st.sampled_from([r"[\d_]", r"[^\s]", r"[\S\n]", r"[^\W_]", r"[\w.-]", r"[^\D1]", r"[\x1c-\x1f]", "[!-/]"]),
)
_ANCHORS = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\Z"])
_QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "{0}", "*?", "+?", "??", "{1,2}?"])
patterns = st.recursive(
    _ATOMS | _ANCHORS,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=4).map("".join)
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})")
        | inner.map(lambda part: f"(?:{part}|)")
        | st.tuples(inner, _QUANTIFIERS).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
        | st.tuples(_ATOMS, _QUANTIFIERS).map("".join)
    ),
    max_leaves=8,
)


@examples(100)
@given(patterns)
def test_the_database_reads_every_pattern_that_passes_the_check(pattern: str) -> None:
    try:
        pattern_check(pattern)
    except ValueRefused:
        assume(False)
    trial.pattern_try(pattern)


def test_a_pattern_that_the_database_takes_too_long_over_is_refused_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial, "TRIAL_MS", 50)
    monkeypatch.setattr(trial, "_TRIAL_SQL", "SELECT pg_sleep(5) WHERE %s <> ''")
    Scope.objects.create(path="/before")
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        limit = cursor.fetchone()
    with raises_code(ValueRefused, "invalid-pattern"):
        trial.pattern_try("a")
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == limit
    assert Scope.objects.filter(path="/before").exists()


def test_a_pattern_that_the_database_cannot_read_is_refused_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "pattern_to_postgres", lambda pattern: pattern)
    with raises_code(ValueRefused, "invalid-pattern"):
        trial.patterns_try(["a", "("])
    assert not Scope.objects.filter(path="/nowhere").exists()


def test_the_database_reads_the_largest_patterns_that_pass_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether it is fast enough is for the machine to say.
    monkeypatch.setattr(trial, "TRIAL_MS", 60_000)
    for pattern in (
        r"(\w{100}){10}",
        "(?:.{99}){1,10}x",
        "a.*" * 9 + "b",
        "[^\\W_]{100}" * 15,
        ".{100}" * 33,
        r"(?:\w+\W+){0,100}x",
        "(" + "|".join(f"{chr(97 + at)}{at}\\w*" for at in range(10)) + ")",
        "(?:(?:a{1,10}b){1,10}c){1,10}",
    ):
        trial.pattern_try(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)*b",
        "(ab|Ab)*c",
        "(.*a){10}",
        r"(\w+\s?)*x",
        "([a-z]+|x)*!!",
        "((a+)b?)+c",
        "(a+){2,}b",
        r"(\s*,?\s*x)+y",
        "(x+x+)+y",
        "((.|.))+z$",
        r"((\w|\w))*-",
        "((a?|b?)c)+d",
        "(a|b|ab)*c",
        r"(\w+|\d+)*;",
    ],
)
def test_the_database_is_quick_where_a_matcher_that_goes_back_would_not_be(pattern: str) -> None:
    trial.pattern_try(pattern)
