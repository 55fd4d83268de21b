"""``manage.py forget``: a dry run unless it is asked to act; says what it did, and how to take it back."""

import io
import re
import uuid

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from memory.models import AuditEvent, ForgetRun
from tests.cast import Caller, Clock, raises_code
from tests.forgetting.shop import JOURNALS, NOON, dump, policy_put, rungs, topics_make


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


@pytest.fixture
def faded(operator: Caller) -> list[str]:
    policy_put(operator, preset="memstate")
    return topics_make(operator, 3, salience=0.04)


def forget(*words: str) -> str:
    """Run the command with these words and return what it says."""
    out = io.StringIO()
    call_command("forget", *words, stdout=out)
    return out.getvalue()


def named(said: str) -> str:
    """Return the id of the run that was spoken of."""
    found = re.search(r"Run ([0-9a-f-]{36})", said)
    assert found, said
    return found[1]


def test_it_is_a_dry_run_that_says_how_to_do_it(operator: Caller, faded: list[str]):
    before = dump(*JOURNALS)
    said = forget()
    run_id = named(said)
    assert said.splitlines() == [
        f"Run {run_id} over / is planned: would be 3 archived.",
        *[f"  archived    0.0400  topic {place}  (forget_salience_threshold 0.05)" for place in range(3)],
        f"Nothing was changed. To apply this plan: manage.py forget --apply-plan {run_id}",
    ]
    assert dump(*JOURNALS) == before
    said = forget("--apply-plan", run_id, "--reason", "looked at it")
    assert said.splitlines()[0] == f"Run {run_id} over / is done: 3 archived."
    assert said.splitlines()[-1] == f"To undo it: manage.py forget --undo {run_id}"
    assert rungs(operator, *faded) == ["archived"] * 3
    event = AuditEvent.objects.get(action="run_applied")
    assert (event.actor, event.reason) == ("terminal", "looked at it")


def test_with_apply_it_acts_and_undo_takes_it_back(operator: Caller, faded: list[str]):
    before = dump(*JOURNALS, "memory_topicdocument")
    run_id = named(forget("--apply"))
    assert ForgetRun.objects.get(pk=run_id).actor == "terminal"
    assert rungs(operator, *faded) == ["archived"] * 3
    operator.post(f"/v1/topics/{faded[0]}/restore").ok()
    said = forget("--undo", run_id)
    assert said.splitlines() == [
        f"2 topics were restored to their state before run {run_id}.",
        f"  {faded[0]} was not restored. It has since been moved: it is active now.",
    ]
    assert rungs(operator, *faded) == ["active"] * 3
    assert len(dump(*JOURNALS, "memory_topicdocument")["memory_vitality"]) == len(before["memory_vitality"])


def test_a_held_run_is_refused_with_the_policy_that_caused_it(operator: Caller, faded: list[str]):
    policy_put(operator, preset="memstate", mode="review")
    run_id = named(forget("--apply"))
    forget("--refuse", run_id, "--roll-back", "--reason", "a mistake")
    assert ForgetRun.objects.get(pk=run_id).status == "refused"
    assert "mode" not in operator.get("/v1/policies/").ok()["values"]
    assert rungs(operator, *faded) == ["active"] * 3


def test_a_held_run_says_why_and_how_to_approve_or_refuse_it(operator: Caller, faded: list[str]):
    policy_put(operator, preset="memstate", mode="review")
    said = forget("--apply")
    run_id = named(said)
    assert said.splitlines()[0] == f"Run {run_id} over / is held: would be 3 archived."
    assert said.splitlines()[-2:] == [
        f"The policy of / requires a review of every run. To approve it: manage.py forget --approve {run_id}",
        f"To refuse it: manage.py forget --refuse {run_id}",
    ]
    assert rungs(operator, *faded) == ["active"] * 3
    operator.post(f"/v1/topics/{faded[0]}/pin").ok()
    said = forget("--approve", run_id)
    assert "1 were skipped, because they changed after the plan." in said
    assert sorted(rungs(operator, *faded)) == ["active", "archived", "archived"]


def test_a_scope_an_event_and_what_is_left(operator: Caller):
    policy_put(operator, preset="memstate", max_topics_for_forget_scan=2, topic_count_soft_limit=100)
    topics_make(operator, 3, salience=0.04, scope="/a")
    assert "nothing is due" in forget("/b")
    said = forget("/a", "--show", "1")
    assert "  and 1 more; --show lists more of them" in said
    assert "1 more are due, but a run plans at most max_topics_for_forget_scan." in said
    said = forget("/a", "--event", "cron")
    assert "soft limit of 100" in said


def test_the_runs_are_listed_newest_first(operator: Caller, faded: list[str], clock: Clock):
    first = named(forget())
    clock.forward(hours=1)
    second = named(forget("--apply"))
    lines = forget("--runs").splitlines()
    assert [line.split()[-1] for line in lines] == [second, first]
    assert lines[0].split()[2:5] == ["done", "manual", "/"]
    assert "3 archived" in lines[0]
    assert forget("--runs", "--show", "1").splitlines() == lines[:1]
    assert forget("/elsewhere", "--runs") == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--undo", str(uuid.UUID(int=1))], "not-found"),
        (["--approve", str(uuid.UUID(int=1))], "not-found"),
        (["--undo", "first"], "invalid UUID value: 'first'"),
        (["--event", "no_such"], "invalid choice: 'no_such'"),
        (["no path"], "invalid-scope"),
        (["--undo", str(uuid.UUID(int=1)), "--runs"], "not allowed with argument"),
    ],
)
def test_what_makes_no_sense_is_reported_and_changes_nothing(
    operator: Caller, faded: list[str], words: list[str], said: str
):
    before = dump()
    with pytest.raises(CommandError, match=re.escape(said)):
        forget(*words)
    assert dump() == before


def test_a_plan_on_another_policy_is_refused(operator: Caller, faded: list[str]):
    run_id = named(forget())
    policy_put(operator, preset="memstate", forget_salience_threshold=0.01)
    with raises_code(CommandError, "changed-meanwhile"):
        forget("--apply-plan", run_id)
    with raises_code(CommandError, "conflict"):
        forget("--undo", run_id)
    assert rungs(operator, *faded) == ["active"] * 3


def test_nothing_due_is_said_so(operator: Caller):
    said = forget()
    assert said == f"Run {named(said)} over / is planned: nothing is due.\n"
    said = forget("--apply")
    assert said == f"Run {named(said)} over / is done: nothing is due.\n"
