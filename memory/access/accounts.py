"""Accounts of people and their roles in the console.

A reader sees everything and cannot change anything. An operator changes policies, starts and undoes runs, and restores
topics. An administrator also manages keys and people (``memory.access.people``). The accounts are Django's: staff are
readers, members of the group ``Operators`` are operators, superusers are administrators.
"""

import re
from collections.abc import Iterable

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, QuerySet

OPERATORS = "Operators"
# Each role includes the rights of the roles before it.
ROLES = ("reader", "operator", "administrator")

Person = AbstractBaseUser | AnonymousUser


def account_role(person: Person) -> str | None:
    """Return the role of an account in the console; None if the account may not use the console.

    Runs no query for the account of a request, because the middleware has annotated it; otherwise one.
    """
    return role_given(person) if isinstance(person, User) and person.is_active else None


def role_given(account: User) -> str | None:
    """Return the role that an account has while it is enabled. Runs the queries of ``account_role``."""
    if not account.is_staff:
        return None
    if account.is_superuser:
        return "administrator"
    operates = getattr(account, "operates", None)
    if operates is None:
        operates = account.groups.filter(name=OPERATORS).exists()
    return "operator" if operates else "reader"


def accounts_with_roles() -> QuerySet[User]:
    """Return all accounts, annotated with whether they belong to the operators."""
    member = User.groups.through.objects.filter(user_id=OuterRef("pk"), group__name=OPERATORS)
    return User.objects.annotate(operates=Exists(member))


def account_labels(identities: Iterable[str]) -> dict[str, str]:
    """Return the label (``user:<name>``) of each account among ``identities`` of the access log (``user:<id>``).

    One query.
    """
    ids = {each: int(each.removeprefix("user:")) for each in identities if re.fullmatch(r"user:[0-9]{1,9}", each)}
    names = dict(User.objects.filter(pk__in=set(ids.values())).values_list("pk", "username"))
    return {identity: f"user:{names[found]}" for identity, found in ids.items() if found in names}


def account_identities(label: str) -> list[str]:
    """Return the identities (``user:<id>``) of the account with this label (``user:<name>``). One query."""
    people = User.objects.filter(username=label.removeprefix("user:")).values_list("pk", flat=True)
    return [f"user:{person}" for person in people]
