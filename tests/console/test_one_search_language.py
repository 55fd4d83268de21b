"""The list of topics of the API, the tool ``search`` and Lookup have one language."""

import csv
import io
import json
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from memory.mcp.tools import tool_call
from tests.cast import Caller, principal_like
from tests.console.people import body_of

SEARCHES = [
    ("tea", {"tea", "chinese"}),
    ('"green tea"', {"tea"}),
    ("tea -kind:note", {"chinese"}),
    ("kind:note", {"tea"}),
    ("(tea OR coffee) kind:note", {"tea"}),
    ("绿茶", {"chinese"}),
    ("scope:/user/mara", {"tea"}),
    ("field:city=Oslo", {"city"}),
    ("category:work", {"city"}),
    ("created:<7d coffee", set()),
    ("rung:archived", {"coffee"}),
    ("coffee rung:archived", {"coffee"}),
    ("is:released", {"gone"}),
    ("used:never category:work", {"city"}),
]


@pytest.fixture
def stored(agent: Caller, operator: Caller) -> dict[str, str]:
    ids = {
        "tea": agent.remember("Green tea", topic_kind="note", scope="/user/mara"),
        "chinese": agent.remember("tea", summary="她喜欢喝绿茶。"),
        "city": agent.remember("Home", values={"city": "Oslo"}, categories=["work"]),
        "coffee": agent.remember("Coffee"),
        "gone": agent.remember("A released cup"),
    }
    operator.post(f"/v1/topics/{ids['coffee']}/archive", {"reason": "test"}).ok()
    operator.post("/v1/forget", {"verb": "release", "filter": {"ids": [ids["gone"]]}, "dry_run": False}).ok()
    return ids


@pytest.mark.parametrize(("search", "wanted"), SEARCHES, ids=[each[0] for each in SEARCHES])
def test_a_search_finds_the_same_everywhere(
    agent: Caller, looker: Client, stored: dict[str, str], search: str, wanted: set[str]
) -> None:
    names = {topic_id: name for name, topic_id in stored.items()}
    listed = agent.get(f"/v1/topics?q={quote(search)}").ok()["items"]
    assert {names[each["topic_id"]] for each in listed} == wanted
    called = tool_call("search", json.dumps({"search": search}), principal=principal_like(), clock=timezone.now)
    assert {names[each["topic_id"]] for each in called.result["topics"]} == wanted
    exported = body_of(looker.get("/lookup/export.csv", {"q": search})).lstrip("\ufeff")
    rows = csv.DictReader(io.StringIO(exported))
    shown = {names[row["topic_id"]] for row in rows}
    assert wanted <= shown <= wanted | {"coffee"}


@pytest.mark.parametrize("search", ["kind:", "(tea", '"tea', "created:yesterday", "colour:green"])
def test_a_mistake_is_refused_with_the_code_of_lookup(agent: Caller, stored: dict[str, str], search: str) -> None:
    refused = agent.get(f"/v1/topics?q={quote(search)}")
    assert refused.status == 422
    called = tool_call("search", json.dumps({"search": search}), principal=principal_like(), clock=timezone.now)
    assert not called.ok
    assert called.result["code"] == refused.code


def test_a_key_of_a_scope_lists_only_that_scope(alice: Caller, stored: dict[str, str]) -> None:
    for search in ("tea", "scope:/user/mara", "is:released", "-kind:x"):
        assert alice.get(f"/v1/topics?q={quote(search)}").ok()["items"] == []


@pytest.mark.parametrize("query", ["text=", "q=", "text=&q="])
def test_an_empty_text_or_search_is_no_condition(agent: Caller, stored: dict[str, str], query: str) -> None:
    names = {topic_id: name for name, topic_id in stored.items()}
    listed = agent.get(f"/v1/topics?{query}").ok()["items"]
    assert {names[each["topic_id"]] for each in listed} == {"tea", "chinese", "city"}
