"""The rows of the form of a rule say every condition that a rule can have."""

from typing import Any

from hypothesis import given

from memory.console.rule_form import rule_form_of
from memory.core.rules import Rule
from memory.predicates.rule_conditions import condition_json, condition_parse
from tests.properties.test_condition_equality import conditions


def plain(condition: dict[str, Any]) -> dict[str, Any]:
    """Return a condition without groups of one part, which mean that part."""
    for name in ("all", "any"):
        if name in condition:
            parts = [plain(part) for part in condition[name]]
            return parts[0] if len(parts) == 1 else {name: parts}
    return {"not": plain(condition["not"])} if "not" in condition else condition


def usable(condition: dict[str, Any]) -> bool:
    """Return whether a rule may have the condition: it does not ask for what runs change."""
    return not any(f"'field': '{name}'" in str(condition) for name in ("rung", "pinned"))


@given(condition=conditions.filter(usable))
def test_a_condition_shown_as_rows_and_taken_over_is_the_same(condition: dict[str, Any]) -> None:
    stored = condition_json(condition_parse(condition))
    again = rule_form_of(Rule("a rule", ("cron",), stored, "archive")).rule("/")
    assert again is not None
    assert plain(again["condition"]) == plain(stored)
