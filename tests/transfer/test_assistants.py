"""Conversations with ChatGPT, Claude and Claude Code, from files of the shape that these write."""

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.models import ImportJob, Revision, Topic
from memory.transfer.check import import_check
from memory.transfer.importers import IMPORTERS
from memory.transfer.importers.guess import source_guess
from memory.transfer.importing import import_start
from memory.transfer.report import ImportReport
from memory.transfer.work import import_work
from tests.cast import Caller, store_rows, worker_turn

pytestmark = pytest.mark.django_db

EXPORTS = Path(__file__).parent / "exports"
FILES = {"chatgpt": "chatgpt.json", "claude": "claude.json", "claude-code": "claude-code.jsonl"}


def check(source: str, path: Path | None = None) -> ImportReport:
    path = path or EXPORTS / FILES[source]
    return import_check(path, principal=SYSTEM, now=timezone.now(), source=source, scope="/brought")


def bring(source: str, path: Path | None = None) -> ImportJob:
    path = path or EXPORTS / FILES[source]
    job = import_start(path, principal=SYSTEM, now=timezone.now(), source=source, scope="/brought")
    return import_work(job.pk, clock=timezone.now, seconds=60)


def values(name: str) -> dict[Any, str]:
    """Return the value of a field of each topic that has it, by the topic."""
    return dict(Revision.objects.filter(field__name=name).values_list("field__topic", "value"))


def said() -> list[tuple[str, str, str]]:
    """Return role, text and time of the messages, in their order."""
    roles, texts = values("role"), values("text")
    found = Topic.objects.order_by("created_at").values_list("pk", "created_at")
    return [(roles[pk], texts[pk], at.strftime("%H:%M:%S.%f")[:-3]) for pk, at in found]


@pytest.mark.parametrize("source", FILES)
def test_the_file_tells_what_wrote_it(source: str) -> None:
    assert source_guess(EXPORTS / FILES[source]) == source


def test_of_chatgpt_the_branch_that_was_shown_last_is_kept() -> None:
    report = check("chatgpt")
    job = bring("chatgpt")
    assert said() == [
        ("user", "Which lighthouse can one sleep in near Brest?", "09:00:01.250"),
        ("assistant", "The one on Île Louët, in the bay of Morlaix.", "09:01:00.000"),
        ("user", "Is this the one in my picture?", "09:02:00.000"),
        ("assistant", "Yes, with its white tower.", "09:02:05.000"),
        ("user", "I bake with rye only.", "11:30:00.500"),
        ("assistant", "Noted: rye only.", "11:30:03.000"),
    ]
    # Each follows the one before it in its conversation, the first has the title.
    assert job.counts["link"] == {"brought": 4}
    assert sorted(values("conversation").values()) == ["Bread", "Lighthouse holiday"]
    counted = {
        sentence.partition(" of ")[2].partition(": ")[2].partition(":")[0]: sentence for sentence in report.losses
    }
    assert counted["messages of other branches"].startswith("1 of 12")
    assert counted["messages of tools and programs"].startswith("3 of 12")
    assert counted["damaged messages"].startswith("2 of 12")
    assert counted["content"].startswith("1 of 12")


def test_of_claude_what_both_said_is_kept() -> None:
    report = check("claude")
    bring("claude")
    assert said() == [
        ("user", "My garden lies in the shade until noon.", "08:00:01.250"),
        ("assistant", "Ferns and hostas like that.", "08:00:09.000"),
        ("user", "Which of them do slugs leave alone?", "08:04:00.000"),
        ("assistant", "Ferns.", "08:04:07.000"),
    ]
    counted = " ".join(report.losses)
    for name in ("attachments", "parts of messages", "damaged messages", "conversation"):
        assert f"1 of 6: {name}: not kept" in counted


