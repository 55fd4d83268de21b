"""The assistant in a browser: asked, watched at its calls, followed to a topic, and taken back; with and without
script. Without a model, the page says how to come by one."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from memory.models import Conversation, ConversationTurn, StudyJob, Topic
from tests.browser.axe import findings
from tests.browser.conftest import NARROW, PATIENCE, Enter
from tests.browser.watch import overflow, settled
from tests.llm.server import Model, calling

TALK = re.compile(r"/assistant/[0-9a-f-]{36}/(#last)?$")
TITLE = "The regatta of the blue ferries"


@pytest.fixture
def patient(settings: Any) -> Iterator[threading.Event]:
    """A model may take its time until this is set: what is seen meanwhile is no matter of seconds."""
    settings.MEMSTATE_LLM_TIMEOUT_SECONDS = 30.0
    event = threading.Event()
    yield event
    event.set()
    wait_for_end()


def held(until: threading.Event, said: str) -> Callable[[object], str]:
    """An answer that waits."""
    return lambda _asked: said if until.wait(25) else "too late"


def remembers(until: threading.Event) -> list[object]:
    """A model that stores a topic, and takes its time for the last word."""
    made = {"title": TITLE, "fields": [{"name": "day", "value": "4 July"}]}
    return [
        {"intent": "ingest"},
        calling(("query", {"q": "regatta"})),
        calling(("new_topic", made)),
        held(until, "I have remembered the regatta."),
    ]


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_from_a_message_to_its_undo(enter: Enter, model: Model, patient: threading.Event, script: bool) -> None:
    page = enter("operator", java_script_enabled=script)
    model.answers(*remembers(patient))
    page.goto("/assistant/")
    page.get_by_role("textbox", name="Message").fill("Remember that the regatta of the blue ferries is on 4 July.")
    page.get_by_role("button", name="Send").click()
    expect(page).to_have_url(TALK)
    if script:
        # What it does is seen as it does it.
        expect(page.locator(".talk-call").nth(1)).to_contain_text("Remembered something new")
        expect(page.locator(".talk-working")).to_be_visible()
    patient.set()
    if not script:
        # The page is loaded anew by itself; a browser that only acts as if it had no script does not.
        wait_for_end()
        page.reload()
    expect(page.locator(".talk-reply")).to_contain_text("I have remembered the regatta.")
    written = page.locator("#written")
    expect(written).to_contain_text("1 new memory, 1 value.")
    page.locator(".talk-call summary").nth(1).click()
    expect(page.locator(".talk-arguments").nth(1)).to_contain_text("4 July")
    if script:
        sound(page)
    page.locator(".talk-call").nth(1).get_by_role("link", name=TITLE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    page.go_back()
    written.get_by_role("link", name="Undo all").click()
    expect(page.locator("main")).to_contain_text("1 change will be undone")
    if script:
        sound(page)
    page.get_by_label("Reason").fill("it was the red ferries")
    page.get_by_role("button", name="Undo 1 change").click()
    notice = page.locator("#notices .notice.success")
    expect(notice).to_contain_text("1 memory is released")
    assert Topic.objects.get(title=TITLE).released_at
    expect(written).to_contain_text("Undone")
    notice.get_by_role("button", name="Undo").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("became active again")
    assert Topic.objects.get(title=TITLE).released_at is None


def test_a_second_message_appears_below_the_first(enter: Enter, model: Model, patient: threading.Event) -> None:
    page = enter("operator", viewport=NARROW)
    model.answers({"intent": "query"}, "One.", {"intent": "query"}, held(patient, "Two."))
    page.goto("/assistant/")
    page.get_by_role("textbox", name="Message").fill("First?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".talk-reply")).to_have_count(1)
    page.get_by_role("textbox", name="Message").fill("Second?")
    page.get_by_role("textbox", name="Message").press("Control+Enter")
    expect(page.locator(".talk-user").nth(1)).to_contain_text("Second?")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    expect(page.locator(".talk-working")).to_be_visible()
    assert overflow(page) == []
    # A third one has to wait, and is not lost.
    page.get_by_role("textbox", name="Message").fill("Third?")
    with enter.expects(422):
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#say .errorlist [data-code=busy]")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("Third?")
    patient.set()
    expect(page.locator(".talk-reply").nth(1)).to_contain_text("Two.")
    assert ConversationTurn.objects.filter(conversation=Conversation.objects.latest("moved_at")).count() == 2


def test_a_study_is_seen_at_work_and_stopped(enter: Enter, model: Model) -> None:
    page = enter("operator")
    page.goto("/assistant/")
    text = "The ferry line was founded in 1911 by Ida Holm. " * 400
    page.get_by_role("textbox", name="Message").fill(text)
    page.get_by_label("Intent").select_option("ingest")
    page.get_by_role("button", name="Send").click()
    study = page.locator(".talk-study-card")
    expect(study).to_contain_text("0 of 4 parts read")
    job = StudyJob.objects.get(status="working")
    StudyJob.objects.filter(pk=job.pk).update(done=2)
    expect(study).to_contain_text("2 of 4 parts read")
    expect(study.get_by_role("progressbar")).to_be_visible()
    sound(page)
    study.get_by_role("button", name="Stop").click()
    expect(page.locator("#notices .notice.success")).to_contain_text("The study is stopped")
    expect(study.get_by_role("button", name="Resume")).to_be_visible()


def test_without_a_model_the_page_says_how_to_come_by_one(enter: Enter) -> None:
    page = enter("operator", viewport=NARROW, color_scheme="dark")
    page.goto("/assistant/")
    expect(page.locator("h2#none-title")).to_be_visible()
    expect(page.locator("main")).to_contain_text("MEMSTATE_LLM_MODEL=")
    sound(page)
    page.locator("main").get_by_role("link", name="Model").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Model")


def wait_for_end() -> None:
    """Wait until no message is at work."""
    until = time.monotonic() + PATIENCE / 1000
    while ConversationTurn.objects.filter(ended="working").exists() and time.monotonic() < until:
        time.sleep(0.1)


def sound(page: Page) -> None:
    """The page has nothing that sticks out, and axe finds nothing."""
    settled(page)
    assert overflow(page) == []
    assert findings(page) == []
