"""What a study does when the model is of no help, the worker is lost, or someone steps in between."""

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from memory.agents.study import work
from memory.agents.study.control import study_resume
from memory.agents.study.progress import session_ids, study_as_json
from memory.core.errors import Conflict, MemoryProblem
from memory.erasure.purge import topics_purge
from memory.forgetting.runs import run_undo
from memory.llm.client import model_forget
from memory.models import ConversationWrite, Link, StudyJob, Topic
from memory.resumable import job_cancel
from tests.agents.study.reader import noting, part_of, reader, rounds_of, text_about
from tests.agents.study.shop import started, worked
from tests.cast import Caller, Clock, principal_like, raises_code
from tests.llm.server import Asked, Model, Step, calling, closing, failing, limited, refusing, rejecting, said, slow

pytestmark = pytest.mark.django_db

TEXT = text_about(8, chars=5_000)
AGENT = principal_like("agent")


@pytest.fixture(autouse=True)
def _short(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # No turn waits: its clock may stand still.
    monkeypatch.setattr(work, "SHORT_WAIT", 0.0)
    settings.MEMSTATE_CHAT_CHUNK_CHARS = 2_000
    settings.MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS = 8


def learned(job: StudyJob) -> list[Any]:
    """What a study has written, without ids: per topic title, fields with their histories, links."""
    ids = session_ids(job)
    place = {topic_id: number for number, topic_id in enumerate(ids)}
    topics = Topic.objects.filter(pk__in=ids).prefetch_related("fields__revisions")
    got = []
    for topic in sorted(topics, key=lambda each: place[each.pk]):
        fields = {
            field.name: [each.value for each in sorted(field.revisions.all(), key=lambda each: each.seq)]
            for field in topic.fields.all()
        }
        links = topic.links_out.values_list("kind", "target_id")
        got.append((place[topic.pk], topic.title, fields, sorted((kind, place.get(to)) for kind, to in links)))
    return got


def undisturbed() -> list[Any]:
    return learned(worked(started(TEXT, scope="/undisturbed")))


def rested(clock: Clock, job: StudyJob) -> None:
    """Let the time pass that the job waits, and forget that the model has failed."""
    job.refresh_from_db()
    assert job.not_before is not None
    clock.forward(seconds=(job.not_before - clock.now).total_seconds() + 1)
    model_forget()


def test_a_worker_that_is_lost_loses_the_part_at_hand_alone(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model.answers(reader)
    expected = undisturbed()
    model.asked.clear()
    job = started(TEXT, scope="/lost")
    real, stored = work.BuildStep.store, [0]

    def dies(self: Any, **more: Any) -> Any:
        stored[0] += 1
        if stored[0] == 2:
            raise KeyboardInterrupt
        return real(self, **more)

    monkeypatch.setattr(work.BuildStep, "store", dies)
    with pytest.raises(KeyboardInterrupt):
        worked(job)
    job.refresh_from_db()
    assert job.done == 1
    job = worked(job)
    assert job.status == "done"
    assert learned(job) == expected
    begun = [part_of(each) for each in model.chats if part_of(each) and not rounds_of(each)]
    assert begun == [1, 2, *range(2, job.segments + 1)]


@pytest.mark.parametrize("stage", ["building", "linking"])
def test_of_two_workers_at_one_step_the_second_throws_its_work_away(
    model: Model, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    model.answers(reader)
    expected = undisturbed()
    job = started(TEXT, scope="/two")
    real = work._model_run
    overtaken: list[bool] = []

    def slower(mine: StudyJob, step: Any) -> Any:
        end = real(mine, step)
        if mine.phase == stage and not overtaken:
            overtaken.append(True)
            # Another process, which has a connection and so a lock of its own, is through first.
            work.study_step(mine.pk, clock=timezone.now, until=0.0, cuts=[])
        return end

    monkeypatch.setattr(work, "_model_run", slower)
    job = worked(job)
    assert (job.status, overtaken) == ("done", [True])
    assert learned(job) == expected
    steps = [(each["phase"], each["at"]) for each in job.steps]
    assert len(steps) == len(set(steps))


def test_cancelled_it_stops_before_the_next_round_and_resumed_it_goes_on(agent: Caller, model: Model) -> None:
    model.answers(reader)
    expected = undisturbed()
    job = started(TEXT, scope="/cancelled")
    asked: list[Asked] = []

    def cancelled(each: Asked) -> Any:
        asked.append(each)
        return reader(each)

    model.answers(cancelled)
    real = work.BuildStep._list

    def cancels(self: Any, more: Any) -> Any:
        if self.at == 1 and StudyJob.objects.get(pk=job.pk).status == "working" and len(asked) < 12:
            job_cancel(StudyJob, job.pk, principal=AGENT, now=timezone.now())
        return real(self, more)

    work.BuildStep._list = cancels  # type: ignore[method-assign]
    try:
        job = worked(job)
    finally:
        work.BuildStep._list = real  # type: ignore[method-assign]
    assert (job.status, job.done) == ("cancelled", 1)
    # The round in which it was cancelled was the last.
    assert [rounds_of(each) for each in asked if part_of(each) == 2] == [0]
    before = learned(job)
    assert learned(worked(job)) == before
    handed: list[uuid.UUID] = []
    study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=handed.append)
    assert handed == [job.pk]
    with pytest.raises(Conflict):
        study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=handed.append)
    job = worked(job)
    assert job.status == "done"
    assert learned(job) == expected
    with pytest.raises(Conflict):
        job_cancel(StudyJob, job.pk, principal=AGENT, now=timezone.now())


@pytest.mark.parametrize(
    ("step", "moment", "at_once"),
    [
        (work.BuildStep, "prepare", True),
        (work.BuildStep, "prepare", False),
        (work.LinkStep, "prepare", False),
        (work.LinkStep, "lock", True),
    ],
)
def test_cancelled_at_a_moment_in_which_a_step_is_stored_it_loses_that_step_at_most(
    model: Model, monkeypatch: pytest.MonkeyPatch, step: Any, moment: str, at_once: bool
) -> None:
    model.answers(reader)
    expected = undisturbed()
    job = started(TEXT, scope="/moment")
    real, met = getattr(step, moment), list[int]()

    def stepped_in(self: Any, *log: Any) -> Any:
        if not met and self.at:
            met.append(self.at)
            job_cancel(StudyJob, job.pk, principal=AGENT, now=timezone.now())
            if at_once:
                study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=lambda _job: None)
        return real(self, *log)

    monkeypatch.setattr(step, moment, stepped_in)
    job = worked(job)
    assert len(met) == 1
    if not at_once:
        assert (job.status, job.done if step is work.BuildStep else job.linked) == ("cancelled", met[0])
        study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=lambda _job: None)
        job = worked(job)
    assert (job.status, learned(job)) == ("done", expected)
    steps = [(each["phase"], each["at"]) for each in job.steps]
    assert len(steps) == len(set(steps))


