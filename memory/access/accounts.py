"""Accounts of people and their roles in the console.

A reader sees everything and cannot change anything. An operator changes policies, starts and undoes runs, and restores
topics. An administrator also manages keys and people (``memory.access.people``). An account is a Django user that has a
role in each of its stores. An administrator of ``main`` is an administrator of the installation, and is a Django
superuser. Such an account administers every store, and creates and drops stores.
"""

import re
from collections.abc import Iterable

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BooleanField, Case, ExpressionWrapper, OuterRef, Q, QuerySet, When
from django.db.models.functions import JSONObject

from memory.stores.current import MAIN, store_current
from memory.stores.models import Store, StoreRole

# Each role includes the rights of the roles before it.
ROLES = ("reader", "operator", "administrator")
ADMINISTRATOR = ROLES[-1]
# The number of stores that every page offers to an administrator of the installation.
MAX_OFFERED = 20
_MAIN_FIRST = (Case(When(pk=MAIN, then=0), default=1), "pk")

Person = AbstractBaseUser | AnonymousUser


def account_role(person: Person) -> str | None:
    """Return the role of an account in the current store; None if the account may not use the console there.

    Runs no query for an administrator of the installation, or for the account of a request, whose roles are already
    loaded. Runs one query for any other account.
    """
    return role_given(person) if isinstance(person, User) and person.is_active else None


def role_given(account: User) -> str | None:
    """Return the role of an account in the current store, even if the account is disabled. Queries as in
    ``account_role``."""
    return ADMINISTRATOR if account.is_superuser else roles_given(account).get(store_current())


def roles_given(account: User) -> dict[str, str]:
    """Return the roles that were given to an account. The keys are the names of the stores. Queries as in
    ``account_role``."""
    granted = getattr(account, "granted", None)
    if granted is None:
        granted = StoreRole.objects.filter(user=account).values("store", "role")
    return {each["store"]: each["role"] for each in granted}


def account_administers(account: User) -> bool:
    """Return whether an account is an administrator of any store. Queries as in ``account_role``."""
    return account.is_superuser or ADMINISTRATOR in roles_given(account).values()


def store_first(account: User) -> str:
    """Return the store that an account opens first. Queries as in ``account_role``."""
    return MAIN if account.is_superuser else min(roles_given(account), key=_order, default=MAIN)


def _order(store: str) -> tuple[bool, str]:
    return store != MAIN, store


def accounts_with_roles() -> QuerySet[User]:
    """Return all accounts, annotated with their roles."""
    granted = StoreRole.objects.filter(user=OuterRef("pk"))
    entry = JSONObject(store="store", role="role", version="store__version")
    return User.objects.annotate(granted=ArraySubquery(granted.values(x=entry)))


def accounts_here() -> QuerySet[User]:
    """Return the accounts that are visible in the current store, annotated with their roles. Accounts with a role there
    and the administrators of the installation are visible. In ``main``, accounts without any role are visible too."""
    seen = Q(is_superuser=True) | Q(pk__in=StoreRole.objects.filter(store=store_current()).values("user"))
    if store_current() == MAIN:
        seen |= ~Q(pk__in=StoreRole.objects.values("user"))
    return accounts_with_roles().filter(seen)


def accounts_with_stores() -> QuerySet[User]:
    """Return all accounts, annotated with their roles and, for administrators of the installation, with the first
    ``MAX_OFFERED`` stores."""
    is_everywhere = ExpressionWrapper(OuterRef("is_superuser"), output_field=BooleanField())
    every = Store.objects.filter(is_everywhere).order_by(*_MAIN_FIRST)[:MAX_OFFERED]
    entry = JSONObject(store="pk", version="version")
    return accounts_with_roles().annotate(offered=ArraySubquery(every.values(x=entry)))


def stores_open(account: User) -> dict[str, str]:
    """Return the names and versions of the stores that an account of ``accounts_with_stores`` may open, ``main`` first.
    For an administrator of the installation, these are only the first ``MAX_OFFERED`` stores. No query."""
    found = account.offered if account.is_superuser else account.granted  # type: ignore[attr-defined]
    versions = {each["store"]: each["version"] for each in found}
    return {name: versions[name] for name in sorted(versions, key=_order)}


def account_labels(identities: Iterable[str]) -> dict[str, str]:
    """Return a mapping from identities in the access log (``user:<id>``) to labels (``user:<name>``), for the accounts
    that exist.

    One query.
    """
    ids = {each: int(each.removeprefix("user:")) for each in identities if re.fullmatch(r"user:[0-9]{1,9}", each)}
    names = dict(User.objects.filter(pk__in=set(ids.values())).values_list("pk", "username"))
    return {identity: f"user:{names[found]}" for identity, found in ids.items() if found in names}


def account_identities(label: str) -> list[str]:
    """Return the identities (``user:<id>``) of the account with this label (``user:<name>``). One query."""
    people = User.objects.filter(username=label.removeprefix("user:")).values_list("pk", flat=True)
    return [f"user:{person}" for person in people]
