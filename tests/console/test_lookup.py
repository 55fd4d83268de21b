"""The lookup page: one box over everything, exact search beside the index, and what an agent would see."""

import csv
import datetime as dt
import html
import io
import json
import operator
import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from memory.access.keys import key_create
from memory.console.pages.lookup import CHEATS, COLUMNS
from memory.core.scopes import scope_within
from memory.forgetting.manual_actions import topics_release
from memory.models import AccessLog, AuditEvent, Rung, Topic, Vitality
from memory.predicates.search_text import search_narrow, search_parse
from memory.predicates.tree import AllOf, AnyOf, Comparison, Not, Phrase, Predicate, Word, all_of, any_of
from memory.recall import search
from tests.cast import Caller, Clock, principal_like, worker_turn
from tests.console.people import body_of, codes_of, posted, statements_of, statements_reported
from tests.generated import examples
from tests.predicates.typed import typed

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
OPERATOR = principal_like("operator")


def look(client: Client, q: str, **members: Any) -> str:
    reply = client.get("/lookup/", {"q": q, **members})
    assert reply.status_code == 200, (reply.status_code, body_of(reply)[:500])
    return body_of(reply)


def part_of(page: str, name: str) -> str:
    """Return the section of a page for one standing, "" if there is none."""
    return page.partition(f'lookup-{name}" aria-label')[2].partition("</section>")[0]


def ids_in(page: str) -> list[str]:
    """Return the topics of the results, ranked or in a table, in the order of the page."""
    return re.findall(r'(?:<h3>|<td class="title">)<a href="/topics/([0-9a-f-]{36})/"', page)


def found(client: Client, q: str, part: str = "live", **members: Any) -> list[str]:
    return ids_in(part_of(look(client, q, **members), part))


def archive(operator: Caller, topic_id: str) -> None:
    operator.post(f"/v1/topics/{topic_id}/archive", {}).ok()


def age(topic_id: str, **vitality: Any) -> None:
    Vitality.objects.filter(topic_id=topic_id).update(**vitality)


# --- The page


def test_live_and_archived_hits_stand_apart_and_say_so(looker: Client, agent: Caller, operator: Caller):
    live, gone = agent.remember("The kettle is blue"), agent.remember("The kettle was red")
    archive(operator, gone)
    for members in ({}, {"sort": "created"}):
        page = look(looker, "kettle", **members)
        assert ids_in(part_of(page, "live")) == [live]
        assert ids_in(part_of(page, "archived")) == [gone]
    assert "only if they include archived memories" in part_of(page, "archived")
    assert 'rung-archived">archived' in part_of(page, "archived")


def test_released_topics_are_shown_only_when_asked_for(looker: Client, agent: Caller):
    topic = agent.remember("The kettle is blue")
    topics_release([uuid.UUID(topic)], principal=OPERATOR, reason="", now=dt.datetime.now(dt.UTC))
    assert topic not in look(looker, "kettle")
    assert topic not in look(looker, "", sort="created")
    for q in ("is:released", "kettle is:released"):
        page = look(looker, q)
        assert ids_in(part_of(page, "released")) == [topic]
        assert "badge warn" in page


def test_merged_topics_are_shown_nowhere(looker: Client, agent: Caller):
    kept, gone = agent.remember("The kettle is blue"), agent.remember("The kettle is blue too")
    Topic.objects.filter(pk=gone).update(merged_into_id=kept)
    Vitality.objects.filter(pk=gone).update(live=False)
    for q in ("", "kettle", f"id:{gone}", "is:released"):
        assert gone not in ids_in(look(looker, q, sort="created"))


@pytest.mark.meaning
def test_words_rank_as_a_query_ranks_with_the_same_parts_of_the_score(looker: Client, agent: Caller):
    for text in ("Boiler pressure is too low", "The radiator drips", "Cats like warm boilers", "A walk in the park"):
        agent.remember(text, scope="/home")
    agent.remember("Boiler of somebody else", scope="/other")
    wanted = agent.query("warm boiler", scope="/home", top_k=20, explain=True)["candidates"]
    reply = looker.get("/lookup/", {"q": "warm boiler scope:/home"})
    hits = reply.context["found"].sections[0].hits
    assert [str(hit.topic_id) for hit in hits] == [candidate["topic_id"] for candidate in wanted]
    for hit, candidate in zip(hits, wanted, strict=True):
        assert hit.score.score == pytest.approx(candidate["score"])
        assert hit.score.meaning == pytest.approx(candidate["score_parts"]["meaning"])
        assert hit.score.own_words == pytest.approx(candidate["score_parts"]["own_words"])
    assert "neighbours’ words" in body_of(reply)


