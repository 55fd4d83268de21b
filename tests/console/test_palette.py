"""The command palette: what it finds, for whom, and what that costs."""

import re
import uuid
from html import unescape

import pytest
from django.test import Client

from memory.access.keys import key_create, secret_generate
from memory.access.principal import Principal
from memory.console.queries.suggestions import runs_suggested, topics_suggested
from memory.models import ForgetRun, Topic
from tests.cast import Caller
from tests.console.people import account_make, body_of, statements_of
from tests.forgetting.shop import NOON, policy_put, topics_make

pytestmark = pytest.mark.django_db


def found(client: Client, text: str = "") -> dict[str, str]:
    """Return the entries for ``text``: their labels with their addresses."""
    reply = client.get("/palette/", {"q": text}, headers={"HX-Request": "true"})
    assert reply.status_code == 200
    entries = re.findall(r'<a role="option"[^>]+href="([^"]+)"><span[^>]+>([^<]+)</span>', reply.content.decode())
    return {unescape(label): unescape(address) for address, label in entries}


def run_make(scope: str, *, number: int = 5, event: str = "cron") -> ForgetRun:
    return ForgetRun.objects.create(
        id=uuid.UUID(int=number, version=4),
        scope=scope,
        event=event,
        status="done",
        actor="system",
        policy_version=1,
        judged_at=NOON,
        created_at=NOON,
    )


def test_places_tabs_and_actions_are_found_by_their_words(administrator: Client) -> None:
    assert {"Home", "Memories", "Pause forgetting", "New key"} <= set(found(administrator))
    assert found(administrator, "forget")["Forget memories: release or purge"] == "/forget/"
    assert found(administrator, "erasure")["Erasure"] == "/forget/"
    assert found(administrator, "backtest")["Tuning › Backtest"] == "/salience/backtest/"
    assert found(administrator, "tuning VERS") == {
        "Tuning › Versions": "/policies/versions/",
        "Search memories for “tuning VERS”": "/lookup/?q=tuning+VERS",
    }
    for address in found(administrator).values():
        assert administrator.get(address).status_code == 200, address


def test_no_one_is_offered_what_the_role_does_not_allow(looker: Client, op: Client, administrator: Client) -> None:
    offered = {client: set(found(client)) | set(found(client, "n")) for client in (looker, op, administrator)}
    beyond_reader = {"Pause forgetting", "New run", "Add a memory", "Import a file", "Runs › Pause"}
    beyond_operator = {"New key", "Invite a person", "New notification", "Settings › Notifications"}
    assert not offered[looker] & (beyond_reader | beyond_operator)
    assert beyond_reader <= offered[op]
    assert not offered[op] & beyond_operator
    assert beyond_reader | beyond_operator <= offered[administrator]
    for client, labels in offered.items():
        where = found(client) | found(client, "n")
        assert [label for label in labels if client.get(where[label]).status_code != 200] == []


def test_memories_runs_scopes_and_callers_are_found(looker: Client, operator: Caller, agent: Caller) -> None:
    kept = agent.remember("Sourdough starter", scope="/home/kitchen")
    gone = agent.remember("Sourdough in a tin", scope="/home/kitchen")
    operator.post(f"/v1/topics/{gone}/archive", {"reason": "for the test"}).ok()
    key_create(name="kitchen helper", role="agent", secret=secret_generate())
    account_make("operator", name="kitty")
    run = run_make("/home/kitchen")

    assert found(looker, "sour start")["Sourdough starter"] == f"/topics/{kept}/"
    assert found(looker, "tin")["Sourdough in a tin"] == f"/topics/{gone}/"
    assert found(looker, kept[:8])["Sourdough starter"] == f"/topics/{kept}/"
    entries = found(looker, "kit")
    assert entries["/home/kitchen"] == "/scope/?scope=%2Fhome%2Fkitchen"
    assert entries["key:kitchen helper"] == "/callers/?name=key%3Akitchen+helper"
    assert entries["kitty"] == "/callers/?name=user%3Akitty"
    assert f"/runs/{run.pk}/" in entries.values()
    assert f"/runs/{run.pk}/" in found(looker, "scheduled").values()
    assert f"/runs/{run.pk}/" in found(looker, str(run.pk)).values()
    for text in ("%", "_", "'", "\\", "a' & b:*", "\0", "x" * 500, "00000000"):
        assert set(found(looker, text)) & {"Sourdough starter", "Sourdough in a tin"} == set(), text


def test_who_sees_a_part_of_the_store_finds_only_what_is_there(agent: Caller) -> None:
    agent.remember("Sourdough starter", scope="/home")
    agent.remember("Sourdough secret", scope="/work")
    run_make("/work")
    here = Principal(identity="key:x", actor="key:x", role="reader", scope="/home")
    assert [title for _id, title, _scope, _summary in topics_suggested("sourdough", principal=here, most=5)] == [
        "Sourdough starter"
    ]
    assert runs_suggested("scheduled", principal=here, most=5) == []


def test_without_script_it_is_the_search(looker: Client) -> None:
    assert looker.get("/palette/?q=oat+milk").headers["Location"] == "/lookup/?q=oat+milk"
    page = body_of(looker.get("/"))
    assert re.search(r'<a class="[^"]*palette-open" href="/lookup/"', page)


def test_it_costs_the_same_in_a_large_store(looker: Client, operator: Caller) -> None:
    def cost() -> int:
        return statements_of(lambda: looker.get("/palette/", {"q": "topic"}, headers={"HX-Request": "true"}))

    topics_make(operator, 5)
    run_make("/topic")
    cost()
    few = cost()
    topics_make(operator, 100)
    for place in range(50):
        run_make("/topic", number=100 + place)
        key_create(name=f"topic {place}", role="agent", secret=secret_generate())
        policy_put(operator, f"/topic/{place}", theta_summary=0.3) if place < 3 else None
    assert Topic.objects.count() == 105
    assert cost() == few <= 9
    assert statements_of(lambda: looker.get("/palette/", headers={"HX-Request": "true"})) <= 3
