"""The page of keys: who may call, made once, shown once, revoked for good; and Django's admin beside it."""

import datetime as dt
import re
import uuid

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from memory.access.keys import key_create, secret_generate, secret_hash
from memory.core.ids import uuid7_at
from memory.models import ApiKey, AuditEvent
from tests.console.people import account_make, body_of, client_of, codes_of, statements_of

pytestmark = pytest.mark.django_db


def form_of(client: Client) -> dict[str, str]:
    """Return what the form for a new key sends, filled in."""
    page = client.get("/keys/new/").content.decode()
    once = re.search(r'name="once" value="([^"]+)"', page)
    assert once
    return {"once": once[1], "name": "Mara's assistant", "role": "agent", "scope": "/user/mara", "reason": "first"}


def secret_in(page: str) -> str:
    found = re.search(r'id="secret"[^>]*>([^<]+)<', page)
    assert found
    return found[1]


def keys_make(count: int) -> None:
    for place in range(count):
        key_create(name=f"key {place}", role="agent", secret=secret_generate())


def test_a_new_key_opens_the_api_and_its_secret_is_shown_once(administrator: Client) -> None:
    made = administrator.post("/keys/new/", form_of(administrator))
    secret = secret_in(made.content.decode())

    assert made.status_code == 200
    assert "no-store" in made.headers["Cache-Control"]
    assert "shown only once" in made.content.decode()
    answer = Client().get("/v1/topics", headers={"X-API-Key": secret})
    assert answer.status_code == 200
    for address in ("/keys/", "/keys/?state=all", "/audit/", "/keys/new/"):
        assert secret not in administrator.get(address).content.decode()
    key = ApiKey.objects.get(secret_hash=secret_hash(secret))
    assert (key.name, key.role, key.scope) == ("Mara's assistant", "agent", "/user/mara")
    event = AuditEvent.objects.get(action="key_created", scope="/user/mara")
    assert (event.actor, event.reason) == ("user:administrator", "first")
    assert secret not in str(event.after)
    assert all(secret not in str(session.get_decoded()) for session in Session.objects.all())


def test_how_to_use_a_key_is_shown_with_the_key_once_and_with_a_placeholder_later(administrator: Client) -> None:
    made = body_of(administrator.post("/keys/new/", form_of(administrator)))
    secret = secret_in(made)
    assert made.count(f'"X-API-Key: {secret}"') == 2
    assert f'MemState("http://testserver", api_key="{secret}")' in made
    assert f'http://testserver/mcp --header "Authorization: Bearer {secret}"' in made
    assert "/v1/ingest" in made
    reader = body_of(administrator.post("/keys/new/", form_of(administrator) | {"role": "reader"}))
    assert "/v1/ingest" not in reader
    assert "/v1/query" in reader
    later = body_of(administrator.get("/keys/"))
    assert '"X-API-Key: $MEMSTATE_KEY"' in later
    assert 'api_key=os.environ["MEMSTATE_KEY"]' in later


def test_an_agent_may_forget_only_if_its_key_was_made_so(administrator: Client) -> None:
    secret = secret_in(administrator.post("/keys/new/", form_of(administrator) | {"may_forget": "on"}).content.decode())
    assert ApiKey.objects.get(secret_hash=secret_hash(secret)).may_forget
    assert "may forget" in administrator.get("/keys/").content.decode()
    without = secret_in(administrator.post("/keys/new/", form_of(administrator)).content.decode())
    assert not ApiKey.objects.get(secret_hash=secret_hash(without)).may_forget


def test_a_form_that_is_sent_twice_makes_one_key(administrator: Client) -> None:
    form = form_of(administrator)
    before = ApiKey.objects.count()
    administrator.post("/keys/new/", form)

    again = administrator.post("/keys/new/", form)

    assert again.status_code == 409
    assert codes_of(again) == ["already-exists"]
    assert 'id="secret"' not in again.content.decode()
    assert ApiKey.objects.count() == before + 1
    assert AuditEvent.objects.filter(action="key_created", scope="/user/mara").count() == 1


def test_what_makes_no_key_is_said_in_place_and_what_was_typed_is_kept(administrator: Client) -> None:
    form = form_of(administrator)
    before = ApiKey.objects.count()

    for wrong, code in (
        ({"name": ""}, "required"),
        ({"scope": "no scope"}, "invalid-scope"),
        ({"role": "queen"}, "invalid_choice"),
        ({"last_day": "2020-01-01"}, "invalid-period"),
        ({"last_day": "9999-12-31"}, "invalid-period"),
        ({"once": "7"}, "invalid"),
        ({"role": "operator", "may_forget": "on"}, "contradictory-request"),
    ):
        page = administrator.post("/keys/new/", form | wrong)
        assert page.status_code == 422, wrong
        assert code in codes_of(page), wrong
        assert "Mara&#x27;s assistant" in page.content.decode() or "name" in wrong
    assert ApiKey.objects.count() == before


def test_a_key_is_valid_until_the_end_of_its_last_day(administrator: Client) -> None:
    day = timezone.now().date() + dt.timedelta(days=3)
    administrator.post("/keys/new/", form_of(administrator) | {"last_day": day.isoformat()})

    key = ApiKey.objects.get(name="Mara's assistant")
    assert key.expires_at == dt.datetime.combine(day + dt.timedelta(days=1), dt.time(), tzinfo=dt.UTC)


