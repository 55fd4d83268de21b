"""The people of the console: an account of every role, signed in without a password.

Not to be confused with the callers of the API in ``tests/cast.py``, who have keys and no accounts.
"""

import contextlib
import html
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.test import Client
from django.utils import timezone

from memory.stores.current import MAIN
from memory.stores.models import StoreRole

BACKEND = "memory.console.people.AccountBackend"
# Who may do what, from the least to the most. A visitor has an account without a role.
PEOPLE = ("anonymous", "visitor", "reader", "operator", "administrator")


def account_make(role: str, *, name: str = "", password: str | None = None, store: str = MAIN) -> User:
    """Store an account of ``role``, one of ``PEOPLE`` but the anonymous. Without a password, no one can sign in with
    one, and none is hashed."""
    everywhere = role == "administrator" and store == MAIN
    user = User(username=name or role, is_staff=everywhere, is_superuser=everywhere)
    if password is None:
        user.set_unusable_password()
    else:
        user.set_password(password)
    user.save()
    if role != "visitor":
        StoreRole.objects.create(user=user, store_id=store, role=role)
    return user


def client_of(user: User | None, **options: Any) -> Client:
    """Return a client in which ``user`` is signed in, or no one for None."""
    client = Client(**options)
    if user is not None:
        client.force_login(user, backend=BACKEND)
    return client


def person(role: str, **options: Any) -> Client:
    """Return a client in which someone of ``role`` is signed in; the account is made for it."""
    return client_of(None if role == "anonymous" else account_make(role), **options)


def token_of(client: Client) -> str:
    """Return a token for forms, for clients that check it."""
    reply = client.get("/account/") if settings.SESSION_COOKIE_NAME in client.cookies else client.get("/sign-in/")
    page = reply.content.decode()
    return page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]


def body_of(reply: HttpResponseBase) -> str:
    """Return all text of an answer, streamed or not."""
    if getattr(reply, "streaming", False):
        return b"".join(reply.streaming_content).decode()  # type: ignore[attr-defined]
    return reply.content.decode()  # type: ignore[attr-defined, no-any-return]


def codes_of(reply: HttpResponseBase) -> list[str]:
    """Return the codes of the problems that a page shows, and of what is wrong with its form, in their order."""
    return re.findall(r'data-code="([\w-]*)"', body_of(reply))


_POINTS = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")
_WRITES = re.compile(
    r'\b(?:INSERT INTO|UPDATE|DELETE FROM|TRUNCATE|COPY)\s+"?(?!OF\b|SKIP\b|NOWAIT\b)(\w+)', re.IGNORECASE
)


@dataclass
class Statements:
    """What was asked of the database within a block, whoever asked: Django's cursors and prepared statements alike."""

    sql: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sql)

    def __str__(self) -> str:
        return "\n".join(f"{place:3} {' '.join(text.split())[:300]}" for place, text in enumerate(self.sql, 1))

    @property
    def written(self) -> set[str]:
        """The tables that statements of the block name as those they write to. Sessions live by themselves."""
        return {table for text in self.sql for table in _WRITES.findall(text)} - {"django_session"}


@contextlib.contextmanager
def statements_reported() -> Iterator[Statements]:
    """Count the statements of a block; those that only begin or end a savepoint are left out."""
    got = Statements()
    own = threading.get_ident()

    def telling(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            text = (
                query
                if isinstance(query, str)
                else query.as_string(cursor)
                if hasattr(query, "as_string")
                else str(query)
            )
            # Threads of other tests, such as a server's, do not count.
            if threading.get_ident() == own and not text.startswith(_POINTS):
                got.sql.append(text)
            return real(cursor, query, *args, **kwargs)

        return run

    with pytest.MonkeyPatch.context() as patch:
        # Django's cursors count only their own statements, so this listens where all of them come by.
        for cursor in (psycopg.Cursor, psycopg.ServerCursor):
            for name in ("execute", "executemany"):
                patch.setattr(cursor, name, telling(getattr(cursor, name)))
        yield got


def statements_of(ask: Callable[[], HttpResponseBase]) -> int:
    """Return how many statements an answer costs, streamed parts included."""
    with statements_reported() as got:
        body_of(ask())
    # A test that fails shows them.
    print(*got.sql, "", sep="\n")
    return len(got)


def hidden(page: str, name: str) -> str:
    """Return the value of a hidden field."""
    found = re.search(rf'name="{name}"[^>]*value="([^"]*)"|value="([^"]*)"[^>]*name="{name}"', page)
    assert found, name
    return html.unescape(found[1] if found[1] is not None else found[2])


def posted(client: Client, verb: str, topics: list[str], **more: Any) -> Any:
    """Post what a list posts: the selected topics and when the list was shown, or ``all`` and the filter."""
    said = {"topic": topics, "seen_at": timezone.now().isoformat(), "next": "/archived/", **more}
    return client.post(f"/bulk/{verb}/", said, follow=True)
