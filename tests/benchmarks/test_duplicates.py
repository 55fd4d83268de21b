"""Duplicates: how many planted ones are found, that no look-alike is merged, and what looking for them costs."""

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from memory.embedding import embedder_reset
from memory.models import DuplicatePair
from memory.models.duplicates import DuplicateLook
from tests.benchmarks.report import table
from tests.benchmarks.synthetic import store_clear
from tests.cast import cast_make, in_process
from tests.duplicates.planted import SCOPE, outcome, plant, search_all
from tests.forgetting.shop import policy_put
from tests.vacuum import vacuum_analyze

pytestmark = [pytest.mark.bench, pytest.mark.django_db(transaction=True)]

SIZES = (2_000, 20_000)


def _clear() -> None:
    store_clear()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE memory_duplicatepair, memory_duplicatelook, memory_forgetrun CASCADE")


@pytest.mark.meaning
def test_planted_near_duplicates_are_found_and_no_look_alike_is_merged():
    _clear()
    operator = cast_make(in_process).operator
    policy_put(operator, SCOPE, duplicates_mode="auto")
    planted = plant(operator, facts=8_000, near=900, paraphrased=100, alike=1_000)
    started = time.perf_counter()
    looks = search_all()
    taken = time.perf_counter() - started
    got = outcome(planted)
    table(
        "10,000 topics, 1,000 planted near-duplicates, 1,000 look-alikes, mode auto",
        ("planted", "number", "offered", "merged"),
        [
            (
                "near-duplicates",
                900,
                f"{got.offered} ({got.offered / 9:.1f}%)",
                f"{got.merged} ({got.merged / 9:.1f}%)",
            ),
            ("paraphrases", 100, got.offered_paraphrased, got.merged_paraphrased),
            ("look-alikes", 1_000, got.alike_held, sum(1 for _pair in got.wrongly_merged)),
        ],
    )
    table(
        "All pairs stored",
        ("verdict", "state", "pairs"),
        [(verdict, state, times) for (verdict, state), times in sorted(got.verdicts.items())],
    )
    print(f"\n{looks} looks, {taken:.1f} s with the merges")
    for pair in got.wrongly_merged:
        print("wrongly merged:", *pair, sep="\n  ")
    assert got.wrongly_merged == []
    assert got.offered >= 0.95 * 900
    _clear()


@pytest.fixture
def _letters(settings: Any) -> Iterator[None]:
    settings.MEMSTATE_EMBEDDER = "tests.benchmarks.trigrams.TrigramEmbedder"
    embedder_reset()
    yield
    embedder_reset()


@pytest.mark.usefixtures("_letters")
def test_detection_grows_no_faster_than_n_log_n():
    rows = []
    operator = cast_make(in_process).operator
    for size in SIZES:
        _clear()
        plant(operator, facts=size - size // 5, near=size // 10, alike=size // 10)
        vacuum_analyze()
        started = time.perf_counter()
        looks = search_all()
        taken = time.perf_counter() - started
        assert not DuplicateLook.objects.filter(waiting=True).exists()
        rows.append((size, looks, DuplicatePair.objects.count(), taken, taken / (size * math.log2(size)) * 1e6))
    growth = rows[1][4] / rows[0][4]
    table(
        "Comparing everything, mode review",
        ("topics", "looks", "pairs", "seconds", "µs per n log2 n"),
        [(f"{row[0]:,}", *row[1:]) for row in rows],
    )
    print(f"\nper n log n, the larger costs {growth:.2f} times the smaller")
    # By a wide margin, so that a busy machine does not fail it: quadratic growth would be about 7.7.
    assert growth < 3
    _clear()