def test_of_claude_code_messages_keep_the_time_of_their_line() -> None:
    report = check("claude-code")
    bring("claude-code")
    assert said() == [
        ("user", "Prices are kept in cents, never as floats. Fix the total.", "09:00:01.000"),
        ("assistant", "I will look at the sum first.", "09:00:05.000"),
        ("assistant", "The total now adds cents.", "09:00:20.500"),
        ("user", "Thanks. Ship it on Friday.", "09:01:00.000"),
    ]
    counted = " ".join(report.losses)
    assert "2 of 13: damaged messages: not kept" in counted
    assert "4 of 13: messages of tools and programs: not kept" in counted
    for kind in ("summary", "file-history-snapshot", "system"):
        assert f"1 of 13: lines of the type {kind}: not kept" in counted


@pytest.mark.parametrize("source", FILES)
def test_a_second_import_brings_nothing_and_the_forecast_comes_before(
    source: str, operator: Caller, tmp_path: Path
) -> None:
    report = check(source)
    brought = report.sorts["topic"]["brought"]
    assert any(f"{brought} new memories go into /brought" in sentence for sentence in report.forecast), report.forecast
    assert bring(source).counts["topic"] == {"brought": brought}
    copy = tmp_path / "again"
    shutil.copy(EXPORTS / FILES[source], copy)
    assert bring(source, copy).counts["topic"] == {"there": brought}
    worker_turn()
    assert operator.found("lighthouse slugs cents", scope="/brought")


@pytest.mark.parametrize("source", FILES)
def test_an_import_that_stopped_anywhere_goes_on_with_the_rest(source: str) -> None:
    path, now = EXPORTS / FILES[source], timezone.now()
    whole = list(IMPORTERS[source].drafts(path, scope="/brought", now=now))
    assert whole[-1].offset <= path.stat().st_size
    for at, draft in enumerate(whole, start=1):
        batches = IMPORTERS[source].batches(path, scope="/brought", now=now, done=draft.number)
        rest = [each for batch in batches for each in batch.items]
        assert rest == [each.item for each in whole[at:] if each.item]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("chatgpt", [{"mapping": {"a": {"parent": "b", "message": None}, "b": {"parent": "a"}}, "current_node": "a"}]),
        ("chatgpt", [{"mapping": []}, {"mapping": {}}, 7, {"mapping": {"a": 7}}]),
        ("claude", [{"chat_messages": {}}, {"chat_messages": [None, {"sender": "human"}]}]),
        ("claude-code", {"type": "user", "message": {"role": "user", "content": [7, {"type": "text"}]}}),
        ("claude-code", {"type": "user", "message": None, "parentUuid": 7}),
    ],
)
def test_a_file_without_any_message_is_refused(source: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(value))
    before = store_rows()
    assert check(source, path).problems == ["This file contains no messages."]
    with pytest.raises(CommandError) as refused:
        call_command("import", str(path), "--from", source, stdout=StringIO())
    assert refused.value.code == "invalid-file"
    assert store_rows() == before


def test_without_a_current_node_the_last_branch_of_the_file_is_kept(tmp_path: Path) -> None:
    (first, *_rest) = json.loads((EXPORTS / "chatgpt.json").read_text())
    del first["current_node"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(first))
    bring("chatgpt", path)
    assert [text for _role, text, _at in said()][-1] == "Yes, with its white tower."


def test_a_line_that_is_too_long_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory.transfer.importers import chatgpt_claude

    monkeypatch.setattr(chatgpt_claude, "MAX_ENTRY_BYTES", 500)
    lines = (EXPORTS / "claude-code.jsonl").read_text().splitlines(keepends=True)
    long = json.dumps({"type": "user", "message": {"content": "x" * 1200}}) + "\n"
    path = tmp_path / "long.jsonl"
    path.write_text(long + lines[3])
    report = check("claude-code", path)
    assert report.sorts["topic"] == {"brought": 1}
    assert "damaged messages" in report.losses[0]


@pytest.mark.parametrize("source", FILES)
def test_the_command_detects_the_format(source: str) -> None:
    path, out = str(EXPORTS / FILES[source]), StringIO()
    before = store_rows()
    call_command("import", path, "--scope", "/brought", "--dry-run", stdout=out)
    assert IMPORTERS[source].title in out.getvalue()
    assert "/brought" in out.getvalue()
    assert store_rows() == before
    call_command("import", path, "--scope", "/brought", stdout=StringIO())
    assert ImportJob.objects.get().source == source
    assert Topic.objects.count() in (4, 6)
