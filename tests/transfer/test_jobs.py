"""Imports as jobs: begun twice, checked in vain, stopped, by whoever may, and taken back."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.domain.errors import Conflict
from memory.models import ImportJob
from memory.transfer import importing as importing_room
from memory.transfer.importing import import_confirm, import_offer, import_start
from memory.transfer.work import import_work
from tests.cast import Cast
from tests.transfer.shop import emptied, exported, lines

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
            "topic": {"brought": 1}, "link": {"brought": 1}, "access": {"brought": 1},
        }  # fmt: skip


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
