"""Receipts: what was erased in words, and the verification that is started by a button and done by the worker."""

import datetime as dt
import html
import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.check import MAX_BEGUN, erasure_check_start, erasure_check_work
from memory.erasure.purge import topics_purge
from memory.erasure.verify import ErasureSearch, SearchedTable, erasure_verify
from memory.jobs import tasks
from memory.models import AuditEvent, ErasureCheck, ErasureReceipt
from memory.resumable import STALLED_AFTER
from tests.cast import Caller, enqueued, worker_turn

pytestmark = pytest.mark.django_db
TEXT = "The red suitcase of Nadia stands in the cellar of her aunt"


def purge(*ids: str) -> ErasureReceipt:
    return topics_purge([uuid.UUID(each) for each in ids], principal=SYSTEM, reason="she asked", now=timezone.now())


def read(client: Client, address: str) -> str:
    reply = client.get(address)
    assert reply.status_code == 200, (address, reply.status_code)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", reply.content.decode())).split())


def press(client: Client, **form: Any) -> ErasureCheck:
    """Press the button, and return the verification."""
    assert client.post("/forget/receipts/verify/", form).status_code == 302
    return ErasureCheck.objects.latest("created_at")


def worked(check: ErasureCheck) -> ErasureCheck:
    """Do what the worker does with a verification."""
    tasks.erasure_check_continue(str(check.pk))
    return ErasureCheck.objects.get(pk=check.pk)


@pytest.fixture
def receipt(agent: Caller) -> ErasureReceipt:
    topic = agent.remember("Luggage", summary=TEXT)
    agent.query("Where is the luggage?")
    return purge(topic, agent.remember("Another thing"))


def test_a_receipt_says_first_what_was_erased(looker: Client, receipt: ErasureReceipt) -> None:
    page = read(looker, f"/forget/receipts/{receipt.pk}/")
    assert re.search(r"2 memories.* erased", page)
    assert "1 recall record" in page
    assert "2 memories" in read(looker, "/forget/receipts/")


def test_the_button_verifies_in_the_background_and_each_page_shows_the_result(
    op: Client, looker: Client, receipt: ErasureReceipt
) -> None:
    own = f"/forget/receipts/{receipt.pk}/"
    assert "Not verified yet" in read(op, own)

    check = press(op, receipt=str(receipt.pk))

    assert enqueued("erasure_check_continue") == [str(check.pk)]
    assert "rows read" in read(looker, own)
    assert "rows read" in read(looker, "/forget/receipts/")
    done = worked(check)
    assert (done.status, done.report["ok"], done.found) == ("done", True, {})
    assert done.report["rows"] > 0
    assert "Nothing is left" in read(looker, own)
    assert "Nothing is left" in read(looker, "/forget/receipts/")
    part = looker.get(f"/forget/receipts/verify/progress/?receipt={receipt.pk}", headers={"HX-Request": "true"})
    assert "hx-trigger" not in part.content.decode()
    ended = AuditEvent.objects.get(action="verification_done")
    assert (ended.actor, ended.after["ok"], ended.after["receipts"]) == ("user:operator", True, receipt.number)
    # The verification itself is nothing that a later one finds.
    assert erasure_verify().ok


def test_what_is_left_is_shown_with_the_receipt_it_belongs_to(
    op: Client, agent: Caller, receipt: ErasureReceipt
) -> None:
    other = purge(agent.remember("A note", summary="Quite another sentence about quite another matter"))
    past = timezone.now() - dt.timedelta(days=900)
    AuditEvent.objects.create(at=past, actor="x", action="edited", after={"note": TEXT})
    AuditEvent.objects.create(at=past, actor="x", action="edited", after={"id": receipt.topic_ids[0]})
    check = worked(press(op))
    assert not check.report["ok"]
    assert check.report["receipts"] == [receipt.number]
    page = read(op, f"/forget/receipts/{receipt.pk}/")
    assert "Something is left" in page
    assert "memory_auditevent.after" in page
    assert TEXT not in page
    assert "Something is left" in read(op, "/forget/receipts/")
    assert "Nothing is left" in read(op, f"/forget/receipts/{other.pk}/")
    # Where it was found is on record, and not a trace on its own.
    assert {trace.table for trace in erasure_verify().traces} == {"memory_auditevent"}


