"""Forgetting on command touches exactly what it listed, once, and a release is taken back byte for byte."""

import itertools
import json
import re
from typing import Any

import pytest
from django.db import connections, transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.models import ErasureReceipt, Field, ForgetListing, ForgetRun, Topic
from tests.cast import Caller, Cast, worker_turn
from tests.concurrency.test_writers import at_once
from tests.console.people import statements_reported
from tests.forgetting.shop import JOURNALS, dump
from tests.generated import examples
from tests.waits import turns_until_done


def mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w@-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


NAMES = ["Ann", "Anna", "Anna Berg", "Ann-Kathrin", "Ben", "Мария", "王伟", "@ann"]
THINGS = ["a@x.io", "a.smith@x.io", "+49 170 1234567", "INV-100", "INV-100-2"]
SAID = ["plays the oboe", "lives in Oslo", "lives in Oslo and works at Acme", "does not eat fish", "wrote to"]

facts = st.builds(
    lambda name, said, thing: f"{name} {said} {thing}".strip() + ".",
    st.sampled_from(NAMES),
    st.sampled_from(SAID),
    st.sampled_from(["", *THINGS]),
)
items = st.fixed_dictionaries(
    {"title": facts}, optional={"summary": facts, "fields": facts.map(lambda said: [{"name": "fact", "value": said}])}
)
requests = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from(NAMES).map(lambda name: f"everything about {name}"),
    st.sampled_from(THINGS),
    facts,
    st.sampled_from(["where Ann lives", "Ben's job", "what Anna plays"]),
)
# What a command writes down about itself.
KEPT = (*JOURNALS, "memory_forgetlisting", "memory_erasurereceipt", "memory_idempotencyrecord", "memory_wakeup")


def stored(operator: Caller, made: list[dict[str, Any]]) -> list[str]:
    """Store topics and return their ids."""
    results = operator.post("/v1/ingest/batch", [{"placement": "new_topic", **item} for item in made]).ok()["results"]
    turns_until_done(worker_turn)
    return [result["topic_id"] for result in results]


def rows_of(rows: dict[str, list[str]], ids: set[str]) -> dict[str, list[str]]:
    """Return the rows that tell of topics other than ``ids``."""
    return {table: [row for row in found if not any(it in row for it in ids)] for table, found in rows.items()}


def forget(operator: Caller, verb: str, **more: Any) -> Any:
    return operator.post("/v1/forget", {"verb": verb, **more}).ok()


@examples(25)
@given(made=st.lists(items, min_size=1, max_size=6), query=requests)
def test_a_release_touches_exactly_its_list_and_undo_is_identity(
    operator: Caller, made: list[dict[str, Any]], query: str
) -> None:
    with transaction.atomic():
        stored(operator, made)
        before = dump(*KEPT)
        listed = forget(operator, "release", query=query)
        assert dump(*KEPT) == before
        if listed["token"] is not None:
            done = forget(operator, "release", token=listed["token"])
            gone = {match["topic_id"] for match in listed["matches"]}
            released = {str(it) for it in Topic.objects.exclude(released_at=None).values_list("pk", flat=True)}
            assert released == gone
            assert done["count"] == len(gone)
            kept = {match["topic_id"]: match["keeps"] for match in listed["matches"] if match["keeps"]}
            rests = {str(it) for it in Topic.objects.values_list("pk", flat=True)} - ids_of(before)
            assert len(rests) == len(kept)
            rests |= fields_of(rests)
            gone |= fields_of(gone)
            without = ("memory_lexeme", "memory_corpustotals", *KEPT)
            others = rows_of({table: rows for table, rows in before.items() if table not in without}, gone)
            assert rows_of(dump(*without), gone | rests) == others
            undone = operator.post(f"/v1/runs/{done['run_id']}/undo", {}).ok()
            assert undone["conflicts"] == []
            turns_until_done(worker_turn)
            if not rests:
                assert dump(*KEPT) == before
            else:
                assert rows_of(dump(*without), rests) == {t: r for t, r in before.items() if t not in without}
        transaction.set_rollback(True)


