"""Who is signed in, and what that person may do in the console: one of three roles, each with everything before it
(``memory.access.accounts``).
"""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest

from memory.access.accounts import ROLES, accounts_with_roles
from memory.access.principal import SYSTEM, Principal
from memory.access.sign_in import hashing_turn
from memory.models import ApiKey


class AccountBackend(ModelBackend):
    """Django's own accounts, read together with whether they belong to the operators: one query per request."""

    def authenticate(self, request: HttpRequest | None, *args: Any, **more: Any) -> User | None:
        """Return the account of a name and its password, or None. Only two passwords are compared at a time."""
        with hashing_turn():
            found = super().authenticate(request, *args, **more)
        assert found is None or isinstance(found, User)
        return found

    def get_user(self, user_id: Any) -> User | None:
        """Return the account of a session, or None if it is gone or no longer active. One query."""
        found = accounts_with_roles().filter(pk=user_id).first()
        return found if found is not None and self.user_can_authenticate(found) else None


def may(role: str | None, needed: str) -> bool:
    """Return whether ``role`` covers ``needed``."""
    return role is not None and ROLES.index(role) >= ROLES.index(needed)


def principal_of(person: User, role: str) -> Principal:
    """Return the caller that the other rooms know: journals show ``user:`` and the name."""
    return Principal(
        identity=f"user:{person.pk}",
        actor=f"user:{person.get_username()}",
        role="reader" if role == "reader" else "operator",
    )


def actors_suggested(text: str, *, most: int) -> list[str]:
    """Return who may have done something and has ``text`` in the name, as pages show it: accounts, keys, the system.
    Two queries."""
    people = User.objects.filter(is_staff=True, username__icontains=text).order_by("username")
    name = text.removeprefix("key:")
    keys = ApiKey.objects.filter(name__icontains=name).order_by("name").values_list("name", flat=True).distinct()
    found = [SYSTEM.actor] if text.casefold() in SYSTEM.actor else []
    found += people.values_list("username", flat=True)[:most]
    return (found + [f"key:{key}" for key in keys[:most]])[:most]
