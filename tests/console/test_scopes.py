"""Scopes and agents: the tree by level, one scope, and who writes there."""

import datetime as dt
import html
import re
import uuid

import pytest
from django.test import Client

from memory.access.keys import key_create
from memory.access.principal import SYSTEM, Principal
from memory.console.queries.agents import agents_list
from memory.console.queries.scope_tree import ScopeFigures, Sort, scope_children, scope_children_count, scope_writers
from memory.core.errors import NotVisible
from memory.forgetting.manual_actions import topics_release
from memory.models import ApiKey, AuditEvent
from tests.cast import Caller, Clock
from tests.forgetting.shop import policy_put, topics_make

pytestmark = pytest.mark.django_db


def read(client: Client, address: str, **query: str) -> str:
    reply = client.get(address, query)
    assert reply.status_code == 200, (address, reply.status_code)
    return html.unescape(reply.content.decode())


def section(page: str, name: str) -> str:
    """Return the part of a page under the heading with the id ``name``."""
    return page.partition(f'aria-labelledby="{name}"')[2].partition("</section>")[0]


def level(
    clock: Clock, parent: str = "/", *, sort: Sort = "size", principal: Principal = SYSTEM, limit: int = 50
) -> list[ScopeFigures]:
    """Return a whole level of the tree, read in pages of ``limit``."""
    found: list[ScopeFigures] = []
    cursor = None
    while True:
        rows, cursor = scope_children(parent, sort=sort, principal=principal, now=clock.now, cursor=cursor, limit=limit)
        found += rows
        if cursor is None:
            return found


@pytest.fixture
def homes(operator: Caller) -> dict[str, list[str]]:
    """Topics in scopes of two depths, and in the root."""
    sizes = {"/": 1, "/user/ann": 3, "/user/bob": 2, "/user": 2, "/user-ann": 1, "/team/red/deep": 4}
    return {path: topics_make(operator, size, scope=path) for path, size in sizes.items()}


def test_a_level_counts_each_scope_with_what_lies_below_it(homes: dict[str, list[str]], clock: Clock) -> None:
    assert {each.path: (each.live, each.below) for each in level(clock)} == {
        "/": (1, 0),
        "/user": (7, 2),
        "/user-ann": (1, 0),
        "/team": (4, 1),
    }
    # What lies directly in a scope is a row of its own.
    assert {each.path: each.live for each in level(clock, "/user")} == {"/user": 2, "/user/ann": 3, "/user/bob": 2}
    assert [each.path for each in level(clock, "/team/red")] == ["/team/red/deep"]
    assert level(clock, "/nowhere") == []


def test_a_level_tells_rungs_growth_and_recalls(
    homes: dict[str, list[str]], operator: Caller, agent: Caller, clock: Clock
) -> None:
    operator.post(f"/v1/topics/{homes['/user/ann'][0]}/archive", {"reason": "old"}).ok()
    topics_release([uuid.UUID(homes["/user/bob"][0])], principal=SYSTEM, reason="for the test", now=clock.now)
    agent.query("What is here?", scope="/user/ann")
    agent.query("What is here?", scope="/user")
    found = {each.path: each for each in level(clock, "/user")}
    assert found["/user/ann"].rungs == {"active": 2, "summarized": 0, "detached": 0}
    assert {path: (each.growth, each.recalls) for path, each in found.items()} == {
        "/user": (2, 1),
        "/user/ann": (2, 1),
        "/user/bob": (1, 0),
    }
    clock.forward(days=31)
    assert [(each.growth, each.recalls) for each in level(clock, "/user")] == [(0, 0)] * 3


@pytest.mark.parametrize("sort", ["size", "name", "growth", "recalls"])
def test_pages_of_a_level_follow_each_other_in_each_order(
    homes: dict[str, list[str]], agent: Caller, clock: Clock, sort: Sort
) -> None:
    agent.query("What is here?", scope="/team/red")
    whole = level(clock, sort=sort)
    assert level(clock, sort=sort, limit=1) == whole
    assert scope_children_count("/", principal=SYSTEM, at_most=10) == len(whole) == 4
    first = {"size": "/user", "name": "/", "growth": "/user", "recalls": "/team"}
    assert whole[0].path == first[sort]


def test_a_caller_sees_the_scopes_of_its_own_part_only(homes: dict[str, list[str]], clock: Clock) -> None:
    ann = Principal("key:1", "key:ann", "reader", scope="/user/ann")
    assert [each.path for each in level(clock, "/user/ann", principal=ann)] == ["/user/ann"]
    for outside in ("/", "/user", "/user/bob"):
        with pytest.raises(NotVisible):
            level(clock, outside, principal=ann)


