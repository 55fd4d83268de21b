"""The rung on which a topic belongs exists as Python and as SQL, and is found by index and by reading everything."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.core.policy_values import STRATEGIES
from memory.forgetting.judge import Judge
from memory.forgetting.plan import run_is_due
from memory.formulas.ladder import CLIMB_MARGIN, rung_target
from memory.formulas.partition_time import PartitionTime, midnight
from memory.formulas.salience import FADE_FLOOR_LAG, SECONDS_PER_DAY, fade_key
from memory.formulas.strategies import TopicUsage, archive_due, score
from memory.models import PartitionActivity, Scope, Topic, Vitality
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.policy.rekey import half_lives_rekey, half_lives_stray_check
from memory.policy.snapshot import Policies
from memory.predicates.binding import Bound
from tests.forgetting.candidates import candidates_count, candidates_find
from tests.generated import examples
from tests.policy.shop import saved

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
KINDS = ["", "decision", "finding", "identity", "tool_output"]
SCOPES = ["/", "/project", "/project/old", "/user/alice"]

saliences = st.one_of(
    st.just(0.0), st.just(5e-324), st.floats(0, 1e-15), st.floats(0, 0.3), st.floats(0.3, 2), st.floats(0, 20)
)
# Also so long ago that gates are met to the microsecond, and a little ahead, as after a clock was set back.
ages = st.one_of(
    st.floats(-2, 1500).map(lambda days: dt.timedelta(days=days)),
    st.builds(
        lambda days, off: dt.timedelta(days=days, microseconds=off), st.sampled_from([1, 30, 90]), st.integers(-1, 1)
    ),
)
half_lives = st.sampled_from([0.5, 1, 10, 30, 90, 3650])
thetas = st.lists(st.one_of(st.floats(0, 2), st.sampled_from([0, 0.05, 0.12, 0.25, 1.0])), min_size=3, max_size=3).map(
    lambda three: dict(
        zip(("theta_summary", "theta_detach", "forget_salience_threshold"), sorted(three, reverse=True), strict=True)
    )
)
values = st.builds(
    lambda three, chosen: {**three, **chosen},
    st.one_of(thetas, st.just({})),
    st.fixed_dictionaries(
        {
            "strategy": st.sampled_from(STRATEGIES),
            "half_life_days": half_lives,
            "active_half_life_days": st.sampled_from([5, 90, 180]),
        },
        optional={
            "clock": st.sampled_from(["active", "wall"]),
            "prune_after_days": st.sampled_from([0, 1, 30, 90]),
            "exempt_kinds": st.sampled_from([[], ["finding"], ["identity", "finding"]]),
        },
    ),
)
topics = st.fixed_dictionaries(
    {
        "rung": st.integers(0, 3),
        "salience": saliences,
        "reinforced": ages,
        "created": ages,
        "retrieved": st.one_of(st.none(), ages),
        "count": st.one_of(st.integers(0, 12), st.integers(0, 2**31 - 1)),
        "kind": st.sampled_from(KINDS),
        "pinned": st.sampled_from([False, False, False, True]),
        "released": st.sampled_from([False, False, False, True]),
        "half_life": half_lives,
        "wall": st.booleans(),
        "lag": st.floats(0, 1),
        "scope": st.sampled_from(SCOPES),
    }
)


TODAY = midnight(NOW)
# Idle stretches as the distances of their midnights from today, in days; the last may go on until today.
times = st.builds(
    lambda days, quiet: PartitionTime(
        TODAY - min(days) * SECONDS_PER_DAY if quiet else TODAY + SECONDS_PER_DAY,
        tuple(TODAY - day * SECONDS_PER_DAY for day in sorted(days, reverse=True)[: len(days) // 2 * 2 - 2 * quiet]),
    ),
    st.sets(st.integers(0, 1500), min_size=2, max_size=9),
    st.booleans(),
)


def presence(topic: dict[str, Any], time: PartitionTime) -> TopicUsage:
    reinforced_at = (NOW - topic["reinforced"]).timestamp()
    return TopicUsage(
        idle_before=float(time.idle(reinforced_at)),
        salience=topic["salience"],
        reinforced_at=reinforced_at,
        created_at=(NOW - topic["created"]).timestamp(),
        last_retrieved_at=None if topic["retrieved"] is None else (NOW - topic["retrieved"]).timestamp(),
        retrieval_count=topic["count"],
        kind=topic["kind"],
    )


_ROWS = """
SELECT {ladder} FROM unnest(%(rung)s::int[], %(salience)s::float8[], %(reinforced_at)s::timestamptz[],
    %(created_at)s::timestamptz[], %(last_retrieved_at)s::timestamptz[], %(retrieval_count)s::int[], %(kind)s::text[],
    %(half_life)s::float8[], %(fade)s::float8[], %(wall)s::bool[], %(idle_before)s::float8[])
