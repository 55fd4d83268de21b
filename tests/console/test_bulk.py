"""Changes of many topics: what will be touched and what not is said first, exactly that is done, and undo is whole."""

import html
import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.models import AuditEvent, ForgetRun, Topic, Vitality
from tests.cast import Caller, worker_turn
from tests.console.people import statements_of
from tests.forgetting.shop import JOURNALS, dump, topics_make
from tests.waits import turns_until_done


def hidden(page: str, name: str) -> str:
    """Return the value of a hidden field."""
    found = re.search(rf'name="{name}"[^>]*value="([^"]*)"|value="([^"]*)"[^>]*name="{name}"', page)
    assert found, name
    return html.unescape(found[1] if found[1] is not None else found[2])


def confirm(client: Client, verb: str, page: str, reason: str = "by the test", **more: Any) -> Any:
    said = {name: hidden(page, name) for name in ("topics", "seen_at")}
    back = hidden(page, "next") if 'name="next" value' in page else ""
    return client.post(f"/bulk/{verb}/", {**said, "next": back, "reason": reason, **more}, follow=True)


def archive(operator: Caller, ids: list[str]) -> None:
    for topic_id in ids:
        operator.post(f"/v1/topics/{topic_id}/archive", {}).ok()


def counted() -> None:
    turns_until_done(worker_turn)


def test_all_that_match_are_restored_across_pages_and_the_undo_is_whole(op: Client, operator: Caller) -> None:
    made = topics_make(operator, 70, scope="/team")
    other = topics_make(operator, 2, scope="/other")
    archive(operator, [*made, *other])
    counted()
    before = dump(*JOURNALS, "django_session")

    page = op.get("/bulk/restore/?all=archived&scope=/team&next=/archived/%3Fscope=/team").content.decode()
    assert "Restore 70 memories" in page
    assert "the first 50 of them" in page
    done = confirm(op, "restore", page)

    assert done.redirect_chain == [("/archived/?scope=/team", 302)]
    told = done.content.decode()
    assert "70 memories are restored." in told
    assert set(Vitality.objects.filter(live=True).values_list("topic_id", flat=True)) == set(map(uuid.UUID, made))
    assert AuditEvent.objects.filter(action="restored", reason="by the test", actor="user:operator").count() == 70
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', told)
    again = op.post(undo, {"next": "/archived/?scope=/team"}, follow=True)
    assert "Undone: 70 memories became archived again." in again.content.decode()
    counted()
    assert dump(*JOURNALS, "django_session") == before


def test_the_page_says_what_will_not_be_touched_and_why(op: Client, operator: Caller) -> None:
    archived, active = operator.remember("The harbor"), operator.remember("The bakery")
    archive(operator, [archived])
    unknown = uuid.UUID(int=5)
    page = op.get(f"/bulk/restore/?topic={archived}&topic={active}&topic={unknown}&topic={archived}").content.decode()
    assert "Restore 1 memory<" in page
    assert "Unchanged: 1. It is neither archived nor released." in page
    assert "Unchanged: 1. This memory does not exist." in page
    assert f"/topics/{active}/" in page
    done = confirm(op, "restore", page).content.decode()
    assert "1 memory is restored." in done
    assert Vitality.objects.filter(live=True).count() == 2


def test_what_changed_after_the_page_was_shown_is_left_out_and_told(op: Client, operator: Caller) -> None:
    one, restored, edited = (operator.remember(title) for title in ("one", "restored", "edited"))
    archive(operator, [one, restored, edited])
    page = op.get(f"/bulk/restore/?topic={one}&topic={restored}&topic={edited}").content.decode()
    operator.post(f"/v1/topics/{restored}/restore", {}).ok()
    operator.patch(f"/v1/topics/{edited}", {"title": "another"}).ok()
    done = html.unescape(confirm(op, "restore", page).content.decode())
    assert "1 memory is restored." in done
    assert "2 memories are skipped." in done
    assert "It is neither archived nor released: 1." in done
    assert "It was changed while you looked: 1." in done
    assert Topic.objects.get(id=edited).rung == 3


