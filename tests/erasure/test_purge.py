"""Purge: what was said is gone from every table, nothing else is touched, and a receipt stays."""

import uuid
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.core.errors import NotAllowed, NotVisible, ValueRefused
from memory.erasure.purge import topics_purge
from memory.erasure.receipts import receipts_verify, text_hash
from memory.erasure.related_rows import KEPT, REFERENCES, TEXT_OF_TOPICS, belongings
from memory.erasure.verify import erasure_verify
from memory.models import AccessLog, AuditEvent, ErasureReceipt, Lexeme, Topic, TopicDocument
from tests.cast import Caller, Cast, principal_like, raises_code, worker_turn
from tests.erasure.erasing import EMAIL, FACT, NEEDLES, PERSON, PHONE, history_make, traces
from tests.forgetting.shop import dump as rows_of_store


def purge(*ids: str, reason: str = "a test", said: tuple[str, ...] = ()) -> ErasureReceipt:
    return topics_purge(
        [uuid.UUID(each) for each in ids], principal=SYSTEM, reason=reason, now=timezone.now(), request_texts=said
    )


# What is gone.


def test_nothing_of_a_rich_history_is_left_in_any_table(cast: Cast) -> None:
    made = history_make(cast)
    assert {table for table, _needle in traces(*NEEDLES)} >= {
        "memory_topic",
        "memory_revision",
        "memory_fieldsummary",
        "memory_accesslog",
        "memory_auditevent",
        "memory_forgetaction",
        "memory_forgetlisting",
        "memory_topicedit",
        "django_q_task",
        "memory_vitality",
        "pg_stats",
    }
    hers = [made[name] for name in ("fact", "old", "kept", "deferred")]
    receipt = purge(
        *hers, reason=f"{PERSON} asked from {EMAIL}, by telephone {PHONE}", said=(f"everything on {PERSON}",)
    )
    assert traces(*NEEDLES) == []
    assert receipt.reason == "[erased] asked from [erased], by telephone [erased]"
    # Ids stand where they are to stand, and nowhere else.
    assert {table for table, _needle in traces(*hers)} - {"pg_stats"} == {
        "memory_auditevent",
        "memory_erasurereceipt",
        "memory_forgetlisting",
    }
    verdict = erasure_verify()
    assert verdict.ok, verdict
    assert (verdict.traces, verdict.stored_again, verdict.addresses) == ([], [], [])
    assert {"memory_topic": 4, "memory_link": 2, "memory_topicedit": 1}.items() <= receipt.counts.items()


def test_what_others_say_stays_and_their_journals_are_readable(cast: Cast) -> None:
    made = history_make(cast)
    purge(*(made[name] for name in ("fact", "old", "kept", "deferred")))
    other = cast.reader.topic(made["other"])
    assert (other["title"], other["fields"][0]["current"]["value"]) == ("Harbor walk", "The pier, on Sundays")
    assert other["pinned"] is True
    pinned = AuditEvent.objects.get(topic_id=made["other"], action="pinned")
    assert pinned.reason == "asked for by [erased]"
    assert AccessLog.objects.filter(query="harbor walk on sundays").count() == 1
    # The reference is cut, the value stays, and the journal says so.
    field = cast.reader.topic(made["friend"])["fields"][0]
    assert (field["current"]["value"], field["ref_topic_id"]) == ("somebody", None)
    cut = AuditEvent.objects.get(topic_id=made["friend"], action="reference_cut")
    assert cut.after["references"] == {"knows": [1]}


def test_a_purged_topic_is_found_at_no_address(cast: Cast) -> None:
    made = history_make(cast)
    topic_id = made["fact"]
    assert cast.operator.delete(f"/v1/topics/{topic_id}?reason=asked").status == 200
    assert cast.operator.get(f"/v1/topics/{topic_id}").status == 404
    assert cast.operator.get(f"/v1/topics/{topic_id}/why").status == 404
    assert cast.operator.get(f"/v1/topics/{topic_id}/fields/note/history").status == 404
    assert cast.operator.post(f"/v1/topics/{topic_id}/restore", {}).status == 404
    assert cast.operator.delete(f"/v1/topics/{topic_id}").status == 404
    listed = cast.operator.get("/v1/topics?rung=any&limit=200").ok()["items"]
    assert topic_id not in {item["topic_id"] for item in listed}
    as_of = timezone.now().isoformat()
    assert topic_id not in cast.agent.found(FACT, include_archived=True, top_k=50)
    assert topic_id not in cast.agent.found(FACT, as_of=as_of, top_k=50)
    run = cast.operator.get(f"/v1/runs/{made['run']}/actions?limit=100").ok()["items"]
    assert topic_id not in {item["topic_id"] for item in run}


