"""Studies over HTTP: read, listed, cancelled and resumed, by those in whose scope they are."""

import uuid
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from memory.agents.chat.undo import conversation_undo
from memory.agents.study import work
from memory.agents.study.control import studies_stalled
from memory.jobs import tasks
from memory.models import ApiKey, StudyJob, Topic
from tests.agents.chat.talk import say
from tests.agents.study.reader import reader, text_about
from tests.agents.study.shop import principal_of_key, started, study_ready, worked
from tests.cast import Caller, Clock, principal_like
from tests.llm.server import Model


def test_studies_are_listed_newest_first_and_of_one_conversation(agent: Caller) -> None:
    ids = [study_ready(scope=f"/s{number}") for number in range(3)]
    page = agent.get("/v1/studies?limit=2").ok()
    assert [each["study_id"] for each in page["items"]] == ids[:0:-1]
    rest = agent.get(f"/v1/studies?limit=2&cursor={page['next']}").ok()
    assert ([each["study_id"] for each in rest["items"]], rest["next"]) == (ids[:1], None)
    one = agent.get(f"/v1/studies/{ids[0]}").ok()
    assert one == rest["items"][0]
    assert (one["status"], one["phase"], one["segments"], one["progress"]) == ("working", "building", 1, 0)
    of_one = agent.get(f"/v1/studies?conversation_id={one['conversation_id']}").ok()["items"]
    assert of_one == [one]
    assert agent.get("/v1/studies?cursor=elsewhere").status == 422


def test_a_study_is_cancelled_and_resumed_which_calls_the_worker(agent: Caller) -> None:
    study = study_ready()
    assert agent.post(f"/v1/studies/{study}/cancel").ok()["status"] == "cancelled"
    assert agent.post(f"/v1/studies/{study}/cancel").code == "conflict"
    before = OrmQ.objects.count()
    resumed = agent.post(f"/v1/studies/{study}/resume").ok()
    assert (resumed["status"], resumed["finished_at"]) == ("working", None)
    assert OrmQ.objects.count() == before + 1
    answer = agent.post(f"/v1/studies/{study}/resume")
    assert (answer.status, answer.code) == (409, "conflict")


def test_studies_are_for_those_who_began_them_and_for_operators(
    agent: Caller, alice: Caller, stranger: Caller, auditor: Caller, operator: Caller
) -> None:
    study = study_ready(scope="/user/alice")
    # Another key of the scope does not know the conversation, so it does not know the study.
    for other in (alice, stranger, auditor):
        assert other.get(f"/v1/studies/{study}").status == 404
        assert other.get("/v1/studies").ok()["items"] == []
    for other in (alice, stranger):
        assert other.post(f"/v1/studies/{study}/cancel").status == 404
        assert other.post(f"/v1/studies/{study}/resume").status == 404
    assert auditor.post(f"/v1/studies/{study}/cancel").status == 403
    for own in (agent, operator):
        assert [each["study_id"] for each in own.get("/v1/studies").ok()["items"]] == [study]
        assert own.post(f"/v1/studies/{study}/cancel").ok()["status"] == "cancelled"
        assert own.post(f"/v1/studies/{study}/resume").ok()["status"] == "working"


def test_lists_and_looks_do_not_load_the_record_of_all_steps(agent: Caller) -> None:
    study = study_ready()
    StudyJob.objects.update(topics=7, steps=[{"phase": "building", "at": 0, "to": 1, "rounds": 1, "ended": "done"}])
    for path in ("/v1/studies", f"/v1/studies/{study}"):
        with CaptureQueriesContext(connection) as asked:
            got = agent.get(path).ok()
        assert [each["topics"] for each in got.get("items", [got])] == [7]
        assert not [each["sql"] for each in asked if '"told"' in each["sql"]]


def test_monitoring_is_reported_how_many_are_open(agent: Caller) -> None:
    study_ready("resume", scope="/stopped")
    study_ready()
    assert 'memstate_backlog{store="main",what="studies"} 1.0' in agent.get("/metrics").text


def test_so_many_texts_are_studied_at_once_and_no_more(
    agent: Caller, alice: Caller, model: Model, settings: Any
) -> None:
    settings.MEMSTATE_STUDY_MOST_OPEN_PER_KEY, settings.MEMSTATE_STUDY_MOST_OPEN = 2, 3
    model.answers({"intent": "ingest"})
    long = text_about(8, chars=12_000)
    begun = [say(agent, long).ok()["study"]["study_id"] for _each in range(2)]
    refused = say(agent, long)
    assert (refused.status, refused.code) == (409, "too-many-requests")
    # Nothing was written or queued for it.
    assert (StudyJob.objects.count(), OrmQ.objects.count()) == (2, 2)
    assert say(alice, long).ok()["study"]
    agent.post(f"/v1/studies/{begun[0]}/cancel").ok()
    assert say(agent, long).ok()["study"]
    # As many as the store takes: neither a new one, nor one that was stopped.
    agent.post(f"/v1/studies/{begun[1]}/cancel").ok()
    assert say(alice, long).ok()["study"]
    for answer in (say(agent, long), agent.post(f"/v1/studies/{begun[0]}/resume")):
        assert (answer.status, answer.code) == (409, "too-many-requests")