def test_what_begins_to_match_meanwhile_is_not_touched(op: Client, operator: Caller) -> None:
    one, late = operator.remember("one"), operator.remember("late")
    archive(operator, [one])
    page = op.get("/bulk/restore/?all=archived").content.decode()
    archive(operator, [late])
    confirm(op, "restore", page)
    assert Topic.objects.get(id=late).rung == 3


@pytest.mark.parametrize(("verb", "done"), [("archive", "archived"), ("pin", "pinned"), ("unpin", "unpinned")])
def test_every_verb_has_its_page_and_its_undo(op: Client, operator: Caller, verb: str, done: str) -> None:
    made = topics_make(operator, 3, pinned=verb == "unpin")
    counted()
    before = dump(*JOURNALS, "django_session")
    query = "&".join(f"topic={topic_id}" for topic_id in made)
    reply = confirm(op, verb, op.get(f"/bulk/{verb}/?{query}").content.decode())
    told = reply.content.decode()
    assert f"3 memories are {done}." in told
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', told)
    op.post(undo)
    counted()
    assert dump(*JOURNALS, "django_session") == before


def test_an_undo_leaves_alone_what_was_changed_since_and_says_why(op: Client, operator: Caller) -> None:
    one, other = operator.remember("one"), operator.remember("other")
    archive(operator, [one, other])
    page = op.get(f"/bulk/restore/?topic={one}&topic={other}").content.decode()
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', confirm(op, "restore", page).content.decode())
    operator.post(f"/v1/topics/{other}/pin", {}).ok()
    told = op.post(undo, follow=True).content.decode()
    assert "1 memory became archived again. 1 memory has changed since and was skipped: It was pinned since." in told


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
    assert looker.get(f"/bulk/restore/?topic={one}").status_code == 403
    assert looker.post("/bulk/restore/", {"topics": "", "seen_at": "2026-01-01"}).status_code == 403
    assert looker.post(f"/undo/{run.id}/").status_code == 403
    assert Topic.objects.get().rung == 3


def test_what_cannot_be_read_changes_nothing_and_is_told(op: Client, operator: Caller) -> None:
    operator.remember("one")
    for topics in ("", "abc", "!!!", "AAAA"):
        reply = op.post("/bulk/archive/", {"topics": topics, "seen_at": "2026-01-01T00:00Z", "reason": "x"})
        assert reply.status_code == 422, topics
    assert op.get("/bulk/archive/?topic=7").status_code == 400
    assert 'name="reason"' not in op.get("/bulk/archive/").content.decode()
    assert 'name="reason"' not in op.get("/bulk/restore/?all=archived&since=yesterday").content.decode()


