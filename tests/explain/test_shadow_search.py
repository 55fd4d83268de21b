"""The shadow search: past questions asked again over what is archived."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.explain.shadow import access_sampled, shadow_search
from memory.models import AccessLog, ShadowHit, Topic, Vitality, Watermark
from tests.cast import Cast, Clock, store_rows
from tests.explain.past import BEGIN, policy_set, run_now

pytestmark = pytest.mark.django_db
FREE = {"topic_count_soft_limit": 0, "max_archive_share": 1.0}


def searched(clock: Clock, **more: Any) -> None:
    """Let the worker search until it is through the log."""
    while shadow_search(now=clock.now, **more):
        pass


@pytest.fixture
def topics(cast: Cast, clock: Clock) -> dict[str, str]:
    """One topic that a run has archived, and one that is used."""
    policy_set(**FREE, shadow_share=1.0)
    clock.set(BEGIN)
    archived = cast.agent.remember("green tea from Uji", scope="/home")
    clock.forward(days=400)
    live = cast.agent.remember("rent of the flat", scope="/home")
    run_now(clock)
    clock.forward(days=1)
    return {"archived": archived, "live": live}


def test_an_archived_topic_that_would_have_answered_is_a_hit_with_its_rank(
    cast: Cast, clock: Clock, topics: dict[str, str]
):
    assert cast.agent.found("green tea from Uji") == [topics["live"]]
    access = AccessLog.objects.get(kind="query")
    searched(clock)
    hit = ShadowHit.objects.get()
    assert (str(hit.topic_id), hit.access_id, hit.rank, hit.at) == (topics["archived"], access.id, 1, access.at)
    assert hit.similarity == pytest.approx(1, abs=0.01)
    report = cast.reader.get("/v1/regret").ok()
    assert (report["regretted"], report["signals"]["shadow"]) == (1, 1)


def test_it_is_done_once_and_leaves_nothing_but_hits_and_its_mark(cast: Cast, clock: Clock, topics: dict[str, str]):
    for question in ("green tea", "tea", "rent"):
        cast.agent.query(question)
    vitality = list(Vitality.objects.order_by("pk").values())
    before = store_rows()
    searched(clock, limit=2)
    after = store_rows()
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {
        "memory_shadowhit": ShadowHit.objects.count(),
        "memory_watermark": 1,
    }
    assert ShadowHit.objects.count() >= 2
    assert list(Vitality.objects.order_by("pk").values()) == vitality
    assert Watermark.objects.get(name="shadow").taken == 3
    searched(clock)
    assert store_rows() == after
    # Even if the mark was lost, each row is there once.
    Watermark.objects.update(position=0)
    searched(clock)
    assert store_rows() == after


def test_a_question_from_before_the_archiving_misses_nothing(cast: Cast, clock: Clock):
    policy_set(**FREE, shadow_share=1.0, query_salience_bump=0)
    clock.set(BEGIN)
    topic = cast.agent.remember("green tea from Uji")
    cast.agent.remember("rent of the flat")
    assert topic in cast.agent.found("rent", top_k=2)
    clock.forward(minutes=5)
    cast.agent.query("green tea", top_k=1)
    clock.forward(minutes=5)
    cast.operator.post(f"/v1/topics/{topic}/archive", {}).ok()
    searched(clock)
    assert ShadowHit.objects.count() == 0
    assert Watermark.objects.get(name="shadow").taken == 2
    clock.forward(minutes=5)
    cast.agent.query("green tea", top_k=1)
    searched(clock)
    assert ShadowHit.objects.count() == 1


def test_what_was_asked_while_nothing_was_archived_is_never_asked_again(cast: Cast, clock: Clock):
    policy_set(shadow_share=1.0)
    topic_id = cast.agent.remember("tea")
    cast.agent.query("tea")
    with CaptureQueriesContext(connection) as caught:
        assert shadow_search(now=clock.now) == 0
    assert len(caught) == 2
    assert Watermark.objects.get(name="shadow").taken == 0
    cast.operator.post(f"/v1/topics/{topic_id}/archive").ok()
    assert shadow_search(now=clock.now) == 0
    cast.agent.query("tea")
    assert shadow_search(now=clock.now) == 1


def test_lookups_and_scopes_without_a_share_are_passed_over(cast: Cast, clock: Clock, topics: dict[str, str]):
    policy_set("/home", shadow_share=0.0)
    cast.reader.topic(topics["archived"])
    cast.agent.query("green tea", scope="/home")
    searched(clock)
    assert Watermark.objects.get(name="shadow").taken == 0
    assert ShadowHit.objects.count() == 0


def test_a_query_is_repeated_with_its_filters(cast: Cast, clock: Clock, topics: dict[str, str]):
    cast.agent.query("green tea from Uji", kinds=["fruit"])
    cast.agent.query("green tea from Uji", topic_ids=[topics["live"]])
    searched(clock)
    assert Watermark.objects.get(name="shadow").taken == 2
    assert ShadowHit.objects.count() == 0


def test_a_query_that_searched_no_live_topics_alone_is_not_repeated(cast: Cast, clock: Clock, topics: dict[str, str]):
    cast.agent.query("green tea from Uji", include_archived=True, topic_ids=[topics["live"]])
    cast.agent.query("green tea from Uji", stages=["structural"], topic_ids=[topics["live"]])
    searched(clock)
    assert Watermark.objects.get(name="shadow").taken == 0
    assert ShadowHit.objects.count() == 0


def test_topics_that_are_newer_than_the_query_take_no_rank(cast: Cast, clock: Clock, topics: dict[str, str]):
    policy_set(**FREE, shadow_share=1.0, shadow_top_k=1)
    cast.agent.query("green tea from Uji, harvested in May")
    clock.forward(minutes=5)
    cast.agent.remember("green tea from Uji, harvested in May")
    searched(clock)
    assert ShadowHit.objects.get().rank == 1


def test_a_question_is_asked_in_its_own_scope(cast: Cast, clock: Clock, topics: dict[str, str]):
    cast.agent.remember("the garage", scope="/work")
    cast.agent.query("green tea from Uji", scope="/work")
    searched(clock)
    assert Watermark.objects.get(name="shadow").taken == 1
    assert ShadowHit.objects.count() == 0


def test_released_and_merged_topics_are_no_hits(cast: Cast, clock: Clock, topics: dict[str, str]):
    Topic.objects.filter(pk=topics["archived"]).update(released_at=clock.now)
    cast.agent.query("green tea from Uji")
    searched(clock)
    assert ShadowHit.objects.count() == 0


def test_only_the_first_ranks_count(cast: Cast, clock: Clock, topics: dict[str, str]):
    policy_set(**FREE, shadow_share=1.0, shadow_top_k=1)
    cast.agent.query("rent of the flat")
    searched(clock)
    assert ShadowHit.objects.count() == 0


def test_the_sample_has_the_share_that_is_asked_for_and_grows_with_it():
    ids = range(1, 20_001)
    small = {access for access in ids if access_sampled(access, 0.02)}
    large = {access for access in ids if access_sampled(access, 0.5)}
    assert 300 < len(small) < 500
    assert 9_700 < len(large) < 10_300
    assert small < large
    assert all(access_sampled(access, 1.0) for access in ids)
    assert not any(access_sampled(access, 0.0) for access in ids)
