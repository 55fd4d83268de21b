"""Forget: the list comes first, the yes is to exactly that list, and what cannot be undone has to be typed."""

import html
import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from memory.models import ErasureReceipt, ForgetListing, ForgetRun, Topic
from tests.cast import Caller
from tests.console.people import account_make, body_of, client_of, codes_of

pytestmark = pytest.mark.django_db

ASKED = {"verb": "release", "query": "", "scope": "", "older_than": "", "kinds": "", "categories": "", "reason": ""}


def text_of(reply: object) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body_of(reply))))  # type: ignore[arg-type]


def listed(client: Client, **said: str) -> str:
    """Ask for a list, and return the address of its page."""
    reply = client.post("/forget/", {**ASKED, **said})
    assert reply.status_code == 302, text_of(reply)
    return str(reply.headers["Location"])


def listing_of(address: str) -> ForgetListing:
    return ForgetListing.objects.get(pk=address.rstrip("/").rpartition("/")[2])


def gone(topic_id: str) -> bool:
    return not Topic.objects.filter(pk=topic_id).exists()


def released(topic_id: str) -> bool:
    return Topic.objects.get(pk=topic_id).released_at is not None


# --- Asking ----------------------------------------------------------------------------------------------------------


def test_a_list_says_what_would_go_and_why_and_changes_nothing(op: Client, operator: Caller) -> None:
    one = operator.remember("Old draft", topic_kind="draft", scope="/work")
    kept = operator.remember("A decision", topic_kind="decision", scope="/work")
    page = listed(op, kinds="draft", scope="/work", reason="cleaning up")
    said = text_of(op.get(page))
    assert "Release 1 memory?" in said
    assert "Old draft" in said
    assert "of kind draft" in said
    assert "A decision" not in said
    assert "cleaning up" in said
    assert not released(one)
    assert not released(kept)
    assert not ForgetRun.objects.exists()


def test_a_query_finds_whom_it_names_and_no_one_whose_name_only_begins_so(op: Client, operator: Caller) -> None:
    one = operator.remember("Contact", summary="Write to ann@example.org about the lease.")
    other = operator.remember("Contact", summary="Write to ann@example.org.uk about the roof.")
    said = body_of(op.get(listed(op, query="ann@example.org")))
    assert one in said
    assert other not in said


def test_a_list_by_a_name_offers_to_look_up_what_says_only_a_part_of_it(op: Client, operator: Caller) -> None:
    operator.remember("Nadia Haddad", summary="Nadia Haddad climbs.")
    operator.remember("Climbing with Nadia", summary="Nadia was fast.")

    page = body_of(op.get(listed(op, query="forget Nadia Haddad")))

    assert "Climbing with Nadia" not in page
    assert 'href="/lookup/?q=Nadia">Nadia</a>, <a href="/lookup/?q=Haddad">' in page


def test_nothing_asked_is_refused_and_what_was_typed_stays(op: Client) -> None:
    reply = op.post("/forget/", {**ASKED, "reason": "because"})
    assert (reply.status_code, codes_of(reply)) == (422, ["missing-member"])
    assert 'value="because"' in body_of(reply)
    assert not ForgetListing.objects.exists()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"older_than": "soon"}, "invalid-member"),
        ({"scope": "no slash"}, "invalid-scope"),
        ({"verb": "shred", "query": "x"}, "invalid_choice"),
        ({"verb": "purge", "query": "x"}, "missing-member"),
        ({"query": "x" * 2001}, "max_length"),
    ],
)
def test_what_cannot_be_asked_is_refused_beside_its_field(op: Client, said: dict[str, str], code: str) -> None:
    reply = op.post("/forget/", {**ASKED, **said})
    assert reply.status_code == 422
    assert code in codes_of(reply)
    assert not ForgetListing.objects.exists()


def test_the_address_can_suggest_what_to_ask(op: Client) -> None:
    said = body_of(op.get("/forget/?verb=purge&query=ann@example.org&scope=/work"))
    assert 'value="ann@example.org"' in said
    assert re.search(r'value="purge"\s+checked', said)


def test_nothing_that_matches_is_said_with_a_way_on(op: Client, operator: Caller) -> None:
    operator.remember("A note", topic_kind="note")
    page = listed(op, kinds="draft")
    said = text_of(op.get(page))
    assert "Nothing to release" in said
    assert "Change the request" in said
    assert op.post(page, {}).status_code == 409


# --- Saying yes ------------------------------------------------------------------------------------------------------


