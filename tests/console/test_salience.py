"""The Salience page: a draft in the address, what it would forget, and the way to a new version."""

import csv
import datetime as dt
import io
import json
import re
import uuid
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client

from memory.models import ForgetRun, PolicyVersion, Topic
from tests.cast import Caller, Clock
from tests.console.people import body_of, codes_of, hidden, statements_of, statements_reported
from tests.forgetting.shop import NOON, dump, policy_put, run, topics_make

# Salience as stored decides, so that the numbers below are easy to follow.
PLAIN: dict[str, Any] = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0}


@pytest.fixture(autouse=True)
def _noon(clock: Clock) -> None:
    clock.set(NOON)


@pytest.fixture
def twelve(operator: Caller) -> dict[float, list[str]]:
    """Topics of each rung, by salience, under a policy without decay."""
    policy_put(operator, **PLAIN)
    return {salience: topics_make(operator, 3, salience=salience) for salience in (0.01, 0.1, 0.2, 1.0)}


def page_of(client: Client, /, status: int = 200, **query: Any) -> str:
    reply = client.get("/salience/", query)
    assert reply.status_code == status, reply.content.decode()
    return reply.content.decode()


def counts_of(page: str) -> dict[str, list[int]]:
    """Return the table: now, draft and difference of each stage."""
    found = {}
    for step, row in re.findall(r'<tr data-step="(\w+)">(.*?)</tr>', page, re.DOTALL):
        cells = re.findall(r'<td class="right">(?:<strong>)?(.*?)(?:</strong>)?</td>', row)
        found[step] = [int(cell.translate(str.maketrans("−", "-", ",+±"))) for cell in cells]
    return found


