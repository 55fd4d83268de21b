"""The page of one topic: why it stands where it does, what it said, what it is worth, and what can be done to it."""

import datetime as dt
import json
import re
import uuid
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.console.topic_chart import salience_figure
from memory.explain.salience_history import salience_history
from memory.models import AccessLog, AuditEvent, Topic, TopicEdit, Vitality
from tests.cast import Caller, Cast, Clock, principal_like
from tests.console.people import account_make, client_of, codes_of, person
from tests.explain.past import BEGIN, folded, policy_set, run_now

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
ACTS = ("edit", "pin", "unpin", "archive", "restore", "release")
NASTY = """<script>alert("1")</script>' onload=x"""


def read(client: Client, topic: str, below: str = "", **more: Any) -> str:
    """Return the page of a topic, or one below it, which must be there."""
    reply = client.get(f"/topics/{topic}/{below}", **more)
    assert reply.status_code == 200, reply.status_code
    return reply.content.decode()


def sends(topic: str, **changes: Any) -> dict[str, Any]:
    """Return the form of an edit as a browser sends it, with members changed."""
    row = Topic.objects.get(pk=topic)
    return {
        "title": row.title,
        "summary": row.summary,
        "kind": row.kind,
        "categories": "\r\n".join(row.categories),
        "salience": "",
        "reason": "",
        "seen_at": row.updated_at.isoformat(),
        **changes,
    }


def last_event(topic: str) -> AuditEvent:
    event = AuditEvent.objects.filter(topic_id=topic).order_by("-at", "-id").first()
    assert event is not None
    return event


def test_an_archived_topic_says_why_and_what_would_have_kept_it(cast: Cast, clock: Clock):
    policy_set(topic_count_soft_limit=0, max_archive_share=1.0)
    clock.set(BEGIN)
    topic = cast.agent.remember("The colour of the door", salience=0.9)
    clock.forward(days=400)
    run = run_now(clock)
    page = read(person("reader"), topic)
    assert "Why it is archived" in page
    answer = page.partition('class="topic-answer"')[2].partition("</p>")[0]
    assert re.search(
        rf'Archived on <time [^>]+>[^<]+</time> by <a href="/runs/{run.pk}/">the scheduled run</a>', answer
    )
    assert re.search(r'fell below <a href="/policies/version/\?scope=%2F&amp;number=1" title="Archive below', answer)
    assert "One more recall" in page
    # The change stands among the last changes too.
    assert f'<strong>Archived</strong> by <a href="/runs/{run.pk}/">' in page.partition('id="changes"')[2]


def answer_of(client: Client, topic: str) -> str:
    """Return the sentence that the page of a topic begins with, as text."""
    part = read(client, topic).partition('class="topic-answer">')[2].partition("</p>")[0]
    return unescape(re.sub(r"<[^>]+>", "", part))


def test_the_answer_names_who_changed_a_topic_by_hand(op: Client, agent: Caller, operator: Caller, clock: Clock):
    clock.set(BEGIN)
    topic = agent.remember("Allergies")
    assert re.fullmatch(r"Active: its score of [\d.]+ is above 0\.25\.", answer_of(op, topic))
    op.post(f"/topics/{topic}/archive/", {"reason": "<b>too old</b>"})
    assert answer_of(op, topic).endswith(" by operator: <b>too old</b>.")
    assert "<b>too old" not in read(op, topic)
    op.post(f"/topics/{topic}/restore/", {"reason": ""})
    op.post(f"/topics/{topic}/pin/", {"reason": ""})
    assert answer_of(op, topic) == "Active: runs skip it. It is pinned."
    op.post(f"/topics/{topic}/unpin/", {"reason": ""})
    op.post(f"/topics/{topic}/release/", {"reason": "moved away"})
    assert answer_of(op, topic).startswith("Released ")
    assert answer_of(op, topic).endswith(" by operator: moved away.")


def test_the_why_card_of_a_page_has_names_for_people(cast: Cast, clock: Clock):
    policy_set(topic_count_soft_limit=0, max_archive_share=1.0)
    clock.set(BEGIN)
    topic, account = cast.agent.remember("The colour of the door", salience=0.9), account_make("reader")
    for days in (30, 100, 400):
        clock.forward(days=days)
        run_now(clock)
        card = read(client_of(account), topic).partition('id="why"')[2].partition("</section>")[0]
        assert "_" not in re.sub(r"<[^>]+>", " ", card)


def test_a_topic_that_fades_says_when_it_will_be_forgotten(looker: Client, agent: Caller):
    page = read(looker, agent.remember("The colour of the door"))
    assert "State" in page
    assert "it is due to be" in page


