"""Folding the access log in bulk equals raising each salience one access after the other."""

import dataclasses
import datetime as dt
import math
import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from memory.core.repeats import repeats_dropped
from memory.formulas.partition_time import EVERY_DAY, PartitionTime
from memory.formulas.salience import (
    FADE_FLOOR_LAG,
    LEAST_SALIENCE,
    SECONDS_PER_DAY,
    Reinforcement,
    fade_key,
    reinforcement_share,
    salience_reinforced,
)
from memory.models import AccessLog, Field, PartitionActivity, Scope, Topic, TopicVector, Vitality, WakeUp
from memory.policy.effective import knobs_effective
from memory.recall import access_fold as fold
from memory.recall.access_fold import accesses_fold
from tests.generated import examples

pytestmark = pytest.mark.django_db

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
THINGS = [uuid.UUID(int=number) for number in range(1, 5)]


@dataclasses.dataclass
class Thing:
    """A topic or a field, as the replay in Python keeps it."""

    salience: float
    reinforced_at: float
    half_life: float
    wall: bool = True
    retrievals: int = 0
    last: float | None = None


@dataclasses.dataclass(frozen=True)
class Access:
    """One row of the log: ``hits`` are the places of what was returned, ``relevances`` of as many of them or fewer."""

    at: float
    actor: str
    question: str
    hits: tuple[int, ...]
    bump: float
    relevances: tuple[float | None, ...] = ()
    min_relevance: float = 0.0

    def share(self, place: int) -> float:
        """The share of the bump that the thing at ``place`` gets."""
        known = dict(zip(self.hits, self.relevances, strict=False)).get(place)
        relevance = math.nan if known is None else known
        return float(reinforcement_share(relevance, min_relevance=self.min_relevance))


half_lives = st.sampled_from([120.0, 3600.0, 86_400.0 * 30])
things = st.builds(
    Thing,
    salience=st.one_of(st.sampled_from([0.0, 1.0, 9.95, 10.0, 12.0, 1e-21, 5e-324]), st.floats(0, 10)),
    # Some were reinforced after the accesses: those were logged late.
    reinforced_at=st.integers(-200_000, 2_000).map(lambda seconds: START.timestamp() + seconds),
    half_life=half_lives,
    wall=st.booleans(),
)
# Idle days around the accesses, as if they had been noted elsewhere.
times = st.sets(st.integers(-4, 6), max_size=6).map(
    lambda days: PartitionTime(
        START.timestamp() + 10 * SECONDS_PER_DAY,
        tuple(START.timestamp() + day * SECONDS_PER_DAY for day in sorted(days)[: len(days) // 2 * 2]),
    )
)
accesses = st.builds(
    Access,
    at=st.one_of(st.integers(0, 600), st.integers(0, 600_000_000).map(lambda n: n / 1e6), st.integers(0, 400_000)).map(
        lambda seconds: START.timestamp() + seconds
    ),
    actor=st.sampled_from(["key:a", "key:b"]),
    question=st.sampled_from(["x", "y"]),
    hits=st.lists(st.integers(0, len(THINGS) - 1), unique=True, min_size=1, max_size=len(THINGS)).map(tuple),
    bump=st.sampled_from([0.1, 0.0, 1.0, 4.0, 1e-30, 10.0]),
    relevances=st.lists(
        st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0]), st.floats(0, 1)), max_size=len(THINGS)
    ).map(tuple),
    min_relevance=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
).map(lambda access: dataclasses.replace(access, relevances=access.relevances[: len(access.hits)]))
histories = st.lists(st.lists(accesses, max_size=8), min_size=1, max_size=4)


def moment(epoch: float) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=round(epoch * 1e6))


def store_topics_and_fields(rows: list[Thing], time: PartitionTime = EVERY_DAY) -> None:
    """One topic with one field for each thing; both begin alike."""
    scope, _made = Scope.objects.get_or_create(path="/")
    if time is not EVERY_DAY:
        PartitionActivity.objects.create(scope="/", active_until=time.active_until, idle_spans=list(time.idle_spans))
    topics, vitalities, fields = [], [], []
    for key, thing in zip(THINGS, rows, strict=True):
        at = moment(thing.reinforced_at)
        clock = dataclasses.replace(time, wall=thing.wall)
        fade = fade_key(thing.salience, reinforced_at=clock.counted(at.timestamp()), half_life=thing.half_life)
        shared: dict[str, Any] = {
            "salience": thing.salience,
            "reinforced_at": at,
            "idle_before": float(time.idle(at.timestamp())),
            "wall": thing.wall,
            "half_life": thing.half_life,
            "fade": fade,
            "fade_floor": fade,
        }
        topics.append(Topic(id=key, scope=scope, title="thing", created_at=START, updated_at=START))
        vitalities.append(Vitality(topic_id=key, scope=scope, created_at=shared["reinforced_at"], **shared))
        fields.append(Field(id=key, topic_id=key, name="value", created_at=START, last_seq=1, **shared))
    Topic.objects.bulk_create(topics)
    Vitality.objects.bulk_create(vitalities)
    Field.objects.bulk_create(fields)


