"""The archive: why each topic is there, filters, sorts that visit every row once, and files that equal the list."""

import csv
import io
import json
import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.console.queries.archive_list import ArchivedTopic, ArchiveFilter, archived_count, archived_list
from memory.forgetting.runs import run_undo
from memory.models import AccessLog, AuditEvent, ShadowHit
from tests.cast import Caller, principal_like
from tests.console.people import body_of, codes_of, statements_of
from tests.forgetting.shop import policy_put, run, topics_make


@pytest.fixture(autouse=True)
def _policy(operator: Caller) -> None:
    policy_put(operator, topic_count_soft_limit=0, max_archive_share=1, prune_after_days=0, strategy="static")


def titles(page: str) -> list[str]:
    """Return the titles of a page of the list, in order."""
    return re.findall(r'<td class="title"><a href="/topics/[^"]+">(.*?)</a>', page)


def shown(client: Client, **filters: Any) -> list[str]:
    reply = client.get("/archived/", filters)
    assert reply.status_code == 200
    return titles(reply.content.decode())


def archive_by_run(operator: Caller, title: str, salience: float = 0.01, **more: Any) -> str:
    topic_id = operator.remember(title, salience=salience, **more)
    assert run(operator, dry_run=False)["applied"]
    return topic_id


def archive_by_hand(operator: Caller, title: str, reason: str = "", **more: Any) -> str:
    topic_id = operator.remember(title, **more)
    operator.post(f"/v1/topics/{topic_id}/archive", {"reason": reason}).ok()
    return topic_id


def test_each_row_tells_why_in_words(looker: Client, operator: Caller) -> None:
    archive_by_run(operator, "The harbor", 0.03)
    archive_by_hand(operator, "The bakery", "it closed in May")
    rule = {
        "name": "no crowds",
        "condition": {"field": "title", "op": "contains", "value": "crowd"},
        "action": "archive",
    }
    policy_put(operator, rules=[rule], topic_count_soft_limit=0, max_archive_share=1, strategy="static")
    archive_by_run(operator, "A crowd", 1)

    page = looker.get("/archived/").content.decode()

    assert titles(page) == ["A crowd", "The bakery", "The harbor"]
    assert "Score below 0.05." in page
    assert "By rule “no crowds”." in page
    assert "By key:operator: it closed in May" in page
    assert 'policies/version/?scope=%2F&amp;number=2"' in page
    assert page.count("/runs/") >= 2


def test_filters_leave_out_what_they_do_not_ask_for(looker: Client, operator: Caller) -> None:
    archive_by_run(operator, "The harbor", topic_kind="finding", scope="/team/red")
    got = run(operator)
    archive_by_hand(operator, "100% wool_", scope="/team/reds")

    assert shown(looker, scope="/team/red") == ["The harbor"]
    assert shown(looker, kind="finding") == ["The harbor"]
    assert shown(looker, text="ARBO") == ["The harbor"]
    assert shown(looker, text="0% w") == ["100% wool_"]
    assert shown(looker, text="har_or") == []
    assert shown(looker, because="threshold") == ["The harbor"]
    assert shown(looker, because="hand") == ["100% wool_"]
    assert shown(looker, because="rule") == []
    assert shown(looker, policy="/", version=1) == ["The harbor"]
    assert shown(looker, policy="/", version=2) == []
    assert shown(looker, run=got["run_id"]) == []
    assert shown(looker, until="2020-01-01") == []
    assert len(shown(looker, since="2020-01-01")) == 2
    for sort in ("title", "score", "archived"):
        assert len(shown(looker, sort=sort, since="2020-01-01")) == 2


def test_what_was_missed_is_marked_and_can_be_asked_for(looker: Client, operator: Caller) -> None:
    made = {name: archive_by_hand(operator, name) for name in ("looked up", "asked for", "back before", "quiet")}
    operator.get(f"/v1/topics/{made['looked up']}").ok()
    assert AccessLog.objects.filter(kind="lookup").count() == 1
    access = AccessLog.objects.get(kind="lookup")
    ShadowHit.objects.create(access=access, topic_id=made["asked for"], rank=2, similarity=0.9, at=timezone.now())
    operator.post(f"/v1/topics/{made['back before']}/restore", {}).ok()
    operator.post(f"/v1/topics/{made['back before']}/archive", {}).ok()

    assert set(shown(looker, regret="missed")) == {"looked up", "asked for", "back before"}
    assert set(shown(looker, regret="unseen")) == {"asked for", "back before", "quiet"}
    page = looker.get("/archived/").content.decode()
    assert "looked up 1×" in page
    assert "1 question</span>" in page
    assert "restored 1× before" in page