def test_a_revoked_key_opens_nothing_any_more(administrator: Client) -> None:
    secret = secret_in(administrator.post("/keys/new/", form_of(administrator)).content.decode())
    key = ApiKey.objects.get(secret_hash=secret_hash(secret))

    asked = administrator.get(f"/keys/{key.pk}/revoke/").content.decode()
    assert "Mara&#x27;s assistant" in asked
    assert "Last used" in asked
    assert administrator.post(f"/keys/{key.pk}/revoke/", {"reason": ""}).status_code == 422
    assert Client().get("/v1/topics", headers={"X-API-Key": secret}).status_code == 200

    done = administrator.post(f"/keys/{key.pk}/revoke/", {"reason": "laptop lost"}, follow=True)

    assert "is revoked" in done.content.decode()
    assert Client().get("/v1/topics", headers={"X-API-Key": secret}).status_code == 401
    event = AuditEvent.objects.get(action="key_revoked")
    assert (event.actor, event.reason) == ("user:administrator", "laptop lost")
    assert administrator.post(f"/keys/{key.pk}/revoke/", {"reason": "again"}).status_code == 409
    assert AuditEvent.objects.filter(action="key_revoked").count() == 1


def test_of_two_keys_that_begin_alike_the_one_that_is_meant_is_revoked(administrator: Client) -> None:
    one, other = (key_create(name=name, role="agent", secret="ms_same_" + name * 30) for name in ("a", "b"))
    assert one.prefix == other.prefix

    administrator.post(f"/keys/{other.pk}/revoke/", {"reason": "that one"})

    assert ApiKey.objects.get(pk=one.pk).revoked_at is None
    assert ApiKey.objects.get(pk=other.pk).revoked_at is not None


def test_readers_and_operators_see_keys_and_change_none(looker: Client, op: Client) -> None:
    key = key_create(name="agent smith", role="agent", secret=secret_generate())
    before = ApiKey.objects.count()
    for client in (looker, op):
        page = client.get("/keys/").content.decode()
        assert "agent smith" in page
        assert "/keys/new/" not in page
        assert "Revoke" not in page
        new = {"once": str(uuid7_at(timezone.now())), "name": "mine", "role": "operator"}
        assert client.get("/keys/new/").status_code == 403
        assert client.post("/keys/new/", new).status_code == 403
        assert client.get(f"/keys/{key.pk}/revoke/").status_code == 403
        assert client.post(f"/keys/{key.pk}/revoke/", {"reason": "mine"}).status_code == 403
    assert ApiKey.objects.count() == before
    assert ApiKey.objects.get(pk=key.pk).revoked_at is None


def test_the_list_shows_valid_keys_unless_all_are_asked_for(looker: Client) -> None:
    now = timezone.now()
    key_create(name="in use", role="agent", secret=secret_generate())
    key_create(name="over", role="agent", secret=secret_generate(), expires_at=now - dt.timedelta(days=1))
    gone = key_create(name="gone", role="agent", secret=secret_generate())
    ApiKey.objects.filter(pk=gone.pk).update(revoked_at=now)

    valid, everything = (looker.get(f"/keys/{query}").content.decode() for query in ("", "?state=all"))

    assert "in use" in valid
    assert "gone" not in valid
    assert ">over<" not in valid
    assert all(name in everything for name in ("in use", "gone", "over"))
    counted = looker.get("/keys/count/?state=all").content.decode()
    assert f"{ApiKey.objects.count()} keys" in counted


def test_pages_of_keys_follow_each_other_without_a_gap_or_a_repeat(looker: Client) -> None:
    keys_make(120)
    seen: list[str] = []
    address = "/keys/"
    while address:
        page = looker.get(address).content.decode()
        seen += re.findall(r">(key \d+)</a>", page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = f"/keys/{following[1]}" if following else ""

    assert seen == [f"key {place}" for place in reversed(range(120))]


def test_the_page_costs_the_same_for_few_keys_and_many(looker: Client) -> None:
    keys_make(10)
    few = statements_of(lambda: looker.get("/keys/"))
    keys_make(190)
    for place in range(20):
        account_make("operator", name=f"op {place}")

    assert statements_of(lambda: looker.get("/keys/")) == few
    assert few <= 6


def test_a_name_is_shown_as_text(looker: Client) -> None:
    key_create(name="<script>alert(1)</script>", role="agent", secret=secret_generate())

    assert "<script>alert(1)" not in looker.get("/keys/").content.decode()


def test_a_key_that_is_not_there_is_said_to_be_so(administrator: Client) -> None:
    assert administrator.get(f"/keys/{uuid.UUID(int=7)}/revoke/").status_code == 404


def test_the_admin_is_entered_by_the_console_s_own_sign_in(administrator: Client, visitor: Client) -> None:
    for address in ("/admin/", "/admin/login/?next=/admin/memory/topic/", "/admin/memory/topic/"):
        reply = Client().get(address, follow=True)
        assert reply.redirect_chain[-1][0].startswith("/sign-in/?next=/admin/"), address
    assert administrator.get("/admin/").status_code == 200
    assert visitor.get("/admin/", follow=True).status_code == 403

    account_make("administrator", name="root", password="a long password indeed")
    client = client_of(None)
    signed = client.post(
        "/sign-in/", {"username": "root", "password": "a long password indeed", "next": "/admin/"}, follow=True
    )
    assert signed.redirect_chain[-1][0] == "/admin/"
    assert "Raw rows" in signed.content.decode()


def test_raw_rows_are_read_only(administrator: Client) -> None:
    key = key_create(name="agent smith", role="agent", secret=secret_generate())

    assert "agent smith" in administrator.get("/admin/memory/apikey/").content.decode()
    row = f"/admin/memory/apikey/{key.pk}/change/"
    assert "_save" not in administrator.get(row).content.decode()
    assert administrator.post(row, {"name": "other"}).status_code == 403
    assert administrator.get("/admin/memory/apikey/add/").status_code == 403
