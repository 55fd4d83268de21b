"""The queue runs the jobs of the store and nothing else, whatever a row of its tables names."""

from collections.abc import Iterator
from pathlib import Path

import django_q.worker
import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models.signals import post_save
from django.test import RequestFactory
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Success, Task
from django_q.signals import call_hook
from django_q.tasks import async_task

from memory.jobs.tasks import TASKS
from memstate_site.worker import task_locate, tasks_only
from tests.console.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def _as_in_the_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(django_q.worker, "pydoc", django_q.worker.pydoc)
    tasks_only()
    yield
    post_save.connect(call_hook, sender=Task)


def test_only_jobs_are_found() -> None:
    assert all(callable(task_locate(name)) for name in TASKS)
    for name in ("os.system", "subprocess.run", "memory.jobs.tasks.upkeep_request", "memory.jobs", "builtins.exec", ""):
        assert task_locate(name) is None, name


@pytest.mark.usefixtures("_as_in_the_cluster")
def test_a_function_that_is_no_job_is_not_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(ValueError, match="is not defined"):
        async_task("os.system", f"touch {made}", sync=True)
    assert not made.exists()
    async_task("memory.jobs.tasks.tidy", sync=True)


@pytest.mark.usefixtures("_as_in_the_cluster")
def test_no_hook_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr("memory.jobs.tasks.upkeep_request", called.append)
    now = timezone.now()
    Task.objects.create(
        id="a" * 32, name="x", func="x", hook="memory.jobs.tasks.upkeep_request", started=now, stopped=now
    )
    assert not called


def test_the_tables_of_the_queue_are_read_only_in_the_admin() -> None:
    administrator = person("administrator")
    now = timezone.now()
    Task.objects.create(id="a" * 32, name="x", func="memory.jobs.tasks.tidy", started=now, stopped=now, success=False)
    Task.objects.create(id="b" * 32, name="y", func="memory.jobs.tasks.tidy", started=now, stopped=now, success=True)
    async_task("memory.jobs.tasks.tidy")
    for model in (Schedule, OrmQ, Success, Failure):
        name = model.__name__.lower()
        row = model.objects.first()
        assert row is not None
        assert administrator.get(f"/admin/django_q/{name}/").status_code == 200, name
        assert administrator.get(f"/admin/django_q/{name}/{row.pk}/change/").status_code == 200, name
        assert administrator.get(f"/admin/django_q/{name}/add/").status_code == 403, name
        members = {"func": "os.system", "args": "'id',", "schedule_type": "O", "repeats": 1}
        for address in ("add/", f"{row.pk}/change/", f"{row.pk}/delete/"):
            assert administrator.post(f"/admin/django_q/{name}/{address}", members).status_code == 403, name
        for action in ("delete_selected", "retry_failed", "resubmit_task"):
            chosen = {"action": action, "_selected_action": row.pk, "post": "yes"}
            administrator.post(f"/admin/django_q/{name}/", chosen)
        assert model.objects.filter(pk=row.pk).exists(), name
    # A thread of the product may have queued an upkeep meanwhile.
    assert [entry.task["func"] for entry in OrmQ.objects.all()].count("memory.jobs.tasks.tidy") == 1
    assert not Schedule.objects.filter(func="os.system").exists()


def test_no_table_except_locked_sign_ins_can_be_changed() -> None:
    request = RequestFactory().get("/admin/")
    request.user = User(username="x", is_superuser=True, is_staff=True)
    changeable = {
        model._meta.label
        for model, options in admin.site._registry.items()
        if options.has_change_permission(request) or options.has_add_permission(request)
    }
    assert changeable == {"axes.AccessAttempt", "axes.AccessFailureLog", "axes.AccessLog"}
