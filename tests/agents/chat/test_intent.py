"""What a message wants: named by the model from the last turns, else by a rule that takes little for an order."""

from typing import Any

import pytest

from memory.agents.chat import chat
from memory.agents.chat.intent import intent_by_rule, intent_find
from tests.agents.chat.talk import say
from tests.cast import Caller
from tests.llm import server
from tests.llm.server import Model


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("What do you know about Anna?", "query"),
        ("Do you remember where we met?", "query"),
        ("Remember when we met in Oslo?", "query"),
        ("Tell me about the house", "query"),
        ("Anna, the house, Oslo", "query"),
        ("Hello", "query"),
        ("", "query"),
        ("Remember that Anna lives in Oslo.", "ingest"),
        ("Please note: the roof is red.", "ingest"),
        ("Could you please save this for me", "both"),
        ("Anna moved. Update her town to Bergen.", "ingest"),
        ("Keep in mind I am allergic to nuts.", "ingest"),
        ("don't forget that the door is blue", "ingest"),
        ("Merke dir bitte, dass Anna in Oslo wohnt.", "ingest"),
        ("Where does Anna live? Remember that she moved.", "both"),
        ("I live in Oslo now.", "both"),
        ("My sister is called Mara.", "both"),
        ("I wonder, what is the capital?", "query"),
    ],
)
def test_the_rule_takes_only_what_is_plain_for_an_order(text: str, intent: str):
    assert intent_by_rule(text) == intent


@pytest.mark.parametrize(
    "piece",
    [
        "\n",
        "\t\n",
        "\r\n",
        " ",
        ",\n",
        "and,\n",
        "and\n",
        "and ",
        "please, ",
        "could you ",
        "note\n",
        "do you still ",
        "a\n",
        "by the way, ",
        "\x0b\n",
        "merk",
    ],
)
def test_no_text_takes_the_rule_long(piece: str):
    # Each of these took seconds once, or is like those that did: a test run that hangs here has found another.
    got = intent_by_rule(piece * 4000)
    assert got == intent_by_rule(piece * 3)
    assert intent_by_rule(f"{piece * 400}. Please remember the milk.") in ("ingest", "both")


def test_the_model_tells_from_the_last_turns(agent: Caller, model: Model):
    before = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    model.answers({"intent": "both"}, "Done.")
    reply = say(agent, "three", before=[*before, {"role": "system", "content": "wish"}], intent_turns=2).ok()
    assert (reply["intent"], reply["intent_source"]) == ("both", "model")
    assert model.data(0) == {"turns": [{"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]}
    assert "new_topic" in model.chats[1].tools


@pytest.mark.parametrize(
    "failure", [server.malformed(), server.refusing(), server.said({"intent": "purge"}), server.cut_off()]
)
def test_where_the_model_is_of_no_help_the_rule_answers(agent: Caller, model: Model, failure: Any):
    for text, intent in (("Where is Anna?", "query"), ("Remember Anna.", "ingest")):
        model.answers(failure, *([failure] if failure.status == 200 and failure in _TWICE else []), "Well.")
        reply = say(agent, text).ok()
        assert (reply["intent"], reply["intent_source"], reply["reply"]) == (intent, "rule", "Well.")


def test_a_rate_limit_that_outlasts_the_question_holds_up_the_answer_and_does_not_refuse_it(
    agent: Caller, model: Model, monkeypatch: pytest.MonkeyPatch
):
    # Longer than a request to the model takes on a busy machine.
    monkeypatch.setattr(chat, "SECONDS", 1.0)
    model.answers(server.limited(after=1.5), "Well.")
    reply = say(agent, "Remember Anna.").ok()
    assert (reply["intent"], reply["intent_source"], reply["reply"]) == ("ingest", "rule", "Well.")
    assert model.chats[1].at - model.chats[0].at >= 1.5


_TWICE = [server.malformed(), server.said({"intent": "purge"})]


@pytest.mark.parametrize("sign", ["word ", "\\<\u0001"])
def test_however_long_the_turns_are_the_question_fits(model: Model, sign: str):
    model.answers({"intent": "ingest"})
    long = [{"role": "user", "content": f"Remember: {sign * 300_000} the end."}] * 70
    assert intent_find(long, turns=64) == ("ingest", "model")
    turns = model.data()["turns"]
    assert len(turns) == 64
    assert turns[-1]["content"].startswith("Remember: ")
    assert turns[-1]["content"].endswith(" the end.")


def test_an_intent_may_be_given_and_is_not_asked_for(agent: Caller, model: Model):
    model.answers("Done.")
    reply = say(agent, "Anna", intent_override="both").ok()
    assert (reply["intent"], reply["intent_source"], len(model.chats)) == ("both", "override", 1)
