"""Release and purge over the API: the list first, then exactly the list, and nothing else."""

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from django.utils import timezone

from memory.erasure.receipts import receipts_verify, text_hash
from memory.erasure.verify import erasure_verify
from memory.jobs import tasks
from memory.models import ErasureReceipt, ForgetListing, ForgetRun, Topic
from tests.cast import Caller, Clock

pytestmark = pytest.mark.meaning


def remember(caller: Caller, text: str, **more: Any) -> str:
    """Store a fact and return its topic."""
    item = {"placement": "new_topic", "title": text, "fields": [{"name": "fact", "value": text}], **more}
    return str(caller.post("/v1/ingest", item).ok()["topic_id"])


def found(caller: Caller, question: str) -> set[str]:
    """Return the labels of the topics that a query returns."""
    return {hit["label"] for hit in caller.post("/v1/query", {"q": question, "top_k": 20}).ok()["candidates"]}


def forget(caller: Caller, verb: str = "release", **more: Any) -> Any:
    """Ask for something to be forgotten and return the reply."""
    return caller.post("/v1/forget", {"verb": verb, **more}).ok()


def test_a_dry_run_lists_what_would_go_and_changes_nothing(operator: Caller) -> None:
    kept = remember(operator, "Anna Berg plays the oboe.")

    listed = forget(operator, query="everything about Anna Berg")

    assert [match["topic_id"] for match in listed["matches"]] == [kept]
    assert listed["matches"][0]["by"] == "name"
    assert listed["count"] == 1
    assert listed["token"]
    assert not listed["executed"]
    assert found(operator, "Anna Berg oboe") == {"Anna Berg plays the oboe."}
    assert ForgetRun.objects.count() == 0


def test_the_token_executes_exactly_the_list_and_undo_takes_it_back(operator: Caller) -> None:
    remember(operator, "Anna Berg plays the oboe.")
    listed = forget(operator, query="Anna Berg")
    later = "Anna Berg also sings."
    remember(operator, later)

    done = forget(operator, token=listed["token"])

    assert done["executed"]
    assert found(operator, "Anna Berg plays the oboe.") == {later}
    assert operator.post(f"/v1/runs/{done['run_id']}/undo", {}).ok()["conflicts"] == []
    assert found(operator, "Anna Berg plays the oboe.") == {later, "Anna Berg plays the oboe."}


def test_a_list_that_is_no_longer_true_is_refused_and_nothing_is_done(operator: Caller) -> None:
    topic = remember(operator, "Anna Berg plays the oboe.")
    remember(operator, "Anna Berg lives in Kiel.")
    listed = forget(operator, query="Anna Berg")
    operator.request("PATCH", f"/v1/topics/{topic}", {"summary": "Since school."}).ok()

    refused = operator.post("/v1/forget", {"verb": "release", "token": listed["token"]})

    assert refused.status == 409
    assert refused.code == "changed-meanwhile"
    assert topic in refused.detail
    assert len(found(operator, "Anna Berg")) == 2


def test_a_list_can_be_executed_once_by_its_maker_and_within_its_hour(
    operator: Caller, cast: Any, clock: Clock
) -> None:
    from memory.access.keys import key_create

    remember(operator, "Anna Berg plays the oboe.")
    listed = forget(operator, query="Anna Berg")
    key_create(name="another", role="operator", secret="ms_another-operator-in-this-test")
    other = Caller(operator.send, "ms_another-operator-in-this-test")

    assert other.post("/v1/forget", {"verb": "release", "token": listed["token"]}).status == 404
    assert operator.post("/v1/forget", {"verb": "purge", "token": listed["token"]}).status == 409
    clock.forward(hours=2)
    assert operator.post("/v1/forget", {"verb": "release", "token": listed["token"]}).code == "expired"
    again = forget(operator, query="Anna Berg")
    forget(operator, token=again["token"])
    assert operator.post("/v1/forget", {"verb": "release", "token": again["token"]}).code == "conflict"


