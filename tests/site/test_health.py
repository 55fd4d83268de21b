"""Every check says in a sentence what is healthy and what is not."""

from __future__ import annotations

import datetime as dt
import io
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django_q.models import OrmQ, Task

from memory import health
from memory.core.ids import uuid7
from memory.health import ALL_CHECKS, Finding, health_findings
from memory.models import AccessLog, Scope, Topic, TopicVector
from memory.stores.models import WorkerHeartbeat
from tests.policy.shop import saved

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def small_embedder(settings: Any) -> Any:
    """The packaged model takes a second to load, and these tests are not about it."""
    from memory.embedding import embedder_reset

    settings.MEMSTATE_EMBEDDER = "instant"
    embedder_reset()
    yield
    embedder_reset()


def finding(name: str) -> Finding:
    return ALL_CHECKS[name](NOW)


def topic_waiting_since(moment: dt.datetime) -> None:
    scope = Scope.objects.create(path="/user/alice")
    topic = Topic.objects.create(id=uuid7(now_ms=1), scope=scope, title="Tea", created_at=moment, updated_at=moment)
    TopicVector.objects.create(topic=topic, scope=scope, model="", text_hash="", embedding=None)


def access_at(moment: dt.datetime) -> None:
    AccessLog.objects.create(
        at=moment, actor="key:1", scope="/", query_hash="x", topic_ids=[], bump=0.1, field_bump=0.1
    )


def job_due_at(moment: dt.datetime) -> None:
    OrmQ.objects.create(key="memstate", payload="x", lock=moment)


def heartbeat_at(moment: dt.datetime) -> None:
    WorkerHeartbeat.objects.create(name="worker", seen_at=moment)


def failure_at(moment: dt.datetime) -> None:
    Task.objects.create(
        id="a" * 32, name="one", func="memory.jobs.tasks.something", started=moment, stopped=moment, success=False
    )


def test_a_fresh_store_lacks_nothing_but_its_worker() -> None:
    findings = health_findings(ALL_CHECKS, now=NOW)
    assert [name for name, found in findings.items() if not found.ok] == ["worker"]
    assert all(found.sentence.endswith(".") for found in findings.values())


def test_a_variable_that_is_no_setting_is_reported(settings: Any) -> None:
    settings.MEMSTATE_UNKNOWN_VARIABLES = ["MEMSTATE_A is not a setting."]
    assert finding("settings") == (False, "MEMSTATE_A is not a setting.")


def test_the_worker_has_to_have_reported_lately() -> None:
    assert finding("worker") == (
        False,
        "No worker has ever reported; start `python manage.py up` or `python manage.py qcluster`.",
    )
    heartbeat_at(NOW - 2 * MINUTE)
    assert finding("worker") == (True, "The worker reported 2 minutes ago.")
    WorkerHeartbeat.objects.update(seen_at=NOW - 10 * MINUTE)
    assert not finding("worker").ok
    assert "10 minutes ago" in finding("worker").sentence


def test_a_web_process_that_has_just_started_waits_for_the_worker(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MEMSTATE_PROCESS = "web"
    monkeypatch.setattr("memory.health._LOADED", time.monotonic())
    assert finding("worker") == (True, "The worker is starting.")
    heartbeat_at(NOW - 600 * MINUTE)
    job_due_at(NOW - 600 * MINUTE)
    assert finding("worker").ok
    assert finding("queue").ok
    monkeypatch.setattr("memory.health._LOADED", time.monotonic() - 61)
    assert not finding("worker").ok
    assert not finding("queue").ok


@pytest.mark.parametrize(
    ("name", "leave", "noun"),
    [
        ("reinforcement", access_at, "1 retrieval waits to be counted as reinforcement"),
        ("embeddings", topic_waiting_since, "1 topic waits for a vector"),
        ("queue", job_due_at, "1 job waits in the queue"),
    ],
)
def test_what_waits_is_counted_and_only_what_waits_long_is_unhealthy(
    name: str, leave: Callable[[dt.datetime], None], noun: str
) -> None:
    assert finding(name).ok
    leave(NOW - 5 * MINUTE)
    assert finding(name) == (True, f"{noun}, the oldest for 5 minutes.")
    assert not ALL_CHECKS[name](NOW + 10 * MINUTE).ok


def test_a_job_in_hand_is_not_waiting() -> None:
    job_due_at(NOW + 5 * MINUTE)
    assert finding("queue") == (True, "No job waits in the queue.")


def test_a_failed_job_is_unhealthy_for_a_day() -> None:
    failure_at(NOW - dt.timedelta(hours=3))
    check = health.failure_check(NOW)
    assert (check.ok, "memory.jobs.tasks.something" in check.sentence) == (False, True)
    assert health.failure_check(NOW + dt.timedelta(days=1)).ok


def test_a_scope_whose_half_life_changed_three_times_is_named_once() -> None:
    for days in (10, 20, 30):
        saved(half_life_days=days)
    saved("/user", half_life_days=5)
    ok, sentence = finding("policies")
    assert ok
    assert sentence.endswith("the topics of /, /user.")


def test_a_missing_migration_is_named() -> None:
    MigrationRecorder(connection).record_unapplied("memory", "0001_initial")
    found = finding("migrations")
    assert not found.ok
    assert "1 migration was not applied (memory.0001_initial)" in found.sentence


def test_an_old_vector_extension_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PGVECTOR_AT_LEAST", (99, 0, 0))
    assert not finding("pgvector").ok
    assert "but 99.0.0 is needed" in finding("pgvector").sentence


def test_an_embedder_that_cannot_be_loaded_is_a_finding(settings: Any) -> None:
    from memory.embedding import embedder_reset

    settings.MEMSTATE_EMBEDDER = "no.such.Embedder"
    embedder_reset()
    assert not finding("embedder").ok
    assert "no.such.Embedder" in finding("embedder").sentence
    # Whatever else needs the embedder says so too, instead of stopping the doctor.
    assert not health_findings(ALL_CHECKS, now=NOW)["vectors"].ok


def test_a_column_of_another_dimension_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "vector_column_dimension", lambda: 768)
    assert "The database holds vectors of 768 numbers" in finding("embedder").sentence
    assert not finding("embedder").ok


def test_vectors_of_another_model_are_counted() -> None:
    topic_waiting_since(NOW)
    TopicVector.objects.update(model="another", embedding=[1.0] + [0.0] * 383)
    assert finding("vectors").sentence.startswith("1 vector was made by another model")
    assert not finding("vectors").ok


def test_without_a_database_only_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_now: dt.datetime) -> Finding:
        raise DatabaseError("connection refused\nIs the server running?")

    findings = health_findings({**ALL_CHECKS, "database": gone}, now=NOW)
    assert findings == {"database": (False, "The database could not be checked: connection refused")}


def test_the_doctor_ends_with_status_1_if_something_is_wrong() -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", stdout=out)
    assert ended.value.code == 1
    assert "bad  worker" in out.getvalue()
    assert out.getvalue().splitlines()[-1] == "Not healthy: worker."


def test_the_doctor_is_content_with_a_healthy_store() -> None:
    heartbeat_at(timezone.now())
    out = io.StringIO()
    call_command("doctor", stdout=out)
    assert out.getvalue().splitlines()[-1] == "Everything is healthy."
