"""A topic is live if it is neither archived nor released nor merged. Everything that counts topics means this."""

import uuid
from typing import Any

from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.console.queries.daily_counts import live_days
from memory.console.queries.scope_tree import scope_children
from memory.duplicates.pair_actions import pair_merge
from memory.erasure.purge import topics_purge
from memory.explain.topic_counts import topic_counts, topic_counts_by_store
from memory.forgetting.candidates import live_count
from memory.forgetting.manual_actions import topics_archive, topics_release, topics_restore
from memory.models import Vitality
from memory.stores.current import MAIN
from tests.cast import Cast
from tests.duplicates.shop import PERSON, pair_make


def counted(cast: Cast) -> set[int]:
    """Return all numbers of live topics."""
    now = timezone.now()
    stats = cast.reader.get("/v1/stats").ok()
    rungs = stats["rungs"]
    scopes, _next = scope_children("/", sort="size", principal=SYSTEM, now=now, cursor=None, limit=100)
    return {
        stats["live"],
        sum(rungs[name] for name in ("active", "summarized", "detached")),
        len(cast.reader.get("/v1/topics?limit=200").ok()["items"]),
        topic_counts().live,
        topic_counts_by_store([MAIN])[MAIN].live,
        live_count("/"),
        Vitality.objects.filter(live=True).count(),
        sum(scope.live for scope in scopes),
        # Everything was written today.
        sum(scope.growth for scope in scopes),
        live_days(topic_counts().live, days=2, now=now)[-1].change,
    }


def move(how: Any, topic_id: str) -> None:
    how([uuid.UUID(topic_id)], principal=SYSTEM, reason="test", now=timezone.now())


def test_every_count_of_live_topics_is_the_same(cast: Cast) -> None:
    agent = cast.agent
    ids = [agent.remember(f"Topic {number}", scope=f"/{number % 2}") for number in range(6)]
    agent.post(
        "/v1/extract",
        {"content": "Petra lives in Linz. Jan works at the harbour in Oslo. Bruno is a dog.", "store": True},
    ).ok()
    assert counted(cast) == {9}
    move(topics_archive, ids[0])
    move(topics_archive, ids[1])
    move(topics_release, ids[2])
    move(topics_release, ids[1])
    assert counted(cast) == {6}
    move(topics_restore, ids[1])
    pair = pair_make(ids[3], ids[5])
    pair_merge(pair.pk, principal=PERSON, reason="the same", now=timezone.now())
    assert counted(cast) == {6}
    topics_purge([uuid.UUID(ids[4])], principal=SYSTEM, reason="test", now=timezone.now())
    assert counted(cast) == {5}
    stats = cast.reader.get("/v1/stats").ok()
    assert (stats["topics"], stats["rungs"]["archived"], stats["released"]) == (6, 1, 2)


def test_what_is_released_is_counted_nowhere_else(cast: Cast) -> None:
    ids = [cast.agent.remember(f"Topic {number}", values={"a": "1"}) for number in range(3)]
    cast.agent.ingest("extend_topic", topic_id=ids[0], edges=[{"to_topic_id": ids[1], "kind": "near"}])
    for topic_id in ids:
        move(topics_release, topic_id)
    stats = cast.reader.get("/v1/stats").ok()
    assert [stats[name] for name in ("topics", "live", "fields", "revisions", "links", "released")] == [
        0,
        0,
        0,
        0,
        0,
        3,
    ]
    assert counted(cast) == {0}