def test_two_equally_good_answers_are_both_named_and_neither_goes(operator: Caller) -> None:
    remember(operator, "The wifi password of the cabin is tern-44.")
    remember(operator, "The wifi password of the office is plover-9.")

    answer = forget(operator, query="the wifi password", dry_run=False)

    assert answer["ambiguous"]
    assert answer["token"] is None
    assert not answer["executed"]
    assert len(answer["matches"]) == 2
    chosen = forget(operator, filter={"ids": [answer["matches"][0]["topic_id"]]}, dry_run=False)
    assert chosen["executed"]
    assert len(found(operator, "wifi password")) == 1


def test_what_a_sentence_says_beside_the_fact_that_goes_stays(operator: Caller) -> None:
    remember(operator, "Nils lives in Bergen and works as a glazier.")

    done = forget(operator, query="Nils lives in Bergen", dry_run=False)

    assert done["matches"][0]["keeps"] == "Nils works as a glazier."
    assert found(operator, "Nils lives in Bergen and works as a glazier.") == {"Nils works as a glazier."}


def test_a_filter_takes_what_is_of_a_kind_in_a_category_and_old_enough(operator: Caller) -> None:
    old = (timezone.now() - dt.timedelta(days=40)).isoformat()
    remember(operator, "An old log.", topic_kind="tool_output", created_at=old, categories=["logs"])
    remember(operator, "A new log.", topic_kind="tool_output", categories=["logs"])
    remember(operator, "An old note.", topic_kind="note", created_at=old)

    wanted = {"kinds": ["tool_output"], "older_than": "30d", "categories": ["logs", "traces"]}
    done = forget(operator, filter=wanted, dry_run=False)

    assert [match["title"] for match in done["matches"]] == ["An old log."]
    assert "older than 30d" in done["matches"][0]["why"]
    assert found(operator, "log note") == {"A new log.", "An old note."}


def test_a_query_within_a_filter_is_narrowed_by_it(operator: Caller) -> None:
    remember(operator, "Anna Berg plays the oboe.", scope="/team/a")
    remember(operator, "Anna Berg plays the harp.", scope="/team/b")

    done = forget(operator, query="Anna Berg", filter={"scope": "/team/b"}, dry_run=False)

    assert [match["scope"] for match in done["matches"]] == ["/team/b"]
    assert found(operator, "Anna Berg plays") == {"Anna Berg plays the oboe."}


def test_purge_by_an_identifier_leaves_a_receipt_and_no_row(operator: Caller) -> None:
    gone = remember(operator, "The invoice goes to a@x.io.")
    remember(operator, "The reminder goes to a.smith@x.io.")

    done = forget(operator, "purge", query="A@X.IO", dry_run=False, reason="asked by a@x.io")

    assert [match["topic_id"] for match in done["matches"]] == [gone]
    assert not Topic.objects.filter(pk=gone).exists()
    receipt = ErasureReceipt.objects.get(pk=done["receipt_id"])
    assert "a@x.io" not in receipt.reason
    assert "a@x.io" not in str(list(ForgetListing.objects.values()))
    assert found(operator, "invoice reminder") == {"The reminder goes to a.smith@x.io."}


