"""The assistant over HTTP: what it is offered, what it does with it, and what it says when it comes to no end."""

import uuid
from typing import Any

import pytest

from memory.models import AuditEvent, Conversation, ConversationTurn, ConversationWrite, Link, Revision, Topic
from tests.agents.chat.talk import ask, say, tell
from tests.cast import Caller, Clock, store_rows
from tests.llm import server
from tests.llm.server import Model, calling

READING = ["query", "topic", "history", "why"]
WRITING = ["new_topic", "extend_topic", "version_field", "link"]


def test_a_question_is_answered_from_what_the_tools_return(agent: Caller, model: Model):
    tea = agent.remember("Tea", values={"kind": "green"}, scope="/kitchen")
    model.answers(
        calling(("query", {"q": "tea"})),
        calling(("topic", {"topic_id": tea}), ("history", {"topic_id": tea, "field": "kind"}), say="One moment."),
        calling(("why", {"topic_id": tea})),
        "<think>They want to know about tea.</think>It is green.",
    )
    reply = ask(agent, "Which tea do we have?")
    assert (reply["reply"], reply["rounds"], reply["ended"]) == ("It is green.", 3, "done")
    assert (reply["intent"], reply["intent_source"], reply["model"]) == ("query", "override", server.MODEL)
    assert reply["study"] is None
    log = reply["tool_log"]
    assert [(each["tool"], each["ok"], each["topic_ids"]) for each in log] == [
        (name, True, [tea]) for name in ("query", "topic", "history", "why")
    ]
    assert log[0]["result"]["topics"][0]["fields"] == {"kind": "green"}
    assert log[1]["result"]["scope"] == "/kitchen"
    assert [each["value"] for each in log[2]["result"]["revisions"]] == ["green"]
    assert log[3]["result"]["sentences"]
    assert model.chats[0].tools == READING
    # What tools returned is data, each time between marks that no text can know.
    assert model.chats[1].results == [log[0]["result"]]
    assert [each["role"] for each in model.chats[3].messages[-2:]] == ["assistant", "tool"]
    assert "think" not in str(model.chats[-1].messages)


def test_what_is_to_be_remembered_is_written_with_its_provenance_and_conversation(agent: Caller, model: Model):
    house = agent.remember("House", values={"roof": "red"})
    model.answers(
        calling(
            (
                "new_topic",
                {
                    "title": "Anna",
                    "kind": "person",
                    "summary": "A friend.",
                    "fields": [{"name": "town", "value": "Oslo"}],
                    "links": [{"to_topic_id": house, "kind": "lives_in"}],
                },
            ),
            ("extend_topic", {"topic_id": house, "fields": [{"name": "door", "value": "blue"}]}),
            ("version_field", {"topic_id": house, "field": "roof", "value": "grey", "why_changed": "It was painted."}),
        ),
        lambda asked: calling(("link", {"from_topic_id": house, "to_topic_id": asked.results[0]["topic_id"]})),
        "I have stored that.",
    )
    reply = tell(agent, "Remember that Anna lives in Oslo, in the house with the blue door; its roof is grey now.")
    assert model.chats[0].tools == [*READING, *WRITING]
    anna = reply["tool_log"][0]["topic_ids"][0]
    assert [(each["ok"], each["topic_ids"]) for each in reply["tool_log"]] == [
        (True, [anna]),
        (True, [house]),
        (True, [house]),
        (True, [house, anna]),
    ]
    assert agent.topic(anna)["provenance"] == "llm"
    written = Revision.objects.exclude(provenance="api")
    assert {(each.field.name, each.value, each.provenance) for each in written} == {
        ("note", "A friend.", "llm"),
        ("town", "Oslo", "llm"),
        ("door", "blue", "llm"),
        ("roof", "grey", "llm"),
    }
    conversation = Conversation.objects.get()
    assert (str(conversation.id), conversation.channel, conversation.turns) == (reply["conversation_id"], "api", 1)
    noted = ConversationWrite.objects.order_by("id").values_list("topic_id", "what", "conversation_id")
    assert [(str(topic), what) for topic, what, of in noted if of == conversation.id] == [
        (anna, "topic"),
        (anna, "field"),
        (anna, "field"),
        (anna, "link"),
        (house, "field"),
        (house, "version"),
        (house, "link"),
    ]
    assert set(AuditEvent.objects.exclude(actor="system").values_list("actor", flat=True)) == {conversation.actor}
    turn = ConversationTurn.objects.get()
    assert (turn.ended, turn.rounds, turn.intent, turn.reply) == ("done", 2, "ingest", "I have stored that.")
    assert [each["said"] for each in turn.tool_log] == ["Remembered.", "Written.", "Written.", "Linked."]


