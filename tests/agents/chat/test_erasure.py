"""What a purge leaves of conversations: nothing that a turn read, wrote or may have said of what was erased."""

import uuid
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.agents.tools import read_tools as reading
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.models import AccessLog, ConversationTurn, ConversationWrite
from tests.agents.chat.talk import ask, tell
from tests.cast import Caller
from tests.erasure.erasing import EMAIL, FACT, NEEDLES, PERSON, traces
from tests.llm.server import Model, calling

# What a model made of it, in other words.
PARAPHRASE = "The lady with the two dachshunds relocated above the baker's"


def purge(*ids: str, principal: Principal = SYSTEM) -> Any:
    return topics_purge([uuid.UUID(each) for each in ids], principal=principal, reason="a test", now=timezone.now())


def test_turns_that_had_to_do_with_an_erased_topic_are_emptied_and_the_others_kept(
    agent: Caller, operator: Caller, model: Model
):
    other = agent.remember("Harbor walk", values={"place": "The pier"})
    apart = agent.remember("Cabbage soup", values={"spice": "Caraway"})
    person = {"title": PERSON, "fields": [{"name": "email", "value": EMAIL}, {"name": "home", "value": FACT}]}
    model.answers("Hello.", calling(("new_topic", person)), f"I noted it: {PARAPHRASE}.")
    begun = ask(agent, "Good morning, how is the harbor?")["conversation_id"]
    reply = tell(agent, f"Remember: {PARAPHRASE}. That is {PERSON}, {EMAIL}.", conversation_id=begun)
    (gone,) = reply["tool_log"][0]["topic_ids"]
    agent.ingest("extend_topic", topic_id=other, edges=[{"to_topic_id": gone}])
    model.answers(f"As I said, {PARAPHRASE}.")
    ask(agent, f"Who was that with the dachshunds? {PARAPHRASE}?", conversation_id=begun)
    model.answers(calling(("query", {"q": "cabbage soup", "top_k": 1})), "Caraway.")
    ask(agent, "What is in the soup?")
    model.answers(calling(("topic", {"topic_id": gone}), ("topic", {"topic_id": other})), f"It is {PARAPHRASE}.")
    ask(agent, "And this?", before=[{"role": "assistant", "content": FACT}])
    # One that never touched it, and repeats an identifier all the same.
    model.answers("I know nobody of that address.")
    ask(agent, f"Who is {EMAIL}?")
    assert traces(PARAPHRASE, *NEEDLES)
    purge(gone)
    assert traces(PARAPHRASE, *NEEDLES, gone) == [(table, gone) for table, _text in traces(gone)]
    turns = {turn.place: turn for turn in ConversationTurn.objects.filter(conversation=begun)}
    assert (turns[1].message, turns[1].reply) == ("Good morning, how is the harbor?", "Hello.")
    for place in (2, 3):
        assert (turns[place].message, turns[place].reply, turns[place].ended) == ("", "", "done")
    (call,) = turns[2].tool_log
    assert (call["tool"], call["arguments"], call["said"], call["topic_ids"]) == ("new_topic", {}, "", [])
    kept, touched, named = ConversationTurn.objects.exclude(conversation=begun).order_by("id")
    assert (kept.message, kept.reply, kept.tool_log[0]["topic_ids"]) == ("What is in the soup?", "Caraway.", [apart])
    assert (touched.message, touched.reply) == ("", "")
    assert [each["topic_ids"] for each in touched.tool_log] == [[], [other]]
    assert named.message == "Who is [erased]?"
    assert not ConversationWrite.objects.exists()
    verdict = erasure_verify()
    assert verdict.ok, verdict.traces


def test_the_words_by_which_writes_are_noted_are_nobodys_memory(agent: Caller, model: Model):
    model.answers(calling(("new_topic", {"title": "Anna", "fields": [{"name": "town", "value": "Oslo"}]})), "Done.")
    reply = tell(agent, "Remember Anna.")
    noted = agent.remember("A field trip", values={"reason": "field"})
    agent.query("field")
    purge(reply["tool_log"][0]["topic_ids"][0])
    assert AccessLog.objects.get(query="field")
    assert agent.topic(noted)["fields"][0]["current"]["value"] == "field"


