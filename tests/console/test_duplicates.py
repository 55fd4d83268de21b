"""Duplicates: pairs side by side, what is decided about them, the way back, and what many at once leave alone."""

import csv
import html
import io
import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memory.duplicates.detect import duplicates_find
from memory.models import DuplicatePair, ForgetRun, Topic
from tests.cast import Caller, worker_turn
from tests.console.people import codes_of, hidden, statements_of
from tests.forgetting.shop import JOURNALS, dump, policy_put
from tests.waits import turns_until_done

KITCHEN = "/home/kitchen"
SOUP = ("Red lentil soup", "Twenty minutes: lentils, carrot, cumin, a tin of tomatoes, lemon at the end.")
AGAIN = ("Red lentil soup", "Twenty minutes: lentils, carrot, cumin, a tin of tomatoes and lemon at the end.")
# The embedder of the tests knows equal texts only, so what says the same says it in the same words.
TWICE = (SOUP, SOUP)
PILLS = ("Migraine tablets", "Sumatriptan 50 mg at the first flicker, not more than two days a week.")
MORE = ("Migraine tablets", "Sumatriptan 100 mg at the first flicker, not more than two days a week.")
# What an undo leaves: the pair itself keeps who decided what, and that it was taken back.
APART = (*JOURNALS, "django_session", "memory_duplicatepair", "memory_duplicatelook", "memory_wakeup")


def pair_make(caller: Caller, *texts: tuple[str, str], scope: str = KITCHEN, **members: Any) -> DuplicatePair:
    """Write two topics and look; return the pair that was found."""
    for title, summary in texts:
        caller.remember(title, summary=summary, scope=scope, topic_kind="preference", **members)
    known = set(DuplicatePair.objects.values_list("pk", flat=True))
    counted()
    duplicates_find(None, now=timezone.now())
    (pair,) = DuplicatePair.objects.exclude(pk__in=known)
    return pair


def counted() -> None:
    turns_until_done(worker_turn)


def text_of(reply: Any) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", reply.content.decode())))


def live(*topic_ids: uuid.UUID) -> list[bool]:
    return [Topic.objects.get(pk=topic_id).merged_into_id is None for topic_id in topic_ids]


def test_an_empty_page_says_what_is_in_force_and_what_to_do(op: Client, looker: Client) -> None:
    got = text_of(op.get("/duplicates/"))
    assert "No open pairs" in got
    assert "92.0% alike" in got
    assert "Pairs that are found wait here for a decision." in got
    assert "Find duplicates" in got
    assert "Find duplicates" not in text_of(looker.get("/duplicates/"))
    assert "No pair matches" in text_of(op.get("/duplicates/?state=merged"))


def test_where_no_one_looks_the_empty_page_says_so(op: Client, operator: Caller) -> None:
    policy_put(operator, duplicates_mode="off")
    assert "Duplicate detection is off" in text_of(op.get("/duplicates/"))


def test_a_pair_is_listed_with_both_texts_and_what_differs_is_marked_in_words(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, SOUP, AGAIN)
    page = op.get("/duplicates/").content.decode()
    assert f"/duplicates/{pair.pk}/" in page
    assert '<ins><span class="hidden-text">only in the newer: </span>and</ins>' in page
    assert "similar" in page
    assert "same title" in page
    assert "1 pair" in text_of(op.get("/duplicates/count/"))


def test_what_holds_a_pair_is_said_in_a_sentence(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, PILLS, MORE)
    for address in ("/duplicates/", f"/duplicates/{pair.pk}/"):
        got = text_of(op.get(address))
        assert "differs" in got
        assert "50" in got
        assert "100" in got
    assert "Differences that matter" in got
    assert "Merge anyway" in got


def test_the_page_of_a_pair_says_what_a_merge_would_do(op: Client, operator: Caller) -> None:
    operator.remember(SOUP[0], summary=SOUP[1], scope=KITCHEN, values={"rating": "good"})
    operator.remember(AGAIN[0], summary=AGAIN[1], scope=KITCHEN, values={"garnish": "parsley"})
    worker_turn()
    duplicates_find(None, now=timezone.now())
    pair = DuplicatePair.objects.get()
    got = text_of(op.get(f"/duplicates/{pair.pk}/"))
    assert "What a merge would do" in got
    assert "rating" in got
    assert got.count("none") >= 2
    assert "only in the newer: parsley" in got


