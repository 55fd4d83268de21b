"""Activity and Settings by a person's steps from Home, with the clicks counted, and completion of what is typed."""

import re
import subprocess
import sys
from pathlib import Path

import httpx2
from django.utils import timezone
from playwright.sync_api import expect

from memory.access.keys import secret_hash
from memory.access.principal import SYSTEM
from memory.explain.action_words import action_words
from memory.forgetting.runs import run_start
from memory.models import ApiKey, AuditEvent
from memory.policy.save import policy_save
from tests.browser.axe import AXE_SCRIPT, VIEWS, wrong_in
from tests.browser.clicks import Clicks
from tests.browser.conftest import Enter
from tests.browser.watch import settled
from tests.cast import Caller, in_process, secret_of


def test_what_changed_in_24_hours_is_one_click(enter: Enter) -> None:
    Caller(in_process, secret_of("agent")).remember("The agent wrote this")
    page = enter("reader")
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Activity", exact=True))
    assert clicks.count == 1
    expect(page.get_by_role("navigation", name="Time range").locator("[aria-current]")).to_have_text("24 h")
    expect(page.locator("tbody tr").first).to_contain_text("The agent wrote this")
    expect(page.locator(".tally")).to_contain_text("key:agent 1")
    expect(page.locator(".tally")).to_contain_text("Created")
    # The counts lead to what they count, also from Home.
    page.goto("/")
    page.locator(".tally").get_by_role("link", name="key:agent 1").click()
    settled(page)
    expect(page.locator("tbody tr")).to_have_count(1)


def test_an_automatic_run_is_in_the_activity_of_the_last_24_hours(enter: Enter) -> None:
    now = timezone.now()
    values = {"forget_salience_threshold": 0.11, "topic_count_soft_limit": 0, "max_archive_share": 1.0}
    policy_save("/", preset=None, values=values, author="test", reason="so that something is due", now=now)
    run = run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=now)
    page = enter("reader")
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name="Activity", exact=True))
    row = page.locator("tbody tr").first
    expect(row).to_contain_text(f"Scheduled run: archived {run.counts['archived']:,}")
    expect(row.locator("td[data-is=Who]")).to_have_text("system")
    page.get_by_label("By", exact=True).select_option(label="Automatic")
    settled(page)
    expect(row).to_contain_text(f"archived {run.counts['archived']:,}")
    clicks.click(row.get_by_role("link", name="Show run"))
    expect(page).to_have_url(re.compile(f"/runs/{run.pk}/$"))
    assert clicks.count == 2


def test_what_is_typed_is_completed_and_found(enter: Enter) -> None:
    page = enter("reader")
    page.goto("/audit/?range=all")
    settled(page)
    scope, options = page.get_by_label("Scope", exact=True), page.locator("#id_scope-suggested option")
    scope.focus()
    expect(options.first).to_be_attached()
    scope.fill("/user/m")
    expect(options).to_have_count(1)
    expect(options).to_have_attribute("value", "/user/mara")
    scope.fill("/user/mara")
    expect(options.nth(1)).to_have_attribute("value", re.compile("^/user/mara/"))
    what = page.get_by_label("What")
    what.fill("crea")
    expect(page.locator("#id_action-suggested option").first).to_have_attribute("value", "Created")
    what.fill("Created")
    what.press("Enter")
    settled(page)
    shown = set(page.locator("td[data-is=What]").all_inner_texts())
    assert shown == {"Created"}
    known = AuditEvent.objects.filter(action="ingest_new_topic", scope__startswith="/user/mara").exists()
    assert (known, action_words("ingest_new_topic")) == (True, "Created")


def test_a_person_is_invited_chooses_a_password_and_is_disabled(enter: Enter) -> None:
    page = enter("administrator")
    page.add_init_script(AXE_SCRIPT)
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name=re.compile("^Settings")))
    clicks.click(page.get_by_role("link", name="People", exact=True))
    clicks.click(page.get_by_role("link", name="Invite a person"))
    page.get_by_label("Name").fill("ida")
    page.get_by_label("Role").select_option("operator")
    page.get_by_label("Reason").fill("joins the team")
    clicks.click(page.get_by_role("button", name="Invite"))
    assert clicks.count == 4
    link = page.locator("#link").inner_text()
    assert not wrong_in(page, VIEWS)

    invited = enter(None)
    invited.add_init_script(AXE_SCRIPT)
    invited.goto(link)
    expect(invited.locator("h1")).to_have_text("Choose a password")
    assert link.split("/")[-2] not in invited.url
    assert not wrong_in(invited, VIEWS)
    for label in ("New password", "New password confirmation"):
        invited.get_by_label(label, exact=True).fill("seven quiet words")
    invited.get_by_role("button", name="Set password").click()
    expect(invited.locator("#notices")).to_contain_text("Sign in as ida.")
    invited.get_by_label("Username").fill("ida")
    invited.get_by_label("Password").fill("seven quiet words")
    invited.get_by_role("button", name="Sign in").click()
    expect(invited.locator(".who")).to_contain_text("operator")
    with enter.expects(410):
        invited.goto(link)
        expect(invited.locator("h1")).to_have_text("This link is no longer valid")
        assert not wrong_in(invited, VIEWS)

    clicks.click(page.get_by_role("link", name="Done"))
    clicks.click(page.get_by_role("link", name="ida", exact=True))
    page.locator("#state_reason").fill("leaves the team")
    clicks.click(page.get_by_role("button", name="Disable"))
    expect(page.locator("#notices")).to_contain_text("ida is disabled")
    assert clicks.count == 7
    invited.goto("/audit/")
    expect(invited.locator("h1")).to_have_text("Sign in")


def test_a_key_with_a_scope_is_made_and_revoked_in_three_clicks(enter: Enter) -> None:
    page = enter("administrator")
    page.goto("/")
    settled(page)
    clicks = Clicks(page)
    clicks.click(page.get_by_role("link", name=re.compile("^Settings")))
    page.get_by_label("Name").fill("tour agent")
    page.get_by_label("Scope", exact=True).fill("/user/mara")
    page.keyboard.press("Escape")
    clicks.click(page.get_by_role("button", name="Create key"))
    key = ApiKey.objects.get(secret_hash=secret_hash(page.locator("#secret").inner_text()))
    assert (key.name, key.scope, key.revoked_at) == ("tour agent", "/user/mara", None)
    page.get_by_label("Reason").fill("tour is over")
    clicks.click(page.get_by_role("button", name="Revoke this key"))
    expect(page.locator("#notices")).to_contain_text("is revoked")
    assert clicks.count == 3
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert AuditEvent.objects.get(action="key_revoked").reason == "tour is over"


def test_what_is_shown_for_a_new_key_can_be_pasted(enter: Enter, tmp_path: Path) -> None:
    page = enter("administrator")
    page.goto("/keys/new/")
    page.get_by_label("Name").fill("pasted")
    page.get_by_label("Scope", exact=True).fill("/pasted")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Create key").click()
    lines = {name: page.locator(f"#snippet-{name}").text_content() or "" for name in ("curl", "python", "mcp")}
    said = subprocess.run(["bash", "-ec", lines["curl"]], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "Mara drives an old blue Volvo." in said
    client = httpx2.get(f"{page.url.partition('/keys/')[0]}/v1/client.py").text
    (tmp_path / "memstate.py").write_text(client)
    said = subprocess.run(
        [sys.executable, "-c", lines["python"]], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "Volvo" in said
    assert page.locator("#secret").inner_text() in lines["mcp"]
