"""Assistant: a message is answered beside the page, every call is seen, and what a conversation wrote is taken back."""

import html
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.agents.chat.turns import turn_begin
from memory.console.pages import assistant
from memory.models import AuditEvent, Conversation, ConversationTurn, StudyJob, Topic
from tests.agents.chat.shop import Talk
from tests.cast import Caller
from tests.console.people import codes_of
from tests.llm.server import Model, calling, failing

HTMX = {"HX-Request": "true"}
pytestmark = pytest.mark.usefixtures("_at_once")


class AtOnce:
    """Work that is done when it is begun: what the tests see is in their own transaction."""

    def __init__(self, work: Callable[..., object], *, at_end: Callable[[], None]) -> None:
        work(lambda _event, _reported: None, lambda: True)
        at_end()

    def join(self, _seconds: float) -> None:
        """There is nothing to wait for."""


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assistant, "Running", AtOnce)


def text_of(reply: Any) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", reply.content.decode())))


def say(client: Client, message: str, **members: Any) -> Any:
    return client.post("/assistant/say/", {"message": message, "study": "on", **members})


def remembering(topic_id: str) -> list[Any]:
    """A model that adds a field to a topic, makes one, and says so."""
    return [
        {"intent": "ingest"},
        calling(
            ("extend_topic", {"topic_id": topic_id, "fields": [{"name": "phone", "value": "12"}]}),
            (
                "new_topic",
                {
                    "title": "Anna's job",
                    "fields": [{"name": "role", "value": "pilot"}],
                    "links": [{"to_topic_id": topic_id, "kind": "about"}],
                },
            ),
        ),
        "I have remembered both.",
    ]


def test_without_a_model_the_page_says_how_to_configure_one(looker: Client, op: Client) -> None:
    for client in (looker, op):
        got = text_of(client.get("/assistant/"))
        assert "http://127.0.0.1:11434/v1" in got
        assert "api.groq.com" in got
        assert "api.openai.com" in got
        assert "No conversation yet" in got
    assert "<textarea" not in op.get("/assistant/").content.decode()
    reply = say(op, "Who is Anna?")
    assert reply.status_code == 422
    assert not Conversation.objects.exists()


def test_a_message_is_answered_with_every_call_in_sight(
    op: Client, looker: Client, agent: Caller, model: Model
) -> None:
    anna = agent.remember("Anna Berg", values={"city": "Oslo"})
    model.answers(*remembering(anna))
    reply = say(op, "Remember that Anna is a pilot,\r\nphone 12.", scope="/")
    conversation = Conversation.objects.get()
    assert reply.headers["Location"] == f"/assistant/{conversation.pk}/#last"
    page = op.get(f"/assistant/{conversation.pk}/")
    got, source = text_of(page), page.content.decode()
    for part in (
        "Added to a memory",
        "extend_topic",
        "field phone 12",
        "Remembered something new",
        "about → Anna Berg",
        "I have remembered both.",
        "remembers, as the model understood it",
        "1 round of tools",
        "1 new memory, 2 values, 1 link.",
    ):
        assert part in got, part
    assert f'href="/topic/{anna}/"' in source or f"/{anna}/" in source
    assert "hx-get" not in source.partition('id="turns"')[2].partition("</ol>")[0]
    assert "noscript><meta" not in source
    assert (conversation.channel, conversation.actor) == ("console", "user:operator")
    turn = ConversationTurn.objects.get()
    assert turn.message == "Remember that Anna is a pilot,\nphone 12."
    listed = text_of(op.get("/assistant/"))
    assert "Remember that Anna is a pilot" in listed
    # Whoever finds the topic finds the conversation behind it, if they may.
    behind = f'<dt>Written in</dt><dd><div><a href="/assistant/{conversation.pk}/">'
    assert behind in op.get(f"/topics/{anna}/").content.decode()
    assert "Written in" not in looker.get(f"/topics/{anna}/").content.decode()
    assert "1 conversation" in text_of(op.get("/assistant/count/"))
    # What came before is said to the model again.
    model.answers({"intent": "query"}, "Anna.")
    part = client_part(op, conversation, "Who is the pilot?")
    assert "Anna." in text_of(part)
    assert 'hx-swap-oob="true"' in part.content.decode()
    assert [each["content"] for each in model.chats[-1].messages[1:]] == [
        "Remember that Anna is a pilot,\nphone 12.",
        "I have remembered both.",
        "Who is the pilot?",
    ]


