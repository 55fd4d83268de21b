"""What a purge has erased here does not come back with a file from before."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.forgetting.manual_actions import topics_pin
from memory.models import PolicyVersion, Topic, Vitality
from memory.policy.save import policy_save
from memory.transfer import work as work_room
from memory.transfer.importing import import_start
from memory.transfer.work import import_work
from tests.cast import Cast
from tests.forgetting.shop import dump
from tests.transfer.shop import emptied, exported, imported

pytestmark = pytest.mark.django_db

SAID = "Zanzibar codeword marmalade"
MAIL = "quux.person@feast.example"
OWN = ("memory_importjob", "memory_importedtopic", "memory_auditevent")


def purge(topic_id: str) -> None:
    topics_purge([uuid.UUID(topic_id)], principal=SYSTEM, reason="asked for", now=timezone.now())


def test_a_newer_file_of_a_store_in_which_it_was_not_erased(cast: Cast, tmp_path: Path) -> None:
    agent = cast.agent
    erased = agent.remember(SAID, values={"mail": MAIL})
    first = exported()
    kept = agent.remember("Harbor walks")
    agent.ingest("extend_topic", topic_id=kept, edges=[{"to_topic_id": erased, "kind": "near"}])
    topics_pin([uuid.UUID(kept)], pinned=True, principal=SYSTEM, reason=f"like {MAIL}", now=timezone.now())
    policy_save("/home", preset="balanced", values={}, author="ops", reason=f"for {MAIL}", now=timezone.now())
    second = exported()
    emptied()
    imported(first, tmp_path)
    purge(erased)
    job = imported(second, tmp_path)
    assert {kind for kind, counts in job.counts.items() if "erased" in counts} == {"topic", "link"}
    # Reasons stay, without what they said of it.
    assert Vitality.objects.get(topic_id=kept).pin_reason == "like [erased]"
    assert PolicyVersion.objects.get(scope="/home").reason == "for [erased]"
    verdict = erasure_verify()
    assert (verdict.ok, verdict.traces) == (True, [])
    # And once more brings nothing.
    rows = dump(*OWN)
    assert "brought" not in {why for counts in imported(second, tmp_path).counts.values() for why in counts}
    assert dump(*OWN) == rows


def test_a_purge_between_two_batches(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    erased = cast.agent.remember(SAID, values={"mail": MAIL})
    kept = cast.agent.remember("Harbor walks", edges=[{"to_topic_id": erased, "kind": "near"}])
    path = tmp_path / "file"
    path.write_bytes(exported())
    emptied()
    job = import_start(path, principal=SYSTEM, now=timezone.now())
    real, purged = work_room._step_do, []

    def step(*args: Any, **named: Any) -> bool:
        done = real(*args, **named)
        if not purged and Topic.objects.exists():
            purge(erased)
            purged.append(erased)
        return done

    monkeypatch.setattr(work_room, "_step_do", step)
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert (job.status, job.counts["link"]) == ("done", {"erased": 1})
    assert [str(topic.pk) for topic in Topic.objects.all()] == [kept]
    assert erasure_verify().ok


def test_verification_finds_what_comes_as_the_text_of_another_topic(cast: Cast, tmp_path: Path) -> None:
    """The age of a text comes with it: it was not said again after the purge."""
    erased = cast.agent.remember("A guest", values={"mail": MAIL})
    first = exported()
    cast.agent.remember("Another guest", values={"mail": MAIL})
    second = exported()
    emptied()
    imported(first, tmp_path)
    purge(erased)
    imported(second, tmp_path)
    assert not erasure_verify().ok