def test_the_journal_still_tells_that_something_was_purged(operator: Caller) -> None:
    topic_id = operator.remember("Zofia's birthday cake", scope="/user/zofia")
    reply = operator.delete(f"/v1/topics/{topic_id}", json={"reason": "Zofia's birthday cake was private"}).ok()
    entry = AuditEvent.objects.get(action="purged")
    assert (str(entry.topic_id), entry.actor, entry.scope) == (topic_id, "key:operator", "/user/zofia")
    assert entry.reason == "[erased] was private"
    assert (entry.after["number"], entry.after["receipt"]) == (1, reply["receipt_id"])
    made = AuditEvent.objects.get(action="ingest_new_topic", topic_id=topic_id)
    assert (made.reason, made.before, made.after) == ("", {}, {})


def test_what_was_merged_into_a_topic_goes_with_it(operator: Caller) -> None:
    one, two, three = (operator.remember(f"The recipe of the plum cake, copy {n}") for n in range(3))
    Topic.objects.filter(pk=one).update(merged_into=two)
    Topic.objects.filter(pk=two).update(merged_into=three)
    apart = operator.remember("Another cake")
    # What it said is in the other by now, so by itself it cannot go.
    refused = operator.delete(f"/v1/topics/{one}")
    assert (refused.status, Topic.objects.count()) == (409, 4)
    assert refused.code == "topic-gone"
    reply = operator.delete(f"/v1/topics/{three}").ok()
    assert reply["topic_ids"] == sorted([one, two, three])
    assert [str(each) for each in Topic.objects.values_list("pk", flat=True)] == [apart]


def test_the_same_text_and_id_may_be_stored_again_and_are_no_traces(operator: Caller) -> None:
    topic_id = operator.remember(PERSON, summary=FACT, values={"email": EMAIL})
    purge(topic_id)
    operator.ingest(topic_id=topic_id, title=PERSON, summary=FACT, fields=[{"name": "email", "value": EMAIL}])
    operator.query(f"where is {EMAIL}")
    assert operator.found(FACT) == [topic_id]
    verdict = erasure_verify()
    assert verdict.ok, verdict.traces
    assert {(trace.table, trace.type) for trace in verdict.stored_again} >= {
        ("memory_topic", "id"),
        ("memory_topic", "text"),
        ("memory_revision", "identifier"),
        ("memory_accesslog", "identifier"),
        ("memory_vitality", "id"),
    }


def test_a_request_that_is_sent_again_does_not_bring_back_what_was_purged(agent: Caller, operator: Caller) -> None:
    body = {"placement": "new_topic", "title": "The code of the gate is a secret", "fields": []}
    topic_id = agent.post("/v1/ingest", body, headers={"Idempotency-Key": "gate"}).ok()["topic_id"]
    operator.delete(f"/v1/topics/{topic_id}").ok()
    again = agent.post("/v1/ingest", body, headers={"Idempotency-Key": "gate"})
    assert again.status == 409
    assert again.code == "erased-meanwhile"
    assert not Topic.objects.exists()


def test_words_that_no_one_uses_any_more_are_gone_and_the_others_counted_right(agent: Caller) -> None:
    ids = [agent.remember(f"marzipan {word}") for word in ("lighthouse", "lighthouse lantern", "harbor")]
    worker_turn()
    old = agent.remember("quince")
    worker_turn()
    agent.patch(f"/v1/topics/{old}", {"title": "medlar"}).ok()
    worker_turn()
    purge(ids[1], old)
    worker_turn()
    assert dict(Lexeme.objects.values_list("word", "documents")) == {"marzipan": 2, "lighthous": 1, "harbor": 1}
    with connection.cursor() as cursor:
        cursor.execute("SELECT documents FROM memory_corpustotals")
        assert cursor.fetchone() == (2,)
    assert TopicDocument.objects.count() == 2


