"""``manage.py ingest``: a file of items, each line once, however often and however rudely the run was stopped."""

import codecs
import io
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django_q.models import OrmQ

from memory.ingest import request as ingest_room
from memory.management.commands import ingest as command
from memory.models import AuditEvent, Link, Revision, Topic, TopicVector
from tests.cast import Caller, raises_code, store_rows, worker_turn

# Words that the search for words ignores, so that only meaning can find them.
ONLY_MEANING = "to be or not to be"

TOPICS = 350
LINES = TOPICS + 100
BATCHES = 3

Write = Callable[..., Path]


def topic_id(number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"topic {number}"))


def many_items() -> list[dict[str, Any]]:
    """Topics that each name the one before, and then new values for the first hundred of them."""
    made = [
        {
            "placement": "new_topic",
            "topic_id": topic_id(number),
            "title": f"Topic {number}",
            "fields": [{"name": "state", "value": f"first {number}"}],
            "edges": [{"to_topic_id": topic_id(number - 1), "kind": "follows"}] if number else [],
        }
        for number in range(TOPICS)
    ]
    changed = [
        {
            "placement": "version_field",
            "topic_id": topic_id(number),
            "fields": [{"name": "state", "value": f"second {number}"}],
        }
        for number in range(LINES - TOPICS)
    ]
    return made + changed