def test_the_best_of_a_bad_lot_is_shown_with_its_relevance_first(looker: Client, agent: Caller):
    for text in ("A cream for dry hands", "The radiator drips", "A walk in the park"):
        agent.remember(text)
    reply = looker.get("/lookup/", {"q": "lanolin"})
    hits = reply.context["found"].sections[0].hits
    assert hits[0].score.score == pytest.approx(1)
    shown = re.findall(r'class="score-sum">.*?<dd class="num">([\d.]+)<', body_of(reply))
    assert shown == [f"{hit.score.relevance:.2f}" for hit in hits]
    assert max(map(float, shown)) <= 0.5


def test_words_need_not_occur_where_rank_decides_and_have_to_in_a_list(looker: Client, agent: Caller):
    kettle, other = agent.remember("The kettle is blue"), agent.remember("Something else")
    assert set(found(looker, "kettle")) == {kettle, other}
    assert found(looker, "kettle", sort="created") == [kettle]
    assert found(looker, '"kettle"') == [kettle]
    assert found(looker, "blue -kettle") == [other]


def test_hits_that_only_resemble_the_words_are_folded_below_those_that_have_them(
    looker: Client, agent: Caller, operator: Caller
):
    live = agent.remember("A cream for dry hands")
    gone = agent.remember("Mara is allergic to lanolin")
    assert "No exact match." in look(looker, "vaseline")
    archive(operator, gone)
    page = look(looker, "lanolin")
    assert "No exact match." not in page
    before, _fold, after = part_of(page, "live").partition("<details")
    assert ids_in(before) == []
    assert "No live memory has every word of the search." in before
    assert ids_in(after) == [live]
    assert ids_in(part_of(page, "archived").partition("<details")[0]) == [gone]
    # In a list, every word has to occur, and nothing is folded.
    assert "<details" not in part_of(look(looker, "lanolin", sort="created"), "archived")


def test_words_are_marked_and_text_is_escaped(looker: Client, agent: Caller):
    agent.remember("Kettles <b>boil</b> & whistle", values={"where": "a kettle on <script>alert(1)</script> \ue000"})
    page = look(looker, "kettle")
    assert "<mark>Kettles</mark>" in page
    assert "<mark>kettle</mark>" in page
    assert "<b>" not in page
    assert "<script>alert" not in page
    assert "&amp; whistle" in page


def test_a_word_without_any_space_is_cut(looker: Client, agent: Caller):
    agent.remember("Kettle", summary="x" * 5000)
    assert "x" * 500 not in look(looker, "kettle")


def test_words_that_text_search_passes_over_are_left_out_and_named(looker: Client, agent: Caller):
    topic = agent.remember("Kettle")
    page = look(looker, "the kettle", sort="created")
    assert ids_in(page) == [topic]
    assert "too common: the" in page
    assert "left out" not in look(looker, "kettle")


def test_the_page_says_in_words_which_topics_it_looks_for(looker: Client, agent: Caller):
    agent.remember("Kettle", topic_kind="note")
    assert "Memories whose kind is note." in look(looker, "kettle kind:note")
    assert "Memories that mention kettle and whose kind is note." in look(looker, "kettle kind:note", sort="created")
    live = part_of(look(looker, ""), "live")
    assert "Kettle" in live
    assert "Memories whose" not in live
    assert "lookup-note" not in look(looker, "kettle")


def test_a_search_leaves_no_trace_and_reinforces_nothing(looker: Client, agent: Caller):
    topic = agent.remember("The kettle is blue")
    worker_turn()
    before = Vitality.objects.values().get(pk=topic)
    journal = AuditEvent.objects.count()
    with statements_reported() as got:
        for path in ("/lookup/", "/lookup/count/", "/lookup/agent/", "/lookup/export.csv"):
            body_of(looker.get(path, {"q": "kettle"}))
    assert got.written == set()
    worker_turn()
    assert not AccessLog.objects.exists()
    assert AuditEvent.objects.count() == journal
    assert Vitality.objects.values().get(pk=topic) == before


# --- The language