def test_a_release_does_exactly_its_list_and_can_be_undone(op: Client, operator: Caller) -> None:
    one, two = (operator.remember(title, topic_kind="draft") for title in ("one", "two"))
    page = listed(op, kinds="draft", reason="cleaning up")
    late = operator.remember("late", topic_kind="draft")
    assert "Release 2 memories" in text_of(op.get(page))
    reply = op.post(page, {}, follow=True)
    said = text_of(reply)
    assert "2 memories are released and no longer returned by recalls." in said
    assert "2 memories were released" in said
    assert [released(each) for each in (one, two, late)] == [True, True, False]
    run = ForgetRun.objects.get()
    assert f"/runs/{run.pk}/" in body_of(reply)
    assert op.post(f"/undo/{run.pk}/", {"next": page}).headers["Location"] == page
    assert [released(each) for each in (one, two, late)] == [False, False, False]
    # Once taken back there is nothing more to undo here.
    assert f"/undo/{run.pk}/" not in body_of(op.get(page, headers={"Accept": "text/html"})).partition("<main")[2]


def test_a_purge_has_to_be_typed_and_leaves_a_receipt(op: Client, operator: Caller) -> None:
    one = operator.remember("Salary of Ann", summary="ann@example.org earns 5,000", topic_kind="draft")
    page = listed(op, verb="purge", kinds="draft", reason="asked by the person")
    said = text_of(op.get(page))
    assert "erased permanently" in said
    assert "Type “purge 1” to confirm" in said
    for typed in ("", "purge", "1", "purge 2", "yes"):
        reply = op.post(page, {"typed": typed})
        assert reply.status_code == 422, typed
        assert codes_of(reply) == ["invalid-member" if typed else "required"]
        assert not gone(one)
    reply = op.post(page, {"typed": " Purge  1 "}, follow=True)
    said = text_of(reply)
    assert reply.redirect_chain[-1][0].startswith("/forget/receipts/")
    assert "This is the receipt" in said
    assert "Undo" not in said.rpartition("Shortcuts")[0]
    assert "ann@example.org" not in said
    assert "Salary of Ann" not in said
    assert gone(one)
    assert ErasureReceipt.objects.get().topic_ids == [one]
    assert op.get(f"/topics/{one}/").status_code == 410
    assert "ann@example.org" not in body_of(op.get("/lookup/?q=rung:any")).replace("q=ann", "")


def test_after_a_purge_its_list_tells_that_it_is_done_and_not_what_was_asked(op: Client, operator: Caller) -> None:
    operator.remember("Contact", summary="Write to ann@example.org.")
    page = listed(op, verb="purge", query="ann@example.org", reason="asked by the person")
    assert op.post(page, {"typed": "purge 1"}).status_code == 302
    for address in (page, "/forget/"):
        said = body_of(op.get(address))
        assert "ann@example.org" not in said.replace('placeholder="', "")
    assert f"/forget/receipts/{ErasureReceipt.objects.get().pk}/" in body_of(op.get(page))


def test_a_list_that_is_no_longer_true_is_not_done_and_can_be_made_anew(op: Client, operator: Caller) -> None:
    one = operator.remember("one", topic_kind="draft")
    page = listed(op, kinds="draft", reason="why")
    operator.patch(f"/v1/topics/{one}", {"title": "one, changed"}).ok()
    reply = op.post(page, {})
    assert reply.status_code == 409
    said = text_of(reply)
    assert "Nothing was released." in said
    assert codes_of(reply) == ["changed-meanwhile"]
    assert not released(one)
    assert "List again" in said
    fresh = op.post(f"{page}anew/").headers["Location"]
    assert fresh != page
    assert (listing_of(fresh).reason, listing_of(fresh).count) == ("why", 1)
    assert op.post(fresh, {}).status_code == 302
    assert released(one)


def test_a_list_is_done_once(op: Client, operator: Caller) -> None:
    operator.remember("one", topic_kind="draft")
    page = listed(op, kinds="draft")
    assert op.post(page, {}).status_code == 302
    assert op.post(page, {}).headers["Location"] == page
    assert ForgetRun.objects.count() == 1


def test_an_expired_list_takes_no_yes(op: Client, operator: Caller) -> None:
    one = operator.remember("one", topic_kind="draft")
    page = listed(op, kinds="draft")
    ForgetListing.objects.update(expires_at=timezone.now())
    said = text_of(op.get(page))
    assert "This list has expired" in said
    assert "List again" in said
    assert "The list expires" not in said
    assert op.post(page, {}).status_code == 409
    assert not released(one)


