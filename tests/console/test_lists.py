"""What all lists do alike: each order visits every row once, times are chosen, and rows are peeked at."""

import datetime as dt
import html
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.console.list_page import ListPage
from memory.console.pages.keys import KEYS
from memory.console.pages.people import PEOPLE
from memory.console.pages.recalls import RECALLS
from memory.console.pages.receipts import RECEIPTS
from memory.console.pages.runs import RUNS
from memory.core.cursors import cursor_make
from memory.forgetting.manual_actions import topics_archive, topics_release, topics_restore
from memory.forgetting.runs import run_start
from memory.models import AccessLog, ApiKey, ErasureReceipt, ForgetRun, newest_first
from tests.cast import Caller, Clock
from tests.console.people import account_make, body_of, codes_of
from tests.forgetting.shop import policy_put, topics_make

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true"}
AT = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
# With equal values, and with rows that have none.
NUMBERS = (5, None, 900, 5, None, 0, 31)


def recalls_make(agent: Caller) -> None:
    AccessLog.objects.bulk_create(
        AccessLog(
            at=AT + dt.timedelta(minutes=place // 2),
            actor="test",
            scope="/",
            query=f"question {place}",
            topic_ids=[],
            relevances=[] if number is None else [None, number / 1000, 0.0001],
            tokens=number,
            milliseconds=None if number is None else number + 0.1,
            bump=0,
            field_bump=0,
        )
        for place, number in enumerate(NUMBERS)
    )


def runs_make(agent: Caller) -> None:
    ForgetRun.objects.bulk_create(
        ForgetRun(
            id=uuid.uuid4(),
            scope="/",
            event="cron",
            status="done",
            actor="system",
            policy_version=0,
            judged_at=AT,
            created_at=AT + dt.timedelta(minutes=place // 2),
            planned=number or 0,
        )
        for place, number in enumerate(NUMBERS)
    )


def keys_make(agent: Caller) -> None:
    ApiKey.objects.bulk_create(
        ApiKey(
            id=uuid.uuid4(),
            name=f"key {number}",
            role="agent",
            scope="/",
            prefix="ms",
            secret_hash=f"{place:064}",
            created_at=AT + dt.timedelta(minutes=place // 2),
            last_used_at=None if number is None else AT + dt.timedelta(minutes=number),
            expires_at=None if number is None else timezone.now() + dt.timedelta(minutes=1 + number),
        )
        for place, number in enumerate(NUMBERS)
    )


def people_make(agent: Caller) -> None:
    for place, number in enumerate(NUMBERS):
        account = account_make("reader", name=f"person {place}")
        at = None if number is None else AT + dt.timedelta(minutes=number)
        User.objects.filter(pk=account.pk).update(last_login=at)


def receipts_make(agent: Caller) -> None:
    ErasureReceipt.objects.bulk_create(
        ErasureReceipt(id=uuid.uuid4(), number=1 + place, at=AT, actor="test", scope="/", topic_ids=[], hash=f"{place}")
        for place in range(7)
    )


def best(row: AccessLog) -> float | None:
    return max((each for each in row.relevances[: len(row.topic_ids)] if each is not None), default=None)


# For each list: what makes its rows, what they are, what says which row a line is about, and what an order sorts by.
LISTS: dict[str, tuple[ListPage[Any, Any], Callable[[Caller], None], Any, str, dict[str, Callable[[Any], Any]]]] = {
    "recalls": (
        RECALLS,
        recalls_make,
        lambda: AccessLog.objects.all(),
        r'href="/recalls/(\d+)/" id="recall-',
        {
            "time": lambda row: row.at,
            "relevance": best,
            "tokens": lambda row: row.tokens,
            "milliseconds": lambda row: row.milliseconds,
        },
    ),
    "runs": (
        RUNS,
        runs_make,
        lambda: ForgetRun.objects.all(),
        r'href="/runs/([\w-]{36})/" id="run-',
        {"time": lambda row: row.created_at, "memories": lambda row: row.planned},
    ),
    "keys": (
        KEYS,
        keys_make,
        lambda: ApiKey.objects.all(),
        r'href="/keys/([\w-]{36})/revoke/"',
        {
            "created": lambda row: row.created_at,
            "name": lambda row: row.name,
            "used": lambda row: row.last_used_at,
            "expires": lambda row: row.expires_at,
        },
    ),
    "people": (
        PEOPLE,
        people_make,
        lambda: User.objects.all(),
        r'href="/settings/people/(\d+)/"',
        {"name": lambda row: row.username, "sign_in": lambda row: row.last_login},
    ),
    "receipts": (
        RECEIPTS,
        receipts_make,
        lambda: ErasureReceipt.objects.all(),
        r'data-open href="/forget/receipts/([\w-]{36})/"',
        {"number": lambda row: row.number},
    ),
}
ORDERS = [(name, sort) for name, (page, *_rest) in LISTS.items() for sort in (page.sorts or {})]


def address_of(page: ListPage[Any, Any]) -> str:
    return f"/{page.address}"


def pages_read(client: Client, page: ListPage[Any, Any], **query: str) -> list[str]:
    """Return the text of each page of a list, from the first to the last."""
    found = [html.unescape(body_of(client.get(address_of(page), query)))]
    while following := re.search(r'rel="next" href="([^"]+)"', found[-1]):
        found.append(html.unescape(body_of(client.get(address_of(page) + following[1]))))
    return found


@pytest.mark.parametrize(("name", "sort"), ORDERS)
def test_each_order_visits_every_row_once(
    name: str, sort: str, administrator: Client, agent: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, make, rows, link, values = LISTS[name]
    monkeypatch.setattr(page, "limit", 3)
    make(agent)
    of_row = {str(row.pk): values[sort](row) for row in rows()}
    column = (page.sorts or {})[sort]

    for asked, descending in ((column.first, column.descending), (column.second, not column.descending)):
        pages = pages_read(administrator, page, sort=asked)
        seen = [each for text in pages for each in re.findall(link, text)]
        assert len(pages) > 2
        assert sorted(seen) == sorted(of_row)
        known = [of_row[each] for each in seen if of_row[each] is not None]
        assert known == sorted(known, reverse=descending)
        # Rows without a value come last, whatever the direction.
        assert [of_row[each] for each in seen[len(known) :]] == [None] * (len(seen) - len(known))
        assert f'aria-sort="{"descending" if descending else "ascending"}"' in pages[0]


@pytest.mark.parametrize(("page", "sort"), [(RECALLS, "tokens"), (RECALLS, "relevance"), (RUNS, "memories")])
def test_an_order_without_an_index_sorts_the_newest_rows_and_says_so(
    page: ListPage[Any, Any], sort: str, looker: Client, agent: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_first, "SORTED_AMONG", 3)
    recalls_make(agent)
    runs_make(agent)
    link = next(link for other, _make, _rows, link, _values in LISTS.values() if other is page)
    read = html.unescape(body_of(looker.get(address_of(page), {"sort": sort})))
    newest = html.unescape(body_of(looker.get(address_of(page))))
    assert set(re.findall(link, read)) == set(re.findall(link, newest)[:3])
    assert "Sorted among the newest" in read
    assert "Sorted among the newest" not in newest


@pytest.mark.parametrize(("name", "sort"), [(name, sort) for name, sort in ORDERS if name not in ("keys", "people")])
def test_an_order_of_a_long_list_reads_an_index(name: str, sort: str, looker: Client, agent: Caller) -> None:
    page, make, rows, _link, _values = LISTS[name]
    make(agent)
    table = rows().model._meta.db_table
    for asked in (sort, f"-{sort}"):
        with CaptureQueriesContext(connection) as got:
            looker.get(address_of(page), {"sort": asked})
        (sql,) = [each["sql"] for each in got if f'FROM "{table}"' in each["sql"] and each["sql"].endswith("LIMIT 51")]
        with connection.cursor() as cursor:
            for way in ("seqscan", "bitmapscan"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
            cursor.execute(f"EXPLAIN {sql}")
            steps = [line.strip(" ->") for (line,) in cursor.fetchall()]
        # The rows, or the newest rows which are then sorted, come in the order of an index.
        within = max(place for place, step in enumerate(steps) if step.startswith("Limit"))
        assert steps[within + 1].startswith(("Index Scan", "Index Only Scan", "Incremental Sort")), steps


def test_an_unknown_order_and_a_cursor_of_another_order_are_refused(looker: Client, agent: Caller) -> None:
    recalls_make(agent)
    assert "question 6" in body_of(looker.get("/recalls/", {"sort": "no such"}))
    cursor = cursor_make("a name", 1)
    for sort in ("time", "tokens", "relevance", "-milliseconds"):
        assert codes_of(looker.get("/recalls/", {"sort": sort, "cursor": cursor})) == ["invalid-cursor"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"old", "new"}),
        ({"range": "1h"}, {"new"}),
        ({"range": "7d"}, {"new", "old"}),
        ({"range": "24h", "since": "2000-01-01"}, {"new", "old"}),
        ({"until": "2000-01-01"}, set()),
        ({"since": "2000-01-01T00:00"}, {"new", "old"}),
        ({"range": "custom", "since": "no date"}, {"new", "old"}),
    ],
)
@pytest.mark.parametrize("place", ["released", "regretted"])
def test_released_and_regret_are_listed_by_time(
    place: str, query: dict[str, str], found: set[str], looker: Client, operator: Caller, clock: Clock
) -> None:
    clock.stop()
    for title in ("old", "new"):
        (topic,) = map(uuid.UUID, topics_make(operator, 1, title=title))
        said: Any = {"principal": SYSTEM, "reason": "", "now": clock.now}
        if place == "released":
            topics_release([topic], **said)
        else:
            topics_archive([topic], **said)
            topics_restore([topic], **said)
        clock.forward(hours=2 if title == "old" else 0.5)
    address = "/released/" if place == "released" else "/overview/regretted/"

    query = query if place == "released" else {"by": "anyone", **query}
    page = body_of(looker.get(address, query))
    count = body_of(looker.get(f"{address}count/", query, headers=PART))

    assert set(re.findall(r"data-open>(old|new)<", page)) == found
    assert count.split()[0] == str(len(found))
    assert 'aria-label="Time range"' in page


def test_only_released_topics_of_the_chosen_time_are_restored(op: Client, operator: Caller, clock: Clock) -> None:
    clock.stop()
    old, new = map(uuid.UUID, topics_make(operator, 2))
    topics_release([old], principal=SYSTEM, reason="", now=clock.now)
    clock.forward(hours=2)
    topics_release([new], principal=SYSTEM, reason="", now=clock.now)
    page = body_of(op.post("/bulk/restore/", {"all": "released", "range": "1h"}, follow=True))
    assert (f"/topics/{new}/" in page, f"/topics/{old}/" in page) == (True, False)


def peek(client: Client, address: str) -> str:
    """Return the words of a peek."""
    reply = client.get(f"{address}peek/", headers=PART)
    assert reply.status_code == 200
    assert "peek-head" in body_of(reply)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", body_of(reply))).split())


def test_a_peek_at_a_recall_shows_what_it_returned(looker: Client, agent: Caller) -> None:
    agent.remember("The skis are in the cellar")
    agent.query("Where are the skis?")
    recall = AccessLog.objects.get(kind="query").pk
    said = peek(looker, f"/recalls/{recall}/")
    assert "Where are the skis?" in said
    assert re.search(r"1 The skis are in the cellar relevance 0\.\d\d", said)
    assert looker.get(f"/recalls/{recall}/peek/").headers["Location"] == f"/recalls/{recall}/"
    assert looker.get(f"/recalls/{recall + 1}/peek/", headers=PART).status_code == 404


def test_a_peek_at_a_run_shows_its_counts_and_who_gave_which_reason(
    op: Client, looker: Client, operator: Caller
) -> None:
    policy_put(operator, topic_count_soft_limit=0)
    topics_make(operator, 3, days=400)
    run = run_start("/", event="manual", dry_run=True, principal=SYSTEM, now=timezone.now())
    address = f"/runs/{run.pk}/"
    assert "archived 3" in peek(looker, address)
    op.post(f"{address}apply/", {"reason": "the shelf is full"})
    op.post(f"{address}undo/", {"reason": "the shelf was not full"})
    said = peek(looker, address)
    assert "by operator: the shelf is full" in said
    assert "by operator: the shelf was not full" in said
    assert looker.get(f"{address}peek/").headers["Location"] == address
    assert looker.get(f"/runs/{uuid.uuid4()}/peek/", headers=PART).status_code == 404
