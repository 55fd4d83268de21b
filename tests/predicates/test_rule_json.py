from typing import Any

import pytest

from memory.domain.errors import ValueRefused
from memory.predicates.rule_json import FIELDS, OPERATORS, condition_json, condition_parse
from memory.predicates.tree import categories_of, patterns_of
from memory.predicates.words import predicate_describe


def compare(field: Any, op: Any, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


KIND = compare("kind", "is", "tool_output")


def refused(data: Any) -> str:
    with pytest.raises(ValueRefused) as problem:
        condition_parse(data)
    return problem.value.sentence


def nested(depth: int) -> Any:
    tree: Any = KIND
    for _level in range(depth - 1):
        tree = {"not": tree}
    return tree


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "condition must be an object: one of all, any, not, or a comparison with field, op and value."),
        ([KIND], "condition must be an object"),
        ({}, "it holds nothing."),
        ({"kind": "tool_output"}, "it holds kind."),
        ({"all": [KIND], "any": [KIND]}, "condition must hold exactly one of all, any, not"),
        ({**KIND, "note": 1}, "it holds field, note, op, value."),
        ({"all": []}, "condition.all must be a list of at least one condition."),
        ({"any": KIND}, "condition.any must be a list of at least one condition."),
        ({"not": [KIND]}, "condition.not must be an object"),
        (
            {"all": [KIND, {"not": {"any": [compare("colour", "is", "red")]}}]},
            "condition.all[1].not.any[0].field: there is no field 'colour'; there are kind, scope, category",
        ),
        (compare(["kind"], "is", "x"), "condition.field: there is no field ['kind']"),
        (compare("kind", "<", "x"), "op: kind cannot be compared with '<'; possible are is, is_not, in, not_in."),
        (compare("kind", None, "x"), "condition.op: kind cannot be compared with None"),
        (compare("scope", "in", ["/a"]), "possible are within, is."),
        (compare("age", "is", "7d"), "possible are <, <=, >, >=."),
        (compare("kind", "is", 3), "condition.value: 3 is no text."),
        (compare("kind", "is", "x" * 201), "a text has at most 200 characters; this one has 201."),
        (compare("kind", "is", "a\x00"), "must not hold NUL characters"),
        (compare("kind", "is", "\ud800"), "halves of surrogate pairs"),
        (compare("kind", "in", "decision"), "condition.value: 'decision' is no list of at least one text."),
        (compare("kind", "in", []), "is no list of at least one text."),
        (compare("kind", "in", ["a"] * 101), "a list takes at most 100 texts; 101 were given."),
        (compare("kind", "in", ["a", 1]), "1 is no text."),
        (compare("age", ">", "soon"), "condition.value: 'soon' is no duration."),
        (compare("age", ">", -1), "A duration lies between 0 and 1000 years."),
        (compare("age", ">", True), "True is no duration such as 30d, nor a number of seconds."),
        (compare("idle", ">", float("nan")), "A duration lies between 0 and 1000 years."),
        (compare("retrievals", ">", 1.5), "1.5 is no whole number"),
        (compare("retrievals", ">", -1), "-1 is no whole number between 0 and 1000000000."),
        (compare("retrievals", "is", True), "True is no whole number"),
        (compare("score", "<", "0.1"), "'0.1' is no number between"),
        (compare("salience", "<", float("inf")), "inf is no number"),
        (compare("score", "<", float("nan")), "nan is no number"),
        (compare("score", "<", 10**400), "is no number between"),
        (compare("pinned", "is", "yes"), "'yes' is neither true nor false."),
        (compare("rung", "is", "gone"), "'gone' is no rung; there are active, summarized, detached, archived."),
        (compare("rung", "is", []), "[] is no rung"),
        (compare("scope", "within", "/a/../b"), "condition.value: The scope segment '..'"),
        (compare("category", "has", ""), "a category has a name."),
        (compare("title", "contains", ""), "an empty text is contained in every text."),
        (compare("title", "matches", "(a?)+"), "condition.value: A pattern must not repeat"),
        (compare("text", "matches", ""), "An empty pattern matches every text."),
        ({"any": [KIND] * 51}, "condition.any[50]: a condition holds at most 50 comparisons."),
        ({"any": [{"all": [KIND]}] * 101}, "condition.any takes at most 100 conditions; 101 were given."),
        (nested(9), "condition.not.not.not.not.not.not.not.not: a condition nests at most 8 levels deep."),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused_with_the_place_and_what_is_possible(
    data: Any, sentence: str
) -> None:
    assert sentence in refused(data)


