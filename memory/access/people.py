"""Functions that invite, change, remove, disable and enable the people of the current store, and create the links with
which people choose a password.

An administrator of a store may change roles in this store, and accounts that have no role in another store. All other
changes need an administrator of the installation or the terminal.

Every change is journaled in its transaction. A lock serializes the changes, so that one enabled administrator always
remains. A link contains Django's token for a new password. The token can be used once, is valid for
``PASSWORD_RESET_TIMEOUT``, and is not stored. A new link removes the password. Disabling an account removes it too.
When the password is removed, the sessions and the earlier links of the person end at once.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from axes.utils import reset
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from memory.access.accounts import (
    ADMINISTRATOR,
    ROLES,
    account_role,
    accounts_here,
    accounts_with_roles,
    role_given,
    roles_given,
    store_first,
)
from memory.access.principal import SYSTEM, TERMINAL, Principal
from memory.core.cursors import cursor_time
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.models import AuditEvent
from memory.models.locks import Lock, lock_wait
from memory.models.newest_first import Order, sorted_page
from memory.stores.current import MAIN, store_current, store_use
from memory.stores.models import StoreRole

# Pages, journals and filters use these names for actors that are not people.
_RESERVED = (SYSTEM.actor, TERMINAL.actor)
# The orders of the list of people.
ORDERS = {"name": Order("username", str, descending=False), "sign_in": Order("last_login", cursor_time)}


@dataclass(frozen=True, slots=True)
class Person:
    """An account as pages show it. ``role`` is None if the account has no role in the store. A disabled account keeps
    its role. ``state`` is disabled, active (has a password), waiting (has no password, but has signed in before), or
    invited (has no password and has never signed in). ``everywhere`` is true for administrators of the installation.
    ``elsewhere`` is true if the account has a role in another store."""

    id: int
    name: str
    role: str | None
    state: str
    mail: str
    last_sign_in: dt.datetime | None
    since: dt.datetime
    everywhere: bool
    elsewhere: bool

    @property
    def actor(self) -> str:
        """The label in the journals."""
        return f"user:{self.name}"


@dataclass(frozen=True, slots=True)
class SignInLink:
    """The parts of a link to the page that asks for a new password, and when the link expires."""

    person: Person
    uid: str
    token: str
    until: dt.datetime


def people_list(*, sort: str = "name", cursor: str | None, limit: int) -> tuple[list[Person], str | None]:
    """Return people and the cursor of the next page. ``sort`` is a name in ``ORDERS``; a leading ``-`` reverses the
    order. One query. Raises ``ValueRefused`` for an invalid cursor."""
    found, following = sorted_page(accounts_here(), ORDERS, sort, cursor=cursor, limit=limit)
    return [_person(account) for account in found], following


def people_count(*, at_most: int) -> int:
    """Return the number of people, but at most ``at_most`` + 1. One query."""
    return accounts_here()[: at_most + 1].count()


def person_get(person_id: int) -> Person:
    """Return a person. One query. Raises ``NotVisible``."""
    return _person(_account(person_id))


def person_find(name: str) -> Person:
    """Return the person with this name. One query. Raises ``NotVisible``."""
    return _person(_existing(accounts_here().filter(username=name)))


def person_invite(
    *, name: str, role: str, mail: str = "", reason: str, principal: Principal, now: dt.datetime
) -> SignInLink | Person:
    """Create an account without a password, and return the link with which the person chooses a password. An
    administrator of the installation or the terminal may also name a person of another store. This person gets the
    role, needs no link and is returned. Ten queries.

    Raises ``ValueRefused`` for an unusable name or an unknown role, ``Conflict`` if the name is taken (ignoring upper
    and lower case), and ``NotAllowed``.
    """
    name = User.normalize_username(name)
    _role_refuse(role)
    if name.casefold() in _RESERVED:
        raise _name_refused(f"The name {name!r} is reserved.")
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as problem:
        raise _name_refused(" ".join(problem.messages)) from None
    with _administering(principal) as actor:
        if (found := accounts_with_roles().filter(username__iexact=name).first()) is not None:
            if (actor is None or actor.is_superuser) and role_given(found) is None:
                return _role_change(found, role, reason=reason, principal=principal, now=now)
            raise Conflict(f"The name {name!r} is taken.", code=ProblemCode.ALREADY_EXISTS)
        account = User(username=name, email=mail, date_joined=now)
        account.set_unusable_password()
        account.save(force_insert=True)
        _role_set(account, role)
        _audit("person_invited", account, after={"role": role}, reason=reason, principal=principal, now=now)
        return _link(account.pk, now)


def person_role_change(person_id: int, *, role: str, reason: str, principal: Principal, now: dt.datetime) -> Person:
    """Give a person another role, which applies from the person's next request on. Eight queries.

    Raises ``NotVisible``, ``ValueRefused`` for an unknown role, ``Conflict`` if the person already has the role or is
    the last administrator of the installation, and ``NotAllowed``, also for the caller's own account.
    """
    _role_refuse(role)
    with _administering(principal):
        return _role_change(_account(person_id), role, reason=reason, principal=principal, now=now)


def person_grant(name: str, *, role: str, reason: str, principal: Principal, now: dt.datetime) -> Person:
    """Give the person with this name a role in the store, also if the person had none there. Only administrators of the
    installation and the terminal may do this. Queries and errors as in ``person_role_change``."""
    _role_refuse(role)
    with _administering(principal) as actor:
        if actor is not None and not actor.is_superuser:
            raise _installation_only()
        account = _existing(accounts_with_roles().filter(username__iexact=name))
        return _role_change(account, role, reason=reason, principal=principal, now=now)


def person_remove(person_id: int, *, reason: str, principal: Principal, now: dt.datetime) -> Person:
    """Remove a person's role in the store, but keep the account. Return the person with the former role. Eight queries.

    Raises ``NotVisible``, ``Conflict`` if the person has no role here or is the last administrator of the installation,
    and ``NotAllowed``, also for the caller's own account.
    """
    with _administering(principal):
        account = _account(person_id)
        _loss_refuse(account, principal)
        before = role_given(account)
        if before is None:
            raise Conflict(f"{account.username} has no role here.")
        _role_set(account, None)
        _audit("person_removed", account, before={"role": before}, reason=reason, principal=principal, now=now)
        return _person(account)


def person_disable(person_id: int, *, reason: str, principal: Principal, now: dt.datetime) -> Person:
    """Disable an account, remove its password, and end its sessions and links. Seven queries.

    Raises ``NotVisible``, ``Conflict`` if the account is already disabled or is the last administrator of the
    installation, and ``NotAllowed``, also for the caller's own account.
    """
    with _administering(principal) as actor:
        account = _account(person_id, changed_by=actor)
        _loss_refuse(account, principal)
        if not account.is_active:
            raise Conflict(f"{account.username} is already disabled.")
        account.is_active = False
        _password_end(account)
        _audit("person_disabled", account, reason=reason, principal=principal, now=now)
        return person_get(person_id)


def person_enable(person_id: int, *, reason: str, principal: Principal, now: dt.datetime) -> SignInLink:
    """Enable an account and return the link for its new password. Six queries.

    Raises ``NotVisible``, ``Conflict`` if the account is already enabled, and ``NotAllowed``.
    """
    with _administering(principal) as actor:
        account = _account(person_id, changed_by=actor)
        if account.is_active:
            raise Conflict(f"{account.username} is already enabled.")
        account.is_active = True
        _password_end(account)
        _audit("person_enabled", account, reason=reason, principal=principal, now=now)
        return _link(person_id, now)


def person_link_renew(
    person_id: int, *, mail: str | None = None, reason: str, principal: Principal, now: dt.datetime
) -> SignInLink:
    """Remove the password of a person, end the person's sessions and earlier links, and return a new link. ``mail``
    replaces the mail address. Six queries. Raises ``NotVisible``, ``Conflict`` if the account is disabled, and
    ``NotAllowed``, also for the caller's own account."""
    with _administering(principal) as actor:
        account = _account(person_id, changed_by=actor)
        _own_refuse(person_id, principal)
        if not account.is_active:
            raise Conflict(f"{account.username} is disabled. Enable the account.")
        if mail is not None:
            account.email = mail
        _password_end(account)
        _audit("sign_in_link_made", account, reason=reason, principal=principal, now=now)
        return _link(person_id, now)


