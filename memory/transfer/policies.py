"""The policies of a file, held to what a save is held to: what is wrong with one shows wherever it is in force."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from django.db.backends.utils import CursorWrapper

from memory.domain.conditions import condition_parse, condition_patterns
from memory.domain.errors import MemoryProblem, ValueRefused
from memory.domain.problem_codes import ProblemCode
from memory.domain.rules import Rule
from memory.models.patterns import patterns_try
from memory.policy.draft import draft_check, draft_parse
from memory.policy.effective import policies_current, rules_stored
from memory.policy.snapshot import SetPolicy
from memory.transfer.lines import LineProblem

_BROUGHT = """
SELECT l.n, l.line->>'scope', l.line->'versions'->-1->>'preset', l.line->'versions'->-1->'values',
       l.line->'versions'->-1->'rules', (l.line->'versions'->-1->>'number')::int
FROM transfer_line l WHERE l.why IS NULL ORDER BY l.n
"""
_DIFF = {"name", "before", "after"}


class Newest(NamedTuple):
    """The newest version of a policy that a file brings, and the line that it stands in."""

    line: int
    scope: str
    preset: str
    values: Mapping[str, Any]
    rules: Sequence[Any]
    number: int


def versions_check(versions: Sequence[Any]) -> None:
    """Raise ``LineProblem`` unless the versions of a line are in order, and each is made as a version is."""
    numbers = [version.number for version in versions]
    if numbers != sorted(set(numbers)):
        raise LineProblem("The versions of this policy are out of order.")
    for version in versions:
        for part in version.diff:
            if not isinstance(part, dict) or part.keys() != _DIFF or not isinstance(part["name"], str):
                raise LineProblem(f"The member diff of version {version.number} is not as it should be.")


def policies_brought(cursor: CursorWrapper) -> list[Newest]:
    """Return the newest versions of the policies of a batch that are brought. One query."""
    cursor.execute(_BROUGHT)
    return [
        Newest(line, scope, preset, json.loads(values), json.loads(rules), number)
        for line, scope, preset, values, rules, number in cursor.fetchall()
    ]


def policies_check(brought: Sequence[Newest]) -> None:
    """Raise ``LineProblem`` unless the policies hold together, with each other and with those of the store. One query,
    and one for each pattern of their rules."""
    drafted = policies_current()
    for each in brought:
        with _named(each):
            policy = draft_parse(
                drafted, each.scope, preset=each.preset, values=each.values, rules=each.rules, number=each.number
            )
            _spelled_check(each, policy)
            patterns_try(
                pattern for rule in policy.rules for pattern in condition_patterns(condition_parse(rule.condition))
            )
        drafted = drafted.with_policy(policy)
    for each in brought:
        with _named(each):
            draft_check(drafted, each.scope)


def _spelled_check(brought: Newest, policy: SetPolicy) -> None:
    """Raise ``ValueRefused`` unless a policy stands there as a save stores it: who reads what is in force knows no sets
    of rules by name, nothing that may be left out, and no value that is inherited."""
    for name, value in brought.values.items():
        meant = policy.values.get(name)
        if value is None or (meant is not None and meant != (tuple(value) if isinstance(value, list) else value)):
            raise ValueRefused(f"{name} is not written as it is stored.", code=ProblemCode.LINE_DAMAGED)
    try:
        stored = rules_stored(cast("list[dict[str, Any]]", brought.rules), brought.scope)
    except (KeyError, TypeError):
        stored = ()
    if list(map(_rule_head, stored)) != list(map(_rule_head, policy.rules)):
        raise ValueRefused("Its rules are not written as they are stored.", code=ProblemCode.LINE_DAMAGED)


def _rule_head(rule: Rule) -> tuple[object, ...]:
    return rule.name, rule.events, rule.action, rule.category, rule.enabled


@contextmanager
def _named(each: Newest) -> Iterator[None]:
    """Name the line in what is said against a policy."""
    try:
        yield
    except MemoryProblem as problem:
        raise LineProblem(
            f"Line {each.line:,}: The policy of {each.scope} cannot be in force here. {problem.sentence}",
            code=problem.code,
        ) from problem