WITH ORDINALITY AS v (rung, salience, reinforced_at, created_at, last_retrieved_at, retrieval_count, kind, half_life,
    fade, wall, idle_before, place) ORDER BY place
"""


@examples(120)
@given(values, times, st.lists(topics.filter(lambda topic: topic["rung"] < 3), min_size=1, max_size=40))
def test_the_ladder_is_the_same_in_both(
    values: dict[str, Any], time: PartitionTime, rows: list[dict[str, Any]]
) -> None:
    policy = policies_drafted(Policies().with_times({"/": time}), "/", values=values).effective("/")
    knobs, bound, now = policy.knobs, Bound(), NOW.timestamp()
    usages = [presence(topic, time) for topic in rows]
    ladder = Judge(policy, NOW, "cron", bound.bind).ladder()
    columns: dict[str, list[Any]] = {
        "rung": [topic["rung"] for topic in rows],
        "salience": [topic["salience"] for topic in rows],
        "reinforced_at": [NOW - topic["reinforced"] for topic in rows],
        "created_at": [NOW - topic["created"] for topic in rows],
        "last_retrieved_at": [None if topic["retrieved"] is None else NOW - topic["retrieved"] for topic in rows],
        "retrieval_count": [topic["count"] for topic in rows],
        "kind": [topic["kind"] for topic in rows],
        # What a row was written with may be what the policy says or not.
        "half_life": [topic["half_life"] * 86_400.0 for topic in rows],
        "fade": [
            fade_key(
                topic["salience"],
                reinforced_at=usage.reinforced_at - (0.0 if topic["wall"] else usage.idle_before),
                half_life=topic["half_life"] * 86_400.0,
            )
            for topic, usage in zip(rows, usages, strict=True)
        ],
        "wall": [topic["wall"] for topic in rows],
        "idle_before": [usage.idle_before for usage in usages],
    }
    with connection.cursor() as cursor:
        cursor.execute(_ROWS.format(ladder=ladder), {**bound.values, **columns})
        found = [row[0] for row in cursor.fetchall()]
    edges = [knobs.forget_salience_threshold]
    edges += [theta * times for theta in (knobs.detach_below, knobs.summarize_below) for times in (1, CLIMB_MARGIN)]
    numbers: dict[str, Any] = {
        "strategy": knobs.strategy,
        "half_life": knobs.half_life,
        "active_half_life": knobs.active_half_life,
        "now": now,
    }
    for topic, usage, there in zip(rows, usages, found, strict=True):
        numbers["skipped"] = policy.time.skipped(usage.idle_before, now)
        value = score(usage, **numbers)
        if any(abs(value - edge) < 1e-9 for edge in edges):
            continue
        if knobs.strategy == "half_life" and topic["reinforced"] < dt.timedelta(0):
            # After a clock was set back: by its fade key a topic is worth more than was written until then.
            continue
        due = archive_due(usage, theta=knobs.forget_salience_threshold, prune_after=knobs.prune_after, **numbers)
        here = rung_target(
            topic["rung"], value, archive_due=due, theta_summary=knobs.summarize_below, theta_detach=knobs.detach_below
        )
        assert here == there, (topic, value)


def store(rows: list[dict[str, Any]], policies: Policies) -> None:
    """Write the topics as the store would have: with the half-life of their policy, and a floor that may lag."""
    Vitality.objects.all().delete()
    Topic.objects.all().delete()
    scopes = {path: Scope.objects.get_or_create(path=path)[0] for path in SCOPES}
    made, standing = [], []
    for place, topic in enumerate(rows, start=1):
        policy = policies.effective(topic["scope"])
        topic_id, facts, half_life = uuid.UUID(int=place), presence(topic, policy.time), policy.knobs.half_life
        counted = policy.time.counted(facts.reinforced_at, facts.idle_before)
        fade = fade_key(facts.salience, reinforced_at=counted, half_life=half_life)
        # Below the first rung the floor is the key itself.
        lag = topic["lag"] * FADE_FLOOR_LAG * half_life if topic["rung"] == 0 else 0.0
        released = NOW if topic["released"] else None
        created = NOW - topic["created"]
        made.append(
            Topic(
                id=topic_id,
                scope=scopes[topic["scope"]],
                kind=topic["kind"],
                title=f"topic {place}",
                created_at=created,
                updated_at=created,
                rung=topic["rung"],
                released_at=released,
            )
        )
        standing.append(
            Vitality(
                topic_id=topic_id,
                scope=scopes[topic["scope"]],
                kind=topic["kind"],
                created_at=created,
                rung=topic["rung"],
                live=topic["rung"] < 3 and released is None,
                pinned=topic["pinned"],
                salience=facts.salience,
                reinforced_at=NOW - topic["reinforced"],
                idle_before=facts.idle_before,
                wall=policy.time.wall,
                half_life=half_life,
                fade=fade,
                fade_floor=fade - lag,
                retrieval_count=topic["count"],
                last_retrieved_at=None if topic["retrieved"] is None else NOW - topic["retrieved"],
            )
        )
    Topic.objects.bulk_create(made)
    Vitality.objects.bulk_create(standing)


@examples(100)
@given(
    values,
    st.one_of(st.none(), values),
    st.sampled_from(["/project", "/project/old"]),
    st.sampled_from(SCOPES),
    st.dictionaries(st.sampled_from(SCOPES), times),
    st.lists(topics, min_size=1, max_size=40),
)
def test_by_index_the_same_topics_are_found_as_by_reading_everything(
    root: dict[str, Any],
    below: dict[str, Any] | None,
    node: str,
    scope: str,
    idle: dict[str, PartitionTime],
    rows: list[dict[str, Any]],
) -> None:
    # A scope with a time of its own may have no policy: it had one.
    policies = policies_drafted(Policies().with_times(idle), "/", values=root)
    if below is not None:
        policies = policies_drafted(policies, node, values=below)
    store(rows, policies)
    by_index = candidates_find(policies, scope, event="cron", now=NOW)
    assert by_index == candidates_find(policies, scope, event="cron", now=NOW, keys_outdated=True)
    actions = [candidate.action for candidate in by_index]
    assert candidates_count(policies, scope, event="cron", now=NOW) == {
        action: actions.count(action) for action in actions
    }
    assert run_is_due(policies, scope, event="manual", now=NOW) == bool(by_index)


@examples(30)
@given(values, values, times, st.lists(topics, min_size=1, max_size=20))
def test_a_change_of_half_life_and_clock_is_judged_alike_before_and_after_the_rows_have_it(
    old: dict[str, Any], new: dict[str, Any], time: PartitionTime, rows: list[dict[str, Any]]
) -> None:
    with transaction.atomic():
        PartitionActivity.objects.create(scope="/", active_until=time.active_until, idle_spans=list(time.idle_spans))
        saved(**old)
        store(rows, policies_current())
        saved(**new)
        meanwhile = candidates_find(policies_current(), "/", event="cron", now=NOW)
        while half_lives_rekey(now=NOW, budget_seconds=60):
            pass
        assert not policies_current().rekeying
        assert candidates_find(policies_current(), "/", event="cron", now=NOW) == meanwhile
        assert half_lives_stray_check(now=NOW) == 0
        transaction.set_rollback(True)


def test_a_topic_worth_nothing_at_all_is_found_by_index() -> None:
    # Its fade key is minus infinity, the end of every range.
    policies = policies_drafted(Policies(), "/", values={"prune_after_days": 0})
    topic: dict[str, Any] = {
        "salience": 0.0,
        "reinforced": dt.timedelta(days=40),
        "created": dt.timedelta(days=40),
        "retrieved": None,
        "count": 0,
        "kind": "",
        "pinned": False,
        "released": False,
        "lag": 0.0,
        "scope": "/",
    }
    store([{**topic, "rung": rung} for rung in (0, 1, 2, 3)], policies)
    found = candidates_find(policies, "/", event="cron", now=NOW)
    assert [(candidate.from_rung, candidate.action) for candidate in found] == [(rung, "archived") for rung in range(3)]
