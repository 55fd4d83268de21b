"""Many clients at once, over real sockets and threads: nothing is lost, doubled or waited for in a circle."""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import close_old_connections, connection, connections, transaction
from django.utils import timezone

from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.embed_pending import vectors_fill
from memory.ingest.items import IngestItem
from memory.models import AccessLog, AuditEvent, Field, Revision, Topic, TopicDocument, TopicVector, Vitality
from memory.recall.access_fold import accesses_fold
from memory.recall.corpus import documents_count
from tests.cast import Answer, Caller, Cast, principal_like
from tests.waiting import waiting

# `make test-all` sets more.
WRITES = int(os.environ.get("MEMSTATE_TEST_WRITES", "5"))
# As many as the web processes have threads by default.
WRITERS = 16

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _connections_closed() -> Iterator[None]:
    yield
    # The threads of the server keep their connections; the next test empties the tables they look at.
    connections.close_all()


def at_once(jobs: list[Callable[[], Any]], *, stop: threading.Event | None = None) -> list[Any]:
    """Run the jobs in threads that begin together, and return what they return, in order. ``stop`` is set if the test
    fails meanwhile: jobs that would go on for longer look at it, since the end of a test waits for its threads."""
    gate = threading.Barrier(len(jobs), timeout=60)

    def run(job: Callable[[], Any]) -> Any:
        gate.wait(60)
        try:
            return job()
        finally:
            close_old_connections()
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as pool:
        try:
            return [future.result(240) for future in [pool.submit(run, job) for job in jobs]]
        except BaseException:
            if stop is not None:
                stop.set()
            raise


def batch(caller: Caller, items: list[dict[str, Any]]) -> Answer:
    return caller.post("/v1/ingest/batch", items)


def test_16_writers_on_one_field_lose_and_double_nothing(http_cast: Cast) -> None:
    agent = http_cast.agent
    topic_id = agent.remember("Counter", values={"state": "start"})

    def writer(number: int) -> Callable[[], list[tuple[str, str]]]:
        def write() -> list[tuple[str, str]]:
            written = []
            for turn in range(WRITES):
                value = f"{number}-{turn}"
                reply = agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "state", "value": value}])
                written.append((reply["version_ids"]["state"], value))
            return written

        return write

    acknowledged = [pair for written in at_once([writer(number) for number in range(WRITERS)]) for pair in written]
    field = Field.objects.get(topic_id=topic_id, name="state")
    rows = list(Revision.objects.filter(field=field).order_by("seq").values_list("seq", "id", "value", "recorded_at"))
    assert [seq for seq, *_rest in rows] == list(range(1, WRITERS * WRITES + 2))
    assert field.last_seq == WRITERS * WRITES + 1
    stored = {(str(revision), value) for _seq, revision, value, _at in rows}
    assert len(acknowledged) == WRITERS * WRITES
    assert set(acknowledged) <= stored
    # What each writer wrote stands in the order in which it wrote.
    places = {value: seq for seq, _id, value, _at in rows}
    for number in range(WRITERS):
        mine = [places[f"{number}-{turn}"] for turn in range(WRITES)]
        assert mine == sorted(mine)
    current = agent.topic(topic_id)["fields"][0]["current"]
    assert (current["value"], current["seq"]) == (rows[-1][2], rows[-1][0])


def test_16_clients_with_one_idempotency_key_have_one_effect_and_get_equal_replies(http_cast: Cast) -> None:
    agent = http_cast.agent
    for round_ in range(5):
        body = {"placement": "new_topic", "title": f"Once {round_}", "fields": [{"name": "n", "value": "1"}]}
        key = {"Idempotency-Key": f"key-{round_}"}
        replies = at_once([lambda body=body, key=key: agent.post("/v1/ingest", body, headers=key)] * 16)
        assert {reply.status for reply in replies} == {200}
        assert len({reply.body for reply in replies}) == 1
        assert Topic.objects.filter(title=f"Once {round_}").count() == 1
    assert Revision.objects.count() == 5
    assert AuditEvent.objects.filter(action="ingest_new_topic").count() == 5


