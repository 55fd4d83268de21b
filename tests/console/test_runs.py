"""Runs at the console: from a dry run to the undo, held runs, progress, and what no one may do."""

import datetime as dt
import json
import re
import uuid
from typing import Any

import pytest
from django.test import Client

from memory.erasure.purge import topics_purge
from memory.forgetting.previews import undo_preview
from memory.forgetting.runs import run_start
from memory.models import AccessLog, AuditEvent, ForgetAction, ForgetRun, PolicyVersion, Topic
from tests.cast import Caller, Clock, principal_like
from tests.console.people import body_of, codes_of, statements_of
from tests.forgetting.shop import NOON, policy_put, rungs, topics_make


@pytest.fixture(autouse=True)
def _noon(clock: Clock, operator: Caller) -> None:
    clock.set(NOON)
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0)


def text_of(client: Client, path: str, **query: str) -> str:
    """Return a page as text, without markup."""
    reply = client.get(path, query)
    assert reply.status_code == 200, reply.content
    return words(body_of(reply))


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def planned(op: Client, scope: str = "") -> ForgetRun:
    """Make a dry run through the page."""
    reply = op.post("/runs/", {"scope": scope, "then": "show"})
    assert reply.status_code == 302, reply.content
    run = ForgetRun.objects.order_by("-created_at", "-id").first()
    assert run is not None
    assert reply.headers["Location"] == f"/runs/{run.pk}/"
    return run


def step(op: Client, run: ForgetRun, verb: str, *, reason: str = "for the test") -> Any:
    return op.post(f"/runs/{run.pk}/{verb}/", {"reason": reason}, follow=True)


def test_a_plan_is_read_and_applied_and_taken_back(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 3, salience=0.01)
    kept = operator.remember("Kept")

    run = planned(op)
    page = text_of(op, f"/runs/{run.pk}/")
    assert "It would archive 3." in page
    assert "Below the threshold for archiving, 0.05." in page
    assert rungs(operator, *topics) == ["active"] * 3

    assert "3 memories changed" in text_of(op, f"/runs/{run.pk}/apply/")
    page = words(body_of(step(op, run, "apply")))
    assert "Archived 3." in page
    assert rungs(operator, *topics, kept) == ["archived"] * 3 + ["active"]

    assert "3 memories restored" in text_of(op, f"/runs/{run.pk}/undo/")
    page = words(body_of(step(op, run, "undo", reason="was better before")))
    assert "Undone: 3 memories became active again." in page
    assert rungs(operator, *topics) == ["active"] * 3
    got = AuditEvent.objects.get(action="run_undone")
    assert (got.actor, got.reason) == ("user:operator", "was better before")


def test_a_memory_is_kept_out_of_a_plan(op: Client, looker: Client, operator: Caller) -> None:
    kept, *others = topics_make(operator, 3, salience=0.01)
    run = planned(op)
    path = f"/runs/{run.pk}/keep/{kept}/"
    assert path in op.get(f"/runs/{run.pk}/").content.decode()
    assert looker.post(path).status_code == 403

    page = words(body_of(op.post(path, {"next": f"/runs/{run.pk}/"}, follow=True)))

    assert "It would archive 2." in page
    assert "It was pinned, so that it is kept." in page
    assert op.post(path).status_code == 409
    # The reason is optional, because the run is easily undone.
    assert "Archived 2." in words(body_of(step(op, run, "apply", reason="")))
    assert rungs(operator, kept, *others) == ["active", "archived", "archived"]
    assert operator.topic(kept)["pinned"]


def test_a_compaction_is_reported_on_every_page_of_it(op: Client, operator: Caller) -> None:
    policy_put(operator, compact=True, topic_count_soft_limit=0)
    topics = topics_make(operator, 4, days=400, title="Rain radar")
    run = planned(op)
    assert "It would archive 4, compact groups 1." in text_of(op, f"/runs/{run.pk}/")
    assert "4 memories changed" in text_of(op, f"/runs/{run.pk}/apply/")
    page = words(body_of(step(op, run, "apply")))
    assert "Archived 4, compacted groups 1." in page
    assert "Rain radar (and 3 more)" in page
    made = ForgetAction.objects.get(run=run, action="compacted").topic_id
    assert "made of 4 memories" in text_of(op, f"/topics/{made}/")
    assert f"/topics/{made}/" in body_of(op.get(f"/topics/{topics[0]}/"))
    assert "4 memories restored" in text_of(op, f"/runs/{run.pk}/undo/")
    assert "Undone: 4 memories became active again." in words(body_of(step(op, run, "undo")))