def test_each_qualifier_finds_what_it_says(looker: Client, agent: Caller, operator: Caller, clock: Clock):
    clock.set(NOW)
    old = agent.remember("Old", scope="/user/mara", topic_kind="note", categories=["work"], values={"city": "Berlin"})
    clock.forward(days=40)
    new = agent.remember("New", scope="/user/maria", fields=[{"name": "due date", "value": ""}])
    age(new, retrieval_count=5, last_retrieved_at=clock.now)
    operator.post(f"/v1/topics/{new}/pin", {}).ok()
    wanted = {
        f"id:{old}": [old],
        f"id:{old[:13]}": [old],
        old: [old],
        f"id:{old.replace('-', '').upper()}": [old],
        "scope:/user/mara": [old],
        "scope:/user": [new, old],
        "kind:note": [old],
        'kind:""': [new],
        "category:work": [old],
        "field:city": [old],
        "field:city=berlin": [old],
        "field:city=Bonn": [],
        'field:"due date"=""': [new],
        "salience:<0.6": [old],
        "salience:>=0.6": [new],
        "salience:0.3..0.5": [old],
        "created:<2026-06-02": [old],
        "created:2026-06-01": [old],
        "created:>2026-06-01": [new],
        "created:>=2026-06-01": [new, old],
        "created:<=2026-06-01": [old],
        "created:2026-05-01..2026-06-01": [old],
        "created:>30d": [old],
        "created:<1h": [new],
        "used:>30d": [old],
        "used:never": [old],
        "used:>=2026-07-01": [new],
        "retrievals:>3": [new],
        "retrievals:0": [old],
        "retrievals:1..5": [new],
        "pinned:yes": [new],
        "pinned:no": [old],
        "is:pinned": [new],
        "-pinned:yes": [old],
        "rung:active": [new, old],
        "kind:note OR pinned:yes": [new, old],
        "(kind:note OR pinned:yes) -scope:/user/mara": [new],
        "provenance:import": [new],
        "NOT provenance:import": [old],
        "is:live": [new, old],
        "rung:summarized": [],
        "by:agent": [new, old],
        "by:key:agent": [new, old],
        'by:"key:operator"': [new],
        "by:operator -kind:note": [new],
        "-by:operator": [old],
        "by:user:agent": [],
        "by:nobody": [],
    }
    Topic.objects.filter(pk=new).update(provenance="import")
    # Whoever adds to a topic has written it too; whoever pins it has not.
    operator.ingest("extend_topic", topic_id=new, fields=[{"name": "colour", "value": "blue"}])
    operator.post(f"/v1/topics/{old}/pin", {}).ok()
    operator.post(f"/v1/topics/{old}/unpin", {}).ok()
    for q, ids in wanted.items():
        assert found(looker, q) == ids, q
    archive(operator, old)
    assert found(looker, "rung:archived", "archived") == [old]
    assert found(looker, "is:archived", "archived") == [old]
    assert part_of(look(looker, "rung:archived"), "live") == ""
    assert found(looker, "-rung:archived") == [new]


@pytest.mark.parametrize(
    ("q", "wrong", "code"),
    [
        ("scop:/user", "scop:", "invalid-lookup"),
        ("tea rung:archive", "archive", "invalid-lookup"),
        ('by:" "', '" "', "invalid-lookup"),
        ("(tea", "(", "invalid-lookup"),
        ("<script>x:<1", None, ""),
    ],
)
def test_a_mistake_is_shown_in_its_place(looker: Client, q: str, wrong: str | None, code: str):
    reply = looker.get("/lookup/", {"q": q})
    page = body_of(reply)
    assert "<script>x" not in page
    if wrong is not None:
        assert reply.status_code == 422
        assert f"<mark>{html.escape(wrong)}</mark>" in page
        assert codes_of(reply) == [code]
        assert f'value="{html.escape(q)}"' in page
        for path, status in (("/lookup/count/", 400), ("/lookup/export.csv", 422)):
            assert looker.get(path, {"q": q}).status_code == status


@examples(40)
@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(
            (
                "a",
                " ",
                "-",
                "(",
                ")",
                '"',
                "OR",
                "kind:",
                "salience:<1",
                "field:x=",
                "%s",
                "%(x)s",
                "'",
                "\\",
                "created:>1y",
                "used:<1000y",
                "id:f",
                "\u0000",
                ";",
                "&",
                "!",
                "<->",
                "a:*",
            )
        ),
        max_size=12,
    ).map("".join)
)
@pytest.mark.django_db
def test_nothing_that_is_typed_breaks_the_page(q: str):
    client = _reader()
    for members in ({}, {"sort": "idle"}):
        reply = client.get("/lookup/", {"q": q, **members})
        assert reply.status_code in (200, 422), (q, reply.status_code)


def _reader() -> Client:
    from django.contrib.auth.models import User

    from tests.console.people import account_make, client_of

    user = User.objects.filter(username="reader").first()
    return client_of(user or account_make("reader"))


def test_what_is_added_to_the_address_by_hand_is_refused_in_a_sentence(looker: Client, agent: Caller):
    agent.remember("Tea")
    for members in (
        {"sort": "taste"},
        {"part": "lost"},
        {"cursor": "x", "part": "live"},
        {"cursor": "x"},
        {"cursor": "WyJjcmVhdGVkIl0=", "part": "live"},
        {"q": "tea", "cursor": "x", "part": "live"},
    ):
        assert looker.get("/lookup/", members).status_code == 400, members


def test_every_line_of_the_cheat_sheet_runs(looker: Client, agent: Caller):
    agent.remember("Tea")
    page = look(looker, "")
    for example, _meaning in CHEATS:
        assert looker.get("/lookup/", {"q": example}).status_code == 200, example
    assert page.count('class="mono" href="/lookup/?q=') == len(CHEATS)