def test_purge_reaches_what_only_the_history_says_and_what_was_released(operator: Caller) -> None:
    topic = remember(operator, "Write to a@x.io.")
    operator.post(
        "/v1/ingest",
        {"placement": "version_field", "topic_id": topic, "fields": [{"name": "fact", "value": "Write to b@x.io."}]},
    ).ok()
    operator.request("PATCH", f"/v1/topics/{topic}", {"title": "Where to write"}).ok()

    assert forget(operator, "release", query="a@x.io")["count"] == 0
    forget(operator, "release", query="b@x.io", dry_run=False)
    assert forget(operator, "purge", query="a@x.io", dry_run=False)["count"] == 1
    assert not Topic.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        ({"verb": "release"}, 422, "missing-member"),
        ({"verb": "release", "filter": {}}, 422, "missing-member"),
        ({"verb": "forget", "query": "x"}, 422, "verb"),
        ({"verb": "release", "query": "x", "filter": {"older_then": "30d"}}, 422, "filter.older_then"),
        ({"verb": "release", "filter": {"older_than": "soon"}}, 422, "invalid-member"),
        ({"verb": "release", "filter": {"kinds": []}}, 422, "missing-member"),
        ({"verb": "release", "query": "x", "token": "y"}, 400, "contradictory-request"),
        ({"verb": "release", "token": "y"}, 404, "not-found"),
        ({"verb": "release", "query": "x", "scope": "/a", "filter": {"scope": "/b"}}, 422, "contradictory-request"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(
    operator: Caller, body: dict[str, Any], status: int, what: str
) -> None:
    refused = operator.post("/v1/forget", body)

    assert (refused.status, what in refused.about) == (status, True), refused.detail


def test_only_operators_forget_on_command(agent: Caller, reader: Caller, anonymous: Caller) -> None:
    remember(agent, "Anna Berg plays the oboe.")

    for caller, status in ((agent, 403), (reader, 403), (anonymous, 401)):
        assert caller.post("/v1/forget", {"verb": "release", "query": "Anna", "dry_run": False}).status == status
    assert found(agent, "Anna Berg") == {"Anna Berg plays the oboe."}


def test_what_a_purge_of_one_fact_leaves_keeps_its_age_and_its_links_and_is_no_trace(operator: Caller) -> None:
    old = (timezone.now() - dt.timedelta(days=40)).isoformat()
    whole = remember(operator, "Nils lives in Bergen and works as a glazier.", created_at=old, salience=0.7)
    other = remember(operator, "The glaziers of Bergen.", edges=[{"to_topic_id": whole, "kind": "mentions"}])

    forget(operator, "purge", query="Nils lives in Bergen", dry_run=False)

    (kept,) = Topic.objects.filter(fields__revisions__value="Nils works as a glazier.")
    assert kept.created_at.isoformat()[:10] == old[:10]
    assert list(kept.links_in.values_list("source_id", "kind")) == [(uuid.UUID(other), "mentions")]
    assert erasure_verify().ok


def test_a_purge_of_one_fact_brings_nothing_back_that_was_released(operator: Caller) -> None:
    remember(operator, "Nils lives in Bergen and works as a glazier.")
    forget(operator, query="everything about Nils", dry_run=False)

    forget(operator, "purge", query="Nils lives in Bergen", dry_run=False)

    assert found(operator, "Nils works as a glazier") == set()
    assert not Topic.objects.exists()


def test_a_purge_finds_what_a_merge_took_in(operator: Caller) -> None:
    survivor = remember(operator, "The tea is in the left drawer.")
    loser = remember(operator, "The tea is in the left drawer, says Anna Kowalska.")
    Topic.objects.filter(pk=loser).update(merged_into=survivor)

    listed = forget(operator, "purge", query="Anna Kowalska")

    assert [match["topic_id"] for match in listed["matches"]] == [survivor]
    assert "merged into it" in listed["matches"][0]["why"]
    assert forget(operator, "purge", token=listed["token"])["executed"]
    assert not Topic.objects.exists()


def test_one_request_names_so_many_things_and_no_more(operator: Caller) -> None:
    refused = operator.post("/v1/forget", {"verb": "release", "query": " ".join(f"@someone_{n}" for n in range(30))})

    assert (refused.status, refused.code) == (422, "too-large")


def test_what_was_asked_for_is_forgotten_a_week_after_the_list_expired(operator: Caller, clock: Clock) -> None:
    remember(operator, "Anna Berg plays the oboe.")
    forget(operator, query="Anna Berg", reason="asked by Anna Berg")

    tasks.tidy()
    assert ForgetListing.objects.get().query == "Anna Berg"
    clock.forward(days=8)
    tasks.tidy()

    assert "Anna" not in str(ForgetListing.objects.values().get())
    assert ForgetListing.objects.get().count == 1


def test_what_is_quoted_has_the_name_and_a_record_of_another_loses_one_field_only(operator: Caller) -> None:
    job = {"employer": "Halden", "weekly_hours": "40", "reports_to": "Viktor Sund"}
    fields = [{"name": name, "value": value} for name, value in job.items()]
    remember(operator, "Viktor Sund: Founded the studio with Rye. Decides fast.")
    operator.post("/v1/ingest", {"placement": "new_topic", "title": "Mara's job at Halden", "fields": fields}).ok()

    listed = forget(operator, query="everything about Viktor Sund")

    assert len(listed["matches"]) == 2
    assert all("Viktor" in match["excerpt"] for match in listed["matches"])
    (kept,) = [match["keeps"] for match in listed["matches"] if match["title"] == "Mara's job at Halden"]
    assert "Halden" in kept
    assert "40" in kept
    assert "Viktor" not in kept


def test_a_record_with_a_name_and_no_other_subject_goes_as_a_whole(operator: Caller) -> None:
    contact = {"name": "Viktor Sund", "phone": "+46 70 330 14 14", "city": "Lund"}
    fields = [{"name": name, "value": value} for name, value in contact.items()]
    operator.post("/v1/ingest", {"placement": "new_topic", "title": "Contact", "fields": fields}).ok()

    listed = forget(operator, query="everything about Viktor Sund")

    assert [match["keeps"] for match in listed["matches"]] == [""]


def test_a_receipt_counts_what_other_memories_contain_too(operator: Caller) -> None:
    text = "The harbour master keeps the spare key under the blue buoy, says kai@example.org."
    remember(operator, text)
    gone = remember(operator, text)

    done = forget(operator, "purge", filter={"ids": [gone]}, dry_run=False, reason="asked by letter")

    assert operator.get(f"/v1/receipts/{done['receipt_id']}").ok()["elsewhere"]["identifiers"] == 1
    assert operator.get(f"/v1/receipts/{done['receipt_id']}").ok()["elsewhere"]["texts"] >= 1
    assert receipts_verify().ok
    ErasureReceipt.objects.update(elsewhere={})
    assert not receipts_verify().ok


def test_a_release_leaves_a_name_in_another_script_to_a_person_and_a_purge_takes_it(operator: Caller) -> None:
    latin = remember(operator, "Olga Petrova pays the rent of the garage.")
    other = remember(operator, "Телефон Ольги Петровой записан в тетради.")
    remember(operator, "Olga Smirnova pays the rent of the shop.")
    listed = forget(operator, query="Olga Petrova")
    assert [(each["topic_id"], each["chosen"], bool(each["spelling"])) for each in listed["matches"]] == [
        (latin, True, False),
        (other, False, True),
    ]
    assert listed["count"] == 1
    assert forget(operator, token=listed["token"])["executed"]
    assert Topic.objects.get(released_at__isnull=False).pk == uuid.UUID(latin)
    purged = forget(operator, "purge", query="Olga Petrova", dry_run=False, reason="her wish")
    assert {each["topic_id"] for each in purged["matches"]} == {latin, other}
    receipt = operator.get(f"/v1/receipts/{purged['receipt_id']}").ok()
    assert "Петров" not in json.dumps(list(ForgetListing.objects.values_list("entries", flat=True)), ensure_ascii=False)
    assert {text_hash(name) for name in ("Olga Petrova", "Ольги Петровой")} <= set(receipt["spelling_hashes"])
    assert erasure_verify().ok


def test_a_name_that_is_only_stored_in_another_script_is_chosen(operator: Caller) -> None:
    other = remember(operator, "Телефон Ольги Петровой записан в тетради.")
    (match,) = forget(operator, query="Olga Petrova")["matches"]
    assert (match["topic_id"], match["chosen"], match["spelling"]) == (other, True, "Ольги Петровой")


def test_an_identifier_that_is_stored_again_after_a_purge_is_no_trace_of_it(operator: Caller, clock: Clock) -> None:
    remember(operator, "Her address is olga.petrova@x.example.")
    forget(operator, "purge", query="olga.petrova@x.example", dry_run=False, reason="her wish")
    clock.forward(minutes=5)
    remember(operator, "Write to olga.petrova@x.example again.")
    report = erasure_verify()
    assert report.ok
    assert report.stored_again