def test_a_plan_for_approval_waits_until_someone_approves_it(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 2, salience=0.01, scope="/shop")
    operator.remember("Elsewhere", salience=0.01)

    page = body_of(op.post("/runs/", {"scope": "/shop", "then": "approve"}, follow=True))

    run = ForgetRun.objects.get()
    assert (run.status, run.dry_run, run.planned) == ("held", False, 2)
    assert run.held_because == "operator asked for approval."
    assert f'action="/runs/{run.pk}/approve/"' in page
    assert rungs(operator, *topics) == ["active"] * 2
    assert "operator asked for approval." in text_of(op, "/")
    step(op, run, "approve")
    assert rungs(operator, *topics) == ["archived"] * 2
    assert op.post("/runs/", {"then": "at once"}).status_code == 422
    assert ForgetRun.objects.count() == 1


def test_a_held_run_is_refused_with_the_policy_that_caused_it(op: Client, operator: Caller) -> None:
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    topics = topics_make(operator, 2, salience=0.01)
    operator.post("/v1/runs", {"dry_run": False}).ok()
    run = ForgetRun.objects.get()
    page = body_of(op.get(f"/runs/{run.pk}/"))
    assert f'formaction="/runs/{run.pk}/refuse/"' in page
    assert 'name="roll_back"' in page
    page = body_of(op.post(f"/runs/{run.pk}/refuse/", {"roll_back": "1", "reason": "a mistake"}, follow=True))
    run.refresh_from_db()
    assert run.status == "refused"
    assert "a mistake" in page
    assert "/refuse/" not in page
    assert "/approve/" not in page
    assert 'class="lines decide"' not in body_of(op.get("/"))
    assert "mode" not in operator.get("/v1/policies/").ok()["values"]
    assert rungs(operator, *topics) == ["active"] * 2


def test_a_held_run_that_is_out_of_date_can_only_be_refused(op: Client, operator: Caller) -> None:
    policy_put(operator, preset="memstate", topic_count_soft_limit=0, mode="review")
    topics_make(operator, 2, salience=0.01)
    operator.post("/v1/runs", {"dry_run": False}).ok()
    run = ForgetRun.objects.get()
    policy_put(operator, preset="memstate", topic_count_soft_limit=1, mode="review")
    page = body_of(op.get(f"/runs/{run.pk}/"))
    assert "/approve/" not in page
    assert 'name="roll_back"' not in page
    op.post(f"/runs/{run.pk}/refuse/", {"reason": ""})
    run.refresh_from_db()
    assert run.status == "refused"


def test_who_applied_a_run_undoes_it_from_the_notice_and_no_one_else_does(
    op: Client, administrator: Client, operator: Caller
) -> None:
    topics = topics_make(operator, 2, salience=0.01)
    run = planned(op)
    assert f'action="/runs/{run.pk}/apply/"' in body_of(op.get(f"/runs/{run.pk}/"))
    assert f'action="/undo/{run.pk}/"' in body_of(step(op, run, "apply"))

    reply = administrator.post(f"/undo/{run.pk}/")
    assert (reply.status_code, codes_of(reply)) == (409, ["conflict"])
    assert rungs(operator, *topics) == ["archived"] * 2
    op.post(f"/undo/{run.pk}/", {"next": f"/runs/{run.pk}/"})
    assert rungs(operator, *topics) == ["active"] * 2
    assert AuditEvent.objects.get(action="run_undone").reason == "undone right away"


def test_a_run_after_a_query_names_the_query_and_who_asked(op: Client, operator: Caller, agent: Caller) -> None:
    topics_make(operator, 2, scope="/shop", title="Rain radar")
    agent.post("/v1/query", {"q": "where is the rain radar?", "scope": "/shop"}).ok()
    asked = AccessLog.objects.get()
    AccessLog.objects.update(folded_at=asked.at + dt.timedelta(seconds=30), counted=True)
    run = ForgetRun.objects.create(
        id=uuid.UUID(int=5),
        scope="/shop",
        event="query_complete",
        status="done",
        actor="system",
        policy_version=1,
        judged_at=asked.at,
        created_at=asked.at + dt.timedelta(minutes=1),
    )
    for path in ("/runs/", f"/runs/{run.pk}/"):
        page = body_of(op.get(path))
        assert f'href="/recalls/{asked.pk}/"' in page
        assert "where is the rain radar?" in page
        assert "key%3Aagent" in page
    ForgetRun.objects.update(scope="/elsewhere")
    assert "where is the rain radar?" not in body_of(op.get("/runs/"))


