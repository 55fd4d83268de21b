"""People: invited with a link that works once, changed by administrators only, and never without one."""

import datetime as dt
import re
import threading
import time
from typing import Any

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.core import mail
from django.db import connections, transaction
from django.test import Client
from django.utils import timezone

from memory.access.accounts import account_role
from memory.models import AuditEvent
from memory.models.locks import Lock, lock_wait
from tests.console.people import account_make, body_of, client_of, codes_of
from tests.waiting import waiting

pytestmark = pytest.mark.django_db
PAGE = "/settings/people/"
PASSWORD = "quite another 7 words"
CHOSEN = {"new_password1": PASSWORD, "new_password2": PASSWORD}


@pytest.fixture(autouse=True)
def _quick_hashes(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def link_in(reply: Any) -> str:
    """Return the path of the link that a page shows."""
    found = re.search(r'id="link"[^>]*>http://testserver([^<]+)<', body_of(reply))
    assert found, body_of(reply)
    return found[1]


def invite(client: Client, name: str = "mara", role: str = "operator", **more: str) -> Any:
    return client.post(f"{PAGE}invite/", {"name": name, "role": role, "reason": "joins the team", **more})


def change(client: Client, user: User, act: str, **said: str) -> Any:
    return client.post(f"{PAGE}{user.pk}/", {"act": act, "reason": "as agreed", **said})


def journal() -> list[tuple[str, str, str]]:
    """Return what the journal has about people: who, what, why."""
    return list(AuditEvent.objects.order_by("id").values_list("actor", "action", "reason"))


# --- Invitations and links ---


def test_an_invited_person_chooses_a_password_once_and_signs_in(administrator: Client) -> None:
    made = invite(administrator)
    assert "no-store" in made.headers["Cache-Control"]
    link = link_in(made)
    mara = User.objects.get(username="mara")
    assert (account_role(mara), mara.has_usable_password()) == ("operator", False)
    for address in (PAGE, f"{PAGE}{mara.pk}/", "/audit/"):
        assert link.split("/")[-2] not in body_of(administrator.get(address))

    browser = Client()
    form = browser.get(link, follow=True)
    assert (form.status_code, "Choose a password" in body_of(form)) == (200, True)
    page = form.redirect_chain[-1][0]
    short = browser.post(page, {"new_password1": "short", "new_password2": "short"})
    assert (short.status_code, codes_of(short)) == (422, ["password_too_short"])
    signed = browser.post(page, CHOSEN, follow=True)
    assert "Sign in as mara." in body_of(signed)
    browser.post("/sign-in/", {"username": "mara", "password": PASSWORD})
    assert browser.get("/audit/").status_code == 200

    for used in (Client().get(link), browser.get(page), browser.post(page, CHOSEN)):
        assert (used.status_code, codes_of(used)) == (410, ["expired"])
    assert journal() == [("user:administrator", "person_invited", "joins the team"), ("user:mara", "password_set", "")]
    shown = body_of(administrator.get("/audit/"))
    assert "Person invited" in shown
    assert re.search(r'data-is="About">\s*mara\s*<', shown)
    assert "Password set" in shown


def test_two_who_open_one_link_do_not_both_set_a_password(administrator: Client) -> None:
    link = link_in(invite(administrator))
    first, second = Client(), Client()
    pages = [client.get(link, follow=True).redirect_chain[-1][0] for client in (first, second)]
    assert first.post(pages[0], CHOSEN).status_code == 302
    late = second.post(pages[1], {"new_password1": "the words of others", "new_password2": "the words of others"})
    assert late.status_code == 410
    assert User.objects.get(username="mara").check_password(PASSWORD)


def test_a_link_expires(administrator: Client, settings: Any) -> None:
    link = link_in(invite(administrator))
    settings.PASSWORD_RESET_TIMEOUT = -1
    reply = Client().get(link)
    assert (reply.status_code, codes_of(reply)) == (410, ["expired"])
    for wrong in ("/sign-in/x/y/", "/sign-in/Nw/set-password/", f"/sign-in/{'OTk5' * 9}/a-b/"):
        assert Client().get(wrong).status_code == 410


def test_a_new_link_ends_the_password_the_sessions_and_the_link_before(administrator: Client) -> None:
    mara = account_make("operator", name="mara", password=PASSWORD)
    session = client_of(mara)
    first = link_in(change(administrator, mara, "link"))
    second = link_in(change(administrator, mara, "link"))
    assert session.get("/audit/").status_code == 302
    mara.refresh_from_db()
    assert not mara.has_usable_password()
    assert Client().get(first).status_code == 410
    assert Client().get(second).status_code == 302
    assert [action for _who, action, _why in journal()] == ["sign_in_link_made"] * 2


def test_a_new_password_ends_the_lock_of_the_name(administrator: Client, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 1
    mara = account_make("operator", name="mara", password=PASSWORD)
    browser = Client()
    browser.post("/sign-in/", {"username": "mara", "password": "forgotten"})
    assert browser.post("/sign-in/", {"username": "mara", "password": PASSWORD}).status_code == 429
    page = browser.get(link_in(change(administrator, mara, "link")), follow=True).redirect_chain[-1][0]
    browser.post(page, CHOSEN)
    assert browser.post("/sign-in/", {"username": "mara", "password": PASSWORD}).status_code == 302


def test_a_link_is_mailed_where_a_mail_server_is_set_up(administrator: Client, settings: Any) -> None:
    assert "Mail address" not in body_of(administrator.get(f"{PAGE}invite/"))
    settings.EMAIL_HOST = "mail.example.org"
    made = invite(administrator, mail="mara@example.org")
    (sent,) = mail.outbox
    assert sent.to == ["mara@example.org"]
    assert link_in(made) in str(sent.body)
    assert "also sent to mara@example.org" in body_of(made)
    wrong = invite(administrator, name="ida", mail="not an address")
    assert (wrong.status_code, codes_of(wrong)) == (422, ["invalid"])


def test_a_mail_server_that_refuses_does_not_take_the_link_away(administrator: Client, settings: Any) -> None:
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", 1, 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    made = invite(administrator, mail="mara@example.org")
    assert "was not sent to mara@example.org" in body_of(made)
    assert Client().get(link_in(made)).status_code == 302


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"name": ""}, "required"),
        ({"name": "Administrator"}, "already-exists"),
        ({"name": "mara anders"}, "invalid-member"),
        ({"name": "key:agent"}, "invalid-member"),
        ({"name": "System"}, "invalid-member"),
        ({"role": "queen"}, "invalid_choice"),
        ({"reason": ""}, "required"),
    ],
)
def test_an_invitation_that_is_refused_changes_nothing(administrator: Client, said: dict[str, str], code: str) -> None:
    reply = invite(administrator, **{"name": "mara", **said})
    assert (reply.status_code, codes_of(reply)) == (422, [code])
    assert User.objects.count() == 1
    assert not AuditEvent.objects.exists()


