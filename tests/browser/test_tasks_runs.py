"""What a person does with runs, each task from Home with its clicks counted."""

import re
import uuid

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.forgetting.pause import pauses_active
from memory.forgetting.runs import run_start
from memory.models import AccessLog, AuditEvent, ForgetAction, ForgetRun, PolicyVersion, Topic, Vitality
from memory.policy.save import policy_save
from tests.browser.clicks import Clicks
from tests.browser.conftest import Enter
from tests.browser.watch import settled

RUN = re.compile(r"/runs/[0-9a-f-]{36}/$")
# Under these values topics are due at once.
DUE = {"forget_salience_threshold": 0.11, "topic_count_soft_limit": 0, "max_archive_share": 1.0}


def menu(page: Page, name: str) -> Clicks:
    """Follow a line of the menu from Home, which is the first click."""
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("navigation", name="Pages").get_by_role("link", name=name))
    return clicks


@pytest.fixture
def due(enter: Enter) -> None:
    """A policy under which topics are due."""
    policy_save("/", preset=None, values=DUE, author="test", reason="so that something is due", now=timezone.now())


@pytest.mark.usefixtures("due")
def test_a_dry_run_is_applied_and_undone_in_four_clicks(enter: Enter) -> None:
    """The reason is asked for once."""
    page = enter("operator")
    before = Topic.objects.filter(rung=3).count()
    clicks = menu(page, "Runs")
    clicks.click(page.get_by_role("button", name="Dry run"))
    expect(page).to_have_url(RUN)
    run = ForgetRun.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])
    assert (run.status, run.dry_run) == ("planned", True)
    page.get_by_label("Reason").fill("as planned")
    clicks.click(page.get_by_role("button", name=re.compile(rf"^Apply: {run.planned:,} memor")))
    expect(page.locator("[data-toast]")).to_be_visible()
    assert Topic.objects.filter(rung=3).count() > before
    clicks.click(page.locator("[data-toast]").get_by_role("button", name="Undo"))
    assert clicks.count == 4
    expect(page.locator("#notices")).to_contain_text("again")
    run.refresh_from_db()
    assert run.status == "undone"
    assert Topic.objects.filter(rung=3).count() == before
    got = AuditEvent.objects.filter(after__run=str(run.pk)).order_by("id")
    assert [(each.action, each.reason) for each in got] == [
        ("run_applied", "as planned"),
        ("run_undone", "undone right away"),
    ]


@pytest.mark.usefixtures("due")
def test_a_plan_for_approval_is_found_on_home_and_approved(enter: Enter) -> None:
    page = enter("operator")
    clicks = menu(page, "Runs")
    clicks.click(page.get_by_role("button", name="Ask for approval"))
    other = enter("olga")
    other.goto("/")
    settled(other)
    clicks = Clicks(other)
    clicks.click(other.locator(".decide").get_by_role("link", name="Review"))
    expect(other.locator("main")).to_contain_text("operator asked for approval")
    other.get_by_label("Reason").fill("as asked")
    clicks.click(other.get_by_role("button", name=re.compile("^Approve: ")))
    assert clicks.count == 2
    expect(other.locator("[data-toast]")).to_be_visible()
    assert ForgetRun.objects.filter(approved_by="user:olga", status="done").count() == 1


@pytest.mark.usefixtures("due")
def test_a_run_that_waits_is_refused_from_home(enter: Enter) -> None:
    page = enter("operator")
    menu(page, "Runs").click(page.get_by_role("button", name="Ask for approval"))
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.locator(".decide").get_by_role("link", name="Review"))
    settled(page)
    clicks.click(page.get_by_role("button", name="Refuse", exact=True))
    assert clicks.count == 2
    expect(page.get_by_role("button", name=re.compile("^Approve: "))).to_have_count(0)
    assert ForgetRun.objects.filter(status="refused").count() == 1
    page.goto("/")
    settled(page)
    expect(page.locator(".decide").get_by_role("link", name="Review")).to_have_count(0)


def test_home_a_run_and_a_card_count_the_same_memories_against_the_soft_limit(enter: Enter) -> None:
    now = timezone.now()
    values = {"topic_count_soft_limit": 10_000, "exempt_kinds": []}
    policy_save("/", preset=None, values=values, author="test", reason="so that nothing is forgotten", now=now)
    run = run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=now)
    live = Vitality.objects.filter(live=True)
    # Those on lower rungs count too.
    assert live.exclude(rung=0).exists()
    # These scopes of the demo have policies of their own.
    own = live.exclude(scope__path__regex=r"^/(session|user/mara/health)(/|$)")
    active = own.filter(rung=0, pinned=False).first()
    assert active
    page = enter("reader")
    page.goto("/")
    settled(page)
    shown = page.get_by_role("region", name="Limits").locator(".limit-head strong").first.inner_text()
    assert shown == f"{live.count():,}"
    for address in (f"/runs/{run.pk}/", f"/topics/{active.pk}/"):
        page.goto(address)
        expect(page.get_by_role("main")).to_contain_text(f"/ has {shown} live memories")