def test_the_next_times_stand_above_the_list_soonest_first(op: Client, looker: Client, operator: Caller) -> None:
    for place in range(7):
        policy_put(operator, f"/place/{place}", cron=f"{7 - place} 4 * * *")
    policy_put(operator, "/place/6", cron="1 4 * * *", mode="off")
    shown = re.findall(r"policies/at/\?scope=%2Fplace%2F(\d)\"", body_of(op.get("/runs/")).partition("<main")[2])
    assert shown[:4] == ["5", "4", "3", "2"]
    assert 'href="/runs/next/"' in body_of(op.get("/runs/"))
    assert "Pause /place/5" in text_of(op, "/runs/")
    assert "Pause /place/5" not in text_of(looker, "/runs/")
    op.post("/pause/", {"scope": "/place/5", "reason": "for the test"})
    assert "Pause /place/5" not in text_of(op, "/runs/next/")


def test_a_plan_with_nothing_due_says_so_and_cannot_be_applied(op: Client, operator: Caller) -> None:
    operator.remember("Kept")
    run = planned(op)
    page = body_of(op.get(f"/runs/{run.pk}/"))
    assert "Nothing to do. No memory is due." in words(page)
    assert f"/runs/{run.pk}/apply/" not in page


def test_a_second_click_on_apply_says_that_it_is_done(op: Client, operator: Caller) -> None:
    topics_make(operator, 2, salience=0.01)
    run = planned(op)
    step(op, run, "apply")

    page = words(body_of(step(op, run, "apply")))

    assert "the run is already done" in page
    assert AuditEvent.objects.filter(action="run_applied").count() == 1


def test_a_plan_of_another_policy_is_not_applied_but_planned_anew(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 2, salience=0.01)
    run = planned(op)
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, theta_summary=0.3)

    page = words(body_of(op.get(f"/runs/{run.pk}/")))
    assert "This plan is out of date." in page
    reply = step(op, run, "apply")
    assert (reply.status_code, codes_of(reply)) == (409, ["changed-meanwhile"])
    assert ">Dry run</button>" in body_of(reply)
    assert rungs(operator, *topics) == ["active"] * 2


def test_a_plan_of_which_a_topic_has_changed_is_not_applied(op: Client, operator: Caller) -> None:
    first, _second = topics_make(operator, 2, salience=0.01)
    run = planned(op)
    operator.post(f"/v1/topics/{first}/pin", {}).ok()

    page = text_of(op, f"/runs/{run.pk}/apply/")
    assert "1 memory of this plan has changed" in page
    assert "It was pinned since." in page
    assert step(op, run, "apply").status_code == 409


def test_a_held_run_waits_on_top_of_the_list_until_it_is_approved(op: Client, operator: Caller) -> None:
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, mode="review")
    first, second = topics_make(operator, 2, salience=0.01)
    run = run_start("/", event="manual", dry_run=False, principal=principal_like("operator"), now=NOON)
    assert run.status == "held"

    assert "waits for approval. The policy of / requires a review" in text_of(op, "/runs/")
    operator.post(f"/v1/topics/{first}/pin", {}).ok()
    page = text_of(op, f"/runs/{run.pk}/approve/")
    assert "1 memory changed" in page
    assert "It was pinned since. 1" in page

    page = words(body_of(step(op, run, "approve", reason="looks right")))

    assert "Archived 1. 1 memory had changed after the plan and was skipped." in page
    assert rungs(operator, first, second) == ["active", "archived"]
    assert AuditEvent.objects.get(action="run_approved").reason == "looks right"


def test_a_held_run_that_was_planned_anew_is_called_replaced(op: Client, operator: Caller) -> None:
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, mode="review")
    topics_make(operator, 1, salience=0.01)
    first = run_start("/", event="manual", dry_run=False, principal=principal_like("operator"), now=NOON)
    topics_make(operator, 1, salience=0.01)
    run_start("/", event="manual", dry_run=False, principal=principal_like("operator"), now=NOON)

    assert "planned again before it was approved" in text_of(op, f"/runs/{first.pk}/")
    assert str(first.pk) in body_of(op.get("/runs/?status=replaced"))
    assert str(first.pk) not in body_of(op.get("/runs/?status=failed"))


