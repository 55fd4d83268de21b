"""Export and import in the console: a file is streamed out, one is taken in, checked, and brought after a yes."""

import datetime as dt
import html
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.console import download as download_room
from memory.console.pages.transfer import SAMPLES
from memory.jobs import tasks
from memory.models import AuditEvent, ImportJob, Topic
from memory.transfer.uploads import uploads_folder, uploads_tidy
from memstate_site.folder import CHECKOUT
from tests.cast import Caller
from tests.console.people import account_make, client_of, codes_of, token_of

ID = "0b8e7c1a-5d2f-4c3b-9a10-000000000001"
MEMORY = {
    "id": ID,
    "memory": "Mara prefers tea to coffee",
    "hash": "5d41",
    "user_id": "mara",
    "created_at": "2025-03-01T09:00:00-08:00",
    "metadata": {"cups": 3},
    "categories": ["drinks"],
}


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    """The folder of uploads, of this test alone."""
    settings.MEMSTATE_DATA_DIR = tmp_path
    return uploads_folder()


def text_of(reply: Any) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", reply.content.decode())))


def sent(client: Client, said: object, **members: str) -> Any:
    """Upload a file, given as text, as bytes, or as what its JSON says."""
    content = said if isinstance(said, bytes) else (said if isinstance(said, str) else json.dumps(said)).encode()
    file = SimpleUploadedFile("memories.json", content)
    return client.post("/transfer/upload/", {"source": "", "scope": "", "file": file, **members})


def checked(client: Client, said: object, **members: str) -> tuple[str, str]:
    """Upload a file and have it checked; return the address of its page and what that says."""
    reply = sent(client, said, **members)
    assert reply.status_code == 302, text_of(reply)
    address = reply.headers["Location"]
    work()
    return address, text_of(client.get(address))


def work() -> None:
    """Do what the worker would do about imports."""
    for job in ImportJob.objects.filter(status__in=["checking", "working"]):
        tasks.import_continue(str(job.pk))


def test_the_empty_page_says_what_to_do_and_is_for_operators(op: Client, looker: Client) -> None:
    got = text_of(op.get("/transfer/"))
    assert "No imports yet" in got
    assert "At most 2.0" in got
    assert looker.get("/transfer/").status_code == 403
    assert "Export and import" in text_of(op.get("/keys/"))
    assert "Export and import" not in text_of(looker.get("/keys/"))


def test_an_export_is_streamed_and_brings_nothing_when_it_comes_back(op: Client, operator: Caller) -> None:
    operator.remember("Mara lives in Bonn", scope="/user/mara")
    operator.remember("Elsewhere", scope="/user/bob")
    assert "lines" in text_of(op.get("/transfer/size/"))
    reply = op.post("/transfer/memstate-export.jsonl", {"scope": "/user/mara"})
    assert reply.streaming
    assert re.fullmatch(
        r'attachment; filename="memstate-user-mara-\d{4}-\d\d-\d\d\.jsonl"', reply.headers["Content-Disposition"]
    )
    content = b"".join(reply.streaming_content)
    assert b"Mara lives in Bonn" in content
    assert b"Elsewhere" not in content
    event = AuditEvent.objects.get(action="exported")
    assert (event.scope, event.actor.split(":")[0], event.after["vectors"]) == ("/user/mara", "user", False)
    before = Topic.objects.count()
    address, got = checked(op, content)
    assert "Export of MemState" in got
    assert "There is nothing to import" in got
    assert "Import this file?" not in got
    assert Topic.objects.count() == before
    assert op.post(f"{address}cancel/").status_code == 302


def test_a_browser_that_pauses_holds_no_transaction_and_not_all_of_the_server(
    op: Client, operator: Caller, folder: Path
) -> None:
    operator.remember("Mara lives in Bonn")
    paused = [op.post("/transfer/memstate-export.jsonl") for _ in range(download_room.AT_ONCE)]
    # The whole file is on disk, without a name there; nothing is read from the database any more.
    assert not list(folder.iterdir())
    with CaptureQueriesContext(connection) as asked:
        sizes = {len(b"".join(reply.streaming_content)) for reply in paused[1:]}
    assert sizes == {int(paused[0].headers["Content-Length"])}
    assert not asked.captured_queries
    # The second was read to its end, the first was not.
    paused.append(op.post("/transfer/memstate-export.jsonl"))
    assert paused[-1].status_code == 200
    reply = op.post("/transfer/memstate-export.jsonl")
    assert (reply.status_code, codes_of(reply)) == (409, ["too-many-requests"])
    for each in paused:
        b"".join(each.streaming_content)
    assert b"Bonn" in b"".join(op.post("/transfer/memstate-export.jsonl").streaming_content)


