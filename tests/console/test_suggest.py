"""Completion: what `/suggest/` returns for the beginning of a scope, a kind, a name or an action."""

import re
from html import unescape

import pytest
from django.test import Client

from memory.access.keys import key_create, secret_generate
from memory.explain.action_words import ACTIONS, action_words
from memory.models import AuditEvent, Scope, Topic
from tests.cast import Caller
from tests.console.people import account_make, statements_reported

pytestmark = pytest.mark.django_db


def suggested(client: Client, what: str, text: str, *, field: str = "scope") -> list[str]:
    reply = client.get(f"/suggest/{what}/", {"field": field, field: text}, headers={"HX-Request": "true"})
    assert reply.status_code == 200
    return [unescape(each) for each in re.findall(r'<option value="([^"]*)"></option>', reply.content.decode())]


def scopes_make(*paths: str) -> None:
    Scope.objects.bulk_create((Scope(path=path) for path in paths), ignore_conflicts=True)


def topics_of_kinds(agent: Caller, *kinds: str) -> None:
    for kind in kinds:
        agent.remember(f"A topic of kind {kind}", topic_kind=kind)


def test_scopes_are_completed_segment_by_segment(looker: Client) -> None:
    scopes_make("/user/mara/health", "/user/mara", "/user/ana", "/user-test/x", "/users", "/team/red")

    assert suggested(looker, "scope", "/us") == ["/user-test", "/user", "/users"]
    assert suggested(looker, "scope", "/user/") == ["/user/ana", "/user/mara"]
    assert suggested(looker, "scope", "/user/mara") == ["/user/mara", "/user/mara/health"]
    assert suggested(looker, "scope", "/t") == ["/team"]
    assert suggested(looker, "scope", "/nowhere") == []
    assert {"/team", "/user", "/users"} <= set(suggested(looker, "scope", ""))


def test_a_scope_is_found_by_a_word_within_it(looker: Client) -> None:
    scopes_make("/user/mara/health", "/user/mara", "/team/red")
    assert suggested(looker, "scope", "Mara") == ["/user/mara", "/user/mara/health"]
    assert suggested(looker, "scope", "team") == ["/team", "/team/red"]


def test_kinds_are_completed_from_those_of_topics(looker: Client, agent: Caller) -> None:
    topics_of_kinds(agent, "finding", "finding", "fact", "note")

    assert suggested(looker, "kind", "f", field="kind") == ["fact", "finding"]
    assert suggested(looker, "kind", "", field="kind") == ["fact", "finding", "note"]
    assert suggested(looker, "kinds", "note, fi", field="kinds") == ["note, finding"]


def test_people_and_keys_are_suggested_as_pages_show_them(looker: Client) -> None:
    key_create(name="tour agent", role="agent", secret=secret_generate())
    account_make("operator", name="tourist")

    assert suggested(looker, "actor", "tour", field="actor") == ["tourist", "key:tour agent"]
    assert suggested(looker, "actor", "key:tour", field="actor") == ["key:tour agent"]
    assert suggested(looker, "actor", "sys", field="actor") == ["system"]


def test_a_suggested_actor_and_action_are_what_the_filter_takes(looker: Client, agent: Caller) -> None:
    topic = agent.remember("A passport")
    who = suggested(looker, "actor", "agent", field="actor")
    what = suggested(looker, "action", "crea", field="action")

    assert ("key:agent" in who, what[0]) == (True, "Created")
    found = looker.get("/audit/", {"actor": "key:agent", "action": what[0]}).content.decode()
    assert f"/topics/{topic}/" in found


def test_every_action_of_the_journal_is_suggested_by_its_words(looker: Client, agent: Caller, operator: Caller) -> None:
    topic = agent.remember("A passport")
    operator.post(f"/v1/topics/{topic}/pin", {"reason": "needed"}).ok()
    operator.post(f"/v1/topics/{topic}/unpin", {"reason": "done"}).ok()
    for action in set(AuditEvent.objects.values_list("action", flat=True)):
        assert action in ACTIONS
        assert action_words(action) in suggested(looker, "action", action_words(action), field="action")


def test_at_most_twenty_and_at_a_cost_that_does_not_grow(looker: Client) -> None:
    scopes_make(*(f"/user/{place:03}" for place in range(100)))
    with statements_reported() as few:
        assert suggested(looker, "scope", "/user/") == [f"/user/{place:03}" for place in range(20)]
    scopes_make(*(f"/user/{place:03}/deep/{deep}" for place in range(100) for deep in range(10)))
    with statements_reported() as many:
        assert suggested(looker, "scope", "/user/") == [f"/user/{place:03}" for place in range(20)]
    assert len(few) == len(many)


def test_text_from_the_store_is_escaped_and_odd_input_is_answered(looker: Client, agent: Caller) -> None:
    scope, _made = Scope.objects.get_or_create(path="/odd")
    topic = Topic.objects.get(pk=agent.remember("One"))
    Topic.objects.filter(pk=topic.pk).update(kind='"><script>', scope=scope)

    assert suggested(looker, "kind", '"', field="kind") == ['"><script>']
    for text in ("\0", "%", "_", "/" * 600, "'", "\\", "0199"):
        for what in ("scope", "kind", "kinds", "actor", "action"):
            suggested(looker, what, text)
    assert looker.get("/suggest/scope/").status_code == 200
    assert looker.get("/suggest/nothing/").status_code == 404


def test_a_field_works_without_script_and_completes_with_it(looker: Client) -> None:
    page = looker.get("/audit/").content.decode()
    for what, field in (("scope", "scope"), ("actor", "actor"), ("action", "action")):
        assert f'hx-get="/suggest/{what}/?field={field}"' in page
        assert f'<datalist id="id_{field}-suggested"></datalist>' in page