@pytest.mark.parametrize(("after", "wait"), [(3600, 3600.0), (None, work.FIRST_WAIT)])
def test_a_rate_limit_beyond_patience_gives_the_worker_back(
    model: Model, clock: Clock, settings: Any, after: int | None, wait: float
) -> None:
    settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES = 1
    model.answers(reader)
    expected = undisturbed()
    job = started(TEXT, scope="/limited")
    clock.stop()
    # In the first part after two rounds: what they wrote is kept, and goes on.
    model.answers(*[reader] * 2, limited(after=after))
    job = worked(job)
    assert (job.status, job.done, job.tries) == ("working", 0, 1)
    assert job.not_before == clock.now + dt.timedelta(seconds=wait)
    assert "rate-limiting" in study_as_json(job)["failure"]
    assert study_as_json(job)["topics"] > 0
    asked = len(model.chats)
    assert worked(job, seconds=0.2).not_before == job.not_before
    assert len(model.chats) == asked

    def goes_on(each: Asked) -> Any:
        # Told what it has noted, it has only the links left to make.
        if "noted" in (each.data if part_of(each) == 1 else {}) and rounds_of(each) == 1:
            return said("done") if "knows" not in each.data["part"] else links_of(each)
        return reader(each)

    model.answers(goes_on)
    rested(clock, job)
    job = worked(job)
    assert (job.status, job.tries, study_as_json(job)["failure"]) == ("done", 0, None)
    assert [each["ended"] for each in job.steps[:2]] == ["limited", "done"]
    assert learned(job) == expected


