"""People: invite, change the role, disable, enable, and the links with which they choose a password.

Every change is journaled in its transaction. A lock serializes the changes, so that one enabled administrator always
remains. A link contains Django's token for a new password: single-use, valid for ``PASSWORD_RESET_TIMEOUT``, and not
stored. A new link removes the password, and so does disabling. This ends the sessions and the earlier links of the
person at once.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from axes.utils import reset
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from memory.access.accounts import OPERATORS, ROLES, account_role, accounts_with_roles, role_given
from memory.access.principal import SYSTEM, Principal
from memory.core.cursors import cursor_make, cursor_parse
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.models import AuditEvent
from memory.models.locks import Lock, lock_wait

ADMINISTRATOR = ROLES[-1]
# Pages, journals and filters use these names for actors that are not people.
_RESERVED = (SYSTEM.actor, "terminal")


@dataclass(frozen=True, slots=True)
class Person:
    """An account as pages show it. A disabled account has the ``role`` that it had; None means no access.
    ``state`` is active, invited (never had a password), waiting (for a new password), or disabled."""

    id: int
    name: str
    role: str | None
    state: str
    mail: str
    last_sign_in: dt.datetime | None
    since: dt.datetime

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


def people_list(*, cursor: str | None, limit: int) -> tuple[list[Person], str | None]:
    """Return people by name and the cursor of the next page. One query. Raises ``ValueRefused`` for an invalid
    cursor."""
    rows = accounts_with_roles().order_by("username")
    if cursor is not None:
        rows = rows.filter(username__gt=cursor_parse(cursor, str)[0])
    found = [_person(account) for account in rows[: limit + 1]]
    return found[:limit], cursor_make(found[limit - 1].name) if len(found) > limit else None


def people_count(*, at_most: int) -> int:
    """Return the number of people, but at most ``at_most`` + 1. One query."""
    return User.objects.all()[: at_most + 1].count()


def person_get(person_id: int) -> Person:
    """Return a person. One query. Raises ``NotVisible``."""
    return _person(_account(person_id))


def person_invite(
    *, name: str, role: str, mail: str = "", reason: str, principal: Principal, now: dt.datetime
) -> SignInLink:
    """Store an account without a password and return the link with which the person chooses one. Nine queries.

    Raises ``ValueRefused`` for an unusable name or an unknown role, ``Conflict`` if the name is taken, in any case of
    its letters, and ``NotAllowed``.
    """
    name = User.normalize_username(name)
    _role_refuse(role)
    if name.casefold() in _RESERVED:
        raise _name_refused(f"The name {name!r} is reserved.")
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as problem:
        raise _name_refused(" ".join(problem.messages)) from None
    with _administering(principal):
        if User.objects.filter(username__iexact=name).exists():
            raise Conflict(f"The name {name!r} is taken.", code=ProblemCode.PERSON_EXISTS)
        account = User(username=name, email=mail, date_joined=now)
        account.set_unusable_password()
        account.save(force_insert=True)
        _role_set(account, role)
        _audit("person_invited", account, after={"role": role}, reason=reason, principal=principal, now=now)
        return _link(account.pk, now)


def person_role_change(person_id: int, *, role: str, reason: str, principal: Principal, now: dt.datetime) -> Person:
    """Give a person another role, in force from their next request on. Nine queries.

    Raises ``NotVisible``, ``ValueRefused`` for an unknown role, ``Conflict`` for the role that the person has and for
    the last administrator, and ``NotAllowed``, also for one's own account.
    """
    _role_refuse(role)
    with _administering(principal):
        account = _account(person_id)
        _loss_refuse(person_id, principal)
        before = role_given(account)
        if before == role:
            raise Conflict(f"{account.username} already has the role {role}.", code=ProblemCode.WRONG_STATUS)
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
        return person_get(person_id)


def person_disable(person_id: int, *, reason: str, principal: Principal, now: dt.datetime) -> Person:
    """Disable an account and end its sessions, links and password. Seven queries.

    Raises ``NotVisible``, ``Conflict`` if it is disabled already and for the last administrator, and ``NotAllowed``,
    also for one's own account.
    """
    with _administering(principal):
        account = _account(person_id)
        _loss_refuse(person_id, principal)
        if not account.is_active:
            raise Conflict(f"{account.username} is already disabled.", code=ProblemCode.WRONG_STATUS)
        account.is_active = False
        _password_end(account)
        _audit("person_disabled", account, reason=reason, principal=principal, now=now)
        return person_get(person_id)


def person_enable(person_id: int, *, reason: str, principal: Principal, now: dt.datetime) -> SignInLink:
    """Enable an account and return the link for its new password. Six queries.

    Raises ``NotVisible``, ``Conflict`` if it is enabled already, and ``NotAllowed``.
    """
    with _administering(principal):
        account = _account(person_id)
        if account.is_active:
            raise Conflict(f"{account.username} is already enabled.", code=ProblemCode.WRONG_STATUS)
        account.is_active = True
        _password_end(account)
        _audit("person_enabled", account, reason=reason, principal=principal, now=now)
        return _link(person_id, now)


def person_link_renew(
    person_id: int, *, mail: str | None = None, reason: str, principal: Principal, now: dt.datetime
) -> SignInLink:
    """Return a new link, and end the password, the sessions and the earlier links of the person. ``mail`` replaces the
    mail address. Six queries. Raises ``NotVisible``, ``Conflict`` if the account is disabled, and ``NotAllowed``, also
    for one's own account."""
    with _administering(principal):
        account = _account(person_id)
        _own_refuse(person_id, principal)
        if not account.is_active:
            raise Conflict(f"{account.username} is disabled. Enable the account.", code=ProblemCode.WRONG_STATUS)
        if mail is not None:
            account.email = mail
        _password_end(account)
        _audit("sign_in_link_made", account, reason=reason, principal=principal, now=now)
        return _link(person_id, now)