# --- The tree and the SQL

SCOPES = ("/", "/a", "/a/b", "/ab")
# Words that no stemming touches.
WORDS = ("kavo", "zilu", "brom", "Kavo")
HALF_LIFE = 30 * 86_400.0


@st.composite
def stored(draw: st.DrawFn) -> dict[str, Any]:
    title = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
    standing_ = draw(st.sampled_from(("live", "live", "archived", "released")))
    created = NOW - dt.timedelta(days=draw(st.integers(0, 60)), hours=draw(st.integers(0, 23)))
    return {
        "title": title,
        "scope": draw(st.sampled_from(SCOPES)),
        "kind": draw(st.sampled_from(("", "note", "Note"))),
        "categories": draw(st.lists(st.sampled_from(("x", "y")), unique=True)),
        "standing": standing_,
        "rung": 3 if standing_ == "archived" else draw(st.integers(0, 2)),
        "created": created,
        "used": draw(st.none() | st.integers(0, 40).map(lambda days: NOW - dt.timedelta(days=days, hours=5))),
        "retrievals": draw(st.integers(0, 4)),
        "pinned": draw(st.booleans()),
        "field": draw(st.none() | st.sampled_from(("kavo", "Zilu brom", ""))),
        "salience": draw(st.sampled_from((0.05, 0.2, 1.0, 3.0))),
        "provenance": draw(st.sampled_from(("api", "import"))),
    }


def compared(names: tuple[str, ...], op: Any, values: Any) -> Any:
    return st.builds(Comparison, st.sampled_from(names), st.just(op) if isinstance(op, str) else op, values)


def between(name: str, values: Any) -> Any:
    return st.tuples(values, values).map(
        lambda pair: AllOf((Comparison(name, ">=", min(pair)), Comparison(name, "<=", max(pair))))
    )


_order = st.sampled_from(("<", "<=", ">", ">="))
_days = st.integers(0, 60).map(lambda days: NOW.date() - dt.timedelta(days=days))
leaves: Any = st.one_of(
    st.sampled_from(WORDS).map(Word),
    st.sampled_from(("kavo zilu", "ZILU", "brom brom", "zilu brom")).map(Phrase),
    compared(("id",), "begins", st.sampled_from(("0", "019", "f"))),
    compared(("scope",), "within", st.sampled_from(SCOPES)),
    compared(("kind",), "is", st.sampled_from(("", "note", "Note", "other"))),
    compared(("category",), "has", st.sampled_from(("x", "y", "z"))),
    compared(("provenance",), "is", st.sampled_from(("api", "import"))),
    compared(("title",), "contains", st.sampled_from(("avo", "ZILU", "o z"))),
    compared(("rung",), "is", st.sampled_from(("active", "summarized", "detached", "archived"))),
    compared(
        ("field",),
        "has",
        st.tuples(st.sampled_from(("f", "g")))
        | st.tuples(st.sampled_from(("f", "g")), st.sampled_from(("kavo", "zilu BROM", ""))),
    ),
    compared(("live", "released"), "is", st.just(True)),
    compared(("pinned",), "is", st.booleans()),
    compared(("used",), "is", st.none()),
    compared(("salience",), _order, st.sampled_from((0.1, 0.5, 2.0))),
    between("salience", st.sampled_from((0.1, 0.5, 2.0))),
    compared(("retrievals",), _order | st.just("is"), st.integers(0, 4)),
    compared(("created", "used"), _order | st.just("is"), _days),
    between("used", _days),
    between("created", _days),
    compared(("age", "idle"), _order, st.integers(0, 50).map(lambda n: n * 86_400.0)),
)


def _several(inner: Any) -> Any:
    parts = st.lists(inner, min_size=2, max_size=3)
    return inner.map(Not) | parts.map(lambda some: all_of(*some)) | parts.map(lambda some: any_of(*some))


trees = st.recursive(leaves, _several, max_leaves=6)


def holds(tree: Predicate, row: dict[str, Any]) -> bool:
    """Evaluate a tree in Python, independently of the SQL."""
    texts = [row["title"].lower(), *([row["field"].lower()] if row["field"] is not None else [])]
    match tree:
        case AllOf(parts):
            return all(holds(part, row) for part in parts)
        case AnyOf(parts):
            return any(holds(part, row) for part in parts)
        case Not(part):
            return not holds(part, row)
        case Word(text):
            return any(text.lower() in said.split() for said in texts)
        case Phrase(text):
            return any(f" {text.lower()} " in f" {said} " for said in texts)
        case Comparison(field, op, value):
            return _compare(field, op, value, row)
    raise AssertionError(tree)