def assert_each_line_is_in_the_store_once() -> None:
    assert Counter(Topic.objects.values_list("title", flat=True)) == Counter(f"Topic {at}" for at in range(TOPICS))
    values = Revision.objects.values_list("field__topic__title", "seq", "value")
    assert Counter(values) == Counter(
        [(f"Topic {at}", 1, f"first {at}") for at in range(TOPICS)]
        + [(f"Topic {at}", 2, f"second {at}") for at in range(LINES - TOPICS)]
    )
    links = Link.objects.values_list("source__title", "target__title", "kind")
    assert Counter(links) == Counter((f"Topic {at}", f"Topic {at - 1}", "follows") for at in range(1, TOPICS))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file: a dict becomes a line of JSON, text and bytes are lines as they are."""

    def _write(*lines: dict[str, Any] | str | bytes) -> Path:
        path = tmp_path / "items.jsonl"
        encoded = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
        path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in encoded) + b"\n")
        return path

    return _write


def ingest(path: Path, **options: Any) -> str:
    """Run the command and return its last words."""
    out = io.StringIO()
    call_command("ingest", str(path), stdout=out, **options)
    return out.getvalue()


@pytest.mark.django_db
def test_a_file_of_many_batches_is_ingested_and_later_lines_lean_on_earlier_ones(write: Write):
    path = write(*many_items())
    assert LINES > (BATCHES - 1) * command.LINES_PER_BATCH
    assert ingest(path) == f"{LINES} items were stored.\n"
    assert_each_line_is_in_the_store_once()
    assert not TopicVector.objects.filter(embedding__isnull=True).exists()
    assert set(AuditEvent.objects.values_list("actor", flat=True)) == {"terminal"}


@pytest.mark.django_db
def test_running_it_again_changes_nothing(write: Write):
    path = write(*many_items())
    said = ingest(path)
    before = store_rows()
    assert ingest(path) == said
    assert store_rows() == before
    assert_each_line_is_in_the_store_once()


@pytest.mark.django_db
def test_the_same_line_twice_in_a_file_is_two_items(write: Write):
    item = {"placement": "new_topic", "title": "Tea"}
    assert ingest(write(*[item] * (2 * command.LINES_PER_BATCH))) == "400 items were stored.\n"
    assert Topic.objects.count() == 2 * command.LINES_PER_BATCH


@pytest.mark.django_db
@pytest.mark.parametrize("when", ["before it is sent", "before it is committed", "after it was committed"])
def test_a_run_that_was_stopped_at_its_second_batch_goes_on(write: Write, monkeypatch: pytest.MonkeyPatch, when: str):
    path = write(*many_items())
    module, name = {
        "before it is sent": (command, "batch_ingest"),
        "before it is committed": (ingest_room, "idempotency_finish"),
        "after it was committed": (command, "batch_ingest"),
    }[when]
    real = getattr(module, name)
    calls = []

    def _stopped(*args: Any, **named: Any) -> Any:
        calls.append(args)
        if len(calls) < 2:
            return real(*args, **named)
        if when == "after it was committed":
            real(*args, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, name, _stopped)
        with pytest.raises(KeyboardInterrupt):
            ingest(path)
    batches = 2 if when == "after it was committed" else 1
    assert Topic.objects.count() == min(TOPICS, batches * command.LINES_PER_BATCH)
    assert ingest(path) == f"{LINES} items were stored.\n"
    assert_each_line_is_in_the_store_once()


@pytest.mark.django_db(transaction=True)
def test_a_killed_ingest_command_continues_where_it_stopped(write: Write):
    # Enough batches that the kill comes before the last of them, at any moment of one.
    titles = [f"Thing {number}" for number in range(12 * command.LINES_PER_BATCH)]
    path = write(*({"placement": "new_topic", "title": title} for title in titles))
    address, _slash, parameters = os.environ["DATABASE_URL"].partition("?")
    address = f"{address.rpartition('/')[0]}/{connection.settings_dict['NAME']}"
    process = subprocess.Popen(
        [sys.executable, "manage.py", "ingest", str(path)],
        cwd=django_settings.BASE_DIR,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "DATABASE_URL": f"{address}?{parameters}" if parameters else address,
            "MEMSTATE_EMBEDDER": "instant",
        },
    )
    try:
        deadline = time.monotonic() + 60
        while not Topic.objects.exists():
            assert process.poll() is None, "it should have run until it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait(60)
    # Its session may still be finishing what it got last.
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            if cursor.fetchone() == (0,):
                break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    there = Topic.objects.count()
    assert 0 < there < len(titles)
    assert there % command.LINES_PER_BATCH == 0
    assert ingest(path) == f"{len(titles)} items were stored.\n"
    assert Counter(Topic.objects.values_list("title", flat=True)) == Counter(titles)


BAD_LINES = {
    "not JSON": (b"{placement: new_topic}", "invalid-json"),
    "not UTF-8": (b'{"placement": "new_topic", "title": "\xff"}', "invalid-json"),
    "cut short": (b'{"placement": "new_topic", "title": "Te', "invalid-json"),
    "no object": (b'["new_topic"]', "invalid-member"),
    "a title that is a number": (b'{"placement": "new_topic", "title": 7}', "invalid-member"),
    "an unknown placement": (b'{"placement": "somewhere"}', "invalid-member"),
    "no placement": (b'{"title": "Tea"}', "missing-member"),
    "a value of another type": (
        b'{"placement": "new_topic", "fields": [{"name": "cups", "value": "many", "field_type": "int"}]}',
        "invalid-member",
    ),
    "a NUL": (b'{"placement": "new_topic", "title": "a\\u0000b"}', "invalid-member"),
    "half a character": (b'{"placement": "new_topic", "title": "\\ud800"}', "invalid-member"),
    "no number": (b'{"placement": "new_topic", "salience": NaN}', "invalid-member"),
    "an unknown topic": (
        b'{"placement": "extend_topic", "topic_id": "6f2b7c0e-4a51-5d83-9c1e-2f60b1d7a944"}',
        "not-found",
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("line", "code"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_reported_with_its_number_and_reason_and_the_others_are_written(
    write: Write, capsys: pytest.CaptureFixture[str], line: bytes, code: str
):
    path = write({"placement": "new_topic", "title": "before"}, line, {"placement": "new_topic", "title": "after"})
    out = io.StringIO()
    with raises_code(CommandError, "items-refused") as refused:
        call_command("ingest", str(path), stdout=out)
    assert refused.value.returncode == 1
    assert out.getvalue() == "2 items were stored.\n"
    (got,) = [said for said in capsys.readouterr().out.splitlines() if said.startswith("Line ")]
    assert got.startswith("Line 2: ")
    assert got.endswith(f"[{code}]")
    assert sorted(Topic.objects.values_list("title", flat=True)) == ["after", "before"]


@pytest.mark.django_db
def test_the_number_of_a_line_counts_blank_and_bad_lines_and_those_of_earlier_batches(
    write: Write, capsys: pytest.CaptureFixture[str]
):
    good = {"placement": "new_topic", "title": "Tea"}
    lines: list[dict[str, Any] | str] = [good] * (command.LINES_PER_BATCH + 20)
    lines[1] = ""
    lines[2] = "no JSON"
    lines[4] = {"placement": "somewhere"}
    lines[command.LINES_PER_BATCH] = "   "
    lines[command.LINES_PER_BATCH + 1] = "no JSON either"
    lines[command.LINES_PER_BATCH + 7] = {"title": "nowhere"}
    with raises_code(CommandError, "items-refused"):
        ingest(write(*lines))
    got = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("Line ")]
    assert got == ["Line 3", "Line 5", "Line 202", "Line 208"]
    assert Topic.objects.count() == len(lines) - 6


@pytest.mark.django_db
def test_a_file_with_bad_lines_is_reported_the_same_the_second_time_and_changes_nothing(
    write: Write, capsys: pytest.CaptureFixture[str]
):
    path = write("no JSON", {"placement": "new_topic", "title": "Tea"}, {"placement": "somewhere"})
    got = []
    for _run in range(2):
        with raises_code(CommandError, "items-refused"):
            ingest(path)
        got.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("Line ")])
    assert [line.partition(":")[0] for line in got[0]] == ["Line 1", "Line 3"]
    assert got[1] == got[0]
    assert Topic.objects.count() == 1


@pytest.mark.django_db
def test_nothing_is_written_outside_the_scope_that_was_named(
    write: Write, capsys: pytest.CaptureFixture[str], agent: Caller
):
    elsewhere = agent.remember("Bob's own", scope="/user/bob")
    before = Revision.objects.count()
    path = write(
        {"placement": "new_topic", "title": "unnamed"},
        {"placement": "new_topic", "title": "below", "scope": "/user/alice/home"},
        {"placement": "new_topic", "title": "beside", "scope": "/user/alicent"},
        {"placement": "new_topic", "title": "above", "scope": "/"},
        {"placement": "version_field", "topic_id": elsewhere, "fields": [{"name": "tea", "value": "green"}]},
    )
    with raises_code(CommandError, "items-refused"):
        ingest(path, scope="/user/alice")
    got = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("Line ")]
    assert got == ["Line 3", "Line 4", "Line 5"]
    assert sorted(Topic.objects.exclude(pk=elsewhere).values_list("title", "scope__path")) == [
        ("below", "/user/alice/home"),
        ("unnamed", "/user/alice"),
    ]
    assert Revision.objects.count() == before


@pytest.mark.django_db
def test_without_a_scope_items_land_where_they_say_and_else_at_the_root(write: Write):
    ingest(
        write(
            {"placement": "new_topic", "title": "unnamed"},
            {"placement": "new_topic", "title": "named", "scope": "/user/bob"},
        )
    )
    assert sorted(Topic.objects.values_list("title", "scope__path")) == [("named", "/user/bob"), ("unnamed", "/")]


@pytest.mark.django_db
def test_a_bad_scope_is_refused_before_anything_is_read(write: Write):
    before = store_rows()
    with raises_code(CommandError, "invalid-scope") as refused:
        ingest(write({"placement": "new_topic", "title": "Tea"}), scope="/a b")
    assert refused.value.returncode == 1
    assert store_rows() == before


@pytest.mark.django_db
def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    for path in (tmp_path / "nowhere.jsonl", tmp_path):
        with raises_code(CommandError, "invalid-file") as refused:
            ingest(path)
        assert refused.value.returncode == 1


@pytest.mark.django_db
@pytest.mark.parametrize("content", [b"", b"\n", b"\n  \n\r\n"])
def test_a_file_without_items_is_no_error(tmp_path: Path, content: bytes):
    path = tmp_path / "items.jsonl"
    path.write_bytes(content)
    assert ingest(path) == "0 items were stored.\n"
    assert not Topic.objects.exists()


@pytest.mark.django_db
def test_lines_may_end_as_on_windows_and_the_last_need_not_end(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"placement": "new_topic", "title": "a"}\r\n{"placement": "new_topic", "title": "b"}')
    assert ingest(path) == "2 items were stored.\n"
    assert sorted(Topic.objects.values_list("title", flat=True)) == ["a", "b"]


def test_deferred_topics_are_left_to_the_worker_who_makes_them_findable_by_meaning(write: Write, agent: Caller):
    path = write({"placement": "new_topic", "title": ONLY_MEANING}, {"placement": "new_topic", "title": "Else"})
    ingest(path, defer=True)
    assert TopicVector.objects.filter(embedding__isnull=True).count() == 2
    assert OrmQ.objects.count() == 1
    assert agent.found(ONLY_MEANING) == []
    worker_turn()
    assert not TopicVector.objects.filter(embedding__isnull=True).exists()
    first = agent.query(ONLY_MEANING)["candidates"][0]
    assert (first["title"], first["similarity"]) == (ONLY_MEANING, pytest.approx(1.0, abs=1e-5))


def test_what_was_not_deferred_is_found_by_meaning_at_once(write: Write, agent: Caller):
    ingest(write({"placement": "new_topic", "title": ONLY_MEANING}))
    assert OrmQ.objects.count() == 0
    (candidate,) = agent.query(ONLY_MEANING)["candidates"]
    assert candidate["similarity"] == pytest.approx(1.0, abs=1e-5)


def test_a_mark_before_the_first_line_is_passed_over(db: None, tmp_path: Path) -> None:
    path = tmp_path / "marked.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + b'{"placement": "new_topic", "title": "Tea with a mark"}\n')
    call_command("ingest", str(path), stdout=io.StringIO())
    assert Topic.objects.get().title == "Tea with a mark"


def test_a_file_ingested_with_and_without_defer_is_written_once(db: None, tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_bytes(b'{"placement": "new_topic", "title": "Tea once"}\n')
    call_command("ingest", str(path), defer=True, stdout=io.StringIO())
    call_command("ingest", str(path), stdout=io.StringIO())
    assert Topic.objects.count() == 1
