"""How far a purge reaches: the text of a fact, earlier receipts, lists; and which tables and scopes it leaves alone."""

import uuid
from typing import Any

from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.erasure.receipts import receipts_verify
from memory.erasure.verify import erasure_verify
from memory.models import AccessLog, AuditEvent, ErasureReceipt, ForgetListing, Topic
from tests.cast import Caller, principal_like
from tests.erasure.erasing import EMAIL, FACT, PERSON, traces

TEXT = "Anna Kowalska has diabetes since May. The garden shed is painted dark green. Ben Olsen plays the trumpet."


def purge(*ids: str, reason: str = "a test", principal: Any = SYSTEM) -> ErasureReceipt:
    return topics_purge([uuid.UUID(each) for each in ids], principal=principal, reason=reason, now=timezone.now())


def test_a_topic_that_is_stored_and_purged_again_under_its_id_leaves_the_chain_whole(operator: Caller) -> None:
    topic_id = operator.remember(FACT)
    first = purge(topic_id)
    operator.ingest(topic_id=topic_id, title=FACT, fields=[])
    # The content of an anchor is not searched as text, even if a memory has the same words.
    digest = operator.remember("A note", values={"hash": f"the digest {first.hash}"})
    purge(topic_id, digest)
    chain = receipts_verify()
    assert (chain.ok, chain.count) == (True, 2), chain
    assert erasure_verify().ok


def test_the_text_that_a_fact_was_extracted_from_goes_with_it(operator: Caller) -> None:
    stored = operator.post("/v1/extract", {"content": TEXT, "store": True}).ok()["stored"]
    assert traces("has diabetes")
    gone = next(each for each in stored if "diabetes" in operator.topic(each)["label"])
    source = Topic.objects.get(kind="source")
    receipt = purge(gone)
    assert traces("has diabetes") == []
    assert (receipt.topic_ids, receipt.counts["memory_topic.extracted_from"]) == (sorted([gone, str(source.pk)]), 1)
    # What its other sentences say stays, and the trail of these facts tells why they have no source any more.
    assert {str(each) for each in Topic.objects.values_list("pk", flat=True)} == {*stored} - {gone}
    assert AuditEvent.objects.filter(action="reference_cut").count() == len(stored) - 1
    verdict = erasure_verify()
    assert verdict.ok, verdict.traces


def test_a_later_text_that_said_what_was_known_goes_too(operator: Caller) -> None:
    first = operator.post("/v1/extract", {"content": TEXT, "store": True}).ok()["stored"]
    gone = next(each for each in first if "diabetes" in operator.topic(each)["label"])
    more = "Anna Kowalska has diabetes since May. Cleo Maar breeds spotted pigeons in the attic."
    assert operator.post("/v1/extract", {"content": more, "store": True}).ok()["stored"]
    assert purge(gone).counts["memory_topic.extracted_from"] == 2
    assert traces("has diabetes") == []
    assert erasure_verify().ok


def test_an_edge_alone_does_not_have_a_topic_purged(operator: Caller) -> None:
    handbook = operator.remember("Handbook of the house", topic_kind="source", values={"text": "Doors close at ten"})
    purge(operator.remember("A fact", edges=[{"to_topic_id": handbook, "kind": "extracted_from"}]))
    assert [str(each) for each in Topic.objects.values_list("pk", flat=True)] == [handbook]


def test_a_sentence_within_a_longer_text_is_a_trace(operator: Caller) -> None:
    other = operator.remember("A letter")
    purge(operator.remember("Notes", values={"body": f"Some words about her. {FACT}. And so on and on."}))
    past = timezone.now().replace(year=2020)
    AuditEvent.objects.create(
        at=past, actor="x", action="edited", topic_id=other, after={"note": f"She wrote: {FACT.upper()}! We answered."}
    )
    assert [(trace.table, trace.column, trace.type) for trace in erasure_verify().traces] == [
        ("memory_auditevent", "after", "text")
    ]


def test_a_sentence_that_another_topic_says_within_its_text_is_not_erased(operator: Caller) -> None:
    operator.remember("A letter", values={"body": f"Dear all. {FACT}. Yours"})
    operator.query(FACT)
    purge(operator.remember("Notes", summary=FACT))
    assert AccessLog.objects.get().query == FACT
    assert erasure_verify().ok


