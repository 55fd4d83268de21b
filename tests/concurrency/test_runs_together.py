"""Runs with more than one connection: each action once, one run where two are asked for, and no one in a circle."""

import datetime as dt
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from memory.forgetting import triggers as reasoner
from memory.forgetting.apply import run_step
from memory.forgetting.plan import planner_wait, run_plan
from memory.forgetting.triggers import event_raise, wake_ups_answer
from memory.ingest.embed_pending import vectors_fill
from memory.jobs import tasks
from memory.models import AuditEvent, Field, FieldSummary, ForgetAction, ForgetRun, PolicyVersion, Vitality, WakeUp
from memory.models.formulas_sql import counted_sql, fade_key_sql
from memory.policy.effective import policies_current
from memory.policy.rekey import half_lives_rekey
from memory.recall.access_fold import accesses_fold
from memory.recall.corpus import documents_count
from tests.cast import Answer, Cast
from tests.concurrency.test_writers import at_once
from tests.waiting import waiting

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _connections_closed() -> Iterator[None]:
    yield
    # The threads of the server keep their connections; the next test empties the tables they look at.
    connections.close_all()


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    # Few topics are enough for many turns.
    monkeypatch.setattr("memory.forgetting.runs.run_step", partial(run_step, size=7))
    monkeypatch.setattr("memory.forgetting.undo.BATCH", 7)


def policy(cast: Cast, /, **values: Any) -> Answer:
    return cast.operator.put("/v1/policies/", {"values": {"max_archive_share": 1.0, **values}, "reason": "a test"})


def old_topics(cast: Cast, count: int, *, salience: float = 0.1, revisions: int = 1) -> list[str]:
    """Make topics that no one has used for two half-lives, so that a quarter of their salience is left."""
    created = (timezone.now() - dt.timedelta(days=60)).isoformat()
    items: list[dict[str, Any]] = [
        {
            "placement": "new_topic",
            "topic_id": str(uuid.uuid4()),
            "title": f"Old {n}",
            "salience": salience,
            "created_at": created,
            "last_used_at": created,
            "fields": [{"name": "state", "value": "revision 1"}],
        }
        for n in range(count)
    ]
    ids = [item["topic_id"] for item in items]
    more = [
        {"placement": "version_field", "topic_id": topic_id, "fields": [{"name": "state", "value": f"revision {n}"}]}
        for n in range(2, revisions + 1)
        for topic_id in ids
    ]
    reply = cast.operator.post("/v1/ingest/batch", items + more).ok()
    assert reply["refused"] == 0
    return ids


def saliences(ids: list[str]) -> dict[str, float]:
    return {str(key): value for key, value in Vitality.objects.filter(pk__in=ids).values_list("pk", "salience")}


def rows_of(ids: list[str]) -> list[Any]:
    """What an undo has to bring back."""
    return list(Vitality.objects.filter(pk__in=ids).order_by("pk").values()) + list(
        Field.objects.filter(topic_id__in=ids).order_by("pk").values("id", "cold_through", "detached", "salience")
    )


def journal() -> list[Any]:
    return [
        list(model.objects.order_by("pk").values()) for model in (ForgetRun, ForgetAction, FieldSummary, AuditEvent)
    ]


def assert_archived_once(ids: list[str], before: dict[str, float]) -> None:
    assert saliences(ids) == {topic_id: salience * 0.5 for topic_id, salience in before.items()}
    assert set(Vitality.objects.filter(pk__in=ids).values_list("rung", "live")) == {(3, False)}
    actions = ForgetAction.objects.filter(topic_id__in=ids, state="applied").values_list("topic_id", flat=True)
    assert Counter(map(str, actions)) == Counter(ids)


def test_workers_that_wake_to_the_same_event_make_one_run(http_cast: Cast) -> None:
    for _round in range(4):
        ids = old_topics(http_cast, 40)
        before = saliences(ids)
        WakeUp.objects.all().delete()
        runs = ForgetRun.objects.count()
        event_raise("/", event="memory_pressure", now=timezone.now())
        planned = at_once([lambda: wake_ups_answer(now=timezone.now(), seconds=30)] * 4)
        assert sorted(planned) == [0, 0, 0, 1]
        assert ForgetRun.objects.count() == runs + 1
        run = ForgetRun.objects.latest("created_at")
        assert (run.status, run.planned, run.applied, run.skipped) == ("done", 40, 40, 0)
        assert_archived_once(ids, before)
        assert not WakeUp.objects.exists()