def test_what_the_undo_would_do_is_what_it_does(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 6, salience=0.01)
    written = topics_make(operator, 2, salience=0.2)
    run = planned(op)
    step(op, run, "apply")
    operator.post(f"/v1/topics/{topics[0]}/restore", {}).ok()
    operator.post(f"/v1/topics/{written[0]}/pin", {}).ok()
    operator.patch(f"/v1/topics/{topics[1]}", {"title": "Called otherwise"}).ok()
    operator.patch(f"/v1/topics/{topics[2]}", {"salience": 1}).ok()
    run.refresh_from_db()

    before = undo_preview(run)
    step(op, run, "undo")

    states = list(ForgetAction.objects.filter(run=run).values_list("state", flat=True))
    assert before.touched == sum(before.by_action.values()) == states.count("undone") > 0
    assert before.left == states.count("conflict") > 0
    notes = ForgetAction.objects.filter(run=run, state="conflict").values_list("note", flat=True)
    assert sorted(notes) == sorted(why for why, times in before.reasons for _ in range(times))
    named = ForgetAction.objects.filter(run=run, state="conflict").order_by("place").values_list("topic_id", "note")
    assert [(each["topic_id"], each["why"]) for each in before.named] == list(named)


def test_a_run_that_took_much_names_the_policy_that_was_new_to_it_and_the_way_back(
    op: Client, operator: Caller
) -> None:
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0)
    topics_make(operator, 1, salience=0.01)
    step(op, planned(op), "apply")
    wrong = {"theta_summary": 0.9, "theta_detach": 0.9, "forget_salience_threshold": 0.9}
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, **wrong)
    topics_make(operator, 3, salience=0.5)
    run = planned(op)
    step(op, run, "apply")
    new = max(PolicyVersion.objects.values_list("number", flat=True))

    assert f"Version {new} new since the previous run" in text_of(op, f"/runs/{run.pk}/")
    undo = body_of(op.get(f"/runs/{run.pk}/undo/"))
    assert "forget_salience_threshold" in undo
    assert f'href="/policies/rollback/?scope=%2F&amp;to={new - 1}"' in undo
    assert f'href="/policies/rollback/?scope=%2F&amp;to={new - 1}"' in body_of(
        op.get("/policies/version/", {"scope": "/", "number": new})
    )
    op.post(f"/policies/rollback/?scope=/&to={new - 1}", {"base_version": new, "reason": "too much"})

    undo = body_of(op.get(f"/runs/{run.pk}/undo/"))
    assert "/policies/rollback/" not in undo
    assert "3 memories restored" in words(undo)


def test_an_undo_without_a_reason_asks_for_one_and_changes_nothing(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 1, salience=0.01)
    run = planned(op)
    step(op, run, "apply")

    reply = step(op, run, "undo", reason="")

    assert reply.status_code == 422
    assert "This field is required." in body_of(reply)
    assert rungs(operator, *topics) == ["archived"]


def test_progress_refreshes_itself_until_the_run_is_done(op: Client, operator: Caller) -> None:
    topics_make(operator, 2, salience=0.01)
    run = planned(op)
    ForgetRun.objects.filter(pk=run.pk).update(status="applying", started_at=NOON, applied=1)

    page = body_of(op.get(f"/runs/{run.pk}/"))
    assert 'hx-trigger="every 2s"' in page
    assert '<progress max="2" value="1"' in page
    assert '<noscript><meta http-equiv="refresh"' in page
    part = op.get(f"/runs/{run.pk}/progress/", headers={"HX-Request": "true"})
    assert "1 of 2 memories done" in words(body_of(part))
    assert "HX-Refresh" not in part.headers
    assert op.get(f"/runs/{run.pk}/progress/").status_code == 302

    ForgetRun.objects.filter(pk=run.pk).update(status="done")
    part = op.get(f"/runs/{run.pk}/progress/", headers={"HX-Request": "true"})
    assert part.headers["HX-Refresh"] == "true"
    assert "every 2s" not in body_of(part)


