"""Files of other systems in a store: brought once, found, and never against a purge."""

import json
import uuid
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.core.errors import NotVisible, ValueRefused
from memory.erasure.purge import topics_purge
from memory.models import ImportJob, Link, Topic, Vitality
from memory.transfer.check import import_check
from memory.transfer.importers import importer
from memory.transfer.importing import import_start
from memory.transfer.work import import_work
from tests.cast import Caller, store_rows, worker_turn

CHAT = [
    {"role": "user", "content": f"Message {n} of the talk about lighthouses", "time": 1_746_093_600 + n}
    for n in range(5)
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file to write to."""
    return tmp_path / "foreign.json"


def bring(
    file: Path, said: object, source: str, *, scope: str = "/brought", principal: Principal = SYSTEM
) -> ImportJob:
    """Import what is given."""
    file.write_text(json.dumps(said))
    job = import_start(file, principal=principal, now=timezone.now(), source=source, scope=scope)
    return import_work(job.pk, clock=timezone.now, seconds=60)


def test_a_chat_is_brought_with_its_age_and_order_and_found(operator: Caller, file: Path) -> None:
    job = bring(file, CHAT, "chat")
    assert (job.status, job.counts["topic"], job.counts["link"]) == ("done", {"brought": 5}, {"brought": 4})
    worker_turn()
    found = operator.found("lighthouses", scope="/brought")
    assert len(found) == 5
    topics = list(Topic.objects.order_by("created_at"))
    assert [operator.topic(str(topic.pk))["label"][:9] for topic in topics] == [f"Message {n}" for n in range(5)]
    # It is as old as it says, and its clock of use starts on arrival.
    assert topics[0].created_at.year == 2025
    assert Vitality.objects.get(topic=topics[0]).reinforced_at >= job.created_at
    assert Link.objects.filter(kind="follows", source=topics[3], target=topics[2]).exists()


def test_a_check_says_where_topics_go_and_how_many_would_soon_be_forgotten(operator: Caller, file: Path) -> None:
    file.write_text(json.dumps(CHAT))
    now = timezone.now()

    def forecast() -> list[str]:
        return import_check(file, principal=SYSTEM, now=now, source="chat", scope="/brought").forecast

    into, leaving = forecast()
    assert into.startswith("5 of 5 new memories go into /brought")
    assert "0 within 7 days and 0 within 30 days" in leaving
    rule: dict[str, Any] = {"name": "old", "events": ["cron"], "action": "archive"}
    old = [{"field": "age", "op": ">", "value": "90d"}, {"field": "idle", "op": ">", "value": "9d"}]
    fixed = [{"field": "scope", "op": "within", "value": "/brought"}]
    fixed += [{"field": name, "op": "is_not", "value": "other"} for name in ("kind", "provenance")]
    fixed += [{"not": {"field": "category", "op": "has", "value": "other"}}]
    rule["condition"] = {"all": [*old, *fixed]}
    operator.put("/v1/policies/brought", {"rules": [rule], "reason": "for the test"}).ok()
    assert "0 within 7 days and 5 within 30 days" in forecast()[-1]


def test_a_second_import_and_a_longer_version_bring_what_is_new(operator: Caller, file: Path) -> None:
    bring(file, CHAT[:3], "chat")
    before = store_rows()["memory_topic"]
    assert bring(file, CHAT[:3], "chat").counts["topic"] == {"there": 3}
    assert store_rows()["memory_topic"] == before
    job = bring(file, CHAT, "chat")
    assert (job.counts["topic"], job.counts["link"]) == ({"there": 3, "brought": 2}, {"brought": 2})


def test_an_import_goes_on_within_a_conversation(db: None, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "BATCH", 2)
    file.write_text(json.dumps([{"messages": CHAT}]))
    job = import_start(file, principal=SYSTEM, now=timezone.now(), source="chat", scope="/brought")

    def killed(*_progress: int) -> None:
        raise KeyboardInterrupt

    for topics in (2, 4):
        with pytest.raises(KeyboardInterrupt):
            import_work(job.pk, clock=timezone.now, seconds=60, progress=killed)
        assert Topic.objects.count() == topics
    job = import_work(job.pk, clock=timezone.now, seconds=60)
    assert (job.status, job.counts["topic"], job.counts["link"]) == ("done", {"brought": 5}, {"brought": 4})


def test_what_was_erased_does_not_come_back_and_nothing_points_at_it(operator: Caller, file: Path) -> None:
    bring(file, CHAT, "chat")
    second = Topic.objects.order_by("created_at")[1]
    topics_purge([second.pk], reason="for the test", principal=SYSTEM, now=timezone.now())
    longer = [*CHAT, {"role": "user", "content": "And one more"}]
    job = bring(file, longer, "chat")
    assert job.counts["topic"] == {"there": 4, "erased": 1, "brought": 1}
    assert not Topic.objects.filter(pk=second.pk).exists()
    # In a store that has the receipt and nothing else, the one behind it stands without its link.
    third = Topic.objects.order_by("created_at")[1]
    assert not Link.objects.filter(source=third, kind="follows").exists()


def test_a_memory_that_exists_elsewhere_is_left_where_it_is(operator: Caller, file: Path) -> None:
    made = operator.remember("Mine", scope="/other")
    memory: dict[str, Any] = {"id": made, "memory": "Theirs", "created_at": "2025-03-01"}
    assert bring(file, [memory], "mem0").counts["topic"] == {"there": 1}
    assert Topic.objects.get(pk=made).title == "Mine"


def test_nothing_is_written_outside_the_scope_of_whoever_asks(db: None, file: Path) -> None:
    bound = Principal(identity="test:mara", actor="key:mara", role="operator", scope="/user/mara")
    with pytest.raises(NotVisible):
        bring(file, CHAT, "chat", scope="/user/bob", principal=bound)
    # The ids of a file may be anything, and lead no higher than the scope.
    escape = {"id": str(uuid.uuid4()), "memory": "Up", "user_id": "../../bob", "run_id": ".."}
    bring(file, [escape], "mem0", scope="/user/mara", principal=bound)
    assert set(Topic.objects.values_list("scope__path", flat=True)) == {"/user/mara/user/..%2F..%2Fbob/run/%2E%2E"}


def test_one_bad_entry_changes_nothing(db: None, file: Path) -> None:
    before = store_rows()
    with pytest.raises(ValueRefused, match=r"Entry 6 \(line 1\): A message is an object; this is a number\."):
        bring(file, [*CHAT, 7], "chat")
    assert store_rows() == before


def test_the_command_tells_what_is_lost_and_brings_the_rest(db: None, file: Path) -> None:
    file.write_text(json.dumps([{"id": str(uuid.uuid4()), "memory": "Likes tea", "hash": "5d41", "user_id": "mara"}]))
    got = StringIO()
    call_command("import", str(file), "--from", "mem0", "--scope", "/brought", "--dry-run", stdout=got)
    assert "1 of 1: hash: not kept, it is made anew from the text." in got.getvalue()
    assert not Topic.objects.exists()
    call_command("import", str(file), "--from", "mem0", "--scope", "/brought", stdout=StringIO())
    assert Topic.objects.get().scope.path == "/brought/user/mara"
    file.write_text("[")
    with pytest.raises(CommandError, match=r"\[invalid-file\]$"):
        call_command("import", str(file), "--from", "chat", stdout=StringIO())
