"""Importing into a store that is not empty, again, in parts, by whoever may; and what comes of it."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.duplicates.pair_actions import pair_merge
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.jobs import tasks
from memory.models import AuditEvent, ImportJob, Link, PolicyVersion, Topic
from memory.resumable import job_get, jobs_count, jobs_list, jobs_stalled
from memory.transfer import lines as lines_room
from memory.transfer import work as work_room
from memory.transfer.check import import_check
from memory.transfer.importing import import_cancel, import_confirm, import_offer, import_start
from memory.transfer.work import import_work
from tests.cast import Caller, Cast, Clock, principal_like
from tests.duplicates.shop import pair_make
from tests.forgetting.shop import dump, policy_put
from tests.transfer.shop import emptied, ended, exported, imported, lines, rich

pytestmark = pytest.mark.django_db

ALICE = Principal("person:alice", "Alice", "operator", "/user/alice")
# What an import writes about itself.
OWN = ("memory_importjob", "memory_importedtopic", "memory_auditevent")


def plain(content: bytes) -> dict[str, Any]:
    """Return the topics of an export by id."""
    return {topic["id"]: topic for topic in map(json.loads, lines(content, "topic"))}


def edges(content: bytes) -> set[tuple[str, str, str]]:
    return {(link["source"], link["target"], link["kind"]) for link in map(json.loads, lines(content, "link"))}


def test_what_is_there_stays_and_the_rest_comes(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    made = rich(cast, clock)
    whole = exported()
    emptied()
    # A store with a life of its own: topics and links to them, a policy, and a part of the file.
    imported(_part(whole, "/people"), tmp_path)
    for number in range(5):
        own = cast.agent.remember(f"Own {number}")
        cast.agent.ingest("extend_topic", topic_id=own, edges=[{"to_topic_id": own, "kind": "itself"}])
        cast.agent.query(f"own {number}")
    tasks.upkeep()
    cast.agent.patch(f"/v1/topics/{made['fact']}", {"title": "Changed here", "reason": "x"}).ok()
    policy_put(cast.operator, "/home", half_life_days=3)
    before = plain(exported())
    path = tmp_path / "whole"
    path.write_bytes(whole)
    rows = dump()
    report = import_check(path, principal=SYSTEM, now=clock.now)
    assert not report.problems
    assert dump() == rows
    job = imported(whole, tmp_path)
    # What was said before is what came of it.
    assert job.counts == report.sorts
    after = exported()
    here = plain(after)
    assert {topic_id: here[topic_id] for topic_id in before} == before
    assert PolicyVersion.objects.filter(scope="/home").count() == 1
    assert job.counts["policy"] == {"brought": 2, "there": 1}
    new = plain(whole).keys() - before.keys()
    assert len(new) == job.counts["topic"]["brought"] > 20
    assert {topic_id: here[topic_id] for topic_id in new} == {topic_id: plain(whole)[topic_id] for topic_id in new}
    assert edges(after) >= {edge for edge in edges(whole) if new & set(edge[:2])}
    # And once more brings nothing at all.
    rows = dump(*OWN)
    again = imported(whole, tmp_path)
    assert {why for counts in again.counts.values() for why in counts} == {"there"}
    assert dump(*OWN) == rows


def _part(whole: bytes, scope: str) -> bytes:
    """The lines of what lies at a scope, as someone with a filter would pick them: whole topics, and nothing else."""
    kept = [line for line in lines(whole, "topic") if f'"scope":"{scope}'.encode() in line]
    return ended([lines(whole)[0], *kept])


def test_what_was_erased_here_does_not_come_back(cast: Cast, tmp_path: Path) -> None:
    agent, operator = cast.agent, cast.operator
    ids = [agent.remember(f"Guest {n} of the feast", values={"mail": f"guest{n}@feast.example"}) for n in range(3)]
    agent.ingest(
        "extend_topic",
        topic_id=ids[1],
        edges=[{"to_topic_id": ids[0], "kind": "knows"}],
        fields=[{"name": "friend", "value": "somebody", "ref_topic_id": ids[0]}],
    )
    agent.query("guest0@feast.example")
    cast.reader.topic(ids[0])
    operator.post(f"/v1/topics/{ids[0]}/archive", {"reason": "guest0@feast.example left"}).ok()
    content = exported()
    topics_purge([uuid.UUID(ids[0])], principal=SYSTEM, reason="asked for", now=timezone.now())
    kept = dump(*OWN)
    again = imported(content, tmp_path)
    assert again.counts["topic"] == {"erased": 1, "there": 2}
    assert {kind for kind, counts in again.counts.items() if "erased" in counts} == {"topic", "link"}
    assert dump(*OWN) == kept
    assert erasure_verify().ok


def test_who_is_bound_to_a_scope_brings_what_lies_in_it(cast: Cast, tmp_path: Path) -> None:
    inside = cast.alice.remember("Mine", scope="/user/alice/notes")
    outside = cast.agent.remember("Not mine", edges=[{"to_topic_id": inside, "kind": "near"}])
    whole, part = exported(), exported(scope="/user/alice")
    assert exported(ALICE) == part
    with pytest.raises(NotVisible):
        exported(ALICE, scope="/user")
    emptied()
    path = tmp_path / "whole"
    path.write_bytes(whole)
    with pytest.raises(ValueRefused, match=r"Line \d+: This line is in /; you may write in /user/alice only"):
        import_start(path, principal=ALICE, now=timezone.now())
    assert not ImportJob.objects.exists()
    job = imported(part, tmp_path, ALICE)
    assert [str(topic.pk) for topic in Topic.objects.all()] == [inside]
    # A link into what is not theirs is as one to what is not there.
    stolen = lines(whole, "link")[0].replace(outside.encode(), str(uuid.uuid4()).encode())
    more = lines(part, "topic")[0].replace(inside.encode(), str(uuid.uuid4()).encode())
    assert imported(ended([lines(part)[0], more, stolen]), tmp_path, ALICE).counts["link"] == {"missing": 1}
    assert Link.objects.count() == 0
    stranger = Principal("x", "x", "operator", "/user/bob")
    with pytest.raises(NotVisible):
        job_get(ImportJob, job.pk, principal=stranger)
    assert jobs_count(ImportJob, principal=stranger, at_most=9) == 0
    assert jobs_count(ImportJob, principal=ALICE, at_most=9) == jobs_count(ImportJob, principal=SYSTEM, at_most=9) == 2


@pytest.mark.parametrize("role", ["reader", "agent"])
def test_only_operators_export_and_import(agent: Caller, role: str, tmp_path: Path) -> None:
    agent.remember("Something")
    path = tmp_path / "file"
    path.write_bytes(exported())
    caller = principal_like(role)
    for call in (
        lambda: exported(caller),
        lambda: import_check(path, principal=caller, now=timezone.now()),
        lambda: import_start(path, principal=caller, now=timezone.now()),
        lambda: import_offer(path, principal=caller, now=timezone.now(), enqueue=_no_one),
    ):
        with pytest.raises(NotAllowed):
            call()


def stepped(job: ImportJob, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker do so many steps of an import, and be gone."""
    left = iter(range(steps))
    real = work_room._step_do

    def step(*args: Any, **named: Any) -> bool:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(work_room, "_step_do", step)
        with pytest.raises(KeyboardInterrupt):
            import_work(job.pk, clock=timezone.now, seconds=600)


