"""Changes of many topics: selected ones at once, all that match as a plan; each can be undone."""

import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from memory.models import AuditEvent, ForgetRun, Topic, Vitality
from tests.cast import Caller, worker_turn
from tests.console.people import posted, statements_of
from tests.forgetting.shop import JOURNALS, dump, topics_make
from tests.waits import turns_until_done


def archive(operator: Caller, ids: list[str]) -> None:
    for topic_id in ids:
        operator.post(f"/v1/topics/{topic_id}/archive", {}).ok()


def counted() -> None:
    turns_until_done(worker_turn)


def test_all_that_match_are_planned_restored_and_undone(op: Client, operator: Caller) -> None:
    made = topics_make(operator, 70, scope="/team")
    other = topics_make(operator, 2, scope="/other")
    archive(operator, [*made, *other])
    counted()
    before = dump(*JOURNALS, "django_session")

    page = posted(op, "restore", [], all="archived", scope="/team")
    (address, _status) = page.redirect_chain[0]
    assert address.startswith("/runs/")
    got = page.content.decode()
    assert "It would restore 70." in got
    assert "Apply: 70 memories" in got
    assert dump(*JOURNALS, "django_session") == before
    archive(operator, topics_make(operator, 1, scope="/team"))
    counted()
    late = dump(*JOURNALS, "django_session")

    got = op.post(f"{address}apply/", {"reason": "by the test"}, follow=True).content.decode()
    assert "Restored 70." in got
    assert set(Vitality.objects.filter(live=True).values_list("topic_id", flat=True)) == set(map(uuid.UUID, made))
    assert AuditEvent.objects.filter(action="restored", reason="by the test", actor="user:operator").count() == 70
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', got)
    again = op.post(undo, {"next": address}, follow=True)
    assert "Undone: 70 memories became archived again." in again.content.decode()
    counted()
    assert dump(*JOURNALS, "django_session") == late


def test_what_cannot_be_changed_is_left_out_and_reported(op: Client, operator: Caller) -> None:
    archived, active = operator.remember("The harbor"), operator.remember("The bakery")
    archive(operator, [archived])
    got = posted(op, "restore", [archived, active, str(uuid.UUID(int=5)), archived]).content.decode()
    assert "1 memory is restored." in got
    assert "It is neither archived nor released: 1." in got
    assert "This memory does not exist: 1." in got
    assert Vitality.objects.filter(live=True).count() == 2
    got = posted(op, "restore", [active]).content.decode()
    assert "1 memory is skipped." in got
    assert "undo/" not in got


def test_an_undo_leaves_alone_what_was_changed_since_and_says_why(op: Client, operator: Caller) -> None:
    one, other = operator.remember("one"), operator.remember("other")
    archive(operator, [one, other])
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', posted(op, "restore", [one, other]).content.decode())
    operator.post(f"/v1/topics/{other}/pin", {}).ok()
    got = op.post(undo, follow=True).content.decode()
    assert "1 memory became archived again. 1 memory has changed since and was skipped: It was pinned since." in got


def test_an_undo_leads_to_no_other_site(op: Client, operator: Caller) -> None:
    one = operator.remember("one")
    operator.post(f"/v1/topics/{one}/pin", {}).ok()
    run = ForgetRun.objects.get()
    for wanted in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)"):
        assert op.post(f"/undo/{run.id}/", {"next": wanted}).headers["Location"] == "/archived/"
    assert op.post(f"/undo/{run.id}/", {"next": "/topics/"}).headers["Location"] == "/topics/"


def test_a_reader_cannot_restore_anything(looker: Client, operator: Caller) -> None:
    one = operator.remember("one")
    archive(operator, [one])
    run = ForgetRun.objects.get()
    assert looker.post("/bulk/restore/", {"topic": one, "seen_at": "2026-01-01"}).status_code == 403
    assert looker.post("/bulk/restore/", {"all": "archived"}).status_code == 403
    assert looker.post(f"/undo/{run.id}/").status_code == 403
    assert Topic.objects.get().rung == 3


def test_what_cannot_be_read_changes_nothing_and_is_reported(op: Client, operator: Caller) -> None:
    operator.remember("one")
    for wanted in ({"topic": "7"}, {}, {"all": "archived", "since": "yesterday"}, {"all": "unknown"}):
        assert op.post("/bulk/archive/", wanted).status_code == 400, wanted
    assert not ForgetRun.objects.exists()


def test_more_than_can_be_changed_at_once_is_refused_with_a_sentence(
    op: Client, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(operator, topics_make(operator, 3))
    monkeypatch.setattr("memory.console.pages.bulk.MAX_AT_ONCE", 2)
    reply = op.post("/bulk/restore/", {"all": "archived"})
    assert reply.status_code == 400
    assert "More than 2 memories match" in reply.content.decode()


def test_a_change_costs_the_same_for_10_and_for_200_topics(op: Client, operator: Caller) -> None:
    costs = []
    # The first change also reads that someone was there today.
    for number in (1, 10, 200):
        topics = topics_make(operator, number)
        now = timezone.now().isoformat()
        do = statements_of(lambda said={"topic": topics, "seen_at": now}: op.post("/bulk/archive/", said))  # type: ignore[misc]
        plan = statements_of(lambda said={"topic": topics}: op.post("/bulk/restore/", said))  # type: ignore[misc]
        costs.append((do, plan))
    assert costs[1] == costs[2]


@pytest.mark.parametrize("verb", ["archive", "pin", "unpin", "restore"])
def test_what_can_be_undone_is_done_at_once_to_what_was_picked(op: Client, operator: Caller, verb: str) -> None:
    made = topics_make(operator, 3, pinned=verb == "unpin")
    if verb == "restore":
        archive(operator, made)
    counted()
    before = dump(*JOURNALS, "django_session")
    done = posted(op, verb, made)
    assert done.redirect_chain == [("/archived/", 302)]
    assert dump(*JOURNALS, "django_session") != before
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', done.content.decode())
    op.post(undo)
    counted()
    assert dump(*JOURNALS, "django_session") == before


def test_what_was_changed_after_the_list_was_shown_is_skipped(op: Client, operator: Caller) -> None:
    one, edited = operator.remember("one"), operator.remember("edited")
    seen_at = timezone.now().isoformat()
    operator.patch(f"/v1/topics/{edited}", {"title": "another"}).ok()
    done = op.post("/bulk/archive/", {"topic": [one, edited], "seen_at": seen_at}, follow=True).content.decode()
    assert "It was changed since: 1." in done
    assert (Topic.objects.get(id=one).rung, Topic.objects.get(id=edited).rung) == (3, 0)


def test_a_list_that_changes_in_place_follows_the_redirect_itself(op: Client, operator: Caller) -> None:
    one = operator.remember("one")
    headers = {"HX-Request": "true", "HX-Target": "content"}
    reply = op.post(f"/topics/{one}/archive/", {"next": "/lookup/"}, headers=headers)
    assert (reply.status_code, reply.headers["Location"]) == (302, "/lookup/")
    reply = op.post(f"/topics/{one}/archive/", {"next": "/lookup/"}, headers=headers)
    assert (reply.status_code, reply.headers["HX-Reselect"]) == (409, ".notice")
