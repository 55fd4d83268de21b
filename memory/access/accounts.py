"""Accounts of people, and their roles in the console: a reader sees everything and changes nothing, an operator tunes,
runs, undoes and brings back, an administrator also makes and revokes keys.

They come from the accounts that Django keeps: staff is a reader, a member of the group ``Operators`` an operator, a
superuser an administrator.
"""

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
