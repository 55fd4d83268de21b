"""What a purge has erased here does not come back with a file from before: not in journals, not in conversations."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.command.purge import topics_purge
from memory.command.verify import erasure_verify
from memory.models import AccessLog, AuditEvent, Conversation, ConversationTurn, ConversationWrite, Topic
from memory.transfer import work as work_room
from memory.transfer.importing import import_start
from memory.transfer.work import import_work
from tests.cast import Cast
from tests.forgetting.shop import dump
from tests.transfer.shop import brought, emptied, exported

pytestmark = pytest.mark.django_db

SAID = "Zanzibar codeword marmalade"
MAIL = "quux.person@feast.example"
OWN = ("memory_importjob", "memory_importedtopic", "memory_auditevent")


def purge(topic_id: str) -> None:
    topics_purge([uuid.UUID(topic_id)], principal=SYSTEM, reason="asked for", now=timezone.now())


def talk(*turns: tuple[str, list[str]], writes: tuple[str, ...] = ()) -> Conversation:
    """A conversation with these messages, each with the topics that its call had to do with."""
    now = timezone.now()
    made = Conversation.objects.create(
        id=uuid.uuid4(), scope="/", actor="a", identity="user:1", turns=len(turns), created_at=now, moved_at=now
    )
    for place, (said, topic_ids) in enumerate(turns, start=1):
        call = {"tool": "store", "arguments": {"title": said}, "ok": True, "ms": 1.25, "said": said}
        ConversationTurn.objects.create(
            conversation=made,
            place=place,
            scope="/",
            at=timezone.now(),
            message=said,
            reply=f"Noted: {said}",
            ended="done",
            tool_log=[call | {"topic_ids": topic_ids}],
        )
    for topic_id in writes:
        ConversationWrite.objects.create(conversation=made, topic_id=topic_id, at=timezone.now(), what="topic")
    return made


def test_a_newer_file_of_a_store_in_which_it_was_not_erased(cast: Cast, tmp_path: Path) -> None:
    agent = cast.agent
    erased = agent.remember(SAID, values={"mail": MAIL})
    first = exported()
    kept = agent.remember("Harbor walks")
    agent.ingest("extend_topic", topic_id=kept, edges=[{"to_topic_id": erased, "kind": "near"}])
    cast.operator.post(f"/v1/topics/{kept}/archive", {"reason": f"like {MAIL}"}).ok()
    agent.query(f"harbor walks of {MAIL}")
    AccessLog.objects.update(topic_ids=[kept])
    talk(("Harbor walks at nine", [kept]), (SAID, [erased]), ("and more of that person", [kept]))
    talk(("What was written here is gone", []), writes=(erased,))
    told = talk((f"Of {MAIL} I know nothing.", [kept]))
    # What a log holds is looked through, whatever it is.
    told.told.update(tool_log=[{"tool": "store", "topic_ids": 5, "seen": None}])
    second = exported()
    emptied()
    brought(first, tmp_path)
    purge(erased)
    job = brought(second, tmp_path)
    assert {sort for sort, counts in job.counts.items() if "erased" in counts} == {"topic", "link", "audit"}
    # Another's journal stays, without what it said of it.
    assert AuditEvent.objects.filter(topic_id=kept, action="archived").get().reason == "like [erased]"
    access = AccessLog.objects.get()
    assert (access.query, access.query_hash) == ("harbor walks of [erased]", "")
    # A conversation is as the purge would have left it: whole up to where it was told, empty from there on.
    turns = ConversationTurn.objects.order_by("conversation__created_at", "place")
    assert [turn.message for turn in turns] == ["Harbor walks at nine", "", "", "", "Of [erased] I know nothing."]
    assert turns[1].tool_log == [
        {"tool": "store", "arguments": {}, "ok": True, "ms": 1.25, "said": "", "topic_ids": []}
    ]
    assert turns[2].tool_log[0]["topic_ids"] == [kept]
    verdict = erasure_verify()
    assert (verdict.ok, verdict.traces) == (True, [])
    # And once more brings nothing.
    rows = dump(*OWN)
    assert "brought" not in {why for counts in brought(second, tmp_path).counts.values() for why in counts}
    assert dump(*OWN) == rows


def test_a_purge_between_two_batches(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    erased = cast.agent.remember(SAID, values={"mail": MAIL})
    talk((f"{SAID}, {MAIL}", [erased]))
    path = tmp_path / "file"
    path.write_bytes(exported())
    emptied()
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    real, purged = work_room._step, []

    def step(*args: Any, **named: Any) -> bool:
        done = real(*args, **named)
        if not purged and Topic.objects.exists():
            purge(erased)
            purged.append(erased)
        return done

    monkeypatch.setattr(work_room, "_step", step)
    assert import_work(job.pk, clock=timezone.now, seconds=60).status == "done"
    assert purged
    assert [turn.message for turn in ConversationTurn.objects.all()] == [""]
    assert erasure_verify().ok


def test_what_was_said_again_after_the_purge_is_not_taken_out(cast: Cast, tmp_path: Path) -> None:
    erased = cast.agent.remember(SAID, values={"mail": MAIL})
    purge(erased)
    content_before = exported()
    again = cast.agent.remember("A guest", values={"mail": MAIL})
    cast.operator.post(f"/v1/topics/{again}/archive", {"reason": f"for {MAIL}"}).ok()
    content = exported()
    emptied()
    brought(content_before, tmp_path)
    brought(content, tmp_path)
    assert AuditEvent.objects.filter(topic_id=again, action="archived").get().reason == f"for {MAIL}"
    assert exported() == content