def test_a_conversation_keeps_no_results_of_tools(agent: Caller, model: Model):
    agent.remember("Tea", summary="It is grown in the shade of old camellias.")
    model.answers(calling(("query", {"q": "tea"})), "In the shade.")
    assert "camellias" in str(ask(agent, "Where is it grown?")["tool_log"])
    turn = ConversationTurn.objects.get()
    assert "camellias" not in str(turn.tool_log)
    assert [(each["arguments"], each["said"]) for each in turn.tool_log] == [({"q": "tea"}, "1 memory found.")]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (("topic", {"topic_id": "the green one"}), "invalid-member"),
        (("topic", "{"), "invalid-json"),
        (("topic", "[" * 30 + "]" * 30), "invalid-json"),
        (("topic", "[1]"), "invalid-member"),
        (("topic", {"topic_id": str(uuid.UUID(int=7))}), "not-found"),
        (("topic", {"topic_id": "\x00"}), "invalid-member"),
        (("query", {"q": "tea", "scope": "/user"}), "unknown-member"),
        (("query", {"q": ""}), "invalid-member"),
        (("new_topic", {"title": "Anna", "fields": [{"name": "a", "value": "1"}] * 2}), "invalid-member"),
        (("extend_topic", {"topic_id": str(uuid.UUID(int=7))}), "invalid-member"),
        (("purge", {"topic_id": str(uuid.UUID(int=7))}), "not-found"),
        (("", "{}"), "not-found"),
    ],
)
def test_what_is_wrong_with_a_call_is_reported_to_the_model_which_then_does_better(
    agent: Caller, model: Model, wrong: tuple[str, Any], code: str
):
    tea = agent.remember("Tea", values={"kind": "green"})
    model.answers(calling(wrong), calling(("topic", {"topic_id": tea})), "Green.")
    reply = tell(agent, "Which tea?")
    first, second = reply["tool_log"]
    assert first["result"]["code"] == code
    assert first["result"].keys() - {"member"} == {"code", "error"}
    assert (first["ok"], first["topic_ids"], second["ok"]) == (False, [], True)
    assert model.chats[1].results == [first["result"]]
    assert (reply["reply"], reply["rounds"]) == ("Green.", 2)
    assert agent.topic(tea)["fields"][0]["current"]["value"] == "green"


def test_of_two_calls_at_once_both_are_answered_in_their_order(agent: Caller, model: Model):
    tea = agent.remember("Tea")
    model.answers(calling(("topic", {"topic_id": "none"}), ("topic", {"topic_id": tea})), "Tea.")
    reply = ask(agent, "Which?")
    assert [each["ok"] for each in reply["tool_log"]] == [False, True]
    got = [each for each in model.chats[1].messages if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in got] == ["call_1", "call_2"]
    assert model.chats[1].results == [each["result"] for each in reply["tool_log"]]
    assert reply["rounds"] == 1


def test_an_endless_loop_of_tools_ends_at_the_bound_and_says_so(agent: Caller, model: Model, settings: Any):
    model.answers(calling(("query", {"q": "tea"}), say="Let me look."))
    reply = ask(agent, "Which tea?", max_tool_rounds=3)
    assert (reply["rounds"], reply["ended"], len(reply["tool_log"])) == (3, "rounds", 3)
    assert reply["reply"].startswith("Let me look.\n\n")
    assert ConversationTurn.objects.get().ended == "rounds"
    # No one may have more than the setting allows.
    settings.MEMSTATE_CHAT_MAX_TOOL_ROUNDS = 2
    assert ask(agent, "Which tea?", max_tool_rounds=200)["rounds"] == 2


def test_too_many_calls_at_once_are_not_made(agent: Caller, model: Model):
    model.answers(calling(*[("new_topic", {"title": f"Number {number}"}) for number in range(5_000)]), "Done.")
    reply = tell(agent, "Remember these numbers.")
    assert sum(each["ok"] for each in reply["tool_log"]) == 32
    assert reply["tool_log"][-1]["result"]["error"].startswith("At most 32 tools can be called at once")
    assert ConversationWrite.objects.filter(what="topic").count() == 32
    # Each is answered and noted by itself, so of thousands most are not even read.
    assert len(reply["tool_log"]) == len(ConversationTurn.objects.get().tool_log) == 64


@pytest.mark.parametrize(
    "failure",
    [
        server.failing(500),
        server.limited(),
        server.limited(after=500),
        server.closing(),
        server.closing("within"),
        server.slow(),
        server.refusing(),
        server.cut_off(),
        server.said(""),
        server.Step(b"no JSON"),
        server.rejecting("maximum context length exceeded"),
    ],
)
def test_chat_reports_what_was_written_before_the_model_failed(
    agent: Caller, model: Model, settings: Any, failure: Any
):
    settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES = 1
    model.answers(calling(("new_topic", {"title": "Anna"})), failure)
    reply = tell(agent, "Remember Anna.")
    assert (reply["ended"], [each["ok"] for each in reply["tool_log"]]) == ("model", [True])
    assert reply["reply"].endswith("Before that, 1 tool call was made. What was written is kept.")
    assert agent.topic(reply["tool_log"][0]["topic_ids"][0])["label"] == "Anna"
    assert ConversationTurn.objects.get().ended == "model"