def log(*accesses: Access) -> None:
    AccessLog.objects.bulk_create(
        AccessLog(
            at=moment(access.at),
            kind="query",
            actor=access.actor,
            scope="/",
            query=access.question,
            query_hash=access.question,
            topic_ids=[THINGS[place] for place in access.hits],
            field_ids=[THINGS[place] for place in access.hits],
            bump=access.bump,
            field_bump=access.bump / 2,
            relevances=list(access.relevances),
            min_relevance=access.min_relevance,
        )
        for access in accesses
    )


def replayed(
    rows: list[Thing],
    batches: list[list[Access]],
    *,
    cap: float,
    window: float,
    share: float,
    time: PartitionTime = EVERY_DAY,
) -> list[Thing]:
    """What the accesses amount to, one after the other; ``share`` is the part of a bump that such things get."""
    rows = [dataclasses.replace(row) for row in rows]
    last: dict[tuple[str, str], float] = {}
    for batch in batches:
        numbered = [(number, (access.actor, access.question), access.at) for number, access in enumerate(batch)]
        counted = repeats_dropped(numbered, window=window, counted_before=last)
        for number in counted:
            asked = (batch[number].actor, batch[number].question)
            last[asked] = max(last.get(asked, -math.inf), batch[number].at)
        for place, row in enumerate(rows):
            mine = [
                batch[number] for number in counted if place in batch[number].hits and batch[number].share(place) > 0
            ]
            clock = dataclasses.replace(time, wall=row.wall)
            row.salience, _since = salience_reinforced(
                row.salience,
                reinforced_at=clock.counted(row.reinforced_at),
                half_life=row.half_life,
                cap=cap,
                reinforcements=[
                    Reinforcement(clock.counted(access.at), access.bump * access.share(place) * share)
                    for access in mine
                ],
            )
            row.reinforced_at = max([row.reinforced_at, *(access.at for access in mine)])
            row.retrievals += len(mine)
            if mine:
                row.last = max([access.at for access in mine] + ([row.last] if row.last is not None else []))
    return rows


def assert_stored(expected: list[Thing], model: Any, time: PartitionTime = EVERY_DAY) -> None:
    stored = {row.pk: row for row in model.objects.filter(pk__in=THINGS)}
    for key, thing in zip(THINGS, expected, strict=True):
        row = stored[key]
        # Each step may let what is below the least salience go, in either language at another point of the way.
        assert row.salience == pytest.approx(thing.salience, rel=1e-9, abs=100 * LEAST_SALIENCE)
        assert row.reinforced_at == moment(thing.reinforced_at)
        assert row.retrieval_count == thing.retrievals
        assert row.last_retrieved_at == (None if thing.last is None else moment(thing.last))
        used, clock = row.reinforced_at.timestamp(), dataclasses.replace(time, wall=thing.wall)
        assert row.idle_before == pytest.approx(float(time.idle(used)), abs=1e-5)
        fade = fade_key(row.salience, reinforced_at=clock.counted(used), half_life=row.half_life)
        assert row.fade == fade or row.fade == pytest.approx(fade, abs=1e-6 * row.half_life + 1e-3)
        assert row.fade_floor <= row.fade
        assert row.fade_floor == row.fade or row.fade - row.fade_floor <= FADE_FLOOR_LAG * row.half_life + 1e-3


def rows_now() -> list[Any]:
    with connection.cursor() as cursor:
        found = []
        for table in ("memory_vitality", "memory_field", "memory_accesslog", "memory_wakeup"):
            cursor.execute(f"SELECT t.*, t.xmin::text, t.ctid::text FROM {table} t ORDER BY 1")
            found.append(cursor.fetchall())
        return found


@pytest.fixture(params=[60.0, 0.0], ids=["repeats count once", "everything counts"])
def window(request: pytest.FixtureRequest, settings: Any) -> float:
    settings.MEMSTATE_KNOBS = {"reinforce_once_seconds": request.param}
    return float(request.param)


@examples(60)
@given(rows=st.lists(things, min_size=len(THINGS), max_size=len(THINGS)), batches=histories, time=times)
def test_any_split_into_batches_folds_to_what_a_replay_gives(
    window: float, rows: list[Thing], batches: list[list[Access]], time: PartitionTime
) -> None:
    cap = knobs_effective("/").field_salience_max
    with transaction.atomic():
        store_topics_and_fields(rows, time)
        for batch in batches:
            log(*batch)
            assert accesses_fold(now=START) == len(batch)
        assert_stored(replayed(rows, batches, cap=cap, window=window, share=1.0, time=time), Vitality, time)
        assert_stored(replayed(rows, batches, cap=cap, window=window, share=0.5, time=time), Field, time)
        assert not AccessLog.objects.filter(folded_at=None).exists()
        assert not AccessLog.objects.filter(counted=None).exists()
        # A second turn finds nothing to do and does nothing.
        before = rows_now()
        assert accesses_fold(now=START + dt.timedelta(days=1)) == 0
        assert rows_now() == before
        transaction.set_rollback(True)


