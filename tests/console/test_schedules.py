"""Schedules at the console: what learns of worker, queue and times, and what an operator does with them."""

import datetime as dt
import re
import uuid
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule

from memory.console.queries.waiting import waiting_counts
from memory.forgetting.triggers import event_raise
from memory.health import failure_check
from memory.jobs import tasks
from memory.models import AuditEvent
from memory.policy.cron_words import cron_words, minutes_words
from memory.stores.models import WorkerHeartbeat
from tests.cast import Caller, Clock
from tests.console.people import body_of, codes_of, statements_of
from tests.forgetting.shop import NOON, policy_put


@pytest.fixture(autouse=True)
def _noon(clock: Clock, operator: Caller) -> None:
    clock.set(NOON)
    Schedule.objects.all().delete()
    OrmQ.objects.all().delete()
    tasks.schedules_ensure()
    # Theirs is the clock of the process when they are made.
    Schedule.objects.filter(schedule_type="I").update(next_run=NOON)


# As the queue keeps it: the words of the exception, then its traceback.
ERROR = "no luck : Traceback\n  File x\nValueError: no luck"


def text_of(reply: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", body_of(reply)).split())


def schedule(name: str) -> Schedule:
    return Schedule.objects.get(name=name)


def queued() -> list[tuple[str, tuple[Any, ...]]]:
    return [(job.task["func"], tuple(job.task["args"])) for job in OrmQ.objects.order_by("id")]


def do(client: Client, name: str, verb: str, **said: Any) -> Any:
    return client.post(f"/schedules/{schedule(name).pk}/{verb}/", {"reason": "for the test", **said}, follow=True)


def failure(**members: Any) -> Failure:
    return Failure.objects.create(
        id=uuid.uuid4().hex,
        name="quiet-owl",
        started=NOON,
        stopped=NOON,
        success=False,
        attempt_count=3,
        **{"args": (), "func": "memory.jobs.tasks.tidy", "result": ERROR, **members},
    )


def test_schedules_are_reported_in_words_with_their_next_time(looker: Client, operator: Caller) -> None:
    policy_put(operator, "/shop", cron="30 4 * * 1", mode="review")
    page = text_of(looker.get("/runs/"))
    assert "every day at 03:00 UTC automatic in 15 hours" in page
    assert "/shop Mondays at 04:30 UTC needs approval in 16 hours" in page
    page = text_of(looker.get("/schedules/"))
    assert "every minute" in page
    assert "every hour" in page


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 3 * * *", "every day at 03:00 UTC"),
        ("0 3,15 * * *", "every day at 03:00 and 15:00 UTC"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/45 * * * *", "by the cron line */45 * * * *"),
        ("5 * * * *", "every hour at :05"),
        ("0 */6 * * *", "every 6 hours at :00"),
        ("30 4 * * 1,4", "Mondays and Thursdays at 04:30 UTC"),
        ("30 4 * * sun", "Sundays at 04:30 UTC"),
        ("0 7 * * 1-5", "Monday to Friday at 07:00 UTC"),
        ("5 * * * 0", "every hour at :05, Sundays"),
        ("0 0 1 * *", "on day 1 of each month at 00:00 UTC"),
        ("0 0 1 * 1", "by the cron line 0 0 1 * 1"),
        ("0 0 29 2 *", "by the cron line 0 0 29 2 *"),
        ("* * * * *", "every minute"),
    ],
)
def test_a_cron_line_is_said_in_words_or_quoted(cron: str, said: str) -> None:
    assert cron_words(cron) == said


def test_minutes_are_said_in_words() -> None:
    assert [minutes_words(each) for each in (1, 10, 60, 90, 120)] == [
        "every minute",
        "every 10 minutes",
        "every hour",
        "every 90 minutes",
        "every 2 hours",
    ]


def test_the_worker_and_the_queue_are_reported_and_refresh_themselves(looker: Client, db: None) -> None:
    WorkerHeartbeat.objects.update_or_create(name="worker", defaults={"seen_at": NOON - dt.timedelta(seconds=20)})
    tasks.upkeep_request()
    OrmQ.objects.update(lock=NOON - dt.timedelta(seconds=5))
    event_raise("/shop", event="memory_pressure", now=NOON)

    page = body_of(looker.get("/schedules/"))
    assert 'hx-trigger="every 10s"' in page
    assert "data-live" in page
    part = text_of(looker.get("/schedules/pulse/", headers={"HX-Request": "true"}))
    assert "The worker reported 20 seconds ago." in part
    assert "1 waiting" in part
    assert "Upkeep due" in part
    assert "/shop : memory pressure" in part
    assert looker.get("/schedules/pulse/").status_code == 302

    WorkerHeartbeat.objects.update(seen_at=NOON - dt.timedelta(hours=3))
    assert "not running" in text_of(looker.get("/schedules/"))


