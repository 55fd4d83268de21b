"""What a page costs: as many statements over 200 rows as over 10, whatever it shows, generated from the table."""

import pytest
from django.db import transaction
from django.test import Client

from memory.models import ForgetAction, ForgetRun
from tests.cast import Caller
from tests.console.crowd import Crowd, crowd_make
from tests.console.people import Statements, account_make, body_of, client_of, statements_told
from tests.console.table import Address, addresses

FEW, MANY = 10, 200
# Addresses of forms lead back to their page; what cannot be done any more says so.
EXPECTED = {
    "policy_edit": 302,
    "policy_effect": 302,
    "policy_rules_effect": 302,
    "run_progress": 302,
    "demo_progress": 302,
    "topic_peek": 302,
    "duplicate_peek": 302,
    "overview_queries": 302,
    "palette": 302,
    "extraction_progress": 302,
    "conversation_turn": 302,
    "conversation_written": 302,
    "study_progress": 302,
    "transfer_progress": 302,
    "notifications_sent": 302,
    "forget_receipts_check_progress": 302,
    "schedules_pulse": 302,
    "salience_save": 302,
    "salience_dry_run": 302,
}
# What a step of a run asks about is a run that can still take it.
STANDING = {"run_apply": ForgetRun.Status.PLANNED, "run_approve": ForgetRun.Status.HELD}


def measured(operator: Caller, n: int, *, warm: bool) -> dict[str, Statements]:
    """Return what each page asks of a store with ``n`` of everything, and take the store back. Unless the process is
    ``warm``, each page is asked for once before."""
    found: dict[str, Statements] = {}
    with transaction.atomic():
        crowd = crowd_make(operator, n)
        client = client_of(account_make("administrator"), raise_request_exception=False)
        for address in answering():
            with transaction.atomic():
                found[address.name] = asked(client, address, crowd, warm=warm)
                transaction.set_rollback(True)
        transaction.set_rollback(True)
    return found


def asked(client: Client, address: Address, crowd: Crowd, *, warm: bool) -> Statements:
    """Return what one page asks."""
    url = address.url(**crowd.given(address.arguments))
    if address.name in STANDING:
        ForgetRun.objects.filter(pk=crowd.run_id).update(status=STANDING[address.name])
        ForgetAction.objects.filter(run=crowd.run_id).update(state=ForgetAction.State.PLANNED)
    if not warm:
        # The first time, what lives for as long as the process is made.
        body_of(client.get(url))
    with statements_told() as told:
        reply = client.get(url)
        body_of(reply)
    assert reply.status_code == EXPECTED.get(address.name, 200), f"{url}: {reply.status_code}"
    # With real ids in the addresses: looking changes nothing.
    assert not told.written, f"{url}: writes {told.written}"
    return told


def answering() -> list[Address]:
    return [address for address in addresses() if address.roles and address.roles.get("GET", "anybody") != "anybody"]


@pytest.mark.django_db
def test_no_page_asks_more_of_a_larger_store(operator: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    # Exports ask once per so many rows and bytes, and it is meant that this grows.
    monkeypatch.setattr("memory.console.listing.EXPORT_ROWS", 100_000)
    # What is warm after the few is warm for the many: asking each page of a large store twice would be half of it all.
    few = measured(operator, FEW, warm=False)
    many = measured(operator, MANY, warm=True)
    print("\n".join(f"{name:24} {len(few[name]):3} {len(many[name]):3}" for name in few))
    grown = [
        f"{name}: {len(few[name])} statements for {FEW} rows, {len(many[name])} for {MANY}:\n"
        + only(many[name], few[name])
        for name in few
        if len(many[name]) > len(few[name])
    ]
    assert not grown, "\n".join(grown)


def only(more: Statements, less: Statements) -> str:
    """Return the statements of the one that the other does not have, each once."""
    known = {text[:80] for text in less.sql}
    extra = [text for text in more.sql if text[:80] not in known] or more.sql
    return "\n".join(f"  {extra.count(text)} x {' '.join(text.split())[:400]}" for text in dict.fromkeys(extra))