def test_a_merge_leads_to_the_next_pair_and_its_undo_is_whole(op: Client, operator: Caller) -> None:
    first = pair_make(operator, *TWICE)
    second = pair_make(operator, PILLS, MORE, scope="/user/mara")
    before = dump(*APART)

    reply = op.post(f"/duplicates/{first.pk}/merge/", {"reason": "the same soup"}, follow=True)

    assert reply.redirect_chain == [(f"/duplicates/{second.pk}/", 302)]
    got = reply.content.decode()
    assert "the newer memory has the content of both." in got
    first.refresh_from_db()
    assert (first.state, first.reason, first.decided_by) == ("merged", "the same soup", "user:operator")
    assert sorted(live(first.one_id, first.other_id)) == [False, True]
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', got)
    again = op.post(undo, {"next": "/duplicates/"}, follow=True)
    assert "memories became separate again" in again.content.decode()
    counted()
    assert dump(*APART) == before


def test_a_merge_is_taken_back_on_its_own_page(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, *TWICE)
    before = dump(*APART)
    reply = op.post(f"/duplicates/{pair.pk}/merge/", {"reason": ""}, follow=True)
    assert reply.redirect_chain == [("/duplicates/", 302)], "no pair is left"
    page = op.get(f"/duplicates/{pair.pk}/").content.decode()
    assert f'aria-label="Undo the decision" action="/duplicates/{pair.pk}/undo/"' in page
    done = op.post(f"/duplicates/{pair.pk}/undo/", {"reason": "they are two"}, follow=True)
    assert done.redirect_chain == [(f"/duplicates/{pair.pk}/", 302)]
    assert "Undone: the pair waits for a decision again." in text_of(done)
    counted()
    assert dump(*APART) == before


def test_an_undo_after_one_of_them_has_changed_touches_nothing_and_says_why(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, *TWICE)
    op.post(f"/duplicates/{pair.pk}/merge/", {"reason": ""})
    survivor = next(topic for topic in (pair.one_id, pair.other_id) if live(topic) == [True])
    operator.patch(f"/v1/topics/{survivor}", {"title": "Orange soup"}).ok()
    got = text_of(op.post(f"/duplicates/{pair.pk}/undo/", {"reason": ""}, follow=True))
    assert "Nothing was undone" in got
    assert live(survivor) == [True]
    assert sorted(live(pair.one_id, pair.other_id)) == [False, True]


def test_the_run_of_a_merge_previews_what_its_undo_does(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, *TWICE)
    op.post(f"/duplicates/{pair.pk}/merge/", {"reason": ""})
    pair.refresh_from_db()
    page = f"/runs/{pair.run_id}/undo/"
    operator.query(SOUP[0])
    counted()
    assert Topic.objects.get(pk=pair.survivor_id).vitality.retrieval_count
    # A retrieval is no obstacle, and the preview changes nothing.
    before = dump("django_session")
    got = op.get(page)
    assert ("2 memories restored" in text_of(got), 'name="reason"' in got.content.decode()) == (True, True)
    assert dump("django_session") == before
    operator.patch(f"/v1/topics/{pair.survivor_id}", {"title": "Orange soup"}).ok()
    got = op.get(page)
    assert ("0 memories restored" in text_of(got), 'name="reason"' in got.content.decode()) == (True, False)
    operator.post(f"/v1/runs/{pair.run_id}/undo").ok()
    assert sorted(live(pair.one_id, pair.other_id)) == [False, True]


def test_both_are_kept_and_the_notice_takes_it_back(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, PILLS, MORE)
    got = op.post(f"/duplicates/{pair.pk}/keep/", {"reason": "two doses"}, follow=True).content.decode()
    assert "Kept both of" in got
    pair.refresh_from_db()
    assert pair.state == "kept"
    duplicates_find(None, now=timezone.now())
    assert not DuplicatePair.objects.filter(state="open").exists()
    assert f'action="/duplicates/{pair.pk}/undo/"' in got
    op.post(f"/duplicates/{pair.pk}/undo/", {"next": "/duplicates/"})
    pair.refresh_from_db()
    assert pair.state == "open"


def test_the_newer_replaces_the_older(op: Client, operator: Caller, agent: Caller) -> None:
    pair = pair_make(operator, PILLS, MORE)
    older, newer = sorted((pair.one, pair.other), key=lambda topic: topic.updated_at)
    got = op.post(f"/duplicates/{pair.pk}/supersede/", {"reason": ""}, follow=True).content.decode()
    assert "Superseded" in got
    found = agent.found("Sumatriptan")
    assert str(newer.pk) in found
    assert str(older.pk) not in found
    (undo,) = re.findall(r'action="(/undo/[^"]+)"', got)
    op.post(undo)
    assert {str(older.pk), str(newer.pk)} <= set(agent.found("Sumatriptan"))