def test_a_pause_survives_a_restart_until_it_is_resumed(op: Client, clock: Clock) -> None:
    page = text_of(do(op, "shadow", "pause"))
    assert "Shadow search is paused." in page
    assert "none while paused" in page

    clock.set(NOON + dt.timedelta(days=2))
    tasks.schedules_ensure()
    assert schedule("shadow").repeats == 0
    assert do(op, "shadow", "pause").status_code == 409

    do(op, "shadow", "resume")
    assert schedule("shadow").repeats == -1
    assert schedule("shadow").next_run == NOON + dt.timedelta(days=2)
    got = AuditEvent.objects.filter(action__startswith="schedule_").order_by("id")
    assert [(each.action, each.actor, each.reason) for each in got] == [
        ("schedule_paused", "user:operator", "for the test"),
        ("schedule_resumed", "user:operator", "for the test"),
    ]


def test_a_change_of_minutes_survives_a_restart_and_stays_in_bounds(op: Client, clock: Clock) -> None:
    assert "Shadow search now runs every 30 minutes." in text_of(do(op, "shadow", "change", minutes=30))
    tasks.schedules_ensure()
    assert schedule("shadow").minutes == 30
    assert schedule("shadow").next_run == NOON + dt.timedelta(minutes=30)

    for wrong in ("0", "1441", "soon", ""):
        assert do(op, "shadow", "change", minutes=wrong).status_code == 422
    # Less often than that, and the worker would be taken for dead.
    assert do(op, "upkeep", "change", minutes=3).status_code == 422
    assert schedule("upkeep").minutes == 1
    assert AuditEvent.objects.get(action="schedule_changed").after == {"schedule": "shadow", "minutes": 30}


def test_run_now_queues_the_job_and_leaves_a_row_in_the_journal(op: Client, operator: Caller) -> None:
    policy_put(operator, "/shop", theta_summary=0.3)
    OrmQ.objects.all().delete()

    assert "Tidying is queued." in text_of(do(op, "tidy", "run"))
    assert "Scheduled run is queued." in text_of(do(op, "forget /shop", "run"))

    assert queued() == [("memory.jobs.tasks.tidy", ()), ("memory.jobs.tasks.forget_scheduled", ("/shop",))]
    got = AuditEvent.objects.filter(action="schedule_run").order_by("id")
    assert [(each.scope, each.actor, each.reason) for each in got] == [
        ("/", "user:operator", "for the test"),
        ("/shop", "user:operator", "for the test"),
    ]
    assert tasks.forget_scheduled("/shop") is not None
    assert "Nothing was done. The live memories" in text_of(op.get("/runs/"))


def test_the_schedule_of_a_policy_is_paused_in_the_policy(op: Client, operator: Caller) -> None:
    for verb in ("pause", "resume"):
        reply = do(op, "forget /", verb)
        assert (reply.status_code, codes_of(reply)) == (409, ["conflict"])
        assert "/policies/edit/?scope=%2F" in body_of(reply)

    policy_put(operator, mode="off")
    page = body_of(op.get("/runs/"))
    assert "never" in page
    assert f"/schedules/{schedule('forget /').pk}/run/" not in page
    reply = do(op, "forget /", "run")
    assert (reply.status_code, codes_of(reply)) == (409, ["conflict"])
    assert not AuditEvent.objects.filter(action__startswith="schedule_").exists()


def test_a_failed_job_is_reported_with_its_error_and_tried_again(op: Client, db: None) -> None:
    failed = failure()
    OrmQ.objects.all().delete()

    assert "Tidying ValueError: no luck 3" in text_of(op.get("/schedules/"))
    assert not failure_check(timezone.now()).ok
    assert "Tidying is queued again." in text_of(op.post(f"/schedules/failed/{failed.pk}/again/", follow=True))

    assert queued() == [("memory.jobs.tasks.tidy", ())]
    assert AuditEvent.objects.get(action="job_retried").before["error"] == "ValueError: no luck"
    assert "no luck" not in text_of(op.get("/schedules/"))
    assert waiting_counts(timezone.now()).failures == 0
    assert failure_check(timezone.now()).ok


def test_a_study_is_tried_again_without_the_turn_that_counts_as_taken(op: Client, db: None) -> None:
    job_id = str(uuid.uuid4())
    failed = failure(func="memory.jobs.tasks.study_continue", args=(job_id, 4))
    OrmQ.objects.all().delete()

    op.post(f"/schedules/failed/{failed.pk}/again/")

    assert queued() == [("memory.jobs.tasks.study_continue", (job_id,))]