def fields_of(page: str, **more: str) -> dict[str, str]:
    """Return what the form of the draft sends, whichever button is pressed: its fields, wherever they stand."""
    form = page.partition('id="salience-form"')[2].partition("</form>")[0]
    said = {}
    for tag in re.findall(r"<input[^>]*>", form) + re.findall(r'<input[^>]*form="salience-form"[^>]*>', page):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name:
            said[name[1]] = unescape(value[1]) if value else ""
    for name, options in re.findall(r'<select name="([^"]*)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        said[name] = unescape(chosen[1]) if chosen else ""
    for name, text in re.findall(r'<textarea name="([^"]*)".*?>(.*?)</textarea>', form, re.DOTALL):
        said[name] = unescape(text).removeprefix("\n")
    return {**said, **more}


DRAFT = {"theta_summary": "0.15", "theta_detach": "0.12", "forget_salience_threshold": "0.11"}


def test_a_link_may_name_single_values_and_the_rest_stays_as_it_is_set(
    looker: Client, twelve: dict[float, list[str]]
) -> None:
    page = page_of(looker, **DRAFT)

    assert counts_of(page) == {"summarize": [3, 0, -3], "detach": [3, 0, -3], "archive": [3, 6, 3], "climb": [0] * 3}
    assert "The draft archives 3 more memories, detaches 3 fewer and summarizes 3 fewer than now." in page
    assert "12 live memories" in page


def test_what_the_page_shows_is_what_a_dry_run_then_plans(op: Client, twelve: dict[float, list[str]]) -> None:
    page = page_of(op, **DRAFT)
    foretold = {step: counts[1] for step, counts in counts_of(page).items()}
    reply = op.post("/salience/save/", fields_of(page, reason="tidier"))
    assert reply.status_code == 302
    after = page_of(op)
    assert counts_of(after) == {step: [count, count, 0] for step, count in foretold.items()}

    reply = op.post("/salience/dry-run/", {"scope": "/"})
    (planned,) = ForgetRun.objects.all()
    assert reply.headers["Location"] == f"/runs/{planned.pk}/"
    assert planned.dry_run
    names = {"summarize": "summarized", "detach": "detached", "archive": "archived", "climb": "restored"}
    assert {step: planned.counts.get(name, 0) for step, name in names.items()} == foretold


def test_a_draft_in_the_address_survives_a_reload(looker: Client, twelve: dict[float, list[str]]) -> None:
    part = looker.get(
        "/salience/",
        {
            **DRAFT,
            "base_version": "1",
            "strategy": "static",
            "prune_after_days": "0",
            "kind": "",
            "rung": "",
            "scale": "linear",
        },
        headers={"HX-Request": "true"},
    )
    address = part.headers["HX-Replace-Url"]

    again = looker.get(address).content.decode()

    assert counts_of(again) == counts_of(part.content.decode())
    assert 'value="0.11"' in again
    assert '<option value="linear" selected>' in again
    assert "topic_count_soft_limit" not in address


def test_a_part_is_answered_for_a_moved_line_and_a_page_for_everything_else(
    looker: Client, twelve: dict[float, list[str]]
) -> None:
    part = looker.get("/salience/", DRAFT, headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in part
    assert 'id="salience-figure"' in part
    figure = json.loads(re.findall(r'<script id="salience-figure" type="application/json">(.*?)</script>', part)[0])
    assert [line["value"] for line in figure["lines"]] == [0.11, 0.12, 0.15]
    assert sum(sum(bars["y"]) for bars in figure["data"]) == 12


def test_a_draft_that_makes_no_sense_is_explained_and_nothing_is_counted_under_it(
    looker: Client, twelve: dict[float, list[str]]
) -> None:
    page = page_of(looker, 422, theta_summary="a lot")

    assert "Summarize below must be a number; &#x27;a lot&#x27; is not." in page
    assert 'value="a lot"' in page
    assert counts_of(page)["archive"] == [3, 3, 0]
    assert looker.get("/salience/affected/", {"theta_summary": "a lot"}).status_code == 400


def test_topics_are_filtered_by_scope_kind_and_rung(looker: Client, operator: Caller) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 2, salience=0.01, topic_kind="finding", scope="/team")
    topics_make(operator, 3, salience=0.01, topic_kind="decision", scope="/team/deep")
    topics_make(operator, 4, salience=0.01, topic_kind="finding")
    topics_make(operator, 5, salience=0.2)
    run(operator, scope="/", dry_run=False, event="manual")
    topics_make(operator, 1, salience=0.01, topic_kind="finding", scope="/team")

    assert counts_of(page_of(looker))["archive"][0] == 1
    assert counts_of(page_of(looker, scope="/team", kind="finding"))["archive"][0] == 1
    assert counts_of(page_of(looker, kind="decision"))["archive"][0] == 0
    assert "5 live memories" in page_of(looker, rung="summarized")
    raised = {"theta_summary": 0.4, "theta_detach": 0.3, "forget_salience_threshold": 0.25, "rung": "summarized"}
    page = page_of(looker, **raised)
    assert counts_of(page)["archive"] == [0, 5, 5]
    assert "Newly affected: 5" in page
    assert "Newly affected: 6" not in page


def test_newly_affected_topics_are_listed_with_why_and_the_rest_is_a_link_away(
    looker: Client, operator: Caller
) -> None:
    policy_put(operator, **PLAIN)
    made = topics_make(operator, 14, salience=0.1, scope="/team")
    policy_put(operator, "/team", theta_detach=0.05)

    page = page_of(looker, forget_salience_threshold="0.1001", theta_detach="0.11", scope="/team")

    assert "Newly affected: 14" in page
    assert page.count('class="affected-head"') == 5
    assert "threshold for archiving" in page
    link = re.findall(r'href="(/salience/affected/[^"]*)"', page)[0].replace("&amp;", "&")
    listed = looker.get(link).content.decode()
    assert all(f"/topics/{topic}/" in listed for topic in made)


def test_the_exports_of_the_affected_hold_exactly_the_list(
    looker: Client, twelve: dict[float, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.console.listing.EXPORT_ROWS", 2)
    monkeypatch.setattr("memory.console.pages.salience.AFFECTED.limit", 2)
    seen: list[str] = []
    query: dict[str, str] = dict(DRAFT)
    while True:
        page = looker.get("/salience/affected/", query).content.decode()
        seen += re.findall(r'href="/topics/([0-9a-f-]+)/"', page)
        following = re.findall(r'rel="next" href="\?[^"]*cursor=([^"&]+)"', page)
        if not following:
            break
        query["cursor"] = following[0].replace("%3D", "=")

    rows = list(
        csv.DictReader(io.StringIO(body_of(looker.get("/salience/affected/export.csv", DRAFT)).lstrip("\ufeff")))
    )
    lines = [json.loads(line) for line in body_of(looker.get("/salience/affected/export.jsonl", DRAFT)).splitlines()]
    assert [row["topic_id"] for row in rows] == [line["topic_id"] for line in lines] == seen
    assert sorted(seen) == sorted(twelve[0.1])
    assert {(line["from_rung"], line["to_rung"]) for line in lines} == {("active", "archived")}
    counted = looker.get("/salience/affected/count/", DRAFT, headers={"HX-Request": "true"})
    assert counted.content.decode() == "3 memories"


def test_a_preset_is_loaded_as_a_draft_and_keeps_what_is_no_part_of_the_design(
    looker: Client, operator: Caller
) -> None:
    policy_put(operator, half_life_days=3, shadow_share=0.5)
    reply = looker.get("/salience/", {"preset": "memstate", "load": "1"})

    assert reply.status_code == 302
    page = looker.get(reply.headers["Location"]).content.decode()
    assert '<option value="memstate" selected>' in page
    assert 'name="shadow_share" value="0.5"' in page
    assert "half_life_days=" not in reply.headers["Location"]
    assert not PolicyVersion.objects.filter(preset="memstate").exists()


def test_two_drafts_are_compared_and_both_live_in_the_address(looker: Client, twelve: dict[float, list[str]]) -> None:
    reply = looker.get("/salience/", {**DRAFT, "aside": "1"})
    address = reply.headers["Location"]
    page = looker.get(address + "&forget_salience_threshold=0.02").content.decode()
    compared = page.partition('aria-label="Draft A, draft B and the policy in force"')[2]
    archived = compared.partition("rung-archived")[2].partition("</tr>")[0]

    assert re.findall(r">(\d+)<", archived)[:3] == ["3", "3", "6"]
    assert "Discard draft B" in page
    dropped = looker.get(address + "&drop=1")
    assert "b-" not in dropped.headers["Location"]
    swapped = looker.get(f"/salience/?{urlencode({'b-base_version': '1', 'b-strategy': 'static'})}&swap=1")
    assert "b-topic_count_soft_limit=0" in swapped.headers["Location"]


def test_the_chooser_of_the_scope_leads_to_what_is_set_there_without_the_draft(
    looker: Client, operator: Caller
) -> None:
    policy_put(operator, "/team", half_life_days=3)
    page = page_of(looker, base_version="0", half_life_days="77")
    chooser = page.partition('class="tuning-scope"')[2].partition("</form>")[0]

    assert 'method="get" action="/salience/"' in chooser
    assert re.findall(r'name="([^"]+)"', chooser) == ["scope"]
    assert 'name="half_life_days" value="3"' in page_of(looker, scope="/team")


def test_saving_needs_a_reason_and_keeps_the_draft(op: Client, twelve: dict[float, list[str]]) -> None:
    page = page_of(op, **DRAFT)
    reply = op.post("/salience/save/", fields_of(page, reason=""))

    assert reply.status_code == 422
    assert "This field is required." in reply.content.decode()
    assert 'value="0.11"' in reply.content.decode()
    assert PolicyVersion.objects.count() == 1


def test_saving_puts_the_whole_draft_in_force_and_what_was_not_touched_stays(
    op: Client, twelve: dict[float, list[str]]
) -> None:
    page = page_of(op, **DRAFT)
    reply = op.post("/salience/save/", fields_of(page, reason="tidier"), follow=True)

    version = PolicyVersion.objects.order_by("-number")[0]
    assert version.values == {**PLAIN, **{name: float(text) for name, text in DRAFT.items()}}
    assert (version.number, version.reason, version.author) == (2, "tidier", "user:operator")
    assert "Saved: version 2 of / is in force." in reply.content.decode()
    assert ">Dry run</button>" in reply.content.decode()


def test_a_save_leads_back_to_the_saved_values_and_the_next_save_follows_it(
    op: Client, twelve: dict[float, list[str]]
) -> None:
    page = page_of(op, **DRAFT)
    page = op.post("/salience/save/", fields_of(page, reason="tidier"), follow=True).content.decode()
    assert 'value="0.11"' in page
    assert "The draft equals the current policy" in page
    again = fields_of(page, reason="tidier still", forget_salience_threshold="0.1")
    assert op.post("/salience/save/", again).status_code == 302
    assert PolicyVersion.objects.latest("number").values["forget_salience_threshold"] == 0.1


def test_of_two_operators_the_second_is_shown_what_the_first_saved_and_loses_nothing(
    op: Client, administrator: Client, twelve: dict[float, list[str]]
) -> None:
    draft = fields_of(page_of(op, **DRAFT), reason="tidier")
    theirs = fields_of(page_of(administrator, half_life_days="44"), reason="slower")
    assert administrator.post("/salience/save/", theirs).status_code == 302

    reply = op.post("/salience/save/", draft)
    page = reply.content.decode()

    assert (reply.status_code, codes_of(reply)) == (409, ["changed-meanwhile"])
    assert "half_life_days" in page.partition("Another user saved a newer version")[2].partition("</form>")[0]
    assert 'value="0.11"' in page
    assert 'value="tidier"' in page
    assert PolicyVersion.objects.count() == 2
    # Who has seen it may put the draft in its place.
    assert op.post("/salience/save/", fields_of(page, reason="still")).status_code == 302
    assert "half_life_days" not in PolicyVersion.objects.order_by("-number")[0].values


def test_a_reader_tries_everything_and_saves_nothing(looker: Client, twelve: dict[float, list[str]]) -> None:
    before = dump("memory_apikey")
    page = page_of(looker, **DRAFT)

    assert "/salience/save/" not in page
    assert ">Dry run</button>" not in page
    assert looker.post("/salience/save/", {"scope": "/", "reason": "x"}).status_code == 403
    assert looker.post("/salience/dry-run/", {"scope": "/"}).status_code == 403
    asked = {"scope": "/", "since": "2026-02-01", "until": "2026-02-20", "step": 1}
    assert looker.get("/salience/backtest/", asked).status_code == 200
    assert dump("memory_apikey") == before


def test_a_moved_threshold_takes_three_statements_however_many_policies_there_are(
    looker: Client, operator: Caller
) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 10, salience=0.1)

    def moved() -> int:
        return statements_of(lambda: looker.get("/salience/", DRAFT, headers={"HX-Request": "true"}))

    session_and_account = 2
    assert moved() - session_and_account <= 4
    with_one = moved()
    assert with_one - session_and_account == 3
    for place in range(5):
        topics_make(operator, 20, salience=0.1, scope=f"/below/{place}")
        policy_put(operator, f"/below/{place}", theta_summary=0.3 + place / 10, half_life_days=10 + place)
    moved()
    assert moved() == with_one
    compared = {**DRAFT, "b-base_version": "1", "b-theta_summary": "0.3"}
    # A whole page also asks for the pauses, and for what waits.
    assert statements_of(lambda: looker.get("/salience/", compared)) == with_one + 2
    with statements_reported() as got:
        looker.get("/salience/", DRAFT)
    assert not got.written


def test_counts_over_several_policies_are_those_of_each_added_up(looker: Client, operator: Caller) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 2, salience=0.1)
    for place, theta in enumerate((0.01, 0.3, 0.3)):
        scope = f"/below/{place}"
        topics_make(operator, 3, salience=0.2, scope=scope)
        policy_put(operator, scope, theta_summary=0.5, theta_detach=0.4, forget_salience_threshold=theta)
    policy_put(operator, "/below/2", mode="off")

    counts = counts_of(page_of(looker, **DRAFT))
    plan = run(operator)["counts"]

    assert [counts[step][0] for step in ("summarize", "detach", "archive")] == [
        plan["summarized"],
        plan["detached"],
        plan["archived"],
    ]
    assert counts["archive"][1] == counts["archive"][0] + 2


def test_a_backtest_tells_draft_and_present_beside_each_other(looker: Client, operator: Caller, clock: Clock) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 4, salience=0.1, days=20)
    query = {"scope": "/", "draft": urlencode(DRAFT), "since": "2026-02-01", "until": "2026-02-28", "step": 1}

    page = looker.get("/salience/backtest/", query).content.decode()
    part = looker.get("/salience/backtest/", query, headers={"HX-Request": "true"}).content.decode()

    assert "Of 4 memories it would have archived 4 (100%)" in page
    assert "<html" not in part
    assert "Of 4 memories" in part
    wrong = looker.get("/salience/backtest/", {**query, "since": "2020-01-01"})
    assert wrong.status_code == 422
    assert codes_of(wrong) == ["invalid-period"]
    backwards = looker.get("/salience/backtest/", {**query, "until": "2026-01-01"})
    assert codes_of(backwards) == ["invalid-period"]