def _no_one(_job: uuid.UUID) -> None:
    pass


def test_an_offered_file_is_checked_and_waits_for_a_yes(
    agent: Caller, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        agent.remember(f"Topic {number}")
    content = exported()
    emptied()
    path = tmp_path / "file"
    path.write_bytes(content)
    clock.stop()
    job = import_offer(path, principal=SYSTEM, now=clock.now, enqueue=_no_one)
    with pytest.raises(Conflict) as refused:
        import_confirm(job.pk, principal=SYSTEM, now=clock.now, enqueue=_no_one)
    assert refused.value.code == "conflict"
    assert tasks.import_continue(str(job.pk)) == "waiting"
    job.refresh_from_db()
    assert job.report["sorts"] == {"topic": {"brought": 30}}
    assert not Topic.objects.exists()
    import_confirm(job.pk, principal=SYSTEM, now=clock.now, enqueue=_no_one)
    # A few steps, then someone stops it.
    monkeypatch.setattr(lines_room, "LINES", 10)
    stepped(job, 3, monkeypatch)
    assert Topic.objects.count() == 20
    assert jobs_stalled(ImportJob, now=clock.now) == []
    assert jobs_stalled(ImportJob, now=clock.forward(minutes=4)) == [job.pk]
    import_cancel(job.pk, principal=SYSTEM, now=clock.now)
    with pytest.raises(Conflict, match="cancelled"):
        import_cancel(job.pk, principal=SYSTEM, now=clock.now)
    # The same file goes on where it was, under a number of its own.
    follower = import_start(path, principal=SYSTEM, now=clock.now)
    assert import_work(follower.pk, clock=timezone.now, seconds=600).status == "done"
    assert exported() == content
    found, following = jobs_list(ImportJob, principal=SYSTEM, cursor=None, limit=1)
    assert [each.pk for each in found] == [follower.pk]
    assert [each.pk for each in jobs_list(ImportJob, principal=SYSTEM, cursor=following, limit=1)[0]] == [job.pk]


def test_a_file_that_changes_or_goes_away_ends_its_import(agent: Caller, tmp_path: Path) -> None:
    agent.remember("Something")
    path = tmp_path / "file"
    path.write_bytes(exported())
    emptied()
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    path.write_bytes(path.read_bytes().replace(b"Something", b"Otherwise"))
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert (job.status, job.failure) == ("failed", "The file has changed since it was checked.")
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    path.unlink()
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert job.status == "failed"
    assert job.failure
    assert not Topic.objects.exists()
    assert AuditEvent.objects.filter(action="import_failed").count() == 2


def test_topics_that_were_merged_there_and_not_here(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    older = cast.agent.remember("Anna", values={"city": "Oslo", "phone": "12"})
    first = exported()
    clock.forward(minutes=1)
    newer = cast.agent.remember("Anna", values={"job": "pilot"})
    other = cast.agent.remember("Harbor walks", edges=[{"to_topic_id": newer, "kind": "with"}])
    pair_merge(pair_make(older, newer).pk, principal=SYSTEM, reason="the same", now=clock.now)
    second = exported()
    emptied()
    imported(first, tmp_path)
    path = tmp_path / "second"
    path.write_bytes(second)
    report = import_check(path, principal=SYSTEM, now=clock.now)
    before = plain(exported())
    job = imported(second, tmp_path)
    assert job.counts == report.sorts
    # The one that is here stays a topic of its own, the one that took it in there comes with all that it says.
    assert (job.counts["topic"], job.counts["merged"]) == ({"there": 1, "brought": 2}, {"there": 1})
    after = plain(exported())
    assert {topic_id: after[topic_id] for topic_id in before} == before
    assert after.keys() == {older, newer, other}
    assert after[newer] == plain(second)[newer]


def test_a_topic_whose_other_half_is_missing_is_a_released_one(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    older = cast.agent.remember("Anna", values={"city": "Oslo"})
    clock.forward(minutes=1)
    newer = cast.agent.remember("Anna", values={"job": "pilot"})
    pair_merge(pair_make(older, newer).pk, principal=SYSTEM, reason="the same", now=clock.now)
    content = exported()
    emptied()
    kept = [line for line in lines(content)[:-1] if not line.startswith(b'{"type":"topic","id":"%s"' % newer.encode())]
    assert imported(ended(kept), tmp_path).counts["merged"] == {"missing": 1}
    topic = Topic.objects.get()
    assert (str(topic.pk), topic.merged_into_id, topic.released_at is None) == (older, None, False)
    assert cast.agent.found("Anna") == []