def _compare(field: str, op: str, value: Any, row: dict[str, Any]) -> bool:
    match field:
        case "id":
            return row["id"].hex.startswith(value)
        case "scope":
            return scope_within(row["scope"], value)
        case "category":
            return value in row["categories"]
        case "title":
            return value.lower() in row["title"].lower()
        case "rung":
            return Rung(row["rung"]).label == value
        case "field":
            name, *wanted = value
            return (
                name == "f" and row["field"] is not None and (not wanted or wanted[0].lower() == row["field"].lower())
            )
        case "live" | "released":
            return bool(row["standing"] == field)
        case "age":
            return ordered((NOW - row["created"]).total_seconds(), op, value)
        case "idle":
            return ordered((NOW - (row["used"] or row["created"])).total_seconds(), op, value)
        case "used" if value is None:
            return bool(row["retrievals"] == 0)
        case "created" | "used":
            return row[field] is not None and ordered(row[field].date(), op, value)
    return ordered(row[field], op, value)


def ordered(a: Any, op: str, b: Any) -> bool:
    return {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "is": operator.eq}[op](a, b)


@examples(40)
@given(st.lists(stored(), min_size=1, max_size=6), trees)
def test_the_tree_and_the_sql_choose_the_same_topics(agent: Caller, rows: list[dict[str, Any]], tree: Predicate):
    _store(agent, rows)
    assert search_parse(typed(tree)) == tree
    asked = search.search_read(typed(tree), principal=OPERATOR)
    for name in ("live", "archived", "released"):
        ids, following = search.search_page(asked, name, sort="created", cursor=None, limit=50, now=NOW)
        assert following is None
        expected = [row for row in rows if row["standing"] == name and holds(tree, row)]
        expected.sort(key=lambda row: (row["created"], row["id"]), reverse=True)
        assert ids == [row["id"] for row in expected], (name, typed(tree))


