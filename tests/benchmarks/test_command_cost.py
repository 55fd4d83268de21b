"""What finding facts costs as the store grows, beside a query of the same words in the same run.

Texts are made of names, places and things, so that at 10,000 topics a name has about thirty and an identifier one. The
stored vectors have no meaning; what is asked is embedded by the packaged model, as it is in use.
``MEMSTATE_COMMAND_TOPICS=1000,10000`` measures stores of other sizes.
"""

import os
import time
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction

from memory.embedding import embedder_get, embedder_reset
from tests.benchmarks.report import p50, p95, table
from tests.cast import Caller, Cast
from tests.console.people import statements_reported

SIZES = tuple(map(int, os.environ.get("MEMSTATE_COMMAND_TOPICS", "1000,100000").split(",")))
ROUNDS = 17
GIVEN = (
    "Anna Ben Carla David Elena Felix Greta Hugo Ines Jonas Karin Lukas Maria Nils Olga Pavel Rosa Stefan Tina Viktor"
)
FAMILY = "Berg Holm Lopez Novak Roe Silva Weber Moreau Olsen Rossi Kowal Ito Meyer Dahl Santos Kumar"
SAID = (
    "lives in {place}",
    "works at {thing} and takes the {number} bus",
    "is allergic to {thing}",
    "plays the {thing}",
    "has a {thing} in {place}",
    "does not like {thing}",
    "drives to {place} on day {number}",
    "owes {number} euros",
)
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
    given, family = GIVEN.split()[number % len(GIVEN.split())], FAMILY.split()[number % 16]
    return {
        "identifier": f"person.{(number * 37) % size}@x.io",
        "name": f"everything about {given} {family}",
        "fact about a name": f"where {given} {family} lives",
        "fact": f"who plays the {THINGS[number % 10]}",
    }[kind]


@pytest.mark.bench
@pytest.mark.django_db(transaction=True)
def test_what_a_command_costs(cast: Cast, settings: Any) -> None:
    rows = []
    for size in SIZES:
        settings.MEMSTATE_EMBEDDER = "instant"
        embedder_reset()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM memory_topic")
            stored = cursor.fetchone()[0]
        fill(cast.agent, size - stored)
        # Not the one of the tests, which remembers what it has embedded.
        settings.MEMSTATE_EMBEDDER = "memory.embedding.local.LocalEmbedder"
        embedder_reset()
        with connection.cursor() as cursor:
            # The vector index is built anew, which takes minutes.
            cursor.execute("SET statement_timeout = 0")
            cursor.execute("UPDATE memory_topicvector SET model = %s", [embedder_get().model_name])
            cursor.execute("RESET statement_timeout")
        for kind in ("identifier", "name", "fact about a name", "fact"):
            query = measured(cast.operator, "query", kind, size)
            for command in ("release", "supersede"):
                got = measured(cast.operator, command, kind, size)
                rows.append([f"{size:,}", command, kind, *got, query[0], got[0] / query[0]])
    table(
        "A dry run of release, and supersede, beside a query of the same words (ms)",
        ["topics", "command", "asked by", "p50", "p95", "SQL statements", "query p50", "times a query"],
        rows,
    )


def measured(operator: Caller, command: str, kind: str, size: int) -> list[Any]:
    times: list[float] = []
    for number in range(ROUNDS):
        words = asked(kind, number, size)
        given, family = GIVEN.split()[number % len(GIVEN.split())], FAMILY.split()[number % 16]
        path, body = {
            "query": ("/v1/query", {"q": words}),
            "release": ("/v1/forget", {"verb": "release", "query": words}),
            "supersede": ("/v1/supersede", {"old_query": words, "new_text": f"{given} {family} lives in Rome."}),
        }[command]
        with transaction.atomic(), statements_reported() as got:
            begun = time.perf_counter()
            answer = operator.post(path, body)
            times.append((time.perf_counter() - begun) * 1000)
            # Facts that are equally near are a question back, found at the same cost.
            assert answer.status in (200, 409), answer.body
            transaction.set_rollback(True)
    return [p50(times[1:]), p95(times[1:]), len(got)]