def test_what_a_draft_would_have_archived_and_was_needed_is_named_and_can_be_pinned(
    op: Client, operator: Caller, clock: Clock
) -> None:
    policy_put(operator, **PLAIN)
    clock.set(NOON - dt.timedelta(days=20))
    needed = operator.remember("The boiler is serviced in May", salience=0.1)
    operator.remember("Nobody asks for this", salience=0.1)
    clock.set(NOON - dt.timedelta(days=2))
    assert operator.found("boiler May", topic_ids=[needed], stages=["structural"]) == [needed]
    clock.set(NOON)
    query = {"scope": "/", "draft": urlencode(DRAFT), "since": "2026-02-10", "until": "2026-02-28", "step": 1}
    address = f"/salience/backtest/?{urlencode(query)}"
    page = op.get(address).content.decode()
    assert "“boiler May”" in page
    listed = page[page.index("Archived, but used afterwards") :]
    assert needed in listed
    assert "Nobody asks for this" not in listed

    form = {name: hidden(listed, name) for name in ("topic", "seen_at", "next")}
    op.post("/bulk/pin/", form)
    assert set(Topic.objects.filter(vitality__pinned=True).values_list("pk", flat=True)) == {uuid.UUID(needed)}
    # A pinned memory is not archived, so a further backtest does not name it.
    assert "Archived, but used afterwards" not in op.get(form["next"]).content.decode()