def test_agents_of_a_scope_have_a_valid_key_for_all_of_it_that_may_write(
    homes: dict[str, list[str]], clock: Clock
) -> None:
    ApiKey.objects.all().delete()
    for name, role, scope in (
        ("whole", "agent", "/"),
        ("users", "operator", "/user"),
        ("other", "agent", "/user-ann"),
        ("reads", "reader", "/"),
        ("ann", "agent", "/user/ann"),
    ):
        key_create(name=name, role=role, secret=f"ms_{name}-secret-of-the-test", scope=scope)
    gone = key_create(name="gone", role="agent", secret="ms_gone-secret-of-the-test", scope="/")
    gone.revoked_at = clock.now
    gone.save()
    found = scope_writers(["/", "/user", "/user/ann"], now=clock.now)
    assert {path: each.count for path, each in found.items()} == {"/": 1, "/user": 2, "/user/ann": 3}
    assert found["/user"].names == ("users", "whole")


def test_the_tree_leads_from_level_to_level_and_to_each_scope(
    looker: Client, operator: Caller, homes: dict[str, list[str]]
) -> None:
    policy_put(operator, "/user", mode="off")
    page = read(looker, "/scopes/")
    assert 'href="/scopes/?within=/user"' in page.replace("%2F", "/")
    assert 'href="/scope/?scope=/team"' in page.replace("%2F", "/")
    below = read(looker, "/scopes/", within="/user")
    assert "/ann" in below
    assert "directly in" in below
    assert "needs approval" not in below.partition("<tbody>")[2]
    assert read(looker, "/scopes/count/", within="/user").count("3 scopes")


def test_the_page_of_a_scope_has_its_numbers_and_what_happened_last(
    looker: Client, operator: Caller, agent: Caller, homes: dict[str, list[str]]
) -> None:
    policy_put(operator, "/user", half_life_days=3)
    operator.post("/v1/pause", {"scope": "/user", "reason": "looking into it"})
    agent.remember("Ann keeps bees", scope="/user/ann")
    agent.query("What does Ann keep?", scope="/user/ann")
    agent.query("Who is on the team?", scope="/team")
    page = read(looker, "/scope/", scope="/user/ann")
    assert "What does Ann keep?" in section(page, "recalls-title")
    assert "Who is on the team?" not in page
    assert "Ann keeps bees" in section(page, "changes-title")
    assert "version 1" in section(page, "policy-title")
    assert "looking into it" in section(page, "policy-title")
    assert "key:agent" in section(page, "keys-title")
    assert re.search(r'stat-number">4<', section(page, "rungs-title"))


def test_a_scope_without_topics_says_so(looker: Client) -> None:
    assert "No memory here" in read(looker, "/scope/", scope="/nowhere")
    assert looker.get("/scope/", {"scope": "/a b"}).status_code == 400


def test_agents_are_known_by_the_name_of_their_keys(agent: Caller, alice: Caller, clock: Clock) -> None:
    agent.remember("The key hangs by the door")
    agent.query("Where does the key hang?")
    agent.query("Where is the sledge?")
    key_create(name="agent", role="agent", secret="ms_another-secret-of-this-agent", scope="/home")
    found, _more = agents_list(sort="recalls", principal=SYSTEM, now=clock.now, cursor=None, limit=50)
    first = found[0]
    assert (first.name, first.keys, first.valid, first.written, first.recalls) == ("key:agent", 2, 2, 1, 2)
    assert first.scopes == ["/", "/home"]
    assert "key:alice" in {each.name for each in found}
    assert not any(each.name.startswith(("user:", "system")) for each in found)
    pages: list[str] = []
    cursor = None
    while True:
        rows, cursor = agents_list(sort="name", principal=SYSTEM, now=clock.now, cursor=cursor, limit=1)
        pages += [each.name for each in rows]
        if cursor is None:
            break
    assert pages == sorted(each.name for each in found)


def test_the_page_of_an_agent_has_its_keys_and_numbers(
    looker: Client, op: Client, agent: Caller, alice: Caller
) -> None:
    alice.remember("Alice plays the oboe")
    alice.query("What does Alice play?")
    agents = read(looker, "/agents/")
    assert re.search(r'/callers/\?name=key%3Aalice">alice</a> <span[^>]*>agent key<', agents)
    page = read(looker, "/callers/", name="key:alice")
    assert re.search(r"active.*?/scope/\?scope=%2Fuser%2Falice", section(page, "keys-title"), re.DOTALL)
    assert [figures(page)[label] for label in ("Wrote", "Recalls", "Forgot")] == ["1", "1", "0"]
    assert "ms_" not in page.replace(ApiKey.objects.get(name="alice").prefix, "")