def test_what_the_assistant_writes_is_counted_whoever_asked(op: Client, agent: Caller, model: Model) -> None:
    write = calling(
        ("new_topic", {"title": "Anna"}),
        ("link", {"from_topic_id": str(uuid.uuid4()), "to_topic_id": str(uuid.uuid4())}),
    )
    before = items_of(agent)
    model.answers(write, "Done.", write, "Done.")
    say(op, "Remember Anna.", intent="ingest")
    assert items_of(agent) == (before[0] + 1, before[1] + 1)
    asked = [{"role": "user", "content": "Remember Anna."}]
    agent.post("/v1/chat", {"messages": asked, "intent_override": "ingest"}).ok()
    assert items_of(agent) == (before[0] + 2, before[1] + 2)


def items_of(caller: Caller) -> tuple[float, ...]:
    """How many items were accepted and refused so far, as monitoring reports."""
    got = caller.get("/metrics").text
    found = {
        name: float(count)
        for name, count in re.findall(r'ingested_items_total\{outcome="(\w+)",store="main"\} (\S+)', got)
    }
    return tuple(found.get(name, 0.0) for name in ("accepted", "refused"))


def test_a_text_that_is_not_taken_on_is_answered_with_the_reason(op: Client, model: Model, settings: Any) -> None:
    settings.MEMSTATE_STUDY_MOST_OPEN = 1
    long = "The roof of the house was painted grey in May. " * 300
    for _time in range(2):
        say(op, long, intent="ingest")
    assert ConversationTurn.objects.latest("pk").reply
    assert StudyJob.objects.count() == 1


def digest_of(op: Client, page: str) -> str:
    """What the page of an undo says of what is looked at."""
    found = re.search(r'name="digest" value="([0-9a-f]+)"', op.get(f"{page}undo/").content.decode())
    return found[1] if found else "none"


def client_part(op: Client, conversation: Conversation, message: str, **members: Any) -> Any:
    """Go on with a conversation as the page with script does."""
    sent = {"message": message, "study": "on", "conversation": str(conversation.pk), **members}
    return op.post("/assistant/say/", sent, headers=HTMX)


def test_calls_and_answers_that_fail_are_reported_in_sentences(op: Client, agent: Caller, model: Model) -> None:
    agent.remember("Anna")
    model.answers(
        {"intent": "query"}, calling(("query", {"q": "x", "top_k": 900}), ("purge", {"topic_id": "all"})), failing(400)
    )
    say(op, "Who is Anna?")
    got = text_of(op.get(f"/assistant/{Conversation.objects.get().pk}/"))
    assert "top_k: Input should be less than or equal to 50" in got
    assert "Called an unknown tool purge refused" in got
    model.answers(failing(400))
    say(op, "Who is Bob?", intent="query")
    newest = Conversation.objects.order_by("-moved_at")[0]
    assert ConversationTurn.objects.get(conversation=newest).ended == "model"
    assert "Assistant no answer" in text_of(op.get(f"/assistant/{newest.pk}/"))


def test_of_very_many_calls_the_first_are_folded(op: Client, model: Model) -> None:
    model.answers(
        {"intent": "query"}, calling(*[("query", {"q": f"question {place}"}) for place in range(20)]), "Done."
    )
    say(op, "Who is Anna?")
    page = op.get(f"/assistant/{Conversation.objects.get().pk}/").content.decode()
    assert "The first 12 steps" in page
    assert page.count('<li class="talk-call') == 20


def test_a_message_at_work_is_watched_and_no_second_one_is_taken(op: Client, model: Model) -> None:
    model.answers({"intent": "query"}, "Hello.")
    say(op, "Hello")
    conversation = Conversation.objects.get()
    turn_begin(conversation, message="And now?", model="small", now=timezone.now())
    page = f"/assistant/{conversation.pk}/"
    source = op.get(page).content.decode()
    assert f'hx-get="{page}2/?seen=0" hx-trigger="every 1s"' in source
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in source
    assert "The assistant is working." in text_of(op.get(page))
    # What someone has unfolded stays as it is, until there is more.
    assert op.get(f"{page}2/?seen=0", headers=HTMX).status_code == 204
    refused = client_part(op, conversation, "Another <b>one</b>")
    assert refused.status_code == 422
    assert refused.headers["HX-Retarget"] == "#say"
    assert codes_of(refused) == ["busy"]
    assert "Another &lt;b&gt;one&lt;/b&gt;" in refused.content.decode()
    ConversationTurn.objects.filter(place=2).update(ended="lost")
    done = op.get(f"{page}2/?seen=0", headers=HTMX)
    assert done.headers["HX-Trigger-After-Swap"] == "conversation-moved"
    assert "The process that answered has ended" in text_of(done)
    assert op.get(f"{page}2/").headers["Location"] == page
    assert op.get(f"{page}9/", headers=HTMX).status_code == 404


