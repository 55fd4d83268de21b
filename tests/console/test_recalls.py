"""Recalls: what a query returned then, what became of it since, and what it returns now."""

import datetime as dt
import html
import re
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.explain.shadow import shadow_search
from memory.forgetting.manual_actions import topics_release
from memory.models import AccessLog, ForgetRun, ShadowHit, TopicEdit, Vitality, WakeUp
from tests.cast import Caller, Clock, store_rows, worker_turn
from tests.console.people import codes_of
from tests.forgetting.shop import policy_put, topics_make

pytestmark = pytest.mark.django_db
ROW = re.compile(r"<tr(?: data-row)?>(.*?)</tr>", re.DOTALL)


def read(client: Client, address: str, **query: str) -> str:
    reply = client.get(address, query)
    assert reply.status_code == 200, (address, reply.status_code)
    return html.unescape(reply.content.decode())


def recall_last() -> int:
    return AccessLog.objects.filter(kind="query").latest("id").pk


def section(page: str, name: str) -> str:
    """Return the part of a page under the heading with the id ``name``."""
    return page.partition(f'aria-labelledby="{name}"')[2].partition("</section>")[0]


def rows(part: str) -> list[str]:
    """Return the text of each row of a table but its head."""
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in ROW.findall(part.partition("<tbody>")[2])]


def test_the_list_says_who_asked_what_and_what_came_back(looker: Client, agent: Caller, alice: Caller) -> None:
    agent.remember("The skis are in the cellar", scope="/home")
    agent.query("Where are the skis?", scope="/home")
    alice.query("Where is the sledge?")

    said = rows(read(looker, "/recalls/"))

    assert len(said) == 2
    # Newest first.
    assert "alice agent key" in said[0]
    assert "Where is the sledge?" in said[0]
    assert "/user/alice nothing" in said[0]
    assert "agent agent key" in said[1]
    assert re.search(r"/home 1 .*0\.\d\d \d+ \d+\.\d ms ◨$", said[1])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"actor": "key:alice"}, {"Where is the sledge?"}),
        ({"actor": "alice"}, {"Where is the sledge?"}),
        ({"actor": "bob"}, set()),
        ({"q": "SKIS"}, {"Where are the skis?"}),
        ({"q": "100%"}, set()),
        ({"scope": "/user"}, {"Where is the sledge?"}),
        ({"range": "1h"}, {"Where is the sledge?"}),
        ({"range": "24h"}, {"Where is the sledge?", "Where are the skis?"}),
        ({"range": "custom"}, {"Where is the sledge?", "Where are the skis?"}),
        ({"range": "no such"}, {"Where is the sledge?", "Where are the skis?"}),
    ],
)
def test_filters_find_by_who_words_scope_and_time(
    looker: Client, agent: Caller, alice: Caller, clock: Clock, query: dict[str, str], found: set[str]
) -> None:
    agent.query("Where are the skis?")
    clock.forward(hours=2)
    alice.query("Where is the sledge?")

    page = read(looker, "/recalls/", **query)

    assert {said for said in ("Where is the sledge?", "Where are the skis?") if said in page} == found
    counted = looker.get("/recalls/count/", query, headers={"HX-Request": "true"}).content.decode()
    assert counted.split()[0] == str(len(found))


