"""Imports as jobs: begun twice, checked in vain, stopped, by whoever may, and taken back."""

import datetime as dt
import io
import json
import math
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.forgetting.manual_actions import topics_release
from memory.forgetting.runs import run_begin, run_undo
from memory.models import AuditEvent, ForgetRun, ImportJob, PolicyVersion, Topic
from memory.resumable import jobs_stalled
from memory.transfer import importing as importing_room
from memory.transfer import work as work_room
from memory.transfer.importing import import_confirm, import_offer, import_start
from memory.transfer.revert import import_left, import_undo_plan
from memory.transfer.work import import_work
from tests.cast import Cast, principal_like
from tests.forgetting.shop import policy_put
from tests.transfer.shop import emptied, ended, exported, lines

pytestmark = pytest.mark.django_db

ALICE = Principal("person:alice", "Alice", "operator", "/user/alice")


def anonymous(_job: Any) -> None:
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
    offered = import_offer(path, principal=SYSTEM, now=timezone.now(), enqueue=anonymous)
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
        lambda: import_confirm(offered.pk, principal=SYSTEM, now=timezone.now(), enqueue=anonymous),
        lambda: import_start(path, principal=ALICE, now=timezone.now()),
    ):
        with pytest.raises(Conflict) as refused:
            attempt()
        assert refused.value.code == "busy"
    done(job)
    assert exported() == content


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
    policy_put(cast.operator, "/work", half_life_days=3)
    whole, part = exported(), exported(scope="/user/alice")
    emptied()
    other = cast.agent.remember("Not Alice's", scope="/work")
    forged = {
        "a policy": [lines(part)[0], lines(whole, "policy")[0], *lines(part, "topic")],
        "a topic": [lines(part)[0], lines(part, "topic")[0].replace(b"/user/alice", b"/user/alicf")],
    }
    for content in forged.values():
        with pytest.raises(ValueRefused, match=r"Line 2: .*in /user/alice only"):
            import_start(kept(tmp_path, "forged", ended(content)), principal=ALICE, now=timezone.now())
    # What is not visible is as what is not there.
    pointing = [
        {"type": "reference", "topic": mine, "field": "x", "seq": 1, "to": other},
        {"type": "merged", "topic": mine, "into": other, "released_at": None},
        {
            "type": "link",
            "source": mine,
            "target": other,
            "kind": "k",
            "created_at": "2026-01-01T00:00:00Z",
            "actor": "",
        },
    ]
    rows = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in pointing]
    content = ended([lines(part)[0], *lines(part, "topic"), *rows])
    job = done(import_start(kept(tmp_path, "more", content), principal=ALICE, now=timezone.now()))
    assert job.counts == {"topic": {"brought": 1}} | {line["type"]: {"missing": 1} for line in pointing}


BAD: dict[str, dict[str, Any]] = {
    "no number": {"values": {"half_life_days": "soon"}},
    "an unknown name": {"values": {"mood": "good"}},
    "thresholds the wrong way round": {"values": {"theta_summary": 0.01, "forget_salience_threshold": 0.9}},
    "no times": {"values": {"cron": "at noon"}},
    "no preset": {"preset": "heroic"},
    "a value that is inherited": {"values": {"half_life_days": None}},
    "a set of rules by its name": {"rules": ["ttl_by_kind"]},
    "no rules": {"rules": [{"name": "x"}]},
    "a list for values": {"values": []},
    "no difference": {"diff": [{"name": 1}]},
    "a number without end": {"diff": [{"name": "x", "before": None, "after": float("inf")}]},
    "an unreal order": {"number": 2},
}


def test_a_policy_that_a_save_would_refuse_is_refused(cast: Cast, tmp_path: Path) -> None:
    policy_put(cast.operator, "/work", half_life_days=3)
    content = exported()
    emptied()
    line = json.loads(lines(content, "policy")[0])
    version = line["versions"][0]

    def with_version(**changed: Any) -> bytes:
        found = {**line, "versions": [{**version, **changed}, *([version] if "number" in changed else [])]}
        return ended(
            [
                lines(content)[0],
                json.dumps(found).replace('"type": ', '"type":', 1).replace("Infinity", "1e400").encode() + b"\n",
            ]
        )

    for name, changed in BAD.items():
        with pytest.raises(ValueRefused, match="Line 2: ") as refused:
            import_start(kept(tmp_path, "file", with_version(**changed)), principal=SYSTEM, now=timezone.now())
        assert len(refused.value.sentence) < 400, name
    assert not PolicyVersion.objects.exists()
    # One that is left anyway is not asked.
    policy_put(cast.operator, "/work", half_life_days=4)
    done(import_start(kept(tmp_path, "file", with_version(values={"mood": 1})), principal=SYSTEM, now=timezone.now()))