def links_of(asked: Asked) -> Step:
    """The third round of a reader, who has listed the topics in this dialogue and made none."""
    empty = [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "none", "arguments": "{}"}}]}]
    return noting(Asked(asked.method, asked.path, asked.headers, {"messages": [*asked.messages, *empty]}, asked.at))


@pytest.mark.parametrize("trouble", [failing(503), closing(), slow()])
def test_a_study_fails_after_three_model_failures_and_can_be_resumed(
    model: Model, clock: Clock, settings: Any, monkeypatch: pytest.MonkeyPatch, trouble: Step
) -> None:
    monkeypatch.setattr(work, "MAX_TRIES", 3)
    model.answers(reader)
    expected = undisturbed()
    job = started(TEXT, scope="/away")
    clock.stop()
    model.answers(trouble)
    waits = []
    for _try in range(2):
        job = worked(job)
        assert job.status == "working"
        assert job.not_before is not None
        waits.append((job.not_before - clock.now).total_seconds())
        rested(clock, job)
    assert waits == [15.0, 30.0]
    job = worked(job)
    assert (job.status, job.done, session_ids(job)) == ("failed", 0, [])
    assert "3 times in a row" in job.failure
    model_forget()
    model.answers(reader)
    study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=lambda _job: None)
    job = worked(job)
    assert (job.status, job.failure) == ("done", "")
    assert learned(job) == expected


def test_an_endless_loop_ends_at_the_bound_and_what_it_wrote_is_kept(model: Model) -> None:
    def endless(asked: Asked) -> Any:
        if not part_of(asked):
            return said("done")
        return calling(("new_topic", {"title": f"Topic {rounds_of(asked)}", "summary": "again"}))

    model.answers(endless)
    job = worked(started(TEXT))
    assert job.status == "done"
    assert [each["rounds"] for each in job.steps[: job.segments]] == [8] * job.segments
    assert study_as_json(job)["topics"] == 8 * job.segments == Topic.objects.exclude(pk=job.source_id).count()
    assert f"{job.segments} parts were stopped after 8 rounds" in job.warning


def test_a_part_that_never_fits_into_a_turn_comes_to_its_end_all_the_same(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One answer takes as long as a dialogue may.
    monkeypatch.setattr(work, "MAX_DIALOGUE", 0.0)

    def endless(asked: Asked) -> Any:
        return (
            calling(("new_topic", {"title": f"Topic {len(asked.data.get('noted', []))}"})) if part_of(asked) else "done"
        )

    model.answers(endless)
    job = started("One part alone, and short. " * 10)
    handed: list[uuid.UUID] = []
    # A round in each turn, and then the model's last word, which is none.
    for turn in range(9):
        assert job.done == 0, turn
        job = worked(job, seconds=0.0, enqueue=handed.append)
    assert (job.done, len(handed)) == (1, 9)
    assert [topic.title for topic in Topic.objects.filter(kind=job.kind).order_by("created_at", "title")] == [
        f"Topic {number}" for number in range(8)
    ]
    assert "stopped after 8 rounds" in job.warning


def test_what_is_refused_malformed_or_brings_nothing_is_reported_and_passed_over(model: Model) -> None:
    def troubled(asked: Asked) -> Any:
        part = part_of(asked)
        if part == 1:
            return refusing()
        if part == 2:
            return said("There is nothing to do.")
        if part == 3 and not rounds_of(asked):
            return calling(
                ("new_topic", '{"title": '), ("new_topic", {"name": "x"}), ("no_such_tool", {}), ("topic", "[]")
            )
        return reader(asked)

    model.answers(troubled)
    job = worked(started(TEXT))
    assert job.status == "done"
    assert [each["ended"] for each in job.steps[:3]] == ["refused", "nothing", "done"]
    assert "refused part 1" in job.warning
    assert "Part 2 has produced no memory" in job.warning
    answered = next(each.results for each in model.chats if part_of(each) == 3 and rounds_of(each) == 1)
    assert ["error" in each for each in answered] == [True] * 4


def test_an_endpoint_that_takes_nothing_fails_the_study_and_no_part_is_lost(model: Model) -> None:
    model.answers(rejecting("tools are not supported"))
    job = worked(started(TEXT))
    assert (job.status, job.done, job.steps) == ("failed", 0, [])
    assert job.failure
    model.answers(reader)
    study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=lambda _job: None)
    assert worked(job).status == "done"
    # One part alone that it does not take is passed over.
    model.answers(lambda asked: rejecting("content policy") if part_of(asked) == 2 else reader(asked))
    job = worked(started(TEXT, scope="/again"))
    assert (job.status, job.steps[1]["ended"]) == ("done", "rejected")
    assert "rejected part 2" in job.warning


