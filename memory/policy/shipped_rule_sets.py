"""Sets of rules that ship with the program, by name, and the rules of a preset. docs/rules.md describes them."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.policy_presets import PRESETS
from memory.core.problem_codes import ProblemCode
from memory.core.rules import Rule
from memory.policy.rule_parsing import rules_parse


def _rules(*rules: Mapping[str, Any]) -> tuple[Rule, ...]:
    return rules_parse([dict(rule) for rule in rules], scope="/")


def _compare(field: str, op: str, value: object) -> dict[str, object]:
    return {"field": field, "op": op, "value": value}


def _archive(name: str, *parts: Mapping[str, Any], action: str = "archive") -> dict[str, Any]:
    return {"name": name, "condition": {"all": list(parts)}, "action": action}


def _ttl(kind: str, age: str) -> dict[str, Any]:
    return _archive(f"{kind} lives {age}", _compare("kind", "is", kind), _compare("age", ">=", age))


def _pin(name: str, patterns: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        # Manual runs apply the rule to topics that were stored before the rule was set.
        "events": ["ingest_complete", "manual"],
        "condition": {"any": [_compare("text", "matches", pattern) for pattern in patterns]},
        "action": "pin",
    }


SHIPPED_RULE_SETS: Mapping[str, tuple[Rule, ...]] = {
    # A time to live for each kind. Topics of kind identity never expire.
    "ttl_by_kind": _rules(
        _ttl("session_state", "24h"),
        _ttl("tool_output", "7d"),
        _ttl("project_status", "30d"),
        _ttl("decision", "365d"),
        _ttl("preference", "730d"),
    ),
    # The first matching rule decides, so the rule with the longest age comes first: after 90 days a finding is
    # archived, not summarized.
    "graduated_retention": _rules(
        _archive(
            "from 90 days only identity and decision",
            _compare("age", ">=", "90d"),
            _compare("kind", "not_in", ["identity", "decision"]),
        ),
        _archive(
            "from 30 days findings are summarized",
            _compare("age", ">=", "30d"),
            _compare("kind", "is", "finding"),
            action="summarize",
        ),
        _archive("from 7 days no tool output", _compare("age", ">=", "7d"), _compare("kind", "is", "tool_output")),
    ),
    # Pins facts whose loss could endanger a life.
    "auto_pin": _rules(
        _pin("pin allergies", [r"\ballerg(y|ic|ies)\b", r"\banaphyla(xis|ctic)\b", r"\bepi-?pens?\b"]),
        _pin(
            "pin medical conditions",
            [r"\b(diabet(es|ic)|insulin|epilep(sy|tic)|pacemaker|ha?emophilia)\b", r"\bblood (type|group)\b"],
        ),
        _pin("pin emergency contacts", [r"\b(emergency contacts?|in case of emergency|next of kin)\b"]),
        _pin("pin medical directives", [r"\b(do not resuscitate|advance directive|living will)\b"]),
    ),
    "scope_and_age": _rules(
        _archive("old projects after 30 days", _compare("scope", "within", "/project/old"), _compare("age", ">", "30d"))
    ),
}

# The labels of the rule sets in the console.
RULE_SET_LABELS: Mapping[str, str] = {
    "ttl_by_kind": "Time to live by kind",
    "graduated_retention": "Retention in steps",
    "auto_pin": "Pin what may save a life",
    "scope_and_age": "Old projects",
}


def rule_set_get(name: str) -> tuple[Rule, ...]:
    """Return a shipped rule set. Raises ``ValueRefused`` if it does not exist."""
    if name not in SHIPPED_RULE_SETS:
        raise ValueRefused(
            f"The rule set {name[:100]!r} does not exist; rule sets are {', '.join(SHIPPED_RULE_SETS)}.",
            code=ProblemCode.INVALID_RULE,
            member="rules",
        )
    return SHIPPED_RULE_SETS[name]


def preset_check(preset: str) -> None:
    """Raise ``ValueRefused`` for a preset that does not exist. An empty name is accepted."""
    if preset and preset not in PRESETS:
        raise ValueRefused(
            f"Preset {preset!r} does not exist; presets are {', '.join(PRESETS)}.",
            code=ProblemCode.INVALID_POLICY,
            member="preset",
        )


@lru_cache(maxsize=1000)
def preset_rules(preset: str, *, scope: str) -> tuple[Rule, ...]:
    """Return the rules of ``preset`` as rules of ``scope``; an empty tuple for an empty name."""
    if not preset:
        return ()
    return tuple(
        dataclasses.replace(rule, scope=scope) for name in PRESETS[preset].rules for rule in SHIPPED_RULE_SETS[name]
    )
