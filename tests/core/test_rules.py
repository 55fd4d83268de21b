import datetime as dt
import itertools
from typing import Any

import pytest

from memory.core.errors import ValueRefused
from memory.core.rules import EVENTS, RUNG_ACTIONS, Rule
from memory.policy.rule_parsing import DEFAULT_EVENTS, rule_parse, rules_ordered, rules_parse
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.words import rule_describe
from tests.cast import raises_code
from tests.predicates.oracle import TopicFacts, condition_holds

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)


def compare(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


def rule(name: str = "r", **members: Any) -> dict[str, Any]:
    return {"name": name, "condition": compare("kind", "is", "tool_output"), "action": "archive", **members}


def has(category: str) -> dict[str, Any]:
    return compare("category", "has", category)


def gives(name: str, category: str, condition: Any = None) -> dict[str, Any]:
    condition = condition or compare("kind", "is", "note")
    return rule(name, action="categorize", category=category, condition=condition)


def refused(*rules: Any) -> str:
    with pytest.raises(ValueRefused) as problem:
        rules_parse(list(rules), scope="/")
    return problem.value.code


def test_a_rule_reads_into_its_canonical_form_and_back() -> None:
    said = rule("old output", condition=compare("age", "ge", "2w"), events=["manual", "cron", "cron"], enabled=False)
    parsed = rule_parse(said, scope="project//x/")
    assert parsed.scope == "/project/x"
    assert parsed.events == ("cron", "manual")
    assert parsed.condition == compare("age", ">=", "14d")
    assert rule_parse(parsed.as_json(), scope="/project/x") == parsed
    marked = rule_parse(gives("mark", "output"), scope="/")
    assert rule_parse(marked.as_json(), scope="/") == marked


def test_what_is_left_out_has_a_default() -> None:
    parsed = rule_parse(rule(), scope="/")
    assert parsed.events == DEFAULT_EVENTS == ("cron", "memory_pressure", "manual")
    assert parsed.enabled
    assert parsed.category == ""


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("archive", "invalid-rule"),
        (rule(""), "invalid-rule"),
        (rule("x" * 101), "invalid-rule"),
        (rule("a\nb"), "invalid-rule"),
        ({"action": "archive"}, "invalid-rule"),
        (rule("r", colour="red"), "invalid-rule"),
        (rule("r", action="forget"), "invalid-rule"),
        (rule("r", action=["pin"]), "invalid-rule"),
        ({"name": "r", "action": "pin"}, "invalid-rule"),
        (rule("r", condition={}), "invalid-rule"),
        (rule("r", events=[]), "invalid-rule"),
        (rule("r", events=["daily"]), "invalid-rule"),
        (rule("r", events="cron"), "invalid-rule"),
        (rule("r", events=[{}]), "invalid-rule"),
        (rule("r", enabled="no"), "invalid-rule"),
        (rule("r", category="x"), "invalid-rule"),
        (rule("r", action="categorize"), "invalid-rule"),
        (rule("r", action="categorize", category=3), "invalid-rule"),
        (rule("r", action="categorize", category="x" * 201), "invalid-rule"),
        (rule("r", action="categorize", category="a\nb"), "invalid-rule"),
        (rule("r", condition={"not": compare("rung", "is", "active")}), "invalid-rule"),
        (rule("r", condition=compare("pinned", "is", True)), "invalid-rule"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(said: Any, code: str) -> None:
    assert refused(said) == code


def test_a_policy_takes_a_bounded_list_of_rules_with_names_of_their_own() -> None:
    assert len(rules_parse([rule(str(number)) for number in range(50)], scope="/")) == 50
    assert refused(*(rule(str(number)) for number in range(51))) == "too-large"
    assert refused(rule("a"), rule("b"), rule(" a ")) == "invalid-rule"
    with raises_code(ValueRefused, "invalid-rule"):
        rules_parse({"a": rule()}, scope="/")


def test_a_category_is_given_before_it_is_asked_for() -> None:
    assert refused(rule("asks", condition=has("x")), gives("gives", "x")) == "invalid-rule"
    assert refused(rule("asks", condition={"not": has("x")}), gives("gives", "x")) == "invalid-rule"
    assert refused(rule("asks", condition=has("x")), {**gives("gives", "x"), "enabled": False}) == "invalid-rule"
    rules_parse([gives("gives", "x"), rule("asks", condition=has("x"))], scope="/")


def test_a_rule_does_not_ask_for_what_it_gives_unless_to_leave_it_out() -> None:
    assert refused(gives("g", "x", has("x"))) == "invalid-rule"
    assert refused(gives("g", "x", {"not": {"not": compare("category", "has_any", ["y", "x"])}})) == "invalid-rule"
    rules_parse([gives("g", "x", {"not": has("x")}), gives("h", "x", {"not": has("x")})], scope="/")


def test_rules_of_several_scopes_are_put_in_an_order_in_which_categories_are_given_first() -> None:
    near = rules_parse([rule("asks", condition=has("b")), rule("plain")], scope="/near")
    far = rules_parse([gives("a", "a"), gives("b", "b", has("a")), rule("last")], scope="/")
    assert [one.name for one in rules_ordered([*near, *far])] == ["a", "b", "asks", "plain", "last"]
    turned = (*rules_parse([gives("b", "b", has("a"))], scope="/near"), *rules_parse([gives("a", "a")], scope="/"))
    assert [one.name for one in rules_ordered(turned)] == ["a", "b"]
    with raises_code(ValueRefused, "invalid-rule"):
        rules_ordered(
            (
                *rules_parse([gives("a", "a", has("b"))], scope="/x"),
                *rules_parse([gives("b", "b", has("a"))], scope="/"),
            )
        )


def categorized(rules: tuple[Rule, ...], categories: frozenset[str], kind: str) -> frozenset[str]:
    """Return the categories after one run, each rule seeing what those before it gave."""
    for one in rules:
        if one.category and holds(one, kind=kind, categories=categories):
            categories |= {one.category}
    return categories


def test_a_second_run_finds_nothing_to_categorize() -> None:
    conditions = [
        compare("kind", "is", "a"),
        has("x"),
        {"not": has("x")},
        has("y"),
        {"not": has("y")},
        {"any": [has("z"), compare("kind", "is", "b")]},
        {"all": [{"not": has("z")}, has("x")]},
    ]
    accepted = 0
    for chosen in itertools.product(itertools.product("xyz", conditions), repeat=3):
        said = [gives(str(place), category, condition) for place, (category, condition) in enumerate(chosen)]
        try:
            rules = rules_parse(said, scope="/")
        except ValueRefused:
            continue
        accepted += 1
        for kind, before in itertools.product("ab", [frozenset[str](), frozenset("x"), frozenset("yz")]):
            once = categorized(rules, before, kind)
            assert categorized(rules, once, kind) == once, said
    assert accepted > 500


def test_a_rule_is_reported_as_a_sentence() -> None:
    said = rule_parse(
        rule(events=["cron"], condition={"all": [compare("kind", "is", "tool_output"), compare("age", ">=", "7d")]}),
        scope="/",
    )
    assert rule_describe(said) == (
        "On each scheduled run: archive memories whose kind is tool_output and whose age is at least 7 days."
    )
    assert rule_describe(rule_parse(rule(enabled=False), scope="/")) == (
        "On each scheduled run, under memory pressure and in a manual run: archive memories whose kind is tool_output. "
        "(Switched off.)"
    )
    assert rule_describe(rule_parse(gives("g", "to do") | {"events": ["ingest_complete"]}, scope="/")) == (
        "After an ingest: add the category “to do” to memories whose kind is note."
    )
    for event in EVENTS:
        assert rule_describe(rule_parse(rule(events=[event]), scope="/"))[0].isupper()


# The presets, by what they do to a topic.


def holds(
    one: Rule,
    *,
    days: float = 0,
    kind: str = "",
    scope: str = "/",
    title: str = "",
    categories: frozenset[str] = frozenset(),
) -> bool:
    facts = TopicFacts(
        kind=kind,
        scope=scope,
        categories=categories,
        created_at=NOW - dt.timedelta(days=days),
        last_retrieved_at=NOW,
        retrievals=9,
        score=1.0,
        salience=1.0,
        provenance="api",
        rung="active",
        pinned=False,
        title=title,
        summary="",
    )
    return condition_holds(condition_parse(one.condition), facts, now=NOW)


def outcome(preset: str, **facts: Any) -> str:
    """Return what the first standing rule that holds does, or nothing."""
    return next(
        (one.action for one in SHIPPED_RULE_SETS[preset] if one.action in RUNG_ACTIONS and holds(one, **facts)), ""
    )


@pytest.mark.parametrize(
    ("kind", "days"),
    [("session_state", 1), ("tool_output", 7), ("project_status", 30), ("decision", 365), ("preference", 730)],
)
def test_a_kind_lives_as_long_as_the_preset_says(kind: str, days: int) -> None:
    assert outcome("ttl_by_kind", kind=kind, days=days - 0.001) == ""
    assert outcome("ttl_by_kind", kind=kind, days=days) == "archive"


def test_identity_and_kinds_without_a_time_to_live_stay() -> None:
    assert outcome("ttl_by_kind", kind="identity", days=10_000) == ""
    assert outcome("ttl_by_kind", kind="finding", days=10_000) == ""


@pytest.mark.parametrize(
    ("days", "tool_output", "finding", "note", "decision", "identity"),
    [
        (6.999, "", "", "", "", ""),
        (7, "archive", "", "", "", ""),
        (29.999, "archive", "", "", "", ""),
        (30, "archive", "summarize", "", "", ""),
        (89.999, "archive", "summarize", "", "", ""),
        (90, "archive", "archive", "archive", "", ""),
        (10_000, "archive", "archive", "archive", "", ""),
    ],
)
def test_graduated_retention_follows_the_published_steps(
    days: float, tool_output: str, finding: str, note: str, decision: str, identity: str
) -> None:
    expected = {
        "tool_output": tool_output,
        "finding": finding,
        "note": note,
        "decision": decision,
        "identity": identity,
    }
    assert {kind: outcome("graduated_retention", kind=kind, days=days) for kind in expected} == expected


@pytest.mark.parametrize(
    ("title", "pinned"),
    [
        ("Allergic to penicillin", True),
        ("Severe ALLERGY", True),
        ("allergies of the children", True),
        ("Allergen labels", False),
        ("keeps an EpiPen in the car", True),
        ("blood type 0 negative", True),
        ("Type 1 diabetic", True),
        ("emergency contact: Ada", True),
        ("do not resuscitate", True),
        ("contact the emergency plumber", False),
        ("likes tea", False),
    ],
)
def test_what_could_cost_a_life_is_pinned(title: str, pinned: bool) -> None:
    assert any(holds(one, title=title) for one in SHIPPED_RULE_SETS["auto_pin"]) is pinned
    assert {one.action for one in SHIPPED_RULE_SETS["auto_pin"]} == {"pin"}
    assert all("ingest_complete" in one.events for one in SHIPPED_RULE_SETS["auto_pin"])


def test_old_projects_go_after_thirty_days() -> None:
    assert outcome("scope_and_age", scope="/project/old/x", days=31) == "archive"
    assert outcome("scope_and_age", scope="/project/old", days=30) == ""
    assert outcome("scope_and_age", scope="/project/older", days=31) == ""


def test_every_preset_fits_into_one_policy_and_can_be_reported() -> None:
    for preset in SHIPPED_RULE_SETS.values():
        assert rules_parse([one.as_json() for one in preset], scope="/") == preset
        assert all(rule_describe(one).endswith(".") for one in preset)
    together = [one.as_json() for preset in SHIPPED_RULE_SETS.values() for one in preset]
    assert len(rules_parse(together, scope="/team")) == len(together)
