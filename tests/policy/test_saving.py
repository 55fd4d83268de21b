"""Saving a policy: one immutable version, or a sentence and nothing."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django_q.models import Schedule

from memory.domain.errors import Conflict, ValueRefused
from memory.domain.presets import PRESETS
from memory.models import PolicyVersion, Rekeying
from memory.policy.effective import knobs_effective, policies_current
from memory.policy.save import policy_rollback, policy_save
from memory.policy.schedules import cron_schedules_sync
from tests.cast import store_rows
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
    told = PolicyVersion.objects.filter(pk=first.pk).values().get()
    assert (first.number, first.author, first.reason, first.created_at) == (1, "key:ops", "too much noise", NOW)
    second = saved(half_life_days=10, query_salience_bump=0.2)
    assert second.number == 2
    assert second.diff == [
        {"name": "half_life_days", "before": 20.0, "after": 10.0},
        {"name": "query_salience_bump", "before": None, "after": 0.2},
    ]
    assert PolicyVersion.objects.filter(pk=first.pk).values().get() == told
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


NO_CRON = "cron must be five fields (minute, hour, day, month, weekday) of at most 100 characters; {!r} is not."
ABOVE = "{} must be at least {}, but {} is {} ({}) and {} is {} ({})."


def out_of_order(upper: str, above: str, from_: str, lower: str, below: str, and_from: str) -> str:
    return ABOVE.format(upper, lower, upper, above, from_, lower, below, and_from)


SENTENCES: list[tuple[dict[str, Any], str]] = [
    (
        {"theta_summary": 0.1},
        out_of_order("theta_summary", "0.1", "from /", "theta_detach", "0.12", "the default of half_life"),
    ),
    (
        {"theta_archive": 0.2},
        out_of_order("theta_detach", "0.12", "the default of half_life", "forget_salience_threshold", "0.2", "from /"),
    ),
    (
        {"preset": "memstate", "theta_detach": 0.1},
        out_of_order("theta_summary", "0.05", "from / by preset memstate", "theta_detach", "0.1", "from /"),
    ),
    ({"half_life_days": -30}, "half_life_days must lie between 0.001 and 36500; -30 does not."),
    ({"half_life_days": 0}, "half_life_days must lie between 0.001 and 36500; 0 does not."),
    ({"half_life_days": "soon"}, "half_life_days must be a number; 'soon' is not."),
    ({"half_life_days": float("nan")}, "half_life_days must be a number; nan is not."),
    ({"half_live": 3}, "There is no policy value named 'half_live'."),
    ({"half_live": None}, "There is no policy value named 'half_live'."),
    ({"inherit": "/user"}, "There is no policy value named 'inherit'."),
    (
        {"theta_archive": 0.01, "forget_salience_threshold": 0.02},
        "theta_archive is another name of forget_salience_threshold; send one of the two.",
    ),
    ({"strategy": "fancy"}, "strategy must be one of half_life, static, active_forgetting, relevance; 'fancy' is not."),
    ({"preset": "fancy"}, f"There is no preset 'fancy'; there are {', '.join(PRESETS)}."),
    ({"cron": "0 0 30 2 *"}, "cron '0 0 30 2 *' never fires: there is no such date."),
    ({"cron": "0 0 31 4,6 *"}, "cron '0 0 31 4,6 *' never fires: there is no such date."),
    ({"cron": "61 3 * * *"}, "cron '61 3 * * *' cannot be read as minute, hour, day, month, weekday."),
    ({"cron": "daily at three"}, NO_CRON.format("daily at three")),
    ({"cron": "@daily"}, NO_CRON.format("@daily")),
    ({"cron": "R R * * *"}, NO_CRON.format("R R * * *")),
    ({"cron": ""}, NO_CRON.format("")),
    (
        {"embedding_dimension": 768},
        (
            "embedding_dimension is 384 and belongs to the whole store, so no policy can set it to 768: set "
            "MEMSTATE_EMBEDDING_DIMENSION and the embedder in the environment, and run manage.py reembed."
        ),
    ),
    ({"reason": "  ", "mode": "off"}, "A change of policy needs a reason, for those who read the history later."),
    ({"reason": "x" * 1001, "mode": "off"}, "A reason has at most 1000 characters; this one has 1001."),
    ({"rules": [PIN, PIN]}, "Two rules are named 'keep decisions'; within a scope each name is given once."),
    ({"rules": [{**PIN, "condition": {"field": "smell", "op": "is", "value": "old"}}]}, "Rule 'keep decisions': "),
]


@pytest.mark.parametrize(("values", "sentence"), SENTENCES)
def test_what_makes_no_sense_is_refused_in_a_sentence_and_nothing_is_saved(values: dict[str, Any], sentence: str):
    before = everything()
    with pytest.raises(ValueRefused) as refused:
        saved(**values)
    # What is wrong with a condition is said in the words of the conditions.
    assert refused.value.sentence == sentence or (sentence.endswith(": ") and sentence in refused.value.sentence)
    assert everything() == before
    assert policies_current().numbers == {}


def test_the_width_of_the_vectors_may_be_named_as_it_is():
    assert saved(embedding_dimension=384, mode="off").values == {"mode": "off"}


def test_a_scope_that_is_none_is_refused():
    with pytest.raises(ValueRefused, match="The scope segment 'a b' must not"):
        saved("/a b", mode="off")


def test_a_change_above_must_not_break_what_is_set_below():
    saved("/user", theta_summary=0.2)
    saved("/user/alice", theta_detach=0.1)
    before = everything()
    with pytest.raises(ValueRefused) as refused:
        saved(theta_detach=0.22)
    assert refused.value.sentence == (
        "theta_summary must be at least theta_detach in /user, but theta_summary is 0.2 (from /user) and theta_detach "
        "is 0.22 (from /)."
    )
    with pytest.raises(ValueRefused, match=r"in /user/alice, but theta_summary is 0\.05"):
        saved("/user", theta_summary=0.05, theta_detach=0.05)
    assert everything() == before


def test_the_environment_may_be_what_breaks_the_order_and_the_sentence_says_so(settings: Any):
    settings.MEMSTATE_KNOBS = {"theta_detach": 0.2}
    with pytest.raises(ValueRefused) as refused:
        saved("/user", theta_summary=0.15)
    assert refused.value.sentence.endswith("theta_detach is 0.2 (from MEMSTATE_THETA_DETACH in the environment).")
    settings.MEMSTATE_KNOBS = {"cron": "never"}
    with pytest.raises(ValueRefused, match=r"It comes from MEMSTATE_CRON in the environment\.$"):
        saved("/user", half_life_days=3)


def test_an_editor_who_saw_an_older_version_is_told_what_has_changed_since():
    saved(half_life_days=20, base_version=0)
    saved(half_life_days=10, mode="review", base_version=1, author="key:ops", now=NOW + dt.timedelta(minutes=5))
    before = everything()
    with pytest.raises(Conflict) as conflict:
        saved(half_life_days=15, base_version=1)
    assert conflict.value.sentence == (
        "The policy of / is at version 2 by now, saved by key:ops at 2026-03-01 12:05 UTC (half_life_days from 20 to "
        "10; mode from inherited to review); this change was made on version 1."
    )
    with pytest.raises(Conflict, match="The policy of /user has no version 3; nobody has set one yet"):
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
    with pytest.raises(ValueRefused, match=r"^The policy of / has no version 9; the newest is 4\.$"):
        policy_rollback("/", to=9, author="key:ops", reason="guess", now=NOW)


def test_a_version_that_no_longer_holds_together_is_not_rolled_back_to():
    saved("/user", theta_detach=0.2)
    saved("/user")
    saved(theta_summary=0.15)
    before = everything()
    with pytest.raises(ValueRefused, match="theta_summary must be at least theta_detach"):
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
    with pytest.raises(ValueRefused, match=r"^There is no set of rules named 'all'; there are ttl_by_kind, "):
        saved(rules=["all"])


def test_rules_of_two_scopes_must_not_wait_for_each_other():
    def gives(name: str, category: str, *, asks: str) -> dict[str, Any]:
        condition = {"field": "category", "op": "has", "value": asks}
        return {"name": name, "action": "categorize", "category": category, "condition": condition}

    saved(rules=[gives("one", "a", asks="b")])
    before = everything()
    with pytest.raises(ValueRefused, match="each would wait for the other"):
        saved("/user", rules=[gives("two", "b", asks="a")])
    assert everything() == before


def test_the_scopes_with_a_policy_have_a_schedule_each_and_the_root_always():
    Schedule.objects.all().delete()
    cron_schedules_sync(now=NOW)
    root = Schedule.objects.get(func="memory.jobs.forget_scheduled")
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
    from memory.policy.effective import _STAMP

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_policyversion, memory_rekeying")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {_STAMP}")
        plan = str(cursor.fetchone()[0])
    assert "memory_policyversion_pkey" in plan
    assert "'Actual Rows': 3000" not in plan
    assert not Rekeying.objects.exists()


def test_the_author_is_asked_for_by_name():
    with pytest.raises(TypeError):
        policy_save("/", preset=None, values={}, reason="r", now=NOW)  # type: ignore[call-arg]
