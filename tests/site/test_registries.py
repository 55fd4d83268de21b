"""What has to be registered is: jobs for the page of schedules and for retry, models for the raw rows."""

import re
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.utils.module_loading import import_string

from memory.jobs.tasks import JOBS
from memory.policy.schedules import FUNCTION


def test_every_job_that_is_queued_is_registered() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (Path(settings.BASE_DIR) / "memory").rglob("*.py"))
    queued = {name for source in sources for name in re.findall(r"async_task\(\s*\"([\w.]+)\"", source)}
    assert len(queued) > 4
    assert queued | {FUNCTION} <= JOBS.keys()
    assert all(callable(import_string(name)) for name in JOBS)


def test_every_model_is_in_the_admin() -> None:
    models = apps.get_app_config("memory").get_models()
    assert [model.__name__ for model in models if not admin.site.is_registered(model)] == []