def test_the_reason_of_an_earlier_receipt_is_masked_and_the_chain_stays_whole(operator: Caller) -> None:
    boat, person = operator.remember("The boat leaks"), operator.remember(PERSON, values={"email": EMAIL})
    purge(boat, reason=f"asked for by {EMAIL} in a letter")
    first = ErasureReceipt.objects.get()
    receipt = purge(person)
    masked = ErasureReceipt.objects.get(number=1)
    assert (masked.reason, masked.hash) == ("asked for by [erased] in a letter", first.hash)
    assert receipt.counts["memory_erasurereceipt"] == 1
    assert traces(EMAIL) == []
    assert erasure_verify().ok
    # No one else can mask it, and what is put back is found both ways.
    ErasureReceipt.objects.filter(number=1).update(reason="asked for by [erased]")
    chain = receipts_verify()
    assert (chain.broken_at, len(chain.sentences)) == (1, 1)
    ErasureReceipt.objects.filter(number=1).update(reason=first.reason)
    verdict = erasure_verify()
    assert [(trace.table, trace.column) for trace in verdict.traces] == [("memory_erasurereceipt", "reason")]


def test_tables_of_others_are_read_and_never_changed(operator: Caller) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA elsewhere")
        cursor.execute("CREATE TABLE customers (id int PRIMARY KEY, name text, at int)")
        cursor.execute("CREATE TABLE elsewhere.memory_auditevent (reason text, topic_id uuid NOT NULL)")
        topic_id = operator.remember(PERSON, values={"email": EMAIL})
        cursor.execute("INSERT INTO customers VALUES (1, %s, 7)", [f"Mail to {EMAIL}"])
        cursor.execute("INSERT INTO elsewhere.memory_auditevent VALUES (%s, %s)", [f"{FACT}. {EMAIL}", topic_id])
        cursor.execute("CREATE MATERIALIZED VIEW mails AS SELECT name AS mail FROM customers")
        cursor.execute("CREATE MATERIALIZED VIEW later AS SELECT name FROM customers WITH NO DATA")
        purge(topic_id)
        cursor.execute("SELECT name FROM customers UNION ALL SELECT mail FROM mails")
        assert cursor.fetchall() == [(f"Mail to {EMAIL}",)] * 2
        cursor.execute("SELECT topic_id::text FROM elsewhere.memory_auditevent")
        assert cursor.fetchall() == [(topic_id,)]
    verdict = erasure_verify()
    assert {(trace.table.partition(".")[2], trace.column, trace.type) for trace in verdict.traces} == {
        ("customers", "name", "identifier"),
        ("mails", "mail", "identifier"),
        ("memory_auditevent", "topic_id", "id"),
        ("memory_auditevent", "reason", "identifier"),
        ("memory_auditevent", "reason", "text"),
    }
    assert not any(trace.ours for trace in verdict.traces)


def test_a_key_bound_to_a_scope_changes_no_journal_outside_it_but_by_its_own_ids(operator: Caller) -> None:
    mine = principal_like("operator", "/user/alice")
    other = operator.remember("A bicycle", scope="/user/bob")
    operator.post(f"/v1/topics/{other}/pin", {"reason": f"{EMAIL} asked"}).ok()
    topic_id = operator.remember(PERSON, scope="/user/alice", values={"email": EMAIL})
    near = operator.remember("A boat", scope="/user/alice/boats")
    operator.post(f"/v1/topics/{near}/pin", {"reason": f"{EMAIL} asked"}).ok()
    AuditEvent.objects.create(
        at=timezone.now(), actor="x", action="edited", scope="/user/bob", after={"note": f"{topic_id} of {EMAIL}"}
    )
    purge(topic_id, principal=mine)
    assert AuditEvent.objects.get(action="pinned", topic_id=other).reason == f"{EMAIL} asked"
    assert AuditEvent.objects.get(action="pinned", topic_id=near).reason == "[erased] asked"
    assert AuditEvent.objects.get(action="edited").after == {"note": f"[erased] of {EMAIL}"}


def test_a_list_of_any_verb_that_holds_a_purged_topic_says_no_more_what_it_was_about(operator: Caller) -> None:
    gone, kept = operator.remember("Her pots", summary=FACT), operator.remember("Her pans")
    now = timezone.now()
    entries = [
        {"id": each, "why": "It says 'her'.", "excerpt": f"of {each}", "state": [], "keeps": {"fields": {"a": "Blue"}}}
        for each in (gone, kept)
    ]
    ForgetListing.objects.create(
        id=uuid.uuid4(),
        verb="release",
        scope="/",
        query="her",
        reason="she left",
        actor="x",
        identity="x",
        count=2,
        question="Whose?",
        created_at=now,
        expires_at=now,
        entries=entries,
    )
    purge(gone)
    listing = ForgetListing.objects.get()
    assert (listing.query, listing.reason, listing.question) == ("", "", "")
    assert [(each["why"], each["excerpt"]) for each in listing.entries] == [("", ""), ("", f"of {kept}")]
    # What was to stay of a topic that is gone is gone as well.
    assert ["keeps" in each for each in listing.entries] == [False, True]