def test_a_study_ends_with_the_right_of_its_key_and_no_one_else_gives_it_back(
    agent: Caller, operator: Caller, model: Model, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEMSTATE_CHAT_CHUNK_CHARS = 2_000
    key = ApiKey.objects.get(name="agent")
    who, now = principal_of_key(key), timezone.now()
    text = text_about(8, chars=5_000)
    job = started(text, principal=who)
    real = work.BuildStep._list

    def revoking(self: Any, asked: Any) -> Any:
        # In the midst of a part, whose topics are then not written.
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=now)
        return real(self, asked)

    monkeypatch.setattr(work.BuildStep, "_list", revoking)
    model.answers(reader)
    job = worked(job)
    assert (job.status, job.done, "may no longer write here" in job.failure) == ("failed", 0, True)
    assert not Topic.objects.filter(kind=job.kind).exists()
    answer = operator.post(f"/v1/studies/{job.pk}/resume")
    assert (answer.status, answer.code, "key:agent" in answer.detail) == (409, "not-allowed", True)
    # Nor is the model asked for one whose key has ended before its turn.
    model.asked.clear()
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=None)
    job = started(text, principal=who)
    ApiKey.objects.filter(pk=key.pk).update(role="reader")
    assert (worked(job).status, model.asked) == ("failed", [])


def test_what_an_undo_has_stopped_is_not_resumed(agent: Caller, operator: Caller, model: Model) -> None:
    study = study_ready()
    job = StudyJob.objects.get(pk=study)
    conversation_undo(job.conversation_id, principal=principal_like("operator"), reason="", now=timezone.now())
    for caller in (agent, operator):
        answer = caller.post(f"/v1/studies/{study}/resume")
        assert (answer.status, answer.code) == (409, "erased-meanwhile")


# The queue


def entries() -> list[tuple[str, int]]:
    """The entries of the queue that are about studies: which study, and the number of the turn."""
    return [each.task["args"] for each in OrmQ.objects.order_by("id") if "study" in each.task["func"]]


def entry_done(number: int = 0) -> None:
    """Let the worker take up an entry of the queue."""
    row = [each for each in OrmQ.objects.order_by("id") if "study" in each.task["func"]][number]
    given = row.task["args"]
    row.delete()
    tasks.study_continue(*given)


def test_entries_of_the_queue_do_not_multiply(
    agent: Caller, model: Model, clock: Clock, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEMSTATE_CHAT_CHUNK_CHARS = 1_000
    monkeypatch.setattr(tasks, "turn_seconds", lambda: 0.0)
    model.answers({"intent": "ingest"})
    clock.stop()
    begun = []
    for _each in range(3):
        begun.append(say(agent, text_about(8, chars=12_000)).ok()["study"]["study_id"])
        clock.forward(seconds=1)
    model.answers(reader)
    first = [(each, 0) for each in begun]
    assert entries() == first
    # The queue does not come forward, and upkeep cannot know why: one a minute, and each once in three at most.
    for _minute in range(7):
        clock.forward(minutes=1)
        tasks.upkeep()
    assert entries()[3:] == [*first, first[0]]
    # Of copies one counts, and each turn calls one study, the one that has waited longest.
    for _entry in range(7):
        entry_done()
        clock.forward(seconds=1)
    assert sorted(entries()) == sorted((each, 1) for each in begun)
    assert [each.done for each in StudyJob.objects.order_by("id")] == [1, 1, 1]
    for _entry in range(6):
        entry_done()
        clock.forward(seconds=1)
    assert sorted(entries()) == sorted((each, 3) for each in begun)
    assert studies_stalled(now=clock.now) == []


def test_a_study_without_a_place_gives_its_worker_back_and_is_called_by_the_one_before(
    agent: Caller, model: Model, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.answers(reader)
    clock.stop()
    first, second = (started(text_about(4, chars=1_500), scope=f"/{each}") for each in ("a", "b"))
    handed: list[uuid.UUID] = []
    monkeypatch.setattr(tasks, "study_enqueue", handed.append)
    place = Place()
    monkeypatch.setattr("memory.agents.study.work.slot_acquired", place)
    place.free = False
    tasks.study_continue(str(second.pk), 0)
    assert (model.asked, handed) == ([], [])
    # The net catches it if no one calls.
    assert studies_stalled(now=clock.now) == [second.pk]
    tasks.study_continue(str(second.pk), 1)
    place.free = True
    assert tasks.study_continue(str(first.pk), 0) == "done"
    assert handed == [second.pk]
    assert tasks.study_continue(str(second.pk), 2) == "done"


class Place:
    """Places that others take."""

    free = True

    def __call__(self) -> Any:
        return nullcontext(self.free)