def test_16_clients_with_one_key_for_a_batch_have_one_effect(http_cast: Cast) -> None:
    topic_id = http_cast.agent.remember("Counter", values={"state": "0"})
    items = [
        {"placement": "version_field", "topic_id": topic_id, "fields": [{"name": "state", "value": str(n)}]}
        for n in range(1, 6)
    ]
    replies = at_once(
        [lambda: http_cast.agent.post("/v1/ingest/batch", items, headers={"Idempotency-Key": "batch"})] * 16
    )
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert Revision.objects.count() == 6


def test_batches_that_touch_the_same_topics_in_opposite_order_do_not_wait_for_each_other(http_cast: Cast) -> None:
    agent = http_cast.agent
    ids = [agent.remember(f"Topic {n}", values={"a": "0", "b": "0"}) for n in range(12)]

    def writer(number: int) -> Callable[[], list[int]]:
        order = ids if number % 2 else ids[::-1]
        items = [
            {
                "placement": "extend_topic",
                "topic_id": topic_id,
                "pinned": True,
                "fields": [{"name": name, "value": str(number)} for name in ("ab" if number % 2 else "ba")],
                "edges": [{"to_topic_id": other, "kind": "beside"} for other in order if other != topic_id],
            }
            for topic_id in order
        ]
        return lambda: [batch(agent, items).status for _turn in range(5)]

    statuses = at_once([writer(number) for number in range(8)])
    assert {status for turn in statuses for status in turn} == {200}
    assert Revision.objects.count() == 12 * 2 * (1 + 8 * 5)


def test_batches_that_make_the_same_topics_in_opposite_order_have_one_maker_for_each(http_cast: Cast) -> None:
    agent = http_cast.agent
    for _round in range(3):
        ids = [str(uuid.uuid4()) for _ in range(50)]

        def maker(order: list[str]) -> Callable[[], Answer]:
            items = [{"placement": "new_topic", "topic_id": topic_id, "title": "Twice"} for topic_id in order]
            return lambda: batch(agent, items)

        replies = [reply.ok()["results"] for reply in at_once([maker(ids), maker(ids[::-1]), maker(sorted(ids))])]
        statuses = [result["status"] for results in replies for result in results]
        assert statuses.count(200) == 50
        assert statuses.count(409) == 100
        made = [result["topic_id"] for results in replies for result in results if result["status"] == 200]
        assert sorted(made) == sorted(ids)
        assert Topic.objects.filter(pk__in=ids).count() == 50


def test_a_batch_makes_its_topics_in_one_order_whatever_order_they_are_sent_in(http_cast: Cast) -> None:
    low, middle, high = (str(uuid.UUID(int=number)) for number in (1, 5, 9))
    # The scope is there, so that the topics are what has to be waited for.
    http_cast.agent.remember("Before")
    made = threading.Event()

    def one_after_the_other() -> None:
        now, principal = timezone.now(), principal_like()

        def make(topic_id: str) -> None:
            item = IngestItem(placement="new_topic", topic_id=topic_id, title="First")
            ingest_apply(
                ingest_prepare([item], principal=principal, now=now, defer=False), principal=principal, now=now
            )

        with transaction.atomic():
            make(middle)
            made.set()
            deadline = time.monotonic() + 20
            while not waiting():
                assert time.monotonic() < deadline
            make(high)

    def backwards() -> list[int]:
        made.wait(20)
        items = [
            {"placement": "new_topic", "topic_id": topic_id, "title": "Second"} for topic_id in (high, middle, low)
        ]
        return [result["status"] for result in batch(http_cast.agent, items).ok()["results"]]

    _nothing, statuses = at_once([one_after_the_other, backwards])
    assert statuses == [409, 409, 200]


def test_of_two_creations_of_one_topic_one_is_refused(http_cast: Cast) -> None:
    for _round in range(10):
        topic_id = str(uuid.uuid4())
        item = {"placement": "new_topic", "topic_id": topic_id, "title": "Twice", "fields": [{"name": "a"}]}
        replies = at_once([lambda item=item: http_cast.agent.post("/v1/ingest", item)] * 2)
        assert sorted(reply.status for reply in replies) == [200, 409]
        assert Field.objects.filter(topic_id=topic_id).count() == 1