def test_a_purge_of_what_was_looked_up_leaves_the_filters_by_use_whole(looker: Client, operator: Caller) -> None:
    gone, needed = archive_by_hand(operator, "gone"), archive_by_hand(operator, "needed")
    archive_by_hand(operator, "quiet")
    for topic in (gone, needed):
        operator.get(f"/v1/topics/{topic}").ok()
    operator.delete(f"/v1/topics/{gone}").ok()
    assert shown(looker, regret="missed") == ["needed"]
    assert shown(looker, regret="unseen") == ["quiet"]
    assert shown(looker) == ["quiet", "needed"]


def test_a_restore_that_was_undone_leaves_no_mark_and_the_first_archiving_holds(
    looker: Client, operator: Caller
) -> None:
    topic = archive_by_run(operator, "The harbor")
    first = archived_of(topic)
    operator.post(f"/v1/topics/{topic}/restore", {}).ok()
    assert shown(looker) == []
    event = AuditEvent.objects.get(action="restored")
    run_undo(uuid.UUID(event.after["run"]), principal=principal_like("operator"), reason="", now=timezone.now())
    again = archived_of(topic)
    assert (again.archived_at, again.run_id, again.restored_before) == (first.archived_at, first.run_id, 0)
    assert shown(looker, regret="missed") == []


def test_what_is_released_or_active_is_not_in_the_archive(looker: Client, op: Client, operator: Caller) -> None:
    operator.remember("active")
    gone = archive_by_hand(operator, "gone")
    op.post(f"/topics/{gone}/release/", {"reason": ""})
    assert shown(looker) == []


def archived_of(topic_id: str) -> ArchivedTopic:
    rows, _next = archived_list(
        ArchiveFilter(), principal=principal_like("reader"), cursor=None, limit=100, now=timezone.now()
    )
    return next(row for row in rows if str(row.topic_id) == topic_id)


@pytest.mark.parametrize("sort", ["archived", "score", "title"])
def test_pages_visit_every_row_once_in_each_sort(operator: Caller, sort: Any) -> None:
    topics_make(operator, 12, salience=0.01)
    run(operator, dry_run=False)
    for number in range(5):
        archive_by_hand(operator, f"topic {number}")
    archive_by_run(operator, "topic 3", 0.04)
    wanted = ArchiveFilter(sort=sort)
    principal, now = principal_like("reader"), timezone.now()
    whole, end = archived_list(wanted, principal=principal, cursor=None, limit=100, now=now)
    assert (len(whole), end, archived_count(wanted, principal=principal, at_most=100)) == (18, None, 18)
    rows: list[Any] = []
    cursor = None
    while True:
        page, cursor = archived_list(wanted, principal=principal, cursor=cursor, limit=4, now=now)
        rows += page
        if cursor is None:
            break
    assert rows == whole
    if sort == "score":
        assert [row.score for row in rows[:2]] == [0.04, 0.01]
        assert rows[-1].score is None


def test_files_hold_exactly_what_the_filter_finds_and_are_safe_to_open(looker: Client, operator: Caller) -> None:
    archive_by_hand(operator, "=cmd|' /C calc'!A1", "it was a trick", scope="/team")
    archive_by_run(operator, "The harbor", scope="/team")
    archive_by_run(operator, "elsewhere")
    query = {"scope": "/team", "sort": "title"}

    lines = body_of(looker.get("/archived/export.jsonl", query)).splitlines()
    got = [json.loads(line) for line in lines]
    table = list(csv.DictReader(io.StringIO(body_of(looker.get("/archived/export.csv", query)).lstrip("\ufeff"))))

    assert [row["title"] for row in got] == ["=cmd|' /C calc'!A1", "The harbor"]
    assert [row["title"] for row in table] == ["'=cmd|' /C calc'!A1", "The harbor"]
    assert [row["topic_id"] for row in table] == [row["topic_id"] for row in got]
    assert len(shown(looker, **query)) == 2
    assert got[0]["reason"] == "it was a trick"


def test_the_page_costs_the_same_for_10_and_for_200_topics(looker: Client, operator: Caller) -> None:
    costs = []
    for number in (10, 200):
        topics_make(operator, number, salience=0.01)
        run(operator, dry_run=False)
        costs.append(
            [
                statements_of(lambda url=url: looker.get(url))  # type: ignore[misc]
                for url in ("/archived/", "/archived/?sort=title", "/archived/?regret=missed", "/archived/count/")
            ]
        )
    print(costs)
    assert costs[0] == costs[1]


def test_a_foreign_cursor_and_a_nonsensical_filter_are_reported(looker: Client, db: None) -> None:
    assert looker.get("/archived/?cursor=abc").status_code == 400
    page = looker.get("/archived/?since=yesterday&scope=no%20scope&run=7")
    # The date and the id, and the scope.
    assert sorted(codes_of(page)) == ["invalid", "invalid", "invalid-scope"]


def test_a_reader_sees_everything_and_is_offered_nothing(looker: Client, operator: Caller) -> None:
    archive_by_hand(operator, "The bakery")
    page = looker.get("/archived/").content.decode()
    assert "The bakery" in page
    assert "data-pick" not in page
    assert "/bulk/pin/" not in page