def test_no_one_says_yes_to_the_list_of_someone_else(op: Client, operator: Caller) -> None:
    one = operator.remember("one", topic_kind="draft")
    olga = client_of(account_make("operator", name="olga"))
    page = listed(op, kinds="draft")
    said = text_of(olga.get(page))
    assert "operator created this list, and only they can confirm it" in said
    assert "The list expires" not in said
    assert olga.post(page, {}).status_code == 404
    assert not released(one)
    mine = olga.post(f"{page}anew/").headers["Location"]
    assert olga.post(mine, {}).status_code == 302
    assert released(one)


def test_what_is_pinned_is_called_out(op: Client, operator: Caller) -> None:
    one = operator.remember("one", topic_kind="draft")
    operator.remember("two", topic_kind="draft")
    operator.post(f"/v1/topics/{one}/pin", {}).ok()
    assert "1 of 2 is pinned: runs skip pinned memories, this does not." in text_of(op.get(listed(op, kinds="draft")))


# --- Choosing --------------------------------------------------------------------------------------------------------


def test_some_of_a_list_become_a_list_of_their_own(op: Client, operator: Caller) -> None:
    one, two, three = (operator.remember(title, topic_kind="draft") for title in ("one", "two", "three"))
    page = listed(op, kinds="draft", reason="why")
    reply = op.post(f"{page}pick/", {"topic": [one, three]})
    picked = listing_of(reply.headers["Location"])
    assert (picked.verb, picked.reason, picked.count) == ("release", "why", 2)
    assert "2 memories selected" in text_of(op.get(reply.headers["Location"]))
    assert listing_of(page).state_at(timezone.now()) == "expired"
    op.post(reply.headers["Location"], {})
    assert [released(each) for each in (one, two, three)] == [True, False, True]


def test_what_is_unticked_is_left_out_and_other_pages_stay(op: Client, operator: Caller) -> None:
    ids = [operator.remember(f"draft {n}", topic_kind="draft") for n in range(4)]
    page = listed(op, kinds="draft")
    assert body_of(op.get(page)).count(" checked data-pick") == 4
    # A page that shows two of the four, of which one is unticked.
    picked = listing_of(op.post(f"{page}pick/", {"shown": ids[:2], "topic": ids[:1]}).headers["Location"])
    assert {entry["id"] for entry in picked.entries} == {ids[0], *ids[2:]}


@pytest.mark.parametrize("topics", [[], ["7"], ["x", "y"]])
def test_picks_that_are_none_make_no_list(op: Client, operator: Caller, topics: list[str]) -> None:
    operator.remember("one", topic_kind="draft")
    page = listed(op, kinds="draft")
    assert op.post(f"{page}pick/", {"topic": topics}).status_code == 422
    assert ForgetListing.objects.count() == 1


@pytest.mark.meaning
def test_a_request_that_fits_two_things_is_answered_with_both_and_does_nothing(op: Client, operator: Caller) -> None:
    one = operator.remember("Wifi password", summary="The wifi password of the office is blue-canoe.")
    two = operator.remember("Wifi password", summary="The wifi password of the cabin is red-kayak.")
    page = listed(op, query="forget the wifi password")
    listing = listing_of(page)
    assert listing.ambiguous
    said = text_of(op.get(page))
    assert "Release which memory?" in said
    assert "2 memories match. Which do you mean?" in said
    assert "blue-canoe" in said
    assert "red-kayak" in said
    assert op.post(page, {}).status_code == 409
    chosen = op.post(f"{page}pick/", {"topic": one}).headers["Location"]
    assert "Release 1 memory?" in text_of(op.get(chosen))
    op.post(chosen, {})
    assert (released(one), released(two)) == (True, False)


@pytest.mark.meaning
def test_a_topic_that_says_more_than_what_is_meant_keeps_the_rest_and_the_page_says_so(
    op: Client, operator: Caller
) -> None:
    one = operator.remember("Home", summary="The garage code is blue-canoe. The gardener comes on Mondays.")
    page = listed(op, query="forget the garage code")
    said = text_of(op.get(page))
    assert "Of 1 only a part is removed: the remainder becomes a separate memory." in said
    assert "stays , kept as a separate memory: Home · The gardener comes on Mondays." in said
    op.post(page, {})
    assert released(one)
    assert Topic.objects.exclude(pk=one).get().summary == "The gardener comes on Mondays."


def test_what_a_topic_names_beside_the_address_that_was_asked_for_is_reported(op: Client, operator: Caller) -> None:
    operator.remember("Lease", summary="Write to ann@example.org, or to bob@example.org.")
    assert "also names bob@example.org" in text_of(op.get(listed(op, query="ann@example.org")))


