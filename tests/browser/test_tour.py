"""The tour: from the sign-in to why a topic was archived, back with it, a threshold looser, the forecast, a run, and
the run undone. The pages on the way are sound, as ``test_pages.py`` asks of every page."""

import re

from playwright.sync_api import Page, expect

from memory.models import ForgetRun, PolicyVersion, Topic
from tests.browser.axe import VIEWS, wrong_in
from tests.browser.conftest import Enter
from tests.browser.store import PASSWORD
from tests.browser.watch import settled

RUN = re.compile(r"/runs/[0-9a-f-]{36}/$")


def sign_in(page: Page, name: str, to: str = "/") -> None:
    page.goto(to)
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile(re.escape(to) + "$"))


def line_of(page: Page, at: int) -> tuple[float, float]:
    """Return where on the page a threshold stands, by its place among the three."""
    box = page.locator(f"#salience-form .shapelayer path[data-index='{at}']").first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def sound(page: Page) -> None:
    assert not wrong_in(page, VIEWS[:1])


def test_from_sign_in_to_undo(enter: Enter) -> None:
    page = enter(None)
    sign_in(page, "operator")
    sound(page)
    page.goto("/duplicates/")
    sound(page)

    page.goto("/lookup/")

    # Why was this archived?
    page.get_by_role("combobox", name="Search").fill("rung:archived")
    page.get_by_role("combobox", name="Search").press("Enter")
    hit = page.locator("[data-row] [data-open]").first
    title = hit.inner_text()
    hit.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    why = page.locator("#why")
    expect(why.get_by_role("heading", level=2)).to_have_text("Why it is archived")
    assert why.locator(".topic-sentence").count() >= 1
    topic_id = page.url.rstrip("/").rpartition("/")[2]
    settled(page)
    expect(page.locator("#salience svg.main-svg").first).to_be_visible()
    sound(page)

    # Bring it back, and see that this can be taken back as well.
    page.get_by_role("button", name="Restore").click()
    notice = page.locator("#notices .notice.success")
    expect(notice).to_be_visible()
    expect(notice.get_by_role("button", name="Undo")).to_be_visible()
    assert Topic.objects.get(pk=topic_id).rung == 0
    notice.get_by_role("button", name="Undo").click()
    page.wait_for_load_state()
    assert Topic.objects.get(pk=topic_id).rung == 3
    settled(page)

    # Loosen a threshold: by the mouse, then to the number.
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Tuning").click()
    settled(page)
    number = page.locator("#salience-form input[name=forget_salience_threshold]")
    x, y = line_of(page, 0)
    said = page.locator("#salience-said")
    at_first = said.inner_text()
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(x + 4 * step, y)
    page.mouse.up()
    expect(number).not_to_have_value("")
    dragged = float(number.input_value())
    assert dragged > 0.05
    expect(said).not_to_have_text(at_first)
    settled(page)
    after_drag = line_of(page, 0)[0]
    assert after_drag > x + 10, "the line stays where it was dropped"
    with page.expect_response(
        lambda reply: "/salience/" in reply.url and "forget_salience_threshold=0.11" in reply.url
    ):
        number.fill("0.11")
    settled(page)
    expect(page.locator(".affected li").first).to_be_visible()
    newly = page.locator("#salience-effect tr:has(.rung-archived)").first.locator("td")
    now, draft = (int(newly.nth(place).inner_text().replace(",", "")) for place in (0, 1))
    assert draft > now
    sound(page)

    # Save with a reason, dry run, apply, undo.
    page.locator("#save").get_by_label("Reason").fill("less room for what nobody needs")
    page.get_by_role("button", name="Save as new version").click()
    expect(page.locator("#notices .notice.success").first).to_be_visible()
    version = PolicyVersion.objects.filter(scope="/").latest("number")
    assert version.values["forget_salience_threshold"] == 0.11
    assert (version.author, version.reason) == ("user:operator", "less room for what nobody needs")
    settled(page)
    page.get_by_role("button", name="Dry run").click()
    expect(page).to_have_url(RUN)
    run = ForgetRun.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])
    assert (run.status, run.dry_run) == ("planned", True)
    assert run.counts["archived"] == draft
    button = page.get_by_role("form", name="Apply this plan").get_by_role("button")
    assert f"{run.planned:,} memor" in button.inner_text()
    page.get_by_label("Reason").fill("as drafted")
    button.click()
    expect(page).to_have_url(RUN)
    settled(page)
    run.refresh_from_db()
    assert run.status == "done"
    assert run.applied == run.planned
    sound(page)
    page.get_by_role("link", name="Undo", exact=True).click()
    page.get_by_label("Reason").fill("only a tour")
    page.locator("section[aria-label=Confirm] button.primary").click()
    expect(page).to_have_url(RUN)
    settled(page)
    run.refresh_from_db()
    assert run.status == "undone"
    expect(page.get_by_role("link", name="Undo", exact=True)).to_have_count(0)

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