def test_an_export_of_a_scope_that_cannot_be_read_is_none(op: Client) -> None:
    reply = op.post("/transfer/memstate-export.jsonl", {"scope": "a b"})
    assert reply.status_code == 422
    assert "must not" in text_of(reply)


def test_a_file_is_checked_brought_and_found(op: Client, operator: Caller, folder: Path) -> None:
    address, got = checked(op, {"results": [MEMORY, {**MEMORY, "id": ID[:-1] + "2"}]}, scope="/brought")
    assert "Memories of mem0" in got
    assert "2 of 2: hash: not kept, it is made anew from the text." in got
    assert "Nothing has been changed yet" in got
    assert not Topic.objects.exists()
    (file,) = folder.iterdir()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert "Import 2 memories" in got
    assert op.post(f"{address}bring/").headers["Location"] == address
    assert "<progress" in op.get(address).content.decode()
    part = op.get(f"{address}progress/?was=working", headers={"HX-Request": "true"})
    assert "HX-Refresh" not in part.headers
    work()
    part = op.get(f"{address}progress/?was=working", headers={"HX-Request": "true"})
    assert part.headers["HX-Refresh"] == "true"
    assert "2 memories imported" in text_of(op.get(address))
    topic = Topic.objects.get(pk=ID)
    assert (topic.scope.path, topic.created_at.year, topic.categories) == ("/brought/user/mara", 2025, ["drinks"])
    assert ID in operator.found("what does Mara drink?")
    assert "1 import" in text_of(op.get("/transfer/count/"))
    assert set(AuditEvent.objects.filter(action__startswith="import_").values_list("actor", flat=True)) == {
        AuditEvent.objects.get(action="import_done").actor
    }
    assert not list(folder.iterdir())
    assert "Undo import" in text_of(op.get(address))
    plan = op.post(f"{address}release/", follow=True)
    assert "It would release 2." in text_of(plan)
    assert f'href="{address}"' in plan.content.decode()
    assert ID in operator.found("what does Mara drink?")
    (run, _status) = plan.redirect_chain[0]
    assert "Released 2." in text_of(op.post(f"{run}apply/", {"reason": "wrong file"}, follow=True))
    assert ID not in operator.found("what does Mara drink?")
    again = op.post(f"{address}release/", follow=True)
    assert again.redirect_chain[0] == (address, 302)
    # The pages know that it was undone, and offer the undo of the undo.
    now = op.get(address)
    assert f"{address}release/" not in now.content.decode()
    assert "undone" in text_of(op.get("/transfer/"))
    op.post(f"/undo/{now.context['undo']['run_id']}/")
    assert ID in operator.found("what does Mara drink?")
    now = op.get(address)
    assert now.context["undo"] is None
    assert f"{address}release/" in now.content.decode()
    (run, _status) = op.post(f"{address}release/", follow=True).redirect_chain[0]
    op.post(f"{run}apply/")
    # And once more.
    address, got = checked(op, {"results": [MEMORY, {**MEMORY, "id": ID[:-1] + "2"}]}, scope="/brought")
    assert "The same file was imported" in got
    assert "There is nothing to import" in got


def test_the_samples_on_the_page_are_accepted(op: Client) -> None:
    shown = html.unescape(op.get("/transfer/").content.decode())
    for sample in (*SAMPLES.values(), '{"text": "Mara likes tea."}\n{"text": "Ida likes coffee."}\n'):
        assert sample in shown or "tea" in sample
        _address, got = checked(op, sample, scope="/sample")
        assert "Import 2 memories" in got
        assert "2 of 2 new memories go into /sample" in got


def test_a_conversation_of_an_assistant_is_detected_and_its_forecast_shown(op: Client) -> None:
    content = (CHECKOUT / "tests" / "transfer" / "exports" / "chatgpt.json").read_bytes()
    _address, got = checked(op, content, scope="/brought")
    assert "ChatGPT export" in got
    assert "6 of 6 new memories go into /brought." in got
    assert "within 30 days" in got