def _store(agent: Caller, rows: list[dict[str, Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE memory_topic CASCADE; SET CONSTRAINTS ALL DEFERRED")
    for row in rows:
        fields = [] if row["field"] is None else [{"name": "f", "value": row["field"]}]
        made = agent.ingest(
            title=row["title"], scope=row["scope"], topic_kind=row["kind"], categories=row["categories"], fields=fields
        )
        row["id"] = uuid.UUID(made["topic_id"])
        live = row["standing"] == "live"
        released = NOW if row["standing"] == "released" else None
        Topic.objects.filter(pk=row["id"]).update(
            rung=row["rung"], created_at=row["created"], released_at=released, provenance=row["provenance"]
        )
        Vitality.objects.filter(pk=row["id"]).update(
            rung=row["rung"],
            created_at=row["created"],
            live=live,
            pinned=row["pinned"],
            retrieval_count=row["retrievals"],
            last_retrieved_at=row["used"],
            salience=row["salience"],
            reinforced_at=NOW,
            half_life=HALF_LIFE,
        )
        with connection.cursor() as cursor:
            for table in ("memory_topicdocument", "memory_topicvector"):
                cursor.execute(f"UPDATE {table} SET live = %s WHERE topic_id = %s", [live, row["id"]])


# --- Pages, counts, exports


@pytest.mark.parametrize("sort", ["created", "oldest", "salience", "faintest", "used", "idle"])
def test_pages_follow_each_other_without_gap_or_repeat(agent: Caller, clock: Clock, sort: str):
    clock.set(NOW)
    items = [{"placement": "new_topic", "title": f"Tea {number}"} for number in range(25)]
    agent.post("/v1/ingest/batch", items).ok()
    for place, topic in enumerate(Topic.objects.order_by("id")):
        age(str(topic.pk), salience=1 + place % 4, last_retrieved_at=None if place % 3 else NOW)
    asked = search.search_read("tea", principal=OPERATOR)
    seen: list[uuid.UUID] = []
    cursor = None
    for moment in range(6):
        ids, cursor = search.search_page(
            asked, "live", sort=sort, cursor=cursor, limit=7, now=NOW + dt.timedelta(days=moment)
        )
        seen += ids
        if cursor is None:
            break
    whole, _none = search.search_page(asked, "live", sort=sort, cursor=None, limit=100, now=NOW)
    assert seen == whole
    assert len(set(seen)) == 25


def test_a_list_goes_on_over_its_links(looker: Client, agent: Caller):
    agent.post("/v1/ingest/batch", [{"placement": "new_topic", "title": f"Tea {n}"} for n in range(30)]).ok()
    page = look(looker, "tea", sort="created")
    seen = ids_in(page)
    following = re.search(r'rel="next" href="(\?[^"]+)"', page)
    assert following is not None
    rest = body_of(looker.get("/lookup/" + following[1].replace("&amp;", "&")))
    seen += ids_in(rest)
    assert len(set(seen)) == len(seen) == 30
    assert "This is the last page." in rest


def test_counts_load_by_themselves_and_count_what_meets_everything(looker: Client, agent: Caller, operator: Caller):
    for number in range(3):
        agent.remember(f"Tea {number}")
    archive(operator, agent.remember("Tea of old"))
    agent.remember("Something else")
    assert "4 memories" in body_of(looker.get("/lookup/count/", {"q": "tea"}))
    assert "1 memory" in body_of(looker.get("/lookup/count/", {"q": "tea", "part": "archived"}))
    part = looker.get("/lookup/count/", {"q": "tea", "part": "live"}, headers={"HX-Request": "true"})
    assert body_of(part) == "3 memories"
    page = look(looker, "tea")
    assert "4 memories" not in page
    assert 'hx-get="/lookup/count/?q=tea&amp;part=live"' in page


def test_the_order_field_shows_the_order_in_force(looker: Client, agent: Caller):
    agent.remember("Tea")
    orders = {
        "": ("", "Newest first"),
        "?q=scope:/": ("", "Newest first"),
        "?q=tea": ("", "Best match"),
        "?sort=created": ("", "Newest first"),
        "?q=tea&sort=created": ("created", "Newest first"),
        "?sort=used": ("used", "Last used first"),
    }
    for query, order in orders.items():
        page = body_of(looker.get(f"/lookup/{query}"))
        assert re.findall(r'<option value="(\w*)" selected>(.*?)</option>', page) == [order], query


def facets_of(client: Client, q: str, **members: Any) -> dict[str, list[tuple[str, int, str]]]:
    """Return the facets of a search: by label, each value with its number and the search that it leads to."""
    page = body_of(client.get("/lookup/facets/", {"q": q, **members}, headers={"HX-Request": "true"}))
    chip = r'<a href="/lookup/([^"]*)">\s*(.*?)\s*<span class="num">([\d,]+)</span></a>'
    return {
        label: [
            (html.unescape(value), int(number.replace(",", "")), QueryDict(html.unescape(address)[1:]).get("q", ""))
            for address, value, number in re.findall(chip, row)
        ]
        for label, row in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page, re.DOTALL)
    }


def test_facets_count_what_their_links_find(looker: Client, agent: Caller, operator: Caller):
    for number in range(3):
        agent.remember(f"Tea {number}", scope="/user/mara/kitchen", topic_kind="tool_output")
    agent.remember("Tea for two", scope="/user/bob", topic_kind="note")
    operator.remember("Tea (green)", scope="/user", topic_kind="a b(c)")
    archive(operator, agent.remember("Tea of old", scope="/home"))
    agent.remember("Something else", scope="/else")

    for q in ("", "tea", "tea OR else", "scope:/user", "kind:note OR kind:tool_output"):
        shown = facets_of(looker, q)
        assert sum(map(len, shown.values())) > 0
        for label, values in shown.items():
            for value, number, search_ in values:
                part = {} if q else {"part": "live"}
                said = body_of(looker.get("/lookup/count/", {"q": search_, **part}, headers={"HX-Request": "true"}))
                assert said.split()[0] == str(number), (q, label, value, search_)
    assert facets_of(looker, "tea") == {
        "Scope": [("/user", 5, "tea scope:/user"), ("/home", 1, "tea scope:/home")],
        "Kind": [
            ("tool output", 3, "tea kind:tool_output"),
            ("a b(c)", 1, 'tea kind:"a b(c)"'),
            ("note", 1, "tea kind:note"),
        ],
        "Stage": [("active", 5, "tea rung:active"), ("archived", 1, "tea rung:archived")],
        "Author": [("key:agent", 5, "tea by:key:agent"), ("key:operator", 1, "tea by:key:operator")],
    }
    assert [value for value, _number, _search in facets_of(looker, "scope:/user")["Scope"]] == [
        "/user/mara",
        "/user/bob",
    ]
    # One value narrows nothing.
    assert facets_of(looker, "kind:note OR kind:x") == {}
    # The page of no question counts live topics alone.
    assert sum(number for _value, number, _search in facets_of(looker, "")["Author"]) == 7 - 1


def test_a_chosen_facet_can_be_taken_away_and_is_replaced(looker: Client, agent: Caller):
    agent.remember("Tea", scope="/user/mara", topic_kind="note")
    page = body_of(looker.get("/lookup/facets/", {"q": "tea kind:note scope:/user"}))
    assert "<html" in page
    assert 'chosen" href="/lookup/?q=tea+scope%3A%2Fuser"' in page
    assert 'chosen" href="/lookup/?q=tea+kind%3Anote"' in page
    # A narrower scope takes the place of the wider one.
    assert "q=tea+kind%3Anote+scope%3A%2Fuser%2Fmara" in page
    assert looker.get("/lookup/facets/", {"q": "(tea"}).status_code == 400


def test_facets_of_a_large_store_count_the_newest_and_say_so(
    looker: Client, agent: Caller, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search, "FACET_TOPICS", 3)
    monkeypatch.setattr("memory.console.pages.lookup.FACET_TOPICS", 3)
    agent.post("/v1/ingest/batch", [{"placement": "new_topic", "title": f"Tea {n}"} for n in range(3)]).ok()
    assert "newest" not in body_of(looker.get("/lookup/facets/"))
    agent.remember("More tea")
    assert "Counted over the newest 3." in body_of(looker.get("/lookup/facets/"))


@pytest.mark.parametrize(
    ("text", "name", "value", "narrowed"),
    [
        ("", "kind", "note", "kind:note"),
        ("kind:x tea", "kind", "two words", 'tea kind:"two words"'),
        ("tea OR coffee kind:x", "kind", "note", "(tea OR coffee kind:x) kind:note"),
        ("kind:x AND tea", "kind", "", "tea"),
        ('-kind:x (kind:y OR a) kind:z "kind:q  b"', "kind", "w", '-kind:x (kind:y OR a) "kind:q  b" kind:w'),
        ("KIND:x NOT kind:y", "kind", "", "NOT kind:y"),
    ],
)
def test_a_condition_takes_the_place_of_its_like(text: str, name: str, value: str, narrowed: str):
    assert search_narrow(text, name, value) == narrowed


def test_the_search_box_completes_conditions(looker: Client, agent: Caller):
    agent.remember("Tea", scope="/user/mara", topic_kind="tool output")

    def completed(text: str) -> list[str]:
        page = body_of(looker.get("/suggest/search/", {"field": "q", "q": text}))
        return [html.unescape(value) for value in re.findall(r'<option value="(.*?)">', page)]

    assert 'hx-get="/suggest/search/?field=q"' in look(looker, "")
    assert completed("tea scope:/us") == ["tea scope:/user"]
    assert completed("tea scope:/user/") == ["tea scope:/user/mara"]
    assert completed("tea -kind:too") == ['tea -kind:"tool output"']
    assert completed('tea kind:"tool o') == ['tea kind:"tool output"']
    assert completed("(rung:a") == ["(rung:active", "(rung:archived"]
    assert "by:key:agent" in completed("by:agen")
    assert completed("tea") == completed("kinds:too") == completed('"kind:too"') == []


def test_exports_hold_exactly_what_the_filter_finds(looker: Client, agent: Caller, operator: Caller):
    teas = [agent.remember(f"Tea {number}", topic_kind="drink") for number in range(5)]
    archive(operator, teas[0])
    agent.remember("=1+1 tea", topic_kind="sum")
    agent.remember("Coffee", topic_kind="drink")
    rows = list(csv.DictReader(io.StringIO(body_of(looker.get("/lookup/export.csv", {"q": "tea kind:drink"}))[1:])))
    assert tuple(rows[0]) == COLUMNS
    assert [row["topic_id"] for row in rows] == [*reversed(teas[1:]), teas[0]]
    assert [row["standing"] for row in rows] == ["live"] * 4 + ["archived"]
    lines = body_of(looker.get("/lookup/export.jsonl", {"q": "tea kind:drink", "part": "archived"})).splitlines()
    assert [json.loads(line)["topic_id"] for line in lines] == [teas[0]]
    assert "'=1+1 tea" in body_of(looker.get("/lookup/export.csv", {"q": "kind:sum"}))


def test_an_export_goes_on_over_pages_and_standings(agent: Caller, operator: Caller):
    teas = [agent.remember(f"Tea {number}") for number in range(7)]
    for topic in teas[:3]:
        archive(operator, topic)
    asked = search.search_read("tea", principal=OPERATOR)
    for limit in (1, 2, 3, 4, 7, 10):
        seen: list[str] = []
        cursor: str | None = None
        for _turn in range(20):
            rows, cursor = search.search_export(asked, cursor=cursor, limit=limit, now=dt.datetime.now(dt.UTC))
            assert len(rows) <= limit
            seen += [str(row.topic_id) for row in rows]
            if cursor is None:
                break
        assert seen == [*reversed(teas[3:]), *reversed(teas[:3])], limit


@pytest.mark.parametrize(
    ("path", "members", "most"),
    [
        ("/lookup/", {"q": "tea"}, 13),
        ("/lookup/", {"q": 'tea "pot 1" rung:active (a OR pot)'}, 11),
        ("/lookup/", {"q": "tea", "sort": "salience"}, 8),
        ("/lookup/", {"q": "-kind:x"}, 7),
        ("/lookup/count/", {"q": "tea"}, 7),
        # One more when topics are similar, however many.
        ("/lookup/agent/", {"q": "tea"}, 10),
    ],
)
def test_the_number_of_statements_does_not_grow_with_topics(
    looker: Client, agent: Caller, operator: Caller, path: str, members: dict[str, str], most: int
):
    def more(count: int) -> None:
        items = [
            {"placement": "new_topic", "title": f"Tea pot {n}", "fields": [{"name": "f", "value": str(n)}]}
            for n in range(count)
        ]
        results = agent.post("/v1/ingest/batch", items).ok()["results"]
        archive(operator, results[0]["topic_id"])

    more(10)
    few = statements_of(lambda: looker.get(path, members))
    more(190)
    assert statements_of(lambda: looker.get(path, members)) == few
    assert few <= most, few


# --- What an agent would see


def test_an_agent_would_see_exactly_what_the_route_answers(looker: Client, agent: Caller, alice: Caller, clock: Clock):
    clock.stop()
    other = agent.remember("Pot of tea", scope="/user/alice", values={"colour": "blue"})
    agent.remember("Tea", scope="/user/alice", edges=[{"to_topic_id": other, "kind": "beside"}])
    agent.remember("Tea of Bob", scope="/user/bob")
    key = next(iter(_keys("alice")))
    for asked, said, caller in (
        ({}, {}, agent),
        ({"scope": "/user/bob"}, {"scope": "/user/bob"}, agent),
        ({"top_k": 1, "depth": 0}, {"top_k": 1, "depth": 0}, agent),
        ({"token_budget": 5}, {"token_budget": 5}, agent),
        ({"include_archived": "on"}, {"include_archived": True}, agent),
        ({"as_of": "2020-01-01T00:00"}, {"as_of": "2020-01-01T00:00:00Z"}, agent),
        ({"key": key}, {}, alice),
    ):
        reply = looker.get("/lookup/agent/", {"q": "tea", **asked})
        assert reply.status_code == 200
        assert reply.context["reply"] == caller.query("tea", **said), asked
    page = body_of(looker.get("/lookup/agent/", {"q": "tea", "explain": "on"}))
    assert "Nothing is recorded" in page
    assert "Pot of tea" in page
    assert "meaning" in page


def _keys(name: str) -> list[str]:
    from memory.models import ApiKey

    return [str(key) for key in ApiKey.objects.filter(name=name).values_list("id", flat=True)]


def test_the_raw_reply_on_the_page_is_the_reply(looker: Client, agent: Caller, clock: Clock):
    clock.stop()
    agent.remember("Tea <b>", values={"colour": "blue"})
    page = body_of(looker.get("/lookup/agent/", {"q": "tea"}))
    shown = re.search(r'aria-label="JSON">(.*?)</pre>', page, re.DOTALL)
    assert shown is not None
    from html import unescape

    assert json.loads(unescape(shown[1])) == agent.query("tea")


def test_a_question_that_cannot_be_asked_is_refused_in_the_form(looker: Client, agent: Caller):
    key = next(iter(_keys("alice")))
    for asked, code in (
        ({"q": ""}, "required"),
        ({"q": "tea", "top_k": "0"}, "min_value"),
        ({"q": "tea", "depth": "9"}, "max_value"),
        ({"q": "tea", "scope": "/a b"}, "invalid-scope"),
        ({"q": "tea", "key": key, "scope": "/user/bob"}, "not-found"),
        ({"q": "tea", "key": str(uuid.uuid4())}, "invalid_choice"),
        ({"q": "tea", "as_of": "soon"}, "invalid"),
    ):
        reply = looker.get("/lookup/agent/", asked)
        assert (reply.status_code, codes_of(reply)) == (422, [code]), asked
    assert not AccessLog.objects.exists()


def test_keys_that_do_not_open_anything_cannot_be_looked_through(looker: Client, agent: Caller):
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    key_create(name="expired one", role="agent", secret="ms_" + "e" * 40, expires_at=past)
    page = body_of(looker.get("/lookup/agent/"))
    assert "expired one" not in page
    assert "alice" in page


def test_the_addresses_are_where_they_are_said_to_be():
    assert reverse("console:lookup_agent") == "/lookup/agent/"
    assert reverse("console:lookup_export", args=["csv"]) == "/lookup/export.csv"


def test_hits_can_be_picked_for_one_change_of_all(op: Client, looker: Client, agent: Caller) -> None:
    topics = [agent.remember(f"Skis {name}") for name in ("long", "short")]

    page = op.get("/lookup/", {"q": "skis"}).content.decode()
    assert all(f'name="topic" value="{topic}"' in page for topic in topics)
    done = posted(op, "archive", topics, next="/lookup/?q=skis").content.decode()
    assert "2 memories are archived." in done
    assert 'name="topic"' not in looker.get("/lookup/", {"q": "skis"}).content.decode()