def test_the_timeline_marks_what_changed_from_revision_to_revision(looker: Client, agent: Caller):
    topic = agent.remember("Rent", values={"amount": "900 a month"})
    for value in ("950 a month", "950 a month, bills included"):
        agent.ingest(
            "version_field",
            topic_id=topic,
            fields=[{"name": "amount", "value": value, "why_changed": "the landlord wrote", "provenance": "letter"}],
        )
    page = read(looker, topic)
    assert "<del>900</del><ins>950</ins> a month" in page
    assert "950 a month<ins>, bills included</ins>" in page
    assert "the landlord wrote" in page
    assert "key:agent" in page


def test_all_revisions_of_a_field_can_be_read_page_by_page(looker: Client, agent: Caller):
    topic = agent.remember("Rent", values={"a / b?": "0"})
    for number in range(1, 41):
        agent.ingest("version_field", topic_id=topic, fields=[{"name": "a / b?", "value": str(number)}])
    page = read(looker, topic)
    assert "All 41 revisions" in page
    address = unescape(re.findall(r'href="(/topics/[^"]+/field/[^"]+)"', page)[0])
    seen: list[int] = []
    while address:
        reply = looker.get(address)
        assert reply.status_code == 200
        body = reply.content.decode()
        seen += [int(number) for number in re.findall(r'timeline-number">(\d+)', body)]
        following = re.findall(r'rel="next" href="([^"]+)"', body)
        address = f"/topics/{topic}/field/{unescape(following[0])}" if following else ""
        # The oldest revision of a page is compared as well.
        assert body.count("<ins>") == len(re.findall("timeline-number", body)) - (not following)
    assert seen == list(range(41, 0, -1))


def test_a_field_that_does_not_exist_is_not_there(looker: Client, agent: Caller):
    assert looker.get(f"/topics/{agent.remember('Rent')}/field/", {"name": "no"}).status_code == 404


def test_edits_of_the_topic_itself_are_reported_with_their_reason(looker: Client, agent: Caller, operator: Caller):
    topic = agent.remember("Rent of the flat", summary="What it costs")
    operator.patch(f"/v1/topics/{topic}", {"title": "Rent of the house", "reason": "we moved"}).ok()
    operator.patch(f"/v1/topics/{topic}", {"summary": "What it costs us", "categories": ["home"]}).ok()
    page = read(looker, topic)
    assert "Rent of the<del> flat</del><ins> house</ins>" in page
    assert "What it costs<ins> us</ins>" in page
    assert "<ins>home</ins>" in page
    assert "we moved" in page


def test_the_curve_ends_with_what_is_stored(looker: Client, cast: Cast, clock: Clock):
    clock.set(BEGIN)
    topic = cast.agent.remember("Tea")
    clock.forward(days=2)
    cast.agent.query("Tea")
    folded(clock.now)
    clock.forward(days=9)
    page = read(looker, topic, "salience/", headers=HTMX)
    figure = json.loads(re.findall(r'<script id="salience-chart" type="application/json">(.*?)</script>', page)[0])
    curve = next(trace for trace in figure["data"] if trace["name"] == "salience")
    row = Vitality.objects.get(pk=topic)
    faded = row.salience * 0.5 ** ((clock.now - row.reinforced_at).total_seconds() / row.half_life)
    assert dt.datetime.fromisoformat(curve["x"][-1]) == clock.now
    assert curve["y"][-1] == pytest.approx(faded, abs=1e-6)
    # The page by itself is for those without script.
    assert "<html" not in page
    assert "1 counted use" in read(looker, topic, "salience/")


@pytest.mark.parametrize("strategy", ["half_life", "static", "active_forgetting", "relevance"])
def test_every_strategy_has_a_figure(looker: Client, agent: Caller, clock: Clock, strategy: str):
    policy_set(strategy=strategy)
    clock.set(BEGIN)
    topic = agent.remember("Tea")
    clock.forward(days=200)
    got = salience_history(uuid.UUID(topic), principal=principal_like("reader"), now=clock.now)
    figure = salience_figure(got)
    assert figure["layout"]["yaxis"].get("type") == ("log" if strategy == "half_life" else None)
    assert len(figure["layout"]["shapes"]) == 4
    assert "its salience is" in read(looker, topic, "salience/").lower() or strategy != "half_life"


def test_uses_are_listed_with_the_question(looker: Client, agent: Caller, reader: Caller):
    topic = agent.remember("The colour of the door")
    agent.query("colour of the door")
    reader.topic(topic)
    folded(dt.datetime.now(dt.UTC))
    page = read(looker, topic, "uses/")
    assert "colour of the door" in page
    assert "looked up by id" in page
    # The relevance by words alone: what the tests embed has no meaning.
    assert "+0.5" in page
    assert "0.50" in page