def test_recalls_without_an_answer_are_found_by_their_result(looker: Client, agent: Caller) -> None:
    agent.query("Where is the sledge?")
    row = AccessLog.objects.get()
    ids = [uuid.uuid4(), uuid.uuid4()]
    AccessLog.objects.bulk_create(
        AccessLog(
            at=row.at,
            actor=row.actor,
            scope="/",
            query=f"{question} {n}",
            topic_ids=returned,
            relevances=relevances,
            cut_ids=ids,
            min_relevance=0.5,
            bump=0,
            field_bump=0,
        )
        for n in range(60)
        for question, returned, relevances in (
            # The two last are those of the topics that a limit cut.
            ("weak", ids, [0.2, None, 0.9, 0.9]),
            ("unknown", ids, [None, None, 0.1, 0.1]),
            ("good", ids, [0.5, 0.1, 0.1, 0.1]),
            ("old", ids, []),
            ("purged", [ids[0], None], [0.2, None, 0.9, 0.9]),
        )
    )

    weak = read(looker, "/recalls/", result="irrelevant")
    following = re.search(r'rel="next" href="([^"]+)"', weak)
    assert following
    assert "result=irrelevant" in following[1]
    weak += read(looker, f"/recalls/{following[1]}")
    assert {f"weak {n}" for n in range(60)} <= set(re.findall(r"weak \d+", weak))
    assert not re.search(r"(unknown|good|old|purged) \d|the sledge", weak)
    assert not any("nothing relevant" in row for row in rows(read(looker, "/recalls/", q="purged 7")))
    assert any("nothing relevant" in row for row in rows(read(looker, "/recalls/", q="weak 7")))
    assert "60 recalls" in read(looker, "/recalls/count/", result="irrelevant")
    (nothing,) = rows(read(looker, "/recalls/", result="nothing"))
    assert "Where is the sledge?" in nothing
    assert "1 recall" in read(looker, "/recalls/count/", result="nothing")
    # Neither size nor time of these rows is on record.
    assert rows(read(looker, "/recalls/", q="old 7"))[0].endswith("– – – ◨")


