"""Imports as jobs: begun twice, checked in vain, stopped, by whoever may, and taken back."""

import datetime as dt
import io
import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from django_q.models import Schedule

from memory.access.principal import SYSTEM, Principal
from memory.command.purge import topics_purge
from memory.domain.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.forgetting.runs import run_take_back
from memory.forgetting.standing import topics_archive, topics_pin, topics_release
from memory.hindsight.shadow import shadow_search
from memory.models import (
    AuditEvent,
    Conversation,
    ConversationTurn,
    ForgetAction,
    ForgetRun,
    ImportJob,
    Link,
    PolicyVersion,
    Topic,
)
from memory.transfer import back as back_room
from memory.transfer import importing as importing_room
from memory.transfer import work as work_room
from memory.transfer.back import import_look, import_release
from memory.transfer.importing import import_cancel, import_confirm, import_offer, import_start, imports_stalled
from memory.transfer.settle import CUT
from memory.transfer.shape import ORDER
from memory.transfer.work import import_work
from tests.cast import Cast, principal_like
from tests.forgetting.shop import policy_put
from tests.transfer.shop import emptied, ended, exported, lines

pytestmark = pytest.mark.django_db

ALICE = Principal("person:alice", "Alice", "operator", "/user/alice")


def nobody(_job: Any) -> None:
    """No worker: the test does the work."""


