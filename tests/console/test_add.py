"""Add: a memory is typed and stored as if an agent had written it; a text and a file begin here."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memory.console.pages.add import SAMPLE
from memory.jobs import tasks
from memory.models import AuditEvent, ImportJob, Revision, Topic
from memory.models.labels import labels_read
from tests.cast import Caller
from tests.console.people import body_of, codes_of


@pytest.fixture(autouse=True)
def _folder(settings: Any, tmp_path: Path) -> None:
    settings.MEMSTATE_DATA_DIR = tmp_path


def sent(client: Client, **members: str) -> Any:
    return client.post("/add/", {"title": "", "summary": "", "scope": "", "kind": "", "values": "", **members})


def test_a_typed_memory_is_stored_found_and_journaled(op: Client, agent: Caller) -> None:
    reply = sent(
        op,
        title="Elsa plays football",
        summary="On Tuesdays.\r\nIn Bonn.",
        scope="/user/mara",
        kind="note",
        values="city: Bonn\r\n\r\nteam: the Reds: second",
    )
    topic = Topic.objects.get()
    assert (reply.status_code, reply.headers["Location"]) == (302, f"/topics/{topic.pk}/")
    assert (topic.title, topic.summary) == ("Elsa plays football", "On Tuesdays.\nIn Bonn.")
    assert (topic.scope.path, topic.kind) == ("/user/mara", "note")
    values = dict(Revision.objects.values_list("field__name", "value"))
    assert values == {"city": "Bonn", "team": "the Reds: second"}
    assert AuditEvent.objects.get(topic_id=topic.pk, action="ingest_new_topic").actor == "user:operator"
    assert agent.found("football", scope="/user/mara") == [str(topic.pk)]
    assert "Added “Elsa plays football”." in body_of(op.get(reply.headers["Location"]))


def test_a_memory_without_a_scope_is_stored_at_the_root(op: Client) -> None:
    assert sent(op, title="A fact").status_code == 302
    assert Topic.objects.get().scope.path == "/"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"title": " "}, "required"),
        ({"title": "x", "scope": "/a b"}, "invalid-scope"),
        ({"title": "x", "values": "no colon"}, "invalid-member"),
        ({"title": "x", "values": ": no name"}, "invalid-member"),
        ({"title": "x", "values": "n" * 5000 + ": long"}, "invalid-member"),
    ],
)
def test_what_cannot_be_stored_is_refused_in_the_form_and_stores_nothing(
    op: Client, members: dict[str, str], code: str
) -> None:
    reply = sent(op, summary="kept as typed", **members)
    assert (reply.status_code, codes_of(reply)) == (422, [code])
    assert "kept as typed" in body_of(reply)
    assert not Topic.objects.exists()


def test_a_link_fills_in_scope_and_kind_in_all_three_ways(op: Client) -> None:
    page = body_of(op.get("/add/", {"scope": "/user/mara", "kind": "note"}))
    assert page.count('name="scope" value="/user/mara"') == 3
    assert page.count('name="kind" value="note"') == 2


def test_a_reader_cannot_add(looker: Client) -> None:
    assert looker.get("/add/").status_code == 403
    assert sent(looker, title="A fact").status_code == 403
    assert 'href="/add/"' not in body_of(looker.get("/lookup/"))
    assert not Topic.objects.exists()


def test_the_sample_of_a_file_is_accepted_and_goes_where_the_page_says(op: Client) -> None:
    assert "/user/mara" in body_of(op.get("/add/"))
    plain = json.dumps({"text": "Mara has a cat"})
    file = SimpleUploadedFile("facts.jsonl", f"{SAMPLE}\n{plain}\n".encode())
    reply = op.post("/transfer/upload/", {"source": "", "scope": "/brought", "file": file})
    assert reply.status_code == 302
    assert not Topic.objects.exists()
    job = ImportJob.objects.get()
    page = body_of(op.get(reply.headers["Location"]))
    assert "Import 2 memories" in page
    assert "/brought" in page
    op.post(f"/transfer/{job.pk}/bring/")
    tasks.import_continue(str(job.pk))
    labels = labels_read(Topic.objects.values_list("pk", flat=True))
    stored = {(labels[topic.pk], topic.scope.path) for topic in Topic.objects.select_related("scope")}
    assert stored == {("Elsa plays football on Tuesdays", "/brought/user/mara"), ("Mara has a cat", "/brought")}