def password_choose(person_id: int, token: str, *, password: str, now: dt.datetime) -> str:
    """Set the password that a person chose with the token of a link, delete the record of failed sign-ins, and return
    the name. At most five queries.

    Raises ``Conflict`` if the token has been used or replaced, has expired, or belongs to a disabled account.
    """
    with transaction.atomic():
        account = User.objects.select_for_update().filter(pk=person_id, is_active=True).first()
        if account is None or not default_token_generator.check_token(account, token):
            raise Conflict(
                "This link was already used, has expired, or was replaced by a newer one.", code=ProblemCode.EXPIRED
            )
        account.set_password(password)
        account.save(update_fields=["password"])
        password_journal(account, now=now)
        # A person who forgot the password has usually been locked out by failed sign-ins.
        reset(username=account.username)
    return account.username


def password_journal(account: User, *, now: dt.datetime) -> None:
    """Journal that a person chose a password, in the store that the person opens first. Two queries."""
    own = Principal(identity=f"user:{account.pk}", actor=f"user:{account.username}", role="reader")
    with store_use(store_first(account)):
        _audit("password_set", account, reason="", principal=own, now=now)


@contextmanager
def _administering(principal: Principal) -> Iterator[User | None]:
    """Begin a change by an administrator, after all concurrent changes in all stores have ended. Yields the account of
    the administrator, or None for the terminal. Three queries."""
    with transaction.atomic():
        with store_use(MAIN):
            lock_wait(Lock.PEOPLE)
        if principal == TERMINAL:
            yield None
            return
        # The page checked the role before the wait; another change may have removed the role since.
        number = principal.identity.removeprefix("user:")
        actor = accounts_with_roles().filter(pk=int(number)).first() if number.isdecimal() else None
        if actor is None or account_role(actor) != ADMINISTRATOR:
            raise NotAllowed("This requires the role administrator.", code=ProblemCode.ROLE_TOO_LOW)
        yield actor


