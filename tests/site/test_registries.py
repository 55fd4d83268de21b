"""What has to be registered is: jobs for the page of schedules and for retry, models for the raw rows."""

import re
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.utils.module_loading import import_string

from memory.jobs.schedule_rows import UPKEEP
from memory.jobs.tasks import TASKS
from memory.models import Job
from memory.policy.schedules import FUNCTION


def test_every_task_is_registered_and_enqueued_through_the_registry() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (Path(settings.BASE_DIR) / "memory").rglob("*.py"))
    names = [name for source in sources for name in re.findall(r"\basync_task\(\s*([^,\s)]+)", source)]
    # What an operator runs again is checked against the registry.
    assert set(names) == {"self.name", "row.func"}
    assert {FUNCTION, UPKEEP} <= TASKS.keys()
    assert all(callable(import_string(name)) for name in TASKS)


def test_every_kind_of_resumable_job_is_enqueued_again_when_it_stalls() -> None:
    models = [kind.model for kind in TASKS.values() if kind.model is not None]
    assert {*models} == {*Job.__subclasses__()}
    assert len(models) == len(set(models))
    assert all(kind.stalled is not None for kind in TASKS.values() if kind.model is not None)


def test_every_model_is_in_the_admin() -> None:
    models = apps.get_app_config("memory").get_models()
    assert [model.__name__ for model in models if not admin.site.is_registered(model)] == []
