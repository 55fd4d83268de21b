"""No collateral: of 5,000 people whose identifiers are parts of one another's, one is purged, and every other row of
the database is what it was to the last byte."""

import hashlib
import time
import uuid
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.models import AccessLog, AuditEvent, ForgetAction, TopicMention
from tests.cast import Caller, worker_turn
from tests.erasure.erasing import traces

PEOPLE = 5_000
NOTES = ("memory_vitality", "memory_forgetaction")
GIVEN = ("Ann", "Anna", "Annabel", "Joan", "Joanna", "Bo", "Bob", "Ana", "Hanna", "Jo")
FAMILY = ("Lee", "Leeman", "Berg", "Bergman", "Novak", "Novakova", "Reed", "Reeder", "Falk", "Falken")
WORK = ("Lumen Works", "Harbor Clinic", "Orchard Bank", "Pier Logistics")


def person(n: int) -> dict[str, Any]:
    """Of ten people each has an address that begins or ends another's, and a number that is a part of another's."""
    name = f"{GIVEN[n % 10]} {FAMILY[n // 10 % 10]}"
    mail = ("a@{d}", "aa@{d}", "x.a@{d}", "a.x@{d}", "a@{d}.org", "a@x.{d}", "a-a@{d}", "a_a@{d}", "1a@{d}", "a1@{d}")
    block = n // 10
    return {
        "placement": "new_topic",
        "title": f"{name} {n}",
        "scope": f"/people/{block % 50}",
        "topic_kind": "person",
        "summary": f"{name} works for {WORK[n % 4]} as number {n}",
        "fields": [
            {"name": "email", "value": mail[n % 10].format(d=f"n{block}.example")},
            {"name": "phone", "value": f"+49 30 {1000000 + block}{n % 10 or ''}"},
            {"name": "employer", "value": WORK[n % 4]},
        ],
    }


@pytest.fixture
def people(without_vector_index: None, operator: Caller, settings: Any) -> list[str]:
    # No one looks for duplicates here, which without the index takes all the time that a turn of the worker has.
    settings.MEMSTATE_KNOBS = {**settings.MEMSTATE_KNOBS, "duplicates_mode": "off"}
    ids: list[str] = []
    for begin in range(0, PEOPLE, 1000):
        reply = operator.post("/v1/ingest/batch", [person(n) for n in range(begin, begin + 1000)]).ok()
        assert reply["refused"] == 0
        ids += [result["topic_id"] for result in reply["results"]]
    # Autovacuum may have found the tables without rows, and it cannot see the rows of this transaction.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return ids


def rows() -> dict[tuple[str, str], str]:
    """Return the checksum of every row of every table of the store, by its text where it has no key."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()")
        for (table,) in cursor.fetchall():
            cursor.execute(
                f"SELECT coalesce(to_jsonb(x)->>'id', to_jsonb(x)->>'topic_id', md5(x::text)), x::text FROM {table} x"
            )
            for key, text in cursor.fetchall():
                found[table, key] = hashlib.md5(text.encode()).hexdigest()
    return found


def test_the_purge_of_one_person_among_thousands_touches_exactly_the_rows_of_that_person(
    people: list[str], operator: Caller
) -> None:
    chosen = 4560
    wanted = person(chosen)
    mail, phone = (field["value"] for field in wanted["fields"][:2])
    near = [person(n)["fields"][0]["value"] for n in range(4560, 4570)]
    # One row names the person and another; it was not asked for, so it stays, and what both share is not erased.
    shared = operator.remember("A dinner", values={"guests": f"{person(4561)['title']} and somebody from {WORK[0]}"})
    for question in (*near, phone, f"{phone}1", "who works for Lumen Works", wanted["title"]):
        operator.query(question, top_k=3)
    operator.post(f"/v1/topics/{people[7]}/pin", {"reason": f"asked by {near[1]} and {mail}"}).ok()
    worker_turn()
    before = rows()
    began = time.perf_counter()
    receipt = topics_purge(
        [uuid.UUID(people[chosen])], principal=SYSTEM, reason=f"{mail} asked", now=timezone.now(), request_texts=[mail]
    )
    print(f"a purge among {PEOPLE:,} topics: {time.perf_counter() - began:.2f} s")
    after = rows()
    gone = before.keys() - after.keys()
    changed = {key for key in before.keys() & after.keys() if before[key] != after[key]}
    made = after.keys() - before.keys()
    with connection.cursor() as cursor:
        cursor.execute("SELECT id::text FROM memory_accesslog WHERE query LIKE '%[erased]%' OR query_hash = ''")
        masked = {("memory_accesslog", row[0]) for row in cursor.fetchall()}
    # Gone: the rows of this topic, and the words that no one else uses.
    topic = {table for table, key in gone if key == people[chosen]}
    assert topic == {
        "memory_topic",
        "memory_vitality",
        "memory_topicvector",
        "memory_topicdocument",
        "memory_topicmention",
    } | ({"memory_duplicatelook"} & topic)
    others = sorted((table, key) for table, key in gone if key != people[chosen])
    assert {table for table, _key in others} == {"memory_field", "memory_revision", "memory_lexeme"}
    assert [table for table, _key in others].count("memory_field") == 3
    assert [table for table, _key in others].count("memory_revision") == 3
    # Changed: the journal entries that name the person, the counts of words, and nothing else.
    trails = {
        ("memory_auditevent", str(each))
        for each in AuditEvent.objects.filter(topic_id__in=[people[chosen], people[7]]).values_list("pk", flat=True)
    }
    assert changed - masked - trails == {
        (table, key) for table, key in changed if table in ("memory_lexeme", "memory_corpustotals", *NOTES)
    }
    # The reason for a pin is a note; the salience beside it is as it was.
    assert {(table, key) for table, key in changed if table in NOTES} == {
        ("memory_vitality", people[7]),
        ("memory_forgetaction", str(ForgetAction.objects.get().pk)),
    }
    assert {table for table, _key in made} == {"memory_auditevent", "memory_erasurereceipt"}
    # In the logs, the addresses that this one is a part of stand as they were asked for.
    asked = set(AccessLog.objects.values_list("query", flat=True))
    assert set(near[1:]) <= asked
    assert {f"{phone}1", "who works for Lumen Works"} <= asked
    assert not {mail, phone} & asked
    assert AuditEvent.objects.get(topic_id=people[7], action="pinned").reason == f"asked by {near[1]} and [erased]"
    assert operator.topic(shared)["fields"][0]["current"]["value"].startswith(person(4561)["title"])
    assert TopicMention.objects.count() == PEOPLE
    assert receipt.counts["memory_topic"] == 1
    assert traces(people[chosen])[0][0] in ("memory_auditevent", "memory_erasurereceipt")
    began = time.perf_counter()
    verdict = erasure_verify()
    print(f"verified {verdict.rows:,} rows: {time.perf_counter() - began:.1f} s")
    assert verdict.ok, verdict.traces[:5]
