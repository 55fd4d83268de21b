"""The people of the console: an account of every role, signed in without a password.

Not to be confused with the callers of the API in ``tests/cast.py``, who have keys and no accounts.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import connection
from django.http.response import HttpResponseBase
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.console.people import OPERATORS

BACKEND = "memory.console.people.AccountBackend"
# Who may do what, from the least to the most. A visitor has an account that is not staff.
PEOPLE = ("anonymous", "visitor", "reader", "operator", "administrator")


def account_make(role: str, *, name: str = "", password: str | None = None) -> User:
    """Store an account of ``role``, one of ``PEOPLE`` but the anonymous. Without a password, nobody can sign in with
    one, and none is hashed."""
    user = User(username=name or role, is_staff=role != "visitor", is_superuser=role == "administrator")
    if password is None:
        user.set_unusable_password()
    else:
        user.set_password(password)
    user.save()
    if role == "operator":
        user.groups.add(Group.objects.get_or_create(name=OPERATORS)[0])
    return user


def client_of(user: User | None, **options: Any) -> Client:
    """Return a client in which ``user`` is signed in, or nobody for None."""
    client = Client(**options)
    if user is not None:
        client.force_login(user, backend=BACKEND)
    return client


def person(role: str, **options: Any) -> Client:
    """Return a client in which somebody of ``role`` is signed in; the account is made for it."""
    return client_of(None if role == "anonymous" else account_make(role), **options)


def token_of(client: Client) -> str:
    """Return a token for forms, for clients that check it."""
    reply = client.get("/account/") if "memstate_session" in client.cookies else client.get("/sign-in/")
    page = reply.content.decode()
    return page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]


def body_of(reply: HttpResponseBase) -> str:
    """Return all text of an answer, streamed or not."""
    if getattr(reply, "streaming", False):
        return b"".join(reply.streaming_content).decode()  # type: ignore[attr-defined]
    return reply.content.decode()  # type: ignore[attr-defined, no-any-return]


_POINTS = ("SAVEPOINT", "RELEASE SAVEPOINT")


@dataclass
class Statements:
    """What was asked of the database within a block."""

    sql: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sql)

    def __str__(self) -> str:
        return "\n".join(f"{place:3} {text[:300]}" for place, text in enumerate(self.sql, 1))


@contextlib.contextmanager
def statements_told() -> Iterator[Statements]:
    """Count the statements of a block; those that only begin or end a savepoint are left out."""
    told = Statements()
    with CaptureQueriesContext(connection) as captured:
        yield told
    told.sql = [sql for query in captured.captured_queries if not (sql := query["sql"]).startswith(_POINTS)]


def statements_of(ask: Callable[[], HttpResponseBase]) -> int:
    """Return how many statements an answer costs, streamed parts included."""
    with statements_told() as told:
        body_of(ask())
    return len(told)