def test_an_answer_that_was_given_during_the_purge_leaves_nothing(agent: Caller, operator: Caller) -> None:
    kept, gone = agent.remember("plums in the garden"), agent.remember("plums in the cellar")
    agent.query("plums")
    agent.query("cellar", topic_ids=[gone], stages=["structural"])
    rows = [dict(row) for row in AccessLog.objects.order_by("pk").values()]
    purge(gone)
    # As a query writes it that had read before the purge was committed.
    AccessLog.objects.all().delete()
    AccessLog.objects.bulk_create(AccessLog(**row) for row in rows)
    worker_turn()
    first, second = AccessLog.objects.order_by("pk")
    assert (first.query, [str(each) for each in first.topic_ids if each]) == ("plums", [kept])
    assert (second.query, [*filter(None, second.topic_ids)], second.field_ids, second.query_hash) == ("", [], [], "")
    assert erasure_verify().ok


# What is refused.


def test_only_operators_purge_and_only_what_they_see(cast: Cast) -> None:
    topic_id = cast.agent.remember("A secret", scope="/user/bob")
    for caller, status in ((cast.agent, 403), (cast.reader, 403), (cast.stranger, 403), (cast.anonymous, 401)):
        assert caller.delete(f"/v1/topics/{topic_id}").status == status
    mine = principal_like("operator", "/user/alice")
    with pytest.raises(NotVisible):
        topics_purge([uuid.UUID(topic_id)], principal=mine, reason="", now=timezone.now())
    with pytest.raises(NotAllowed):
        topics_purge([uuid.UUID(topic_id)], principal=principal_like("agent"), reason="", now=timezone.now())
    with pytest.raises(ValueRefused):
        topics_purge([], principal=SYSTEM, reason="", now=timezone.now())
    before = rows_of_store()
    with pytest.raises(NotVisible):
        purge(topic_id, str(uuid.uuid4()))
    assert rows_of_store() == before


# What is left alone.


def test_short_texts_are_not_looked_for_in_journals(cast: Cast) -> None:
    other = cast.agent.remember("A bicycle", topic_kind="blue", categories=["active"])
    cast.operator.post(f"/v1/topics/{other}/archive", {"reason": "a blue one"}).ok()
    cast.agent.remember("Another bicycle")
    topic_id = cast.agent.remember("a", values={"colour": "blue", "state": "open", "on": "true", "n": "7"})
    cast.agent.query("a bicycle, blue or open, is true")
    before = rows_of_store("memory_accesslog", "memory_auditevent", "memory_erasurereceipt", "memory_lexeme")
    purge(topic_id)
    after = rows_of_store("memory_accesslog", "memory_auditevent", "memory_erasurereceipt", "memory_lexeme")
    gone = {table for table in before if before[table] != after[table]}
    # Its own rows went, and no other row is another one.
    assert all(set(after[table]) < set(before[table]) for table in gone)
    assert AuditEvent.objects.get(topic_id=other, action="archived").reason == "a blue one"
    assert AccessLog.objects.get().query == "a bicycle, blue or open, is true"


def test_what_another_topic_still_names_stays_in_the_journals(cast: Cast) -> None:
    gone = cast.agent.remember("Ben", values={"mail": "team@lumen.example", "own": "ben@lumen.example"})
    cast.agent.remember("Cleo", values={"mail": "Team@Lumen.example"})
    cast.agent.query("who reads team@lumen.example or ben@lumen.example or ben@lumen.example.org")
    receipt = purge(gone, reason="Ben left team@lumen.example")
    assert AccessLog.objects.get().query == "who reads team@lumen.example or [erased] or ben@lumen.example.org"
    assert len(receipt.identifier_hashes) == 1
    # A reason speaks of this purge alone, so it names nothing that went.
    assert "team@" not in receipt.reason
    assert erasure_verify().ok


def test_names_of_scopes_and_keys_are_addresses_and_stay(cast: Cast) -> None:
    gone = cast.agent.remember("Her address", scope=f"/user/{EMAIL}", values={"mail": EMAIL})
    receipt = purge(gone)
    assert receipt.identifier_hashes == []
    assert erasure_verify().ok


def test_a_list_that_was_made_for_the_purge_says_no_more_what_it_was_about(operator: Caller) -> None:
    operator.remember(PERSON, values={"mail": EMAIL})
    listed = operator.post("/v1/forget", {"verb": "purge", "query": EMAIL, "reason": f"{PERSON} asked"}).ok()
    done = operator.post("/v1/forget", {"verb": "purge", "token": listed["token"]}).ok()
    assert done["receipt_id"]
    assert done["count"] == 1
    assert traces(*NEEDLES) == []
    assert erasure_verify().ok