def test_a_large_file_is_checked_by_the_worker_with_its_progress(op: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.console.pages.transfer.CHECKED_HERE", 10)
    address = sent(op, [MEMORY]).headers["Location"]
    page = op.get(address).content.decode()
    assert "Checking" in page
    assert f'<progress max="{len(json.dumps([MEMORY]))}" value="0"' in page
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page
    assert op.post(f"{address}bring/").status_code == 409
    work()
    assert "Import 1 memory" in text_of(op.get(address))


def test_a_file_with_bad_entries_is_not_brought(op: Client) -> None:
    address, got = checked(op, [MEMORY, 5, "words"], scope="/brought")
    assert "This file cannot be imported" in got
    assert "Entry 2 (line 1): A memory is an object; this is a number." in got
    assert "Entry 3 (line 1): A memory is an object; this is a text." in got
    assert "Import 1" not in got
    assert op.post(f"{address}bring/").status_code in (400, 409, 422)
    work()
    assert not Topic.objects.exists()


@pytest.mark.parametrize("said", ['[{"role": "user", "content": "a"', '{"type": "memstate", "version": 99}\n'])
def test_a_damaged_file_says_so(op: Client, said: str) -> None:
    _address, got = checked(op, said)
    assert re.search("whole JSON|newer MemState", got)
    assert not Topic.objects.exists()


def test_a_file_can_be_read_as_something_else(op: Client) -> None:
    address, got = checked(op, [{"role": "user", "content": "Hello there"}], source="mem0")
    assert "Nothing was changed" in got
    reply = op.post(f"{address}check/", {"source": "chat", "scope": "/chats"})
    assert reply.status_code == 302
    work()
    got = text_of(op.get(reply.headers["Location"]))
    assert "Chat transcript" in got
    assert "Import 1 memory" in got
    assert op.post(f"{reply.headers['Location']}check/", {"source": "chat", "scope": "a b"}).status_code == 422


@pytest.mark.parametrize(
    ("said", "members", "code"),
    [
        ("", {}, "empty"),
        ("name;city", {}, "invalid-file"),
        ("x" * 3000, {}, "invalid-file"),
        ("[]", {"scope": "a b"}, "invalid-scope"),
        ("[]", {"source": "other"}, "invalid_choice"),
    ],
)
def test_what_cannot_be_taken_in_leaves_nothing(
    op: Client, settings: Any, folder: Path, said: str, members: dict[str, str], code: str
) -> None:
    settings.MEMSTATE_MAX_IMPORT_BYTES = 2000
    reply = sent(op, said, **members)
    assert reply.status_code == 422
    assert code in codes_of(reply)
    assert not list(folder.iterdir())
    assert not ImportJob.objects.exists()


def test_an_upload_needs_a_file_a_role_and_the_token_of_the_form(op: Client, looker: Client, folder: Path) -> None:
    assert "required" in text_of(op.post("/transfer/upload/", {"source": ""}))
    assert sent(looker, [MEMORY]).status_code == 403
    strict = client_of(account_make("administrator"), enforce_csrf_checks=True)
    assert sent(strict, [MEMORY]).status_code == 403
    assert not list(folder.iterdir())
    assert sent(strict, [MEMORY], csrfmiddlewaretoken=token_of(strict)).status_code == 302


def test_a_checked_file_is_put_aside_and_an_old_one_is_given_up(op: Client, folder: Path) -> None:
    address, _reported = checked(op, [MEMORY])
    assert op.post(f"{address}cancel/").headers["Location"] == "/transfer/"
    assert not list(folder.iterdir())
    assert "Nothing was imported" in text_of(op.get(address))
    sent(op, [MEMORY])
    work()
    stray = folder / "upload-of-nobody"
    stray.touch()
    now = timezone.now()
    assert uploads_tidy(now=now) == 0
    ImportJob.objects.filter(status="waiting").update(created_at=now - dt.timedelta(days=2))
    os.utime(stray, (0, 0))
    assert uploads_tidy(now=now) == 2
    assert not ImportJob.objects.filter(status="waiting").exists()
