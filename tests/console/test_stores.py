"""Stores in the console: who sees which, what the page Stores does, and that people of one store see no other."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from memory.jobs import tasks
from memory.jobs.stores import store_create
from memory.models import AuditEvent
from memory.stores.current import MAIN, store_use
from memory.stores.models import Store, StoreRole
from memory.stores.versions import version_current
from tests.cast import Caller
from tests.console.people import account_make, body_of, client_of, codes_of, statements_of, token_of

pytestmark = pytest.mark.django_db
PAGE = "/settings/stores/"
PEOPLE = "/settings/people/"
CHOOSER = 'id="store-chosen"'


@pytest.fixture
def other() -> str:
    return store_create("other").name


def role_give(user: User, store: str, role: str) -> None:
    StoreRole.objects.create(user=user, store_id=store, role=role)


def opened(client: Client, store: str) -> Any:
    return client.post("/stores/open/", {"store": store})


def journal(store: str = MAIN) -> list[tuple[str, str, str]]:
    with store_use(store):
        return list(AuditEvent.objects.order_by("id").values_list("actor", "action", "reason"))


# --- One store, several stores ---


def test_who_has_one_store_sees_no_other(administrator: Client, looker: Client) -> None:
    for client in (administrator, looker):
        assert CHOOSER not in body_of(client.get("/"))
    store_create("other")
    assert CHOOSER in body_of(administrator.get("/"))
    assert CHOOSER not in body_of(looker.get("/"))
    assert f'href="{PAGE}"' in body_of(administrator.get("/account/"))
    assert f'href="{PAGE}"' not in body_of(looker.get("/account/"))
    for name in ("other", "no_such_store", "", "Not a name"):
        reply = opened(looker, name)
        assert (reply.status_code, codes_of(reply)) == (404, ["not-found"])
    assert "Signed in as reader" in body_of(looker.get("/account/"))


def test_a_person_has_a_role_in_each_store(other: str, agent: Caller) -> None:
    topic = agent.remember("Only in main")
    mara = account_make("operator", name="mara")
    client = client_of(mara)
    role_give(mara, other, "reader")
    assert CHOOSER in body_of(client.get("/"))
    assert client.get(f"/topics/{topic}/").status_code == 200
    assert client.get("/pause/").status_code == 200
    assert opened(client, other).headers["Location"] == "/"
    assert "Signed in as reader" in body_of(client.get("/account/"))
    assert client.get(f"/topics/{topic}/").status_code == 404
    assert client.get("/pause/").status_code == 403
    # What they may not see any more, they leave.
    StoreRole.objects.filter(user=mara, store=other).delete()
    assert "Signed in as operator" in body_of(client.get("/account/"))


def test_a_form_of_the_store_before_is_refused(other: str) -> None:
    mara = account_make("operator", name="mara")
    role_give(mara, other, "operator")
    client = client_of(mara, enforce_csrf_checks=True)
    token = token_of(client)
    pause = {"csrfmiddlewaretoken": token, "scope": "/", "reason": "meant for main"}
    assert client.post("/stores/open/", {"csrfmiddlewaretoken": token, "store": other}).status_code == 302
    assert client.post("/pause/", pause).status_code == 403
    assert journal(other) == []
    # A part of a page that another window shows of main.
    part = client.get("/lookup/", headers={"HX-Request": "true", "X-Console-Store": MAIN})
    assert (part.headers["HX-Refresh"], part.content) == ("true", b"")


def test_a_store_that_is_behind_says_so_and_another_can_be_opened(other: str, administrator: Client) -> None:
    opened(administrator, other)
    Store.objects.filter(pk=other).update(version="")
    reply = administrator.get("/lookup/")
    assert (reply.status_code, codes_of(reply)) == (503, ["store-behind"])
    assert CHOOSER in body_of(reply)
    assert opened(administrator, MAIN).status_code == 302
    assert administrator.get("/lookup/").status_code == 200


def test_every_page_costs_as_many_statements_with_many_stores(administrator: Client) -> None:
    def costs() -> list[int]:
        return [statements_of(partial(administrator.get, at)) for at in ("/account/", PAGE, f"{PAGE}count/")]

    store_create("first")
    costs()
    before = costs()
    for number in range(3):
        store_create(f"customer_{number}")
    assert costs() == before


def test_an_administrator_opens_a_store_that_is_not_offered(administrator: Client) -> None:
    store_create("zzz")
    now = Store.objects.get(pk=MAIN).created_at
    Store.objects.bulk_create(Store(name=f"customer_{number}", created_at=now) for number in range(30))
    assert opened(administrator, "zzz").status_code == 302
    page = body_of(administrator.get("/account/"))
    assert "<option selected>zzz</option>" in page
    assert "<option>main</option>" in page
    Store.objects.filter(pk="zzz").delete()
    assert "<option selected>main</option>" in body_of(administrator.get("/account/"))


# --- The page Stores ---


def test_a_store_is_made_opened_and_dropped(administrator: Client, agent: Caller) -> None:
    topic = agent.remember("Only in main")
    reply = administrator.post(f"{PAGE}new/", {"name": "acme", "reason": "a new customer"})
    assert reply.headers["Location"] == PAGE
    opened(administrator, "acme")
    assert administrator.get(f"/topics/{topic}/").status_code == 404
    # Only main has the page.
    assert administrator.get(PAGE).status_code == 404
    opened(administrator, MAIN)
    page = body_of(administrator.get(PAGE))
    assert version_current() in page.partition('break">acme<')[2].partition("</tr>")[0]
    drop = f"{PAGE}acme/drop/"
    for said, codes in (
        ({"typed": "main", "reason": "left"}, ["invalid-member"]),
        ({"typed": "acme", "reason": ""}, ["required"]),
    ):
        reply = administrator.post(drop, said)
        assert (reply.status_code, codes_of(reply)) == (422, codes)
        assert Store.objects.filter(pk="acme").exists()
    assert administrator.post(drop, {"typed": "acme", "reason": "the customer left"}).headers["Location"] == PAGE
    assert not Store.objects.filter(pk="acme").exists()
    page = body_of(administrator.get(PAGE))
    assert "the customer left" in page.partition('id="dropped-title"')[2]
    assert journal()[-2:] == [
        ("user:administrator", "store_created", "a new customer"),
        ("user:administrator", "store_dropped", "the customer left"),
    ]
    assert administrator.get(drop).status_code == 404


@pytest.mark.parametrize(
    ("name", "code"),
    [("", "required"), ("Acme", "invalid-member"), ("main", "already-exists"), ("a-b", "invalid-member")],
)
def test_a_store_that_is_refused_is_not_made(administrator: Client, name: str, code: str) -> None:
    reply = administrator.post(f"{PAGE}new/", {"name": name, "reason": "a new customer"})
    assert (reply.status_code, codes_of(reply)) == (422, [code])
    assert Store.objects.count() == 1
    assert administrator.get(f"{PAGE}main/drop/").status_code == 409


def test_the_list_shows_topics_and_is_filtered(administrator: Client, other: str, agent: Caller) -> None:
    agent.remember("Only in main")
    tasks.upkeep()
    page = body_of(administrator.get(PAGE))
    row = page.partition('break">main<')[2].partition("</tr>")[0]
    assert 'data-is="Live memories">1<' in row
    assert 'break">main<' not in body_of(administrator.get(f"{PAGE}?name=oth"))
    assert "2 stores" in body_of(administrator.get(f"{PAGE}count/"))


# --- People of a store ---


def test_an_administrator_of_a_store_is_none_of_the_installation(other: str, administrator: Client) -> None:
    zoran = account_make("reader", name="zoran")
    client = client_of(account_make("administrator", name="thekla", store=other))
    for address in (PAGE, f"{PAGE}count/", f"{PAGE}new/", f"{PAGE}main/drop/", f"{PEOPLE}{zoran.pk}/"):
        assert client.get(address).status_code == 404, address
    assert client.post(f"{PAGE}new/", {"name": "acme", "reason": "x"}).status_code == 404
    assert client.post(f"{PAGE}other/drop/", {"typed": "other", "reason": "x"}).status_code == 404
    assert client.get("/admin/", follow=True).status_code == 403
    assert f'href="{PAGE}"' not in body_of(client.get("/account/"))
    assert Store.objects.count() == 2
    for address in (PEOPLE, "/suggest/actor/?field=actor&actor=zor", f"{PEOPLE}count/"):
        assert "zoran" not in body_of(client.get(address))
    assert "2 accounts" in body_of(client.get(f"{PEOPLE}count/"))
    assert "thekla" not in body_of(administrator.get(PEOPLE))
    assert "thekla" not in body_of(administrator.get("/suggest/actor/?field=actor&actor=the"))
    root = User.objects.get(username="administrator")
    for act in ("role", "link", "state", "remove"):
        reply = client.post(f"{PEOPLE}{root.pk}/", {"act": act, "role": "reader", "reason": "x"})
        assert reply.status_code in (403, 409), act
    assert journal(other) == []


def test_people_are_invited_to_the_open_store(other: str, administrator: Client) -> None:
    client = client_of(account_make("administrator", name="thekla", store=other))
    invitation = {"name": "mara", "role": "operator", "reason": "joins"}
    assert client.post(f"{PEOPLE}invite/", invitation).status_code == 200
    mara = User.objects.get(username="mara")
    assert list(StoreRole.objects.filter(user=mara).values_list("store", "role")) == [(other, "operator")]
    client.post(f"{PEOPLE}{mara.pk}/", {"act": "role", "role": "administrator", "reason": "grows"})
    mara.refresh_from_db()
    assert not mara.is_superuser
    assert [action for _who, action, _why in journal()] == ["store_created"]
    assert [action for _who, action, _why in journal(other)] == ["person_invited", "person_role_changed"]
    # A name that another store has is taken for them, and not for administrators of the installation.
    account_make("reader", name="zoran")
    reply = client.post(f"{PEOPLE}invite/", {**invitation, "name": "zoran"})
    assert (reply.status_code, codes_of(reply)) == (422, ["already-exists"])
    opened(administrator, other)
    assert administrator.post(f"{PEOPLE}invite/", {**invitation, "name": "zoran"}).status_code == 302
    assert administrator.post(f"{PEOPLE}invite/", {**invitation, "name": "zoran"}).status_code == 422


def test_the_account_of_a_person_of_two_stores_belongs_to_the_installation(other: str) -> None:
    client = client_of(account_make("administrator", name="thekla", store=other))
    both = account_make("reader", name="both")
    role_give(both, other, "reader")
    page = f"{PEOPLE}{both.pk}/"
    for act in ("link", "state"):
        reply = client.post(page, {"act": act, "reason": "x"})
        assert (reply.status_code, codes_of(reply)) == (403, ["not-allowed"])
    assert User.objects.get(pk=both.pk).is_active
    assert client.post(page, {"act": "remove", "reason": "left this customer"}).headers["Location"] == PEOPLE
    assert client.get(page).status_code == 404
    assert list(StoreRole.objects.filter(user=both).values_list("store", flat=True)) == [MAIN]
    assert journal(other) == [("user:thekla", "person_removed", "left this customer")]


def test_roles_are_given_at_the_terminal(other: str) -> None:
    mara = account_make("reader", name="mara")
    call_command("store", "grant", other, "mara", "operator", "--reason", "helps out")
    assert dict(StoreRole.objects.filter(user=mara).values_list("store", "role")) == {MAIN: "reader", other: "operator"}
    with pytest.raises(CommandError, match="conflict"):
        call_command("store", "grant", other, "mara", "operator")
    call_command("store", "revoke", other, "mara")
    for wrong, code in (
        (("grant", other, "nobody", "reader"), "not-found"),
        (("grant", "nowhere", "mara", "reader"), "not-found"),
        (("revoke", other, "mara"), "not-found"),
    ):
        with pytest.raises(CommandError, match=code):
            call_command("store", *wrong)
    assert dict(StoreRole.objects.filter(user=mara).values_list("store", "role")) == {MAIN: "reader"}
    assert journal(other) == [("terminal", "person_role_changed", "helps out"), ("terminal", "person_removed", "")]
    # In main, an administrator is one of the installation, and the last one stays.
    call_command("store", "grant", MAIN, "mara", "administrator")
    with pytest.raises(CommandError, match="not-allowed"):
        call_command("store", "revoke", MAIN, "mara")
    assert User.objects.get(pk=mara.pk).is_superuser
