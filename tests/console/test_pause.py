"""The page and the banner of a pause."""

import pytest
from django.test import Client
from django.utils import timezone

from memory.forgetting.pause import pauses_active
from memory.models import Scope
from tests.cast import Caller
from tests.console.test_runs import text_of

pytestmark = pytest.mark.django_db


def test_every_page_says_that_forgetting_is_paused_and_by_whom(op: Client, looker: Client) -> None:
    assert "Wrong half-life" not in text_of(looker, "/")
    Scope.objects.create(path="/shop")
    reply = op.post("/pause/", {"scope": "/shop", "hours": "24", "reason": "A wrong half-life"})
    assert reply.status_code == 302
    for address in ("/", "/runs/", "/lookup/", "/policies/", "/audit/"):
        text = text_of(looker, address)
        assert "in /shop until" in text
        assert "A wrong half-life" in text
    assert "Resume" not in text_of(looker, "/runs/")
    assert "Resume" in text_of(op, "/runs/")
    op.post("/pause/", {"lift": "/shop"})
    assert pauses_active(timezone.now()) == []
    assert "in /shop until" not in text_of(looker, "/")


@pytest.mark.parametrize("form", [{"scope": "/a b", "reason": "x"}, {"reason": "x", "hours": "999"}])
def test_what_makes_no_sense_is_refused_in_place(op: Client, form: dict[str, str]) -> None:
    assert op.post("/pause/", form).status_code == 422
    assert pauses_active(timezone.now()) == []


def test_a_second_pause_of_a_scope_is_refused_at_its_field(op: Client, operator: Caller) -> None:
    operator.remember("Tea", scope="/shop")
    operator.post("/v1/pause", {"scope": "/shop", "reason": "first"}).ok()
    reply = op.post("/pause/", {"scope": "/shop", "reason": "second"})
    assert reply.status_code == 422
    assert 'data-code="conflict"' in reply.content.decode()
    reply = op.post("/pause/", {"scope": "/shpo", "reason": "misspelt"})
    assert reply.status_code == 422
    assert 'data-code="not-found"' in reply.content.decode()


def test_one_click_pauses_the_whole_store_and_one_resumes_it_on_the_same_page(op: Client) -> None:
    done = op.post("/pause/", {"at_once": "1", "here": "/lookup/?q=tea"})
    assert done.headers["Location"] == "/lookup/?q=tea"
    assert [pause.scope for pause in pauses_active(timezone.now())] == ["/"]
    assert "paused in the whole store" in text_of(op, "/")
    done = op.post("/pause/", {"lift": "/", "here": "//elsewhere.example"})
    assert done.headers["Location"] == "/runs/"
    assert pauses_active(timezone.now()) == []


def test_readers_cannot_pause(looker: Client) -> None:
    assert looker.post("/pause/", {"reason": "x"}).status_code == 403