def test_a_job_of_someone_else_is_shown_and_not_called(op: Client, db: None) -> None:
    failed = failure(func="os.system", args=("true",))
    foreign = Schedule.objects.create(name="foreign", func="os.system", args="'true'", schedule_type="D", next_run=NOON)
    OrmQ.objects.all().delete()

    page = body_of(op.get("/schedules/"))
    assert f"/schedules/failed/{failed.pk}/again/" not in page
    assert op.post(f"/schedules/failed/{failed.pk}/again/").status_code == 404
    assert op.post(f"/schedules/{foreign.pk}/run/", {}).status_code == 409
    assert queued() == []


def test_a_reader_sees_schedules_and_is_refused_every_change(looker: Client, db: None) -> None:
    page = body_of(looker.get("/schedules/"))
    assert "Run now" not in page
    number, failed = schedule("tidy").pk, failure()
    OrmQ.objects.all().delete()
    for verb in ("run", "pause", "resume", "change"):
        assert looker.get(f"/schedules/{number}/{verb}/").status_code == 403
        assert looker.post(f"/schedules/{number}/{verb}/", {"minutes": 5}).status_code == 403
    assert looker.post(f"/schedules/failed/{failed.pk}/again/").status_code == 403
    assert queued() == []
    assert schedule("tidy").repeats == -1


def test_the_page_costs_the_same_for_ten_policies_and_for_two_hundred(looker: Client, operator: Caller) -> None:
    def policies(first: int, last: int) -> None:
        Schedule.objects.bulk_create(
            Schedule(
                name=f"forget /{n:03}",
                func="memory.jobs.tasks.forget_scheduled",
                args=repr((f"/{n:03}",)),
                cron="0 3 * * *",
                schedule_type="C",
                next_run=NOON,
                task=uuid.uuid4().hex,
            )
            for n in range(first, last)
        )

    policies(0, 10)
    tasks.upkeep_request()
    paths = ("/schedules/", "/runs/", "/runs/next/")
    few = [statements_of(lambda path=path: looker.get(path)) for path in paths]
    policies(10, 200)
    for _place in range(30):
        tasks.upkeep_request()

    assert [statements_of(lambda path=path: looker.get(path)) for path in paths] == few
    page = body_of(looker.get("/runs/next/"))
    following = re.search(r'rel="next" href="(\?[^"]+)"', page)
    assert following is not None
    assert "/049" in body_of(looker.get(f"/runs/next/{following[1]}"))


def test_a_second_click_on_run_now_queues_nothing(op: Client) -> None:
    assert "Tidying is queued." in text_of(do(op, "tidy", "run"))
    again = do(op, "tidy", "run")
    assert (again.status_code, codes_of(again)) == (409, ["already-exists"])
    assert queued() == [("memory.jobs.tasks.tidy", ())]
    # Once the worker has it in hand, another one may be wanted.
    OrmQ.objects.update(lock=NOON + dt.timedelta(hours=1))
    assert "Tidying is queued." in text_of(do(op, "tidy", "run"))


def test_a_second_click_on_again_queues_nothing(op: Client) -> None:
    row = failure()
    for status in (302, 409):
        assert op.post(f"/schedules/failed/{row.pk}/again/").status_code == status
    assert len(queued()) == 1


def test_the_list_of_policies_goes_on_where_it_left_off(looker: Client, operator: Caller, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory.console.pages.runs.NEXT.limit", 1)
    scopes = ["/", "/a", "/b"]
    for scope in scopes:
        policy_put(operator, scope, cron="30 4 * * 1")
    seen, query = [], ""
    for _page in scopes:
        page = body_of(looker.get(f"/runs/next/{query}"))
        seen += re.findall(r"/policies/at/\?scope=([^\"&]+)", page.partition("<main")[2])
        query = "".join(re.findall(r'rel="next" href="([^"]+)"', page))
    assert ([unquote(scope) for scope in dict.fromkeys(seen)], query) == (scopes, "")
    assert looker.get("/runs/next/?cursor=/a").status_code == 400


def test_a_clock_that_was_ahead_does_not_stop_the_schedules_for_long() -> None:
    Schedule.objects.update(next_run=NOON + dt.timedelta(days=30))
    tasks.schedules_ensure()
    for one in Schedule.objects.all():
        longest = dt.timedelta(days=1) if one.schedule_type == Schedule.CRON else dt.timedelta(minutes=one.minutes)
        assert NOON < one.next_run <= NOON + longest, one.func


def test_a_start_leaves_the_next_runs_alone() -> None:
    before = dict(Schedule.objects.values_list("func", "next_run"))
    tasks.schedules_ensure()
    assert dict(Schedule.objects.values_list("func", "next_run")) == before
