"""Every page, with the demo in the store: nothing complains, nothing sticks out, nothing jumps, charts are drawn, and
axe finds nothing: wide and light, and with ``MEMSTATE_TEST_VIEWS=1`` also narrow and dark."""

import os
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django_q.models import Schedule

from memory.access.principal import SYSTEM
from memory.core.ids import uuid7
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.erasure.purge import topics_purge
from memory.models import AccessLog, ApiKey, Conversation, DuplicatePair, ForgetRun, StudyJob, Topic
from memory.notifications.targets import target_add
from memory.stores.models import Store
from memory.transfer.importing import import_offer
from memory.transfer.uploads import uploads_folder
from memory.transfer.work import import_work
from tests.browser.axe import AXE_SCRIPT, VIEWS, wrong_in
from tests.browser.conftest import Enter
from tests.browser.watch import settled, shifts
from tests.cast import Caller, in_process, secret_of
from tests.console.table import Address, pages

# A page that refuses in a sentence is a page too: there is nothing to apply in a run that is done.
ANSWERS = (200, 409)
QUESTIONS = {"q": "Mara"}
# Topics that a step can be taken with; everything else is shown of an archived one.
_ACTIVE = {"rung": 0, "vitality__pinned": False}
STANDING: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("topic_edit", "topic_pin", "topic_archive", "topic_release", "topic_supersede"), _ACTIVE),
    "topic_unpin": {"vitality__pinned": True},
}


def url_of(address: Address) -> str:
    """Return an address with something to see: a topic that the step can be taken with, the last run that did
    something."""
    topics = Topic.objects.filter(**STANDING.get(address.name, {"rung": 3})).order_by("created_at")
    topic = topics.filter(fields__isnull=False)[0]
    query = dict(QUESTIONS) if address.name.startswith("lookup") else {}
    if address.name == "topic_field":
        query = {"name": topic.fields.all()[0].name}
    known = {
        "topic_id": topic.pk,
        "run_id": ForgetRun.objects.filter(status="done", event="cron", applied__gt=0).latest("created_at").pk,
        "key_id": ApiKey.objects.order_by("created_at")[0].pk,
        "conversation_id": Conversation.objects.get(scope="/").pk,
        "place": 1,
        "pair_id": DuplicatePair.objects.filter(state="open").order_by("found_at", "id")[0].pk,
        "person_id": User.objects.get(username="operator").pk,
        "schedule_id": Schedule.objects.get(func="memory.jobs.tasks.upkeep").pk,
        **forgotten(address.arguments),
        **asked(address.arguments),
        **customers(address.arguments),
    }
    return address.url(query=query, **{name: value for name, value in known.items() if name in address.arguments})


def asked(arguments: tuple[str, ...]) -> dict[str, Any]:
    """Ask, if an address is about a recall: those of the demo have no scores."""
    if "access_id" not in arguments:
        return {}
    Caller(in_process, secret_of("agent")).query("Where does Mara live?")
    return {"access_id": AccessLog.objects.latest("id").pk}


def customers(asked: tuple[str, ...]) -> dict[str, Any]:
    """Make a store without tables, if an address asks for one."""
    if "store_name" not in asked:
        return {}
    return {"store_name": Store.objects.create(name="acme", created_at=timezone.now()).pk}


def forgotten(asked: tuple[str, ...]) -> dict[str, Any]:
    """Make what the demo has none of, if an address asks for it: a list to say yes to, a receipt of a purge."""
    now = timezone.now()
    if "listing_id" in asked:
        wanted = ForgetFilter(kinds=("finding", "gotcha"), older_than="30d")
        return {"listing_id": forget_list("purge", wanted=wanted, reason="for the test", principal=SYSTEM, now=now).id}
    if "extraction_id" in asked:
        text = {"content": "Mara lives in Oslo. She has a cat.", "scope": "/extracted", "store": True}
        agent = Caller(in_process, secret_of("agent"))
        return {"extraction_id": agent.post("/v1/extract?background=1", text).json["job_id"]}
    if "import_id" in asked:
        # Checked, with something to lose, and not brought yet.
        file = uploads_folder() / "memories.json"
        file.write_text('[{"memory": "Ida plays the hurdy-gurdy", "hash": "5d41", "user_id": "ida"}]')
        made = import_offer(file, principal=SYSTEM, now=now, enqueue=lambda _job: None, source="mem0", scope="/ida")
        return {"import_id": import_work(made.pk, clock=timezone.now, seconds=60).pk}
    if "target_id" in asked:
        target, _secret = target_add(
            kind="webhook",
            name="Operations",
            address="https://93.184.216.34/",
            events=["run_held"],
            regret_above=None,
            reason="for the test",
            principal=SYSTEM,
            now=now,
        )
        return {"target_id": target.pk}
    if "study_id" in asked:
        study = StudyJob.objects.create(
            id=uuid7(now_ms=int(now.timestamp() * 1000)),
            conversation=Conversation.objects.get(scope="/"),
            scope="/",
            actor="test",
            identity="test",
            role="operator",
            principal_scope="/",
            part_chars=6000,
            segments=4,
            done=1,
            created_at=now,
            moved_at=now,
        )
        return {"study_id": study.pk}
    if "receipt_id" in asked:
        # Nothing of the demo: a purge reaches every copy of it, the one too that is put back before each test.
        made = Caller(in_process, secret_of("agent")).remember("A letter nobody should have kept")
        return {"receipt_id": topics_purge([UUID(made)], reason="for the test", principal=SYSTEM, now=now).pk}
    return {}


# What fields suggest are options of a list and no page.
@pytest.mark.parametrize("address", [each for each in pages() if each.name != "suggest"], ids=str)
def test_a_page_is_sound(enter: Enter, address: Address) -> None:
    page = enter.again("administrator", script=AXE_SCRIPT)
    with enter.expects(*ANSWERS):
        reply = page.goto(url_of(address))
        assert reply is not None
        assert reply.status in ANSWERS, f"{page.url}: {reply.status}"
        settled(page)
    enter.check()

    assert page.locator("h1").count() == 1
    assert page.title().endswith("· MemState")
    assert page.title() != "· MemState"
    charts = page.locator("[data-chart]")
    for place in range(charts.count()):
        chart = charts.nth(place)
        if chart.is_visible():
            assert chart.locator("svg.main-svg").count() > 0, chart.get_attribute("data-chart")
            box = chart.bounding_box()
            assert box is not None
            assert box["height"] > 60
    moved, what = shifts(page)
    assert moved < 0.1, what
    # From here on axe is in the page, whose doings are not ours.
    assert not wrong_in(page, VIEWS if os.environ.get("MEMSTATE_TEST_VIEWS") else VIEWS[:1])


@pytest.mark.parametrize("name", ["sign_in", "locked", "missing"])
def test_pages_of_no_one_are_sound(enter: Enter, name: str) -> None:
    page = enter(None)
    page.add_init_script(AXE_SCRIPT)
    with enter.expects(404, 429):
        if name == "missing":
            page.goto("/not/here/")
        else:
            page.goto("/sign-in/")
        for _ in range(11 if name == "locked" else 0):
            page.fill("#id_username", "mallory")
            page.fill("#id_password", "a guess")
            page.press("#id_password", "Enter")
            page.wait_for_load_state()
            if page.locator("h1").inner_text() == "Sign-in locked":
                break
        else:
            assert name != "locked"
    settled(page)
    enter.check()
    assert not wrong_in(page, VIEWS)
