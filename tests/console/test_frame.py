"""What all pages have in common: refusals that look like pages, ways back, and answers that are shown apart."""

from django.test import Client
from django.utils import timezone

from memory.forgetting.runs import run_start
from memory.models import ForgetRun
from memory.stores.models import StoreRole
from tests.cast import Caller, principal_like
from tests.console.people import account_make, client_of, codes_of
from tests.forgetting.shop import topics_make


def test_an_address_that_takes_forms_only_says_so_on_a_page(op: Client) -> None:
    reply = op.get("/undo/00000000-0000-0000-0000-000000000007/")

    assert reply.status_code == 405
    assert reply.headers["Allow"] == "POST"
    assert codes_of(reply) == ["method-not-possible"]


def test_an_address_that_does_not_exist_has_a_page_of_ours(looker: Client, anonymous: Client) -> None:
    for someone in (looker, anonymous):
        reply = someone.get("/nothing/here/")
        assert reply.status_code == 404
        assert "There is no page at this address." in reply.content.decode()


def test_a_form_without_its_token_gets_a_page_that_says_what_to_do(db: None) -> None:
    strict = client_of(account_make("operator"), enforce_csrf_checks=True)

    reply = strict.post("/account/", {})

    assert reply.status_code == 403
    assert "Go back, reload the page, and submit it again." in reply.content.decode()


def test_an_account_without_access_can_sign_out_again(visitor: Client) -> None:
    page = visitor.get("/")
    assert page.status_code == 403
    assert 'action="/sign-out/"' in page.content.decode()

    visitor.post("/sign-out/")
    assert "Sign in" in visitor.get("/", follow=True).content.decode()


def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(anonymous: Client) -> None:
    own = anonymous.post("/policies/edit/", {}, headers={"Referer": "http://testserver/policies/edit/?scope=/home"})
    foreign = anonymous.post("/policies/edit/", {}, headers={"Referer": "http://elsewhere.example/policies/edit/"})

    assert own.headers["Location"] == "/sign-in/?next=%2Fpolicies%2Fedit%2F%3Fscope%3D%2Fhome"
    assert foreign.headers["Location"] == "/sign-in/?next=%2F"


def test_answers_of_the_console_are_marked_for_partial_updates(op: Client) -> None:
    refused = op.get("/topics/00000000-0000-0000-0000-000000000007/", headers={"HX-Request": "true"})

    assert refused.status_code == 404
    assert refused.headers["X-Console"] == "1"
    assert refused.headers["HX-Retarget"] == "#notices"


def test_the_undo_of_changes_by_hand_takes_back_no_run_of_forgetting(op: Client, operator: Caller) -> None:
    topics_make(operator, 3, days=100, salience=0.01)
    made = run_start("/", event="manual", dry_run=False, principal=principal_like("operator"), now=timezone.now())
    assert made.applied

    reply = op.post(f"/undo/{made.pk}/", {})

    assert reply.status_code == 409
    assert ForgetRun.objects.get(pk=made.pk).status == "done"


def test_someone_who_lost_the_role_sees_a_refusal_and_not_a_circle(db: None) -> None:
    client = client_of(account_make("reader"))
    StoreRole.objects.all().delete()

    assert client.get("/").status_code == 403
