"""Who is signed in, which store that person has open, and which role the person has there
(``memory.access.accounts``)."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.middleware.csrf import rotate_token

from memory.access.accounts import ROLES, account_role, accounts_here, accounts_with_stores, stores_open
from memory.access.principal import SYSTEM, Principal
from memory.access.sign_in import hashing_turn
from memory.models import ApiKey
from memory.stores.current import store_choose
from memory.stores.keys import store_unknown
from memory.stores.models import Store

# The name of the open store in the session.
_OPEN = "store"


class AccountBackend(ModelBackend):
    """Django's own accounts, read together with their roles and stores: one query per request."""

    def authenticate(self, request: HttpRequest | None, *args: Any, **more: Any) -> User | None:
        """Return the account with this name and password, or None. Raises ``SignInBusy`` if too many passwords are
        being compared."""
        with hashing_turn():
            found = super().authenticate(request, *args, **more)
        assert found is None or isinstance(found, User)
        return found

    def get_user(self, user_id: Any) -> User | None:
        """Return the account of a session, or None if it is gone or no longer active. One query."""
        found = accounts_with_stores().filter(pk=user_id).first()
        return found if found is not None and self.user_can_authenticate(found) else None


def store_enter(request: HttpRequest) -> str | None:
    """Make the open store of the session the current store, and return the role of the person there; None without
    access to any store. If the session names no store that the person may open, the first store of the person is used.

    No query, except one for an administrator of the installation whose store is not one of ``stores_open``.
    """
    person = request.user
    if not isinstance(person, User):
        return None
    wanted = request.session.get(_OPEN, "")
    stores = _stores(person, wanted)
    if not stores:
        return None
    name = wanted if wanted in stores else next(iter(stores))
    store_choose(name)
    request.store, request.stores = name, stores  # type: ignore[attr-defined]
    return account_role(person)


def store_open(request: HttpRequest, name: str) -> None:
    """Open another store in the session. At most one query. Raises ``NotVisible`` without access to the store."""
    person = request.user
    if not isinstance(person, User) or name not in _stores(person, name):
        raise store_unknown(name)
    request.session[_OPEN] = name
    # Other windows may still show forms of the previous store, which must be refused from now on.
    rotate_token(request)


def _stores(person: User, wanted: str) -> dict[str, str]:
    """Return a dict from the names to the versions of the stores that a person may open: those of ``stores_open`` and,
    for an administrator of the installation, ``wanted``."""
    stores = stores_open(person)
    if wanted and wanted not in stores and person.is_superuser:
        stores.update(Store.objects.filter(pk=wanted).values_list("pk", "version"))
    return stores


def may(role: str | None, needed: str) -> bool:
    """Return whether ``role`` is at least ``needed``."""
    return role is not None and ROLES.index(role) >= ROLES.index(needed)


def principal_of(person: User, role: str) -> Principal:
    """Return the principal of a signed-in person. Journals show the person as ``user:<name>``."""
    return Principal(
        identity=f"user:{person.pk}",
        actor=f"user:{person.get_username()}",
        role="reader" if role == "reader" else "operator",
    )


def actors_suggested(text: str, *, most: int) -> list[str]:
    """Return at most ``most`` actors of the store (accounts, keys and the system) whose names contain ``text``. The
    names are written as pages show them. Two queries."""
    people = accounts_here().filter(username__icontains=text).order_by("username")
    name = text.removeprefix("key:")
    keys = ApiKey.objects.filter(name__icontains=name).order_by("name").values_list("name", flat=True).distinct()
    found = [SYSTEM.actor] if text.casefold() in SYSTEM.actor else []
    found += people.values_list("username", flat=True)[:most]
    return (found + [f"key:{key}" for key in keys[:most]])[:most]
