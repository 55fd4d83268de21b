"""Saves policies: each save creates a new immutable version or is refused."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from memory.core.errors import Conflict, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize, scope_within
from memory.models import PolicyVersion, Rekeying
from memory.models.locks import Lock, lock_wait
from memory.models.patterns import patterns_try
from memory.policy.activity import activity_split
from memory.policy.diff import diff_lines, line_words
from memory.policy.draft import draft_check, draft_parse
from memory.policy.effective import policies_current
from memory.policy.schedules import cron_schedules_sync, cron_wanted
from memory.policy.snapshot import Policies
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.tree import patterns_of
from memory.stores.pending import after_commit, work_pending

MAX_REASON = 1000


def policy_save(
    scope: str,
    *,
    preset: str | None,
    values: Mapping[str, object],
    rules: Sequence[object] | None = None,
    author: str,
    reason: str,
    now: dt.datetime,
    base_version: int | None = None,
    rolled_back_to: int | None = None,
) -> PolicyVersion:
    """Save the next version of the policy of ``scope`` and return it, or the present version if nothing changes. Five
    SQL statements; more if a half-life, a clock or a schedule changes, or if rules contain patterns.

    ``values`` and ``preset`` replace all present values and the present preset. If ``rules`` is None, the present rules
    stay. ``base_version`` is the version that the author edited, 0 for none. Raises ``ValueRefused`` for an invalid
    value or a contradiction, and ``Conflict`` if ``base_version`` is not the newest.
    """
    scope = scope_normalize(scope)
    reason = _reason_check(reason)
    with transaction.atomic():
        policies = policy_lock()
        present = version_present(scope)
        if base_version is not None and base_version != present.number:
            raise Conflict(_conflict_sentence(present, base_version), code=ProblemCode.CHANGED_MEANWHILE)
        policy = draft_parse(policies, scope, preset=preset, values=values, rules=rules, number=present.number + 1)
        drafted = policies.with_policy(policy)
        draft_check(drafted, scope)
        content = policy.as_stored()
        diff = diff_lines(version_content(present), content)
        if not diff:
            return present
        # Parsing does not find all bad patterns, so the database tries each pattern once.
        patterns_try(pattern for rule in policy.rules for pattern in patterns_of(condition_parse(rule.condition)))
        version = PolicyVersion.objects.create(
            scope=scope,
            number=policy.number,
            author=author,
            reason=reason,
            created_at=now,
            diff=diff,
            rolled_back_to=rolled_back_to,
            **content,
        )
        policies_follow(policies, drafted, [scope], reason=f"version {policy.number}", now=now)
        return version


def policy_rollback(
    scope: str, *, to: int, author: str, reason: str, now: dt.datetime, base_version: int | None = None
) -> PolicyVersion:
    """Save the content of version ``to`` as a new version. Version 0 is an empty policy. Raises ``ValueRefused`` if the
    version does not exist or is no longer valid, and ``Conflict`` if ``base_version`` is not the newest."""
    target = version_find(scope_normalize(scope), number=to)
    return policy_save(
        scope,
        **version_content(target),
        author=author,
        reason=reason,
        now=now,
        base_version=base_version,
        rolled_back_to=to,
    )


def policy_lock() -> Policies:
    """Lock the saving of policies until the transaction ends, and return the policies in force."""
    lock_wait(Lock.POLICY_SAVE)
    return policies_current()


def version_present(scope: str) -> PolicyVersion:
    """Return the newest version of the policy of ``scope``, or an unsaved version with number 0 if there is none."""
    newest = PolicyVersion.objects.filter(scope=scope).order_by("-number").first()
    return newest or PolicyVersion(scope=scope, number=0)


def version_find(scope: str, *, number: int) -> PolicyVersion:
    """Return version ``number`` of the policy of ``scope``, or an empty version for 0. One query. Raises
    ``ValueRefused``."""
    found = PolicyVersion.objects.filter(scope=scope, number=number).first() if number else None
    if found is None and number:
        newest = version_present(scope).number
        raise ValueRefused(
            f"The policy of {scope} has no version {number}; the newest is {newest}.", code=ProblemCode.NOT_FOUND
        )
    return found or PolicyVersion(scope=scope, number=0)


def version_content(version: PolicyVersion) -> dict[str, Any]:
    """Return ``preset``, ``values`` and ``rules`` of a version as stored."""
    return {"preset": version.preset, "values": version.values, "rules": version.rules}


def policies_follow(before: Policies, after: Policies, scopes: Sequence[str], *, reason: str, now: dt.datetime) -> None:
    """Update schedules and enqueue re-keyings after a change of the policies of ``scopes`` was stored. SQL statements
    are needed only if a half-life, a clock or a schedule changes, or a scope gets its first policy."""
    for scope in scopes:
        activity_split(before, scope, now=now)
        if _keys_change(before, after, scope):
            Rekeying.objects.create(scope=scope, reason=f"{scope} {reason}", started_at=now)
            after_commit(work_pending)
    if cron_wanted(before) != cron_wanted(after):
        cron_schedules_sync(now=now)


def _keys_change(before: Policies, after: Policies, scope: str) -> bool:
    paths = {scope} | {path for path in (*before.policies, *after.policies) if scope_within(path, scope)}
    return any(before.knobs(path).keys != after.knobs(path).keys for path in paths)


def _reason_check(reason: str) -> str:
    reason = reason.strip()
    if not reason:
        raise ValueRefused(
            "A change of policy needs a reason for the history.", code=ProblemCode.MISSING_MEMBER, member="reason"
        )
    if len(reason) > MAX_REASON:
        raise ValueRefused(
            f"A reason has at most {MAX_REASON} characters; this one has {len(reason)}.",
            code=ProblemCode.TOO_LARGE,
            member="reason",
        )
    return reason


def _conflict_sentence(present: PolicyVersion, base_version: int) -> str:
    if not present.number:
        return f"The policy of {present.scope} has no version {base_version}; it has not been set yet."
    changed = "; ".join(line_words(line) for line in present.diff)
    return (
        f"{present.author} saved version {present.number} of the policy of {present.scope} at "
        f"{present.created_at:%Y-%m-%d %H:%M} UTC ({changed}); your change is based on version {base_version}."
    )