def test_an_empty_store_says_what_the_page_will_show(looker: Client, db: None) -> None:
    page = page_of(looker)

    assert "A run now would do nothing: no memory is due." in page
    assert "There are no memories here." in page
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_policyversion")
        assert cursor.fetchone() == (0,)


def test_no_two_parts_of_the_page_go_by_the_same_id(op: Client, twelve: dict[float, list[str]]) -> None:
    ids = re.findall(r'\sid="([^"]+)"', page_of(op, **DRAFT))

    assert len(ids) == len(set(ids))


def test_on_a_linear_scale_the_bars_end_where_thresholds_do_and_hold_every_topic(
    looker: Client, operator: Caller
) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 2, salience=9)
    topics_make(operator, 3, salience=0.2)
    part = looker.get("/salience/", {"scale": "linear"}, headers={"HX-Request": "true"}).content.decode()
    figure = json.loads(re.findall(r'<script id="salience-figure" type="application/json">(.*?)</script>', part)[0])
    (active,) = (bars for bars in figure["data"] if bars["name"] == "active")

    assert sum(active["y"]) == 5
    assert active["y"][-1] == 2
    assert "and more" in active["customdata"][-1]


# --- Back up the ladder ---


def test_topics_that_regain_a_rung_are_counted_as_a_dry_run_then_plans(op: Client, operator: Caller) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 5, salience=0.2)
    topics_make(operator, 2, salience=0.1)
    run(operator, dry_run=False, event="manual")

    page = page_of(op, theta_summary="0.15", theta_detach="0.05")

    # Five active again, two from detached to summarized.
    assert counts_of(page)["climb"] == [0, 7, 7]
    assert "Newly affected: 7" in page
    assert "The draft moves 7 more memories up than now." in page
    projected = page.partition('aria-label="Projections"')[2].partition("</table>")[0]
    assert re.findall(r">(\d+)<", projected.partition("moved up")[2]) == ["0", "7", "0", "7"]

    assert op.post("/salience/save/", fields_of(page, reason="kinder")).status_code == 302
    assert "A run now would move 7 memories up." in page_of(op)
    planned = op.post("/salience/dry-run/", {"scope": "/"})
    assert planned.status_code == 302, planned.content.decode()
    run_id = planned.headers["Location"].rstrip("/").rpartition("/")[2]
    assert ForgetRun.objects.get(pk=run_id).counts["restored"] == 7