def test_the_schedule_and_the_event_and_an_operator_at_once_make_one_run(http_cast: Cast) -> None:
    for _round in range(3):
        ids = old_topics(http_cast, 40)
        before = saliences(ids)
        event_raise("/", event="memory_pressure", now=timezone.now())
        policy(http_cast, topic_count_soft_limit=0).ok()
        outcomes = at_once(
            [
                lambda: wake_ups_answer(now=timezone.now(), seconds=30),
                lambda: tasks.forget_scheduled("/"),
                lambda: http_cast.operator.post("/v1/runs", {"event": "manual", "dry_run": False}).status,
            ]
        )
        assert outcomes[2] in (200, 409)
        # Whoever came second saw the run at work, or nothing left to do.
        assert sum(ForgetRun.objects.filter(planned=40).values_list("applied", flat=True)) == 40 * (_round + 1)
        assert_archived_once(ids, before)


def test_what_happens_where_a_run_is_at_work_is_answered_after_it(http_cast: Cast) -> None:
    policy(http_cast).ok()
    first, now = old_topics(http_cast, 20), timezone.now()
    run = run_plan(
        "/", event="manual", dry_run=False, actor="test", policies=policies_current(), judged_at=now, now=now
    )
    WakeUp.objects.all().delete()
    second = old_topics(http_cast, 20)
    WakeUp.objects.all().delete()
    event_raise("/", event="memory_pressure", now=now)
    # A turn that has no time left for the run itself.
    assert at_once([lambda: wake_ups_answer(now=timezone.now(), seconds=0)] * 2) == [0, 0]
    assert WakeUp.objects.count() == 1
    assert tasks.run_continue(str(run.pk)) == "done"
    assert set(Vitality.objects.filter(pk__in=second).values_list("rung", flat=True)) == {0}
    assert wake_ups_answer(now=timezone.now(), seconds=30) == 1
    assert set(Vitality.objects.filter(pk__in=first + second).values_list("rung", flat=True)) == {3}
    assert not WakeUp.objects.exists()