def test_new_fields_of_one_topic_by_many_writers_are_all_there_once(http_cast: Cast) -> None:
    topic_id = http_cast.agent.remember("Profile")

    def write(name: str) -> Callable[[], int]:
        item = {"placement": "extend_topic", "topic_id": topic_id, "fields": [{"name": name, "value": "v"}]}
        return lambda: http_cast.agent.post("/v1/ingest", item).status

    statuses = at_once([write(f"field {number // 2}") for number in range(32)])
    assert set(statuses) == {200}
    assert sorted(Field.objects.filter(topic_id=topic_id).values_list("last_seq", flat=True)) == [2] * 16


def fill_log(ids: list[str], rows: int) -> None:
    fields = list(Field.objects.filter(topic_id__in=ids).order_by("id").values_list("id", flat=True))
    AccessLog.objects.bulk_create(
        AccessLog(
            at=timezone.now(),
            kind="query",
            actor=f"key:{number}",
            scope="/",
            query="q",
            query_hash=uuid.uuid4().hex,
            topic_ids=ids if number % 2 else ids[::-1],
            field_ids=fields if number % 2 else fields[::-1],
            bump=0.1,
            field_bump=0.1,
        )
        for number in range(rows)
    )


def fold_all() -> int:
    folded = 0
    while AccessLog.objects.filter(folded_at=None).exists():
        folded += accesses_fold(now=timezone.now())
    return folded