def test_two_drafts_are_also_compared_by_whom_they_bring_back_up(looker: Client, operator: Caller) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 5, salience=0.2)
    run(operator, dry_run=False, event="manual")

    page = page_of(
        looker,
        **{
            "b-base_version": "1",
            **{f"b-{name}": str(value) for name, value in PLAIN.items()},
            "b-theta_summary": "0.15",
            "b-theta_detach": "0.1",
        },
    )

    compared = page.partition('aria-label="Draft A, draft B and the policy in force"')[2].partition("</table>")[0]
    assert re.findall(r">(\d+)<", compared.partition("moved up")[2]) == ["0", "0", "5"] * 3


def test_a_single_topic_is_one_topic(looker: Client, operator: Caller) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 1, salience=0.1)

    assert "A run now would detach 1 memory." in page_of(looker)
    assert "The draft archives 1 more memory and detaches 1 fewer than now." in page_of(
        looker, forget_salience_threshold="0.11"
    )


# --- What stands in the fields is the draft ---


def test_what_the_fields_say_is_saved_whatever_the_page_was_opened_with(
    op: Client, twelve: dict[float, list[str]]
) -> None:
    page = page_of(op, **DRAFT)

    reply = op.post("/salience/save/", fields_of(page, reason="typed", forget_salience_threshold="0.1"))

    assert reply.status_code == 302
    assert PolicyVersion.objects.latest("number").values["forget_salience_threshold"] == 0.1