# --- What readers see ------------------------------------------------------------------------------------------------


def test_a_reader_sees_lists_and_receipts_and_finds_nothing_to_press(
    op: Client, looker: Client, operator: Caller
) -> None:
    operator.remember("one", topic_kind="draft")
    page = listed(op, kinds="draft")
    for address in ("/forget/", page, "/forget/receipts/"):
        reply = looker.get(address)
        assert reply.status_code == 200
        assert '<form method="post"' not in body_of(reply).partition("<main")[2].partition("</main>")[0].replace(
            f'<form method="post" action="{page}pick/"', ""
        )
    for address in ("/forget/", page, f"{page}pick/", f"{page}anew/"):
        assert looker.post(address, {}).status_code == 403
    assert ForgetListing.objects.count() == 1


def test_lists_are_shown_newest_first_with_what_became_of_them(op: Client, operator: Caller) -> None:
    operator.remember("one", topic_kind="draft")
    listed(op, kinds="nothing of this kind")
    page = listed(op, kinds="draft")
    op.post(page, {})
    said = text_of(op.get("/forget/"))
    assert said.index("of kind draft") < said.index("of kind nothing of this kind")
    assert "nothing matched" in said
    assert "2 lists" in text_of(op.get("/forget/count/"))


def test_a_list_can_be_taken_away_as_a_file(op: Client, operator: Caller) -> None:
    one = operator.remember("=1+1", topic_kind="draft")
    page = listed(op, kinds="draft")
    said = body_of(op.get(f"{page}export.csv"))
    assert one in said
    assert "'=1+1" in said
    assert op.get(f"/forget/{uuid.uuid4()}/export.csv").status_code == 404


# --- Topics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["title", "id"])
def test_a_topic_is_purged_once_its_title_or_the_beginning_of_its_id_is_typed(
    op: Client, operator: Caller, by: str
) -> None:
    one = operator.remember("The  Harbor plan", values={"city": "Bergen"})
    other = operator.remember("The Harbor plan, second")
    said = text_of(op.get(f"/topics/{one}/purge/"))
    assert "1 field with 1 version" in said
    for typed in ("", "harbor", one[:7], "The Harbor plan, second"):
        reply = op.post(f"/topics/{one}/purge/", {"typed": typed, "reason": "asked"})
        assert reply.status_code == 422, typed
    assert op.post(f"/topics/{one}/purge/", {"typed": one, "reason": ""}).status_code == 422
    assert not gone(one)
    typed = "the harbor plan" if by == "title" else one[:8].upper()
    reply = op.post(f"/topics/{one}/purge/", {"typed": typed, "reason": "asked"})
    assert reply.headers["Location"] == f"/forget/receipts/{ErasureReceipt.objects.get().pk}/"
    assert gone(one)
    assert not gone(other)
    assert op.get(f"/topics/{one}/purge/").status_code == 404


def test_the_page_of_a_topic_leads_to_its_purge_whatever_its_standing(op: Client, operator: Caller) -> None:
    one = operator.remember("one")
    assert f"/topics/{one}/purge/" in body_of(op.get(f"/topics/{one}/"))
    op.post(f"/topics/{one}/release/", {"reason": ""})
    assert f"/topics/{one}/purge/" in body_of(op.get(f"/topics/{one}/"))
    assert op.post(f"/topics/{one}/purge/", {"typed": "one", "reason": "asked"}).status_code == 302
    assert gone(one)


def test_a_fact_of_a_topic_is_replaced_and_what_else_it_says_stays(op: Client, operator: Caller) -> None:
    one = operator.remember("Ben", summary="Ben works at Acme. Ben lives in Bergen.", scope="/team")
    page = op.get(f"/topics/{one}/supersede/")
    assert "Ben works at Acme." in text_of(page)
    reply = op.post(
        f"/topics/{one}/supersede/",
        {"old": "Ben works at Acme.", "new_text": "Ben works at Nordlys.", "reason": "he told us"},
        follow=True,
    )
    said = text_of(reply)
    assert "Replaced in 1 memory" in said
    assert reply.redirect_chain[-1][0].startswith("/topics/")
    summary = Topic.objects.get(pk=one).summary
    assert "Ben lives in Bergen." in summary
    assert "Acme" not in summary