# --- Roles, disabling, enabling ---


def test_a_role_is_changed_with_a_reason_and_counts_at_the_next_request(administrator: Client) -> None:
    mara = account_make("reader", name="mara")
    session = client_of(mara)
    for role in ("administrator", "operator", "reader"):
        change(administrator, mara, "role", role=role)
        assert f"Signed in as {role}" in body_of(session.get("/account/"))
    event = AuditEvent.objects.latest("id")
    assert (event.before, event.after) == ({"role": "operator"}, {"name": "mara", "role": "reader"})
    assert journal() == [("user:administrator", "person_role_changed", "as agreed")] * 3


def test_disabling_ends_the_sessions_for_good_and_enabling_gives_a_new_link(administrator: Client) -> None:
    mara = account_make("operator", name="mara", password=PASSWORD)
    session = client_of(mara)
    link = link_in(change(administrator, mara, "link"))
    mara = User.objects.get(pk=mara.pk)
    again = client_of(mara)
    change(administrator, mara, "state")
    assert again.get("/audit/").status_code == 302
    assert "disabled" in body_of(administrator.get(PAGE))
    refused = change(administrator, mara, "link")
    assert (refused.status_code, codes_of(refused)) == (409, ["conflict"])

    new = link_in(change(administrator, mara, "state"))
    for gone in (session, again):
        assert gone.get("/audit/").status_code == 302
    assert Client().get(link).status_code == 410
    assert Client().get(new).status_code == 302
    assert account_role(User.objects.get(pk=mara.pk)) == "operator"
    assert [action for _who, action, _why in journal()] == ["sign_in_link_made", "person_disabled", "person_enabled"]