def kept(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def done(job: ImportJob) -> ImportJob:
    job = import_work(job.pk, clock=timezone.now, seconds=600)
    assert job.status == ImportJob.Status.DONE, (job.status, job.failure)
    return job


def test_a_file_that_two_begin_at_once_is_one_import(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        cast.agent.remember(f"Topic {number}")
        cast.agent.query(f"topic {number}")
    content = exported()
    emptied()
    path = kept(tmp_path, "file", content)
    offered = import_offer(path, principal=SYSTEM, now=timezone.now(), hand_over=nobody)
    import_work(offered.pk, clock=timezone.now, seconds=60)
    begun: list[ImportJob] = []
    real = importing_room.import_check

    def check(*args: Any, **named: Any) -> Any:
        report = real(*args, **named)
        if not begun:
            begun.append(offered)
            begun.append(import_start(path, principal=SYSTEM, now=timezone.now()))
        return report

    monkeypatch.setattr(importing_room, "import_check", check)
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    assert job.pk == begun[1].pk
    assert ImportJob.objects.filter(status="working").count() == 1
    for attempt in (
        lambda: import_confirm(offered.pk, principal=SYSTEM, now=timezone.now(), hand_over=nobody),
        lambda: import_start(path, principal=ALICE, now=timezone.now()),
    ):
        with pytest.raises(Conflict, match="being imported already"):
            attempt()
    done(job)
    assert exported() == content


def test_two_files_that_are_begun_in_an_empty_store_do_not_take_each_others_numbers(cast: Cast, tmp_path: Path) -> None:
    for scope in ("/one", "/two"):
        made = cast.agent.remember(f"In {scope}", scope=scope)
        cast.agent.ingest("extend_topic", topic_id=made, edges=[{"to_topic_id": made, "kind": "itself"}])
        cast.agent.query("in", scope=scope)
    # Each with the same numbers, as of stores of their own.
    files = [
        b"".join(
            line.replace(b'"id":2,', b'"id":1,') if b'"type":"access"' in line or b'"type":"link"' in line else line
            for line in lines(exported(scope=scope))
        )
        for scope in ("/one", "/two")
    ]
    emptied()
    jobs = [
        import_start(kept(tmp_path, str(at), content), principal=SYSTEM, now=timezone.now())
        for at, content in enumerate(files)
    ]
    assert [job.fresh for job in jobs] == [True, False]
    for job in reversed(jobs):
        counts = done(job).counts
        assert {sort: counts[sort] for sort in ("topic", "link", "access")} == {
            "topic": {"brought": 1},
            "link": {"brought": 1},
            "access": {"brought": 1},
        }


def test_who_joins_an_import_leaves_its_file_alone_while_it_is_there(cast: Cast, tmp_path: Path) -> None:
    cast.agent.remember("Something")
    content = exported()
    emptied()
    # A path may be longer than a name in a database usually is.
    deep = tmp_path.joinpath(*["x" * 200] * 3)
    deep.mkdir(parents=True)
    first, second = kept(deep, "first", content), kept(tmp_path, "second", content)
    job = import_start(first, principal=SYSTEM, now=timezone.now())
    assert import_start(second, principal=SYSTEM, now=timezone.now()).pk == job.pk
    job.refresh_from_db()
    assert job.file == str(first)
    os.unlink(first)
    assert import_start(second, principal=SYSTEM, now=timezone.now()).pk == job.pk
    done(job)
    assert exported() == content


def test_who_is_bound_to_a_scope_reaches_nothing_outside_it(cast: Cast, tmp_path: Path) -> None:
    mine = cast.alice.remember("Mine", scope="/user/alice")
    cast.alice.query("mine", scope="/user/alice")
    topics_pin([uuid.UUID(mine)], pinned=True, principal=ALICE, reason="keep", now=timezone.now())
    topics_purge([uuid.UUID(cast.agent.remember("Secret"))], principal=SYSTEM, reason="x", now=timezone.now())
    shadow_search(now=timezone.now(), limit=10)
    talk = Conversation.objects.create(
        id=uuid.uuid4(),
        scope="/user/alice",
        actor="a",
        identity="a",
        created_at=timezone.now(),
        moved_at=timezone.now(),
        turns=1,
    )
    ConversationTurn.objects.create(conversation=talk, place=1, scope="/user/alice", at=timezone.now())
    whole, part = exported(), exported(scope="/user/alice")
    emptied()
    # Somebody else's run and link, with the numbers that a forged journal may name.
    other = cast.agent.remember("Not Alice's", scope="/work")
    cast.agent.ingest("extend_topic", topic_id=other, edges=[{"to_topic_id": other, "kind": "itself"}])
    foreign = topics_archive([uuid.UUID(other)], principal=SYSTEM, reason="seldom", now=timezone.now())

    def with_line(sort: str, **changed: Any) -> bytes:
        line = {**json.loads(lines(whole, sort)[0]), **changed}
        found = [each for each in lines(part)[1:-1] if not each.startswith(b'{"type":"%s"' % sort.encode())]
        found.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        return ended([lines(part)[0], *sorted(found, key=lambda each: ORDER.index(each.split(b'"')[3].decode()))])

    told = json.loads(lines(whole, "conversation")[0])["told"]
    for content, sentence in (
        (with_line("watermark", position=2**40), "Marks of the shadow search count for the whole store"),
        (with_line("receipt"), "Receipts count for the whole store"),
        (with_line("conversation", told=[{**told[0], "scope": "/work"}]), "This lies in /work, outside /user/alice"),
    ):
        with pytest.raises(ValueRefused, match=sentence):
            import_start(kept(tmp_path, "forged", content), principal=ALICE, now=timezone.now())
    job = done(
        import_start(
            kept(tmp_path, "run", with_line("action", run_id=str(foreign.pk), place=9)),
            principal=ALICE,
            now=timezone.now(),
        )
    )
    assert job.counts["action"] == {"missing": 1}
    assert foreign.actions.count() == 1


def test_taking_back_a_forged_run_touches_nothing_but_its_topic(cast: Cast, tmp_path: Path) -> None:
    mine = cast.alice.remember("Mine", scope="/user/alice")
    topics_release([uuid.UUID(mine)], principal=ALICE, reason="seldom", now=timezone.now())
    part = exported(scope="/user/alice")
    emptied()
    other = cast.agent.remember("Not Alice's", scope="/work")
    cast.agent.ingest("extend_topic", topic_id=other, edges=[{"to_topic_id": other, "kind": "itself"}])
    link = Link.objects.get()
    forged = [
        line.replace(b'"changes":{', b'"changes":{"link_made":0,') if b'"type":"action"' in line else line
        for line in lines(part)
    ]
    done(import_start(kept(tmp_path, "run", b"".join(forged)), principal=ALICE, now=timezone.now()))
    action = ForgetAction.objects.get()
    assert action.changes["link_made"] == link.pk
    run_take_back(action.run_id, principal=ALICE, reason="mine", now=timezone.now())
    assert Topic.objects.get(pk=mine).released_at is None
    assert Link.objects.filter(pk=link.pk).exists()


BAD = {
    "no number": ({"values": {"half_life_days": "soon"}}, "half_life_days"),
    "an unknown name": ({"values": {"mood": "good"}}, "no policy value named 'mood'"),
    "thresholds the wrong way round": (
        {"values": {"theta_summary": 0.01, "forget_salience_threshold": 0.9}},
        "must be at least",
    ),
    "no times": ({"values": {"cron": "at noon"}}, "cron"),
    "no preset": ({"preset": "heroic"}, "There is no preset 'heroic'"),
    "a value that is inherited": ({"values": {"half_life_days": None}}, "half_life_days is not written as"),
    "a set of rules by its name": ({"rules": ["ttl_by_kind"]}, "rules are not written as they are stored"),
    "a rule with something left out": (
        {
            "rules": [
                {
                    "name": "x",
                    "events": ["ingest_complete"],
                    "action": "pin",
                    "condition": {"field": "text", "op": "matches", "value": "a"},
                }
            ]
        },
        "rules are not written as they are stored",
    ),
    "no rules": ({"rules": [{"name": "x"}]}, "Rule 'x'"),
    "a list for values": ({"values": []}, "The member versions.0.values of this scope with a policy"),
    "no difference": ({"diff": [{"name": 1}]}, "The member diff of version 1"),
    "an unreal order": ({"number": 2}, "The versions of this policy are out of order"),
}


def test_a_policy_that_a_save_would_refuse_is_refused(cast: Cast, tmp_path: Path) -> None:
    policy_put(cast.operator, "/work", half_life_days=3)
    content = exported()
    emptied()
    line = json.loads(lines(content, "policy")[0])
    version = line["versions"][0]

    def with_version(**changed: Any) -> bytes:
        found = {**line, "versions": [{**version, **changed}, *([version] if "number" in changed else [])]}
        return ended([lines(content)[0], json.dumps(found).replace('"type": ', '"type":', 1).encode() + b"\n"])

    for name, (changed, sentence) in BAD.items():
        with pytest.raises(ValueRefused, match=f"Line 2: .*{sentence}") as refused:
            import_start(kept(tmp_path, "file", with_version(**changed)), principal=SYSTEM, now=timezone.now())
        assert len(refused.value.sentence) < 400, name
    assert not PolicyVersion.objects.exists()
    # What holds together by itself may not do so with what is in force here by now.
    path = kept(tmp_path, "file", with_version(values={"theta_summary": 0.2}))
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    policy_put(cast.operator, "/", theta_detach=0.5, theta_summary=0.6)
    for _again in range(2):
        with pytest.raises(ValueRefused, match="The policy of /work cannot be in force here"):
            import_work(job.pk, clock=timezone.now, seconds=60)
    job.refresh_from_db()
    assert (job.status, PolicyVersion.objects.filter(scope="/work").count()) == ("failed", 0)
    # One that is left anyway is not asked.
    policy_put(cast.operator, "/work", half_life_days=4)
    done(import_start(kept(tmp_path, "file", with_version(values={"mood": 1})), principal=SYSTEM, now=timezone.now()))


def killed(job: ImportJob, monkeypatch: pytest.MonkeyPatch, name: str, when: Any = None) -> None:
    """Let a worker be killed in a step of its work, once ``when`` holds after it."""
    real = getattr(work_room, name)

    def stop(*args: Any, **named: Any) -> Any:
        done = real(*args, **named) if when else None
        if when is None or when():
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patch:
        patch.setattr(work_room, name, stop)
        with pytest.raises(KeyboardInterrupt):
            import_work(job.pk, clock=timezone.now, seconds=60)


def test_a_check_that_takes_too_long_is_begun_twice_and_then_given_up(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast.agent.remember("Something")
    path = kept(tmp_path, "file", exported())
    job = import_offer(path, principal=SYSTEM, now=timezone.now(), hand_over=nobody)
    for _attempt in range(2):
        killed(job, monkeypatch, "import_check")
        late = timezone.now() + dt.timedelta(minutes=5)
        assert imports_stalled(now=late) == [job.pk]
        # It is given to the worker once, and not each minute that the queue is long.
        assert imports_stalled(now=late + dt.timedelta(minutes=1)) == []
        ImportJob.objects.filter(pk=job.pk).update(moved_at=timezone.now())
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert job.status == "failed"
    assert "manage.py import" in job.failure
    assert imports_stalled(now=timezone.now() + dt.timedelta(minutes=5)) == []
    # One that was killed once is checked at the second.
    job = import_offer(path, principal=SYSTEM, now=timezone.now(), hand_over=nobody)
    killed(job, monkeypatch, "import_check")
    assert import_work(job.pk, clock=timezone.now, seconds=60).status == "waiting"


def test_what_an_import_has_brought_counts_though_it_was_stopped(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [cast.agent.remember(f"Topic {number}", scope="/work") for number in range(3)]
    for topic in made:
        topics_archive([uuid.UUID(topic)], principal=SYSTEM, reason="seldom", now=timezone.now())
    held, working, over = ForgetRun.objects.order_by("created_at", "id")
    ForgetRun.objects.filter(pk=held.pk).update(status="held", failure="Once before.")
    ForgetRun.objects.filter(pk=working.pk).update(status="applying")
    policy_put(cast.operator, "/work", half_life_days=3, cron="0 3 * * *")
    content = exported()

    def stopped(when: Any) -> dict[Any, tuple[str, str]]:
        emptied()
        Schedule.objects.all().delete()
        job = import_start(kept(tmp_path, "file", content), principal=SYSTEM, now=timezone.now())
        killed(job, monkeypatch, "_step", when)
        assert ForgetRun.objects.filter(status="planned").count() == 2
        import_cancel(job.pk, principal=SYSTEM, now=timezone.now())
        assert Schedule.objects.filter(func="memory.jobs.forget_scheduled", cron="0 3 * * *").exists()
        return {run.pk: (run.status, run.failure) for run in ForgetRun.objects.all()}

    # Before their actions were here: nothing is done by halves.
    assert stopped(ForgetRun.objects.exists) == {
        held.pk: ("failed", f"Once before.{CUT}"),
        working.pk: ("failed", CUT),
        over.pk: ("done", ""),
    }
    done(import_start(tmp_path / "file", principal=SYSTEM, now=timezone.now()))
    assert exported() == content
    # Behind them: they are as they were.
    assert stopped(AuditEvent.objects.filter(action="archived").exists) == {
        held.pk: ("held", "Once before."),
        working.pk: ("applying", ""),
        over.pk: ("done", ""),
    }
    done(import_start(tmp_path / "file", principal=SYSTEM, now=timezone.now()))
    assert exported() == content


def test_an_import_is_taken_back_but_for_what_was_written_to_since(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [cast.agent.remember(f"Topic {number}") for number in range(5)]
    content = exported()
    emptied()
    own = cast.agent.remember("Here before")
    job = import_start(kept(tmp_path, "file", content), principal=SYSTEM, now=timezone.now())
    asked: dict[str, Any] = {"principal": SYSTEM, "reason": "a mistake", "now": timezone.now()}
    with pytest.raises(Conflict, match="once it has ended"):
        import_release(job.pk, **asked)
    job = done(job)
    cast.agent.ingest("extend_topic", topic_id=made[0], fields=[{"name": "city", "value": "Oslo"}])
    topics_release([uuid.UUID(made[1])], principal=SYSTEM, reason="old", now=timezone.now())
    look = import_look(job.pk, principal=SYSTEM)
    assert look[:3] == (3, 1, 1)
    assert look.left == [(uuid.UUID(made[0]), "Topic 0")]
    with pytest.raises(NotVisible):
        import_look(job.pk, principal=ALICE)
    with pytest.raises(NotAllowed):
        import_look(job.pk, principal=principal_like("agent"))
    with pytest.raises(Conflict, match="It would be 3 topics by now, and not 5"):
        import_release(job.pk, expected=5, **asked)
    # In steps of what may be changed at once.
    monkeypatch.setattr(back_room, "MOST_AT_ONCE", 2)
    asked["now"] = timezone.now()
    first = import_release(job.pk, expected=2, **asked)
    assert (first.released, first.rest.standing) == (2, 1)
    out = io.StringIO()
    call_command("import", "--take-back", str(job.pk), "--dry-run", stdout=out)
    assert "Would be released: 1. Written to since, and left: 1." in out.getvalue()
    call_command("import", "--take-back", str(job.pk), "--reason", "a mistake", stdout=out)
    assert "Released: 1." in out.getvalue()
    assert f"left: {made[0]} Topic 0" in out.getvalue()
    assert {str(topic.pk) for topic in Topic.objects.filter(released_at=None)} == {own, made[0]}
    told = AuditEvent.objects.filter(action="import_released").order_by("id")
    assert [(event.reason, event.after["topics"]) for event in told] == [("a mistake", 2), ("a mistake", 1)]
    # Nothing is left, and each step can be undone.
    assert import_release(job.pk, **asked)[:2] == (0, None)
    assert first.run is not None
    run_take_back(first.run.pk, principal=SYSTEM, reason="it was right", now=timezone.now())
    assert import_look(job.pk, principal=SYSTEM)[:3] == (2, 1, 2)
