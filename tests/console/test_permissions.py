"""Who may do what in the console, generated from the table of addresses: at each address the last person refused and
the first admitted, and every person and method once for each way in which pages are declared."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from memory.access.accounts import ROLES
from tests.console.people import PEOPLE, account_make, client_of, statements_reported
from tests.console.table import METHODS, Address, addresses

SAFE = ("GET", "HEAD", "OPTIONS")


@pytest.fixture(scope="module")
def sessions(lasting: None) -> dict[str, str]:
    """The cookie of everybody's session. They sign in once for all tests of the file."""
    clients = {who: client_of(account_make(who)) for who in PEOPLE if who != "anonymous"}
    return {who: client.cookies[settings.SESSION_COOKIE_NAME].value for who, client in clients.items()}


def entered(sessions: dict[str, str], who: str, **options: Any) -> Client:
    """Return a new client in which someone is signed in."""
    client = Client(**options)
    if who in sessions:
        client.cookies[settings.SESSION_COOKIE_NAME] = sessions[who]
    return client


def test_each_address_has_a_name_and_declares_its_roles() -> None:
    for address in addresses():
        assert not address.name.startswith("("), f"{address.route} has no name"
        assert address.roles, f"the view of {address.name} is not declared with @page"
        assert set(address.roles) <= set(METHODS)
        assert set(address.roles.values()) <= {"anybody", *ROLES}
        assert not address.unknown, f"tests/console/table.py has no example for {address.unknown}"


def requests_at_the_limit(address: Address) -> Iterator[tuple[str, str]]:
    """Yield a person and a method for each request worth sending to this address: for each of its methods the last
    person refused and the first admitted, then a method that it does not have, and a request without a session."""
    roles = address.roles or {}
    for method, least in roles.items():
        first = 0 if least == "anybody" else PEOPLE.index(least)
        yield from ((who, method) for who in PEOPLE[max(0, first - 1) : first + 1])
    yield from (("administrator", method) for method in [each for each in METHODS if each not in roles][:1])
    yield "anonymous", next(iter(roles))


def each_declaration() -> list[Address]:
    """Return one address for each set of methods and roles with which pages are declared."""
    return list({tuple(sorted(each.roles.items())): each for each in addresses() if each.roles}.values())


@pytest.mark.parametrize("address", addresses(), ids=str)
def test_no_one_without_the_role_changes_anything(address: Address, sessions: dict[str, str]) -> None:
    for who, method in dict.fromkeys(requests_at_the_limit(address)):
        answered(address, who, method, sessions)


@pytest.mark.parametrize("one", each_declaration(), ids=str)
def test_every_person_and_method_is_answered_as_declared(one: Address, sessions: dict[str, str]) -> None:
    for who, method in itertools.product(PEOPLE, METHODS):
        answered(one, who, method, sessions)


def answered(address: Address, who: str, method: str, sessions: dict[str, str]) -> None:
    """Send one request. A person with the role gets an answer. Others are refused, and nothing is written."""
    assert address.roles
    if address.name == "sign_out" and who != "anonymous":
        # It ends the session, which the next request of this person needs.
        client = client_of(User.objects.get(username=who), raise_request_exception=False)
    else:
        client = entered(sessions, who, raise_request_exception=False)
    with statements_reported() as got:
        reply = client.generic(method, address.url())
        # A file is closed when all of it was read.
        b"".join(reply.streaming_content if reply.streaming else ())
    where = f"{method} {address.url()} by {who}: {reply.status_code}"
    least = address.roles.get(method)
    assert reply.status_code < 500, where
    if least == "anybody":
        assert reply.status_code not in (403, 405), where
    elif who == "anonymous":
        # Signing in comes first, whatever was asked.
        assert reply.status_code == (405 if "anybody" in address.roles.values() else 302), where
        assert reply.status_code == 405 or reply.headers["Location"].startswith("/sign-in/"), where
        assert not got.written, where
    elif least is None:
        assert reply.status_code in ((403, 405) if who == "visitor" else (405,)), where
        assert not got.written, where
    elif who == "visitor" or ROLES.index(who) < ROLES.index(least):
        assert reply.status_code == 403, where
        assert not got.written, where
    else:
        assert reply.status_code not in (403, 405), where
        assert not reply.headers.get("Location", "").startswith("/sign-in/"), where
        assert method not in SAFE or not got.written, f"{where}: writes {got.written}"


def test_a_form_without_csrf_token_is_refused_at_each_address(sessions: dict[str, str]) -> None:
    """Also what htmx sends, which carries the token in a header."""
    client = entered(sessions, "administrator", enforce_csrf_checks=True, raise_request_exception=False)
    for address, method in itertools.product(addresses(), ("POST", "DELETE")):
        headers = {"HX-Request": "true"} if method == "DELETE" else {}
        with statements_reported() as got:
            reply = client.generic(method, address.url(), headers=headers)
        assert reply.status_code == 403, f"{method} {address.url()}: {reply.status_code}"
        assert not got.written


@pytest.mark.django_db
def test_htmx_requests_without_session_lead_the_whole_page_to_the_sign_in() -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/runs/?scope=/x"}
    for address in addresses():
        if "anybody" not in (address.roles or {}).values():
            reply = Client().generic("GET", address.url(), headers=headers)
            assert reply.status_code == 200, address
            assert reply.headers["HX-Redirect"] == "/sign-in/?next=%2Fruns%2F%3Fscope%3D%2Fx", address


def test_pages_of_signed_in_people_are_not_cached_by_browsers(sessions: dict[str, str]) -> None:
    client = entered(sessions, "administrator", raise_request_exception=False)
    for address in each_declaration():
        if (address.roles or {}).get("GET", "anybody") != "anybody":
            reply = client.get(address.url())
            assert "no-store" in reply.headers.get("Cache-Control", ""), address