def test_what_happens_while_a_run_is_planned_is_answered_after_it(
    http_cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(http_cast, topic_count_soft_limit=1).ok()
    # What is brought in with its age wakes no one; what comes now does.
    first = old_topics(http_cast, 10)
    http_cast.agent.remember("Now")
    assert WakeUp.objects.filter(event="ingest_complete").count() == 1
    planned, wait, waited = threading.Event(), threading.Event(), []

    def slow(*args: Any, **more: Any) -> ForgetRun:
        run = run_plan(*args, **more)
        planned.set()
        waited.append(wait.wait(20))
        return run

    monkeypatch.setattr(reasoner, "run_plan", slow)

    def write() -> list[str]:
        planned.wait(20)
        # The writer need not wait for the plan; only its event does.
        try:
            return [*old_topics(http_cast, 10), http_cast.agent.remember("Now too")][:10]
        finally:
            wait.set()

    runs, second = at_once([lambda: wake_ups_answer(now=timezone.now(), seconds=30), write])
    assert (runs, waited) == (1, [True])
    assert set(Vitality.objects.filter(pk__in=first).values_list("rung", flat=True)) == {3}
    assert set(Vitality.objects.filter(pk__in=second).values_list("rung", flat=True)) == {0}
    assert WakeUp.objects.filter(event="ingest_complete").count() == 1
    assert wake_ups_answer(now=timezone.now(), seconds=30) == 1
    assert set(Vitality.objects.filter(pk__in=second).values_list("rung", flat=True)) == {3}


def test_of_operators_who_run_at_once_the_others_are_reported_and_nothing_is_doubled(http_cast: Cast) -> None:
    policy(http_cast).ok()
    refused: list[str] = []
    for _round in range(4):
        ids = old_topics(http_cast, 60)
        before = saliences(ids)
        replies = at_once([lambda: http_cast.operator.post("/v1/runs", {"event": "manual", "dry_run": False})] * 3)
        assert {reply.status for reply in replies} <= {200, 409}
        done = [reply.json for reply in replies if reply.status == 200]
        assert sorted(run["applied"] for run in done) == [0] * (len(done) - 1) + [60]
        assert {run["status"] for run in done} == {"done"}
        refused += [reply.code for reply in replies if reply.status == 409]
        assert_archived_once(ids, before)
    assert refused
    assert set(refused) == {"busy"}


def test_runs_in_scopes_beside_each_other_go_on_at_once_and_one_above_them_waits(http_cast: Cast) -> None:
    now = timezone.now()
    for name in ("a", "b"):
        items = [
            {
                "placement": "new_topic",
                "title": f"Old {n}",
                "salience": 0.1,
                "scope": f"/{name}",
                "created_at": (now - dt.timedelta(days=60)).isoformat(),
                "last_used_at": (now - dt.timedelta(days=60)).isoformat(),
            }
            for n in range(30)
        ]
        http_cast.operator.post("/v1/ingest/batch", items).ok()

    def start(scope: str) -> ForgetRun:
        return run_plan(
            scope, event="manual", dry_run=False, actor="test", policies=policies_current(), judged_at=now, now=now
        )

    runs = [start("/a"), start("/b")]
    reply = http_cast.operator.post("/v1/runs", {"event": "manual", "dry_run": False})
    assert (reply.status, reply.code) == (409, "busy")
    assert at_once([lambda run=run: tasks.run_continue(str(run.pk)) for run in runs * 2]) == ["done"] * 4
    assert [ForgetRun.objects.get(pk=run.pk).applied for run in runs] == [30, 30]


def test_a_run_that_is_delivered_many_times_at_once_and_again_acts_once(http_cast: Cast) -> None:
    archived = old_topics(http_cast, 60)
    folded = old_topics(http_cast, 60, salience=0.8, revisions=7)
    detached = old_topics(http_cast, 30, salience=0.32, revisions=7)
    policy(http_cast).ok()
    before, now = saliences(archived), timezone.now()
    undoable = rows_of([*archived, *folded, *detached])
    run = run_plan(
        "/", event="manual", dry_run=False, actor="test", policies=policies_current(), judged_at=now, now=now
    )
    assert (run.status, run.planned, run.applied) == ("applying", 150, 0)
    assert at_once([lambda: tasks.run_continue(str(run.pk))] * 4) == ["done"] * 4
    run.refresh_from_db()
    assert (run.applied, run.skipped, run.failure) == (150, 0, "")
    assert_archived_once(archived, before)
    # Whoever prepared summaries for topics that another worker took has not left the next ones without.
    summaries = FieldSummary.objects.filter(withdrawn_at=None)
    assert Counter(summaries.values_list("field__topic_id", flat=True)) == Counter(map(uuid.UUID, folded + detached))
    assert set(Field.objects.filter(topic_id__in=folded + detached).values_list("cold_through", flat=True)) == {2}
    stands = journal()
    assert at_once([lambda: tasks.run_continue(str(run.pk))] * 3) == ["done"] * 3
    assert wake_ups_answer(now=timezone.now(), seconds=5) == 0
    assert journal() == stands
    # Two undos at once take turns as well, are shown the same, and leave one line in the journal.
    replies = at_once([lambda: http_cast.operator.post(f"/v1/runs/{run.pk}/undo", {}).ok()] * 3)
    assert {(reply["restored"], reply["conflict_count"]) for reply in replies} == {(150, 0)}
    assert AuditEvent.objects.filter(action="run_undone").count() == 1
    assert rows_of([*archived, *folded, *detached]) == undoable


def test_one_plan_is_applied_once_whoever_asks_for_it_at_once(http_cast: Cast) -> None:
    for _round in range(3):
        ids = old_topics(http_cast, 30)
        before = saliences(ids)
        plan = http_cast.operator.post("/v1/runs", {"event": "manual"}).ok()
        replies = at_once([lambda: http_cast.operator.post(f"/v1/runs/{plan['run_id']}/apply", {})] * 3)  # noqa: B023
        assert sorted(reply.status for reply in replies) == [200, 409, 409]
        assert all(r.code == "conflict" for r in replies if r.status == 409)
        assert_archived_once(ids, before)
    assert AuditEvent.objects.filter(action="run_applied").count() == 3


def test_approve_and_undo_at_once_leave_a_run_done_or_undone_and_nothing_between(http_cast: Cast) -> None:
    policy(http_cast, mode="review").ok()
    seen: Counter[str] = Counter()
    ids: list[str] = []
    for _round in range(6):
        # What was taken back is due again, beside what is new.
        ids += old_topics(http_cast, 20)
        before, salience = rows_of(ids), saliences(ids)
        held = http_cast.operator.post("/v1/runs", {"event": "manual", "dry_run": False}).ok()
        assert held["status"] == "held"
        path = f"/v1/runs/{held['run_id']}"

        def undo(path: str = path, pause: float = _round * 0.03) -> Answer:
            time.sleep(pause)
            return http_cast.operator.post(f"{path}/undo", {})

        def approve(path: str = path) -> Answer:
            return http_cast.operator.post(f"{path}/approve", {"reason": "looks right"})

        one, other, undone = at_once([approve, approve, undo])
        assert sorted([one.status, other.status]) == [200, 409]
        status = http_cast.operator.get(path).ok()["status"]
        seen[status] += 1
        if undone.status == 409:
            assert undone.code == "conflict"
            assert status == "done"
            assert_archived_once(ids, salience)
            http_cast.operator.post(f"{path}/undo", {}).ok()
        else:
            assert (undone.ok()["restored"], status) == (len(ids), "undone")
        assert rows_of(ids) == before
    assert seen["done"]


def test_of_two_who_save_one_policy_at_once_one_is_reported_what_the_other_changed(http_cast: Cast) -> None:
    policy(http_cast).ok()

    def save(theta: float) -> Answer:
        return http_cast.operator.put(
            "/v1/policies/", {"values": {"theta_summary": theta}, "reason": "a test", "base_version": 1}
        )

    replies = at_once([partial(save, 0.3), partial(save, 0.4)])
    assert sorted(reply.status for reply in replies) == [200, 409]
    got = next(reply for reply in replies if reply.status == 409)
    assert got.code == "changed-meanwhile"
    assert "theta_summary" in got.detail
    assert PolicyVersion.objects.count() == 2


@pytest.mark.parametrize("way", ["dry run", "review", "auto"])
def test_a_run_acts_by_the_policy_it_was_planned_with_and_says_so(http_cast: Cast, way: str) -> None:
    ids = old_topics(http_cast, 20)
    policy(http_cast, mode="review" if way == "review" else "auto").ok()
    ready = threading.Event()

    def plan() -> Any:
        ready.wait(20)
        return http_cast.operator.post("/v1/runs", {"event": "manual", "dry_run": way == "dry run"}).ok()

    def save() -> None:
        # The plan has read the policies and waits for its turn; before that comes, nothing would be due any more.
        with transaction.atomic():
            planner_wait()
            ready.set()
            deadline = time.monotonic() + 20
            while not waiting():
                assert time.monotonic() < deadline
            PolicyVersion.objects.create(
                scope="/",
                number=2,
                values={"forget_salience_threshold": 0, "theta_detach": 0, "theta_summary": 0},
                author="test",
                reason="while a run is planned",
                created_at=timezone.now(),
            )

    run, _nothing = at_once([plan, save])
    assert policies_current().effective("/").version == 2
    assert (run["policy_version"], run["policy_versions"]) == (1, {"/": 1})
    assert sorted(run["results"]) == sorted(f"archived:{topic_id}" for topic_id in ids)
    assert {why["version"] for why in ForgetAction.objects.values_list("why", flat=True)} == {1}
    rungs = Vitality.objects.filter(pk__in=ids).values_list("rung", flat=True)
    if way == "auto":
        assert (run["status"], set(rungs)) == ("done", {3})
        return
    verb = "apply" if way == "dry run" else "approve"
    reply = http_cast.operator.post(f"/v1/runs/{run['run_id']}/{verb}", {})
    assert reply.status == 409
    assert reply.code == "changed-meanwhile"
    assert set(rungs) == {0}


def deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


_KEY = "(" + fade_key_sql("v.salience", counted=counted_sql("v"), half_life="v.half_life") + ")"

# A row for each topic or field whose copies of the state differ, or that stands where nothing can stand.
_ILLEGAL = f"""
SELECT 'topic', t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
JOIN memory_topicvector e ON e.topic_id = t.id JOIN memory_topicdocument d ON d.topic_id = t.id
WHERE t.rung <> v.rung OR v.live <> (t.rung < 3 AND t.released_at IS NULL) OR e.live <> v.live OR d.live <> v.live
   OR v.fade_floor > v.fade OR NOT (v.fade = {_KEY} OR abs(v.fade - {_KEY}) < 1e-3)
UNION ALL
SELECT 'field', f.id FROM memory_field f JOIN memory_topic t ON t.id = f.topic_id
LEFT JOIN (SELECT field_id, max(through_seq) AS through FROM memory_fieldsummary WHERE withdrawn_at IS NULL
           GROUP BY field_id) s ON s.field_id = f.id
WHERE f.cold_through > f.last_seq OR coalesce(s.through, 0) > f.cold_through
   OR f.last_seq <> (SELECT count(*) FROM memory_revision r WHERE r.field_id = f.id)
   OR (f.detached AND t.rung < 2) OR (s.through IS NOT NULL AND t.rung = 0)
"""


def test_runs_beside_everything_else_leave_every_topic_whole_and_tell_what_they_skipped(http_cast: Cast) -> None:
    agent, operator = http_cast.agent, http_cast.operator
    # What is restored, edited or used is due again at once, so that every run meets someone.
    policy(
        http_cast,
        theta_summary=9,
        theta_detach=6,
        forget_salience_threshold=3,
        prune_after_days=0,
        topic_count_soft_limit=0,
        keep_recent_revisions=2,
    ).ok()
    ids = [
        topic_id for salience in (4, 6, 8, 10) for topic_id in old_topics(http_cast, 10, salience=salience, revisions=4)
    ]
    before, done, finished = deadlocks(), threading.Event(), []
    statuses: Counter[tuple[str, int]] = Counter()

    def send(name: str, reply: Answer) -> None:
        statuses[name, reply.status] += 1

    def run_and_undo() -> None:
        for turn in range(12):
            reply = operator.post("/v1/runs", {"event": "manual", "dry_run": False})
            send("run", reply)
            if turn % 4 == 3 and reply.status == 200 and reply.json["applied"]:
                send("undo", operator.post(f"/v1/runs/{reply.json['run_id']}/undo", {}))

    def write(order: list[str]) -> None:
        for turn in range(5):
            items = [
                {
                    "placement": "extend_topic",
                    "topic_id": topic_id,
                    "fields": [{"name": "state", "value": f"turn {turn}"}, {"name": f"more {turn}", "value": "1"}],
                }
                for topic_id in order
            ]
            send("write", agent.post("/v1/ingest/batch", items))

    def edit() -> None:
        for turn in range(2):
            for place, topic_id in enumerate(ids):
                body = {"title": f"Edited {turn}", "salience": float((place * 3 + turn * 5) % 11)}
                send("edit", operator.patch(f"/v1/topics/{topic_id}", body))

    def pin() -> None:
        for topic_id in ids[::-2]:
            for verb in ("pin", "unpin"):
                send(verb, operator.post(f"/v1/topics/{topic_id}/{verb}", {}))

    def move() -> None:
        for _turn in range(2):
            for topic_id in ids[::2]:
                for verb in ("restore", "archive", "restore"):
                    send(verb, operator.post(f"/v1/topics/{topic_id}/{verb}", {}))

    def ask() -> None:
        for turn in range(30):
            send("query", agent.post("/v1/query", {"q": f"Edited old {turn % 7}", "top_k": 20}))

    def rekey() -> None:
        for turn in range(5):
            send(
                "policy",
                policy(
                    http_cast,
                    theta_summary=9,
                    theta_detach=6,
                    forget_salience_threshold=3,
                    prune_after_days=0,
                    topic_count_soft_limit=0,
                    keep_recent_revisions=2,
                    half_life_days=20 + turn,
                ),
            )
            half_lives_rekey(now=timezone.now(), budget_seconds=20)

    def worker() -> None:
        while not done.is_set():
            accesses_fold(now=timezone.now())
            documents_count()
            sum(vectors_fill())
            wake_ups_answer(now=timezone.now(), seconds=20)

    clients: list[Callable[[], None]] = [
        run_and_undo,
        partial(write, ids),
        partial(write, ids[::-1]),
        edit,
        pin,
        move,
        ask,
        rekey,
    ]

    def last_one_out(job: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                job()
            finally:
                finished.append(1)
                if len(finished) == len(clients):
                    done.set()

        return run

    at_once([*(last_one_out(job) for job in clients), worker, worker])
    wake_ups_answer(now=timezone.now(), seconds=20)
    assert deadlocks() == before
    # 409: a run is at work; already archived or already back.
    assert {status for _name, status in statuses} <= {200, 409}, statuses
    assert {name for name, status in statuses if status == 409} <= {"run", "undo", "archive", "restore"}, statuses
    with connection.cursor() as cursor:
        cursor.execute(_ILLEGAL)
        assert cursor.fetchall() == []
    runs = list(ForgetRun.objects.all())
    assert {run.status for run in runs} <= {"done", "undone"}
    for run in runs:
        states = Counter(run.actions.values_list("state", flat=True))
        assert run.applied + run.skipped == run.planned == run.actions.count()
        assert (states["applied"] + states["undone"] + states["conflict"], states["skipped"]) == (
            run.applied,
            run.skipped,
        )
        assert len(set(run.actions.values_list("topic_id", flat=True))) == run.planned
        assert not run.failure
    got = ForgetAction.objects.filter(state__in=["skipped", "conflict"]).values_list("note", flat=True)
    assert all(note.endswith(".") and note.startswith("It") for note in got)
    for action in ForgetAction.objects.filter(action="archived").exclude(after=None):
        assert action.after["salience"] == action.before["salience"] * 0.5
    applied, skipped = sum(run.applied for run in runs), sum(run.skipped for run in runs)
    print(f"{applied} applied, {skipped} skipped since another was faster")
