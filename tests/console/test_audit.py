"""The audit page: every change, filtered, counted, and taken away as a file that is safe to open."""

import csv
import datetime as dt
import io
import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.console.listing import cell_text, csv_lines
from memory.console.queries.activity import AuditFilter, audit_list
from memory.console.queries.agents import agents_list
from memory.forgetting.runs import run_start
from memory.models import AuditEvent, ForgetRun, PolicyVersion
from tests.cast import Caller, principal_like
from tests.console.people import codes_of
from tests.forgetting.shop import topics_make


def rows_of(page: str) -> int:
    """Return how many changes a page of the list shows."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return body.count("<tr data-row>")


def test_the_page_tells_who_changed_what_and_why(looker: Client, operator: Caller) -> None:
    topic = operator.remember("A passport")
    operator.post(f"/v1/topics/{topic}/pin", {"reason": "needed at the border"}).ok()

    page = looker.get("/audit/", {"topic": topic}).content.decode()

    assert rows_of(page) == 2
    assert "needed at the border" in page
    assert re.search(r'actor=key%3Aoperator">operator</a> <span[^>]*>agent key<', page)
    assert f"/topics/{topic}/" in page


def test_saved_policies_are_in_the_journal_too(looker: Client, operator: Caller) -> None:
    operator.put("/v1/policies/team/red", {"values": {"half_life_days": 7}, "reason": "shorter weeks"}).ok()
    operator.post("/v1/policies/team/red/rollback", {"to": 0, "reason": "longer again"}).ok()

    page = looker.get("/audit/", {"scope": "/team/red"}).content.decode()
    assert rows_of(page) == 2
    assert "shorter weeks" in page
    assert "half_life_days" in page
    assert page.index("Policy rolled back") < page.index("Policy saved")
    assert rows_of(looker.get("/audit/", {"action": "policy_*"}).content.decode()) == 2
    assert "2 changes" in looker.get("/audit/count/", {"scope": "/team"}).content.decode()


def test_filters_leave_out_what_they_do_not_ask_for(looker: Client, agent: Caller, operator: Caller) -> None:
    agent.remember("One", scope="/team/red")
    other = operator.remember("Two", scope="/team/reds")
    operator.post(f"/v1/topics/{other}/pin", {}).ok()

    assert rows_of(looker.get("/audit/", {"scope": "/team/red"}).content.decode()) == 1
    assert rows_of(looker.get("/audit/", {"actor": "key:operator"}).content.decode()) == 2
    assert rows_of(looker.get("/audit/", {"action": "pinned"}).content.decode()) == 1
    assert rows_of(looker.get("/audit/", {"until": "2020-01-01"}).content.decode()) == 0


def test_filters_take_the_words_that_the_page_shows(looker: Client, agent: Caller, operator: Caller) -> None:
    agent.remember("One", scope="/team")
    topic = operator.remember("Two", scope="/team")
    operator.post(f"/v1/topics/{topic}/pin", {}).ok()

    def found(**query: str) -> int:
        return rows_of(looker.get("/audit/", {"scope": "/team", **query}).content.decode())

    assert [found(action=said) for said in ("Created", "ingest", "Ingest_new_topic", "pinned")] == [2, 2, 2, 1]
    assert found(action="ing") == 0
    assert [found(actor=said) for said in ("operator", "key:operator", "oper")] == [2, 2, 0]


def test_a_filter_by_the_names_of_journals_is_shown_in_the_words_of_the_page(looker: Client, op: Client) -> None:
    op.post("/add/", {"title": "A fact", "summary": "", "scope": "", "kind": "", "values": ""})
    page = looker.get("/audit/", {"actor": "user:operator", "action": "ingest_new_topic"}).content.decode()
    assert "A fact" in page
    assert 'name="actor" value="operator"' in page
    assert 'name="action" value="Created"' in page
    assert "All about operator" in page
    assert '?name=user%3Aoperator">All about operator</a>' in page


def test_runs_that_start_by_themselves_are_in_the_journal(looker: Client, operator: Caller) -> None:
    values = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0}
    operator.put("/v1/policies/team", {"values": values, "reason": "for the test"}).ok()
    operator.remember("Faint", scope="/team", salience=0.001)
    operator.remember("Kept", scope="/team")
    run = run_start("/team", event="cron", dry_run=False, principal=SYSTEM, now=timezone.now())
    assert run.applied == 1

    page = looker.get("/audit/", {"scope": "/team", "action": "run applied"}).content.decode()
    assert rows_of(page) == 1
    assert "archived 1" in page
    assert f'href="/runs/{run.pk}/"' in page
    assert "Scheduled run" in page
    assert rows_of(looker.get("/audit/", {"actor": "system", "scope": "/team"}).content.decode()) == 1
    assert rows_of(looker.get("/audit/", {"scope": "/team"}).content.decode()) == 3
    assert "4 changes" in looker.get("/audit/count/", {"scope": "/team"}).content.decode()


def test_a_change_to_many_memories_is_one_row_and_no_page_divides_it(
    op: Client, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = topics_make(operator, 5)
    op.post("/bulk/archive/", {"topic": topics, "seen_at": "2999-01-01"})
    run = ForgetRun.objects.get()
    page = op.get("/audit/", {"action": "archived"}).content.decode()
    assert rows_of(page) == 1
    assert "5 memories" in page
    assert f'href="/runs/{run.pk}/"' in page
    assert all(f"/topics/{topic}/" in page for topic in topics)
    monkeypatch.setattr("memory.console.pages.activity.ROWS", 1)
    first = op.get("/audit/")
    assert [len(group) for group in first.context["groups"]] == [5]
    second = op.get("/audit/", {"cursor": first.context["next"]})
    assert [len(group) for group in second.context["groups"]] == [5]
    assert second.context["groups"][0][0]["action"] != "archived"


def test_the_last_24_hours_come_first_and_other_ranges_are_in_the_address(looker: Client, db: None) -> None:
    now = timezone.now()
    for hours in (0.5, 5, 30, 24 * 10, 24 * 100):
        AuditEvent.objects.create(at=now - dt.timedelta(hours=hours), actor="system", action="noted", scope="/t")

    def found(**query: str) -> int:
        return rows_of(looker.get("/audit/", {"scope": "/t", **query}).content.decode())

    ranges = ("", "1h", "24h", "7d", "30d", "all", "custom", "no such")
    assert [found(range=each) for each in ranges] == [2, 1, 2, 3, 4, 5, 5, 2]
    minute = f"{now - dt.timedelta(hours=6):%Y-%m-%dT%H:%M}"
    assert (found(since=minute), found(until=minute), found(range="1h", since=minute)) == (2, 3, 1)
    day = f"{now - dt.timedelta(hours=30):%Y-%m-%d}"
    own = looker.get("/audit/", {"range": "custom", "since": day, "until": day}).content.decode()
    assert (f'value="{day}T00:00"' in own, f'value="{day}T23:59"' in own) == (True, True)
    count = looker.get("/audit/count/", {"scope": "/t", "range": "7d"}).content.decode()
    assert "3 changes" in count


def test_the_history_of_one_topic_has_no_range_by_itself(looker: Client, agent: Caller) -> None:
    topic = agent.remember("A passport")
    AuditEvent.objects.update(at=timezone.now() - dt.timedelta(days=90))
    assert rows_of(looker.get("/audit/", {"topic": topic}).content.decode()) == 1
    assert rows_of(looker.get("/audit/").content.decode()) == 0


def test_changes_are_counted_by_kind_and_person_with_links(looker: Client, agent: Caller, operator: Caller) -> None:
    agent.remember("One", scope="/team")
    topic = operator.remember("Two", scope="/team")
    operator.post(f"/v1/topics/{topic}/pin", {}).ok()

    part = looker.get("/audit/summary/", {"scope": "/team", "range": "1h"}, headers={"HX-Request": "true"})
    links = dict(re.findall(r'<a href="([^"]*)">([^<]*) <span class="num">', part.content.decode()))
    assert "<html" not in part.content.decode()
    assert sorted(links.values()) == ["Created", "Pinned", "key:agent", "key:operator"]
    for address, count in zip(sorted(links, key=links.__getitem__), (2, 1, 1, 2), strict=True):
        assert rows_of(looker.get(unescape(address)).content.decode()) == count, address
    assert "<html" in looker.get("/audit/summary/").content.decode()


def test_people_agents_and_automatic_runs_are_reported_apart(looker: Client, db: None) -> None:
    # The last is an agent of the demo, which has no key.
    for actor in ("user:admin", "terminal", "system", "rule keep decisions", "key:tour agent", "key:other", "planner"):
        AuditEvent.objects.create(at=timezone.now(), actor=actor, action="noted", scope="/t")

    def found(by: str) -> int:
        return rows_of(looker.get("/audit/", {"scope": "/t", "by": by}).content.decode())

    assert [found(by) for by in ("", "people", "agents", "automatic", "odd")] == [7, 2, 3, 2, 7]
    agents, _more = agents_list(sort="name", principal=SYSTEM, now=timezone.now(), cursor=None, limit=50)
    assert {each.name for each in agents} == {"key:tour agent", "key:other", "planner"}


def test_a_name_without_its_kind_finds_what_the_page_shows_under_it(looker: Client, db: None) -> None:
    for actor in ("user:admin", "key:tour agent", "key:admin 2", "user:administrator"):
        AuditEvent.objects.create(at=timezone.now(), actor=actor, action="noted", scope="/t", reason=f"by {actor}.")
    for name, actor in (("admin", "user:admin"), ("tour agent", "key:tour agent")):
        page = looker.get("/audit/", {"scope": "/t", "actor": name}).content.decode()
        assert rows_of(page) == 1
        assert f"by {actor}." in page


def test_a_filter_that_makes_no_sense_is_explained_in_place(looker: Client, db: None) -> None:
    page = looker.get("/audit/", {"since": "yesterday", "scope": "no scope", "topic": "7"})

    assert page.status_code == 200
    # The date and the id, and the scope.
    assert sorted(codes_of(page)) == ["invalid", "invalid", "invalid-scope"]
    assert 'aria-invalid="true"' in page.content.decode()


def test_a_foreign_cursor_is_refused_with_a_sentence(looker: Client, db: None) -> None:
    page = looker.get("/audit/", {"cursor": "abc"})

    assert (page.status_code, codes_of(page)) == (400, ["invalid-cursor"])


@pytest.mark.usefixtures("db")
def test_pages_follow_each_other_without_a_gap_or_a_repeat() -> None:
    for place in range(25):
        AuditEvent.objects.create(at="2026-01-01T00:00:00Z", actor="system", action=f"step {place}")
    for number in range(1, 8):
        PolicyVersion.objects.create(
            scope="/", number=number, author="system", reason=f"step {24 + number}", created_at="2026-01-01T00:00:00Z"
        )
    seen: list[str] = []
    cursor = None
    while True:
        rows, cursor = audit_list(AuditFilter(), principal=principal_like("reader"), cursor=cursor, limit=10)
        seen += [said for row in rows if (said := row["reason"] or row["action"]).startswith("step")]
        if cursor is None:
            break

    assert seen == [f"step {place}" for place in reversed(range(32))]


def test_the_count_is_of_what_the_filter_finds(looker: Client, agent: Caller) -> None:
    for name in ("One", "Two", "Three"):
        agent.remember(name, scope="/team/red")

    assert "3 changes" in looker.get("/audit/count/", {"scope": "/team/red"}).content.decode()
    part = looker.get("/audit/count/", {"scope": "/team/red"}, headers={"HX-Request": "true"})
    assert part.content.decode() == "3 changes"


def test_an_export_holds_exactly_the_filter_and_opens_safely_in_a_spreadsheet(looker: Client, agent: Caller) -> None:
    agent.remember("One", scope="/team/red")
    agent.remember("Two", scope="/team/blue")
    AuditEvent.objects.create(
        at="2026-01-01T00:00:00Z", actor="system", action="noted", scope="/team/red", reason='=HYPERLINK("http://x")'
    )

    reply = looker.get("/audit/export.csv", {"scope": "/team/red", "range": "all"})
    text = b"".join(reply.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text)))

    assert reply.headers["Content-Disposition"] == 'attachment; filename="memstate-audit.csv"'
    assert [row["scope"] for row in rows] == ["/team/red", "/team/red"]
    assert rows[-1]["reason"] == '\'=HYPERLINK("http://x")'

    reply = looker.get("/audit/export.jsonl", {"scope": "/team/red", "range": "all"})
    lines = [json.loads(line) for line in b"".join(reply.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert [line["reason"] for line in lines] == ["", '=HYPERLINK("http://x")']


def test_an_export_of_more_than_one_statement_is_whole(
    looker: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.console.listing.EXPORT_ROWS", 7)
    AuditEvent.objects.bulk_create(
        AuditEvent(at="2026-01-01T00:00:00Z", actor="system", action=f"step {place}") for place in range(30)
    )

    reply = looker.get("/audit/export.jsonl", {"until": "2026-01-01"})
    lines = [json.loads(line) for line in b"".join(reply.streaming_content).splitlines()]  # type: ignore[attr-defined]

    assert [line["action"] for line in lines] == [f"step {place}" for place in reversed(range(30))]


def test_texts_are_in_quotes_and_numbers_are_not() -> None:
    rows = [{"text": "a;b", "number": -1.5, "whole": 7, "none": None, "yes": True}]
    lines = list(csv_lines(["text", "number", "whole", "none", "yes"], rows))
    assert lines == ['\ufeff"text","number","whole","none","yes"\r\n', '"a;b",-1.5,7,"","true"\r\n']


@pytest.mark.parametrize(
    "url",
    [
        "/audit/export.csv?since=yesterday",
        "/audit/export.jsonl?until=9999-12-31",
        "/archived/export.csv?scope=no%20scope",
        "/archived/export.csv?regret=maybe",
        "/runs/export.csv?status=odd",
        "/lookup/export.csv?q=rung:nowhere",
    ],
)
def test_nothing_is_exported_for_a_filter_that_cannot_be_read(looker: Client, url: str) -> None:
    reply = looker.get(url)
    assert reply.status_code == 422
    assert "Nothing exported" in reply.content.decode()
    assert "Content-Disposition" not in reply.headers


def test_the_last_of_all_days_is_refused(looker: Client) -> None:
    assert codes_of(looker.get("/audit/", {"until": "9999-12-31"})) == ["invalid-period"]
    assert looker.get("/audit/", {"until": "2200-12-31", "since": "1970-01-01"}).status_code == 200


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("＝1", "'＝1"),
        (-1, "-1"),
        (-0.5, "-0.5"),
        (True, "true"),
        (None, ""),
        ("plain, with a comma", "plain, with a comma"),
        (["=1"], '["=1"]'),
        ("nul\x00", "nul"),
        ("x;=1+1", "x;'=1+1"),
        ("x\t=1\n-2", "x\t'=1\n'-2"),
        ('x;"=1"', 'x;"\'=1"'),
        ("a-b; c=d", "a-b; c=d"),
    ],
)
def test_no_cell_is_a_formula_and_no_number_becomes_a_text(value: Any, cell: str) -> None:
    assert cell_text(value) == cell