@examples(25)
@given(made=st.lists(items, min_size=1, max_size=6), query=requests)
def test_a_purge_leaves_all_other_topics_as_they_were(operator: Caller, made: list[dict[str, Any]], query: str) -> None:
    with transaction.atomic():
        ids = set(stored(operator, made))
        before = dump(*KEPT)
        listed = forget(operator, "purge", query=query)
        if listed["token"] is not None:
            gone = {match["topic_id"] for match in listed["matches"]}
            fields = fields_of(gone)
            forget(operator, "purge", token=listed["token"])
            left = {str(it) for it in Topic.objects.values_list("pk", flat=True)}
            assert left & ids == ids - gone
            rests = left - ids
            rests |= fields_of(rests)
            gone |= fields
            without = ("memory_lexeme", "memory_corpustotals", *KEPT)
            others = rows_of({table: rows for table, rows in before.items() if table not in without}, gone)
            assert rows_of(dump(*without), rests) == others
            assert not any(it in row for it in gone for rows in dump(*KEPT).values() for row in rows)
        transaction.set_rollback(True)


@examples(40)
@given(made=st.lists(items, min_size=1, max_size=8), name=st.sampled_from(NAMES))
def test_all_that_is_listed_for_a_name_mentions_it(operator: Caller, made: list[dict[str, Any]], name: str) -> None:
    with transaction.atomic():
        ids = stored(operator, made)
        listed = forget(operator, "release", query=f"everything about {name}")
        texts = {
            it: [item["title"], item.get("summary", ""), *(each["value"] for each in item.get("fields", []))]
            for it, item in zip(ids, made, strict=True)
        }
        mentioning = {it for it, said in texts.items() if any(mentions(text, name) for text in said)}
        taken = {match["topic_id"] for match in listed["matches"]}
        assert taken <= mentioning
        # A tag is left out where others write the name as a name, and a handle asked for is not a first name.
        plain = (
            set()
            if name.startswith("@")
            else {it for it in mentioning if any(mentions(text.replace("@ann", ""), name) for text in texts[it])}
        )
        assert plain <= taken
        transaction.set_rollback(True)


def fields_of(ids: set[str]) -> set[str]:
    return {str(it) for it in Field.objects.filter(topic_id__in=ids).values_list("pk", flat=True)}


def ids_of(rows: dict[str, list[str]]) -> set[str]:
    return {json.loads(row)["id"] for row in rows["memory_topic"]}


@pytest.mark.parametrize("verb", ["release", "purge"])
@pytest.mark.parametrize("change", ["extend", "version", "edit", "archive", "release", "purge", "merge"])
def test_what_changed_in_between_is_found_and_nothing_is_done(operator: Caller, verb: str, change: str) -> None:
    first, second, other = stored(
        operator,
        [
            {"title": "Anna Berg plays the oboe.", "fields": [{"name": "since", "value": "school"}]},
            {"title": "Anna Berg sings."},
            {"title": "Ben sings."},
        ],
    )
    listed = forget(operator, verb, query="everything about Anna Berg")
    assert {match["topic_id"] for match in listed["matches"]} == {first, second}
    value = {"name": "since", "value": "spring"}
    if change in ("extend", "version"):
        placement = "extend_topic" if change == "extend" else "version_field"
        operator.ingest(placement, topic_id=first, fields=[value | ({"name": "with"} if change == "extend" else {})])
    elif change == "edit":
        operator.patch(f"/v1/topics/{first}", {"summary": "Since school."}).ok()
    elif change == "archive":
        operator.post(f"/v1/topics/{first}/archive", {"reason": "old"}).ok()
    elif change == "merge":
        Topic.objects.filter(pk=first).update(merged_into_id=other)
    else:
        forget(operator, change, filter={"ids": [first]}, dry_run=False)
    before = dump("memory_workerheartbeat")

    refused = operator.post("/v1/forget", {"verb": verb, "token": listed["token"]})

    assert (refused.status, refused.code) == (409, "changed-meanwhile")
    assert first in refused.detail
    assert dump("memory_workerheartbeat") == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["release", "purge"])
