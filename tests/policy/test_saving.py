"""Saving a policy: one immutable version, or a sentence and nothing."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django_q.models import Schedule

from memory.core.errors import Conflict, ValueRefused
from memory.core.policy_presets import PRESETS
from memory.models import PolicyVersion, Rekeying
from memory.policy.effective import knobs_effective, policies_current
from memory.policy.save import policy_rollback, policy_save
from memory.policy.schedules import cron_schedules_sync
from tests.cast import raises_code, store_rows
from tests.policy.shop import NOW, saved

pytestmark = pytest.mark.django_db

ARCHIVE_OLD = {
    "name": "old notes",
    "events": ["cron"],
    "action": "archive",
    "condition": {"field": "age", "op": ">", "value": "30d"},
}
PIN = {
    "name": "keep decisions",
    "events": ["ingest_complete"],
    "action": "pin",
    "condition": {"field": "kind", "op": "is", "value": "decision"},
}


def everything() -> dict[str, int]:
    return store_rows() | {"schedules": Schedule.objects.count()}


def test_each_save_is_one_more_version_and_none_of_them_changes():
    first = saved(half_life_days=20, author="key:ops", reason="  too much noise ")
    got = PolicyVersion.objects.filter(pk=first.pk).values().get()
    assert (first.number, first.author, first.reason, first.created_at) == (1, "key:ops", "too much noise", NOW)
    second = saved(half_life_days=10, query_salience_bump=0.2)
    assert second.number == 2
    assert second.diff == [
        {"name": "half_life_days", "before": 20.0, "after": 10.0},
        {"name": "query_salience_bump", "before": None, "after": 0.2},
    ]
    assert PolicyVersion.objects.filter(pk=first.pk).values().get() == got
    assert saved("/user", half_life_days=5).number == 1


def test_values_are_kept_under_one_name_and_as_what_they_are():
    version = saved("user//alice/", theta_archive="0.01", exempt_kinds="identity, oath", token_budgets="on", mode="off")
    assert version.scope == "/user/alice"
    assert version.values == {
        "exempt_kinds": ["identity", "oath"],
        "forget_salience_threshold": 0.01,
        "mode": "off",
        "token_budgets": True,
    }
    knobs = knobs_effective("/user/alice")
    assert (knobs.exempt_kinds, knobs.forget_salience_threshold) == (("identity", "oath"), 0.01)


def test_a_save_that_changes_nothing_makes_no_version():
    saved(half_life_days=20, rules=[PIN])
    before = everything()
    assert saved(half_life_days="20").number == 1
    assert saved("/user").number == 0
    assert everything() == before


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"theta_summary": 0.1, "theta_detach": 0.2}, "invalid-policy"),
    ({"theta_summary": 0.1, "theta_archive": 0.2}, "invalid-policy"),
    ({"preset": "memstate", "theta_detach": 0.1}, "invalid-policy"),
    ({"half_life_days": -30}, "invalid-policy"),
    ({"half_life_days": 0}, "invalid-policy"),
    ({"half_life_days": "soon"}, "invalid-policy"),
    ({"half_life_days": float("nan")}, "invalid-policy"),
    ({"half_live": 3}, "invalid-policy"),
    ({"half_live": None}, "invalid-policy"),
    ({"inherit": "/user"}, "invalid-policy"),
    ({"theta_archive": 0.01, "forget_salience_threshold": 0.02}, "contradictory-request"),
    ({"strategy": "fancy"}, "invalid-policy"),
    ({"preset": "fancy"}, "invalid-policy"),
    ({"cron": "0 0 30 2 *"}, "invalid-policy"),
    ({"cron": "0 0 31 4,6 *"}, "invalid-policy"),
    ({"cron": "61 3 * * *"}, "invalid-policy"),
    ({"cron": "daily at three"}, "invalid-policy"),
    ({"cron": "@daily"}, "invalid-policy"),
    ({"cron": "R R * * *"}, "invalid-policy"),
    ({"cron": ""}, "invalid-policy"),
    ({"embedding_dimension": 768}, "invalid-policy"),
    ({"reason": "  ", "mode": "off"}, "missing-member"),
    ({"reason": "x" * 1001, "mode": "off"}, "too-large"),
    ({"rules": [PIN, PIN]}, "invalid-rule"),
    ({"rules": [{**PIN, "condition": {"field": "smell", "op": "is", "value": "old"}}]}, "invalid-rule"),
]


@pytest.mark.parametrize(("values", "code"), WRONG)
def test_what_makes_no_sense_is_refused_and_nothing_is_saved(values: dict[str, Any], code: str):
    before = everything()
    with raises_code(ValueRefused, code):
        saved(**values)
    assert everything() == before
    assert policies_current().numbers == {}


def test_values_that_exclude_each_other_are_both_reported_with_where_they_come_from():
    with raises_code(ValueRefused, "invalid-policy") as refused:
        saved(preset="memstate", theta_detach=0.1)
    for part in ("theta_summary is 0.05 (by preset memstate)", "theta_detach is 0.1."):
        assert part in refused.value.sentence


def test_the_width_of_the_vectors_may_be_named_as_it_is():
    assert saved(embedding_dimension=384, mode="off").values == {"mode": "off"}


def test_a_scope_that_is_none_is_refused():
    with raises_code(ValueRefused, "invalid-scope"):
        saved("/a b", mode="off")


def test_thresholds_of_several_scopes_are_put_in_order_where_they_are_read():
    saved("/user", theta_summary=0.2)
    saved("/user/alice", theta_detach=0.1)
    saved(theta_detach=0.22)
    user, alice = policies_current().effective("/user"), policies_current().effective("/user/alice")
    assert (user.knobs.theta_summary, user.knobs.theta_detach) == (0.22, 0.22)
    assert (user.sources["theta_summary"].source, user.raised) == ("/", {"theta_summary": 0.2})
    assert len(user.warnings()) == 1
    assert (alice.knobs.theta_summary, alice.knobs.theta_detach, alice.raised) == (0.2, 0.1, {})


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_can_be_set_above_a_scope_that_sets_one_threshold(preset: str):
    saved("/session", forget_salience_threshold=0.08)
    saved("/session/deep", theta_detach=0.01)
    saved(preset=preset)
    for scope in ("/session", "/session/deep"):
        knobs = policies_current().knobs(scope)
        assert knobs.theta_summary >= knobs.theta_detach >= knobs.forget_salience_threshold == 0.08


def test_a_value_from_the_environment_that_does_not_hold_is_named(settings: Any):
    settings.MEMSTATE_KNOBS = {"theta_detach": 0.2}
    saved("/user", theta_summary=0.15)
    effective = policies_current().effective("/user")
    assert (effective.knobs.theta_summary, effective.sources["theta_summary"].source) == (0.2, "environment")
    settings.MEMSTATE_KNOBS = {"cron": "never"}
    with raises_code(ValueRefused, "invalid-policy") as refused:
        saved("/user", half_life_days=3)
    assert "MEMSTATE_CRON" in refused.value.sentence


def test_an_editor_who_saw_an_older_version_is_reported_what_has_changed_since():
    saved(half_life_days=20, base_version=0)
    saved(half_life_days=10, mode="review", base_version=1, author="key:ops", now=NOW + dt.timedelta(minutes=5))
    before = everything()
    with raises_code(Conflict, "changed-meanwhile") as conflict:
        saved(half_life_days=15, base_version=1)
    for part in ("key:ops", "2026-03-01 12:05 UTC", "half_life_days from 20 to 10; mode from inherited to review"):
        assert part in conflict.value.sentence
    with raises_code(Conflict, "changed-meanwhile"):
        saved("/user", mode="off", base_version=3)
    assert everything() == before
    assert saved(half_life_days=15, base_version=2).number == 3


def test_rolling_back_makes_a_new_version_with_the_content_of_the_old():
    saved(half_life_days=20, rules=[PIN], preset="memstate")
    saved(mode="review", rules=[])
    version = policy_rollback("/", to=1, author="key:ops", reason="was better", now=NOW)
    assert (version.number, version.rolled_back_to, version.preset) == (3, 1, "memstate")
    assert (version.values, [rule["name"] for rule in version.rules]) == ({"half_life_days": 20.0}, ["keep decisions"])
    assert {line["name"] for line in version.diff} == {"preset", "half_life_days", "mode", "rule keep decisions"}
    assert policies_current().effective("/").knobs.strategy == "static"
    nothing = policy_rollback("/", to=0, author="key:ops", reason="start over", now=NOW)
    assert (nothing.number, nothing.values, nothing.rules) == (4, {}, [])
    # To what is in force already.
    assert policy_rollback("/", to=4, author="key:ops", reason="again", now=NOW).number == 4
    with raises_code(ValueRefused, "not-found"):
        policy_rollback("/", to=9, author="key:ops", reason="guess", now=NOW)


def test_a_version_that_no_longer_holds_together_is_not_rolled_back_to():
    saved("/user", rules=[PIN])
    saved("/user")
    PolicyVersion.objects.filter(scope="/user", number=1).update(values={"theta_summary": 0.1, "theta_detach": 0.2})
    before = everything()
    with raises_code(ValueRefused, "invalid-policy"):
        policy_rollback("/user", to=1, author="key:ops", reason="was better", now=NOW)
    assert everything() == before


def test_rules_stay_until_others_are_sent():
    saved(rules=[PIN, ARCHIVE_OLD])
    saved(half_life_days=20)
    assert [rule.name for rule in policies_current().effective("/x").rules.rules] == ["keep decisions", "old notes"]
    reordered = saved(half_life_days=20, rules=[ARCHIVE_OLD, PIN])
    assert reordered.diff == [
        {"name": "rules", "before": ["keep decisions", "old notes"], "after": ["old notes", "keep decisions"]}
    ]
    assert saved(half_life_days=20, rules=[]).rules == []


def test_rules_add_up_nearest_scope_first_and_a_name_said_again_replaces_the_one_above():
    saved(rules=[PIN, ARCHIVE_OLD])
    saved("/user", rules=[{**ARCHIVE_OLD, "name": "mine"}, {**ARCHIVE_OLD, "enabled": False}])
    found = policies_current().effective("/user/alice").rules
    assert [(rule.name, rule.scope, rule.enabled) for rule in found.rules] == [
        ("mine", "/user", True),
        ("old notes", "/user", False),
        ("keep decisions", "/", True),
    ]
    assert [rule.name for rule in found.on("cron")] == ["mine"]
    assert [rule.name for rule in policies_current().effective("/other").rules.on("cron")] == ["old notes"]


def test_a_preset_brings_its_rules_and_takes_them_along():
    saved("/user", preset="graduated", rules=[PIN])
    brought = [
        "from 90 days only identity and decision",
        "from 30 days findings are summarized",
        "from 7 days no tool output",
    ]
    found = policies_current().effective("/user/alice").rules
    assert [(rule.name, rule.scope) for rule in found.rules] == [
        (name, "/user") for name in ["keep decisions", *brought]
    ]
    assert not policies_current().effective("/").rules.rules
    # One of them is switched off by a rule of its name; where the preset goes, only what was set here stays.
    off = {**ARCHIVE_OLD, "name": brought[2], "enabled": False}
    saved("/user", preset="graduated", rules=[PIN, off])
    found = policies_current().effective("/user").rules
    assert [rule.name for rule in found.on("cron")] == brought[:2]
    saved("/user", preset="memstate", rules=[PIN])
    assert [rule.name for rule in policies_current().effective("/user").rules.rules] == ["keep decisions"]


def test_a_shipped_set_of_rules_is_set_by_its_name():
    version = saved(rules=["ttl_by_kind", PIN])
    assert [rule["name"] for rule in version.rules] == [
        "session_state lives 24h",
        "tool_output lives 7d",
        "project_status lives 30d",
        "decision lives 365d",
        "preference lives 730d",
        "keep decisions",
    ]
    with raises_code(ValueRefused, "invalid-rule"):
        saved(rules=["all"])


def test_rules_of_two_scopes_must_not_wait_for_each_other():
    def gives(name: str, category: str, *, asks: str) -> dict[str, Any]:
        condition = {"field": "category", "op": "has", "value": asks}
        return {"name": name, "action": "categorize", "category": category, "condition": condition}

    saved(rules=[gives("one", "a", asks="b")])
    before = everything()
    with raises_code(ValueRefused, "invalid-rule"):
        saved("/user", rules=[gives("two", "b", asks="a")])
    assert everything() == before


def test_the_scopes_with_a_policy_have_a_schedule_each_and_the_root_always():
    Schedule.objects.all().delete()
    cron_schedules_sync(now=NOW)
    root = Schedule.objects.get(func="memory.jobs.tasks.forget_scheduled")
    assert (root.name, root.args, root.cron, root.schedule_type) == ("forget /", "('/',)", "0 3 * * *", Schedule.CRON)
    assert root.next_run == dt.datetime(2026, 3, 2, 3, 0, tzinfo=dt.UTC)
    saved("/user", cron="30 4 * * 1")
    below = Schedule.objects.get(name="forget /user")
    assert (below.args, below.next_run) == ("('/user',)", dt.datetime(2026, 3, 2, 4, 30, tzinfo=dt.UTC))
    saved(cron="0 */6 * * *")
    root.refresh_from_db()
    assert (root.cron, root.next_run) == ("0 */6 * * *", dt.datetime(2026, 3, 1, 18, 0, tzinfo=dt.UTC))
    assert Schedule.objects.get(name="forget /user").next_run == below.next_run
    # While the mode is off, it rests; and a policy that sets nothing any more needs none.
    saved("/user", cron="30 4 * * 1", mode="off")
    assert Schedule.objects.get(name="forget /user").repeats == 0
    saved("/user", cron="30 4 * * 1")
    assert Schedule.objects.get(name="forget /user").repeats == -1
    saved("/user")
    assert [schedule.name for schedule in Schedule.objects.all()] == ["forget /"]


def test_a_schedule_of_a_long_path_has_a_name_that_fits():
    Schedule.objects.all().delete()
    scopes = [f"/{'a' * 200}/{end}" for end in "xy"]
    for scope in scopes:
        saved(scope, cron="0 5 * * *")
    names = set(Schedule.objects.values_list("name", flat=True)) - {"forget /"}
    assert len(names) == 2
    assert all(len(name) == 100 for name in names)


def test_a_statement_with_the_present_stamp_reads_two_index_entries_whatever_the_number_of_versions():
    PolicyVersion.objects.bulk_create(
        PolicyVersion(scope=f"/{n % 50}", number=n // 50 + 1, author="x", created_at=NOW) for n in range(3000)
    )
    from memory.policy.effective import _STAMP_SQL

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_policyversion, memory_rekeying")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {_STAMP_SQL}")
        plan = str(cursor.fetchone()[0])
    assert "memory_policyversion_pkey" in plan
    assert "'Actual Rows': 3000" not in plan
    assert not Rekeying.objects.exists()


def test_the_author_is_asked_for_by_name():
    with pytest.raises(TypeError):
        policy_save("/", preset=None, values={}, reason="r", now=NOW)  # type: ignore[call-arg]
