"""A box of tools: what is called, what is answered, and what is never raised."""

import uuid
from typing import Any

import pytest
from django.db import OperationalError
from psycopg.errors import DeadlockDetected, LockNotAvailable
from pydantic import Field

from memory.agents.tools import loop as tools
from memory.agents.tools.loop import tool_loop_run
from memory.agents.tools.read_tools import reading_tools
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolReply
from memory.agents.tools.write_tools import writing_tools
from memory.llm.chat_request import framed
from memory.llm.dialogue import MAX_RESULT, dialogue_begin, result_bounded
from tests.cast import principal_like
from tests.llm.fixtures import ModelTime
from tests.llm.server import Model, calling, limited, slow


class Word(Arguments):
    """A word."""

    word: str = Field(max_length=5)


def box(run: Any) -> Toolbox:
    return Toolbox([Tool("say", "Say a word.", Word, run, writes=True)])


def test_a_call_is_answered_with_what_the_tool_returns():
    topic = uuid.UUID(int=1)
    called = box(lambda asked: ToolReply({"said": asked.word}, [topic, topic])).call("say", '{"word": "hi"}')
    assert (called.ok, called.wrote, called.result, called.topic_ids) == (True, True, {"said": "hi"}, [topic])
    assert called.as_json()["arguments"] == {"word": "hi"}
    assert box(lambda _asked: ToolReply(1)).call("say", {"word": "hi"}).result == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("say", ""),
        ("say", "null"),
        ("say", "7"),
        ("say", '{"word": "longer"}'),
        ("say", '{"word": 1}'),
        ("say", '{"word": "a", "x": 1}'),
        ("say", "{'word': 'hi'}"),
        ("shout", '{"word": "hi"}'),
    ],
)
def test_a_wrong_call_is_an_answer(name: str, arguments: str):
    called = box(lambda _asked: pytest.fail("called")).call(name, arguments)
    assert (called.ok, called.wrote, called.topic_ids) == (False, False, [])
    assert called.result.keys() - {"member"} == {"error", "code"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cause", [LockNotAvailable("x"), DeadlockDetected("x")])
def test_that_others_hold_the_topic_is_an_answer_too(cause: Exception):
    def run(_asked: Word) -> ToolReply:
        raise OperationalError("secret words of the database") from cause

    called = box(run).call("say", '{"word": "hi"}')
    assert called.result["code"] == "busy"
    assert "secret" not in called.result["error"]


def test_a_database_that_is_away_is_no_answer(db: None):
    def run(_asked: Word) -> ToolReply:
        raise OperationalError("gone")

    with pytest.raises(OperationalError):
        box(run).call("say", '{"word": "hi"}')


def test_no_tool_forgets(db: None):
    tools = [*reading_tools(principal_like(), clock=lambda: None), *writing_tools(lambda _item: None)]  # type: ignore[arg-type, return-value]
    assert [(tool.name, tool.writes) for tool in tools] == [
        *((name, False) for name in ("query", "topic", "history", "why")),
        *((name, True) for name in ("new_topic", "extend_topic", "version_field", "link")),
    ]
    for tool in tools:
        schema = tool.schema()
        assert schema["type"] == "object"
        # Neither scope nor salience, time or pins are a model's to choose.
        assert not {"scope", "salience", "created_at", "pinned", "provenance", "actor"} & schema["properties"].keys()


def loop(model_box: Toolbox, **more: Any) -> Any:
    messages = dialogue_begin("Do it.", [{"role": "user", "content": "Now."}], mark="m")
    asked = {"most_rounds": 3, "seconds": 5.0, "purpose": "chat", **more}
    return tool_loop_run(messages, model_box, mark="m", **asked)


def test_the_loop_ends_within_a_round_when_no_one_wants_it_to_go_on(model: Model):
    made = []
    model.answers(calling(("say", {"word": "one"})))
    answers = iter([True, True, True, False])

    def run(asked: Word) -> ToolReply:
        made.append(asked.word)
        return ToolReply({})

    end = loop(box(run), go_on=lambda: next(answers))
    # The model had answered when it ended, and what it asked for then was not done.
    assert (end.ended, end.rounds, made, len(model.chats)) == ("time", 1, ["one"], 2)


def test_the_loop_ends_at_its_time_limit(model: Model):
    model.answers(calling(("say", {"word": "one"})), slow())
    end = loop(box(lambda _asked: ToolReply({})), seconds=50)
    assert (end.ended, end.rounds) == ("time", 1)
    model.answers(limited(after=300))
    assert loop(box(lambda _asked: ToolReply({}))).ended == "model"


def test_tool_calls_after_the_time_limit_are_not_made(model: Model, model_time: ModelTime):
    model.answers(calling(*[("say", {"word": word}) for word in ("one", "two", "three")]))

    def run(_asked: Word) -> ToolReply:
        model_time.sleep(10)
        return ToolReply({})

    end = loop(box(run), seconds=9)
    assert ([each.ok for each in end.log], end.ended) == ([True, False, False], "time")
    assert end.log[1].result == {"error": "The time limit was reached; this one was not called."}


def test_the_log_of_a_loop_is_bounded(model: Model, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tools, "MAX_LOGGED", 40_000)
    huge = {"rows": [f'"row" {number}' * 20 for number in range(2_000)]}
    model.answers(*[calling(("say", {"word": "one"}))] * 4, "Done.")
    ticked: list[Any] = []
    end = loop(box(lambda _asked: ToolReply(huge)), most_rounds=9, tick=ticked.append)
    results = [each.result for each in end.log]
    assert [set(each) for each in results] == [{"rows", "left_out"}] * 2 + [{"left_out"}] * 2
    assert results[0]["left_out"] + len(results[0]["rows"]) == 2_000
    assert all(each.ok and each.wrote for each in end.log)
    # What the model got, and whoever listens, learns of every call.
    assert [each.result for each in ticked] == [results[0]] * 4
    assert [each["content"].count("left_out") for each in model.chats[4].messages if each["role"] == "tool"] == [1] * 4


def test_whatever_a_tool_returns_it_is_reported_within_bounds(model: Model):
    for result in ({"text": '"\\' * 50_000}, ["x" * 90] * 900, {"a": {"b": ["<"] * 40_000}}, "<" * 40_000):
        got = result_bounded(result)
        assert len(framed(got, "")) <= MAX_RESULT
        assert result_bounded(got) == got
