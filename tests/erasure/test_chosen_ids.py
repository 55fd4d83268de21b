"""An id that a client chooses is that of one topic. Nothing that has another id like it is changed or reported."""

import uuid

import pytest
from django.apps import apps
from django.db import connection, models
from django.utils import timezone

from memory.access.keys import key_create
from memory.core.ids import uuid7_at
from memory.erasure.redact_text import ERASED, Eraser
from memory.erasure.verify import erasure_verify
from memory.health import ALL_CHECKS
from memory.models import AuditEvent, Conversation, ErasureReceipt, ForgetRun, Topic
from memory.models.identities import identity_tables
from tests.cast import Caller, Cast, store_rows
from tests.console.people import person


@pytest.fixture
def bound(cast: Cast) -> Caller:
    """An operator bound to a scope."""
    secret = "ms_an-operator-of-bob-in-the-tests-of-ids"
    key_create(name="of bob", role="operator", secret=secret, scope="/user/bob")
    return Caller(cast.operator.send, secret)


def run_of(operator: Caller, topic_id: str) -> str:
    """Archive a topic and return the id of the run that its history shows."""
    operator.post(f"/v1/topics/{topic_id}/archive", {}).ok()
    found: str = operator.get(f"/v1/topics/{topic_id}/why").ok()["history"][0]["run_id"]
    return found


def conversation_make() -> str:
    """Store a conversation of someone at another scope."""
    now = timezone.now()
    made = Conversation.objects.create(
        id=uuid7_at(now), scope="/user/alice", actor="x", identity="x", created_at=now, moved_at=now
    )
    return str(made.pk)


def others_made(operator: Caller) -> dict[str, str]:
    """Make one of several things that have ids."""
    topic = operator.remember("Tea", values={"kind": "green"})
    field = operator.topic(topic)["fields"][0]
    purged = operator.remember("A topic to be purged")
    receipt = operator.delete(f"/v1/topics/{purged}").ok()["receipt_id"]
    asked = {"verb": "release", "query": "tea"}
    return {
        "run": run_of(operator, topic),
        "field": field["id"],
        "receipt": receipt,
        "listing": operator.post("/v1/forget", asked).ok()["token"],
        "conversation": conversation_make(),
    }


def test_every_model_with_ids_of_its_own_is_asked() -> None:
    with_ids = {
        model._meta.db_table
        for model in apps.get_models()
        if isinstance(model._meta.pk, models.UUIDField) and model is not Topic
    }
    assert with_ids == {table for table, _column in identity_tables()}


def test_an_id_of_anything_else_is_refused_for_a_topic(operator: Caller, bound: Caller) -> None:
    taken = others_made(operator) | {"topic": operator.remember("Coffee")}
    before = store_rows()
    for what, each in taken.items():
        for caller in (operator, bound):
            answer = caller.post("/v1/ingest", {"placement": "new_topic", "topic_id": each, "title": "claimed"})
            assert (answer.status, answer.code) == (409, "already-exists"), what
            batch = caller.post("/v1/ingest/batch", [{"placement": "new_topic", "topic_id": each, "title": "claimed"}])
            assert [result["status"] for result in batch.ok()["results"]] == [409], what
    assert store_rows() == before


def test_the_answer_for_a_taken_id_does_not_tell_what_has_it(operator: Caller, bound: Caller) -> None:
    taken = others_made(operator) | {"topic": operator.remember("Coffee", scope="/user/alice")}
    said = {
        bound.post("/v1/ingest", {"placement": "new_topic", "topic_id": each, "title": "x"}).detail.replace(each, "")
        for each in taken.values()
    }
    assert len(said) == 1


def test_the_id_of_a_purged_topic_is_free_in_its_scope_alone(operator: Caller, bound: Caller) -> None:
    first = operator.remember("Tea", scope="/user/alice")
    second = operator.remember("Coffee", scope="/user/bob")
    for topic_id in (first, second):
        operator.delete(f"/v1/topics/{topic_id}").ok()
    claimed = {"placement": "new_topic", "topic_id": first, "title": "claimed"}
    assert bound.post("/v1/ingest", claimed).code == "already-exists"
    bound.ingest(topic_id=second, title="Coffee")
    operator.ingest(topic_id=first, title="Tea")