def _role_change(account: User, role: str, *, reason: str, principal: Principal, now: dt.datetime) -> Person:
    _loss_refuse(account, principal)
    before = role_given(account)
    if before == role:
        raise Conflict(f"{account.username} already has the role {role}.")
    _role_set(account, role)
    _audit(
        "person_role_changed",
        account,
        before={"role": before},
        after={"role": role},
        reason=reason,
        principal=principal,
        now=now,
    )
    return person_get(account.pk)


def _loss_refuse(account: User, principal: Principal) -> None:
    """Raise a problem if the account is the last enabled administrator of the installation, if it is the caller's own
    account, or if it is an administrator of the installation and the current store is not ``main``. At most one
    query."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=account.pk)
    if account.is_superuser and not others.exists():
        raise Conflict(
            "This is the last enabled administrator. Make another person administrator first.",
            code=ProblemCode.NOT_ALLOWED,
        )
    _own_refuse(account.pk, principal)
    if account.is_superuser and store_current() != MAIN:
        raise _installation_only()


def _own_refuse(person_id: int, principal: Principal) -> None:
    if principal.identity == f"user:{person_id}":
        raise NotAllowed("This is your own account. Another administrator can change it.")


def _account(person_id: int, *, changed_by: User | None = None) -> User:
    """Return an account. ``changed_by`` is the caller, if the account itself is going to be changed; None if only its
    role in this store changes."""
    account = _existing(accounts_here().filter(pk=person_id))
    if changed_by is not None and not changed_by.is_superuser and (account.is_superuser or _elsewhere(account)):
        raise _installation_only()
    return account


def _existing(found: QuerySet[User]) -> User:
    account = found.first()
    if account is None:
        raise NotVisible("This person does not exist.")
    return account


def _elsewhere(account: User) -> bool:
    return bool(roles_given(account).keys() - {store_current()})


def _installation_only() -> NotAllowed:
    return NotAllowed("Only an administrator of the installation can do this, in the store main.")


def _person(account: User) -> Person:
    chosen = account.has_usable_password()
    return Person(
        id=account.pk,
        name=account.username,
        role=role_given(account),
        state=(
            "disabled"
            if not account.is_active
            else "active"
            if chosen
            else "waiting"
            if account.last_login
            else "invited"
        ),
        mail=account.email,
        last_sign_in=account.last_login,
        since=account.date_joined,
        everywhere=account.is_superuser,
        elsewhere=_elsewhere(account),
    )


def _role_refuse(role: str) -> None:
    if role not in ROLES:
        raise ValueRefused(f"Role {role!r} does not exist; roles are {', '.join(ROLES)}.", member="role")


def _name_refused(sentence: str) -> ValueRefused:
    return ValueRefused(sentence)


def _role_set(account: User, role: str | None) -> None:
    """Set the role in the current store; None removes the role. An administrator of ``main`` is an administrator of the
    installation."""
    here = store_current()
    if here == MAIN:
        account.is_staff = account.is_superuser = role == ADMINISTRATOR
        account.save(update_fields=["is_staff", "is_superuser"])
    if role is None:
        StoreRole.objects.filter(user=account, store=here).delete()
    else:
        StoreRole.objects.update_or_create(user=account, store_id=here, defaults={"role": role})


def _password_end(account: User) -> None:
    """Remove the password, and save ``is_active`` and the mail address. This ends the sessions and the links, because
    their hashes include the password."""
    account.set_unusable_password()
    account.save(update_fields=["password", "is_active", "email"])


def _link(person_id: int, now: dt.datetime) -> SignInLink:
    # Read again, because the token depends on the stored values.
    account = _account(person_id)
    return SignInLink(
        person=_person(account),
        uid=urlsafe_base64_encode(force_bytes(account.pk)),
        token=default_token_generator.make_token(account),
        until=now + dt.timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
    )


def _audit(
    action: str,
    account: User,
    *,
    before: dict[str, str | None] | None = None,
    after: dict[str, str | None] | None = None,
    reason: str,
    principal: Principal,
    now: dt.datetime,
) -> None:
    AuditEvent.objects.create(
        at=now,
        actor=principal.actor,
        action=action,
        scope=ROOT,
        reason=reason,
        before=before or {},
        after={"name": account.username} | (after or {}),
    )