def test_who_comes_second_is_reported_that_it_is_decided(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, *TWICE)
    op.post(f"/duplicates/{pair.pk}/merge/", {"reason": ""})
    runs = ForgetRun.objects.count()
    for verb in ("merge", "keep", "supersede"):
        reply = op.post(f"/duplicates/{pair.pk}/{verb}/", {"reason": ""})
        assert (reply.status_code, codes_of(reply)) == (409, ["conflict"]), verb
    assert ForgetRun.objects.count() == runs


def test_a_reason_that_is_too_long_changes_nothing_and_stays_in_the_form(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, SOUP, AGAIN)
    reply = op.post(f"/duplicates/{pair.pk}/merge/", {"reason": "x" * 501})
    assert reply.status_code == 422
    assert "x" * 501 in reply.content.decode()
    pair.refresh_from_db()
    assert pair.state == "open"


def test_a_reader_sees_everything_and_decides_nothing(looker: Client, operator: Caller) -> None:
    pair = pair_make(operator, SOUP, AGAIN)
    page = looker.get(f"/duplicates/{pair.pk}/").content.decode()
    assert "What a merge would do" in page
    assert "formaction" not in page
    assert "checkbox" not in looker.get("/duplicates/").content.decode()
    for verb in ("merge", "keep", "supersede", "undo"):
        assert looker.post(f"/duplicates/{pair.pk}/{verb}/").status_code == 403
    assert looker.post("/duplicates/merge/", {"pairs": str(pair.pk)}).status_code == 403
    pair.refresh_from_db()
    assert pair.state == "open"


def test_the_filter_of_the_list_goes_along_from_pair_to_pair(op: Client, operator: Caller) -> None:
    soup = pair_make(operator, *TWICE)
    pills = pair_make(operator, PILLS, MORE, scope="/user/mara")
    page = op.get(f"/duplicates/?scope={KITCHEN}").content.decode()
    assert f"/duplicates/{soup.pk}/?scope=%2Fhome%2Fkitchen" in page
    assert str(pills.pk) not in page
    reply = op.post(f"/duplicates/{soup.pk}/keep/?scope={KITCHEN}", {"reason": ""})
    assert reply.headers["Location"] == "/duplicates/?scope=%2Fhome%2Fkitchen"
    assert str(soup.pk) in op.get(f"/duplicates/?scope={KITCHEN}&state=kept").content.decode()
    assert str(soup.pk) not in op.get("/duplicates/?held=yes").content.decode()


def test_many_are_merged_after_a_page_that_says_which_and_which_not(op: Client, operator: Caller) -> None:
    soup = pair_make(operator, *TWICE)
    pills = pair_make(operator, PILLS, MORE, scope="/user/mara")
    unknown = uuid.UUID(int=5)
    query = f"pair={soup.pk}&pair={pills.pk}&pair={unknown}&pair={soup.pk}"
    page = op.get(f"/duplicates/merge/?{query}").content.decode()
    got = html.unescape(page)
    assert "Merge 1 pair<" in got
    assert got.count("Unchanged: 1.") == 2

    said = {name: hidden(page, name) for name in ("pairs", "seen_at")}
    done = op.post("/duplicates/merge/", {**said, "next": "/duplicates/", "reason": "twice"}, follow=True)

    assert "the newer memory has the content of both." in text_of(done)
    states = dict(DuplicatePair.objects.values_list("pk", "state"))
    assert states == {soup.pk: "merged", pills.pk: "open"}


def test_all_that_match_means_what_waits_without_differences(op: Client, operator: Caller) -> None:
    soup = pair_make(operator, *TWICE)
    pair_make(operator, PILLS, MORE, scope="/user/mara")
    page = op.get("/duplicates/merge/?all=1&state=open").content.decode()
    assert hidden(page, "pairs") == str(soup.pk)
    assert "No pair was selected" in op.get("/duplicates/merge/?all=1&held=perhaps").content.decode()


