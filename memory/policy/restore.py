"""Imports policies with all their versions from an export, unchanged. A policy that a save would refuse is refused."""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import PolicyVersion
from memory.models.patterns import patterns_try
from memory.policy.draft import draft_check, draft_parse
from memory.policy.save import policies_follow, policy_lock
from memory.policy.snapshot import Policies
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.tree import patterns_of

Short = Annotated[str, StringConstraints(max_length=200)]


def _storable(value: Any) -> Any:
    """Return ``value``. Raises ``ValueError`` for a number that JSON cannot represent."""
    json.dumps(value, allow_nan=False)
    return value


Json = Annotated[Any, AfterValidator(_storable)]


class PastDifference(BaseModel):
    """A value, or the rules, before and after a version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    before: Json
    after: Json


class PastVersion(BaseModel):
    """One version of a policy, as the store has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: Annotated[int, Field(ge=1, le=2**30)]
    preset: Annotated[str, StringConstraints(max_length=50)]
    values: dict[str, Json]
    rules: list[dict[str, Json]]
    author: Short
    reason: str
    created_at: Annotated[AwareDatetime, Field(le=dt.datetime(2999, 12, 31, tzinfo=dt.UTC))]
    diff: list[PastDifference]
    rolled_back_to: Annotated[int, Field(ge=0, le=2**30)] | None


def policy_drafted(policies: Policies, scope: str, versions: Sequence[PastVersion]) -> Policies:
    """Return ``policies`` with the newest of ``versions`` in force at ``scope``. Four SQL statements per pattern in its
    rules. Raises ``ValueRefused`` if the newest version is not exactly what a save would store. The caller must call
    ``draft_check``."""
    numbers = [version.number for version in versions]
    if numbers != sorted(set(numbers)):
        raise ValueRefused("Its versions are out of order.", code=ProblemCode.INVALID_FILE)
    newest = versions[-1]
    policy = draft_parse(
        policies, scope, preset=newest.preset, values=newest.values, rules=newest.rules, number=newest.number
    )
    if policy.as_stored() != {"preset": newest.preset, "values": newest.values, "rules": newest.rules}:
        raise ValueRefused(f"Version {newest.number} is not written as it is stored.", code=ProblemCode.INVALID_FILE)
    patterns_try(pattern for rule in policy.rules for pattern in patterns_of(condition_parse(rule.condition)))
    return policies.with_policy(policy)


def policies_restore(histories: Mapping[str, Sequence[PastVersion]], *, now: dt.datetime) -> None:
    """Write the versions of policies, in the transaction of the caller. A few SQL statements, plus up to three per
    scope and four per pattern. Raises ``ValueRefused`` for a contradiction, and ``IntegrityError`` if a scope already
    has versions."""
    before = drafted = policy_lock()
    for scope, versions in histories.items():
        drafted = policy_drafted(drafted, scope, versions)
    for scope in histories:
        draft_check(drafted, scope)
    PolicyVersion.objects.bulk_create(
        PolicyVersion(scope=scope, **version.model_dump())
        for scope, versions in histories.items()
        for version in versions
    )
    policies_follow(before, drafted, list(histories), reason="was imported", now=now)


def policy_scopes(scopes: Sequence[str]) -> set[str]:
    """Return those of ``scopes`` at which a policy was ever set. One query."""
    return set(PolicyVersion.objects.filter(scope__in=scopes).values_list("scope", flat=True))
