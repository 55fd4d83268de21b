"""Pauses: while forgetting is paused in a scope, no run forgets there or below.

Manual changes, forgetting on command, purges, merges of duplicates and dry runs remain possible.
"""

import datetime as dt

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Length
from django.utils import timezone

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.nearest import nearest_hint
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_ancestors, scope_within
from memory.models import AuditEvent, ForgetPause, Scope
from memory.models.locks import Lock, lock_wait
from memory.policy.effective import policies_current
from memory.predicates.binding import path_q

# The longest pause with an end. A pause without an end lasts until it is lifted.
LONGEST = dt.timedelta(days=3660)
# A misspelled scope is compared with at most this many scopes, to suggest the right one.
_MAX_COMPARED = 2000


def pauses_active(now: dt.datetime, scope: str | None = None) -> list[ForgetPause]:
    """Return the pauses in force, oldest first. With ``scope``, only pauses at, above or below this scope are returned.
    One query."""
    active = ForgetPause.objects.filter(Q(until__isnull=True) | Q(until__gt=now), lifted_at__isnull=True)
    found = list(active.order_by("created_at", "id"))
    return [
        each for each in found if scope is None or scope_within(each.scope, scope) or scope_within(scope, each.scope)
    ]


def paused_scopes(now: dt.datetime) -> tuple[str, ...]:
    """Return the scopes in which forgetting is paused at ``now``. One query."""
    return tuple(pause.scope for pause in pauses_active(now))


def pause_start(
    scope: str, *, reason: str, until: dt.datetime | None, principal: Principal, now: dt.datetime
) -> ForgetPause:
    """Pause forgetting in ``scope`` and journal the pause. Raises ``ValueRefused`` for an empty reason or an invalid
    end, ``NotVisible`` for a scope without topics and policies, ``Conflict`` if the scope is already paused, and
    ``NotAllowed``."""
    principal.require("operator")
    if not reason.strip():
        raise ValueRefused("A reason is required.", code=ProblemCode.MISSING_MEMBER, member="reason")
    if until is not None and not now < until <= now + LONGEST:
        raise ValueRefused(
            f"`until` must be in the future, at most {LONGEST.days:,} days from now.",
            code=ProblemCode.INVALID_PERIOD,
            member="until",
        )
    _scope_require(scope, principal)
    with transaction.atomic():
        # Runs are planned under this lock. A later plan respects the pause, and ``run_step`` stops an earlier run.
        lock_wait(Lock.PLAN_RUN)
        now = max(now, timezone.now())
        # An expired pause is marked as lifted only when the next one starts.
        ForgetPause.objects.filter(scope=scope, lifted_at__isnull=True, until__lte=now).update(lifted_at=now)
        pause, made = ForgetPause.objects.get_or_create(
            scope=scope,
            lifted_at=None,
            defaults={"reason": reason.strip(), "actor": principal.actor, "created_at": now, "until": until},
        )
        if not made:
            raise Conflict(f"Forgetting is already paused in {scope}.")
        after = {"until": until.isoformat() if until else None}
        AuditEvent.objects.create(
            at=now, actor=principal.actor, action="forgetting_paused", scope=scope, reason=pause.reason, after=after
        )
    return pause


def pause_lift(scope: str, *, reason: str, principal: Principal, now: dt.datetime) -> ForgetPause:
    """Lift the pause of ``scope`` and journal this. Raises ``NotVisible`` if there is no pause, and ``NotAllowed``."""
    principal.require("operator")
    with transaction.atomic():
        pause = ForgetPause.objects.select_for_update().filter(scope=scope, lifted_at__isnull=True).first()
        if pause is None or (pause.until is not None and pause.until <= now):
            raise NotVisible(f"Forgetting is not paused in {scope}.", code=ProblemCode.CONFLICT)
        pause.lifted_at, pause.lifted_by = now, principal.actor
        pause.save(update_fields=["lifted_at", "lifted_by"])
        AuditEvent.objects.create(
            at=now, actor=principal.actor, action="forgetting_resumed", scope=scope, reason=reason.strip()
        )
    return pause


def pause_refuse(scope: str, *, now: dt.datetime) -> None:
    """Raise ``Conflict`` if forgetting is paused at, above or below ``scope``. One query."""
    for pause in pauses_active(now, scope):
        raise Conflict(
            f"Forgetting is paused in {pause.scope}. Lift the pause first.", code=ProblemCode.FORGETTING_PAUSED
        )


def _scope_require(scope: str, principal: Principal) -> None:
    """Raise ``NotVisible`` for a scope without topics and policies, because a pause of a misspelled scope would have no
    effect. The caller's own scope and the root are always accepted."""
    policies = policies_current().policies
    if scope in (ROOT, principal.scope) or any(scope_within(path, scope) for path in policies):
        return
    if Scope.objects.filter(path_q(scope, "path")).exists():
        return
    paths = Scope.objects.filter(path_q(principal.scope, "path")).order_by(Length("path"), "path")
    known = {principal.scope}
    for path in (*paths.values_list("path", flat=True)[:_MAX_COMPARED], *policies):
        known.update(scope for scope in scope_ancestors(path) if principal.sees(scope))
    raise NotVisible(f"Scope {scope} does not exist; {nearest_hint(scope, sorted(known), noun='scopes')}.")