def test_a_pair_that_changes_while_someone_looks_is_left_alone(op: Client, operator: Caller) -> None:
    soup = pair_make(operator, *TWICE)
    page = op.get(f"/duplicates/merge/?pair={soup.pk}").content.decode()
    said = {name: hidden(page, name) for name in ("pairs", "seen_at")}
    operator.patch(f"/v1/topics/{soup.one_id}", {"summary": "Thirty minutes."}).ok()
    got = text_of(op.post("/duplicates/merge/", {**said, "reason": ""}, follow=True))
    assert "1 pair was skipped." in got
    assert live(soup.one_id, soup.other_id) == [True, True]


def test_what_cannot_be_read_merges_nothing(op: Client, operator: Caller) -> None:
    pair_make(operator, SOUP, AGAIN)
    for pairs in ("", "abc", "1,2", str(uuid.UUID(int=5))):
        op.post("/duplicates/merge/", {"pairs": pairs, "seen_at": "2026-01-01T00:00Z", "reason": ""})
        assert DuplicatePair.objects.get().state == "open", pairs
    assert op.get("/duplicates/merge/?pair=7").status_code == 400


def test_someone_looks_now_and_is_reported_what_was_found(op: Client, operator: Caller) -> None:
    for title, summary in (SOUP, AGAIN):
        operator.remember(title, summary=summary, scope=KITCHEN)
    reply = op.post("/duplicates/look/", {"scope": "/home"}, follow=True)
    assert reply.redirect_chain == [("/duplicates/?scope=%2Fhome", 302)]
    assert "1 new pair found." in text_of(reply)
    assert "No new pair found." in text_of(op.post("/duplicates/look/", {"scope": ""}, follow=True))
    assert op.post("/duplicates/look/", {"scope": "no//scope\x00"}).status_code == 422


def test_a_long_look_is_left_to_the_worker(op: Client, operator: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.console.pages.duplicates.LOOKED_AT_ONCE", 1)
    for title, summary in (SOUP, AGAIN):
        operator.remember(title, summary=summary, scope=KITCHEN)
    got = text_of(op.post("/duplicates/look/", {"scope": ""}, follow=True))
    assert "2 memories are not compared yet. The worker compares them" in got
    assert [job.func() for job in OrmQ.objects.all()].count("memory.jobs.tasks.duplicates_search") == 1


def test_the_export_holds_exactly_what_the_filter_finds(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, PILLS, MORE)
    pair_make(operator, *TWICE)
    reply = op.get("/duplicates/export.csv?held=yes")
    rows = list(csv.DictReader(io.StringIO(b"".join(reply.streaming_content).decode().lstrip("\ufeff"))))  # type: ignore[attr-defined]
    assert [row["id"] for row in rows] == [str(pair.pk)]
    assert rows[0]["newer_title"] == MORE[0]
    assert op.get("/duplicates/export.csv?held=perhaps").status_code == 422


def test_a_topic_says_what_was_merged_into_it_and_where_it_went(op: Client, operator: Caller) -> None:
    pair = pair_make(operator, *TWICE)
    op.post(f"/duplicates/{pair.pk}/merge/", {"reason": ""})
    pair.refresh_from_db()
    assert pair.survivor_id is not None
    gone = pair.other_id if pair.survivor_id == pair.one_id else pair.one_id
    page = op.get(f"/topics/{pair.survivor_id}/").content.decode()
    assert "Also from" in page
    assert f"/topics/{gone}/" in page
    assert f'href="/topics/{pair.survivor_id}/">another memory</a>' in op.get(f"/topics/{gone}/").content.decode()


def test_a_list_costs_the_same_for_one_pair_and_for_many(op: Client, operator: Caller) -> None:
    pair_make(operator, SOUP, AGAIN)
    one = statements_of(lambda: op.get("/duplicates/"))
    for place in range(5):
        pair_make(operator, PILLS, MORE, scope=f"/user/{place}")
    assert statements_of(lambda: op.get("/duplicates/")) == one


def test_a_threshold_that_finds_other_things_is_taken_with_a_warning(op: Client, operator: Caller) -> None:
    warning = "duplicate_threshold is 0.7: below 0.85"
    tried = text_of(op.get("/policies/at/?scope=/&duplicate_threshold=0.7"))
    assert warning in tried
    assert "You can save it anyway." in tried
    assert "duplicate_threshold is" not in text_of(op.get("/policies/at/?scope=/&duplicate_threshold=0.9"))
    policy_put(operator, duplicate_threshold=0.7)
    for address in ("/policies/at/?scope=/", "/duplicates/"):
        assert warning in text_of(op.get(address))
