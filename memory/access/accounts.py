"""Accounts of people, and their roles in the console: a reader sees everything and changes nothing, an operator tunes,
runs, undoes and brings back, an administrator also makes and revokes keys.

They come from the accounts that Django keeps: staff is a reader, a member of the group ``Operators`` an operator, a
superuser an administrator.
"""

import re
from collections.abc import Iterable

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User

OPERATORS = "Operators"

Person = AbstractBaseUser | AnonymousUser


def role_of(person: Person) -> str | None:
    """Return the role of an account in the console, None for accounts that have no business there. No query for the
    account of a request, one for any other."""
    if not isinstance(person, User) or not person.is_active or not person.is_staff:
        return None
    if person.is_superuser:
        return "administrator"
    operates = getattr(person, "operates", None)
    if operates is None:
        operates = person.groups.filter(name=OPERATORS).exists()
    return "operator" if operates else "reader"


def people_named(identities: Iterable[str]) -> dict[str, str]:
    """Return the name that journals show for each account among callers of the access log, which knows accounts by
    their ids. One query, if there is an account."""
    ids = {each: int(each.removeprefix("user:")) for each in identities if re.fullmatch(r"user:[0-9]{1,9}", each)}
    names = dict(User.objects.filter(pk__in=set(ids.values())).values_list("pk", "username"))
    return {identity: f"user:{names[found]}" for identity, found in ids.items() if found in names}


def person_identities(said: str) -> list[str]:
    """Return how the access log knows the account that journals call ``said``. One query."""
    people = User.objects.filter(username=said.removeprefix("user:")).values_list("pk", flat=True)
    return [f"user:{person}" for person in people]