def password_choose(person_id: int, token: str, *, password: str, now: dt.datetime) -> str:
    """Set the password that a person chose with the token of a link, forget the failed attempts to sign in, and return
    the name. At most five queries.

    Raises ``Conflict`` if the token was used meanwhile, or is not valid for another reason.
    """
    with transaction.atomic():
        account = User.objects.select_for_update().filter(pk=person_id, is_active=True).first()
        if account is None or not default_token_generator.check_token(account, token):
            raise Conflict(
                "This link was already used, has expired, or was replaced by a newer one.",
                code=ProblemCode.SIGN_IN_LINK_INVALID,
            )
        account.set_password(password)
        account.save(update_fields=["password"])
        password_journal(account, now=now)
        # Who forgot a password has usually been locked out by then.
        reset(username=account.username)
    return account.username


def password_journal(account: User, *, now: dt.datetime) -> None:
    """Journal that a person chose a password. One query."""
    own = Principal(identity=f"user:{account.pk}", actor=f"user:{account.username}", role="reader")
    _audit("password_set", account, reason="", principal=own, now=now)


@contextmanager
def _administering(principal: Principal) -> Iterator[None]:
    """Begin a change by an administrator, after all concurrent changes have ended. Three queries."""
    with transaction.atomic():
        lock_wait(Lock.PEOPLE)
        # The page checked the role before the wait; another change may have taken it away.
        number = principal.identity.removeprefix("user:")
        actor = accounts_with_roles().filter(pk=int(number)).first() if number.isdecimal() else None
        if actor is None or account_role(actor) != ADMINISTRATOR:
            raise NotAllowed("This requires the role administrator.", code=ProblemCode.ROLE_TOO_LOW)
        yield


def _loss_refuse(person_id: int, principal: Principal) -> None:
    """Raise a problem if this is the last enabled administrator, or the person's own account. One query."""
    administrators = User.objects.filter(is_superuser=True, is_staff=True, is_active=True)
    if not administrators.exclude(pk=person_id).exists():
        raise Conflict(
            "This is the last enabled administrator. Make another person administrator first.",
            code=ProblemCode.LAST_ADMINISTRATOR,
        )
    _own_refuse(person_id, principal)


def _own_refuse(person_id: int, principal: Principal) -> None:
    if principal.identity == f"user:{person_id}":
        raise NotAllowed("This is your own account. Another administrator can change it.", code=ProblemCode.OWN_ACCOUNT)


def _account(person_id: int) -> User:
    account = accounts_with_roles().filter(pk=person_id).first()
    if account is None:
        raise NotVisible("This person does not exist.", code=ProblemCode.PERSON_NOT_FOUND)
    return account


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
    )


def _role_refuse(role: str) -> None:
    if role not in ROLES:
        raise ValueRefused(
            f"Role {role!r} does not exist; roles are {', '.join(ROLES)}.", code=ProblemCode.UNKNOWN_CHOICE
        )


def _name_refused(sentence: str) -> ValueRefused:
    return ValueRefused(sentence, code=ProblemCode.INVALID_PERSON_NAME)


def _role_set(account: User, role: str) -> None:
    account.is_staff, account.is_superuser = True, role == ADMINISTRATOR
    account.save(update_fields=["is_staff", "is_superuser"])
    operators, _made = Group.objects.get_or_create(name=OPERATORS)
    if role == "operator":
        account.groups.add(operators)
    else:
        account.groups.remove(operators)


def _password_end(account: User) -> None:
    """Remove the password. This ends the sessions and the links, whose hashes include the password."""
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
