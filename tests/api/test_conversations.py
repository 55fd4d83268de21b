"""GET /v1/chat and GET /v1/chat/{id}: who sees which conversation, page by page, and what learns of it."""

import uuid
from typing import Any

from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.agents.chat.undo import conversation_undo
from memory.erasure.purge import topics_purge
from memory.models import ConversationTurn
from tests.agents.chat.talk import ask, tell
from tests.cast import Caller, Cast
from tests.llm.server import Model, calling

LONG = "The roof of the house was painted grey in May. " * 300


def pages(caller: Caller, path: str, limit: int) -> list[Any]:
    """The rows of all pages."""
    found, cursor = [], ""
    while True:
        page = caller.get(f"{path}?limit={limit}{cursor}").ok()
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def test_a_conversation_is_reported_with_its_turns_and_what_it_wrote(agent: Caller, operator: Caller, model: Model):
    known = agent.remember("Mara", values={"city": "Gothenburg"}, scope="/user")
    model.answers(
        calling(("version_field", {"topic_id": known, "field": "city", "value": "Berlin"}), ("purge", {})),
        calling(("new_topic", {"title": "Jonas", "links": [{"to_topic_id": known}]})),
        "Both are noted.",
    )
    first = tell(agent, "Mara moved to Berlin, " + "far " * 40, scope="/user")
    begun = first["conversation_id"]
    made = first["tool_log"][2]["topic_ids"][0]
    study = tell(agent, LONG, conversation_id=begun)["study"]
    got = agent.get(f"/v1/chat/{begun}").ok()
    (listed,) = agent.get("/v1/chat").ok()["items"]
    assert listed == {name: got[name] for name in listed}
    assert (listed["conversation_id"], listed["scope"], listed["channel"], listed["turns"]) == (
        begun,
        "/user",
        "api",
        2,
    )
    assert (listed["name"], listed["actor"]) == (("Mara moved to Berlin, " + "far " * 40)[:120], "key:agent")
    wrote = got["wrote"]
    assert [wrote[each] for each in ("topics", "values", "fields", "links", "merges", "taken_back")] == [
        1,
        1,
        1,
        1,
        0,
        0,
    ]
    assert [(each["topic_id"], each["title"], each["made"]) for each in wrote["items"]] == [
        (made, "Jonas", True),
        (known, "Mara", False),
    ]
    second, one = got["items"]
    assert (second["place"], second["message"], second["study"]) == (2, f"(A text of {len(LONG):,} characters.)", study)
    assert (one["place"], one["reply"], one["intent"], one["intent_source"]) == (
        1,
        "Both are noted.",
        "ingest",
        "override",
    )
    assert (one["rounds"], one["ended"], one["erased"], one["study"]) == (2, "done", False, None)
    assert [(each["tool"], each["ok"], each["said"], each["topic_ids"]) for each in one["tool_log"]] == [
        ("version_field", True, "Written.", [known]),
        ("purge", False, one["tool_log"][1]["said"], []),
        ("new_topic", True, "Remembered.", [made]),
    ]
    assert all(each.keys() == {"tool", "arguments", "ok", "ms", "topic_ids", "said"} for each in one["tool_log"])

    conversation_undo(uuid.UUID(begun), principal=SYSTEM, reason="", now=timezone.now())
    got = operator.get(f"/v1/chat/{begun}").ok()
    assert (got["undone_at"] is None, got["undone_by"], got["wrote"]["taken_back"]) == (False, "system", 4)
    topics_purge([uuid.UUID(known)], principal=SYSTEM, reason="", now=timezone.now())
    got = agent.get(f"/v1/chat/{begun}").ok()
    assert (got["name"], [each["topic_id"] for each in got["wrote"]["items"]]) == ("", [made])
    assert {(turn["message"], turn["reply"], turn["erased"]) for turn in got["items"]} == {("", "", True)}


def test_each_sees_its_own_and_operators_see_those_of_their_scope(cast: Cast, model: Model):
    model.answers("Yes.")
    mine = {
        name: [ask(getattr(cast, name), f"{name} {number}")["conversation_id"] for number in range(3)]
        for name in ("alice", "agent", "operator")
    }
    for caller in (cast.alice, cast.agent):
        name = next(name for name in mine if getattr(cast, name) is caller)
        assert [each["conversation_id"] for each in pages(caller, "/v1/chat", 2)] == mine[name][::-1]
    everything = [*mine["alice"], *mine["agent"], *mine["operator"]][::-1]
    assert [each["conversation_id"] for each in pages(cast.operator, "/v1/chat", 4)] == everything
    assert cast.stranger.get("/v1/chat").ok() == {"items": [], "next": None}
    for other in (cast.agent, cast.stranger, cast.reader):
        answer = other.get(f"/v1/chat/{mine['alice'][0]}")
        assert (answer.status, answer.code) == (404, "not-found")
    assert cast.operator.get(f"/v1/chat/{mine['alice'][0]}").ok()["items"][0]["message"] == "alice 0"
    assert cast.alice.get(f"/v1/chat/{uuid.uuid4()}").status == 404


def test_turns_come_page_by_page_the_newest_first(agent: Caller, model: Model):
    model.answers("Yes.")
    begun = ask(agent, "message 1")["conversation_id"]
    for number in range(2, 6):
        ask(agent, f"message {number}", conversation_id=begun)
    ConversationTurn.objects.filter(place=5).update(ended="working", reply="")
    got = pages(agent, f"/v1/chat/{begun}", 2)
    assert [turn["message"] for turn in got] == [f"message {number}" for number in (5, 4, 3, 2, 1)]
    assert [turn["ended"] for turn in got] == ["working", *["done"] * 4]
    for path in ("/v1/chat", f"/v1/chat/{begun}"):
        assert agent.get(f"{path}?cursor=x").code == "invalid-cursor"
        assert agent.get(f"{path}?limit=100000").status == 422
        assert agent.get(f"{path}?limit=0").status == 422