def test_looking_at_a_topic_leaves_no_trace(looker: Client, agent: Caller):
    topic = agent.remember("Tea")
    for below in ("", "salience/", "uses/"):
        read(looker, topic, below)
    assert not AccessLog.objects.exists()


def test_neighbours_are_listed(looker: Client, agent: Caller):
    topic = agent.remember("The move")
    for number in range(20):
        agent.ingest(title=f"Box {number}", edges=[{"kind": "part_of", "to_topic_id": topic}])
    assert len(re.findall(r"← part of <a", read(looker, topic))) == 20


def test_a_topic_that_does_not_exist_is_said_not_to(looker: Client):
    unknown = uuid.uuid4()
    for below in ("", "salience/", "uses/", "field/"):
        reply = looker.get(f"/topics/{unknown}/{below}")
        assert (reply.status_code, codes_of(reply)) == (404, ["not-found"])


def test_nothing_that_agents_wrote_becomes_markup(op: Client, agent: Caller):
    other = agent.remember(f"other {NASTY}")
    topic = agent.remember(
        f"title {NASTY}",
        summary=f"summary {NASTY}",
        topic_kind=f"kind {NASTY}",
        categories=[f"tag {NASTY}"],
        values={f"name {NASTY}": f"value {NASTY}"},
        edges=[{"kind": f"kind {NASTY}", "to_topic_id": other}],
    )
    agent.ingest(
        "version_field",
        topic_id=topic,
        fields=[{"name": f"name {NASTY}", "value": f"later {NASTY}", "why_changed": f"why {NASTY}"}],
    )
    AccessLog.objects.create(
        at=dt.datetime.now(dt.UTC),
        actor=NASTY,
        scope="/",
        query=f"query {NASTY}",
        query_hash="1",
        bump=0.1,
        field_bump=0.1,
        topic_ids=[topic],
    )
    op.post(f"/topics/{topic}/edit/", sends(topic, summary=f"new {NASTY}", reason=NASTY))
    op.post(f"/topics/{topic}/pin/", {"reason": f"pin {NASTY}"})
    below = ("", "uses/", "salience/", "edit/", "archive/", f"field/?name={NASTY}")
    for page in (op.get(f"/topics/{topic}/{each}").content.decode() for each in below):
        assert "<script>alert" not in page
        assert "' onload=x>" not in page
    assert "&lt;script&gt;alert" in read(op, topic)


def test_a_reader_sees_no_buttons_and_may_do_nothing(looker: Client, agent: Caller):
    topic = agent.remember("Tea")
    page = read(looker, topic)
    for act in ACTS:
        assert f"/topics/{topic}/{act}/" not in page
        assert looker.get(f"/topics/{topic}/{act}/").status_code == 403
        assert looker.post(f"/topics/{topic}/{act}/", {"reason": "for fun"}).status_code == 403
    assert AuditEvent.objects.filter(topic_id=topic).count() == 1


@pytest.mark.parametrize(
    ("act", "before", "action"),
    [
        ("pin", None, "pinned"),
        ("unpin", "pin", "unpinned"),
        ("archive", None, "archived"),
        ("restore", "archive", "restored"),
        ("release", None, "released"),
    ],
)
def test_each_act_is_journaled_with_who_and_why(op: Client, agent: Caller, act: str, before: str | None, action: str):
    topic = agent.remember("Tea")
    if before:
        op.post(f"/topics/{topic}/{before}/", {"reason": "first"})
    asked = read(op, topic, f"{act}/")
    assert "Tea" in asked
    reply = op.post(f"/topics/{topic}/{act}/", {"reason": "it has to be"}, follow=True)
    assert reply.redirect_chain == [(f"/topics/{topic}/", 302)]
    assert "“Tea” is" in reply.content.decode()
    event = last_event(topic)
    assert (event.action, event.actor, event.reason) == (action, "user:operator", "it has to be")


def test_a_topic_is_brought_back_from_its_page(op: Client, cast: Cast):
    topic = cast.agent.remember("Tea")
    cast.operator.post(f"/v1/topics/{topic}/archive", {}).ok()
    assert f"/topics/{topic}/restore/" in read(op, topic)
    assert f"/topics/{topic}/archive/" not in read(op, topic)
    op.post(f"/topics/{topic}/restore/", {"reason": "wanted"})
    assert cast.reader.topic(topic)["rung"] == "active"
    assert topic in cast.agent.found("Tea")
    # The second person gets a message.
    reply = op.post(f"/topics/{topic}/restore/", {"reason": "wanted"})
    assert reply.status_code == 409
    assert "cannot be restored" in reply.content.decode()