def test_the_bounds_themselves_are_accepted() -> None:
    condition_parse(nested(8))
    condition_parse({"any": [KIND] * 50})
    condition_parse(compare("kind", "in", [f"kind {number}" for number in range(100)]))
    condition_parse(compare("kind", "is", "x" * 200))


def test_every_field_has_operators_and_each_is_named_in_the_refusal_of_another() -> None:
    for field, kind in FIELDS.items():
        sentence = refused(compare(field, "resembles", 1))
        assert sentence.endswith(f"possible are {', '.join(OPERATORS[kind])}.")


@pytest.mark.parametrize(
    ("data", "canonical"),
    [
        (compare("age", "ge", "2w"), compare("age", ">=", "14d")),
        (compare("age", "<", 5_400), compare("age", "<", "90min")),
        (compare("idle", "lt", 0.5), compare("idle", "<", 0.5)),
        (compare("retrievals", "gt", 3), compare("retrievals", ">", 3)),
        (compare("scope", "within", "project//old/"), compare("scope", "within", "/project/old")),
        (compare("kind", "in", ["b", "a", "b"]), compare("kind", "in", ["b", "a"])),
        ({"not": {"all": [KIND]}}, {"not": {"all": [KIND]}}),
    ],
)
def test_there_is_one_canonical_form(data: Any, canonical: Any) -> None:
    assert condition_json(condition_parse(data)) == canonical


def test_what_a_condition_asks_for_can_be_listed() -> None:
    condition = condition_parse(
        {
            "any": [
                compare("category", "has", "work"),
                {"not": compare("category", "has_any", ["home", "work"])},
                compare("text", "matches", r"\bnuts?\b"),
                compare("title", "matches", r"\bnuts?\b"),
                compare("title", "contains", "(a+)+"),
            ]
        }
    )
    assert categories_of(condition) == {"work", "home"}
    assert patterns_of(condition) == (r"\bnuts?\b",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"all": [KIND, compare("age", ">=", "7d")]}, "whose kind is tool_output and whose age is at least 7 days"),
        (compare("kind", "in", ["a", "b", "c c"]), "whose kind is a, b or “c c”"),
        (compare("kind", "not_in", ["a", "b"]), "whose kind is neither a nor b"),
        (compare("kind", "is", ""), "whose kind is “”"),
        ({"not": KIND}, "whose kind is not tool_output"),
        ({"not": {"not": KIND}}, "whose kind is tool_output"),
        (
            {"not": {"all": [KIND, compare("score", "<", 0.05)]}},
            "whose kind is not tool_output or whose score is at least 0.05",
        ),
        (
            {"all": [compare("pinned", "is", False), {"any": [KIND, compare("idle", ">", "90d")]}]},
            "that are not pinned and (whose kind is tool_output or whose time since the last use is above 90 days)",
        ),
        (compare("scope", "within", "/project/old"), "that are within scope /project/old"),
        ({"not": compare("scope", "is", "/")}, "that are not in scope /"),
        (compare("category", "has_any", ["work", "home"]), "that have the category work or home"),
        ({"not": compare("category", "has", "work")}, "that do not have the category work"),
        (compare("text", "matches", r"\bnuts?\b"), r"whose title or summary matches the pattern \bnuts?\b"),
        ({"not": compare("summary", "contains", "to do")}, "whose summary does not contain “to do”"),
        (compare("retrievals", "is", 0), "whose number of retrievals is 0"),
        (compare("rung", "is_not", "active"), "whose rung is not active"),
    ],
)
def test_a_condition_is_told_in_plain_english(data: Any, words: str) -> None:
    assert predicate_describe(condition_parse(data)) == words