def test_agents_of_a_whole_level_are_named_once_and_those_of_single_scopes_beside_them(
    looker: Client, agent: Caller, alice: Caller
) -> None:
    alice.remember("Alice plays the oboe")
    agent.remember("Bob plays the tuba", scope="/user/bob")
    page = read(looker, "/scopes/", within="/user")
    lines = [row.partition("</tr>")[0] for row in page.split("<tr data-row>")]
    rows = {name: row for name in ("alice", "bob") for row in lines if f">/{name}<" in row}
    assert "key%3Aalice" in rows["alice"]
    assert "key%3Aalice" not in rows["bob"]
    assert not any("key%3Aagent" in row for row in rows.values())
    assert "key%3Aagent" in page.partition("tree-note")[2]
    # Without keys for single scopes they have no column.
    assert "<th>Agents</th>" not in read(looker, "/scopes/", within="/user/alice")


def test_a_question_is_asked_as_the_agent_from_its_page(looker: Client, agent: Caller, alice: Caller) -> None:
    hers = alice.remember("Alice plays the oboe")
    other = agent.remember("Bob plays the oboe", scope="/user/bob")
    leads = re.search(r'href="(/lookup/agent/\?key=[^"]+)"', read(looker, "/callers/", name="key:alice"))
    assert leads
    key = leads[1].partition("=")[2]
    assert f'value="{key}" selected' in read(looker, leads[1])
    page = read(looker, "/lookup/agent/", q="Who plays the oboe?", key=key)
    assert hers in page
    assert other not in page
    ApiKey.objects.filter(pk=key).update(revoked_at="2026-01-01T00:00:00Z")
    assert "/lookup/agent/?key=" not in read(looker, "/callers/", name="key:alice")


def test_the_activity_of_a_caller_leads_to_its_page(looker: Client, alice: Caller) -> None:
    alice.remember("Alice plays the oboe")
    assert 'href="/callers/?name=alice"' in read(looker, "/audit/", actor="alice")
    assert "Alice plays the oboe" in read(looker, "/callers/", name="alice")


def test_lists_pages_and_home_count_the_same_days(looker: Client, alice: Caller, clock: Clock) -> None:
    today = dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC)
    # The first of the last 30 days is 2 March, the whole of it.
    for at in ((1, 9), (1, 23), (2, 9), (2, 13), (31, 11)):
        clock.set(dt.datetime(2026, 3, at[0], at[1], tzinfo=dt.UTC))
        alice.remember(f"Alice plays tune {at[0]} at {at[1]}")
        alice.query("What does Alice play?")
    clock.set(today)

    (user,) = [each for each in level(clock) if each.path == "/user"]
    agents, _more = agents_list(sort="name", principal=SYSTEM, now=clock.now, cursor=None, limit=50)
    (listed,) = [each for each in agents if each.name == "key:alice"]
    assert (user.growth, user.recalls) == (listed.written, listed.recalls) == (3, 3)
    for page in (read(looker, "/"), read(looker, "/scope/", scope="/user")):
        assert "+3 in 30 days" in page
    assert figures(read(looker, "/callers/", name="key:alice")) == {
        "Wrote": "3",
        "Recalls": "3",
        "Forgot": "0",
        "Live memories": "5",
        "Archived": "0",
        "Missed": "0",
    }
    assert read(looker, "/recalls/count/", actor="key:alice", range="30d").count("3 recalls")


def figures(page: str) -> dict[str, str]:
    """Return the number of each figure at the top of a page, by its label."""
    return dict(re.findall(r'<h2><a href="[^"]+">([^<]+)</a></h2>\s*<p class="stat-number">([^<]+)</p>', page))


def picture(page: str, label: str) -> str:
    """Return the source of the picture of one figure."""
    return page.partition(f">{label}</a></h2>")[2].partition("<svg")[2].partition("</svg>")[0]


