"""Signing in and out: guessing ends, sessions end when they should, and what every page tells the browser."""

import datetime as dt
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.conf import settings as site
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memory.access.sign_in import hashing_turn
from memory.console.people import AccountBackend
from memory.stores.models import StoreRole
from memstate_site.folder import CHECKOUT
from tests.console.people import account_make, client_of, codes_of, token_of
from tests.console.table import pages

PASSWORD = "a long enough one"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _quick_hashes(settings: Any) -> None:
    # Slow hashing is what makes guessing slow; here it would only make the tests slow.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def sign_in(client: Client, name: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post("/sign-in/", {"username": name, "password": password, **more})


# --- Getting in ---


def test_signing_in_leads_to_the_home_or_to_where_someone_wanted_to_go() -> None:
    account_make("reader", password=PASSWORD)
    assert sign_in(Client(), "reader").headers["Location"] == "/"

    client = Client()
    wanted = client.get("/audit/?actor=system").headers["Location"]
    assert wanted == "/sign-in/?next=%2Faudit%2F%3Factor%3Dsystem"
    assert 'name="next" value="/audit/?actor=system"' in client.get(wanted).content.decode()
    assert sign_in(client, "reader", next="/audit/?actor=system").headers["Location"] == "/audit/?actor=system"


@pytest.mark.parametrize(
    "elsewhere",
    ["https://example.com/", "//example.com/", "/\\example.com", "javascript:alert(1)", "http:///example.com"],
)
def test_signing_in_never_leads_to_another_site(elsewhere: str) -> None:
    account_make("reader", password=PASSWORD)
    assert sign_in(Client(), "reader", next=elsewhere).headers["Location"] == "/"


def test_what_a_form_was_about_is_not_sent_again_after_signing_in() -> None:
    assert Client().post("/account/", {}).headers["Location"] == "/sign-in/?next=%2F"


def test_a_wrong_password_is_reported_without_telling_whether_the_name_exists() -> None:
    account_make("reader", password=PASSWORD)
    known = sign_in(Client(), "reader", "wrong").content.decode()
    unknown = sign_in(Client(), "nobody-here", "wrong").content.decode()
    sentence = "Wrong name or password."
    assert sentence in known
    assert sentence in unknown


def test_an_account_that_is_no_staff_gets_in_nowhere() -> None:
    account_make("visitor", password=PASSWORD)
    client = Client()
    sign_in(client, "visitor")
    reply = client.get("/")
    assert (reply.status_code, codes_of(reply)) == (403, ["not-allowed"])


def test_whoever_is_signed_in_passes_the_sign_in_page(looker: Client) -> None:
    assert looker.get("/sign-in/?next=/runs/").headers["Location"] == "/runs/"


def test_a_sign_in_without_its_token_is_refused() -> None:
    account_make("reader", password=PASSWORD)
    client = Client(enforce_csrf_checks=True)
    token = token_of(client)
    assert sign_in(client, "reader").status_code == 403
    assert sign_in(client, "reader", csrfmiddlewaretoken=token).status_code == 302


def test_the_django_admin_still_lets_an_administrator_in(administrator: Client, op: Client) -> None:
    assert administrator.get("/admin/").status_code == 200
    assert op.get("/admin/memory/topic/", follow=True).status_code == 403


# --- Guessing ---


def guessed(client: Client, name: str = "reader") -> Any:
    for _ in range(site.AXES_FAILURE_LIMIT - 1):
        assert sign_in(client, name, "wrong").status_code == 200
    return sign_in(client, name, "wrong")


def test_guessing_is_locked_out_with_a_page_that_says_for_how_long() -> None:
    account_make("reader", password=PASSWORD)
    client = Client()
    reply = guessed(client)
    assert reply.status_code == 429
    assert "Sign-in locked" in reply.content.decode()
    assert "15 minutes" in reply.content.decode()
    assert sign_in(client, "reader").status_code == 429, "not even the right one opens it"


def test_others_are_not_locked_out_with_a_guesser() -> None:
    account_make("reader", password=PASSWORD)
    account_make("operator", password=PASSWORD)
    guessed(Client())
    assert sign_in(Client(), "operator").status_code == 302, "another name at the same address"
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert sign_in(elsewhere, "reader").status_code == 302, "the same name at another address"


def test_guessing_over_many_names_locks_the_address_and_leaves_no_more_rows(settings: Any) -> None:
    settings.MEMSTATE_SIGN_IN_ATTEMPTS_PER_ADDRESS = 5
    account_make("reader", password=PASSWORD)
    statuses = [sign_in(Client(), f"name {number}", "wrong").status_code for number in range(10)]
    assert statuses == [200] * 5 + [429] * 5
    assert AccessAttempt.objects.count() == 5
    assert sign_in(Client(), "reader").status_code == 429, "not even the right one opens it"
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), "reader").status_code == 302
    AccessAttempt.objects.update(attempt_time=timezone.now() - dt.timedelta(minutes=16))
    assert sign_in(Client(), "reader").status_code == 302, "the lock opens by itself"


