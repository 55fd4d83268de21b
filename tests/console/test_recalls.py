"""Recalls: what a query returned then, what became of it since, and what it returns now."""

import datetime as dt
import html
import re
import uuid

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.forgetting.manual_actions import topics_release
from memory.insight.shadow import shadow_search
from memory.models import AccessLog, ForgetRun, TopicEdit, Vitality, WakeUp
from tests.cast import Caller, Clock, store_rows, worker_turn
from tests.console.people import codes_of
from tests.forgetting.shop import policy_put, topics_make

pytestmark = pytest.mark.django_db
ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)


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
    assert re.search(r"/home 1 .*0\.\d\d \d+ \d+\.\d ms$", said[1])


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
            topic_ids=ids,
            relevances=relevances,
            min_relevance=0.5,
            bump=0,
            field_bump=0,
        )
        for n in range(60)
        for question, relevances in (
            ("weak", [0.2, None]),
            ("unknown", [None, None]),
            ("good", [0.5, 0.1]),
            ("old", []),
        )
    )

    weak = read(looker, "/recalls/", result="irrelevant")
    following = re.search(r'rel="next" href="([^"]+)"', weak)
    assert following
    assert "result=irrelevant" in following[1]
    weak += read(looker, f"/recalls/{following[1]}")
    assert {f"weak {n}" for n in range(60)} <= set(re.findall(r"weak \d+", weak))
    assert not re.search(r"(unknown|good|old) \d|the sledge", weak)
    assert "60 recalls" in read(looker, "/recalls/count/", result="irrelevant")
    (nothing,) = rows(read(looker, "/recalls/", result="nothing"))
    assert "Where is the sledge?" in nothing
    assert "1 recall" in read(looker, "/recalls/count/", result="nothing")
    # Neither size nor time of these rows is on record.
    assert rows(read(looker, "/recalls/", q="old 7"))[0].endswith("– – –")


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
        seen += re.findall(r'href="/recalls/(\d+)/"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = f"/recalls/{following[1]}" if following else ""
    assert len(seen) == len(set(seen)) == 120


def test_the_former_address_leads_to_the_list_with_its_filter(looker: Client) -> None:
    reply = looker.get("/overview/queries/", {"actor": "key:alice"})
    assert reply.headers["Location"] == "/recalls/?actor=key%3Aalice"


def test_people_are_shown_and_found_by_their_names(op: Client, agent: Caller) -> None:
    agent.query("Where are the skis?")
    # What the assistant asks for somebody is on record under the number of the account.
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
    assert all(topic in section(page, "cut") for topic in ids if topic != best)


def test_what_was_missed_in_the_archive_is_listed(
    looker: Client, agent: Caller, operator: Caller, clock: Clock
) -> None:
    policy_put(operator, shadow_share=1)
    topic = agent.remember("Green tea from Uji")
    operator.post(f"/v1/topics/{topic}/archive", {"reason": "old"}).ok()
    clock.forward(minutes=5)
    agent.query("green tea")
    number = recall_last()
    assert topic not in section(read(looker, f"/recalls/{number}/"), "missed")
    shadow_search(now=clock.now)
    assert topic in section(read(looker, f"/recalls/{number}/"), "missed")


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


def test_a_query_without_an_answer_can_be_asked_again(looker: Client, agent: Caller) -> None:
    agent.query("Where is the sledge?")
    number = recall_last()
    topic = agent.remember("The sledge is in the attic")
    assert topic in section(read(looker, f"/recalls/{number}/", again="1"), "now")


def test_a_purge_takes_a_topic_out_of_the_record(looker: Client, agent: Caller, operator: Caller) -> None:
    kept, gone = agent.remember("The red key hangs by the door"), agent.remember("The blue key hangs by the door")
    agent.query("Which key hangs by the door?")
    topics_purge([uuid.UUID(gone)], principal=SYSTEM, reason="asked", now=timezone.now())
    page = read(looker, f"/recalls/{recall_last()}/")
    assert gone not in page
    assert "no longer listed" in page
    assert kept in page


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
        assert codes_of(reply) == ["recall-not-found"]


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