def test_an_agent_has_the_figures_over_time_of_what_it_wrote(
    looker: Client, alice: Caller, agent: Caller, operator: Caller, clock: Clock
) -> None:
    policy_put(operator, topic_count_soft_limit=0, max_archive_share=1, prune_after_days=0, half_life_days=1)
    clock.set(dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC))
    old = [alice.remember(f"Alice plays tune {n}") for n in range(3)]
    others = [agent.remember(f"Bob plays tune {n}", scope="/user/bob") for n in range(2)]
    clock.forward(days=10)
    assert operator.post("/v1/runs", {"event": "manual", "dry_run": False}).ok()["applied"] == 5
    clock.forward(days=2)
    for topic in (old[0], *others):
        operator.get(f"/v1/topics/{topic}").ok()
    operator.post(f"/v1/topics/{old[1]}/restore", {"reason": "needed"}).ok()
    new = [alice.remember(f"Alice plays piece {n}") for n in range(4)]
    clock.forward(days=1)
    operator.post(f"/v1/topics/{new[0]}/archive", {"reason": "old"}).ok()
    clock.forward(days=1)

    page, scope = read(looker, "/callers/", name="key:alice"), read(looker, "/scope/", scope="/user/alice")

    # She alone writes in her scope, so both pages have the same numbers and the same pictures.
    shared = {"Live memories": "4", "Archived": "4", "Missed": "2"}
    assert {label: figures(page)[label] for label in shared} == shared
    assert {label: figures(scope)[label] for label in shared} == shared
    assert all(picture(page, label) for label in shared)
    assert {label: picture(page, label) for label in shared} == {label: picture(scope, label) for label in shared}
    numbers = r'stat-name">(?:<[^>]+>)*([^<]+)<.*?stat-number">([^<]+)<'
    rungs = dict(re.findall(numbers, section(page, "rungs-title")))
    assert rungs == dict(re.findall(numbers, section(scope, "rungs-title")))
    assert sum(map(int, rungs.values())) == 7
    # Each number leads to the memories that it counts.
    for link, number in re.findall(r'href="([^"]+)".*?stat-number">([^<]+)<', section(page, "rungs-title")):
        assert len(set(re.findall(r"/topics/([0-9a-f-]{36})/", read(looker, link)))) == int(number), link
    assert figures(read(looker, "/callers/", name="key:agent"))["Live memories"] == "0"
    # Who extends a memory has written it too.
    agent.ingest(placement="version_field", topic_id=new[1], fields=[{"name": "key", "value": "C"}])
    assert figures(read(looker, "/callers/", name="key:agent"))["Live memories"] == "1"


def test_regretted_archivings_are_found_by_who_wrote_the_memory(
    looker: Client, alice: Caller, agent: Caller, operator: Caller, clock: Clock
) -> None:
    hers, other = alice.remember("Alice plays the oboe"), agent.remember("Bob plays the tuba")
    for topic in (hers, other):
        operator.post(f"/v1/topics/{topic}/archive", {"reason": "old"}).ok()
    clock.forward(minutes=5)
    for topic in (hers, other):
        operator.post(f"/v1/topics/{topic}/restore", {"reason": "needed"}).ok()
    page = read(looker, "/overview/regretted/", author="alice", by="anyone")
    assert hers in page
    assert other not in page
    assert "1 archiving" in read(looker, "/overview/regretted/count/", author="alice", by="anyone")
    assert other in read(looker, "/overview/regretted/", by="anyone")


def test_an_agent_without_a_valid_key_is_shown_with_the_cause(looker: Client, clock: Clock) -> None:
    ApiKey.objects.all().delete()
    gone = key_create(name="gone", role="agent", secret="ms_gone-secret-of-the-test", scope="/")
    late = key_create(name="late", role="agent", secret="ms_late-secret-of-the-test", scope="/")
    ApiKey.objects.filter(pk=gone.pk).update(revoked_at=clock.now)
    ApiKey.objects.filter(pk=late.pk).update(expires_at=clock.now - dt.timedelta(days=1))
    for actor in ("key:elsewhere", "somebody", "terminal"):
        AuditEvent.objects.create(at=clock.now, actor=actor, action="noted", scope="/")
    page = read(looker, "/agents/").partition("<tbody>")[2]
    rows = {row.partition("?name=")[2].partition('"')[0]: row for row in page.split("<tr data-row>")[1:]}
    causes = {"gone": "revoked", "late": "expired", "elsewhere": "no key here"}
    # Commands at a terminal are run by people.
    causes = {f"key%3A{name}": cause for name, cause in causes.items()} | {"somebody": "imported"}
    assert set(rows) == set(causes)
    assert all(f">{cause}<" in rows[name] for name, cause in causes.items())