def test_a_step_that_breaks_is_tried_again_and_not_for_ever(
    model: Model, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "MAX_TRIES", 2)
    model.answers(reader)
    job = started(TEXT)
    clock.stop()

    def broken(*_args: Any, **_more: Any) -> Any:
        raise RuntimeError("a secret in the message")

    monkeypatch.setattr(work.BuildStep, "store", broken)
    for status in ("working", "failed"):
        with pytest.raises(RuntimeError):
            worked(job)
        job.refresh_from_db()
        assert job.status == status
        clock.forward(minutes=1)
    assert job.failure.endswith(": RuntimeError")


@pytest.mark.parametrize("moment", ["between two parts", "while a part is read"])
def test_a_text_that_is_erased_is_not_read_to_its_end_and_does_not_come_back(
    model: Model, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    model.answers(reader)
    job = started(TEXT)
    job = worked(job, seconds=0.0)
    assert job.done == 1
    source = job.source_id
    assert source is not None

    def purge() -> None:
        topics_purge([source], principal=principal_like("operator"), reason="", now=timezone.now())

    if moment == "between two parts":
        purge()
    else:
        real = work._model_run

        def overtaken(mine: StudyJob, step: Any) -> Any:
            end = real(mine, step)
            purge()
            return end

        monkeypatch.setattr(work, "_model_run", overtaken)
    left = set(session_ids(job))
    job = worked(job)
    assert (job.status, job.done, job.source_id) == ("cancelled", 1, None)
    assert "erased" in job.failure
    assert set(Topic.objects.values_list("pk", flat=True)) <= left
    with raises_code(Conflict, "erased-meanwhile"):
        study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=lambda _job: None)


def test_topics_that_have_gone_are_passed_over_and_reported(agent: Caller, model: Model, settings: Any) -> None:
    settings.MEMSTATE_STUDY_PHASE_DELAY_SECONDS = 600.0
    model.answers(reader)
    job = worked(started(TEXT))
    ids = session_ids(job)
    topics_purge(ids[:1], principal=principal_like("operator"), reason="", now=timezone.now())
    Topic.objects.filter(pk=ids[1]).update(rung=3)
    target = agent.remember("Target", topic_kind="person")
    StudyJob.objects.update(not_before=None)
    model.asked.clear()
    real: Callable[..., Any] = work.LinkStep.prepare

    def merges(asked: Asked) -> Any:
        if rounds_of(asked):
            return said("done")
        own = asked.data[0]["topic_id"]
        return calling(("merge_into", {"topic_id": own, "into_topic_id": target}))

    def target_goes(self: Any) -> None:
        real(self)
        if self.at:
            Topic.objects.filter(pk=target).update(rung=3)

    model.answers(merges)
    work.LinkStep.prepare = target_goes  # type: ignore[method-assign]
    try:
        job = worked(job)
    finally:
        work.LinkStep.prepare = real  # type: ignore[method-assign]
    assert (job.status, job.linked) == ("done", len(ids))
    shown = {topic["topic_id"] for each in model.chats for topic in each.data}
    assert shown == {str(each) for each in ids[2:]}
    assert "2 memories became inactive" in job.warning
    assert "no longer possible" in job.warning
    (write,) = ConversationWrite.objects.filter(what="merged")
    assert str(write.topic_id) == str(ids[2])


