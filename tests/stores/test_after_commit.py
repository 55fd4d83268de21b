"""The queue, which all stores share, is written after the transaction of a store. If the process dies between the two,
the work is found nevertheless."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from memory.access.keys import key_create
from memory.access.principal import SYSTEM
from memory.agents.chat.conversations import conversation_begin
from memory.agents.study.control import study_resume, study_start
from memory.erasure.check import erasure_check_start
from memory.forgetting import runs
from memory.forgetting.runs import run_start
from memory.jobs import tasks
from memory.jobs.stores import store_create, store_drop
from memory.models import ForgetRun, StudyJob, TopicVector
from memory.notifications.outbox import occurrence_note
from memory.notifications.targets import target_add
from memory.policy.save import policy_save
from memory.resumable import job_cancel
from memory.stores.current import MAIN, store_use
from memory.stores.models import Store
from memory.transfer.importing import import_confirm, import_offer
from memory.transfer.work import import_work
from tests.cast import Caller, Clock, in_process
from tests.transfer.shop import ended, exported, lines

SECRET = "ms_the-secret-of-an-operator-in-the-store-"
TEXT = "Mara lives in Graz. She drinks green tea every morning."
Ask = Callable[[Caller, Path], object]


def _ingest(caller: Caller, _folder: Path) -> None:
    caller.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": "Tea"}).ok()


def _extraction(caller: Caller, _folder: Path) -> None:
    assert caller.post("/v1/extract?background=1", {"content": TEXT, "store": True}).status == 202


def _erasure_check(_caller: Caller, _folder: Path) -> None:
    erasure_check_start(principal=SYSTEM, now=timezone.now(), enqueue=tasks.erasure_check_enqueue)


def _study(_caller: Caller, _folder: Path) -> uuid.UUID:
    now = timezone.now()
    talk = conversation_begin(scope="/", channel="api", principal=SYSTEM, now=now)
    asked = {"conversation_id": talk.pk, "scope": "/", "model": None, "needs_model": False}
    return study_start(TEXT, **asked, principal=SYSTEM, now=now, enqueue=tasks.study_enqueue).pk


def _study_resumed(caller: Caller, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "study_enqueue", None)
        study = _study(caller, folder)
    job_cancel(StudyJob, study, principal=SYSTEM, now=timezone.now())
    study_resume(study, principal=SYSTEM, now=timezone.now(), enqueue=tasks.study_enqueue)


def _file(folder: Path) -> Path:
    path = folder / "export.jsonl"
    path.write_bytes(ended([lines(exported())[0]]))
    return path


def _import_offered(_caller: Caller, folder: Path) -> None:
    import_offer(_file(folder), principal=SYSTEM, now=timezone.now(), enqueue=tasks.import_enqueue)


def _import_confirmed(_caller: Caller, folder: Path) -> None:
    job = import_offer(_file(folder), principal=SYSTEM, now=timezone.now(), enqueue=None)
    import_work(job.pk, clock=timezone.now, seconds=60)
    import_confirm(job.pk, principal=SYSTEM, now=timezone.now(), enqueue=tasks.import_enqueue)


JOBS: dict[str, Ask] = {
    "extraction_continue": _extraction,
    "erasure_check_continue": _erasure_check,
    "study_continue": _study,
    "study_continue, resumed": _study_resumed,
    "import_continue": _import_offered,
    "import_continue, confirmed": _import_confirmed,
}
ASKED: dict[str, Ask] = {"upkeep": _ingest, **JOBS}


def _caller(store: str) -> Caller:
    with store_use(store):
        key_create(name="operator", role="operator", secret=SECRET + store)
    return Caller(in_process, SECRET + store)


def _queued(store: str) -> list[str]:
    rows = [each.task for each in OrmQ.objects.order_by("id")]
    return [each["func"].rpartition(".")[2] for each in rows if each["kwargs"]["store"] == store]


@pytest.fixture
def other() -> Iterator[Caller]:
    """An operator of the store ``other``, in a test that commits."""
    store_create("other")
    yield _caller("other")
    store_drop("other", actor="x")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("job", ASKED)
def test_no_transaction_of_a_store_writes_to_the_queue(other: Caller, job: str, tmp_path: Path) -> None:
    OrmQ.objects.all().delete()
    with store_use("other"), CaptureQueriesContext(connection) as asked:
        ASKED[job](other, tmp_path)
    within, both = [], []
    for statement in (each["sql"] for each in asked):
        if statement.startswith(("BEGIN", "COMMIT", "ROLLBACK")) and "SAVEPOINT" not in statement:
            within = [statement] if statement.startswith("BEGIN") else []
        elif within:
            within.append(statement)
            # The list of stores and the queue.
            if 'INTO "django_q_' in statement or 'UPDATE "stores_' in statement:
                both.append(statement)
    assert any('INTO "django_q_' in each["sql"] for each in asked)
    assert both == []
    assert _queued("other") == [job.partition(",")[0]]


@pytest.mark.django_db
@pytest.mark.parametrize("store", [MAIN, "other"])
@pytest.mark.parametrize("job", ASKED)
def test_work_is_found_if_the_process_dies_after_the_commit(
    store: str, job: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store != MAIN:
        store_create(store)
    caller = _caller(store)
    clock.stop()
    OrmQ.objects.all().delete()
    with monkeypatch.context() as dead, store_use(store):
        dead.setattr(transaction, "on_commit", lambda _work, **_how: None)
        ASKED[job](caller, tmp_path)
    assert not OrmQ.objects.exists()
    # The schedule of upkeep in main, each minute.
    for _minute in range(6):
        clock.forward(minutes=1, seconds=1)
        tasks.upkeep()
        if "upkeep" in _queued(store):
            OrmQ.objects.all().delete()
            tasks.upkeep(store=store)  # type: ignore[call-arg]
        if found := _queued(store):
            break
    with store_use(store):
        if job == "upkeep":
            assert not TopicVector.objects.filter(embedding=None).exists()
        else:
            assert found == [job.partition(",")[0]]


def _half_life(_caller: Caller) -> None:
    policy_save("/", preset=None, values={"half_life_days": 9}, author="x", reason="x", now=timezone.now())


def _run_planned(caller: Caller) -> None:
    with pytest.MonkeyPatch.context() as dead:
        # The process dies after it has planned the run.
        dead.setattr(runs, "run_work", lambda run_id, **_how: ForgetRun.objects.get(pk=run_id))
        run_start("/", event="manual", dry_run=False, principal=SYSTEM, now=timezone.now())
    assert ForgetRun.objects.get().status == ForgetRun.Status.APPLYING


def _notification(_caller: Caller) -> None:
    added = {"kind": "webhook", "name": "x", "address": "https://93.184.216.34/", "events": ["job_failed"]}
    target_add(**added, regret_above=None, reason="x", principal=SYSTEM, now=timezone.now())
    occurrence_note("job_failed", "x", text="x", page="/", scope="/", now=timezone.now())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", [_half_life, _run_planned, _notification])
def test_what_upkeep_must_finish_marks_its_store(other: Caller, write: Callable[[Caller], None], clock: Clock) -> None:
    other.remember("Tea")
    with store_use("other"):
        tasks.upkeep(store="other")  # type: ignore[call-arg]
        clock.forward(days=300)
        Store.objects.filter(pk="other").update(pending_at=None)
        write(other)
    assert Store.objects.get(pk="other").pending_at is not None