def test_two_workers_that_fold_at_once_fold_each_access_once(http_cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.recall.access_fold.ROWS_PER_FOLD", 7)
    ids = [http_cast.agent.remember(f"Topic {n}", values={"a": "0"}) for n in range(5)]
    fill_log(ids, 400)
    assert sum(at_once([fold_all] * 4)) == 400
    assert set(Vitality.objects.filter(pk__in=ids).values_list("retrieval_count", flat=True)) == {400}
    assert set(Field.objects.filter(topic_id__in=ids).values_list("retrieval_count", flat=True)) == {400}
    assert AccessLog.objects.filter(counted=True).count() == 400


def test_writing_and_folding_and_counting_the_same_rows_do_not_wait_in_a_circle(
    http_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.recall.access_fold.ROWS_PER_FOLD", 5)
    agent, operator = http_cast.agent, http_cast.operator
    ids = [agent.remember(f"Topic {n}", values={"a": "0", "b": "0"}) for n in range(30)]
    fill_log(ids, 300)
    done = threading.Event()

    def write(order: list[str]) -> Callable[[], set[int]]:
        items = [
            {
                "placement": "extend_topic",
                "topic_id": topic_id,
                "pinned": True,
                "fields": [{"name": "b", "value": "1"}, {"name": "a", "value": "2"}],
            }
            for topic_id in order
        ]
        return lambda: {batch(agent, items).status for _turn in range(6)}

    def write_deferred() -> set[int]:
        items = [
            {"placement": "extend_topic", "topic_id": i, "fields": [{"name": "c", "value": "1"}]} for i in ids[::-1]
        ]
        return {agent.post("/v1/ingest/batch?defer=1", items).status for _turn in range(6)}

    def move() -> set[int]:
        statuses = set()
        for topic_id in ids[::3]:
            for verb in ("archive", "restore"):
                statuses.add(operator.post(f"/v1/topics/{topic_id}/{verb}", {}).status)
        return statuses

    def worker(work: Callable[[], object]) -> Callable[[], set[int]]:
        def run() -> set[int]:
            while not done.is_set():
                work()
            return {200}

        return run

    writers = [write(ids), write(ids[::-1]), write_deferred, move]
    finished: list[int] = []

    def last_one_out(job: Callable[[], set[int]]) -> Callable[[], set[int]]:
        def run() -> set[int]:
            try:
                return job()
            finally:
                finished.append(1)
                if len(finished) == len(writers):
                    done.set()

        return run

    turns = [
        worker(lambda: accesses_fold(now=timezone.now())),
        worker(documents_count),
        worker(lambda: sum(vectors_fill())),
    ]
    statuses = at_once([last_one_out(job) for job in writers] + turns)
    assert set().union(*statuses) == {200}
    fold_all()
    assert set(Vitality.objects.filter(pk__in=ids).values_list("retrieval_count", flat=True)) == {300}
    assert set(Field.objects.filter(name="a").values_list("retrieval_count", "last_seq")) == {(300, 13)}


def test_the_worker_leaves_what_is_being_written_to_its_next_turn(http_cast: Cast) -> None:
    agent = http_cast.agent
    items = [{"placement": "new_topic", "title": f"Topic {n}"} for n in range(5)]
    results = agent.post("/v1/ingest/batch?defer=1", items).ok()["results"]
    held, done = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            for model in (TopicDocument, TopicVector):
                assert model.objects.select_for_update(no_key=True).get(pk=results[2]["topic_id"])
            held.set()
            done.wait(20)

    def work() -> tuple[int, int, int]:
        held.wait(20)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
            return documents_count(), sum(vectors_fill()), TopicVector.objects.filter(embedding=None).count()
        finally:
            done.set()

    _nothing, (counted, _tried, waiting) = at_once([write, work])
    assert (counted, waiting) == (4, 1)
    assert documents_count() == 1
    assert sum(vectors_fill()) == 1
    assert not TopicVector.objects.filter(embedding=None).exists()


def assert_live_agrees() -> None:
    for topic in Topic.objects.all():
        live = topic.rung != 3 and topic.released_at is None and topic.merged_into_id is None
        for model in (Vitality, TopicVector, TopicDocument):
            assert model.objects.get(pk=topic.pk).live == live
        assert Vitality.objects.get(pk=topic.pk).rung == topic.rung


def test_archive_and_restore_beside_ingest_and_edits_keep_every_copy_of_the_state_alike(http_cast: Cast) -> None:
    agent, operator = http_cast.agent, http_cast.operator
    for round_ in range(8):
        topic_id = agent.remember("Shifting", values={"state": "0"})

        def write(topic_id: str = topic_id) -> set[int]:
            item = {"placement": "version_field", "topic_id": topic_id}
            bodies = [{**item, "fields": [{"name": "state", "value": str(turn)}]} for turn in range(3)]
            return {agent.post("/v1/ingest", body).status for body in bodies}

        def edit(topic_id: str = topic_id, round_: int = round_) -> set[int]:
            return {agent.patch(f"/v1/topics/{topic_id}", {"title": f"Edited {round_} {n}"}).status for n in range(3)}

        def archive(topic_id: str = topic_id) -> set[int]:
            return {operator.post(f"/v1/topics/{topic_id}/archive", {}).status}

        def restore(topic_id: str = topic_id) -> set[int]:
            # Before the archive it is refused, after it granted.
            return {operator.post(f"/v1/topics/{topic_id}/restore", {}).status} - {409} | {200}

        jobs = [write, edit, archive, restore] if round_ % 2 else [write, edit, archive]
        assert set().union(*at_once(jobs)) == {200}
        assert_live_agrees()
        found = agent.found("Shifting Edited", top_k=50)
        assert (topic_id in found) == (Topic.objects.get(pk=topic_id).rung != 3)
        # The text that is searched is the one that was written last.
        with connection.cursor() as cursor:
            cursor.execute(
                """SELECT d.document @@ phraseto_tsquery('english', t.title) FROM memory_topicdocument d
                   JOIN memory_topic t ON t.id = d.topic_id WHERE t.id = %s""",
                [topic_id],
            )
            assert cursor.fetchone()[0]


def test_an_archive_beside_a_fold_keeps_both_effects(http_cast: Cast) -> None:
    for _round in range(10):
        topic_id = http_cast.agent.remember("Both", values={"a": "0"})
        fill_log([topic_id], 1)
        at_once([lambda i=topic_id: http_cast.operator.post(f"/v1/topics/{i}/archive", {}).ok(), fold_all])
        row = Vitality.objects.get(pk=topic_id)
        # Halved and then raised, or raised and then halved; never one of the two alone.
        assert row.salience == pytest.approx(0.6, abs=0.01) or row.salience == pytest.approx(0.55, abs=0.01)
        assert row.retrieval_count == 1
