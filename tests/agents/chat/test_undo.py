"""Undo of a conversation: what it wrote is taken back as far as no one has built on it, and history only grows."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.access.principal import Principal
from memory.agents.chat.turns import turn_begin, turn_check
from memory.agents.chat.undo import conversation_undo, conversation_undo_preview
from memory.agents.tools import read_tools as reading
from memory.agents.tools.write_log import item_write
from memory.core.errors import Conflict, NotAllowed, NotVisible
from memory.forgetting.runs import run_undo
from memory.ingest.items import IngestField, IngestItem
from memory.ingest.plan import ItemReply
from memory.models import AuditEvent, Conversation, ConversationTurn, Link, Revision, Topic
from tests.agents.chat.shop import LEADER, OPERATOR, Talk
from tests.agents.chat.talk import tell
from tests.cast import Caller, Cast, Clock, store_rows
from tests.llm.server import Model, calling

NOTHING = {"topic": 0, "value": 0, "field": 0, "link": 0, "merge": 0}


def got(caller: Caller, topic_id: str) -> dict[str, Any]:
    """What the API tells of a topic, but for how much it is used; a field that says nothing is as good as none."""
    topic = caller.topic(topic_id)
    fields = {each["name"]: each["current"]["value"] for each in topic["fields"] if each["current"]["value"]}
    links = sorted((each["direction"], each["kind"], each["topic_id"]) for each in topic["neighbors"])
    return {"fields": fields, "links": links, **{name: topic[name] for name in ("title", "summary", "rung", "scope")}}


def test_everything_a_conversation_wrote_is_taken_back(agent: Caller, operator: Caller) -> None:
    anna = agent.remember("Anna", values={"city": "Oslo"}, fields=[{"name": "age", "value": 30, "field_type": "int"}])
    bob = agent.remember("Bob", values={"city": "Rome"})
    before = [got(operator, each) for each in (anna, bob)]
    talk = Talk()
    job = talk.new("Anna's job", (anna,), title="pilot")
    talk.extend(anna, (bob, job), phone="12", city="Bergen")
    talk.version(anna, "city", "Paris")
    talk.version(anna, "age", "forty")
    rows = store_rows()
    done = talk.undo()
    assert done.counts == {"topic": 1, "value": 2, "field": 1, "link": 1, "merge": 0}
    assert done.left == []
    assert [got(operator, each) for each in (anna, bob)] == before
    # What it made is gone from queries, and not from the store.
    assert operator.topic(job)["released_at"]
    assert job not in agent.found("pilot")
    now = store_rows()
    assert {name: now[name] - rows[name] for name in rows if now[name] < rows[name]} == {"memory_link": -1}
    history = agent.get(f"/v1/topics/{anna}/fields/city/history").ok()["items"]
    assert [each["value"] for each in history] == ["Oslo", "Paris", "Bergen", "Oslo"]
    assert history[0]["provenance"] == "undo"
    assert history[0]["why_changed"] == "undo of a conversation: wrong person"
    # What has been true since then is so still.
    assert history[0]["valid_from"] == history[-1]["valid_from"]
    age = next(each for each in agent.topic(anna)["fields"] if each["name"] == "age")
    assert (age["field_type"], age["current"]["value"]) == ("int", "30")
    # The release is a run by itself: taking that back brings the topic and its links to sight again.
    assert done.run_id
    assert run_undo(done.run_id, principal=OPERATOR, reason="", now=timezone.now()).restored == 1
    assert operator.topic(job)["released_at"] is None
    assert {each["topic_id"] for each in operator.topic(job)["neighbors"]} == {anna}


def test_it_is_journaled_and_again_there_is_nothing_left(agent: Caller) -> None:
    anna, bob = agent.remember("Anna", values={"city": "Oslo"}), agent.remember("Bob")
    talk = Talk()
    made = talk.new("Job", title="pilot")
    talk.extend(anna, (bob,), city="Paris")
    done = talk.undo()
    event = AuditEvent.objects.get(action="conversation_undone")
    assert (event.actor, event.reason) == ("Ada", "wrong person")
    assert event.after == {
        "conversation": str(talk.row.pk),
        "taken_back": {"topic": 1, "value": 1, "link": 1},
        "left": 0,
        "run": str(done.run_id),
    }
    unlinked = AuditEvent.objects.get(action="unlinked")
    assert (str(unlinked.topic_id), unlinked.before["to"], unlinked.before["kind"]) == (anna, bob, "knows")
    assert AuditEvent.objects.filter(action="released", topic_id=made).exists()
    talk.row.refresh_from_db()
    assert talk.row.undone_at
    rows = store_rows()
    again = talk.undo()
    assert (again.counts, again.left, again.run_id) == (NOTHING, [], None)
    assert store_rows() == rows
    # What is brought back by hand, and what the conversation writes afterwards, can be taken back anew.
    run_undo(done.run_id or uuid.UUID(int=0), principal=OPERATOR, reason="", now=timezone.now())
    talk.version(anna, "city", "Lima")
    assert talk.undo().counts == {**NOTHING, "topic": 1, "value": 1}
    assert got(agent, anna)["fields"] == {"city": "Oslo"}


def test_what_others_built_on_is_left_and_reported(agent: Caller, operator: Caller) -> None:
    anna = agent.remember("Anna", values={"city": "Oslo", "job": "cook"})
    gone, erased = agent.remember("Gone", values={"a": "1"}), agent.remember("Erased", values={"a": "1"})
    talk = Talk()
    written, edited, linked, pinned, referred, free = (talk.new(name, a="1") for name in "123456")
    for topic_id, name in ((anna, "city"), (gone, "a"), (erased, "a")):
        talk.version(topic_id, name, "2")
    released = talk.new("7", a="1")
    agent.ingest("version_field", topic_id=written, fields=[{"name": "a", "value": "mine"}])
    agent.patch(f"/v1/topics/{edited}", {"title": "Better"}).ok()
    agent.ingest("extend_topic", topic_id=anna, edges=[{"to_topic_id": linked, "kind": "knows"}])
    agent.post(f"/v1/topics/{pinned}/pin", {"reason": "dear"}).ok()
    agent.ingest("extend_topic", topic_id=anna, fields=[{"name": "boss", "value": "x", "ref_topic_id": referred}])
    agent.ingest("version_field", topic_id=anna, fields=[{"name": "city", "value": "Lima"}])
    operator.post("/v1/forget", {"verb": "release", "filter": {"ids": [gone, released]}, "dry_run": False}).ok()
    operator.delete(f"/v1/topics/{erased}").ok()
    done = talk.undo()
    assert done.counts == {**NOTHING, "topic": 1}
    assert [part.topic_id for part in done.taken_back] == [uuid.UUID(free)]
    assert {str(part.topic_id): part.why for part in done.left} == {
        written: "It was written to from outside this conversation.",
        edited: "It was edited afterwards.",
        linked: "It was linked from outside this conversation.",
        pinned: "It is pinned.",
        referred: "A field of another memory refers to it.",
        anna: "It has a newer value from outside this conversation.",
        gone: "Its memory was released.",
    }
    assert got(agent, anna)["fields"]["city"] == "Lima"
    assert agent.topic(written)["fields"][0]["current"]["value"] == "mine"


def test_merges_are_taken_apart_first_and_the_last_one_before_the_others(agent: Caller, operator: Caller) -> None:
    older = agent.remember("Anna", values={"city": "Oslo"})
    before = got(operator, older)
    talk = Talk()
    first, second = talk.new("Anna", city="Bergen", job="pilot"), talk.new("Anna", city="Paris")
    talk.version(older, "city", "Rome")
    talk.merge(first, older)
    talk.merge(second, older)
    assert got(operator, older)["fields"] == {"city": "Rome", "job": "pilot"}
    done = talk.undo()
    assert done.counts == {"topic": 2, "value": 1, "field": 0, "link": 0, "merge": 2}
    assert done.left == []
    assert got(operator, older) == before
    assert all(operator.topic(each)["merged_into"] is None for each in (first, second))
    assert all(operator.topic(each)["released_at"] for each in (first, second))


def test_a_merge_that_someone_went_on_with_stays_and_what_it_brought_is_taken_back(
    agent: Caller, operator: Caller
) -> None:
    older, talk = agent.remember("Anna", values={"city": "Oslo"}), Talk()
    other = agent.remember("Bob")
    made = talk.new("Anna", (other,), city="Bergen", job="pilot", pet="a cat")
    agent.ingest("extend_topic", topic_id=older, fields=[{"name": "age", "value": "40"}])
    talk.merge(made, older)
    agent.ingest("version_field", topic_id=older, fields=[{"name": "job", "value": "captain"}])
    done = talk.undo()
    assert done.counts == {"topic": 0, "value": 0, "field": 2, "link": 1, "merge": 0}
    assert {part.what: part.why for part in done.left} == {
        "merge": "It was written to since.",
        "topic": "It is merged into another memory.",
        "field": "It has a newer value from outside this conversation.",
    }
    now = got(operator, older)
    assert (now["fields"], now["links"]) == ({"city": "Oslo", "age": "40", "job": "captain"}, [])


def test_only_operators_who_see_the_conversation_undo_it(agent: Caller) -> None:
    talk = Talk("/user/alice")
    talk.new("Job", title="pilot")
    rows = store_rows()
    with pytest.raises(NotAllowed):
        conversation_undo(talk.row.pk, principal=LEADER, reason="", now=timezone.now())
    elsewhere = Principal("person:2", "Bo", "operator", "/user/bob")
    with pytest.raises(NotVisible):
        conversation_undo_preview(talk.row.pk, principal=elsewhere, now=timezone.now())
    with pytest.raises(NotVisible):
        conversation_undo(talk.row.pk, principal=elsewhere, reason="", now=timezone.now())
    assert store_rows() == rows


def test_over_the_api_first_looked_at_then_done(cast: Cast) -> None:
    anna = cast.agent.remember("Anna", values={"city": "Oslo"})
    talk = Talk()
    talk.version(anna, "city", "Paris")
    made = talk.new("Job", title="pilot")
    path = f"/v1/chat/{talk.row.pk}/undo"
    assert cast.agent.post(path, {}).status == 403
    assert cast.stranger.post(path, {}).status == 403
    rows = store_rows()
    looked = cast.operator.post(path, {"dry_run": True}).ok()
    assert store_rows() == rows
    assert looked["dry_run"]
    assert looked["run_id"] is None
    done = cast.operator.post(path, {"reason": "wrong"}).ok()
    for name in ("taken_back", "items", "left", "left_count", "sentence"):
        assert done[name] == looked[name] or name == "sentence", name
    assert done["taken_back"] == {"topics": 1, "values": 1, "fields": 0, "links": 0, "merges": 0}
    assert {(each["what"], each["topic_id"]) for each in done["items"]} == {("topic", made), ("value", anna)}
    assert cast.operator.get(f"/v1/runs/{done['run_id']}").ok()["event"] == "by_hand"
    assert set(cast.operator.post(path, {}).ok()["taken_back"].values()) == {0}
    assert cast.operator.post(f"/v1/chat/{uuid.uuid4()}/undo", {}).status == 404


def test_the_number_of_statements_does_not_grow(agent: Caller) -> None:
    talks = [Talk(), Talk()]
    for talk, many in zip(talks, (2, 12), strict=True):
        for number in range(many):
            topic = agent.remember(f"topic {number}", values={"city": "Oslo"})
            talk.version(topic, "city", "Paris")
            talk.extend(topic, phone="12")
            talk.new(f"made {number}", (topic,), a="1")
    counted = []
    for talk in talks:
        with CaptureQueriesContext(connection) as looked:
            talk.look()
        # Without merges a look locks nothing.
        assert len(looked) <= 12
        assert all(
            each["sql"].lstrip().startswith(("SELECT", "WITH", "SAVEPOINT", "ROLLBACK", "RELEASE"))
            and " FOR " not in each["sql"]
            for each in looked
        )
        with CaptureQueriesContext(connection) as asked:
            conversation_undo(talk.row.pk, principal=OPERATOR, reason="", now=timezone.now())
        counted.append(len(asked))
    assert counted[0] == counted[1], counted
    assert Conversation.objects.filter(undone_at__isnull=False).count() == 2
    assert Topic.objects.filter(released_at__isnull=False).count() == 14
    assert Link.objects.count() == 14
    assert Revision.objects.filter(provenance="undo").count() == 28


def test_while_the_assistant_is_at_a_message_nothing_is_taken_back(
    cast: Cast, model: Model, settings: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def why(*_args: Any, **_more: Any) -> Any:
        # As an operator would, at this moment.
        path = f"/v1/chat/{Conversation.objects.get().pk}/undo"
        said.append(cast.operator.post(path, {"dry_run": True}).ok()["sentence"])
        said.append(cast.operator.post(path, {}))
        return {"sentences": []}

    said: list[Any] = []
    known = cast.agent.remember("Harbor walk")
    monkeypatch.setattr(reading, "topic_why", why)
    model.answers(
        calling(("new_topic", {"title": "One", "summary": "First."}), ("why", {"topic_id": known})),
        calling(("new_topic", {"title": "Two", "summary": "Second."})),
        "Done.",
    )
    reply = tell(cast.agent, "Remember one and two.")
    assert said[0].endswith(f"1 memory is released. {said[1].detail}")
    assert (said[1].status, said[1].code) == (409, "busy")
    assert not Topic.objects.filter(released_at__isnull=False).exists()
    path = f"/v1/chat/{reply['conversation_id']}/undo"
    assert cast.operator.post(path, {}).ok()["taken_back"]["topics"] == 2
    # One whose process is gone is closed on the way, and what may be left of the process writes nothing any more.
    conversation = Conversation.objects.get()
    now = clock.stop()
    turn = turn_begin(conversation, message="three", model="m", now=now)

    def write(item: IngestItem) -> ItemReply:
        return item_write(
            item, principal=LEADER, now=timezone.now(), conversation_id=conversation.pk, check=lambda: turn_check(turn)
        )

    item = IngestItem(placement="new_topic", title="Three", fields=[IngestField(name="a", value="1")])
    write(item)
    clock.forward(seconds=settings.MEMSTATE_CHAT_TIMEOUT_SECONDS + 90)
    assert cast.operator.post(path, {}).ok()["taken_back"]["topics"] == 1
    assert ConversationTurn.objects.get(place=2).ended == "lost"
    with pytest.raises(Conflict) as refused:
        write(item)
    assert refused.value.code == "conflict"
    assert Topic.objects.filter(released_at__isnull=True).count() == 1


def test_what_was_looked_at_is_what_is_done(cast: Cast) -> None:
    anna = cast.agent.remember("Anna", values={"city": "Oslo"})
    talk = Talk()
    made = talk.new("Job", title="pilot")
    path = f"/v1/chat/{talk.row.pk}/undo"
    looked = cast.operator.post(path, {"dry_run": True}).ok()
    talk.version(anna, "city", "Paris")
    rows = store_rows()
    drifted = cast.operator.post(path, {"digest": looked["digest"]})
    assert (drifted.status, drifted.code) == (409, "changed-meanwhile")
    assert store_rows() == rows
    again = cast.operator.post(path, {"dry_run": True}).ok()
    assert again["digest"] != looked["digest"]
    assert cast.operator.post(path, {"digest": again["digest"]}).ok()["taken_back"]["values"] == 1
    assert cast.operator.topic(made)["released_at"]
