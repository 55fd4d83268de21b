"""Extraction in the background: progress, resuming, cancelling, and nothing done twice."""

import uuid
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from memory.erasure.purge import topics_purge
from memory.extraction import work
from memory.jobs import tasks
from memory.models import ApiKey, AuditEvent, ExtractionJob, Topic
from memory.resumable import job_step
from tests.cast import Caller, Clock, enqueued, principal_like
from tests.extraction.texts import long_text

TEXT = long_text(10_000)


def started(caller: Caller, content: str = TEXT, **members: Any) -> Any:
    answer = caller.post("/v1/extract?background=1", {"content": content, "store": True, **members})
    assert answer.status == 202, answer.body
    return answer.json


def got(caller: Caller, job_id: str) -> Any:
    return caller.get(f"/v1/extract/{job_id}").ok()


def facts() -> int:
    return Topic.objects.filter(kind="fact").count()


def test_a_long_text_is_worked_through_in_the_background(agent: Caller) -> None:
    job = started(agent)
    assert job["segments"] > 3
    assert (got(agent, job["job_id"])["status"], got(agent, job["job_id"])["progress"]) == ("working", 0)
    assert tasks.extraction_continue(job["job_id"]) == "done"
    reply = got(agent, job["job_id"])
    assert (reply["status"], reply["progress"], reply["done"]) == ("done", 1.0, job["segments"])
    assert len(reply["stored"]) == len(reply["extracted"]) == facts()
    assert reply["source_topic_id"] == job["source_topic_id"]
    assert set(AuditEvent.objects.filter(after__job=job["job_id"]).values_list("action", flat=True)) == {
        "extraction_started",
        "extraction_done",
    }


def test_it_finds_what_a_request_finds(agent: Caller) -> None:
    now = agent.post("/v1/extract", {"content": TEXT, "store": True, "scope": "/a"}).ok()
    job = started(agent, scope="/b")
    tasks.extraction_continue(job["job_id"])
    assert got(agent, job["job_id"])["extracted"] == now["extracted"]


