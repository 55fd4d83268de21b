"""Scopes, agents, recalls and erasure by a person's steps, with the clicks counted from Home."""

import re

from playwright.sync_api import Page, expect

from memory.jobs import tasks
from memory.models import ErasureCheck
from tests.browser.clicks import Clicks
from tests.browser.conftest import Enter
from tests.browser.watch import settled
from tests.cast import Caller, in_process, secret_of


def begin(page: Page) -> Clicks:
    page.goto("/")
    settled(page)
    return Clicks(page)


def test_all_that_an_agent_wrote_is_two_clicks_away(enter: Enter) -> None:
    agent = Caller(in_process, secret_of("agent"))
    agent.remember("The agent wrote this")
    agent.query("What did the agent write?")
    page = enter("reader")
    by_recall = begin(page)
    by_recall.click(page.get_by_role("link", name="Recalls", exact=True).first)
    by_recall.click(page.get_by_role("link", name="agent", exact=True).first)
    expect(page).to_have_url(re.compile(r"/callers/\?name=key%3Aagent"))
    expect(page.locator("section#wrote")).to_contain_text("The agent wrote this")
    expect(page.locator("section#asked")).to_contain_text("What did the agent write?")
    assert by_recall.count == 2
    # An agent that has asked nothing lately is found by its name.
    by_name = begin(page)
    by_name.click(page.get_by_role("link", name="Scopes", exact=True))
    page.get_by_label("Open an agent").fill("key:agent")
    by_name.click(page.get_by_role("button", name="Open agent"))
    expect(page.locator("section#wrote")).to_contain_text("The agent wrote this")
    assert by_name.count == 2


def test_what_a_query_returned_is_two_clicks_away(enter: Enter) -> None:
    found = Caller(in_process, secret_of("agent")).query("Where does Mara live?", top_k=3)["candidates"]
    page = enter("reader")
    clicks = begin(page)
    clicks.click(page.get_by_role("link", name="Recalls", exact=True).first)
    clicks.click(page.get_by_role("link", name="Where does Mara live?", exact=True).first)
    titles = page.locator("section[aria-labelledby=then] td.title a").all_inner_texts()
    assert titles == [candidate["title"] for candidate in found]
    assert clicks.count == 2
    # A third shows then and now.
    clicks.click(page.get_by_role("link", name="Ask again now", exact=True))
    assert page.locator("section[aria-labelledby=now] td.title a").all_inner_texts() == titles


def test_a_person_is_forgotten_and_verified_in_four_clicks(enter: Enter) -> None:
    agent = Caller(in_process, secret_of("agent"))
    agent.remember("Contact of Quirina", summary="Write to quirina@example.org about the lease.")
    page = enter("operator")
    clicks = begin(page)
    clicks.click(page.get_by_role("link", name="Erasure", exact=True))
    clicks.click(page.get_by_role("radio", name="Purge"))
    page.get_by_label("Text", exact=True).fill("quirina@example.org")
    page.get_by_label("Reason").fill("asked by the person")
    clicks.click(page.get_by_role("button", name="List matching memories"))
    page.get_by_label("Type “purge 1” to confirm").fill("purge 1")
    clicks.click(page.get_by_role("button", name="Purge 1 memory"))
    expect(page.locator("#verification progress")).to_be_visible()
    tasks.erasure_check_continue(str(ErasureCheck.objects.get().pk))
    # By itself, as soon as the worker is done.
    expect(page.locator("#verification")).to_contain_text("Nothing is left")
    assert clicks.count == 4


def test_a_verification_is_followed_without_script(enter: Enter) -> None:
    agent = Caller(in_process, secret_of("agent"))
    agent.remember("Contact of Quirina", summary="Write to quirina@example.org about the lease.")
    page = enter("operator", java_script_enabled=False)
    page.goto("/forget/?verb=purge&query=quirina@example.org&reason=asked")
    page.get_by_role("button", name="List matching memories").click()
    page.get_by_label("Type “purge 1” to confirm").fill("purge 1")
    page.get_by_label("Verify afterwards").uncheck()
    page.get_by_role("button", name="Purge 1 memory").click()
    expect(page.locator("#verification")).to_contain_text("Not verified yet")
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator("#verification")).to_contain_text("rows read")
    tasks.erasure_check_continue(str(ErasureCheck.objects.get().pk))
    # The page reloads itself while a verification is at work.
    expect(page.locator("#verification")).to_contain_text("Nothing is left")


def test_the_tree_leads_down_and_back_and_keeps_its_order(enter: Enter) -> None:
    page = enter("reader")
    clicks = begin(page)
    clicks.click(page.get_by_role("link", name="Scopes", exact=True))
    clicks.click(page.get_by_role("columnheader", name="Scope").get_by_role("link"))
    expect(page.get_by_role("columnheader", name="Scope")).to_have_attribute("aria-sort", "ascending")
    clicks.click(
        page.get_by_role("row").filter(has=page.get_by_role("link", name="/user", exact=True)).locator(".scope-below")
    )
    clicks.click(page.get_by_role("link", name="/mara", exact=True))
    expect(page.get_by_role("heading", level=1)).to_have_text("/user/mara")
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile(r"sort=name"))


def test_new_recalls_appear_by_themselves(enter: Enter) -> None:
    page = enter("reader")
    page.clock.install()
    page.goto("/recalls/?q=sledge")
    expect(page.locator("main")).to_contain_text("No recall matches")
    agent = Caller(in_process, secret_of("agent"))
    agent.query("Where is the sledge?")
    page.clock.run_for(11_000)
    expect(page.get_by_role("link", name="Where is the sledge?")).to_have_count(1)
    agent.query("Is the sledge red?")
    page.clock.run_for(11_000)
    expect(page.get_by_role("link", name="Is the sledge red?")).to_have_count(1)