def test_a_later_purge_is_not_verified_by_an_earlier_verification(
    op: Client, agent: Caller, receipt: ErasureReceipt
) -> None:
    check = press(op)
    later = purge(agent.remember("A note", summary="Quite another sentence"))
    worked(check)
    assert "Not verified yet" in read(op, f"/forget/receipts/{later.pk}/")
    assert "Nothing is left" in read(op, f"/forget/receipts/{receipt.pk}/")


def test_only_one_verification_is_at_work(op: Client, receipt: ErasureReceipt) -> None:
    assert press(op).pk == press(op).pk
    worked(ErasureCheck.objects.get())
    press(op)
    assert ErasureCheck.objects.count() == 2


def test_a_killed_worker_repeats_one_table_and_the_result_is_the_same(
    agent: Caller, receipt: ErasureReceipt, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = timezone.now() - dt.timedelta(days=900)
    AuditEvent.objects.create(at=past, actor="x", action="edited", after={"note": TEXT})
    # Stored again: known only from tables that are read before those without a time.
    agent.remember("Luggage", summary=TEXT)
    plain, names = ErasureSearch.read, list[str]()

    def killed(search: ErasureSearch, table: SearchedTable, **more: Any) -> None:
        names.append(table.label)
        if len(names) % 7 == 3:
            raise MemoryError("killed")
        plain(search, table, **more)

    monkeypatch.setattr(ErasureSearch, "read", killed)
    now = timezone.now()
    check = erasure_check_start(principal=SYSTEM, now=now, enqueue=None)
    for _attempt in range(60):
        try:
            check = erasure_check_work(check.pk, clock=timezone.now, seconds=600)
            break
        except MemoryError:
            continue
    assert check.status == "done"
    assert len(names) - len(set(names)) == len(names) // 7 + (len(names) % 7 >= 3)
    monkeypatch.undo()
    whole = erasure_verify()
    assert check.report["counts"] == {
        "traces": len(whole.traces),
        "stored_again": len(whole.stored_again),
        "addresses": len(whole.addresses),
    }
    assert check.report["tables"] == whole.tables


def test_a_table_that_is_never_read_to_its_end_ends_the_verification(receipt: ErasureReceipt) -> None:
    check = erasure_check_start(principal=SYSTEM, now=timezone.now(), enqueue=None)
    ErasureCheck.objects.filter(pk=check.pk).update(begun=MAX_BEGUN)
    assert worked(check).status == "failed"
    assert "verify_erasure" in ErasureCheck.objects.get().failure


def test_a_verification_without_its_worker_is_enqueued_again(receipt: ErasureReceipt) -> None:
    check = erasure_check_start(principal=SYSTEM, now=timezone.now(), enqueue=None)
    ErasureCheck.objects.update(moved_at=timezone.now() - 2 * STALLED_AFTER)
    worker_turn()
    assert enqueued("erasure_check_continue") == [str(check.pk)]


def test_a_purge_is_verified_afterwards_if_this_is_left_ticked(op: Client, agent: Caller) -> None:
    for ticked in (False, True):
        agent.remember("Contact", summary=f"Write to nadia{ticked}@example.org about the lease.")
        listing = op.post(
            "/forget/", {"verb": "purge", "query": f"nadia{ticked}@example.org", "reason": "she asked"}
        ).url
        assert re.search(r'name="verify" checked', op.get(listing).content.decode())
        done = op.post(listing, {"typed": "purge 1", **({"verify": "on"} if ticked else {})})
        assert done.url.startswith("/forget/receipts/")
        assert ErasureCheck.objects.count() == int(ticked)