def test_forgetting_is_paused_and_resumed_with_one_click_each(enter: Enter) -> None:
    page = enter("operator")
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("button", name="Pause forgetting"))
    expect(page.locator("main")).to_contain_text("paused in the whole store")
    assert [(pause.scope, pause.actor) for pause in pauses_active(timezone.now())] == [("/", "user:operator")]
    # Home announces no run that would do nothing.
    expect(page.get_by_role("region", name="Next runs").locator("li").first).to_contain_text("paused")
    clicks.click(page.locator(".rail").get_by_role("button", name="Resume"))
    expect(page.locator("main")).to_contain_text("resumed in the whole store")
    assert pauses_active(timezone.now()) == []
    assert clicks.count == 2


def test_the_list_is_live_and_names_the_query_that_set_off_a_run(enter: Enter) -> None:
    page = enter("operator")
    menu(page, "Runs")
    asked = AccessLog.objects.filter(kind="query").exclude(query="").order_by("-at").first()
    assert asked
    scope = Topic.objects.select_related("scope").get(pk=asked.topic_ids[0]).scope.path
    asked.folded_at = asked.at
    asked.save(update_fields=["folded_at"])
    ForgetRun.objects.create(
        id=uuid.UUID(int=5),
        scope=scope,
        event="query_complete",
        status="applying",
        actor="system",
        policy_version=1,
        judged_at=asked.at,
        created_at=asked.at,
        planned=10,
        applied=4,
    )
    row = page.locator("#run-rows tr", has_text="Run after a recall")
    expect(row).to_contain_text("4 of 10 memories done")
    expect(row.locator("progress")).to_have_js_property("value", 4)
    ForgetRun.objects.filter(pk=uuid.UUID(int=5)).update(status="done", applied=10, counts={"archived": 10})
    expect(row).to_contain_text("Archived 10")
    row.get_by_title("The recall that set off this run").click()
    expect(page).to_have_url(re.compile(rf"/recalls/{asked.pk}/$"))


def test_the_undo_names_the_version_that_is_new_to_the_run_and_the_way_back(enter: Enter) -> None:
    """Not the version of the whole store, which runs over it have used for weeks."""
    now = timezone.now()
    before = PolicyVersion.objects.filter(scope="/session").latest("number").number
    policy_save("/session", preset=None, values=DUE, author="test", reason="mistyped", now=now)
    run = run_start("/session", event="cron", dry_run=False, principal=SYSTEM, now=now)
    assert run.applied
    page = enter("operator")
    menu(page, "Runs")
    page.locator("#run-rows tr", has_text="/session").first.get_by_role("link", name="Scheduled run").click()
    page.get_by_role("link", name="Undo", exact=True).click()
    culprit = page.locator(".culprit")
    expect(culprit).to_have_count(1)
    expect(culprit).to_contain_text("mistyped")
    culprit.get_by_role("link", name=f"Roll back to version {before}").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("/session")
    page.get_by_label("Reason").fill("mistyped")
    page.get_by_role("button", name=f"Roll back to version {before}").click()
    settled(page)
    page.goto(f"/runs/{run.pk}/undo/")
    expect(culprit).to_have_count(0)
    page.get_by_label("Reason").fill("mistyped")
    page.get_by_role("button", name=re.compile("^Undo: ")).click()
    expect(page.locator("#notices")).to_contain_text("again")
    run.refresh_from_db()
    assert run.status == "undone"


@pytest.mark.usefixtures("due")
def test_a_run_counts_alike_in_its_sentence_and_its_card_after_a_purge(enter: Enter) -> None:
    now = timezone.now()
    run = run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=now)
    archived = ForgetAction.objects.filter(run=run, action="archived").values_list("topic_id", flat=True)
    number = len(archived)
    assert number > 1
    topics_purge(list(archived[:1]), reason="for the test", principal=SYSTEM, now=now)
    page = enter("reader")
    menu(page, "Runs")
    page.locator("#run-rows").get_by_role("link", name="Scheduled run").first.click()
    expect(page).to_have_url(re.compile(str(run.pk)))
    sentence = page.locator(".page-head p").last.inner_text()
    card = page.get_by_role("region", name="What it did")
    assert f"Archived {number:,}" in sentence
    shown = int(card.locator(".run-counts > div", has_text="archived").locator("dd.num").inner_text())
    purged = int(card.get_by_text("purged since").inner_text().split()[0])
    assert (shown, purged) == (number - 1, 1)
