"""What is in force where: own values, then the preset's, then the scopes above, the environment, the default."""

from typing import Any

import pytest
from django.db import transaction

from memory.models import PolicyVersion
from memory.policy.draft import policies_drafted
from memory.policy.effective import knobs_effective, policies_current
from memory.policy.snapshot import ValueSource
from tests.policy.shop import saved

pytestmark = pytest.mark.django_db


def test_a_store_in_which_no_one_has_set_anything_has_the_defaults(settings: Any):
    settings.MEMSTATE_KNOBS = {}
    found = policies_current().effective("/user/alice")
    assert (found.scope, found.at, found.version) == ("/user/alice", "/", 0)
    assert found.knobs.half_life_days == 30
    assert set(found.sources.values()) == {ValueSource("default")}
    assert [node.scope for node in policies_current().nodes("/user")] == ["/user"]


def test_a_value_comes_from_the_nearest_scope_that_sets_it():
    saved(half_life_days=20, query_salience_bump=0.2)
    saved("/user", half_life_days=10)
    saved("/user/alice", query_salience_bump=0.3)
    found = policies_current().effective("/user/alice/notes")
    assert (found.knobs.half_life_days, found.knobs.query_salience_bump) == (10, 0.3)
    assert (found.sources["half_life_days"], found.sources["query_salience_bump"]) == (
        ValueSource("/user"),
        ValueSource("/user/alice"),
    )
    assert (found.at, found.version) == ("/user/alice", 1)
    assert knobs_effective("/user/bob").half_life_days == 10
    assert knobs_effective("/username").half_life_days == 20
    assert knobs_effective("/").query_salience_bump == 0.2


def test_what_is_left_out_of_the_next_version_is_inherited_again():
    saved(half_life_days=20)
    saved("/user", half_life_days=10)
    saved("/user", query_salience_bump=0.2)
    assert knobs_effective("/user").half_life_days == 20
    saved("/user", query_salience_bump=0.2, half_life_days=5)
    saved("/user", query_salience_bump=0.2, half_life_days=None)
    assert knobs_effective("/user").half_life_days == 20


def test_the_environment_is_the_default_of_the_whole_store(settings: Any):
    settings.MEMSTATE_KNOBS = {"half_life_days": 7.0, "mode": "review"}
    saved("/user", half_life_days=10)
    found = policies_current().effective("/")
    assert (found.knobs.half_life_days, found.sources["half_life_days"]) == (7, ValueSource("environment"))
    below = policies_current().effective("/user")
    assert (below.knobs.half_life_days, below.knobs.mode) == (10, "review")
    settings.MEMSTATE_KNOBS = {}
    assert knobs_effective("/").half_life_days == 30


def test_a_strategy_brings_thresholds_of_its_own_where_no_one_set_one(settings: Any):
    saved("/a", strategy="relevance")
    saved("/b", strategy="relevance", forget_salience_threshold=0.1)
    assert knobs_effective("/a").forget_salience_threshold == 0.2
    assert knobs_effective("/a").prune_after_days == 90
    assert knobs_effective("/b").forget_salience_threshold == 0.1
    assert knobs_effective("/").forget_salience_threshold == 0.05
    settings.MEMSTATE_KNOBS = {"forget_salience_threshold": 0.15, "theta_detach": 0.2}
    assert knobs_effective("/a").forget_salience_threshold == 0.15


def test_own_values_come_before_those_of_the_preset_and_both_before_the_scope_above():
    saved(preset="memstate", mode="review")
    saved("/user", preset="relevance", prune_after_days=120)
    found = policies_current().effective("/user")
    assert (found.knobs.strategy, found.sources["strategy"]) == ("relevance", ValueSource("/user", "relevance"))
    assert (found.knobs.prune_after_days, found.sources["prune_after_days"]) == (120, ValueSource("/user"))
    assert (found.knobs.mode, found.sources["mode"]) == ("review", ValueSource("/"))
    # Nothing of the preset above shows through the one below.
    assert found.knobs.reinforce_once_seconds == 60
    assert policies_current().effective("/").sources["strategy"] == ValueSource("/", "memstate")


def test_nodes_are_the_scope_itself_and_every_scope_below_it_with_a_policy():
    for scope in ("/user", "/user/bob", "/user/alice/x", "/username", "/project"):
        saved(scope, half_life_days=10)
    policies = policies_current()
    assert [node.scope for node in policies.nodes("/user")] == ["/user", "/user/alice/x", "/user/bob"]
    assert [node.scope for node in policies.nodes("/user/alice")] == ["/user/alice", "/user/alice/x"]
    assert policies.nodes("/user/alice")[0].at == "/user"
    assert next(node.scope for node in policies.nodes("/")) == "/"
    assert [policies.node_of(scope) for scope in ("/user/alice", "/user/alice/x/y", "/other")] == [
        "/user",
        "/user/alice/x",
        "/",
    ]


def test_the_policies_that_have_a_say_are_those_above_and_below():
    for scope in ("/", "/user", "/user/alice", "/project"):
        saved(scope, half_life_days=10)
    saved("/user", half_life_days=11)
    assert policies_current().versions_touching("/user") == {"/": 1, "/user": 2, "/user/alice": 1}
    assert policies_current().versions_touching("/other") == {"/": 1}


def test_a_policy_that_sets_nothing_any_more_governs_nothing():
    saved("/user", half_life_days=10)
    saved("/user")
    assert PolicyVersion.objects.filter(scope="/user").count() == 2
    assert policies_current().node_of("/user/alice") == "/"
    assert policies_current().numbers["/user"] == 2


def test_a_draft_is_in_force_in_its_snapshot_alone():
    saved(half_life_days=20, query_salience_bump=0.2)
    saved("/user", query_salience_bump=0.3)
    drafted = policies_drafted(policies_current(), "/", values={"half_life_days": "5"})
    assert drafted.knobs("/user").half_life_days == 5
    assert (drafted.knobs("/").query_salience_bump, drafted.knobs("/user").query_salience_bump) == (1, 0.3)
    assert drafted.stamp != policies_current().stamp
    assert knobs_effective("/").half_life_days == 20
    assert (
        policies_drafted(policies_current(), "/user", preset="memstate", values={}).knobs("/user").strategy == "static"
    )


def test_a_policy_that_was_rolled_back_was_never_in_force():
    saved(half_life_days=20)
    with transaction.atomic():
        saved(half_life_days=10)
        assert knobs_effective("/").half_life_days == 10
        transaction.set_rollback(True)
    assert knobs_effective("/").half_life_days == 20
    saved(half_life_days=5)
    assert knobs_effective("/").half_life_days == 5