# That nothing can be forgotten.


def test_every_table_is_handled_or_named_with_a_reason() -> None:
    owned = {each.table for each in belongings()}
    unknown = []
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        if not model._meta.managed or model._meta.proxy or table in owned | KEPT.keys() | TEXT_OF_TOPICS | SEARCHED:
            continue
        unknown.append(table)
    assert unknown == [], (
        "New tables. A foreign key to a topic makes its rows belong to it. Else, say here that it is searched, if its "
        "texts may be masked; in KEPT with a reason, if not; and see that verify_erasure knows when a row was written."
    )


# Everything in them that is a text is searched, and what was erased is replaced.
SEARCHED = {
    "memory_accesslog",
    "memory_auditevent",
    "memory_forgetrun",
    "memory_forgetpause",
    "memory_notificationdelivery",
    "memory_forgetlisting",
    "memory_idempotencyrecord",
    "memory_conversation",
    "memory_conversationturn",
    "memory_studyjob",
    "memory_policyversion",
    "memory_partitionactivity",
    "memory_rekeying",
    "memory_extractionjob",
    "memory_importjob",
    "memory_erasurecheck",
    "django_admin_log",
    "django_session",
    "django_q_task",
    "django_q_ormq",
    "axes_accessattempt",
    "axes_accesslog",
    "axes_accessfailurelog",
    "auth_user_groups",
    "auth_user_user_permissions",
    "auth_group_permissions",
}


def test_every_reference_to_a_topic_is_followed_cut_or_makes_its_row_belong() -> None:
    owned = {each.model for each in belongings()}
    for model in apps.get_models(include_auto_created=True):
        for key in model._meta.local_fields:
            if isinstance(key, models.ForeignKey) and key.related_model in owned and not model._meta.proxy:
                assert model in owned or (model._meta.label, key.name) in REFERENCES, (model, key.name)


def test_the_number_of_statements_does_not_grow_with_topics(cast: Cast, django_assert_max_num_queries: Any) -> None:
    def made(count: int, word: str) -> list[str]:
        return [
            cast.agent.remember(
                f"{word} {n} of {count}",
                summary=f"about {word} number {n}",
                values={"mail": f"{word}{n}@lumen.example", "note": f"{word} {n} and so on"},
            )
            for n in range(count)
        ]

    few, many = made(2, "beech"), made(40, "larch")
    for topic_id in (*few, *many):
        cast.reader.topic(topic_id)
    with django_assert_max_num_queries(200) as first:
        purge(*few)
    with django_assert_max_num_queries(200) as second:
        purge(*many)
    assert len(second.captured_queries) <= len(first.captured_queries) + 3


def test_the_command_says_what_it_read_and_fails_on_a_trace(agent: Caller, capsys: Any) -> None:
    topic_id = agent.remember(PERSON, values={"email": EMAIL})
    purge(topic_id)
    call_command("verify_erasure")
    assert "no erased content was found" in capsys.readouterr().out
    past = timezone.now().replace(year=2020)
    AuditEvent.objects.create(
        at=past, actor="x", action="edited", reason=f"{EMAIL} again", before={"title": PERSON.upper()}
    )
    AccessLog.objects.create(at=past, actor="x", scope="/", query="x", topic_ids=[topic_id], bump=0, field_bump=0)
    with raises_code(CommandError, "erasure-not-proven"):
        call_command("verify_erasure")
    said = capsys.readouterr()
    assert "memory_auditevent.reason" in said.err
    assert "memory_auditevent.before" in said.err
    assert "memory_accesslog.topic_ids" in said.err
    assert "wyszynska" not in (said.out + said.err).lower()


# Receipts hold what proves it.


def test_a_receipt_proves_to_whoever_has_the_text_that_it_was_erased(agent: Caller) -> None:
    topic_id = agent.remember(PERSON, summary=FACT)
    receipt = purge(topic_id)
    assert text_hash(FACT) in receipt.content_hashes
    assert text_hash(f"  {FACT.upper()} ") in receipt.content_hashes
    assert text_hash(FACT + " today") not in receipt.content_hashes
    assert receipts_verify().ok
