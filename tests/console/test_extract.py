"""Extract: a look that stores nothing, storing, progress with and without script, and the facts that came of it."""

import html
import re
import uuid
from typing import Any

import pytest
from django.test import Client

from memory.jobs import tasks
from memory.models import ExtractionJob, Topic
from tests.cast import Caller, store_rows
from tests.console.people import codes_of
from tests.extraction.texts import PLAIN, PLAIN_FACTS, long_text


def text_of(reply: Any) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", reply.content.decode())))


def sent(client: Client, content: str = PLAIN, to: str = "/extract/store/", **members: str) -> Any:
    return client.post(to, {"content": content, "scope": "", "kind": "", **members})


def test_the_empty_page_says_what_to_do_and_whether_a_model_is_asked(op: Client) -> None:
    got = text_of(op.get("/extract/"))
    assert "No extractions yet" in got
    assert "Extract and store" in got


def test_a_reader_may_look_and_looking_stores_nothing(looker: Client) -> None:
    before = {table: count for table, count in store_rows().items() if "session" not in table}
    reply = sent(looker, to="/extract/")
    got = text_of(reply)
    assert reply.status_code == 200
    assert all(fact in got for fact in PLAIN_FACTS)
    assert "3 facts: 3 new, 0 known" in got
    assert "1 question" in got
    assert "Store 3 new facts" not in got
    assert {table: count for table, count in store_rows().items() if "session" not in table} == before
    assert sent(looker).status_code == 403


def test_storing_leads_to_the_facts(op: Client) -> None:
    reply = sent(op, scope="/user/anna", kind="note")
    job = ExtractionJob.objects.get()
    assert reply.headers["Location"] == f"/extract/{job.pk}/"
    got = text_of(op.get(f"/extract/{job.pk}/"))
    assert "3 facts stored" in got
    assert "Anna Berg lives in Oslo and works at Telenor" in got
    assert "/user/anna" in got
    assert set(Topic.objects.filter(kind="note").values_list("scope__path", flat=True)) == {"/user/anna"}
    assert "1 text" in text_of(op.get("/extract/count/"))


def test_what_is_known_is_marked_and_named(op: Client) -> None:
    sent(op)
    looked = text_of(sent(op, f"{PLAIN}\nAnna Berg plays chess.", to="/extract/"))
    assert "4 facts: 1 new, 3 known" in looked
    assert "Store 1 new fact" in looked
    sent(op, f"{PLAIN}\nAnna Berg plays chess.")
    job = ExtractionJob.objects.order_by("-created_at").first()
    assert job is not None
    got = text_of(op.get(f"/extract/{job.pk}/?show=known"))
    assert "3 more were known already" in got
    assert "Anna Berg lives in Oslo and works at Telenor." in got


def test_a_long_text_is_the_workers_and_shows_how_far_it_is(op: Client) -> None:
    sent(op, long_text(15_000))
    job = ExtractionJob.objects.get()
    page = f"/extract/{job.pk}/"
    got = op.get(page).content.decode()
    assert f'<progress max="{job.segments}" value="0"' in got
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in got
    part = op.get(f"{page}progress/", headers={"HX-Request": "true"})
    assert "HX-Refresh" not in part.headers
    tasks.extraction_continue(str(job.pk))
    assert op.get(f"{page}progress/", headers={"HX-Request": "true"}).headers["HX-Refresh"] == "true"
    assert op.get(f"{page}progress/").headers["Location"] == page
    done = op.get(page)
    assert "noscript" not in done.content.decode()
    assert "Next page" in text_of(done)
    assert op.get(f"{page}?cursor=50").status_code == 200


def test_a_text_can_be_stopped_and_what_is_stored_stays(op: Client, looker: Client) -> None:
    sent(op, long_text(15_000))
    page = f"/extract/{ExtractionJob.objects.get().pk}/"
    assert looker.post(f"{page}cancel/").status_code == 403
    got = text_of(op.post(f"{page}cancel/", follow=True))
    assert "Stopped." in got
    assert op.post(f"{page}cancel/").status_code == 409


def test_a_fact_that_was_erased_since_says_so(op: Client, operator: Caller) -> None:
    sent(op)
    sent(op)
    second, first = ExtractionJob.objects.order_by("-created_at")
    operator.delete(f"/v1/topics/{first.stored[0]}").ok()
    assert "2 facts stored" in text_of(op.get(f"/extract/{first.pk}/"))
    assert "Erased." in text_of(op.get(f"/extract/{second.pk}/"))
    # The text that the fact was read from went with it.
    assert operator.get(f"/v1/topics/{first.source_id}").status == 404
    assert f"/topics/{second.source_id}/" not in op.get(f"/extract/{second.pk}/").content.decode()


@pytest.mark.parametrize(
    ("content", "code"), [("", "required"), ("x" * 50_001, "too-large"), ("  \n ", "missing-member")]
)
def test_what_cannot_be_read_comes_back_with_the_reason(op: Client, content: str, code: str) -> None:
    for to in ("/extract/", "/extract/store/"):
        reply = sent(op, content, to=to)
        assert (reply.status_code, codes_of(reply)) == (422, [code])


def test_line_breaks_of_browsers_are_one_sign(op: Client) -> None:
    sent(op, "Anna lives in Oslo.\r\nBob lives in Rome.")
    sent(op, "Anna lives in Oslo.\nBob lives in Rome.")
    first, second = ExtractionJob.objects.order_by("created_at")
    assert first.source_id == second.source_id
    assert second.stored == []


def test_an_unknown_extraction_is_not_here(op: Client) -> None:
    assert op.get(f"/extract/{uuid.uuid4()}/").status_code == 404
