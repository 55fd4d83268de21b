"""``manage.py policy``: what is set at the terminal is in force at once, and what makes no sense changes nothing."""

import datetime as dt
import io

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from memory.models import PolicyVersion
from memory.policy.effective import knobs_effective, policies_current
from tests.cast import Caller, Clock, store_rows

pytestmark = pytest.mark.django_db


def policy(*words: str) -> str:
    """Run the command with these words and return what it says."""
    out = io.StringIO()
    call_command("policy", *words, stdout=out)
    return out.getvalue()


def changed(*words: str) -> str:
    return policy("set", *words, "--reason", "too much noise")


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC))


def test_what_is_set_is_reported_and_in_force():
    assert changed("half_life_days=20", "cron=30 4 * * *") == (
        "/ now has version 1.\n"
        "  cron from inherited to 30 4 * * *\n"
        "  half_life_days from inherited to 20\n"
        "The worker applies the new half-life to the topics in the background.\n"
        "Next scheduled run: 2026-03-02 04:30 UTC.\n"
    )
    assert knobs_effective("/user").half_life_days == 20
    version = PolicyVersion.objects.get()
    assert (version.author, version.reason) == ("terminal", "too much noise")


def test_other_values_stay_until_they_are_unset():
    changed("half_life_days=20", "mode=review", "theta_archive=0.01")
    changed("query_salience_bump=0.2", "--unset", "mode", "--unset", "theta_archive")
    assert PolicyVersion.objects.get(number=2).values == {"half_life_days": 20, "query_salience_bump": 0.2}
    assert changed("half_life_days=20") == "Nothing was changed: / already has these values.\n"
    assert PolicyVersion.objects.count() == 2


def test_a_scope_and_a_preset():
    said = changed("/user/alice", "mode=off", "--preset", "memstate")
    assert "preset from inherited to memstate" in said
    assert "No run is scheduled, because mode is off." in said
    knobs = knobs_effective("/user/alice/notes")
    assert (knobs.strategy, knobs.mode) == ("static", "off")
    changed("/user/alice", "--preset", "none")
    assert knobs_effective("/user/alice").strategy == "half_life"
    assert knobs_effective("/user/alice").mode == "off"


def test_shipped_rules_are_added_and_dropped():
    said = changed("user", "--add-rules", "ttl_by_kind")
    assert "rule tool_output lives 7d added: " in said
    assert len(policies_current().effective("/user").rules.rules) == 5
    changed("user", "--drop-rule", "tool_output lives 7d")
    assert "tool_output lives 7d" not in {rule.name for rule in policies_current().effective("/user").rules.rules}
    assert "rule decision lives 365d, /user: " in policy("show", "/user/alice")


def test_show_tells_each_value_and_where_it_comes_from(operator: Caller):
    changed("/user", "half_life_days=20", "--preset", "relevance")
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in policy("show", "/user/alice").splitlines()}
    assert lines["/user/alice:"] == "no policy"
    assert lines["half_life_days"] == "20 /user"
    assert lines["strategy"] == "relevance /user by preset relevance"
    assert lines["mode"] == "auto default"
    assert lines["token_budgets"] == "false default"
    assert lines["embedding_dimension"] == "384 default"
    assert lines["Next"] == "scheduled run: 2026-03-02 03:00 UTC."
    assert " mode " not in policy("show", "/user", "--set-only")
    assert policy("show", "/user").startswith("/user: version 1, preset relevance\n")


def test_the_history_and_the_way_back():
    assert policy("versions") == "This scope has no policy of its own.\n"
    changed("half_life_days=20")
    changed("half_life_days=10")
    assert policy("rollback", "--to", "1", "--reason", "was better").startswith(
        "/ now has version 3.\n  half_life_days from 10 to 20\n"
    )
    assert policy("versions") == (
        "version 3, back to version 1, 2026-03-01 12:00 UTC, terminal: was better\n"
        "  half_life_days from 10 to 20\n"
        "version 2, 2026-03-01 12:00 UTC, terminal: too much noise\n"
        "  half_life_days from 20 to 10\n"
        "version 1, 2026-03-01 12:00 UTC, terminal: too much noise\n"
        "  half_life_days from inherited to 20\n"
    )
    assert policy("versions", "--limit", "1").endswith("2 older versions; use --limit to list more.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "half_life_days=-1", "--reason", "x"), "invalid-policy"),
        (("set", "half_live=1", "--reason", "x"), "invalid-policy"),
        (("set", "half_life_days=1"), "missing-member"),
        (("set", "theta_summary=0.1", "theta_detach=0.2", "--reason", "x"), "invalid-policy"),
        (("set", "cron=0 0 30 2 *", "--reason", "x"), "invalid-policy"),
        (("set", "/user", "mode", "--reason", "x"), "invalid-member"),
        (("set", "mode", "--reason", "x"), "invalid-member"),
        (("set", "mode=off", "mode=auto", "--reason", "x"), "invalid-member"),
        (("set", "--unset", "mode", "--reason", "x"), "invalid-policy"),
        (("set", "--drop-rule", "x", "--reason", "x"), "not-found"),
        (("set", "--preset", "fancy", "--reason", "x"), r"invalid choice: 'fancy'"),
        (("set", "/a b", "mode=off", "--reason", "x"), "invalid-scope"),
        (("rollback", "--to", "3", "--reason", "x"), "not-found"),
        (("show", "/a b"), "invalid-scope"),
        (("versions", "--limit", "0"), "invalid-member"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], said: str):
    before = store_rows()
    with pytest.raises(CommandError, match=said) as refused:
        policy(*words)
    assert refused.value.returncode == 1
    assert store_rows() == before