def test_a_released_topic_says_so_and_can_be_restored(op: Client, agent: Caller):
    topic = agent.remember("Tea")
    op.post(f"/topics/{topic}/release/", {"reason": "private"})
    page = read(op, topic)
    assert "No recall returns it" in page
    assert 'in <a href="/released/">Released</a>' in page
    assert f"/topics/{topic}/edit/" not in page
    op.post(f"/topics/{topic}/restore/", {})
    assert Topic.objects.get(pk=topic).released_at is None


def test_an_edit_changes_what_the_topic_says_and_keeps_what_it_said(op: Client, agent: Caller):
    topic = agent.remember("Tea", summary="Black", categories=["kitchen"], topic_kind="preference")
    reply = op.post(
        f"/topics/{topic}/edit/",
        sends(
            topic,
            title="Tea at home",
            summary="Green\r\nand cold",
            categories="kitchen\r\n  habits \r\n\r\n",
            salience="2.5",
            reason="asked again",
        ),
    )
    assert reply.status_code == 302
    row = Topic.objects.get(pk=topic)
    assert (row.title, row.summary, row.categories) == ("Tea at home", "Green\nand cold", ["habits", "kitchen"])
    assert Vitality.objects.get(pk=topic).salience == 2.5
    assert TopicEdit.objects.get(topic_id=topic).before["title"] == "Tea"
    event = last_event(topic)
    assert (event.action, event.actor, event.reason) == ("edited", "user:operator", "asked again")


def test_an_edit_is_seen_by_the_rules(op: Client, agent: Caller):
    rule = {"name": "keep", "events": ["ingest_complete"], "action": "pin"}
    policy_set(rules=[{**rule, "condition": {"field": "text", "op": "contains", "value": "allergic"}}])
    topic = agent.remember("Tom")
    assert op.post(f"/topics/{topic}/edit/", sends(topic, summary="allergic to cats")).status_code == 302
    assert Vitality.objects.get(pk=topic).pin_reason == "rule keep"


def test_a_form_sent_unchanged_changes_nothing(op: Client, agent: Caller):
    topic = agent.remember("Tea", summary="Black \nor green", categories=["kitchen", "home"], topic_kind="preference")
    assert op.post(f"/topics/{topic}/edit/", sends(topic)).status_code == 302
    assert not TopicEdit.objects.exists()
    assert last_event(topic).action == "ingest_new_topic"


def test_what_someone_leaves_alone_stays_as_it_is_whatever_browsers_make_of_it(op: Client, agent: Caller):
    names = ["tea, black", " with blanks ", "Zoo", "a"]
    topic = agent.remember("Tea", summary="\n Black\r\nor green \n", categories=names, topic_kind="a\nb")
    Topic.objects.filter(pk=topic).update(categories=names)
    page = read(op, topic, "edit/")
    assert "tea, black\n with blanks \nZoo\na</textarea>" in page
    unchanged = sends(topic, summary="\r\n Black\r\nor green \r\n", kind="ab")
    assert op.post(f"/topics/{topic}/edit/", unchanged, follow=True).status_code == 200
    assert not TopicEdit.objects.exists()
    op.post(f"/topics/{topic}/edit/", {**unchanged, "title": "Green tea"})
    edit = TopicEdit.objects.get(topic_id=topic)
    row = Topic.objects.get(pk=topic)
    assert (edit.before, row.title, row.categories) == ({"title": "Tea"}, "Green tea", names)
    assert (row.summary, row.kind) == ("\n Black\r\nor green \n", "a\nb")
    more = "\r\n".join([*names, "cold, too"])
    op.post(f"/topics/{topic}/edit/", sends(topic, categories=more, summary=unchanged["summary"], kind="ab"))
    assert Topic.objects.get(pk=topic).categories == sorted([*names, "cold, too"])


def test_of_two_editors_the_second_keeps_the_text_and_sees_the_other_one(op: Client, agent: Caller):
    topic = agent.remember("Tea", summary="Black")
    mine = sends(topic, summary="My version")
    op.post(f"/topics/{topic}/edit/", sends(topic, summary="The version of somebody else"))
    reply = op.post(f"/topics/{topic}/edit/", mine)
    page = reply.content.decode()
    assert (reply.status_code, codes_of(reply)) == (409, ["changed-meanwhile"])
    assert "My version" in page
    assert "The version of somebody else" in page
    assert Topic.objects.get(pk=topic).summary == "The version of somebody else"
    # Having seen it, saving again is a decision.
    seen = unescape(re.findall(r'name="seen_at" value="([^"]+)"', page)[0])
    assert op.post(f"/topics/{topic}/edit/", {**mine, "seen_at": seen}).status_code == 302
    assert Topic.objects.get(pk=topic).summary == "My version"


