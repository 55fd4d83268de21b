"""Impersonation. Operators query with the permissions of a key, without its secret. The worker writes in the name of
the caller who requested the work, as long as this caller may write."""

import datetime as dt
import uuid
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db.models import Q

from memory.access.accounts import account_role
from memory.access.principal import ROLES, Principal
from memory.core.scopes import ROOT, scope_within
from memory.models import ApiKey, Job
from memory.stores.current import MAIN, store_current, store_use
from memory.stores.keys import keys_of_installation


@dataclass(frozen=True, slots=True)
class ImpersonatedKey:
    """A valid key that an operator can impersonate: its id, its label for people and its principal."""

    key_id: uuid.UUID
    label: str
    principal: Principal


def keys_to_impersonate(now: dt.datetime) -> list[ImpersonatedKey]:
    """Return the keys that are valid at ``now``, ordered by name. One query."""
    valid = ApiKey.objects.filter(_valid(now))
    return [
        ImpersonatedKey(
            key.pk,
            f"{key.name} ({key.prefix}…), {key.role} in {key.scope}",
            Principal(identity=f"key:{key.pk}", actor=f"key:{key.name}", role=key.role, scope=key.scope),
        )
        for key in valid.order_by("name", "created_at")
    ]


def principal_recheck(principal: Principal, *, now: dt.datetime) -> Principal | None:
    """Return a ``principal`` that was stored earlier, with the permissions that it has at ``now``.

    If the key or account now has a lower role, the principal gets the lower role. Return None if the key was revoked,
    has expired or no longer covers the scope, or if the account was deactivated. Runs one query; two for an account
    that is not an administrator of the installation; three for a key of the installation. A caller that is neither a
    key nor an account is returned unchanged, without a query.
    """
    kind, _colon, number = principal.identity.partition(":")
    role: str | None = None
    scope = ROOT
    if kind == "key":
        if (key := _key_valid(number, now)) is not None:
            role, scope = key.role, key.scope
    elif kind == "user":
        if (account := User.objects.filter(pk=number).first()) is not None:
            role = account_role(account)
    else:
        return principal
    if role is None or not scope_within(principal.scope, scope):
        return None
    # The store has no role "administrator": an administrator of the console acts as an operator.
    found = ROLES.index(role) if role in ROLES else len(ROLES) - 1
    return replace(principal, role=ROLES[min(found, ROLES.index(principal.role))])


def _key_valid(number: str, now: dt.datetime) -> ApiKey | None:
    key = ApiKey.objects.filter(_valid(now), pk=number).first()
    if key is None and store_current() != MAIN:
        with store_use(MAIN):
            key = ApiKey.objects.filter(_valid(now), pk=number, secret_hash__in=keys_of_installation()).first()
    return key


def job_writer(job: Job, *, now: dt.datetime) -> Principal | None:
    """Return the principal in whose name a job writes, with its present permissions; None if the principal may no
    longer write. At most three queries."""
    stored = Principal(identity=job.identity, actor=job.actor, role=job.role, scope=job.writer_scope)
    found = principal_recheck(stored, now=now)
    return found if found is not None and found.covers(job.least_role) else None


def owner_lost_access(actor: str) -> str:
    """Return the failure sentence of a job whose owner ``actor`` may no longer write."""
    return f"The key or account that started this job ({actor}) may no longer write here."


def _valid(now: dt.datetime) -> Q:
    return Q(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)
