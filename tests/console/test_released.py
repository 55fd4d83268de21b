"""Released topics: who released each and why, filters, sorts that visit every row once, restore, and files that equal
the list."""

import csv
import io
import json
import re
import uuid
from typing import Any

import pytest
from django.test import Client

from memory.console.queries.released_list import ReleasedFilter, released_count, released_list
from memory.forgetting.manual_actions import topics_release
from memory.models import DuplicatePair, Topic
from tests.cast import Caller, Clock, principal_like
from tests.console.people import body_of
from tests.console.test_duplicates import PILLS, pair_make
from tests.forgetting.shop import policy_put, run, topics_make


def shown(client: Client, **filters: Any) -> list[str]:
    reply = client.get("/released/", filters)
    assert reply.status_code == 200
    return re.findall(r'<td class="title"><a href="/topics/[^"]+" data-open>(.*?)</a>', body_of(reply))


def release(op: Client, operator: Caller, title: str, reason: str = "", **more: Any) -> str:
    topic_id = operator.remember(title, **more)
    assert op.post(f"/topics/{topic_id}/release/", {"reason": reason}).status_code == 302
    return topic_id


def test_the_empty_page_says_what_comes_here(looker: Client) -> None:
    assert shown(looker) == []
    assert "Nothing is released." in body_of(looker.get("/released/"))
    assert "No released memory matches" in body_of(looker.get("/released/", {"text": "x"}))


def test_each_row_says_who_released_it_and_why(op: Client, looker: Client, operator: Caller) -> None:
    release(op, operator, "The bakery", "it closed in May")
    rule = {
        "name": "no crowds",
        "condition": {"field": "title", "op": "contains", "value": "crowd"},
        "action": "release",
    }
    policy_put(operator, rules=[rule], topic_count_soft_limit=0, max_archive_share=1, strategy="static")
    operator.remember("A crowd")
    assert run(operator, dry_run=False)["applied"]

    assert shown(looker) == ["A crowd", "The bakery"]
    page = body_of(looker.get("/released/"))
    assert "By admin" not in page
    assert re.search(r"By [^:<]*operator[^:<]*: it closed in May", page)
    assert "By rule “no crowds”." in page
    assert 'policies/version/?scope=%2F&amp;number=1"' in page
    assert page.count('href="/runs/') >= 2


def test_a_topic_that_a_newer_one_replaced_names_that(op: Client, looker: Client, operator: Caller) -> None:
    pair: DuplicatePair = pair_make(operator, PILLS, PILLS)
    op.post(f"/duplicates/{pair.pk}/supersede/", {"reason": "a new dose"})
    older = Topic.objects.get(released_at__isnull=False)
    newer = pair.other_id if older.pk == pair.one_id else pair.one_id
    page = body_of(looker.get("/released/"))
    assert f'/topics/{older.pk}/" data-open' in page
    assert f'Superseded by <a href="/topics/{newer}/">' in page
    assert "a new dose" in page


def test_only_what_is_released_is_listed(op: Client, looker: Client, operator: Caller) -> None:
    operator.remember("live")
    back = release(op, operator, "restored")
    release(op, operator, "released")
    merged = release(op, operator, "merged away")
    Topic.objects.filter(pk=merged).update(merged_into_id=back)
    op.post(f"/topics/{back}/restore/", {})
    assert shown(looker) == ["released"]


def test_filters_leave_out_what_they_do_not_ask_for(op: Client, looker: Client, operator: Caller) -> None:
    release(op, operator, "The harbor", topic_kind="finding", scope="/team/red")
    release(op, operator, "100% wool_", scope="/team/reds")

    assert shown(looker, scope="/team/red") == ["The harbor"]
    assert shown(looker, scope="/team") == ["100% wool_", "The harbor"]
    assert shown(looker, kind="finding") == ["The harbor"]
    assert shown(looker, text="ARBO") == ["The harbor"]
    assert shown(looker, text="0% w") == ["100% wool_"]
    assert shown(looker, text="har_or") == []
    assert "1 memory" in body_of(looker.get("/released/count/", {"kind": "finding"}))


@pytest.mark.parametrize("sort", ["released", "-released", "title", "-title"])
def test_pages_visit_every_row_once_in_each_sort(operator: Caller, clock: Clock, sort: Any) -> None:
    principal = principal_like("operator")
    for topic_id in map(uuid.UUID, topics_make(operator, 9)[::-1]):
        clock.forward(minutes=1)
        topics_release([topic_id], principal=principal, reason="", now=clock.now)
    # The same moment for several, and the same title again.
    same = [uuid.UUID(operator.remember("topic 3")) for _ in range(3)]
    topics_release(same, principal=principal, reason="", now=clock.now)

    wanted = ReleasedFilter(sort=sort)
    whole, end = released_list(wanted, principal=principal, cursor=None, limit=100)
    assert (len(whole), end, released_count(wanted, principal=principal, at_most=100)) == (12, None, 12)
    rows: list[Any] = []
    cursor = None
    while True:
        page, cursor = released_list(wanted, principal=principal, cursor=cursor, limit=2)
        rows += page
        if cursor is None:
            break
    assert rows == whole
    keys = [row.title if sort.endswith("title") else row.released_at for row in rows]
    assert keys == sorted(keys, reverse=sort in ("released", "-title"))


def test_headers_sort_and_say_the_direction(op: Client, looker: Client, operator: Caller) -> None:
    for title in ("b", "a"):
        release(op, operator, title)
    page = body_of(looker.get("/released/", {"scope": "/"}))
    assert 'aria-sort="descending"><a href="?scope=%2F&amp;sort=-released">Released</a>' in page
    assert '<a href="?scope=%2F&amp;sort=title">Memory</a>' in page
    page = body_of(looker.get("/released/", {"sort": "title"}))
    assert 'aria-sort="ascending"><a href="?sort=-title">Memory</a>' in page
    assert shown(looker, sort="title") == ["a", "b"]
    assert shown(looker, sort="-title") == ["b", "a"]


def test_all_that_match_are_restored(op: Client, looker: Client, operator: Caller) -> None:
    for number in range(3):
        release(op, operator, f"topic {number}", scope="/team")
    release(op, operator, "elsewhere", scope="/other")
    plan = op.post("/bulk/restore/", {"all": "released", "scope": "/team"}).headers["Location"]
    assert "It would restore 3." in body_of(op.get(plan))
    op.post(f"{plan}apply/")
    assert shown(looker) == ["elsewhere"]


def test_files_hold_exactly_what_the_filter_finds(op: Client, looker: Client, operator: Caller) -> None:
    release(op, operator, "The harbor", "silted up", scope="/team")
    release(op, operator, "elsewhere")
    lines = body_of(looker.get("/released/export.jsonl", {"scope": "/team"})).splitlines()
    (row,) = map(json.loads, lines)
    assert (row["title"], row["reason"], row["because"]) == ("The harbor", "silted up", "hand")
    table = csv.DictReader(io.StringIO(body_of(looker.get("/released/export.csv")).lstrip("\ufeff")))
    assert {each["title"] for each in table} == {"The harbor", "elsewhere"}


def test_a_reader_sees_everything_and_is_offered_nothing(op: Client, looker: Client, operator: Caller) -> None:
    release(op, operator, "The bakery")
    page = body_of(looker.get("/released/"))
    assert "The bakery" in page
    assert "data-pick" not in page
    assert ">Restore<" not in page
    assert looker.get("/released/?cursor=abc").status_code == 400
