"""Addresses that no one wrote in good faith: every page that answers GET, with bad values for each thing it reads.

What a page reads of its address is not listed here but found by watching it, so a new page or filter is tried too.
"""

import base64
import random
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.db import transaction
from django.http import QueryDict
from django.test import Client

from memory.access.accounts import accounts_with_stores
from memory.console.pages.lookup import AgentForm
from memory.console.policy_form import MEMBERS
from memory.core.cursors import MAX_CURSOR
from memory.core.policy_values import KNOBS
from tests.cast import cast_make, in_process
from tests.console.crowd import Crowd, crowd_make
from tests.console.people import account_make, body_of, client_of
from tests.console.table import QUERIES, Address, addresses

pytestmark = pytest.mark.django_db

DRAFTED = ("salience", "salience_effect", "salience_affected", "salience_affected_count", "salience_backtest")
# Pages that take the whole of their address at once, so that no one sees what they read of it.
WHOLE = {
    "lookup_agent": tuple(AgentForm.base_fields),
    "policy_edit": MEMBERS,
    **{name: (*MEMBERS, *(f"b-{member}" for member in MEMBERS)) for name in DRAFTED},
}
# How many addresses are tried of one page.
MOST = 50
# As they stand in an address.
HOSTILE = (
    "",
    "x",
    "%00",
    "a%00b",
    "a" * 10_000,
    "%ED%A0%80",
    "%FF",
    "-1",
    "1.0",
    "NaN",
    "1e999",
    "9" * 30,
    "9" * 5000,
    "%2F..",
    "9999-12-31",
    "0001-01-01",
    "9999-12-31T23:59:59-14:00",
    "[]",
    "{}",
    "[" * 5000,
    "%25%27%22%3B--",
    "00000000-0000-0000-0000-000000000007",
)


def packed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def cursors() -> Iterator[str]:
    """Return cursors that look like those of the lists."""
    yield from ("!!!!", "YWJj", "====", packed("[" * (MAX_CURSOR // 2)), packed("{}"), packed("7"), packed("null"))
    yield packed("[" * 200_000)
    moments = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01")
    texts = ("\\u0000", "\\ud800", "", "x", "9" * 30, "-9" * 9, "nan", "-inf", *moments, str(uuid.UUID(int=7)))
    plain = ("1e999", "9" * 400, "null", "[]", "{}", *(f'"{text}"' for text in texts))
    for count in (1, 2, 3):
        yield from (packed(f"[{', '.join([part] * count)}]") for part in plain)
    # Where only the first part is wrong.
    topic, moment, number = f'"{uuid.UUID(int=7)}"', '"2026-01-01"', '"7"'
    for ends in (topic, number, f"{number}, {number}", f"{topic}, {moment}"):
        yield from (packed(f"[{part}, {ends}]") for part in plain)


CURSORS = tuple(dict.fromkeys(cursors()))
# What a list is sorted by decides how its cursor is read.
SORTED = {"archived": ("archived", "score", "title"), "lookup": ("created", "salience", "used", "best")}


@pytest.fixture(scope="module")
def crowd(lasting: None) -> Crowd:
    return crowd_make(cast_make(in_process).operator, 2)


@pytest.fixture(params=[each for each in addresses() if each.roles and "GET" in each.roles], ids=str)
def address(request: pytest.FixtureRequest) -> Address:
    found: Address = request.param
    return found


def read_by(client: Client, url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the members of its address that a page asks for."""
    asked: dict[str, None] = {}

    def watching(real: Any) -> Any:
        def watched(self: QueryDict, name: str, *args: Any) -> Any:
            asked[name] = None
            return real(self, name, *args)

        return watched

    with monkeypatch.context() as patch:
        for name in ("get", "getlist", "__getitem__", "__contains__"):
            patch.setattr(QueryDict, name, watching(getattr(QueryDict, name)), raising=False)
        body_of(client.get(url))
    return [name for name in asked if isinstance(name, str)]


def test_what_a_page_reads_of_its_address_is_found(looker: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"actor", "action", "scope", "topic", "since", "until", "cursor"} <= set(
        read_by(looker, "/audit/", monkeypatch)
    )


def test_no_address_breaks_a_page(address: Address, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    someone = accounts_with_stores().get(pk=account_make("administrator").pk)
    client = client_of(someone, raise_request_exception=False)
    # Who asks is the same for all of them, and reading it each time was a fifth of what they cost.
    monkeypatch.setattr("django.contrib.auth.middleware.get_user", lambda _request: someone)
    url = address.path(**crowd.given(address.arguments))
    given = {name: quote(value) for name, value in QUERIES.get(address.name, {}).items()}
    query = "&".join(f"{name}={value}" for name, value in given.items())
    known = list(dict.fromkeys([*read_by(client, f"{url}?{query}", monkeypatch), *WHOLE.get(address.name, ())]))
    alone = [name for name in known if name.removeprefix("b-") not in KNOBS]
    tried = [{**given, name: value} for name in alone for value in HOSTILE]
    tried += [dict.fromkeys((*known, *KNOBS), value) for value in HOSTILE if len(value) < 100]
    if "cursor" in known:
        sorts = SORTED.get(address.name, ("",))
        tried += [{**given, "sort": sort, "cursor": quote(cursor)} for sort in sorts for cursor in CURSORS]
    # A part of them is tried, another one for each page.
    tried = random.Random(address.name).sample(tried, min(len(tried), MOST))
    broken = [
        f"{members}: {said}"[:500]
        for members in tried
        if (said := answer(client, url + "?" + "&".join(f"{name}={value}" for name, value in members.items())))
    ]
    assert not broken, f"{len(broken)} of {len(tried)}:\n" + "\n".join(broken[:20])


def answer(client: Client, url: str) -> str:
    """Return what is wrong with an answer, nothing for a good one."""
    # A statement that the database refuses would spoil the transaction of the test.
    with transaction.atomic():
        reply = client.get(url)
        wrong = f"status {reply.status_code}" if reply.status_code >= 500 else ""
        try:
            body_of(reply)
        except Exception as problem:
            wrong = repr(problem)
        transaction.set_rollback(True)
    return wrong