@pytest.mark.parametrize(
    ("failure", "status", "retry"),
    [
        (server.failing(500), 503, None),
        (server.limited(), 503, "30"),
        (server.limited(after=500), 503, "500"),
        (server.closing(), 503, None),
        (server.slow(), 503, None),
        (server.rejecting("this model knows no tools"), 503, None),
        (server.refusing(), 200, None),
        (server.said(""), 200, None),
        (server.cut_off(), 200, None),
    ],
)
def test_chat_reports_a_model_that_fails_before_any_tool_call(
    agent: Caller, model: Model, settings: Any, failure: Any, status: int, retry: str | None
):
    settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES = 1
    model.answers(failure)
    answer = say(agent, "Remember Anna.", intent_override="ingest")
    assert answer.status == status
    assert answer.headers.get("retry-after") == retry
    sentence = answer.detail if status == 503 else answer.json["reply"]
    assert sentence
    turn = ConversationTurn.objects.get()
    assert (turn.ended, turn.reply, turn.tool_log) == ("model", sentence, [])


def test_a_rate_limit_is_waited_out(agent: Caller, model: Model):
    model.answers(server.limited(), calling(("query", {"q": "tea"})), server.limited(after=0.05), "Nothing is known.")
    reply = ask(agent, "Which tea?")
    assert (reply["reply"], reply["ended"], len(model.chats)) == ("Nothing is known.", "done", 4)


def test_a_chat_ends_at_its_time_limit(agent: Caller, model: Model, settings: Any):
    settings.MEMSTATE_CHAT_TIMEOUT_SECONDS = 40
    model.answers(calling(("query", {"q": "tea"})), server.slow())
    reply = ask(agent, "Which tea?")
    assert reply["ended"] == "time"
    assert reply["reply"]


def test_without_a_model_it_says_how_to_configure_one(agent: Caller):
    before = store_rows()
    answer = say(agent, "Hello")
    assert answer.status == 503
    assert answer.code == "model-not-configured"
    assert store_rows() == before


def test_another_model_at_the_same_endpoint(agent: Caller, model: Model):
    model.answers("Hello.")
    assert ask(agent, "Hi", model="larger")["model"] == "larger"
    assert model.chats[0].body["model"] == "larger"
    # One that is not there is the caller's mistake, and is not held against the usual one.
    model.answers(server.failing(404))
    for _time in range(4):
        answer = say(agent, "Hi", model="none", intent_override="query")
        assert (answer.status, answer.code) == (422, "model-unavailable")
    model.answers("Hello.")
    assert ask(agent, "Hi")["reply"] == "Hello."


def test_a_huge_result_is_cut_and_the_log_says_what_the_model_was_reported(agent: Caller, model: Model):
    ids = [agent.remember(f"Tea {number}", values={"body": f"leaf {number} " * 120}) for number in range(30)]
    model.answers(calling(("query", {"q": "tea leaf", "top_k": 30})), "Many.")
    reply = ask(agent, "Which teas?")
    assert set(reply["tool_log"][0]["topic_ids"]) == set(ids)
    (got,) = model.chats[1].results
    assert reply["tool_log"][0]["result"] == got
    assert ConversationTurn.objects.get().tool_log[0]["said"] == "30 memories found."
    # The best are shown whole, and how many are not.
    shown = [topic["topic_id"] for topic in got["topics"]]
    assert shown == reply["tool_log"][0]["topic_ids"][: len(shown)]
    assert len(shown) > 5
    assert got["left_out"] == 30 - len(shown)
    assert len(str(model.chats[1].messages)) < 25_000


def test_of_a_long_dialogue_the_newest_is_said(agent: Caller, model: Model):
    before = [
        {"role": role, "content": f"{role} number {number} " + "word " * 200}
        for number in range(200)
        for role in ("user", "assistant")
    ]
    model.answers("Yes.")
    reply = ask(agent, "Is that so?", before=[{"role": "system", "content": "Rhyme."}, *before])
    assert reply["reply"] == "Yes."
    said = model.chats[0].messages
    assert said[-1] == {"role": "user", "content": "Is that so?"}
    assert said[-2]["content"].startswith("assistant number 199")
    assert 10 < len(said) < 60
    # A wish of the caller stands behind the instructions, not beside them.
    assert [each["role"] for each in said].count("system") == 1
    assert said[0]["content"].index("You cannot forget") < said[0]["content"].index("Rhyme.")


