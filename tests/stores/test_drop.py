"""A store is dropped with its files and its work, or not at all."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django_q.models import Task

from memory.core.errors import Conflict
from memory.jobs import stores, tasks
from memory.jobs.stores import store_create, store_drop
from memory.models import AuditEvent, Scope
from memory.stores.current import store_use
from memory.stores.models import Store
from memory.transfer.uploads import uploads_folder
from tests.cast import raises_code

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store ``other`` with an uploaded file. Returns the folder of its files."""
    monkeypatch.setattr(settings, "MEMSTATE_DATA_DIR", str(tmp_path))
    store_create("other")
    with store_use("other"):
        found = uploads_folder()
    (found / "file.jsonl").write_text("{}")
    yield found
    if Store.objects.filter(pk="other").exists():
        store_drop("other", actor="x")


def _is_there() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('store_other.memory_topic') IS NOT NULL")
        (table,) = cursor.fetchone()
    listed = Store.objects.filter(pk="other").exists()
    assert table is listed is not AuditEvent.objects.filter(action="store_dropped").exists()
    return bool(table)


def test_its_files_go_with_it(folder: Path) -> None:
    store_drop("other", actor="x")
    assert not _is_there()
    assert not folder.exists()


def test_a_drop_that_fails_in_the_middle_removes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(**_members: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(AuditEvent.objects, "create", break_off)
        with pytest.raises(RuntimeError):
            store_drop("other", actor="x")
    assert _is_there()
    assert [path.name for path in folder.iterdir()] == ["file.jsonl"]


def test_what_a_killed_drop_leaves_is_tidied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = folder.with_name("file.jsonl")
    main.write_text("{}")
    with monkeypatch.context() as killed:
        killed.setattr(stores, "uploads_remove", lambda: None)
        store_drop("other", actor="x")
    assert folder.exists()
    tasks.tidy()
    assert not folder.exists()
    assert main.exists()


def test_tidying_keeps_the_files_of_stores(folder: Path) -> None:
    tasks.tidy()
    assert folder.exists()


def test_it_waits_for_a_writer_and_gives_up_in_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote, end = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with store_use("other"), transaction.atomic():
                Scope.objects.create(path="/of/an/import")
                wrote.set()
                end.wait(60)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert wrote.wait(60)
        monkeypatch.setattr(stores, "DROP_WAIT_SECONDS", 0.2)
        with raises_code(Conflict, "busy"):
            store_drop("other", actor="x")
        assert _is_there()
        assert folder.exists()
    finally:
        end.set()
        writer.join(60)
    store_drop("other", actor="x")
    assert not _is_there()


def test_a_job_of_a_dropped_store_ends_without_a_failure(folder: Path) -> None:
    store_drop("other", actor="x")
    for work in (tasks.upkeep, tasks.tidy, tasks.shadow):
        assert work(store="other") is None  # type: ignore[call-arg]
    assert not folder.exists()


def test_what_a_job_leaves_at_its_end_is_not_that_of_the_next_store(folder: Path) -> None:
    now = Store.objects.get(pk="other").created_at

    def end() -> None:
        Task.objects.create(id="x", name="x", func="x", group="store:other", started=now, stopped=now, success=True)

    store_drop("other", actor="x")
    end()
    store_create("other")
    assert not Task.objects.filter(group="store:other").exists()
    store_drop("other", actor="x")
    end()
    tasks.tidy()
    assert not Task.objects.filter(group="store:other").exists()