def test_taking_back_shows_what_then_does_it_and_offers_the_way_back(op: Client, agent: Caller, model: Model) -> None:
    anna, bob = agent.remember("Anna Berg", values={"city": "Oslo"}), agent.remember("Bob", values={"city": "Rome"})
    talk = Talk()
    made = talk.new("Anna's job", role="pilot")
    talk.version(anna, "city", "Paris")
    talk.version(bob, "city", "Lima")
    agent.ingest("version_field", topic_id=bob, fields=[{"name": "city", "value": "Bern"}])
    page = f"/assistant/{talk.row.pk}/"
    got = text_of(op.get(f"{page}undo/"))
    for part in (
        "2 changes will be undone",
        "city: “Oslo” restored",
        "1 change will be kept",
        "It has a newer value from outside this conversation.",
        "Undo 2 changes",
    ):
        assert part in got, part
    assert op.post(f"{page}undo/", {"reason": "", "digest": digest_of(op, page)}).status_code == 422
    # What has changed since it was looked at is shown anew, and nothing is done.
    stale = digest_of(op, page)
    second = talk.new("Bob's job", role="cook")
    reply = op.post(f"{page}undo/", {"reason": "wrong Anna", "digest": stale})
    got = text_of(reply)
    assert (reply.status_code, codes_of(reply)) == (409, ["changed-meanwhile"])
    assert "Undo 3 changes" in got
    turn = turn_begin(talk.row, message="x", model="small", now=timezone.now())
    reply = op.post(f"{page}undo/", {"reason": "wrong Anna", "digest": digest_of(op, page)})
    assert (reply.status_code, codes_of(reply)) == (409, ["busy"])
    assert "<textarea" not in reply.content.decode().partition("Confirm")[2]
    ConversationTurn.objects.filter(pk=turn.pk).update(ended="done")
    agent.ingest("version_field", topic_id=second, fields=[{"name": "role", "value": "chef"}])
    assert Topic.objects.get(pk=made).released_at is None
    reply = op.post(f"{page}undo/", {"reason": "wrong Anna", "digest": digest_of(op, page)}, follow=True)
    got = text_of(reply)
    assert "Undone: 1 memory is released, 1 value is restored. 2 changes are kept." in got
    assert "Undone now by operator, except for later changes" in got
    event = AuditEvent.objects.get(action="conversation_undone")
    assert (event.actor, event.reason) == ("user:operator", "wrong Anna")
    # The undo of the run brings the topic back and not the value, so it is not offered as the undo of all this.
    assert "/undo/" not in reply.content.decode().partition('<div class="page-head">')[0]
    run = re.search(r'<a class="button[^"]*" href="/runs/([^"]+)/">Show run</a>', reply.content.decode())
    assert run
    op.post(f"/runs/{run[1]}/undo/", {"reason": "after all"})
    assert Topic.objects.get(pk=made).released_at is None
    # Of what it made, nothing is taken back any more, so it can be again.
    assert "1 change will be undone" in text_of(op.get(f"{page}undo/"))
    assert "No earlier" in text_of(op.get(f"{page}?before=1"))