def test_the_model_is_reported_the_date_and_the_scope(agent: Caller, model: Model, clock: Clock):
    clock.set(clock.now.replace(year=2027, month=2, day=3, hour=4, minute=5))
    model.answers("It is Wednesday.")
    ask(agent, "Which day is it?", scope="/user/alice")
    assert (
        "Today is Wednesday, 3 February 2027; it is 04:05 UTC. You can see the scope /user/alice"
        in model.chats[0].system
    )


def test_nothing_outside_the_scope_of_the_key_is_reached_by_tools(agent: Caller, alice: Caller, model: Model):
    outside = agent.remember("Secret tea", values={"kind": "black"}, scope="/user/bob")
    own = alice.remember("Own tea", values={"kind": "green"})
    link = {"from_topic_id": own, "to_topic_id": outside}
    calls: list[tuple[str, Any]] = [
        ("query", {"q": "secret tea"}),
        ("topic", {"topic_id": outside}),
        ("history", {"topic_id": outside, "field": "kind"}),
        ("why", {"topic_id": outside}),
        ("extend_topic", {"topic_id": outside, "fields": [{"name": "a", "value": "b"}]}),
        ("version_field", {"topic_id": outside, "field": "kind", "value": "white"}),
        ("link", link),
        ("link", {"from_topic_id": outside, "to_topic_id": own}),
        ("new_topic", {"title": "Mine", "links": [{"to_topic_id": outside}]}),
        ("new_topic", {"title": "Mine too"}),
    ]
    model.answers(calling(*calls), "Done.")
    reply = tell(alice, "Remember this.")
    log = reply["tool_log"]
    assert log[0]["topic_ids"] == [own]
    assert [each["ok"] for each in log[1:]] == [False] * 8 + [True]
    assert {each["result"]["code"] for each in log[1:9]} == {"not-found"}
    (field,) = agent.topic(outside)["fields"]
    assert (field["current"]["value"], field["revisions"]) == ("black", 1)
    assert alice.topic(log[-1]["topic_ids"][0])["scope"] == "/user/alice"


def test_the_scope_of_a_request_narrows_what_its_tools_see(agent: Caller, model: Model):
    elsewhere = agent.remember("Tea", scope="/office")
    model.answers(calling(("topic", {"topic_id": elsewhere}), ("new_topic", {"title": "Cup"})), "Done.")
    reply = tell(agent, "Remember the cup.", scope="/kitchen")
    assert [each["ok"] for each in reply["tool_log"]] == [False, True]
    assert agent.topic(reply["tool_log"][1]["topic_ids"][0])["scope"] == "/kitchen"


def test_a_readers_key_asks_and_never_writes(reader: Caller, agent: Caller, model: Model):
    tea = agent.remember("Tea")
    model.answers(calling(("query", {"q": "tea"}), ("new_topic", {"title": "Cup"})), "Tea.")
    reply = say(reader, "Remember the cup, and tell me about tea.").ok()
    # Its wish is not even asked for.
    assert (reply["intent"], reply["intent_source"], model.chats[0].tools) == ("query", "rule", READING)
    assert [(each["ok"], each["topic_ids"]) for each in reply["tool_log"]] == [(True, [tea]), (False, [])]
    for intent in ("ingest", "both"):
        refused = say(reader, "Remember the cup.", intent_override=intent)
        assert (refused.status, refused.code) == (403, "role-too-low")


def test_what_a_conversation_reads_is_used_as_over_http(agent: Caller, model: Model):
    from memory.models import AccessLog

    tea = agent.remember("Tea")
    model.answers(calling(("query", {"q": "tea"}), ("topic", {"topic_id": tea})), "Tea.")
    ask(agent, "Which?")
    # One retrieval, which reinforces, and one explicit look-up, which does not.
    assert [[str(each) for each in row.topic_ids] for row in AccessLog.objects.order_by("id")] == [[tea], [tea]]


def test_a_model_can_neither_keep_for_ever_nor_pass_for_a_text_that_is_studied(agent: Caller, model: Model):
    known = agent.remember("Tea", values={"sort": "green"})
    wrong = [
        ("new_topic", {"title": "Me", "kind": "identity", "summary": "x"}),
        ("new_topic", {"title": "A text", "kind": "source", "summary": "x"}),
        ("new_topic", {"title": "A text", "kind": "study:1", "summary": "x"}),
        ("new_topic", {"title": " \t", "summary": "x"}),
        ("link", {"from_topic_id": known, "to_topic_id": known}),
        ("extend_topic", {"topic_id": known, "links": [{"to_topic_id": known}]}),
    ]
    model.answers(calling(*wrong), "I could not.")
    reply = tell(agent, "Remember who I am.")
    assert [each["result"]["code"] for each in reply["tool_log"]] == ["invalid-member", *["invalid-member"] * 5]
    assert (Topic.objects.count(), Link.objects.count()) == (1, 0)