def test_at_most_two_passwords_are_compared_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    def _compared(*_args: Any, **_more: Any) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        with lock:
            at_once -= 1

    monkeypatch.setattr(ModelBackend, "authenticate", _compared)
    with ThreadPoolExecutor(8) as guesses:
        list(guesses.map(lambda _number: AccountBackend().authenticate(None, "reader", "wrong"), range(16)))
    assert most == 2


def test_a_sign_in_that_waits_too_long_for_its_turn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.access.sign_in.MAX_WAIT_SECONDS", 0.05)
    inside = client_of(account_make("reader", password=PASSWORD))
    with hashing_turn(), hashing_turn():
        at_the_door = sign_in(Client(), "reader")
        new = {"old_password": PASSWORD, "new_password1": "another long one", "new_password2": "another long one"}
        at_home = inside.post("/account/", new)
    for reply in (at_the_door, at_home):
        assert (reply.status_code, codes_of(reply)) == (429, ["too-many-requests"])
        assert int(reply.headers["Retry-After"]) >= 1
    # No attempt is counted, and the next one finds its turn.
    assert not AccessAttempt.objects.exists()
    assert sign_in(Client(), "reader").status_code == 302


def test_names_that_do_not_exist_are_locked_alike() -> None:
    assert guessed(Client(), "nobody-here").status_code == 429


def test_a_lock_opens_by_itself() -> None:
    account_make("reader", password=PASSWORD)
    client = Client()
    guessed(client)
    for attempt in AccessAttempt.objects.all():
        attempt.attempt_time -= site.AXES_COOLOFF_TIME + dt.timedelta(seconds=1)
        attempt.save()
    assert sign_in(client, "reader").status_code == 302


def test_some_mistypings_are_forgotten_after_a_sign_in() -> None:
    account_make("reader", password=PASSWORD)
    for _ in range(3):
        client = Client()
        for _ in range(site.AXES_FAILURE_LIMIT - 1):
            sign_in(client, "reader", "wrong")
        assert sign_in(client, "reader").status_code == 302


def test_guesses_at_the_old_password_count_as_attempts_to_sign_in() -> None:
    client = client_of(account_make("reader", password=PASSWORD))
    new = "quite another 7 words"
    guess = {"old_password": "wrong", "new_password1": new, "new_password2": new}
    replies = [client.post("/account/", guess).status_code for _ in range(site.AXES_FAILURE_LIMIT + 1)]
    assert (replies[0], replies[-1]) == (422, 429)
    assert client.post("/account/", {**guess, "old_password": PASSWORD}).status_code == 429
    assert sign_in(Client(), "reader").status_code == 429
    assert User.objects.get(username="reader").check_password(PASSWORD)


# --- Sessions ---


def test_the_session_of_an_administrator_ends_within_a_working_day() -> None:
    for role, hours in (("administrator", 8), ("operator", 14 * 24)):
        account_make(role, password=PASSWORD)
        client = Client()
        sign_in(client, role)
        assert client.session.get_expiry_age() <= hours * 3600
        assert client.session.get_expiry_age() > (hours - 1) * 3600
        assert int(client.cookies[site.SESSION_COOKIE_NAME]["max-age"]) <= hours * 3600