def test_a_killed_worker_is_followed_by_another_that_repeats_nothing(
    agent: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.stop()
    job = started(agent)
    stored: list[int] = []
    real = work.facts_store

    def dies_at_the_third(*args: Any, **more: Any) -> Any:
        if len(stored) == 2:
            raise KeyboardInterrupt
        stored.append(1)
        return real(*args, **more)

    monkeypatch.setattr(work, "facts_store", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        tasks.extraction_continue(job["job_id"])
    monkeypatch.setattr(work, "facts_store", real)
    assert got(agent, job["job_id"])["done"] == 2
    half = facts()
    OrmQ.objects.all().delete()
    tasks.upkeep()
    assert enqueued("extraction_continue") == []
    clock.forward(minutes=5)
    # Once, however long the queue stands.
    for _minute in range(2):
        tasks.upkeep()
        assert enqueued("extraction_continue") == [job["job_id"]]
        clock.forward(minutes=1)
    assert tasks.extraction_continue(job["job_id"]) == "done"
    reply = got(agent, job["job_id"])
    assert reply["skipped_duplicates"] == []
    assert len(set(reply["stored"])) == facts() > half


def test_a_job_that_runs_twice_changes_nothing_more(agent: Caller) -> None:
    job = started(agent)
    tasks.extraction_continue(job["job_id"])
    before = facts()
    assert tasks.extraction_continue(job["job_id"]) == "done"
    assert facts() == before


def stepped(job_id: uuid.UUID) -> bool:
    """Do one step of an extraction."""
    segments = work.Segments(TEXT)

    def step() -> bool:
        return work._step(ExtractionJob.objects.get(pk=job_id), segments, clock=timezone.now)

    return job_step(ExtractionJob, job_id, step, clock=timezone.now)


def test_two_workers_on_one_segment_store_it_once(agent: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    job = started(agent)
    real = work.Segments.facts

    def overtaken(self: Any, number: int, **more: Any) -> Any:
        if number == 0 and ExtractionJob.objects.get().done == 0:
            monkeypatch.setattr(work.Segments, "facts", real)
            stepped(uuid.UUID(job["job_id"]))
        return real(self, number, **more)

    monkeypatch.setattr(work.Segments, "facts", overtaken)
    tasks.extraction_continue(job["job_id"])
    reply = got(agent, job["job_id"])
    assert reply["skipped_duplicates"] == []
    assert len(reply["methods"]) == job["segments"]


def test_a_cancelled_job_keeps_what_it_has_and_does_no_more(agent: Caller) -> None:
    job = started(agent)
    work.extraction_work(uuid.UUID(job["job_id"]), clock=timezone.now, seconds=0.0001)
    reply = agent.post(f"/v1/extract/{job['job_id']}/cancel").ok()
    assert reply["status"] == "cancelled"
    before = facts()
    assert tasks.extraction_continue(job["job_id"]) == "cancelled"
    assert facts() == before
    assert agent.post(f"/v1/extract/{job['job_id']}/cancel").status == 409


def test_the_same_text_again_is_all_known(agent: Caller) -> None:
    first = started(agent)
    tasks.extraction_continue(first["job_id"])
    second = started(agent)
    tasks.extraction_continue(second["job_id"])
    assert second["source_topic_id"] == first["source_topic_id"]
    reply = got(agent, second["job_id"])
    assert reply["stored"] == []
    assert len(reply["skipped_duplicates"]) == facts()
    assert all(each["text"] in TEXT for each in reply["skipped_duplicates"])


def test_an_erased_text_is_not_read_to_its_end(agent: Caller) -> None:
    job = started(agent)
    topics_purge(
        [uuid.UUID(job["source_topic_id"])], principal=principal_like("operator"), reason="", now=timezone.now()
    )
    assert tasks.extraction_continue(job["job_id"]) == "cancelled"
    reply = got(agent, job["job_id"])
    assert "erased" in reply["failure"]
    assert facts() == 0


@pytest.mark.parametrize("moment", ["between two steps", "while a segment is read"])
def test_a_text_that_is_erased_after_the_first_step_does_not_come_back(
    agent: Caller, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    job = started(agent)
    job_id, source = uuid.UUID(job["job_id"]), uuid.UUID(job["source_topic_id"])
    assert stepped(job_id)
    assert facts() > 0
    left: list[int] = []

    def purge() -> None:
        topics_purge([source], principal=principal_like("operator"), reason="", now=timezone.now())
        left.append(facts())

    if moment == "between two steps":
        purge()
    else:
        real = work.Segments.facts

        def overtaken(self: Any, number: int, **more: Any) -> Any:
            found = real(self, number, **more)
            purge()
            return found

        monkeypatch.setattr(work.Segments, "facts", overtaken)
    assert not stepped(job_id)
    assert left == [facts()]
    assert not Topic.objects.filter(kind="source").exists()
    reply = got(agent, job["job_id"])
    assert (reply["status"], reply["done"], reply["source_topic_id"]) == ("cancelled", 1, None)
    assert "erased" in reply["failure"]


def test_a_job_holds_no_word_of_the_text(agent: Caller) -> None:
    job = started(agent)
    tasks.extraction_continue(job["job_id"])
    row = ExtractionJob.objects.filter(pk=job["job_id"]).values().get()
    written = str({name: value for name, value in row.items() if name not in ("actor", "identity")})
    for word in ("Person", "list", "Oslo", "bicycle", "cellar"):
        assert word not in written


def test_a_step_that_fails_is_tried_once_more_and_then_the_job_has_failed(
    agent: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = started(agent)

    def broken(*_args: Any, **_more: Any) -> Any:
        raise RuntimeError("a secret in the message")

    monkeypatch.setattr(work, "facts_store", broken)
    for _turn in range(2):
        with pytest.raises(RuntimeError):
            tasks.extraction_continue(job["job_id"])
    reply = got(agent, job["job_id"])
    assert reply["status"] == "failed"
    assert "RuntimeError" in reply["failure"]
    assert "secret" not in reply["failure"]


def test_in_the_background_facts_are_stored(agent: Caller) -> None:
    answer = agent.post("/v1/extract?background=1", {"content": TEXT})
    assert answer.status == 400
    assert answer.code == "contradictory-request"


LOST = {"revoked": {"revoked_at": timezone.now()}, "demoted": {"role": "reader"}, "narrowed": {"scope": "/elsewhere"}}


@pytest.mark.parametrize("change", LOST.values(), ids=LOST)
def test_a_job_ends_with_the_right_of_its_key(
    agent: Caller, operator: Caller, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    job = started(agent, scope="/user")
    key, real, read = ApiKey.objects.filter(name="agent"), work.Segments.facts, list[int]()

    def losing(self: Any, number: int, **more: Any) -> Any:
        # In the midst of the third segment, whose facts are then not stored.
        read.append(number)
        if number == 2:
            key.update(**change)
        return real(self, number, **more)

    monkeypatch.setattr(work.Segments, "facts", losing)
    assert tasks.extraction_continue(job["job_id"]) == "failed"
    before, reply = facts(), got(operator, job["job_id"])
    assert (reply["status"], reply["done"], len(reply["stored"])) == ("failed", 2, before)
    assert "key:agent" in reply["failure"]
    assert AuditEvent.objects.filter(action="extraction_failed", after__job=job["job_id"]).count() == 1
    # Nor is a segment read for one whose key has ended before its turn.
    key.update(revoked_at=None, role="agent", scope="/")
    job = started(agent, scope="/session")
    key.update(**change)
    assert tasks.extraction_continue(job["job_id"]) == "failed"
    assert (facts(), read) == (before, [0, 1, 2])


def test_jobs_of_other_scopes_are_not_there(alice: Caller, stranger: Caller, reader: Caller) -> None:
    job = started(alice)
    assert stranger.get(f"/v1/extract/{job['job_id']}").status == 404
    assert stranger.post(f"/v1/extract/{job['job_id']}/cancel").status == 404
    assert reader.get(f"/v1/extract/{job['job_id']}").status == 200
    assert reader.post(f"/v1/extract/{job['job_id']}/cancel").status == 403