def test_a_long_run_is_handed_to_the_worker(op: Client, operator: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    topics_make(operator, 2, salience=0.01)
    run = planned(op)
    handed: list[uuid.UUID] = []
    monkeypatch.setattr("memory.console.pages.runs.WORK_SECONDS", 0.0)
    monkeypatch.setattr("memory.jobs.tasks.run_enqueue", handed.append)

    page = words(body_of(step(op, run, "apply")))

    assert handed == [run.pk]
    assert "Applying: 0 of 2 memories done." in page


def test_a_reader_sees_runs_and_is_refused_every_change(looker: Client, op: Client, operator: Caller) -> None:
    topics_make(operator, 1, salience=0.01)
    run = planned(op)

    page = body_of(looker.get(f"/runs/{run.pk}/"))
    assert "It would archive 1" in page
    assert f"/runs/{run.pk}/apply/" not in page
    assert looker.post("/runs/", {"then": "show"}).status_code == 403
    for verb in ("apply", "approve", "undo"):
        assert looker.get(f"/runs/{run.pk}/{verb}/").status_code == 403
        assert looker.post(f"/runs/{run.pk}/{verb}/", {"reason": "x"}).status_code == 403
    assert ForgetRun.objects.get().status == "planned"


def test_lists_filter_by_what_is_asked_for(op: Client, operator: Caller) -> None:
    topics_make(operator, 2, salience=0.01, scope="/shop")
    topics_make(operator, 1, salience=0.2, scope="/shop")
    dry, real = planned(op, "/shop"), planned(op)
    step(op, real, "apply")

    assert str(dry.pk) in body_of(op.get("/runs/?status=planned"))
    assert str(real.pk) not in body_of(op.get("/runs/?status=planned"))
    assert str(real.pk) not in body_of(op.get("/runs/?scope=/shop"))
    assert "1 run" in words(body_of(op.get("/runs/count/?scope=/shop")))
    lines = [json.loads(line) for line in body_of(op.get("/runs/export.jsonl?status=done")).splitlines()]
    assert [line["run_id"] for line in lines] == [str(real.pk)]

    assert "2 actions" in words(body_of(op.get(f"/runs/{real.pk}/count/?action=archived")))
    assert "topic 0" not in text_of(op, f"/runs/{real.pk}/", state="skipped")
    lines = [json.loads(line) for line in body_of(op.get(f"/runs/{real.pk}/export.jsonl?action=archived")).splitlines()]
    assert [line["action"] for line in lines] == ["archived", "archived"]
    assert op.get(f"/runs/{uuid.UUID(int=7)}/export.csv").status_code == 404


def test_regret_of_a_run_counts_what_was_brought_back(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 4, salience=0.01)
    run = planned(op)
    step(op, run, "apply")
    operator.post(f"/v1/topics/{topics[0]}/restore", {}).ok()

    part = words(body_of(op.get(f"/runs/{run.pk}/regret/", headers={"HX-Request": "true"})))

    assert "1 of its 4 archivings was regretted (25.0%)" in part


def test_a_plan_by_hand_that_takes_much_says_so(op: Client, operator: Caller) -> None:
    topics_make(operator, 60, salience=0.01)
    run = planned(op)
    assert "removes 60 of 60 live memories (100%) from recalls" in text_of(op, f"/runs/{run.pk}/apply/")


def test_pages_cost_the_same_however_much_they_show(op: Client, operator: Caller) -> None:
    topics_make(operator, 10, salience=0.01)
    small = planned(op)
    step(op, small, "apply")
    ten = statements_of(lambda: op.get(f"/runs/{small.pk}/")), statements_of(lambda: op.get(f"/runs/{small.pk}/undo/"))
    few = statements_of(lambda: op.get("/runs/"))
    topics_make(operator, 200, salience=0.01)
    large = planned(op)
    step(op, large, "apply")
    for place in range(200):
        ForgetRun.objects.create(
            id=uuid.UUID(int=place),
            scope="/",
            event="cron",
            status="done",
            actor="system",
            policy_version=1,
            policy_versions={"/": 1},
            judged_at=NOON,
            created_at=NOON,
        )

    assert Topic.objects.filter(rung=3).count() == 210
    assert statements_of(lambda: op.get(f"/runs/{large.pk}/")) == ten[0] <= 12
    assert statements_of(lambda: op.get(f"/runs/{large.pk}/undo/")) == ten[1] <= 10
    assert statements_of(lambda: op.get("/runs/")) == few <= 13


def test_a_policy_that_runs_over_a_scope_above_have_used_is_not_new(op: Client, operator: Caller, clock: Clock) -> None:
    topics_make(operator, 1, salience=0.01, scope="/team")
    step(op, planned(op, "/team"), "apply")
    clock.set(NOON + dt.timedelta(hours=1))
    policy_put(operator, strategy="static", prune_after_days=0, topic_count_soft_limit=0, theta_summary=0.3)
    topics_make(operator, 1, salience=0.01)
    step(op, planned(op), "apply")
    clock.set(NOON + dt.timedelta(hours=2))
    topics_make(operator, 1, salience=0.01, scope="/team")
    run = planned(op, "/team")
    step(op, run, "apply")

    assert "new since the previous run" not in text_of(op, f"/runs/{run.pk}/")
    assert "/policies/rollback/" not in body_of(op.get(f"/runs/{run.pk}/undo/"))


def test_counts_of_a_run_say_what_was_purged_since(op: Client, operator: Caller) -> None:
    topics = topics_make(operator, 3, salience=0.01)
    run = planned(op)
    step(op, run, "apply")
    topics_purge([uuid.UUID(topics[0])], principal=principal_like("operator"), reason="erased", now=NOON)

    page = text_of(op, f"/runs/{run.pk}/")
    assert "Archived 3" in page
    assert "1 more was purged since." in page