@examples(15)
@given(
    rows=st.lists(things, min_size=len(THINGS), max_size=len(THINGS)),
    batch=st.lists(accesses, min_size=1, max_size=12),
    size=st.integers(1, 5),
)
def test_a_log_longer_than_a_turn_is_folded_in_turns(
    window: float, rows: list[Thing], batch: list[Access], size: int
) -> None:
    with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "ROWS_PER_FOLD", size)
        store_topics_and_fields(rows)
        log(*batch)
        turns = []
        while step := accesses_fold(now=START):
            turns.append(step)
        assert sum(turns) == len(batch)
        assert max(turns) <= size
        split = [batch[start : start + size] for start in range(0, len(batch), size)]
        cap = knobs_effective("/").field_salience_max
        assert_stored(replayed(rows, split, cap=cap, window=window, share=1.0), Vitality)
        transaction.set_rollback(True)


def test_a_hundred_accesses_at_the_cap_stay_at_the_cap() -> None:
    store_topics_and_fields([Thing(10.0, START.timestamp(), 3600.0)] * len(THINGS))
    log(*(Access(START.timestamp() + number, f"key:{number}", "x", (0,), 0.1) for number in range(100)))
    assert accesses_fold(now=START) == 100
    topic = Vitality.objects.get(pk=THINGS[0])
    assert topic.salience == 10.0
    assert topic.retrieval_count == 100
    assert topic.reinforced_at == START + dt.timedelta(seconds=99)


def test_what_an_operator_set_above_the_cap_is_not_cut_by_use() -> None:
    store_topics_and_fields([Thing(50.0, START.timestamp(), 86_400.0 * 30)] * len(THINGS))
    log(Access(START.timestamp(), "key:a", "x", (0,), 0.1))
    accesses_fold(now=START)
    assert Vitality.objects.get(pk=THINGS[0]).salience == 50.0


def test_a_question_every_thirty_seconds_counts_every_minute() -> None:
    store_topics_and_fields([Thing(0.0, START.timestamp(), 86_400.0 * 30)] * len(THINGS))
    for number in range(20):
        log(Access(START.timestamp() + 30 * number, "key:a", "x", (0,), 0.1))
        # Whether the accesses come to be folded one by one or together makes no difference.
        if number % 3 == 0:
            accesses_fold(now=START)
    accesses_fold(now=START)
    assert Vitality.objects.get(pk=THINGS[0]).retrieval_count == 10
    assert AccessLog.objects.filter(counted=True).count() == 10
    assert AccessLog.objects.filter(counted=False).count() == 10


def test_folding_takes_the_same_number_of_statements_for_any_number_of_accesses() -> None:
    store_topics_and_fields([Thing(1.0, START.timestamp(), 3600.0)] * len(THINGS))
    counts = []
    for size in (1, 200):
        log(
            *(Access(START.timestamp() + number, f"key:{size}:{number}", "x", (0, 1, 2), 0.1) for number in range(size))
        )
        with CaptureQueriesContext(connection) as queries:
            assert accesses_fold(now=START) == size
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_turn_wakes_the_scopes_whose_topics_were_returned_and_touches_no_vector() -> None:
    store_topics_and_fields([Thing(1.0, START.timestamp(), 3600.0)] * len(THINGS))
    scope = Scope.objects.get(path="/")
    TopicVector.objects.create(topic_id=THINGS[0], scope=scope, model="m", text_hash="h", embedding=[1.0] + [0.0] * 383)
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text, xmin::text FROM memory_topicvector")
        before = cursor.fetchall()
        log(Access(START.timestamp(), "key:a", "x", (0,), 0.1))
        accesses_fold(now=START)
        cursor.execute("SELECT ctid::text, xmin::text FROM memory_topicvector")
        assert cursor.fetchall() == before
    assert [(row.event, row.times) for row in WakeUp.objects.all()] == [("query_complete", 1)]


@examples(200)
@given(batches=histories, window=st.sampled_from([0.0, 30.0, 60.0]))
def test_a_repeat_in_a_later_turn_is_reported_from_the_last_access_that_counted(
    batches: list[list[Access]], window: float
) -> None:
    last: dict[tuple[str, str], float] = {}
    for batch in batches:
        numbered = [(number, (access.actor, access.question), access.at) for number, access in enumerate(batch)]
        counted = repeats_dropped(numbered, window=window, counted_before=last)
        if window == 0:
            assert sorted(counted) == list(range(len(batch)))
        for number, asked, at in sorted(numbered, key=lambda row: (row[2], row[0])):
            if number in counted:
                assert asked not in last or window == 0 or abs(at - last[asked]) >= window
                last[asked] = max(at, last.get(asked, at))
            else:
                assert abs(at - last[asked]) < window


def test_an_access_logged_just_after_a_later_one_is_a_repeat_of_it() -> None:
    store_topics_and_fields([Thing(0.0, START.timestamp(), 86_400.0 * 30)] * len(THINGS))
    for second in (100.5, 100.0):
        log(Access(START.timestamp() + second, "key:a", "x", (0,), 0.1))
        accesses_fold(now=START)
    assert Vitality.objects.get(pk=THINGS[0]).retrieval_count == 1