def test_an_erasure_in_the_midst_of_a_turn_leaves_nothing_of_it(
    agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch
):
    secret = agent.remember(PERSON, values={"email": EMAIL})

    def why(*_args: Any, **_more: Any) -> Any:
        # As someone else would, at this moment.
        purge(secret)
        return {"sentences": []}

    monkeypatch.setattr(reading, "topic_why", why)
    model.answers(
        calling(("topic", {"topic_id": secret})),
        calling(("why", {"topic_id": secret})),
        calling(("new_topic", {"title": f"Copy of {EMAIL}"}), ("new_topic", {"title": PARAPHRASE})),
        f"I could not store it: {PARAPHRASE}, {EMAIL}.",
    )
    reply = tell(agent, f"What is known of {EMAIL}? {PARAPHRASE}.")
    assert EMAIL in str(model.chats[1].messages)
    assert [each["ok"] for each in reply["tool_log"]] == [True, True, False, False]
    assert reply["tool_log"][2]["result"]["code"] == "erased-meanwhile"
    turn = ConversationTurn.objects.get()
    assert (turn.message, turn.reply, turn.ended) == ("", "", "done")
    assert traces(PARAPHRASE, *NEEDLES) == []


def test_an_operator_of_a_scope_erases_in_the_conversations_of_that_scope(operator: Caller, model: Model):
    model.answers("Nobody.")
    for scope in ("/a", "/b"):
        ask(operator, f"Who is {EMAIL}?", scope=scope)
    gone = operator.remember(PERSON, values={"email": EMAIL}, scope="/a")
    purge(gone, principal=Principal("key:a", "a", "operator", "/a"))
    got = {turn.scope: turn.message for turn in ConversationTurn.objects.all()}
    assert got == {"/a": "Who is [erased]?", "/b": f"Who is {EMAIL}?"}


def test_an_erasure_while_a_later_turn_works_leaves_nothing_of_that_turn(
    agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch
):
    secret = agent.remember(PERSON, values={"email": EMAIL})
    model.answers(calling(("topic", {"topic_id": secret})), PARAPHRASE)
    begun = ask(agent, "Who is that?")["conversation_id"]

    def why(*_args: Any, **_more: Any) -> Any:
        purge(secret)
        return {"sentences": []}

    monkeypatch.setattr(reading, "topic_why", why)
    other = agent.remember("Harbor walk")
    model.answers(
        calling(("why", {"topic_id": other})),
        calling(("new_topic", {"title": "Note", "summary": PARAPHRASE})),
        f"As I said: {PARAPHRASE}, {EMAIL}.",
    )
    before = [{"role": "user", "content": "Who is that?"}, {"role": "assistant", "content": PARAPHRASE}]
    reply = tell(agent, f"Remember it: {PARAPHRASE}.", before=before, conversation_id=begun)
    assert [each["ok"] for each in reply["tool_log"]] == [True, False]
    turn = ConversationTurn.objects.get(place=2)
    assert (turn.message, turn.reply, turn.ended, turn.erased) == ("", "", "done", True)
    assert [(each["arguments"], each["topic_ids"]) for each in turn.tool_log] == [({}, [])] * 2
    assert traces(PARAPHRASE, *NEEDLES) == []
    # The next message is one like any other.
    model.answers("Good morning.")
    ask(agent, "Hello again.", conversation_id=begun)
    assert ConversationTurn.objects.get(place=3).reply == "Good morning."


def test_a_topic_that_was_only_seen_as_a_neighbor_counts_as_read(agent: Caller, model: Model):
    secret = agent.remember(PERSON, values={"email": EMAIL})
    other = agent.remember("Harbor walk", edges=[{"to_topic_id": secret}])
    model.answers(calling(("query", {"q": "harbor walk", "top_k": 1})), PARAPHRASE)
    reply = ask(agent, "With whom?")
    assert reply["tool_log"][0]["topic_ids"] == [other]
    model.answers(calling(("topic", {"topic_id": other})), PARAPHRASE)
    ask(agent, "And whom?")
    purge(secret)
    for turn in ConversationTurn.objects.all():
        assert (turn.message, turn.reply, turn.erased) == ("", "", True)
        assert (turn.tool_log[0]["topic_ids"], turn.tool_log[0]["seen"]) == ([other], [])
    assert traces(PARAPHRASE, *NEEDLES, secret) == [(table, secret) for table, _text in traces(secret)]