def test_more_than_can_be_changed_at_once_is_refused_with_a_sentence(
    op: Client, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(operator, topics_make(operator, 3))
    monkeypatch.setattr("memory.console.pages.bulk.MAX_AT_ONCE", 2)
    reply = op.get("/bulk/restore/?all=archived")
    assert reply.status_code == 400
    assert "More than 2 memories match" in reply.content.decode()


def test_a_change_costs_the_same_for_10_and_for_200_topics(op: Client, operator: Caller) -> None:
    costs = []
    # The first change also reads that somebody was there today.
    for number in (1, 10, 200):
        query = "&".join(f"topic={topic_id}" for topic_id in topics_make(operator, number))
        page = op.get(f"/bulk/archive/?{query}").content.decode()
        look = statements_of(lambda query=query: op.get(f"/bulk/archive/?{query}"))  # type: ignore[misc]
        said = {name: hidden(page, name) for name in ("topics", "seen_at")}
        do = statements_of(lambda said=said: op.post("/bulk/archive/", {**said, "reason": ""}))  # type: ignore[misc]
        costs.append((look, do))
    assert costs[1] == costs[2]


def test_what_was_pinned_or_unpinned_after_the_page_was_shown_is_left_out_of_an_archiving(
    op: Client, operator: Caller
) -> None:
    one, pinned, unpinned, kept = (operator.remember(title) for title in ("one", "pinned", "unpinned", "kept"))
    for topic in (unpinned, kept):
        operator.post(f"/v1/topics/{topic}/pin", {}).ok()
    page = op.get(f"/bulk/archive/?topic={one}&topic={pinned}&topic={unpinned}&topic={kept}").content.decode()
    assert "Archive 4 memories" in page
    operator.post(f"/v1/topics/{pinned}/pin", {}).ok()
    operator.post(f"/v1/topics/{unpinned}/unpin", {}).ok()

    done = html.unescape(confirm(op, "archive", page).content.decode())

    assert "2 memories are archived." in done
    assert "It was pinned while you looked: 1. It was unpinned while you looked: 1." in done
    assert {str(topic) for topic in Topic.objects.filter(rung=3).values_list("id", flat=True)} == {one, kept}


# --- At once ---------------------------------------------------------------------------------------------------------


def picked(client: Client, verb: str, topics: list[str], **more: Any) -> Any:
    """Post what a list posts: the topics that were picked, and when it was shown."""
    seen_at = timezone.now().isoformat()
    return client.post(f"/bulk/{verb}/", {"topic": topics, "seen_at": seen_at, "next": "/archived/", **more})


@pytest.mark.parametrize("verb", ["archive", "pin", "unpin", "restore"])
def test_what_can_be_undone_is_done_at_once_to_what_was_picked(op: Client, operator: Caller, verb: str) -> None:
    made = topics_make(operator, 3, pinned=verb == "unpin")
    if verb == "restore":
        archive(operator, made)
    counted()
    before = dump(*JOURNALS, "django_session")
    assert picked(op, verb, made).headers["Location"] == "/archived/"
    assert dump(*JOURNALS, "django_session") != before
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', op.get("/archived/").content.decode())
    op.post(undo)
    counted()
    assert dump(*JOURNALS, "django_session") == before


@pytest.mark.parametrize(("verb", "more"), [("restore", {"all": "archived"}), ("pin", {"seen_at": ""})])
def test_the_rest_is_asked_first_and_no_token_is_in_the_address(
    op: Client, operator: Caller, verb: str, more: dict[str, str]
) -> None:
    made = topics_make(operator, 2)
    archive(operator, made)
    events = AuditEvent.objects.count()
    address = picked(op, verb, made, csrfmiddlewaretoken="x" * 64, scope="/", **more).headers["Location"]
    assert address.startswith(f"/bulk/{verb}/?")
    assert "csrf" not in address
    assert ("topic=" in address) == ("all" not in more)
    assert AuditEvent.objects.count() == events
    assert "2 memories" in op.get(address).content.decode()


def test_what_was_changed_after_the_list_was_shown_is_skipped(op: Client, operator: Caller) -> None:
    one, edited = operator.remember("one"), operator.remember("edited")
    seen_at = timezone.now().isoformat()
    operator.patch(f"/v1/topics/{edited}", {"title": "another"}).ok()
    done = op.post("/bulk/archive/", {"topic": [one, edited], "seen_at": seen_at}, follow=True).content.decode()
    assert "It was changed while you looked: 1." in done
    assert (Topic.objects.get(id=one).rung, Topic.objects.get(id=edited).rung) == (3, 0)


def test_a_list_that_changes_in_place_follows_the_redirect_itself(op: Client, operator: Caller) -> None:
    one = operator.remember("one")
    headers = {"HX-Request": "true", "HX-Target": "content"}
    reply = op.post(f"/topics/{one}/archive/", {"next": "/lookup/"}, headers=headers)
    assert (reply.status_code, reply.headers["Location"]) == (302, "/lookup/")
    reply = op.post(f"/topics/{one}/archive/", {"next": "/lookup/"}, headers=headers)
    assert (reply.status_code, reply.headers["HX-Reselect"]) == (409, ".notice")