def test_a_form_leads_to_the_address_of_its_draft_and_keeps_the_reason(
    op: Client, twelve: dict[float, list[str]]
) -> None:
    said = fields_of(page_of(op), theta_summary="0.15", reason="half written", preset="memstate")

    for step in ({}, {"load": "1"}, {"aside": "1"}, {"again": "1"}):
        reply = op.post("/salience/", {**said, **step})
        assert reply.status_code == 302
        page = op.get(reply.headers["Location"]).content.decode()
        assert 'value="half written"' in page, step
        assert ("theta_summary=0.15" in reply.headers["Location"]) == (step in ({}, {"aside": "1"}))
    assert "csrf" not in reply.headers["Location"]
    assert PolicyVersion.objects.count() == 1


def test_a_backtest_is_of_what_the_fields_say(looker: Client, operator: Caller) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 4, salience=0.1, days=20)
    page = page_of(looker)
    said = fields_of(page, **DRAFT, since="2026-02-01", until="2026-02-28", step="1")
    assert 'formaction="/salience/backtest/?scope=%2F"' in page

    led = looker.post("/salience/backtest/", said)
    part = looker.post("/salience/backtest/", said, headers={"HX-Request": "true"}).content.decode()

    assert "forget_salience_threshold%3D0.11" in led.headers["Location"]
    assert looker.get(led.headers["Location"]).status_code == 200
    assert "Of 4 memories it would have archived 4 (100%)" in part


