"""Merges with more than one connection, and merges that are killed: each is there whole, or not at all."""

import os
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from memory.core.errors import Conflict
from memory.duplicates.detect import duplicates_find
from memory.duplicates.pair_actions import pair_merge, pair_undo
from memory.models import DuplicatePair, Field, ForgetRun, Revision, Topic, TopicVector, Vitality
from memstate_site.folder import CHECKOUT
from tests.cast import Caller, Cast
from tests.concurrency.test_writers import at_once
from tests.duplicates.shop import PERSON, pair_make

pytestmark = [pytest.mark.django_db(transaction=True)]

MERGER = """
import sys
import django
django.setup()
from django.db import connection
from django.utils import timezone
from memory.access.principal import SYSTEM
from memory.duplicates.pair_actions import pair_merge
import uuid
from tests.crash.stop_points import kill_at_statement
connection.settings_dict["NAME"] = sys.argv[1]
kill_at_statement(connection, int(sys.argv[2]))
for pair in sys.argv[3:]:
    pair_merge(uuid.UUID(pair), principal=SYSTEM, reason="", now=timezone.now())
"""


@pytest.fixture(autouse=True)
def _close(settings: Any) -> Iterator[None]:
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 1_000_000
    yield
    connections.close_all()


def tried(pair_id: Any, verb: Any = pair_merge) -> Any:
    try:
        return verb(pair_id, principal=PERSON, reason="", now=timezone.now())
    except Conflict as problem:
        return problem


def three(agent: Caller) -> list[str]:
    field = [{"name": "depth", "value": "3 m"}]
    return [agent.remember(f"The harbor {place}", fields=field) for place in range(3)]


def whole() -> None:
    """Every topic that went is gone everywhere, every field that is shown has its history without a gap."""
    for topic in Topic.objects.all():
        live = topic.merged_into_id is None
        assert Vitality.objects.get(pk=topic.pk).live == live
        assert TopicVector.objects.get(pk=topic.pk).live == live
    for field in Field.objects.filter(topic__merged_into=None):
        seqs = list(Revision.objects.filter(field=field).order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(1, field.last_seq + 1))
    merged = DuplicatePair.objects.filter(state="merged")
    assert {pair.run_id for pair in merged} == set(ForgetRun.objects.filter(status="done").values_list("id", flat=True))


def test_of_two_merges_of_one_pair_one_is_refused(http_cast: Cast):
    one, two, _three = three(http_cast.agent)
    pair = pair_make(one, two)
    results = at_once([lambda: tried(pair.pk)] * 4)
    assert sum(isinstance(each, ForgetRun) for each in results) == 1
    assert Revision.objects.filter(field__topic__merged_into=None).count() == 3
    whole()


def test_merges_that_share_a_topic_wait_for_each_other(http_cast: Cast):
    for _round in range(3):
        one, two, last = three(http_cast.agent)
        pairs = [pair_make(one, two), pair_make(two, last), pair_make(one, last)]
        results = at_once([lambda pk=pair.pk: tried(pk) for pair in pairs])
        assert sum(isinstance(each, ForgetRun) for each in results) == 2
        assert Topic.objects.filter(pk__in=(one, two, last), merged_into=None).count() == 1
    whole()


def test_what_is_written_during_a_merge_is_in_it_or_refused(http_cast: Cast):
    agent = http_cast.agent
    for _round in range(4):
        one, two, _last = three(agent)
        pair = pair_make(one, two)

        def write(topic_id: str) -> int:
            item = {"placement": "extend_topic", "topic_id": topic_id, "fields": [{"name": "depth", "value": "4 m"}]}
            return agent.post("/v1/ingest", item).status

        merge, *written = at_once(
            [lambda pk=pair.pk: tried(pk), lambda one=one: write(one), lambda two=two: write(two)]
        )
        assert isinstance(merge, ForgetRun)
        assert set(written) <= {200, 400}
        kept = DuplicatePair.objects.get(pk=pair.pk).survivor_id
        # Both first values, and every write that was acknowledged.
        assert Revision.objects.filter(field__topic=kept).count() == 2 + written.count(200)
    whole()


def test_undo_and_merge_and_looking_at_once_end_in_one_of_the_two(http_cast: Cast):
    one, two, _last = three(http_cast.agent)
    pair = pair_make(one, two)
    for _round in range(4):
        at_once(
            [
                lambda: tried(pair.pk),
                lambda: tried(pair.pk, pair_undo),
                lambda: duplicates_find(None, now=timezone.now()),
            ]
        )
        pair.refresh_from_db()
        gone = Topic.objects.filter(pk__in=(one, two)).exclude(merged_into=None).count()
        assert gone == (1 if pair.state == "merged" else 0)
    whole()


def test_writers_and_duplicate_searches_do_not_deadlock(http_cast: Cast):
    agent = http_cast.agent
    ids = [agent.remember(f"The harbor {place // 2}") for place in range(20)]

    def write(seed: int) -> set[int]:
        dice, statuses = random.Random(seed), set()
        for turn in range(6):
            items = [
                {"placement": "extend_topic", "topic_id": topic, "fields": [{"name": "depth", "value": f"{turn} m"}]}
                for topic in dice.sample(ids, 8)
            ]
            statuses.add(agent.post("/v1/ingest/batch", items).status)
        return statuses

    def search() -> int:
        return sum(duplicates_find(scope, now=timezone.now()) for scope in (None, "/", None, "/"))

    results = at_once([lambda: write(1), lambda: write(2), lambda: write(3), search, search])
    assert results[:3] == [{200}] * 3
    while duplicates_find(None, now=timezone.now()):
        pass
    assert DuplicatePair.objects.filter(state="open").count() == 10


def test_a_killed_merge_is_complete_or_has_no_effect(http_cast: Cast):
    agent = http_cast.agent
    ids = [three(agent)[:2] for _pair in range(12)]
    pairs = [str(pair_make(one, two).pk) for one, two in ids]
    environment = {**os.environ, "MEMSTATE_EMBEDDER": "instant", "DJANGO_SETTINGS_MODULE": "memstate_site.settings"}
    # In the first merge, and in a later one.
    for statement in (9, 70):
        left = [pair for pair in pairs if DuplicatePair.objects.get(pk=uuid.UUID(pair)).state == "open"]
        command = [sys.executable, "-c", MERGER, str(connection.settings_dict["NAME"]), str(statement), *left]
        done = subprocess.run(command, cwd=CHECKOUT, env=environment, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL
        whole()
    for pair_id in pairs:
        tried(uuid.UUID(pair_id))
    assert DuplicatePair.objects.filter(state="merged").count() == 12
    whole()