# --- Stores in which such an id was claimed before that was refused ---


def claimed(operator: Caller, ident: str, *, scope: str) -> None:
    """Store a topic under an id that something else has: refused now, possible earlier."""
    topic = operator.remember("Claimed title of a topic", scope=scope)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for table, column in (
            ("memory_topic", "id"),
            ("memory_vitality", "topic_id"),
            ("memory_topicvector", "topic_id"),
            ("memory_topicdocument", "topic_id"),
            ("memory_topicmention", "topic_id"),
            ("memory_duplicatelook", "topic_id"),
            ("memory_auditevent", "topic_id"),
        ):
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {column} = %s", [ident, topic])


def test_a_purge_of_a_topic_with_the_id_of_something_else_leaves_that_as_it_is(operator: Caller, bound: Caller) -> None:
    topic = operator.remember("Tea", scope="/user/bob")
    run = run_of(operator, topic)
    conversation = conversation_make()
    AuditEvent.objects.create(
        at=timezone.now(), actor="x", action="chat_undone", scope="/user/alice", after={"conversation": conversation}
    )
    assert ALL_CHECKS["ids"](timezone.now()).ok
    for ident in (run, conversation):
        claimed(operator, ident, scope="/user/bob")
    assert not ALL_CHECKS["ids"](timezone.now()).ok
    before = list(
        AuditEvent.objects.exclude(topic_id__in=[run, conversation]).values("id", "before", "after").order_by("id")
    )
    for ident in (run, conversation):
        bound.delete(f"/v1/topics/{ident}").ok()
    after = AuditEvent.objects.filter(pk__in=[row["id"] for row in before])
    assert list(after.values("id", "before", "after").order_by("id")) == before
    assert ForgetRun.objects.filter(pk=run).exists()
    assert Conversation.objects.filter(pk=conversation).exists()
    assert operator.get(f"/v1/topics/{topic}/why").ok()["history"][0]["run_id"] == run
    assert operator.get("/v1/regret").status == 200
    verdict = erasure_verify()
    assert verdict.ok, verdict.traces
    assert ALL_CHECKS["ids"](timezone.now()).ok


def test_a_journal_whose_run_was_masked_is_read_all_the_same(operator: Caller, reader: Caller) -> None:
    topic = operator.remember("Tea")
    run_of(operator, topic)
    event = AuditEvent.objects.get(action="archived")
    event.after["run"] = ERASED
    event.save()
    assert reader.get(f"/v1/topics/{topic}/why").ok()["history"][0]["run_id"] is None
    assert reader.get("/v1/regret").status == 200
    op = person("operator")
    for page in ("/overview/regret/", "/overview/regretted/", "/overview/regretted/count/", f"/topics/{topic}/"):
        assert op.get(page).status_code == 200, page
    assert "masked" in ALL_CHECKS["ids"](timezone.now()).sentence


def test_members_that_name_something_other_than_a_topic_are_not_masked() -> None:
    ident = str(uuid.uuid4())
    eraser = Eraser(ids={ident})
    for member in ("run", "job", "study", "study_id", "receipt", "conversation", "conversation_id", "task"):
        value = {"x": [{member: ident}]}
        assert eraser.masked_value(value) is value, member
    # What a client may have called its own member.
    for member in ("list", "token", "extraction", "key_id", "run_id"):
        assert eraser.masked_value({member: ident}) == {member: ERASED}, member
    assert eraser.masked_value({"topic": ident, "run": ident}) == {"topic": ERASED, "run": ident}
    # A sentence is no id.
    assert eraser.masked_value({"job": f"about {ident}"}) == {"job": f"about {ERASED}"}


def test_a_journal_of_another_store_keeps_the_ids_of_its_runs_and_these_are_no_traces(operator: Caller) -> None:
    foreign = operator.remember("Tea")
    kept = operator.remember("Coffee")
    AuditEvent.objects.create(
        at=timezone.now(), actor="x", action="archived", topic_id=kept, scope="/", after={"run": foreign}
    )
    operator.delete(f"/v1/topics/{foreign}").ok()
    assert AuditEvent.objects.get(topic_id=kept, action="archived").after == {"run": foreign}
    assert ErasureReceipt.objects.count() == 1
    verdict = erasure_verify()
    assert verdict.ok, verdict.traces
