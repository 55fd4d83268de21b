"""After an undo, the store is as before, and each page says what is true now."""

import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.console.queries.scope_tree import scope_children
from memory.models import ForgetAction, Topic, Vitality
from tests.cast import Caller, Clock
from tests.console.test_forget import listed, text_of
from tests.erasure.test_forget import forget, found, remember

pytestmark = pytest.mark.django_db

BOTH = "Nils lives in Bergen and works as a glazier."
PART = "Nils works as a glazier."


def undo(client: Client, page: str) -> str:
    """Press the only Undo button on a page, and return the text of the next page."""
    (address,) = set(re.findall(r'action="(/undo/[^"]+)"', page))
    return text_of(client.post(address, {"next": "/"}, follow=True))


@pytest.fixture
def released(operator: Caller, clock: Clock) -> str:
    """Return the run that released one of two facts of a topic."""
    clock.stop()
    remember(operator, BOTH)
    return str(forget(operator, query="Nils lives in Bergen", dry_run=False)["run_id"])


@pytest.mark.meaning
def test_the_undo_of_a_release_releases_the_part_that_was_kept(operator: Caller, clock: Clock, released: str) -> None:
    assert found(operator, BOTH) == {PART}  # The part is used, too.
    clock.forward(minutes=1)

    undone = operator.post(f"/v1/runs/{released}/undo", {}).ok()

    assert (undone["restored"], undone["conflicts"]) == (1, [])
    assert found(operator, BOTH) == {BOTH}
    assert Topic.objects.filter(released_at__isnull=False, links_out__kind="rest_of").count() == 1


@pytest.mark.meaning
def test_a_kept_part_is_counted_once_and_not_after_the_undo(op: Client, operator: Caller, released: str) -> None:
    def gained() -> set[int]:
        # The change on Home, and the growth of the scopes.
        scopes, _next = scope_children("/", sort="size", principal=SYSTEM, now=timezone.now(), cursor=None, limit=9)
        return {op.get("/").context["gained"], sum(scope.growth for scope in scopes)}

    assert gained() == {1}

    operator.post(f"/v1/runs/{released}/undo", {}).ok()

    assert gained() == {1}
    (row,) = op.get("/released/").context["rows"]
    assert (str(row.run_id), row.because, row.why) == (released, None, {"by": "undo"})


@pytest.mark.meaning
def test_a_kept_part_that_was_written_to_stays(operator: Caller, clock: Clock, released: str) -> None:
    (part,) = Topic.objects.filter(links_out__kind="rest_of").values_list("pk", flat=True)
    clock.forward(minutes=1)
    operator.post(
        "/v1/ingest",
        {"placement": "extend_topic", "topic_id": str(part), "fields": [{"name": "note", "value": "He is 40."}]},
    ).ok()

    undone = operator.post(f"/v1/runs/{released}/undo", {}).ok()

    assert [conflict["topic_id"] for conflict in undone["conflicts"]] == [str(part)]
    assert Topic.objects.get(pk=part).released_at is None


@pytest.mark.meaning
def test_the_pages_of_a_release_say_that_it_was_undone(op: Client, operator: Caller) -> None:
    remember(operator, BOTH)
    page = listed(op, query="Nils lives in Bergen")
    done = op.post(page, {}, follow=True).content.decode()
    assert "kept a part of 1" in text_of(op.get(f"/runs/{op.get(page).context['run']['run_id']}/"))

    said = undo(op, done)

    assert "1 memory became active again. 1 memory that the run had made was released." in said
    now = op.get(page)
    assert now.context["run"]["status"] == "undone"
    assert "no longer returned" not in text_of(now)
    assert not re.search(r'action="/undo/', now.content.decode())
    assert "release undone" in text_of(op.get("/forget/"))


@pytest.mark.parametrize(
    ("verbs", "became"),
    [
        (["archive"], "active"),
        (["archive", "restore"], "archived"),
        (["release"], "active"),
        (["archive", "release"], "archived"),
        (["pin"], "unpinned"),
        (["pin", "unpin"], "pinned"),
        (["archive", "pin"], "unpinned"),
    ],
)
def test_the_notice_of_an_undo_says_what_the_memory_became(
    op: Client, operator: Caller, clock: Clock, verbs: list[str], became: str
) -> None:
    topic = operator.remember("Tea")
    clock.stop()
    for verb in verbs:
        clock.forward(minutes=1)
        before = Vitality.objects.values().get(pk=topic)
        page = op.post(f"/topics/{topic}/{verb}/", {"reason": "a slip"}, follow=True).content.decode()

    assert f"1 memory became {became} again." in undo(op, page)
    assert Vitality.objects.values().get(pk=topic) == before


@pytest.mark.meaning
def test_the_kept_part_does_not_count_as_released_by_an_agent(operator: Caller, released: str) -> None:
    actions = ForgetAction.objects.filter(run_id=uuid.UUID(released)).order_by("place")
    assert [(action.action, action.changes.get("released", False)) for action in actions] == [
        ("released", True),
        ("kept_part", False),
    ]


def test_the_address_of_a_purged_memory_leads_to_its_receipt(op: Client, looker: Client, operator: Caller) -> None:
    topic = operator.remember("Tea")
    receipt = forget(operator, "purge", filter={"ids": [topic]}, dry_run=False, reason="asked for")["receipt_id"]

    page = looker.get(f"/topics/{topic}/")

    assert page.status_code == 410
    assert f"/forget/receipts/{receipt}/" in page.content.decode()
    assert looker.get(f"/topics/{uuid.uuid4()}/").status_code == 404