# --- Drafts too long for an address ---

RULES = json.dumps(
    [
        {
            "name": f"rule {place}",
            "action": "archive",
            "condition": {
                "all": [
                    {"field": "kind", "op": "is", "value": f"kind_{place}"},
                    {"field": "age", "op": ">=", "value": "30d"},
                ]
            },
        }
        for place in range(50)
    ]
)


def test_a_draft_too_long_for_an_address_is_shown_and_saved_all_the_same(
    op: Client, twelve: dict[float, list[str]]
) -> None:
    said = fields_of(page_of(op), rules=RULES, **DRAFT)
    part = op.post("/salience/", said, headers={"HX-Request": "true"})
    whole = op.post("/salience/", said)

    assert part.status_code == whole.status_code == 200
    assert part.headers["HX-Replace-Url"] == "/salience/?scope=%2F"
    page = whole.content.decode()
    for each in (page, part.content.decode()):
        assert "This draft is too long for a URL." in each
        assert "cannot be tried" not in each
        assert all(len(address) < 7000 for address in re.findall(r'(?:href|formaction|action)="([^"]*)"', each))
    assert fields_of(page)["forget_salience_threshold"] == "0.11"
    beside = op.post("/salience/", {**said, "aside": "1"})
    assert "Compare drafts" in beside.content.decode()

    assert op.post("/salience/save/", fields_of(page, reason="many rules")).status_code == 302
    assert len(PolicyVersion.objects.latest("number").rules) == 50


# --- Back at an address that a form had led to ---


def test_who_comes_back_to_the_address_of_a_form_is_led_to_the_page_with_the_draft(
    op: Client, looker: Client, twelve: dict[float, list[str]]
) -> None:
    page = page_of(op, **DRAFT)
    save = re.findall(r'formaction="(/salience/save/[^"]*)"', page)[0].replace("&amp;", "&")
    dry_run = re.findall(r'action="(/salience/dry-run/[^"]*)"', page)[0].replace("&amp;", "&")

    for address in (save, dry_run):
        for client in (op, looker):
            led = client.get(address)
            assert led.status_code == 302
            assert 'value="0.11"' in client.get(led.headers["Location"]).content.decode()


def test_the_fields_of_thresholds_say_what_is_used_and_a_run_that_would_be_held_is_announced(
    looker: Client, operator: Caller
) -> None:
    policy_put(operator, **PLAIN)
    topics_make(operator, 60, salience=0.2)
    topics_make(operator, 20, salience=1.0)

    calm = page_of(looker, scope="/", forget_salience_threshold="0.1")
    harsh = page_of(looker, scope="/", forget_salience_threshold="0.5")

    # The two thresholds above it are raised with it, and the page says so before anything is saved.
    held = json.loads(re.search(r'id="salience-held" type="application/json">(.*?)<', part_of(looker, "0.5"))[1])
    assert {name: held[name]["value"] for name in ("theta_summary", "theta_detach")} == {
        "theta_summary": "0.5",
        "theta_detach": "0.5",
    }
    assert "would wait for approval" not in calm
    assert "60 of 80 live memories (75%)" in harsh
    # What the page announces is what happens.
    policy_put(operator, **PLAIN, forget_salience_threshold=0.5)
    run = operator.post("/v1/runs", {"scope": "/", "event": "manual", "dry_run": False}).ok()
    assert run["status"] == "held"
    assert run["held_because"] in unescape(harsh)
    draft = {"scope": "/", "values": {"forget_salience_threshold": 0.1}}
    assert operator.post("/v1/policies/preview", draft).ok()["held_because"] is None


def part_of(client: Client, threshold: str) -> str:
    reply = client.get(
        "/salience/", {"scope": "/", "forget_salience_threshold": threshold}, headers={"HX-Request": "true"}
    )
    return reply.content.decode()