def test_what_a_topic_does_not_say_any_more_is_not_replaced(op: Client, operator: Caller) -> None:
    one = operator.remember("Ben", summary="Ben works at Acme.")
    for said in (
        {"old": "Ben works at Nowhere.", "new_text": "Ben works at Nordlys."},
        {"old": "Ben works at Acme.", "new_text": " "},
        {"new_text": "Ben works at Nordlys."},
    ):
        assert op.post(f"/topics/{one}/supersede/", said).status_code == 422
    assert Topic.objects.count() == 1
    assert Topic.objects.get().summary == "Ben works at Acme."
    op.post(f"/topics/{one}/release/", {"reason": ""})
    assert op.get(f"/topics/{one}/supersede/").status_code == 409


# --- Many topics -----------------------------------------------------------------------------------------------------


def test_topics_picked_in_a_list_become_a_list_to_purge(op: Client, operator: Caller) -> None:
    one, two = operator.remember("one"), operator.remember("two")
    operator.remember("three")
    operator.post(f"/v1/topics/{two}/pin", {}).ok()
    made = op.post("/bulk/purge/", {"topic": [one, two, str(uuid.uuid4())]}).headers["Location"]
    assert (listing_of(made).verb, listing_of(made).count) == ("purge", 2)
    assert "1 of 2 is pinned" in text_of(op.get(made))
    assert op.post(made, {"typed": "purge 2", "reason": ""}).status_code == 422
    assert Topic.objects.count() == 3
    op.post(made, {"typed": "purge 2", "reason": "asked"})
    assert list(Topic.objects.values_list("title", flat=True)) == ["three"]
    assert ErasureReceipt.objects.get().reason == "asked"


def test_topics_picked_in_a_list_become_a_list_to_release(op: Client, operator: Caller) -> None:
    one, kept = operator.remember("one"), operator.remember("kept")
    made = op.post("/bulk/release/", {"topic": [one]}).headers["Location"]
    assert not released(one)
    op.post(made, {})
    assert (released(one), released(kept)) == (True, False)
    operator.post(f"/v1/topics/{kept}/archive", {}).ok()
    made = op.post("/bulk/release/", {"all": "archived"}).headers["Location"]
    assert listing_of(made).count == 1


@pytest.mark.parametrize("form", [{}, {"topic": ["abc"]}])
def test_topics_that_cannot_be_read_make_no_list(op: Client, form: dict[str, list[str]]) -> None:
    assert op.post("/bulk/purge/", form).status_code == 400
    assert not ForgetListing.objects.exists()


# --- Receipts --------------------------------------------------------------------------------------------------------


def test_receipts_are_listed_and_shown_and_say_whether_the_chain_is_whole(
    op: Client, looker: Client, operator: Caller
) -> None:
    for title in ("first secret", "second secret"):
        one = operator.remember(title)
        op.post(f"/topics/{one}/purge/", {"typed": title, "reason": f"the reason of {title}"})
    receipt = ErasureReceipt.objects.get(number=2)
    for address in (
        "/forget/receipts/",
        f"/forget/receipts/{receipt.pk}/",
        "/forget/receipts/export.jsonl",
        f"/forget/receipts/{receipt.pk}/export.csv",
    ):
        reply = looker.get(address)
        assert reply.status_code == 200, address
        said = body_of(reply)
        assert (str(receipt.pk) if address == "/forget/receipts/" else receipt.hash) in said
        assert "first secret" not in said
        assert "second secret" not in said
    assert "Verified 2 receipts" in text_of(looker.get("/forget/receipts/chain/"))
    ErasureReceipt.objects.filter(number=1).update(actor="somebody else")
    assert "Broken at receipt 1" in text_of(looker.get("/forget/receipts/chain/"))
    assert looker.get(f"/forget/receipts/{uuid.uuid4()}/").status_code == 404


@pytest.mark.meaning
def test_a_memory_with_the_name_in_another_script_is_apart_and_can_be_ticked(op: Client, operator: Caller) -> None:
    latin = operator.remember("Olga Petrova pays the rent of the garage.")
    other = operator.remember("Телефон Ольги Петровой записан в тетради.")
    page = listed(op, query="Olga Petrova")
    shown = body_of(op.get(page))
    assert shown.count(" checked data-pick") == 1
    assert shown.index(latin) < shown.index("forget-group") < shown.index(other)
    assert listing_of(page).count == 1
    picked = op.post(f"{page}pick/", {"shown": [latin, other], "topic": [latin, other]}).headers["Location"]
    assert [listing_of(picked).count, body_of(op.get(picked)).count(" checked data-pick")] == [2, 2]
    op.post(picked, {"reason": "tidy"})
    assert set(map(str, Topic.objects.exclude(released_at=None).values_list("pk", flat=True))) == {latin, other}
