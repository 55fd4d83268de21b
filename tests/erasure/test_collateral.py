"""Requests among many facts about many people take exactly what they mean: every other row is what it was."""

import hashlib
from typing import Any

import pytest
from django.db import connection

from memory.models import Topic
from memory.models.labels import label_sql
from tests.cast import Caller

GIVEN = "Anna Bruno Carla Dario Elena Felix Greta Hugo Ines Jonas Karin Lukas Marta Nils Olga".split()  # noqa: SIM905
GIVEN += "Pavel Rosa Stefan Tilda Viktor Wanda Xaver Yusuf Zora Quentin".split()  # noqa: SIM905
FAMILY = "Berg Holm Lopez Novak Roe Silva Weber Moreau Olsen Rossi Kowal Ito Meyer Dahl Santos".split()  # noqa: SIM905
FAMILY += "Kumar Lind Hartmann Keller Falk".split()  # noqa: SIM905
CITIES = "Oslo Lugo Kiel Bergen Porto Graz Lyon Gdansk Turku Leeds".split()  # noqa: SIM905
FIRMS = "Telenor Lumen Harbor Orchard Pier Kestrel Northwind Tessera".split()  # noqa: SIM905
DAYS = "Monday Tuesday Wednesday Thursday Friday".split()  # noqa: SIM905
# What is said of everybody, how it is asked for, and what replaces it.
FACTS = (
    ("{n} lives in {city}.", "where {n} lives", "{n} lives in Rome."),
    ("{n} works at {firm}.", "{n}'s employer", "{n} works at Acme."),
    ("{n}'s phone number is 0171 55{i:05d}.", "{n}'s phone number", "{n}'s phone number is 0999 123456."),
    ("{n} is allergic to nuts.", "{n}'s allergy", "{n} is not allergic to nuts any more."),
    ("{n} plays the oboe on {day}s.", "which instrument {n} plays", "{n} plays the harp now."),
    ("{n} drives a red van.", "what {n} drives", "{n} drives a blue car."),
    ("{n}'s birthday is on {d} May.", "{n}'s birthday", "{n}'s birthday is on 30 June."),
    ("{n} has a dog called Rex.", "{n}'s dog", "{n}'s dog is called Max."),
    ("{n} studied law in {city}.", "what {n} studied", "{n} studied physics."),
    ("{n} goes climbing on {day}s.", "when {n} goes climbing", "{n} goes climbing on Sundays."),
    ("{n} can be reached at p{i}@mail.example.", "p{i}@mail.example", "{n} can be reached at q{i}@post.example."),
    ("{n}'s badge is BDG-{i}.", "BDG {i}", "{n}'s badge is BDG-9{i}."),
    ("{n} speaks Portuguese.", "which language {n} speaks", "{n} speaks Welsh."),
    ("{n} is afraid of heights.", "what {n} is afraid of", "{n} is afraid of spiders."),
    ("{n} sits at desk {i}.", "{n}'s desk", "{n} sits at desk 9{i}."),
    ("{n} is married to Kim.", "who {n} is married to", "{n} is married to Robin."),
    ("{n} wears shoe size 4{d}.", "{n}'s shoe size", "{n} wears shoe size 39."),
    ("{n} drinks green tea.", "what {n} drinks", "{n} drinks black coffee."),
    ("{n} collects old maps.", "what {n} collects", "{n} collects stamps."),
    ("{n} grew up on a farm.", "where {n} grew up", "{n} grew up in a lighthouse."),
)


def words(number: int, text: str) -> str:
    name = f"{GIVEN[number % 25]} {FAMILY[number // 25]}"
    return text.format(
        n=name, i=number, d=1 + number % 9, city=CITIES[number % 10], firm=FIRMS[number % 8], day=DAYS[number % 5]
    )


def checksums() -> dict[str, str]:
    """Return the checksum of what each topic that is neither released nor merged says, by its label."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {label_sql()}, "
            "t.id::text || t.summary || t.rung || string_agg(r.value || r.seq, '|' ORDER BY r.id) "
            "FROM memory_topic t JOIN memory_field f ON f.topic_id = t.id JOIN memory_revision r ON r.field_id = f.id "
            "WHERE t.released_at IS NULL AND t.merged_into_id IS NULL GROUP BY t.id"
        )
        return {title: hashlib.md5(text.encode()).hexdigest() for title, text in cursor.fetchall()}


def fill(operator: Caller, people: int) -> None:
    items = [
        {"placement": "new_topic", "title": text, "fields": [{"name": "fact", "value": text}]}
        for number in range(people)
        for text in (words(number, said) for said, _asked, _new in FACTS)
    ]
    for begin in range(0, len(items), 500):
        assert operator.post("/v1/ingest/batch", items[begin : begin + 500]).ok()["refused"] == 0
    # The planner must know of the rows, or each request takes seconds.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def play(operator: Caller, people: int, requests: int) -> tuple[int, list[str]]:
    """Send requests of all kinds and return how many took something else than was meant, and how many took nothing."""
    wrong: list[str] = []
    nothing = 0
    now = checksums()
    for turn in range(requests):
        number, at = (turn * 7) % people, (turn * 3) % len(FACTS)
        said, asked, new = (words(number, text) for text in FACTS[at])
        expected = dict(now)
        if turn % 10 == 0:
            asked = words(number, "everything about {n}")
            gone = {title for title in now if title.startswith(words(number, "{n}"))}
        else:
            gone = {said} & now.keys()
        if turn % 3 == 1 and turn % 10 and gone:
            reply: Any = operator.post("/v1/supersede", {"old_query": asked, "new_text": new})
            gone = gone | {new}
        else:
            reply = operator.post("/v1/forget", {"verb": "release", "query": asked, "dry_run": False})
        after = checksums()
        changed = {title for title in expected.keys() | after.keys() if expected.get(title) != after.get(title)}
        nothing += bool(gone) and not changed
        if changed - gone or (changed and gone - changed - {new}):
            wrong.append(f"{asked!r} ({reply.status}): {sorted(changed ^ gone)[:3]}")
        now = after
    return nothing, wrong


@pytest.mark.meaning
def test_requests_take_nothing_that_was_not_meant(operator: Caller, settings: Any) -> None:
    fill(operator, 12)
    nothing, wrong = play(operator, 12, 40)
    assert wrong == []
    assert nothing <= 2


@pytest.mark.bench
@pytest.mark.meaning
def test_requests_among_ten_thousand_facts(operator: Caller, settings: Any) -> None:
    fill(operator, 500)
    assert Topic.objects.count() == 10_000
    nothing, wrong = play(operator, 500, 300)
    print(f"\n300 requests among 10,000 facts: {len(wrong)} took something else, {nothing} took nothing.")
    print("\n".join(wrong))
    assert len(wrong) <= 6
