import re
from typing import Any

import pytest

from memory.core.errors import ValueRefused
from memory.predicates.rule_conditions import FIELDS, OPERATORS, condition_json, condition_parse
from memory.predicates.tree import categories_of, needs_time, patterns_of
from memory.predicates.words import predicate_describe


def compare(field: Any, op: Any, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


KIND = compare("kind", "is", "tool_output")


def refused(data: Any) -> ValueRefused:
    with pytest.raises(ValueRefused) as problem:
        condition_parse(data)
    return problem.value


def nested(depth: int) -> Any:
    tree: Any = KIND
    for _level in range(depth - 1):
        tree = {"not": tree}
    return tree


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, "invalid-rule"),
        ([KIND], "invalid-rule"),
        ({}, "invalid-rule"),
        ({"kind": "tool_output"}, "invalid-rule"),
        ({"all": [KIND], "any": [KIND]}, "invalid-rule"),
        ({**KIND, "note": 1}, "invalid-rule"),
        ({"all": []}, "invalid-rule"),
        ({"any": KIND}, "invalid-rule"),
        ({"not": [KIND]}, "invalid-rule"),
        ({"all": [KIND, {"not": {"any": [compare("colour", "is", "red")]}}]}, "invalid-rule"),
        (compare(["kind"], "is", "x"), "invalid-rule"),
        (compare("kind", "<", "x"), "invalid-rule"),
        (compare("kind", None, "x"), "invalid-rule"),
        (compare("scope", "in", ["/a"]), "invalid-rule"),
        (compare("age", "is", "7d"), "invalid-rule"),
        (compare("kind", "is", 3), "invalid-rule"),
        (compare("kind", "is", "x" * 201), "invalid-rule"),
        (compare("kind", "is", "a\x00"), "invalid-rule"),
        (compare("kind", "is", "\ud800"), "invalid-rule"),
        (compare("kind", "in", "decision"), "invalid-rule"),
        (compare("kind", "in", []), "invalid-rule"),
        (compare("kind", "in", ["a"] * 101), "invalid-rule"),
        (compare("kind", "in", ["a", 1]), "invalid-rule"),
        (compare("age", ">", "soon"), "invalid-member"),
        (compare("age", ">", -1), "invalid-member"),
        (compare("age", ">", True), "invalid-rule"),
        (compare("idle", ">", float("nan")), "invalid-member"),
        (compare("retrievals", ">", 1.5), "invalid-rule"),
        (compare("retrievals", ">", -1), "invalid-rule"),
        (compare("retrievals", "is", True), "invalid-rule"),
        (compare("score", "<", "0.1"), "invalid-rule"),
        (compare("salience", "<", float("inf")), "invalid-rule"),
        (compare("score", "<", float("nan")), "invalid-rule"),
        (compare("score", "<", 10**400), "invalid-rule"),
        (compare("pinned", "is", "yes"), "invalid-rule"),
        (compare("rung", "is", "gone"), "invalid-rule"),
        (compare("rung", "is", []), "invalid-rule"),
        (compare("scope", "within", "/a/../b"), "invalid-scope"),
        (compare("category", "has", ""), "invalid-rule"),
        (compare("title", "contains", ""), "invalid-rule"),
        (compare("title", "matches", "(a?)+"), "invalid-pattern"),
        (compare("text", "matches", ""), "invalid-pattern"),
        ({"any": [KIND] * 51}, "invalid-rule"),
        ({"any": [{"all": [KIND]}] * 101}, "invalid-rule"),
        (nested(9), "invalid-rule"),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused(data: Any, code: str) -> None:
    assert refused(data).code == code


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (None, "condition"),
        ({"any": KIND}, "condition.any"),
        ({"not": [KIND]}, "condition.not"),
        ({"all": [KIND, {"not": {"any": [compare("colour", "is", "red")]}}]}, "condition.all[1].not.any[0].field"),
        (compare("kind", "<", "x"), "condition.op"),
        (compare("kind", "in", ["a", 1]), "condition.value"),
        (compare("title", "matches", "(a?)+"), "condition.value"),
        ({"any": [KIND] * 51}, "condition.any[50]"),
        (nested(9), "condition.not.not.not.not.not.not.not.not"),
    ],
)
def test_a_refusal_names_the_place_first(data: Any, place: str) -> None:
    assert re.split("[ :]", refused(data).sentence)[0] == place


def test_the_bounds_themselves_are_accepted() -> None:
    condition_parse(nested(8))
    condition_parse({"any": [KIND] * 50})
    condition_parse(compare("kind", "in", [f"kind {number}" for number in range(100)]))
    condition_parse(compare("kind", "is", "x" * 200))


def test_every_field_has_operators_and_each_is_named_in_the_refusal_of_another() -> None:
    for field, kind in FIELDS.items():
        problem = refused(compare(field, "resembles", 1))
        assert problem.code == "invalid-rule"
        assert ", ".join(OPERATORS[kind]) in problem.sentence


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
                compare("title", "contains", "(a?)+"),
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
        (compare("text", "matches", r"\bnuts?\b"), r"whose title, summary or field matches the pattern \bnuts?\b"),
        ({"not": compare("summary", "contains", "to do")}, "whose summary does not contain “to do”"),
        (compare("retrievals", "is", 0), "whose number of recalls is 0"),
        (compare("rung", "is_not", "active"), "whose rung is not active"),
        ({"field": {"name": "city", "op": "is", "value": "Bonn"}}, "whose field city is Bonn"),
        ({"not": {"field": {"name": "city", "op": "contains", "value": "B"}}}, "whose field city does not contain B"),
        ({"field": {"name": "city", "op": "matches", "value": "^B"}}, "whose field city matches the pattern ^B"),
        ({"field": {"name": "city", "op": "has"}}, "that have the field city"),
    ],
)
def test_a_condition_is_reported_in_plain_english(data: Any, words: str) -> None:
    assert predicate_describe(condition_parse(data)) == words


@pytest.mark.parametrize(
    ("condition", "waits"),
    [
        ({"field": "age", "op": ">=", "value": "7d"}, True),
        ({"field": "idle", "op": ">", "value": "1h"}, True),
        ({"field": "age", "op": ">=", "value": 0}, False),
        ({"field": "age", "op": "<", "value": "7d"}, False),
        ({"not": {"field": "age", "op": "<", "value": "7d"}}, True),
        ({"field": "kind", "op": "is", "value": "note"}, False),
        ({"all": [{"field": "kind", "op": "is", "value": "note"}, {"field": "age", "op": ">=", "value": "7d"}]}, True),
        ({"any": [{"field": "kind", "op": "is", "value": "note"}, {"field": "age", "op": ">=", "value": "7d"}]}, False),
        (
            {"not": {"any": [{"field": "kind", "op": "is", "value": "x"}, {"field": "age", "op": "<", "value": "7d"}]}},
            True,
        ),
    ],
)
def test_whether_a_condition_waits_for_an_age(condition: Any, waits: bool):
    assert needs_time(condition_parse(condition)) is waits