@pytest.mark.parametrize("which", ["read", "given"])
def test_no_link_is_made_in_words_of_a_topic_that_was_erased_meanwhile(
    agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    known = agent.remember("Elsewhere", topic_kind="city", values={"password": "xyzzy"})
    stays = agent.remember("Oslo", topic_kind="city")

    def repeats(asked: Asked) -> Any:
        if part_of(asked):
            return (
                calling(*(("new_topic", {"title": f"Person {each}"}) for each in range(2)))
                if not rounds_of(asked)
                else "done"
            )
        if not rounds_of(asked):
            return calling(("topic", {"topic_id": known}))
        link = {"from_topic_id": asked.data[1]["topic_id"], "to_topic_id": stays, "kind": "xyzzy"}
        return calling(("link", link)) if rounds_of(asked) == 1 else "done"

    model.answers(repeats)
    real, purged = work.LinkStep.prepare, list[Any]()

    def overtaken(self: Any) -> None:
        real(self)
        purged.append(known if which == "read" else self.own[0])
        topics_purge([uuid.UUID(str(purged[0]))], principal=principal_like("operator"), reason="", now=timezone.now())

    monkeypatch.setattr(work.LinkStep, "prepare", overtaken)
    job = worked(started("A short text about two people."))
    assert (job.status, job.links, len(purged)) == ("done", 0, 1)
    assert not Link.objects.filter(kind="xyzzy").exists()
    assert "1 change was no longer possible" in job.warning


def test_a_model_that_the_endpoint_does_not_know_fails_the_study_and_no_part_is_lost(model: Model) -> None:
    job = started(TEXT)
    StudyJob.objects.filter(pk=job.pk).update(model="a-typing-error")
    model.answers(reader, failing(404))
    job = worked(job)
    assert (job.status, job.done, "'a-typing-error' does not exist" in job.failure) == ("failed", 0, True)
    model.answers(reader)
    study_resume(job.pk, principal=AGENT, now=timezone.now(), enqueue=lambda _job: None)
    assert worked(job).status == "done"


@pytest.mark.parametrize(
    ("after", "ended", "wait"),
    [
        ("999999999", "failed", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", "failed", None),
        ("-5", "working", 15),
        ("soon", "working", 15),
        ("nan", "working", 15),
        ("inf", "working", 15),
        ("", "working", 15),
    ],
)
def test_no_retry_after_holds_a_study_for_ever(
    model: Model, clock: Clock, settings: Any, after: str, ended: str, wait: float | None
) -> None:
    settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES = 0
    clock.stop()
    model.answers(limited(after=after))
    job = worked(started("A short text."))
    assert (job.status, job.not_before and (job.not_before - clock.now).total_seconds()) == (ended, wait)
    assert ("a day or longer" in job.failure) == (ended == "failed")


def test_two_merges_into_one_topic_are_undone_the_last_one_first(agent: Caller, model: Model) -> None:
    target = agent.remember("Target", values={"fact0": "first"})
    before = agent.topic(target)["fields"]

    def merges(asked: Asked) -> Any:
        if part_of(asked):
            return reader(asked)
        calls = [("merge_into", {"topic_id": each["topic_id"], "into_topic_id": target}) for each in asked.data]
        return said("done") if rounds_of(asked) else calling(*calls)

    model.answers(merges)
    job = worked(started(TEXT))
    writes = list(ConversationWrite.objects.filter(what="merged").order_by("-id"))
    assert len(writes) == job.to_link == study_as_json(job)["merged"]
    for write in writes:
        assert write.run_id is not None
        undone = run_undo(write.run_id, principal=principal_like("operator"), reason="", now=timezone.now())
        assert undone.conflicts == []
    assert not Topic.objects.exclude(merged_into=None).exists()
    assert [each["current"]["value"] for each in agent.topic(target)["fields"]] == [
        each["current"]["value"] for each in before
    ]


def test_a_text_that_is_cut_otherwise_than_when_it_was_begun_is_not_read_in_part(model: Model) -> None:
    model.answers(reader)
    job = worked(started(TEXT), seconds=0.0)
    # As if an upgrade had come in between.
    for segments in (job.segments - 1, job.segments + 1):
        StudyJob.objects.filter(pk=job.pk).update(segments=segments, status="working")
        job = worked(job)
        assert (job.status, job.done, "send the text again" in job.failure) == ("failed", 1, True)


def test_what_cannot_be_studied_is_refused(model: Model, settings: Any) -> None:
    settings.MEMSTATE_STUDY_MAX_CHARS = 2_000
    for text, scope, role, code in [
        ("x" * 2_001, "/", "agent", "too-large"),
        (" \n ", "/", "agent", "missing-member"),
        ("A text.", "/", "reader", "role-too-low"),
    ]:
        with raises_code(MemoryProblem, code):
            started(text, scope=scope, principal=principal_like(role))
    settings.MEMSTATE_LLM_MODEL = ""
    with raises_code(MemoryProblem, "model-not-configured"):
        started("A text.")
    assert not Topic.objects.exists()
