"""API keys. A secret is shown once and stored only as a hash."""

import datetime as dt
import hashlib
import secrets
import uuid
from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, ProgrammingError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Length
from django.utils import timezone
from psycopg.errors import UndefinedTable

from memory.access.accounts import account_identities, account_labels
from memory.access.principal import ROLES, Principal
from memory.core.callers import caller_names
from memory.core.cursors import cursor_time
from memory.core.errors import Conflict, MemoryProblem, NotAllowed, NotVisible, RequestRefused, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_ancestors, scope_normalize
from memory.models import ApiKey, AuditEvent
from memory.models.newest_first import Order, sorted_page
from memory.stores.current import MAIN, store_current
from memory.stores.keys import STORE_HEADER, key_enter, key_forget, key_note, store_enter

PREFIX_LENGTH = 8
# The journals have 200 characters for "key:" and the name.
MAX_NAME_LENGTH = 100
_FIND_SQL = "SELECT * FROM memory_apikey WHERE secret_hash = %s"

# last_used_at is written at most once a minute, to avoid an UPDATE per request.
LAST_USED_EVERY = dt.timedelta(minutes=1)

# The orders of the list of keys.
ORDERS = {
    "created": Order("created_at", cursor_time),
    "name": Order("name", str, descending=False),
    "used": Order("last_used_at", cursor_time),
    "expires": Order("expires_at", cursor_time, descending=False),
}


class KeyRefused(MemoryProblem):
    """The request has no key, or an invalid one (401)."""

    code = ProblemCode.KEY_UNKNOWN