def test_what_is_wrong_with_a_form_stands_beside_it_and_nothing_is_changed(op: Client, agent: Caller):
    topic = agent.remember("Tea")
    reply = op.post(
        f"/topics/{topic}/edit/",
        sends(topic, title="", summary="kept words", salience="11", categories="\n".join(str(n) for n in range(60))),
    )
    page = reply.content.decode()
    assert reply.status_code == 422
    for said in ("less than or equal to 10", "At most 50 categories.", "kept words"):
        assert said in page
    # A topic needs no title if it has another text.
    assert op.post(f"/topics/{topic}/edit/", sends(topic, title="")).status_code == 422
    assert Topic.objects.get(pk=topic).title == "Tea"
    assert op.post(f"/topics/{topic}/edit/", sends(topic, title="", summary="An infusion")).status_code == 302
    assert Topic.objects.get(pk=topic).title == ""
    assert "An infusion" in read(op, topic)
    assert op.post(f"/topics/{topic}/archive/", {"reason": "x" * 501}).status_code == 422


def test_a_reason_that_is_kept_with_the_pin_is_shown(op: Client, agent: Caller):
    topic = agent.remember("Allergies")
    op.post(f"/topics/{topic}/pin/", {"reason": "a matter of health"})
    assert "a matter of health" in read(op, topic)
    assert "It is pinned." in read(op, topic)


def test_statements_do_not_grow_with_what_a_topic_has(looker: Client, cast: Cast):
    counts: dict[str, set[int]] = {"": set(), "uses/": set(), "salience/": set(), "field/?name=f0": set()}
    for size in (10, 200):
        topic = cast.agent.remember("Big", values={f"f{number}": "0" for number in range(min(size, 190))})
        cast.agent.post(
            "/v1/ingest/batch",
            [
                {"placement": "version_field", "topic_id": topic, "fields": [{"name": "f0", "value": str(number)}]}
                for number in range(size)
            ],
        ).ok()
        cast.agent.post(
            "/v1/ingest/batch",
            [
                {"placement": "new_topic", "title": f"n {number}", "edges": [{"kind": "k", "to_topic_id": topic}]}
                for number in range(size)
            ],
        ).ok()
        now = dt.datetime.now(dt.UTC)
        AccessLog.objects.bulk_create(
            AccessLog(
                at=now,
                actor="key:1",
                scope="/",
                query="q",
                query_hash=str(number),
                bump=0.1,
                field_bump=0.1,
                topic_ids=[topic],
            )
            for number in range(size)
        )
        folded(now)
        for below, seen in counts.items():
            read(looker, topic, below)
            with CaptureQueriesContext(connection) as spent:
                read(looker, topic, below)
            seen.add(len(spent))
    # Four of them are the session, the account, the pauses and the counters of the menu.
    assert all(len(seen) == 1 or (below == "uses/" and max(seen) <= 7) for below, seen in counts.items()), counts
    assert (counts[""], counts["salience/"], counts["field/?name=f0"]) == ({21}, {9}, {7}), counts


def test_what_was_done_can_be_taken_back_from_the_notice(op: Client, agent: Caller, clock: Clock):
    clock.stop()
    topic = agent.remember("Tea")
    clock.forward(days=1)
    before = Vitality.objects.values().get(pk=topic)
    page = op.post(f"/topics/{topic}/archive/", {"reason": "a slip"}, follow=True).content.decode()
    assert "“Tea” is archived." in page
    clock.forward(seconds=5)
    address = re.findall(r'action="(/undo/[^"]+)"', page)[0]
    page = op.post(address, {"next": f"/topics/{topic}/"}, follow=True).content.decode()
    assert "1 memory became active again" in page
    assert Vitality.objects.values().get(pk=topic) == before
    clock.forward(days=1)
    got = salience_history(uuid.UUID(topic), principal=principal_like("reader"), now=clock.now)
    assert got["exact_since"] is None
    assert [turn["what"] for turn in got["turns"]] == ["created", "archived", "undone"]


def test_uses_name_the_key_that_asked(looker: Client, agent: Caller) -> None:
    topic = agent.remember("The skis are in the attic")
    agent.query("skis in the attic")

    page = looker.get(f"/topics/{topic}/uses/").content.decode()
    assert re.search(r'name=key%3Aagent"[^>]*>agent</a> <span[^>]*>agent key<', page)