def test_of_two_who_execute_one_token_at_once_one_does(http_cast: Cast, verb: str) -> None:
    operator = http_cast.operator
    for number in range(5):
        operator.remember(f"Anna Berg plays piece {number}.")
    listed = forget(operator, verb, query="everything about Anna Berg")
    assert listed["count"] == 5

    body = {"verb": verb, "token": listed["token"]}
    answers = at_once([lambda: operator.post("/v1/forget", body) for _ in range(4)])

    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert all(answer.code == "conflict" for answer in answers if answer.status == 409)
    assert ForgetRun.objects.count() == (verb == "release")
    assert ErasureReceipt.objects.count() == (verb == "purge")
    assert Topic.objects.exclude(released_at=None).count() == (5 if verb == "release" else 0)
    assert ForgetListing.objects.exclude(executed_at=None).count() == 1
    connections.close_all()


# What the planner's statistics hold depends on when they were made, and not on how many topics there are.
_OF_STATISTICS = re.compile(r"ANALYZE|pg_stats|pg_clear_attribute_stats")


def spent(operator: Caller, number: int) -> dict[str, int]:
    """Return how many statements each step of forgetting costs in a store of which ``number`` topics match."""
    made = [
        {
            "title": f"Anna Berg keeps note {at} and reads book {at}.",
            "fields": [{"name": "mail", "value": f"a@x.io, copy {at}"}],
        }
        for at in range(number)
    ]
    spends: dict[str, int] = {}
    with transaction.atomic():
        stored(operator, made)
        ways: dict[str, dict[str, Any]] = {
            "by name": {"query": "everything about Anna Berg"},
            "by identifier": {"query": "a@x.io"},
            "by filter": {"filter": {"older_than": "0d"}},
            "all by meaning": {"query": "all notes that Anna Berg keeps"},
            "a fact": {"query": "Anna Berg keeps note 3"},
        }
        for (way, asked), verb in itertools.product(ways.items(), ("release", "purge")):
            with transaction.atomic():
                with statements_reported() as got:
                    listed = forget(operator, verb, **asked)
                spends[f"list, {verb}, {way}"] = len(got)
                assert way in ("a fact", "all by meaning") or listed["count"] == number, (way, listed["count"])
                if listed["token"] is not None:
                    with statements_reported() as got:
                        forget(operator, verb, token=listed["token"])
                    spends[f"execute, {verb}, {way}"] = sum(not _OF_STATISTICS.search(sql) for sql in got.sql)
                transaction.set_rollback(True)
        with transaction.atomic():
            body = {"old_query": "Anna Berg keeps note 3", "new_text": "Anna Berg lost note 3."}
            with statements_reported() as got:
                operator.post("/v1/supersede", body)
            spends["supersede"] = len(got)
            transaction.set_rollback(True)
        transaction.set_rollback(True)
    return spends


@pytest.mark.django_db
def test_no_step_asks_more_of_a_larger_store(operator: Caller) -> None:
    spent(operator, 4)
    few, many = spent(operator, 10), spent(operator, 200)

    print("\n".join(f"{step:32} {few.get(step)} {many.get(step)}" for step in {**few, **many}))
    assert "execute, purge, by name" in many
    assert "execute, release, a fact" in many
    assert {step: many[step] for step in many if many[step] > few.get(step, 0)} == {}


@pytest.mark.parametrize("change", ["pin", "ask", "another"])
def test_what_does_not_change_why_a_topic_was_listed_leaves_the_list_good(operator: Caller, change: str) -> None:
    (topic,) = stored(operator, [{"title": "Anna Berg plays the oboe."}])
    listed = forget(operator, "release", query="everything about Anna Berg")
    if change == "pin":
        operator.post(f"/v1/topics/{topic}/pin").ok()
    elif change == "ask":
        operator.query("Anna Berg")
        worker_turn()
    else:
        operator.remember("Anna Berg sings.")

    assert forget(operator, "release", token=listed["token"])["count"] == 1
    assert [str(it) for it in Topic.objects.exclude(released_at=None).values_list("pk", flat=True)] == [topic]