def secret_generate() -> str:
    """Return a new secret: a prefix by which leaked keys can be found, and 32 random bytes."""
    return "ms_" + secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    """Return the stored hash of a secret. Secrets are long and random, so they need neither salt nor a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def key_create(
    *,
    name: str,
    role: str,
    secret: str,
    scope: str = ROOT,
    expires_at: dt.datetime | None = None,
    actor: str = "system",
    reason: str = "",
    key_id: uuid.UUID | None = None,
    may_forget: bool = False,
    installation: bool = False,
) -> ApiKey:
    """Create a new key of the current store and journal it. Three queries.

    With ``installation``, the key is stored in ``main``, and each of its requests may name another store. ``key_id``
    makes a form idempotent: a second key with this id raises ``Conflict``. Raises ``ValueRefused`` for an unknown role,
    a malformed scope, a name that is empty or too long, ``may_forget`` with a role other than agent, and
    ``installation`` together with ``may_forget`` or in a store other than ``main``.
    """
    if installation and (store_current() != MAIN or may_forget):
        # A key of the installation cannot have may_forget, because the limit on releases by agents counts only the
        # releases of a store's own keys.
        raise ValueRefused(
            "A key of the installation can only be created in main, and without may_forget.",
            code=ProblemCode.NOT_ALLOWED,
        )
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise ValueRefused(
            f"The name of a key must have 1 to {MAX_NAME_LENGTH} characters; this one has {len(name)}.", member="name"
        )
    if role not in ROLES:
        raise ValueRefused(f"Role {role!r} does not exist; roles are {', '.join(ROLES)}.", member="role")
    if may_forget and role != "agent":
        raise ValueRefused(
            "Only a key with the role agent can have may_forget: operators may always forget, readers never.",
            code=ProblemCode.CONTRADICTORY_REQUEST,
            member="may_forget",
        )
    now = timezone.now()
    with transaction.atomic():
        key = ApiKey(
            id=key_id or uuid7_at(now),
            name=name,
            role=role,
            scope=scope_normalize(scope),
            may_forget=may_forget,
            prefix=secret[:PREFIX_LENGTH] if len(secret) >= 3 * PREFIX_LENGTH else secret[:2],
            secret_hash=secret_hash(secret),
            created_at=now,
            expires_at=expires_at,
        )
        try:
            key.save(force_insert=True)
            key_note(key.secret_hash, installation=installation)
        except IntegrityError as problem:
            if key_id is None:
                raise
            raise Conflict(
                "This key has already been created. Its secret was shown then and cannot be shown again.",
                code=ProblemCode.ALREADY_EXISTS,
            ) from (problem)
        AuditEvent.objects.create(
            at=now,
            actor=actor,
            action="key_created",
            scope=key.scope,
            reason=reason,
            after={"name": name, "role": role, "prefix": key.prefix}
            | ({"may_forget": True} if may_forget else {})
            | ({"installation": True} if installation else {}),
        )
    return key


def key_ensure(*, name: str, role: str, secret: str, scope: str = ROOT) -> None:
    """Create a key with ``secret`` and ``role`` unless a key with this secret exists. One query if it exists.

    A revoked or expired key is not renewed: a restart of the program must not undo a revocation.
    """
    if not ApiKey.objects.filter(secret_hash=secret_hash(secret)).exists():
        key_create(name=name, role=role, secret=secret, scope=scope, reason="start-up")


def key_authenticate(secret: str, *, now: dt.datetime, store: str | None = None) -> Principal:
    """Return the caller whose key is ``secret``. ``store`` is the store that the request names, and becomes the current
    store; if it is None, the store of the key does. One query, and one more in each of these cases: the time of the
    last use is written (at most once a minute), this process does not know the key yet, or the request names another
    store than that of the key.

    Raises ``KeyRefused`` for a missing, unknown, revoked or expired key, and ``NotAllowed`` for a key that may not name
    this store. Raises ``NotVisible`` for a store that does not exist, ``StoreBehind`` for a store of another release,
    and ``StoreElsewhere`` for a store of another cluster.
    """
    if not secret:
        raise KeyRefused("Send a key as X-API-Key or as Authorization: Bearer.", code=ProblemCode.KEY_MISSING)
    hashed = secret_hash(secret)
    door = key_enter(hashed)
    if door is None:
        raise KeyRefused("This key is unknown.")
    # Raw SQL, because this runs before every request and Django takes longer to compose the query than to run it.
    try:
        key = next(iter(ApiKey.objects.raw(_FIND_SQL, [hashed])), None)
    except ProgrammingError as problem:
        # This process knew the key before its store was dropped.
        if not isinstance(problem.__cause__, UndefinedTable):
            raise
        key_forget(hashed)
        key = None
    if key is None:
        raise KeyRefused("This key is unknown.")
    if key.revoked_at is not None:
        raise KeyRefused(f"This key was revoked on {key.revoked_at:%Y-%m-%d %H:%M} UTC.", code=ProblemCode.KEY_REVOKED)
    if key.expires_at is not None and key.is_expired(now):
        raise KeyRefused(f"This key expired on {key.expires_at:%Y-%m-%d %H:%M} UTC.", code=ProblemCode.KEY_EXPIRED)
    if key.last_used_at is None or now - key.last_used_at >= LAST_USED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    if store is not None and store != door.store:
        if not door.installation:
            raise NotAllowed(f"This key belongs to another store than {STORE_HEADER} names. Omit the header.")
        store_enter(store)
    return Principal(
        identity=f"key:{key.pk}",
        actor=f"key:{key.name}",
        role=key.role,
        scope=key.scope,
        may_forget=key.may_forget and key.role == ApiKey.Role.AGENT,
    )


def keys_list(
    *, valid_at: dt.datetime | None, sort: str = "created", cursor: str | None, limit: int
) -> tuple[list[ApiKey], str | None]:
    """Return keys and the cursor of the next page. ``valid_at`` excludes keys that are revoked or expired at that time.
    ``sort`` is a name in ``ORDERS``; a leading ``-`` reverses the order. One query. Raises ``ValueRefused`` for an
    invalid cursor."""
    return sorted_page(_keys(valid_at), ORDERS, sort, cursor=cursor, limit=limit)


def keys_count(*, valid_at: dt.datetime | None, at_most: int) -> int:
    """Return the number of keys, but at most ``at_most`` + 1. One query."""
    return _keys(valid_at)[: at_most + 1].count()


def keys_unused(*, created_before: dt.datetime, now: dt.datetime) -> int:
    """Return the number of valid keys that were created before a time and never used. One query."""
    return _keys(now).filter(last_used_at=None, created_at__lt=created_before).count()


def keys_expiring(*, before: dt.datetime, now: dt.datetime, most: int) -> list[ApiKey]:
    """Return the valid keys that expire before a time, the next one first. One query."""
    return list(_keys(now).filter(expires_at__lt=before).order_by("expires_at")[:most])


def keys_reaching(scope: str, *, now: dt.datetime, most: int) -> tuple[list[ApiKey], int]:
    """Return (keys, number below). The keys are at most ``most`` valid keys that cover ``scope``, those bound to the
    nearest scope first. The number counts the valid keys that are bound to a scope below ``scope``. Two queries."""
    reaching = _keys(now).filter(scope__in=scope_ancestors(scope)).order_by(Length("scope").desc(), "name", "id")
    below = _keys(now).filter(scope__startswith=f"{scope.rstrip('/')}/").exclude(scope=scope)
    return list(reaching[:most]), below.count()


def key_as_json(key: ApiKey, *, now: dt.datetime) -> dict[str, Any]:
    """Return a key as JSON, without its secret and its hash. No query."""
    state = "revoked" if key.revoked_at else "expired" if key.is_expired(now) else "valid"
    return {
        "key_id": key.pk,
        "name": key.name,
        "prefix": key.prefix,
        "role": key.role,
        "scope": key.scope,
        "may_forget": key.may_forget,
        "state": state,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "actor": f"key:{key.name}",
    }


def key_get(key_id: uuid.UUID) -> ApiKey:
    """Return one key. One query. Raises ``NotVisible``."""
    key = ApiKey.objects.filter(pk=key_id).first()
    if key is None:
        raise NotVisible("This key does not exist.")
    return key


def caller_labels(identities: Iterable[str]) -> dict[str, str]:
    """Return a mapping from identities in the access log to labels (such as ``key:<name>``), for the keys and accounts
    that exist.

    One query for keys, one for accounts.
    """
    known = list(identities)
    ids = {identity: found for identity in known if (found := _key_id(identity)) is not None}
    names = {key.pk: f"key:{key.name}" for key in ApiKey.objects.filter(pk__in=ids.values()).only("id", "name")}
    return {identity: names[found] for identity, found in ids.items() if found in names} | account_labels(known)


def caller_identities(name: str) -> list[str]:
    """Return the identities that callers with this name have in the access log. The name may omit ``user:`` or
    ``key:``. At most two queries."""
    found = caller_names(name)
    for label in tuple(found):
        if label.startswith("user:"):
            found += account_identities(label)
        elif label.startswith("key:"):
            keys = ApiKey.objects.filter(name=label.removeprefix("key:")).values_list("pk", flat=True)
            found += [f"key:{key}" for key in keys]
    return found


def _key_id(identity: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(identity.removeprefix("key:")) if identity.startswith("key:") else None
    except ValueError:
        return None


def key_revoke_one(key_id: uuid.UUID, *, actor: str, reason: str, now: dt.datetime) -> ApiKey:
    """Revoke one key permanently, and journal the revocation. Three queries.

    Raises ``NotVisible`` if the key does not exist, ``Conflict`` if it is already revoked.
    """
    with transaction.atomic():
        key = ApiKey.objects.select_for_update(no_key=True).filter(pk=key_id).first()
        if key is None:
            raise NotVisible("This key does not exist.")
        if key.revoked_at is not None:
            raise Conflict(f"This key was already revoked on {key.revoked_at:%Y-%m-%d %H:%M} UTC.")
        return _revoke(key, actor=actor, reason=reason, now=now)


def key_revoke(prefix: str, *, actor: str, reason: str, now: dt.datetime) -> ApiKey:
    """Revoke the key whose secret begins with ``prefix``, and journal the revocation. Three queries.

    Raises ``NotVisible`` if no valid key has this prefix, ``RequestRefused`` if several keys have it.
    """
    with transaction.atomic():
        keys = list(ApiKey.objects.select_for_update(no_key=True).filter(prefix=prefix, revoked_at__isnull=True)[:2])
        if not keys:
            raise NotVisible(f"No valid key begins with {prefix!r}.")
        if len(keys) > 1:
            raise RequestRefused(
                f"More than one key begins with {prefix!r}; revoke it in the console.",
                code=ProblemCode.AMBIGUOUS_REQUEST,
            )
        return _revoke(keys[0], actor=actor, reason=reason, now=now)


def _revoke(key: ApiKey, *, actor: str, reason: str, now: dt.datetime) -> ApiKey:
    key.revoked_at = now
    key.save(update_fields=["revoked_at"])
    AuditEvent.objects.create(
        at=now,
        actor=actor,
        action="key_revoked",
        scope=key.scope,
        reason=reason,
        before={"name": key.name, "role": key.role, "prefix": key.prefix},
    )
    return key


def _keys(valid_at: dt.datetime | None) -> QuerySet[ApiKey]:
    if valid_at is None:
        return ApiKey.objects.all()
    return ApiKey.objects.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=valid_at), revoked_at__isnull=True)