def test_a_study_shows_how_far_it_is_and_is_stopped_and_goes_on(op: Client, looker: Client, model: Model) -> None:
    talk = Talk()
    job = StudyJob.objects.create(
        id=uuid.uuid4(),
        conversation=talk.row,
        scope="/",
        actor="user:operator",
        identity="x",
        role="operator",
        principal_scope="/",
        part_chars=6000,
        segments=8,
        done=2,
        phase="waiting",
        created_at=timezone.now(),
        moved_at=timezone.now(),
        not_before=timezone.now() + timezone.timedelta(minutes=5),
        topics=3,
    )
    turn = turn_begin(talk.row, message="(A text of 48,000 characters.)", model="small", now=timezone.now())
    ConversationTurn.objects.filter(pk=turn.pk).update(study=job, ended="done", reply="I study it.")
    page, study = f"/assistant/{talk.row.pk}/", f"/assistant/studies/{job.pk}/"
    got, source = text_of(op.get(page)), op.get(page).content.decode()
    assert "2 of 8 parts read, 3 memories created" in got
    assert "It continues in 5 minutes" in got
    assert f'hx-get="{study}" hx-trigger="every 2s"' in source
    assert f"/lookup/?q=kind:study%3A{job.pk}" in source
    assert '<noscript><meta http-equiv="refresh"' in source
    assert 'value="0.1875"' in source
    assert "HX-Trigger-After-Swap" not in op.get(study, headers=HTMX).headers
    assert op.get(study).headers["Location"] == page
    assert looker.post(f"{study}cancel/").status_code == 403
    assert "The study is stopped" in text_of(op.post(f"{study}cancel/", follow=True))
    assert op.get(study, headers=HTMX).headers["HX-Trigger-After-Swap"] == "conversation-moved"
    assert op.post(f"{study}cancel/").status_code == 409
    job.refresh_from_db()
    assert job.status == "cancelled"
    # At work again, it is stopped by the undo of the conversation.
    StudyJob.objects.filter(pk=job.pk).update(phase="linking")
    assert "continues where it stopped" in text_of(op.post(f"{study}resume/", follow=True))
    assert "1 study in progress is cancelled first" in text_of(op.get(f"{page}undo/"))
    op.post(f"{page}undo/", {"reason": "not wanted", "digest": digest_of(op, page)})
    job.refresh_from_db()
    assert job.status == "cancelled"


def test_who_may_see_and_go_on(op: Client, looker: Client, administrator: Client, model: Model) -> None:
    model.answers({"intent": "query"}, "Hello.")
    say(op, "Hello")
    conversation = Conversation.objects.get()
    page = f"/assistant/{conversation.pk}/"
    # What others talk about is for those who oversee the store.
    assert looker.get(page).status_code == 404
    assert say(looker, "Hello").status_code == 403
    got = text_of(administrator.get(page))
    assert "Only operator can continue this conversation." in got
    assert "<textarea" not in administrator.get(page).content.decode()
    assert client_part(administrator, conversation, "Me too").status_code == 404
    assert looker.get(f"{page}undo/").status_code == 403
    assert "only operators see other users' conversations" in text_of(looker.get("/assistant/"))


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"message": "   "}, "is empty"),
        ({"message": ""}, "required"),
        ({"message": "x" * 60_001, "intent": "query"}, "60,000"),
        ({"message": "Hello", "scope": "//a b"}, ""),
        ({"message": "Hello", "intent": "purge"}, "valid choice"),
    ],
)
def test_what_is_wrong_comes_back_with_the_reason(op: Client, model: Model, sent: Any, sentence: str) -> None:
    reply = op.post("/assistant/say/", sent)
    assert reply.status_code == 422
    assert sentence in text_of(reply)
    assert not Conversation.objects.exists()
    assert op.get(f"/assistant/{uuid.uuid4()}/").status_code == 404


def test_a_long_conversation_is_read_page_by_page_and_long_texts_fold(op: Client) -> None:
    talk = Talk()
    for number in range(1, 46):
        turn = turn_begin(talk.row, message=f"Question {number}.", model="small", now=timezone.now())
        ConversationTurn.objects.filter(pk=turn.pk).update(ended="done", reply=f"Answer {number}. " + "long " * 400)
    page = f"/assistant/{talk.row.pk}/"
    newest, source = text_of(op.get(page)), op.get(page).content.decode()
    assert "Question 45." in newest
    assert "Question 25." not in newest
    assert source.count('<details class="talk-long">') == 20
    assert 'href="?before=26"' in source
    older = text_of(op.get(f"{page}?before=6"))
    assert "Question 5." in older
    assert "Question 6." not in older
    assert "Newest messages" in older
    # Whatever an address says.
    for before in ("x", "-1", "999999999999", "0"):
        assert op.get(f"{page}?before={before}").status_code == 200