def test_a_step_that_fails_twice_without_progress_ends_the_import(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast.agent.remember("Something")
    path = kept(tmp_path, "file", exported())
    emptied()
    job = import_start(path, principal=SYSTEM, now=timezone.now())

    def broken(*_args: Any, **_named: Any) -> Any:
        raise DatabaseError("no room on the disk\nand a detail")

    with monkeypatch.context() as patch:
        patch.setattr(work_room, "lines_import", broken)
        for status in ("working", "failed"):
            with pytest.raises(DatabaseError):
                import_work(job.pk, clock=timezone.now, seconds=60)
            job.refresh_from_db()
            assert (job.status, job.failure.endswith(": no room on the disk")) == (status, True)
    assert not Topic.objects.exists()
    done(import_start(path, principal=SYSTEM, now=timezone.now()))


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
    job = import_offer(path, principal=SYSTEM, now=timezone.now(), enqueue=anonymous)
    for _attempt in range(2):
        killed(job, monkeypatch, "import_check")
        late = timezone.now() + dt.timedelta(minutes=5)
        assert jobs_stalled(ImportJob, now=late) == [job.pk]
        # It is given to the worker once, and not each minute that the queue is long.
        assert jobs_stalled(ImportJob, now=late + dt.timedelta(minutes=1)) == []
        ImportJob.objects.filter(pk=job.pk).update(moved_at=timezone.now())
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert job.status == "failed"
    assert "manage.py import" in job.failure
    assert jobs_stalled(ImportJob, now=timezone.now() + dt.timedelta(minutes=5)) == []
    # One that was killed once is checked at the second.
    job = import_offer(path, principal=SYSTEM, now=timezone.now(), enqueue=anonymous)
    killed(job, monkeypatch, "import_check")
    assert import_work(job.pk, clock=timezone.now, seconds=60).status == "waiting"


def test_the_undo_of_an_import_is_a_plan_that_leaves_out_what_was_changed_since(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [cast.agent.remember(f"Topic {number}") for number in range(5)]
    content = exported()
    emptied()
    own = cast.agent.remember("Here before")
    job = import_start(kept(tmp_path, "file", content), principal=SYSTEM, now=timezone.now())
    with pytest.raises(Conflict) as refused:
        import_undo_plan(job.pk, principal=SYSTEM, now=timezone.now())
    assert refused.value.code == "conflict"
    job = done(job)
    cast.agent.ingest("extend_topic", topic_id=made[0], fields=[{"name": "city", "value": "Oslo"}])
    topics_release([uuid.UUID(made[1])], principal=SYSTEM, reason="old", now=timezone.now())
    with pytest.raises(NotVisible):
        import_undo_plan(job.pk, principal=ALICE, now=timezone.now())
    with pytest.raises(NotAllowed):
        import_undo_plan(job.pk, principal=principal_like("agent"), now=timezone.now())
    with monkeypatch.context() as patch:
        # Topics that were changed since come last, so they do not take the place of others.
        patch.setattr("memory.transfer.revert.MAX_PLANNED", 3)
        plan, left = import_undo_plan(job.pk, principal=SYSTEM, now=timezone.now())
        assert plan is not None
        assert (plan.planned, left) == (3, [])
    plan, left = import_undo_plan(job.pk, principal=SYSTEM, now=timezone.now())
    assert plan is not None
    assert (plan.planned, left) == (3, [(uuid.UUID(made[0]), "It was changed since.")])
    assert ImportJob.objects.get(pk=job.pk).run_id == plan.pk
    out, runs = io.StringIO(), ForgetRun.objects.count()
    call_command("import", "--take-back", str(job.pk), "--dry-run", stdout=out)
    assert "Would be released: 3. Not released, because changed since: 1." in out.getvalue()
    assert ForgetRun.objects.count() == runs
    assert {str(topic.pk) for topic in Topic.objects.exclude(released_at=None)} == {made[1]}
    call_command("import", "--take-back", str(job.pk), "--reason", "a mistake", stdout=out)
    assert "Released: 3." in out.getvalue()
    assert f"changed: {made[0]} Topic 0" in out.getvalue()
    assert {str(topic.pk) for topic in Topic.objects.filter(released_at=None)} == {own, made[0]}
    assert AuditEvent.objects.filter(action="released", reason="a mistake").count() == 3
    assert not import_left(job)
    # Nothing is left, and the undo can be undone.
    assert import_undo_plan(job.pk, principal=SYSTEM, now=timezone.now()).run is None
    job.refresh_from_db()
    assert job.run is not None
    run_undo(job.run.pk, principal=SYSTEM, reason="it was right", now=timezone.now())
    assert import_left(job)


def test_an_import_names_the_undo_that_was_applied_and_no_later_plan(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        cast.agent.remember(f"Topic {number}")
    content = exported()
    emptied()
    job = done(import_start(kept(tmp_path, "file", content), principal=SYSTEM, now=timezone.now()))
    monkeypatch.setattr("memory.transfer.revert.MAX_PLANNED", 2)
    first = import_undo_plan(job.pk, principal=SYSTEM, now=timezone.now()).run
    assert first is not None
    run_begin(first.pk, "planned", principal=SYSTEM, reason="a mistake", now=timezone.now(), seconds=math.inf)
    assert import_undo_plan(job.pk, principal=SYSTEM, now=timezone.now()).run is not None
    assert ImportJob.objects.get(pk=job.pk).run_id == first.pk