def test_no_one_changes_their_own_account_and_the_last_administrator_stays(administrator: Client) -> None:
    root = User.objects.get(username="administrator")
    for act, role in (("role", "reader"), ("state", "")):
        reply = change(administrator, root, act, role=role)
        assert (reply.status_code, codes_of(reply)) == (409, ["not-allowed"])
    account_make("administrator", name="other")
    for act, role in (("role", "reader"), ("state", ""), ("link", "")):
        reply = change(administrator, root, act, role=role)
        assert (reply.status_code, codes_of(reply)) == (403, ["not-allowed"])
    assert account_role(User.objects.get(pk=root.pk)) == "administrator"
    assert not AuditEvent.objects.exists()
    page = body_of(administrator.get(f"{PAGE}{root.pk}/"))
    assert 'name="act"' not in page


@pytest.mark.parametrize(
    ("act", "said", "status", "code"),
    [
        ("role", {"role": "queen"}, 422, "invalid_choice"),
        ("role", {"role": "reader"}, 409, "conflict"),
        ("role", {"role": "operator", "reason": ""}, 422, "required"),
        ("state", {"reason": ""}, 422, "required"),
        ("link", {"reason": ""}, 422, "required"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    administrator: Client, act: str, said: dict[str, str], status: int, code: str
) -> None:
    mara = account_make("reader", name="mara", password=PASSWORD)
    before = User.objects.filter(pk=mara.pk).values().get()
    reply = change(administrator, mara, act, **said)
    assert (reply.status_code, codes_of(reply)) == (status, [code])
    assert User.objects.filter(pk=mara.pk).values().get() == before
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["role", "state"])
def test_of_two_administrators_who_take_the_role_from_each_other_one_remains(act: str) -> None:
    people = [account_make("administrator", name=name) for name in ("one", "two")]
    clients = [client_of(user) for user in people]
    codes: list[list[str]] = []

    def take(client: Client, other: User) -> None:
        try:
            codes.append(codes_of(change(client, other, act, role="reader")))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=take, args=each) for each in zip(clients, reversed(people), strict=True)]
    # Both have passed the check of the page when they begin.
    with transaction.atomic():
        lock_wait(Lock.PEOPLE)
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20
        while waiting() < len(threads) and time.monotonic() < until:
            time.sleep(0.02)
    for thread in threads:
        thread.join(30)
    assert sorted(codes) == [[], ["role-too-low"]]
    assert len([user for user in User.objects.all() if account_role(user) == "administrator"]) == 1
    assert AuditEvent.objects.count() == 1


# --- The list ---


def test_the_list_shows_role_state_and_what_they_did_lately(administrator: Client) -> None:
    mara = account_make("operator", name="mara", password=PASSWORD)
    account_make("visitor", name="passer-by")
    now = timezone.now()
    for days in (1, 2, 9):
        AuditEvent.objects.create(at=now - dt.timedelta(days=days), actor="user:mara", action="pinned", scope="/")
    page = body_of(administrator.get(PAGE))
    row = page.partition(f"{PAGE}{mara.pk}/")[2].partition("</tr>")[0]
    assert "operator" in row
    assert ">active<" in row
    link = re.search(r'href="(/audit/[^"]+)">2 changes', row)
    assert link
    assert body_of(administrator.get(link[1].replace("&amp;", "&"))).count('data-is="What"') == 2
    assert "no access" in page.partition("passer-by")[2].partition("</tr>")[0]
    assert "3 accounts" in body_of(administrator.get(f"{PAGE}count/"))


def test_pages_of_people_follow_each_other(administrator: Client) -> None:
    for place in range(70):
        account_make("reader", name=f"person {place:02}")
    seen: list[str] = []
    address = PAGE
    while address:
        page = body_of(administrator.get(address))
        seen += re.findall(r">(person \d+)</a>", page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = f"{PAGE}{following[1]}" if following else ""
    assert seen == [f"person {place:02}" for place in range(70)]


def test_the_admin_shows_accounts_and_changes_none(administrator: Client) -> None:
    root = User.objects.get(username="administrator")
    row = f"/admin/auth/user/{root.pk}/change/"
    page = body_of(administrator.get(row))
    assert "_save" not in page
    assert root.password not in page
    assert administrator.post(row, {"is_superuser": ""}).status_code == 403
    assert administrator.get("/admin/auth/user/add/").status_code == 403
    assert administrator.get("/admin/password_change/").headers["Location"] == "/account/"
    assert site.LOGIN_URL == "console:sign_in"
