"""Acting for somebody who is not there: operators look with the eyes of a key, without having its secret; the worker
writes in the name of whoever asked, as long as that caller still may."""

import datetime as dt
import uuid
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db.models import Q

from memory.access.accounts import role_of
from memory.access.principal import ROLES, Principal
from memory.core.scopes import ROOT, scope_within
from memory.models import ApiKey, ExtractionJob, StudyJob


@dataclass(frozen=True, slots=True)
class Acting:
    """A key that could call now: by which name people know it, and whom it stands for."""

    key_id: uuid.UUID
    label: str
    principal: Principal


def keys_acting(now: dt.datetime) -> list[Acting]:
    """Return the keys that are valid at ``now``, by name. One query."""
    valid = ApiKey.objects.filter(_valid(now))
    return [
        Acting(
            key.pk,
            f"{key.name} ({key.prefix}…), {key.role} in {key.scope}",
            Principal(identity=f"key:{key.pk}", actor=f"key:{key.name}", role=key.role, scope=key.scope),
        )
        for key in valid.order_by("name", "created_at")
    ]


def principal_still(principal: Principal, *, now: dt.datetime) -> Principal | None:
    """Return a caller of some time ago as he may act at ``now``: with no more than the role that his key or account has
    by now. None if the key was revoked, has expired or does not reach so far, or if the account was switched off.

    One query, two for some accounts, none for a caller who is neither a key nor an account: nothing can be taken away
    from those.
    """
    kind, _colon, number = principal.identity.partition(":")
    role: str | None = None
    scope = ROOT
    if kind == "key":
        if (key := ApiKey.objects.filter(_valid(now), pk=number).first()) is not None:
            role, scope = key.role, key.scope
    elif kind == "user":
        if (account := User.objects.filter(pk=number).first()) is not None:
            role = role_of(account)
    else:
        return principal
    if role is None or not scope_within(principal.scope, scope):
        return None
    # To the store an administrator of the console is an operator.
    found = ROLES.index(role) if role in ROLES else len(ROLES) - 1
    return replace(principal, role=ROLES[min(found, ROLES.index(principal.role))])


def job_writer(job: ExtractionJob | StudyJob, *, now: dt.datetime) -> Principal | None:
    """Return in whose name a job writes, within its scope, as ``principal_still``; None also if that caller may write
    no longer. At most two queries."""
    asked = Principal(identity=job.identity, actor=job.actor, role=job.role, scope=job.scope)
    found = principal_still(asked, now=now)
    return found if found is not None and found.covers("agent") else None


def unsigned(actor: str) -> str:
    """Return the sentence for a job in whose name nothing may be written any more."""
    return f"It was begun by {actor}, whose key or account may not write here any more."


def _valid(now: dt.datetime) -> Q:
    return Q(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)