def test_pages_follow_each_other_without_gap_or_repeat(looker: Client, agent: Caller) -> None:
    agent.query("What is for supper?", topic_ids=[], stages=["structural"])
    row = AccessLog.objects.get()
    AccessLog.objects.bulk_create(
        AccessLog(at=row.at, actor=row.actor, scope="/", query=f"question {n}", topic_ids=[], bump=0, field_bump=0)
        for n in range(119)
    )
    seen: list[str] = []
    address = "/recalls/"
    while address:
        page = read(looker, address)
        seen += re.findall(r'href="/recalls/(\d+)/" id="recall-', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = f"/recalls/{following[1]}" if following else ""
    assert len(seen) == len(set(seen)) == 120


def test_the_former_address_leads_to_the_list_with_its_filter(looker: Client) -> None:
    reply = looker.get("/overview/queries/", {"actor": "key:alice"})
    assert reply.headers["Location"] == "/recalls/?actor=key%3Aalice"


def test_people_are_shown_and_found_by_their_names(op: Client, agent: Caller) -> None:
    agent.query("Where are the skis?")
    # What the assistant asks for someone is on record under the number of the account.
    AccessLog.objects.update(actor=f"user:{User.objects.get(username='operator').pk}")
    assert " operator " in rows(read(op, "/recalls/", actor="operator"))[0]


def test_a_recall_shows_what_was_returned_then_and_what_became_of_it(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    kept, archived, released, changed = (agent.remember(f"Key number {n} hangs by the door") for n in range(4))
    agent.query("Where does the key hang by the door?", top_k=4)
    number = recall_last()
    clock.forward(minutes=5)
    worker_turn()
    operator.post(f"/v1/topics/{archived}/archive", {"reason": "old"}).ok()
    topics_release([uuid.UUID(released)], principal=SYSTEM, reason="for the test", now=clock.now)
    agent.patch(f"/v1/topics/{changed}", {"title": "Key number 3 is lost"})

    page = read(looker, f"/recalls/{number}/")

    said = {row.split()[0]: row for row in rows(section(page, "then"))}
    assert list(said) == ["1", "2", "3", "4"]
    by_topic = {
        topic: row
        for topic in (kept, archived, released, changed)
        for row in said.values()
        if _is_row(page, row, topic)
    }
    assert "archived" in by_topic[archived]
    assert "released" in by_topic[released]
    assert "changed since" in by_topic[changed]
    assert "changed since" not in by_topic[kept]
    row = AccessLog.objects.get(pk=number)
    assert f"{row.relevances[0]:.2f}" in said["1"]
    assert f"{row.scores[0]:.2f}" in said["1"]
    assert "+" in said["1"]
    details = section(page, "details")
    assert row.tokens
    assert row.milliseconds
    assert f"about {row.tokens}" in details
    assert f"{row.milliseconds:.1f} ms" in details


def test_a_recall_shows_the_summaries_that_were_returned_then(looker: Client, agent: Caller, clock: Clock) -> None:
    topic = agent.remember("The key", summary="It hangs by the door")
    agent.query("Where does the key hang?")
    number = recall_last()
    clock.forward(minutes=5)
    agent.patch(f"/v1/topics/{topic}", {"summary": "It lies in the drawer"}).ok()
    page = read(looker, f"/recalls/{number}/", again="1")
    assert "It hangs by the door" in section(page, "then")
    assert "It lies in the drawer" in section(page, "now")
    assert "as it reads now" not in page
    # A former text can be lost; the present one stands in its place.
    TopicEdit.objects.update(before={})
    then = section(read(looker, f"/recalls/{number}/"), "then")
    assert "It lies in the drawer (as it reads now)" in then


def _is_row(page: str, row: str, topic: str) -> bool:
    """Return whether ``row`` is the text of the row that links ``topic``."""
    return any(topic in source and rows("<tbody><tr>" + source + "</tr>") == [row] for source in ROW.findall(page))


def test_what_a_limit_cut_is_listed_below(looker: Client, agent: Caller) -> None:
    ids = [agent.remember(f"Key number {n}") for n in range(3)]
    (best,) = agent.found("Which key?", top_k=1)
    page = read(looker, f"/recalls/{recall_last()}/")
    assert best in section(page, "then")
    cut = section(page, "cut")
    row = AccessLog.objects.get()
    assert [str(each) for each in row.cut_ids] == re.findall(r"/topics/([^/]+)/", cut)
    assert set(map(str, row.cut_ids)) == set(ids) - {best}
    assert re.findall(r"score (\S+), relevance (\d\.\d\d)", cut) == [
        (f"{score:.2f}", f"{relevance:.2f}")
        for score, relevance in zip(row.scores[1:], row.relevances[1:], strict=True)
    ]


def test_a_recall_from_before_scores_were_kept_lists_what_was_cut(looker: Client, agent: Caller) -> None:
    agent.remember("Key number 1")
    agent.remember("Key number 2")
    agent.query("Which key?", top_k=1)
    AccessLog.objects.update(scores=[], relevances=[])
    assert "Key number" in section(read(looker, f"/recalls/{recall_last()}/"), "cut")


def archive(operator: Caller, *topics: str) -> None:
    for topic in topics:
        operator.post(f"/v1/topics/{topic}/archive", {"reason": "old"}).ok()


def missed(client: Client, number: int) -> list[str]:
    """Return the archived topics that the page of a recall lists as missed, best first."""
    leads = re.search(r'href="(/recalls/\d+/archive/)"', section(read(client, f"/recalls/{number}/"), "missed"))
    assert leads
    whole = re.findall(r'href="/topics/([^/]+)/"', read(client, leads[1]))
    reply = client.get(leads[1], headers={"HX-Request": "true"})
    part = reply.content.decode()
    assert "<html" not in part
    assert re.findall(r'href="/topics/([^/]+)/"', part) == whole
    return whole


def test_what_a_recall_missed_in_the_archive_is_found_for_every_recall(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    policy_put(operator, shadow_share=0)
    first, second, later, restored, live = (agent.remember(f"Green tea from Uji, tin {n}") for n in range(5))
    archive(operator, first, second, restored)
    clock.forward(minutes=5)
    agent.query("Green tea from Uji, tin 0")
    number = recall_last()
    clock.forward(minutes=5)
    archive(operator, later)
    operator.post(f"/v1/topics/{restored}/restore", {}).ok()
    # Newer memories neither are missed nor take a place.
    for n in range(9):
        agent.remember(f"Green tea from Uji, tin 0, cup {n}")
    worker_turn()
    before, salience = store_rows(), list(Vitality.objects.order_by("pk").values())

    found = missed(looker, number)

    assert found[0] == first
    assert set(found) == {first, second}
    assert "rank 1," in read(looker, f"/recalls/{number}/archive/")
    assert (store_rows(), list(Vitality.objects.order_by("pk").values())) == (before, salience)
    assert operator.get("/v1/regret").ok()["signals"]["shadow"] == 0
    assert live not in found


@pytest.mark.parametrize(
    ("asked", "finds"),
    [
        ({}, {"tin", "pot", "home"}),
        ({"kinds": ["tin"]}, {"tin"}),
        ({"categories": ["clay"]}, {"pot"}),
        ({"scope": "/home"}, {"home"}),
        ({"topic_ids": ["tin", "live"]}, {"tin"}),
        ({"topic_ids": []}, set()),
        ({"min_relevance": 1}, set()),
        ({"include_archived": True}, set()),
        ({"stages": ["structural"]}, set()),
    ],
)
def test_the_archive_is_searched_with_the_limits_of_the_recall(
    looker: Client, agent: Caller, operator: Caller, clock: Clock, asked: dict[str, Any], finds: set[str]
) -> None:
    policy_put(operator, shadow_share=1)
    made = {
        "tin": agent.remember("Green tea in a tin", topic_kind="tin"),
        "pot": agent.remember("Green tea in a pot", categories=["clay"]),
        "home": agent.remember("Green tea at home", scope="/home"),
        "live": agent.remember("Green tea in a cup"),
    }
    archive(operator, made["tin"], made["pot"], made["home"])
    clock.forward(minutes=5)
    if "topic_ids" in asked:
        asked = {"topic_ids": [made[each] for each in asked["topic_ids"]]}
    agent.query("green tea", **asked)
    number = recall_last()
    assert set(missed(looker, number)) == {made[each] for each in finds}
    # The shadow search repeats the same request.
    shadow_search(now=clock.now)
    assert {str(hit.topic_id) for hit in ShadowHit.objects.all()} == {made[each] for each in finds}


def test_a_recall_about_the_past_misses_what_was_archived_then(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    early, late = agent.remember("Green tea"), agent.remember("Green tea too")
    clock.forward(minutes=5)
    archive(operator, early)
    clock.forward(minutes=5)
    then = clock.now.isoformat()
    clock.forward(minutes=5)
    archive(operator, late)
    newer = agent.remember("Green tea again")
    archive(operator, newer)
    clock.forward(minutes=5)
    assert agent.found("green tea", as_of=then) == [late]
    assert missed(looker, recall_last()) == [early]


def test_what_the_shadow_search_found_is_marked_as_regret(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    policy_put(operator, shadow_share=1)
    kept, restored, other = (agent.remember(f"Green tea from {place}") for place in ("Uji", "Kyoto", "Nara"))
    archive(operator, kept, restored, other)
    clock.forward(minutes=5)
    agent.query("green tea")
    number = recall_last()
    shadow_search(now=clock.now)
    ShadowHit.objects.filter(topic_id=other).delete()
    operator.post(f"/v1/topics/{restored}/restore", {}).ok()
    assert set(missed(looker, number)) == {kept, restored, other}
    page = read(looker, f"/recalls/{number}/archive/")
    marked = {
        topic for topic in (kept, restored, other) for item in page.split("<li>") if topic in item and "regret" in item
    }
    assert marked == {kept, restored}


@pytest.mark.parametrize(
    "asked",
    [
        {"kinds": ["tin"]},
        {"categories": ["clay", "glass"]},
        {"topic_ids": ["pot", "archived", "tin"]},
        {"include_archived": True},
        {"as_of": "then"},
        {"top_k": 1},
        {"min_relevance": 0.99},
        {"token_budget": 12},
        {"scope": "/home", "kinds": [""], "top_k": 2},
        {"stages": ["structural"], "topic_ids": ["pot", "tin"]},
    ],
)
def test_asking_again_repeats_every_limit_of_the_recall(
    looker: Client, agent: Caller, operator: Caller, clock: Clock, asked: dict[str, Any]
) -> None:
    made = {
        "tin": agent.remember("Green tea in a tin", topic_kind="tin"),
        "pot": agent.remember("Green tea in a pot", categories=["clay"]),
        "home": agent.remember("Green tea at home, the last of it", scope="/home"),
        "archived": agent.remember("Green tea"),
    }
    clock.forward(minutes=5)
    then = clock.now
    clock.forward(minutes=5)
    archive(operator, made["archived"])
    agent.remember("Green tea in a cup")
    if "topic_ids" in asked:
        asked = asked | {"topic_ids": [made[each] for each in asked["topic_ids"]]}
    if "as_of" in asked:
        asked = {"as_of": then.isoformat()}
    returned = agent.found("green tea", **asked)
    assert returned != agent.found("green tea")
    number = AccessLog.objects.filter(kind="query").earliest("id").pk
    page = read(looker, f"/recalls/{number}/", again="1")
    assert re.findall(r'href="/topics/([^/]+)/"', section(page, "now")) == returned
    details = section(page, "details")
    assert all(name in details for name in asked if name != "scope")


def test_asking_again_shows_both_side_by_side_and_leaves_no_trace(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    first, second = agent.remember("The red key hangs by the door"), agent.remember("The blue key hangs by the door")
    agent.query("Where does the red key hang?")
    number = recall_last()
    clock.forward(minutes=5)
    worker_turn()
    operator.post(f"/v1/topics/{first}/archive", {"reason": "lost"}).ok()
    third = agent.remember("The red key hangs in the hall")
    before, salience = store_rows(), list(Vitality.objects.order_by("pk").values())

    page = read(looker, f"/recalls/{number}/", again="1")

    assert (store_rows(), list(Vitality.objects.order_by("pk").values())) == (before, salience)
    then, now = section(page, "then"), section(page, "now")
    assert first in then
    assert first not in now
    assert second in then
    assert second in now
    assert third not in then
    assert third in now
    assert any("archived" in row and "not now" in row for row in rows(then))
    assert any("written since" in row for row in rows(now))


def test_a_query_asked_again_means_the_day_on_which_it_was_asked(
    looker: Client, operator: Caller, clock: Clock
) -> None:
    clock.set(dt.datetime(2026, 5, 3, 12, tzinfo=dt.UTC))
    walk = operator.remember("A walk to the mill", created_at="2026-05-02T18:00:00Z")
    swim = operator.remember("A swim in the lake", created_at="2026-05-03T09:00:00Z")
    assert operator.found("What did I do yesterday?") == [walk, swim]
    number = recall_last()
    clock.forward(days=1)
    assert operator.found("What did I do yesterday?") == [swim, walk]
    page = read(looker, f"/recalls/{number}/", again="1")
    assert re.findall(r'href="/topics/([^/]+)/"', section(page, "now")) == [walk, swim]


def test_a_query_without_an_answer_can_be_asked_again(looker: Client, agent: Caller) -> None:
    agent.query("Where is the sledge?")
    number = recall_last()
    topic = agent.remember("The sledge is in the attic")
    assert topic in section(read(looker, f"/recalls/{number}/", again="1"), "now")


def test_a_purge_takes_topics_out_of_the_record_and_the_others_keep_their_rank(
    looker: Client, agent: Caller, operator: Caller
) -> None:
    made = [agent.remember(f"The key of door {n} hangs in the hall") for n in range(4)]
    order = agent.found("Which key hangs in the hall?", top_k=3)
    number = recall_last()
    (cut,) = set(made) - set(order)
    scores = [f"{score:.2f}" for score in AccessLog.objects.get().scores]
    topics_purge([uuid.UUID(order[0]), uuid.UUID(cut)], principal=SYSTEM, reason="asked", now=timezone.now())

    page = read(looker, f"/recalls/{number}/", again="1")

    assert order[0] not in page
    assert cut not in page
    then = section(page, "then")
    assert [row.split()[0] for row in rows(then)] == ["1", "2", "3"]
    assert re.findall(r'href="/topics/([^/]+)/"', then) == order[1:]
    assert [score in row for score, row in zip(scores[1:], rows(then)[1:], strict=False)] == [True, True]
    # Of those returned now, each has the rank of then beside its own.
    now = rows(section(page, "now"))
    assert {row.split()[-1] for row in now} == {"2", "3"}
    (listed,) = rows(read(looker, "/recalls/"))
    assert re.search(r"/ 3 ", listed)
    uses = rows(read(looker, f"/topics/{order[1]}/uses/"))
    assert any("2 of 3" in row for row in uses)
    assert erasure_verify().ok


def test_a_recall_of_which_all_is_purged_is_not_one_without_an_answer(looker: Client, agent: Caller) -> None:
    gone = agent.remember("The red key hangs by the door")
    agent.query("Which key hangs by the door?", kinds=[""])
    number = recall_last()
    topics_purge([uuid.UUID(gone)], principal=SYSTEM, reason="asked", now=timezone.now())
    assert rows(read(looker, "/recalls/", result="nothing")) == []
    page = read(looker, f"/recalls/{number}/")
    assert [row.split()[0] for row in rows(section(page, "then"))] == ["1"]
    assert "?again=1" not in page
    assert missed(looker, number) == []
    # An address that was kept opens all the same.
    assert "Returned now" not in read(looker, f"/recalls/{number}/", again="1")


def test_a_purge_takes_ids_and_words_out_of_what_a_recall_was_asked_with(
    looker: Client, agent: Caller, operator: Caller
) -> None:
    kept, gone = agent.remember("The red key hangs by the door"), agent.remember("The blue key hangs by the door")
    agent.query("Which key is red?", topic_ids=[kept, gone], min_relevance=0)
    number = recall_last()
    topics_purge([uuid.UUID(gone)], principal=SYSTEM, reason="asked", now=timezone.now())
    page = read(looker, f"/recalls/{number}/", again="1")
    assert "1 in all" in section(page, "details")
    assert re.findall(r'href="/topics/([^/]+)/"', section(page, "now")) == [kept]
    assert erasure_verify().ok


def test_a_run_after_a_query_and_its_recalls_lead_to_each_other(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    policy_put(operator, topic_count_soft_limit=0, max_archive_share=1, preset="memstate")
    topics_make(operator, 1, salience=0.01)
    kept = agent.remember("The key hangs by the door")
    WakeUp.objects.all().delete()
    agent.query("Where does the key hang?", topic_ids=[kept], stages=["structural"])
    number = recall_last()
    agent.query("A question that wakes nobody", topic_ids=[], stages=["structural"])
    worker_turn()
    run = ForgetRun.objects.get(event="query_complete")

    assert f"/runs/{run.pk}/" in section(read(looker, f"/recalls/{number}/"), "details")
    assert f"/recalls/?run={run.pk}" in read(looker, f"/runs/{run.pk}/")
    listed = rows(read(looker, "/recalls/", run=str(run.pk)))
    assert [row for row in listed if "Where does the key hang?" in row] == listed
    assert len(listed) == 1


def test_a_recall_that_is_not_there_is_not_found(looker: Client, agent: Caller) -> None:
    topic = agent.remember("Tea")
    agent.topic(topic)
    for number in (AccessLog.objects.get(kind="lookup").pk, 7_000_000):
        reply = looker.get(f"/recalls/{number}/")
        assert reply.status_code == 404
        assert codes_of(reply) == ["not-found"]


def test_uses_of_a_topic_lead_to_the_recall(looker: Client, agent: Caller) -> None:
    topic = agent.remember("The key hangs by the door")
    agent.query("Where does the key hang?")
    page = read(looker, f"/topics/{topic}/uses/")
    assert f"/recalls/{recall_last()}/" in page
    assert "/callers/?name=key%3Aagent" in page


def test_the_page_of_a_caller_has_what_it_wrote_and_what_it_asked(looker: Client, agent: Caller, alice: Caller) -> None:
    topic = alice.remember("Alice plays the oboe")
    other = agent.remember("The key hangs by the door")
    alice.query("What does Alice play?")
    page = read(looker, "/callers/", name="key:alice")
    assert topic in section(page, "wrote-title")
    assert other not in page
    assert f"/recalls/{recall_last()}/" in section(page, "asked-title")


def test_a_question_is_text_and_no_markup(looker: Client, agent: Caller) -> None:
    agent.query("<script>alert(1)</script>")
    for address in ("/recalls/", f"/recalls/{recall_last()}/?again=1"):
        assert "<script>alert" not in looker.get(address).content.decode()


def test_the_time_of_a_recall_is_that_of_its_query(looker: Client, agent: Caller, clock: Clock) -> None:
    clock.set(dt.datetime(2026, 3, 1, 12, 30, 15, tzinfo=dt.UTC))
    agent.query("Where is the sledge?")
    assert "1 March 2026, 12:30:15" in read(looker, f"/recalls/{recall_last()}/")
