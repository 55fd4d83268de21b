"""What a page costs: as many statements over 60 rows as over 10, whatever it shows, generated from the table."""

import datetime as dt
from collections.abc import Iterator, Mapping

import pytest
from django.db import connection, transaction
from django.test import Client
from django_q.models import OrmQ

from memory.console.list_page import SortColumn
from memory.console.pages.agents import AGENTS
from memory.console.pages.archived import ARCHIVED
from memory.console.pages.keys import KEYS
from memory.console.pages.lookup import SORTS as LOOKUP_SORTS
from memory.console.pages.people import PEOPLE
from memory.console.pages.recalls import RECALLS
from memory.console.pages.receipts import RECEIPTS
from memory.console.pages.released import RELEASED
from memory.console.pages.runs import RUNS
from memory.console.pages.scopes import SCOPES
from memory.jobs import tasks
from memory.models import ForgetAction, ForgetRun
from tests.cast import Caller
from tests.console.crowd import Crowd, crowd_make
from tests.console.people import Statements, account_make, body_of, client_of, statements_reported
from tests.console.table import Address, addresses

# More than a page of a list.
FEW, MANY = 10, 60
LISTS = (AGENTS, ARCHIVED, KEYS, PEOPLE, RECALLS, RECEIPTS, RELEASED, RUNS, SCOPES)
SORTS: dict[str, Mapping[str, SortColumn]] = {"lookup": LOOKUP_SORTS, **{page.name: page.sorts or {} for page in LISTS}}
# Where a sorted list has many rows: all live memories, and the scopes below one.
ROWS_OF = {"lookup": {"q": ""}, "scopes": {"within": "/place"}}
# What is typed into the palette: without a text it asks nothing.
TYPED = {"palette": {"q": "topic"}}
# Without htmx, these lead to the page of which they are a part.
PARTS = {
    "conversation_turn",
    "conversation_written",
    "demo_progress",
    "duplicate_peek",
    "extraction_progress",
    "forget_receipts_check_progress",
    "notifications_sent",
    "palette",
    "recall_peek",
    "run_peek",
    "run_progress",
    "schedules_pulse",
    "study_progress",
    "topic_peek",
    "transfer_progress",
}
# Addresses of forms lead back to their page; what cannot be done any more says so.
EXPECTED = {
    "run_refuse": 302,
    "policy_edit": 302,
    "policy_effect": 302,
    "policy_rules_effect": 302,
    "home_queries": 302,
    "salience_save": 302,
    "salience_dry_run": 302,
}
# What a step of a run asks about is a run that can still take it; progress is that of one at work.
STANDING = {
    "run_apply": ForgetRun.Status.PLANNED,
    "run_approve": ForgetRun.Status.HELD,
    "run_progress": ForgetRun.Status.APPLYING,
}


def measured(operator: Caller, n: int, *, warm: bool) -> dict[str, Statements]:
    """Return what each page asks of a store with ``n`` of everything, and take the store back. Unless the process is
    ``warm``, each page is asked for once before."""
    found: dict[str, Statements] = {}
    with transaction.atomic():
        crowd = crowd_make(operator, n)
        # Autovacuum does not see rows of a transaction. Without statistics, some plans take minutes.
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        client = client_of(account_make("administrator"), raise_request_exception=False)
        for name, address, query in asking():
            with transaction.atomic():
                found[name] = asked(client, address, crowd, query, warm=warm)
                transaction.set_rollback(True)
        transaction.set_rollback(True)
    return found


def asked(client: Client, address: Address, crowd: Crowd, query: dict[str, str], *, warm: bool) -> Statements:
    """Return what one page asks."""
    url = address.url(query=query, **crowd.given(address.arguments))
    if address.name in STANDING:
        ForgetRun.objects.filter(pk=crowd.run_id).update(status=STANDING[address.name])
        ForgetAction.objects.filter(run=crowd.run_id).update(state=ForgetAction.State.PLANNED)
    if address.name == "demo_progress":
        # Only the first jobs in the queue are looked at.
        OrmQ.objects.all().delete()
        tasks.demo_enqueue()
    headers = {"HX-Request": "true"} if address.name in PARTS else {}
    if not warm:
        # The first time, what lives for as long as the process is made.
        body_of(client.get(url, headers=headers))
    with statements_reported() as got:
        reply = client.get(url, headers=headers)
        body_of(reply)
    assert reply.status_code == EXPECTED.get(address.name, 200), f"{url}: {reply.status_code}"
    assert "HX-Redirect" not in reply.headers, url
    # With real ids in the addresses: looking changes nothing.
    assert not got.written, f"{url}: writes {got.written}"
    return got


def asking() -> Iterator[tuple[str, Address, dict[str, str]]]:
    """Yield each page, and each list once more in each of its orders."""
    for address in answering():
        yield address.name, address, TYPED.get(address.name, {})
        for column in SORTS.get(address.name, {}).values():
            order = column.second or column.first
            yield f"{address.name} {order}", address, {**ROWS_OF.get(address.name, {}), "sort": order}


def answering() -> list[Address]:
    return [address for address in addresses() if address.roles and address.roles.get("GET", "anybody") != "anybody"]


@pytest.mark.django_db
def test_no_page_asks_more_of_a_larger_store(operator: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    # Exports ask once per so many rows and bytes, and it is meant that this grows.
    monkeypatch.setattr("memory.console.listing.EXPORT_ROWS", 100_000)
    # Results of the health checks are cached for ten minutes, and this test may take longer.
    monkeypatch.setattr("memory.health.LOOKED_AT_WITHIN", dt.timedelta(days=1))
    # What is warm after the few is warm for the many: asking each page of a large store twice would be half of it all.
    few = measured(operator, FEW, warm=False)
    many = measured(operator, MANY, warm=True)
    print("\n".join(f"{name:28} {len(few[name]):3} {len(many[name]):3}" for name in few))
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
