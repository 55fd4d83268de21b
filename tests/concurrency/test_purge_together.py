"""A purge beside others: writers, runs, queries, another purge. What they leave is there whole, or not at all."""

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure import purge as purge_module
from memory.erasure.purge import topics_purge
from memory.erasure.receipts import receipts_verify
from memory.erasure.verify import erasure_verify
from memory.forgetting.plan import run_plan
from memory.forgetting.runs import run_work
from memory.ingest.load import known_load
from memory.models import AccessLog, ErasureReceipt, ForgetAction, ForgetRun, Link, Revision, Topic
from memory.policy.effective import policies_current
from tests.cast import Cast, worker_turn
from tests.concurrency.test_runs_together import old_topics, policy
from tests.concurrency.test_writers import at_once
from tests.erasure.erasing import traces
from tests.waiting import waiting
from tests.waits import eventually

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _connections_end() -> Iterator[None]:
    yield
    connections.close_all()


def purge(*ids: str) -> ErasureReceipt:
    return topics_purge([uuid.UUID(each) for each in ids], principal=SYSTEM, reason="a test", now=timezone.now())


class Halt:
    """Lets a purge come as far as its receipt, and go on when asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there, self.go_on = threading.Event(), threading.Event()
        write = purge_module.receipt_write

        def slow(*args: Any, **more: Any) -> ErasureReceipt:
            self.there.set()
            assert self.go_on.wait(60)
            return write(*args, **more)

        monkeypatch.setattr(purge_module, "receipt_write", slow)

    def end_when_another_waits(self, other_is_done: threading.Event | None = None) -> None:
        """Let the purge go on as soon as another session waits for one of its locks, or is done without waiting."""

        def watch() -> None:
            try:
                eventually(lambda: waiting() or (other_is_done is not None and other_is_done.is_set()))
            finally:
                connection.close()
                self.go_on.set()

        threading.Thread(target=watch, daemon=True).start()


def test_a_purge_waits_for_a_writer_and_erases_what_it_wrote(http_cast: Cast) -> None:
    topic_id = http_cast.agent.remember("The safe", values={"code": "first combination of the safe"})
    held, wrote = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            known_load(changed=[uuid.UUID(topic_id)], read=[], lock=True)
            held.set()
            eventually(waiting)
            field = Revision.objects.get().field
            Revision.objects.create(
                id=uuid.uuid4(),
                field=field,
                seq=2,
                value="second combination of the safe",
                valid_from=timezone.now(),
                recorded_at=timezone.now(),
            )
            wrote.set()

    def erase() -> bool:
        held.wait(60)
        purge(topic_id)
        return wrote.is_set()

    assert at_once([write, erase])[1] is True
    assert traces("combination of the safe") == []
    assert erasure_verify().ok


def test_a_write_during_a_purge_finds_no_topic(http_cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    topic_id = http_cast.agent.remember("The safe in the cellar of the house", values={"code": "1"})
    halt = Halt(monkeypatch)

    def write() -> int:
        halt.there.wait(60)
        halt.end_when_another_waits()
        item = {"placement": "version_field", "topic_id": topic_id, "fields": [{"name": "code", "value": "2"}]}
        return http_cast.agent.post("/v1/ingest", item).status

    assert at_once([lambda: purge(topic_id), write])[1] == 400
    assert not Revision.objects.exists()
    assert erasure_verify().ok


def test_statistics_that_are_renewed_during_a_purge_hold_nothing_of_it(
    http_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = http_cast.agent.remember("The safe in the cellar of the house", values={"code": "1"})
    halt = Halt(monkeypatch)

    def analyze() -> None:
        halt.there.wait(60)
        done = threading.Event()
        halt.end_when_another_waits(done)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE memory_topic, memory_auditevent, memory_revision")
        done.set()

    at_once([lambda: purge(topic_id), analyze])
    assert erasure_verify().ok


def test_a_link_to_a_topic_that_is_being_purged_is_not_written(
    http_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = http_cast.agent.remember("The safe in the cellar of the house")
    halt = Halt(monkeypatch)

    def link() -> tuple[int, str]:
        halt.there.wait(60)
        halt.end_when_another_waits()
        edges = [{"to_topic_id": topic_id, "kind": "near"}]
        reply = http_cast.agent.post(
            "/v1/ingest", {"placement": "new_topic", "title": "The stairs", "fields": [], "edges": edges}
        )
        return reply.status, reply.text

    status, text = at_once([lambda: purge(topic_id), link])[1]
    assert status in (400, 503), text
    assert not Link.objects.exists()
    assert not Topic.objects.exists()


def test_a_query_during_a_purge_leaves_no_trace_after_the_next_worker_turn(
    http_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = http_cast.agent.remember("The safe in the cellar of the house")
    halt = Halt(monkeypatch)

    def ask() -> tuple[list[str], int]:
        halt.there.wait(60)
        found = http_cast.agent.found("cellar", topic_ids=[topic_id])
        looked = http_cast.reader.get(f"/v1/topics/{topic_id}").status
        halt.go_on.set()
        return found, looked

    # Until it is committed, others see it.
    assert at_once([lambda: purge(topic_id), ask])[1] == ([topic_id], 200)
    worker_turn()
    assert [(row.query, row.topic_ids, row.field_ids, row.request) for row in AccessLog.objects.all()] == [
        ("", [None], [], None)
    ]
    assert erasure_verify().ok


def test_a_run_that_applies_meanwhile_passes_by_what_was_purged(http_cast: Cast) -> None:
    policy(http_cast, topic_count_soft_limit=0).ok()
    for _round in range(3):
        ids, now = old_topics(http_cast, 60), timezone.now()
        run = run_plan(
            "/", event="manual", dry_run=False, actor="test", policies=policies_current(), judged_at=now, now=now
        )
        gone = ids[10:50:4]

        def work(run_id: uuid.UUID = run.pk) -> str:
            return str(run_work(run_id, now=timezone.now(), seconds=30, enqueue=lambda _run: None).status)

        def erase(wanted: list[str] = gone) -> None:
            purge(*wanted)

        assert at_once([work, erase])[0] == "done"
        assert not Topic.objects.filter(pk__in=gone).exists()
        assert not ForgetAction.objects.filter(topic_id__in=gone).exists()
        stays = set(ids) - set(gone)
        assert set(ForgetAction.objects.filter(run=run).values_list("state", flat=True)) == {"applied"}
        assert ForgetAction.objects.filter(run=run).count() == len(stays)
        assert ForgetRun.objects.get(pk=run.pk).failure == ""
    assert erasure_verify().ok


def test_purges_at_once_are_numbered_without_a_gap_and_the_second_of_one_topic_finds_none(http_cast: Cast) -> None:
    ids = [http_cast.agent.remember(f"The {n}th box of the attic of the house") for n in range(12)]
    statuses = at_once(
        [lambda each=each: http_cast.operator.delete(f"/v1/topics/{each}").status for each in [*ids, *ids[:4]]]
    )
    assert sorted(statuses) == [200] * 12 + [404] * 4
    assert sorted(ErasureReceipt.objects.values_list("number", flat=True)) == list(range(1, 13))
    assert receipts_verify().ok
    assert erasure_verify().ok


def test_a_purge_that_fails_at_the_end_has_erased_nothing(http_cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    topic_id = http_cast.agent.remember("The safe in the cellar of the house")
    http_cast.agent.query("the safe in the cellar of the house")

    def broken(*_args: Any, **_more: Any) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(purge_module, "_journal", broken)
    assert http_cast.operator.delete(f"/v1/topics/{topic_id}").status == 500
    assert http_cast.agent.found("cellar") == [topic_id]
    assert AccessLog.objects.first().query == "the safe in the cellar of the house"
    assert not ErasureReceipt.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_lexeme")
