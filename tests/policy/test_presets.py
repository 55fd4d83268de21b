"""Each preset beside the design it reproduces, value by value; docs/coming-from.md names them."""

from typing import Any

import pytest

from memory.core.policy_presets import PRESETS
from memory.core.policy_values import KNOBS, Knobs
from memory.policy.effective import policies_current
from tests.policy.shop import saved

pytestmark = pytest.mark.django_db

# What the published designs say, and no more.
DESIGNS: dict[str, dict[str, Any]] = {
    "memstate": {
        "strategy": "static",
        "forget_salience_threshold": 0.05,
        "theta_summary": 0.05,
        "theta_detach": 0.05,
        "prune_after_days": 0,
        "archive_attenuation": 0.5,
        "topic_count_soft_limit": 500,
        "max_topics_for_forget_scan": 10_000,
        "max_field_history": 500,
        "query_salience_bump": 0.1,
        "query_field_salience_bump": 0.1,
        "field_salience_max": 10,
        "reinforce_once_seconds": 0,
        "ranking_decay": "off",
    },
    "importance-decay": {
        "strategy": "half_life",
        "half_life_days": 30,
        "forget_salience_threshold": 0.05,
        "theta_summary": 0.05,
        "theta_detach": 0.05,
        "prune_after_days": 30,
        "exempt_scopes": ("/user",),
        "ranking_decay": "off",
    },
    "active-forgetting": {
        "strategy": "active_forgetting",
        "active_half_life_days": 180,
        "forget_salience_threshold": 0.1,
        "theta_summary": 0.1,
        "theta_detach": 0.1,
        "prune_after_days": 0,
        "ranking_decay": "active_forgetting",
    },
    "relevance": {
        "strategy": "relevance",
        "forget_salience_threshold": 0.2,
        "theta_summary": 0.2,
        "theta_detach": 0.2,
        "prune_after_days": 90,
        "ranking_decay": "off",
    },
    "graduated": {
        "strategy": "static",
        "forget_salience_threshold": 0,
        "theta_summary": 0,
        "theta_detach": 0,
        "ranking_decay": "off",
    },
}

GRADUATED = [
    "from 90 days only identity and decision",
    "from 30 days findings are summarized",
    "from 7 days no tool output",
]


@pytest.mark.parametrize("preset", DESIGNS)
def test_a_preset_puts_the_values_of_its_design_in_force(preset: str):
    saved("/project", preset=preset)
    found = policies_current().effective("/project/x")
    assert {name: getattr(found.knobs, name) for name in DESIGNS[preset]} == DESIGNS[preset]
    assert {found.sources[name].preset for name in DESIGNS[preset]} == {preset}
    assert [rule.name for rule in found.rules.rules] == (GRADUATED if preset == "graduated" else [])


def test_the_six_presets_are_there_and_balanced_is_the_defaults():
    assert set(PRESETS) == {"balanced", *DESIGNS}
    saved(preset="balanced")
    assert policies_current().knobs("/") == Knobs()


@pytest.mark.parametrize("above", PRESETS)
@pytest.mark.parametrize("below", PRESETS)
def test_a_preset_is_the_same_design_under_any_other_and_in_any_environment(above: str, below: str, settings: Any):
    settings.MEMSTATE_KNOBS = {"half_life_days": 3.0, "strategy": "static", "theta_summary": 2.0, "mode": "review"}
    saved("/a", preset=above)
    saved("/a/b", preset=below)
    saved("/c", preset=below)
    under, alone = (policies_current().effective(path) for path in ("/a/b", "/c"))
    # An exempt scope is a promise; a preset below does not take it back.
    promised = {"exempt_scopes"} if above == "importance-decay" else set()
    assert [name for name in KNOBS if getattr(under.knobs, name) != getattr(alone.knobs, name)] == sorted(
        promised - ({"exempt_scopes"} if below == "importance-decay" else set())
    )
    assert under.knobs.mode == "review"
    own = {name for name, value in PRESETS[below].values.items() if getattr(under.knobs, name) != value}
    assert own == set()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_says_what_it_does_and_sets_what_is_known(preset: str):
    assert PRESETS[preset].meaning
    assert PRESETS[preset].values.keys() <= KNOBS.keys()
    for name in ("mode", "cron", "exempt_kinds", "max_archive_share", "token_budgets"):
        assert name not in PRESETS[preset].values