def test_two_stores_on_one_host_name_their_cookies_differently() -> None:
    program = "from memstate_site import settings as s; print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME)"
    names: list[str] = []
    for key in ("a" * 40, "b" * 40, "a" * 40):
        got = subprocess.run(
            [sys.executable, "-c", program],
            cwd=CHECKOUT,
            env={**os.environ, "MEMSTATE_SECRET_KEY": key},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        names.append(got.stdout)
        assert key[:5] not in got.stdout
    assert names[0] == names[2] != names[1]
    assert len({*names[0].split(), *names[1].split()}) == 4


def test_the_cookies_are_out_of_reach_of_scripts_and_of_other_sites() -> None:
    account_make("reader", password=PASSWORD)
    client = Client()
    client.get("/sign-in/")
    sign_in(client, "reader")
    for name in (site.SESSION_COOKIE_NAME, site.CSRF_COOKIE_NAME):
        cookie = client.cookies[name]
        assert cookie["httponly"], name
        assert cookie["samesite"] == "Lax", name
        assert cookie["path"] == "/", name


def test_a_session_gets_a_new_key_when_someone_signs_in() -> None:
    account_make("reader", password=PASSWORD)
    client = Client()
    sign_in(client, "reader")
    first = client.cookies[site.SESSION_COOKIE_NAME].value
    client.post("/sign-out/")
    sign_in(client, "reader")
    assert client.cookies[site.SESSION_COOKIE_NAME].value != first


def test_signing_out_ends_the_session_for_everybody_who_has_its_key() -> None:
    client = client_of(account_make("reader"))
    copied = Client()
    copied.cookies[site.SESSION_COOKIE_NAME] = client.cookies[site.SESSION_COOKIE_NAME].value
    assert copied.get("/audit/").status_code == 200
    reply = client.post("/sign-out/", follow=True)
    assert "You are signed out." in reply.content.decode()
    assert copied.get("/audit/").status_code == 302


def test_a_link_signs_no_one_out(looker: Client) -> None:
    looker.get("/sign-out/")
    assert looker.get("/audit/").status_code == 200


def test_a_new_password_ends_the_other_sessions_and_not_this_one() -> None:
    user = account_make("reader", password=PASSWORD)
    here, elsewhere = client_of(user), client_of(user)
    assert elsewhere.get("/audit/").status_code == 200
    new = "quite another 7 words"
    reply = here.post("/account/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new}, follow=True)
    assert "Password changed." in reply.content.decode()
    assert here.get("/audit/").status_code == 200
    assert elsewhere.get("/audit/").status_code == 302
    assert sign_in(Client(), "reader", new).status_code == 302


@pytest.mark.parametrize(
    ("old", "new", "again", "sentence"),
    [
        ("wrong", "quite another 7 words", "quite another 7 words", "Your old password was entered incorrectly"),
        (PASSWORD, "quite another 7 words", "quite another 8 words", "The two password fields didn’t match."),
        (PASSWORD, "short", "short", "This password is too short."),
        (PASSWORD, "password123", "password123", "This password is too common."),
    ],
)
def test_a_new_password_is_refused_in_place(old: str, new: str, again: str, sentence: str) -> None:
    client = client_of(account_make("reader", password=PASSWORD))
    reply = client.post("/account/", {"old_password": old, "new_password1": new, "new_password2": again})
    assert reply.status_code == 422
    assert sentence in reply.content.decode()
    assert User.objects.get(username="reader").check_password(PASSWORD)


def test_an_account_that_is_switched_off_is_out_at_its_next_request() -> None:
    user = account_make("operator", password=PASSWORD)
    client = client_of(user)
    assert client.get("/audit/").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/audit/").status_code == 302
    assert sign_in(Client(), "operator").status_code == 200


def test_a_role_that_changes_counts_at_the_next_request() -> None:
    client = client_of(account_make("reader"))
    assert "signed in as reader" in client.get("/account/").content.decode().lower()
    StoreRole.objects.update(role="operator")
    assert "signed in as operator" in client.get("/account/").content.decode().lower()
    StoreRole.objects.update(role="reader")
    assert "signed in as reader" in client.get("/account/").content.decode().lower()
    StoreRole.objects.all().delete()
    assert client.get("/account/").status_code == 403


# --- What every page tells the browser ---

HEADERS = {
    "Content-Security-Policy": {
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    },
    "X-Frame-Options": {"DENY"},
    "X-Content-Type-Options": {"nosniff"},
    "Referrer-Policy": {"same-origin"},
    "Cross-Origin-Opener-Policy": {"same-origin"},
}


@pytest.mark.parametrize("path", ["/sign-in/", "/", "/audit/", "/account/", "/audit/export.csv", "/not/here/"])
def test_every_answer_tells_the_browser_what_it_may_do(administrator: Client, anonymous: Client, path: str) -> None:
    for client in (administrator, anonymous):
        reply = client.get(path)
        for name, wanted in HEADERS.items():
            assert set(reply.headers[name].split("; ")) == wanted, (path, name)


def test_no_page_brings_script_or_style_of_its_own(administrator: Client) -> None:
    for address in pages():
        body = administrator.get(address.url()).content.decode(errors="replace")
        for tag in body.split("<script")[1:]:
            head = tag.partition(">")[0]
            assert "src=" in head or 'type="application/json"' in head, f"{address}: <script{head}>"
        for forbidden in (
            " style=",
            "<style",
            " onclick=",
            " onload=",
            "javascript:",
            " hx-on",
            "hx-vals='js:",
            'hx-vals="js:',
        ):
            assert forbidden not in body.replace("&quot;", ""), f"{address}: {forbidden}"


@pytest.mark.parametrize("behind_tls", ["no", "yes"])
def test_the_deployment_check_of_django_reports_nothing(behind_tls: str) -> None:
    result = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=CHECKOUT,
        env={
            **os.environ,
            "MEMSTATE_BEHIND_TLS": behind_tls,
            "MEMSTATE_SECRET_KEY": "k3y-" + "0123456789abcdefghij" * 3,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr


def test_behind_tls_cookies_ask_for_it() -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS")
    program = f"from memstate_site import settings; print([bool(getattr(settings, name)) for name in {names}])"
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, "MEMSTATE_BEHIND_TLS": "yes"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.strip() == "[True, True, True, True]"
