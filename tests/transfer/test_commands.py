"""``manage.py export`` and ``manage.py import``: going on where they were stopped, and saying what they did."""

import fcntl
import io
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memory.access.principal import SYSTEM
from memory.models import AuditEvent, Topic
from memory.transfer import sections as sections_room
from memory.transfer.export import export_count, part_read, store_export
from memstate_site.folder import CHECKOUT
from tests.cast import Cast, Clock, cast_make, in_process
from tests.transfer.shop import emptied, exported, lines, rich, sorts

pytestmark = pytest.mark.django_db


def called(*words: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(*map(str, words), stdout=out, **options)
    return out.getvalue()


def test_an_export_goes_on_behind_any_line_that_it_has_written(
    cast: Cast, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich(cast, clock)
    # Pages that end in the middle of everything.
    monkeypatch.setattr(sections_room, "PAGE", 7)
    monkeypatch.setattr(sections_room, "TOPICS", 5)
    monkeypatch.setattr(sections_room, "PAGE_BYTES", 30_000)
    whole = exported()
    kept = lines(whole)
    # Behind the first and the last line of every sort, some in between, and a line that is not whole.
    ends = {place for place in range(1, len(kept)) if kept[place][:12] != kept[place - 1][:12]}
    for end in sorted({0, 1, *ends, *(place - 1 for place in ends), *range(3, len(kept), 97), len(kept)}):
        begun = b"".join(kept[:end]) + (kept[end][: len(kept[end]) // 2] if end < len(kept) else b"")
        offset, place = part_read(io.BytesIO(begun), scope="/", vectors=False)
        assert begun[:offset] + b"".join(store_export(principal=SYSTEM, after=place)) == whole, end
    histories = len(lines(whole, "history"))
    assert histories > 3
    assert export_count(principal=SYSTEM) == len(kept) - histories


def test_the_commands_take_a_store_from_here_to_there(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    made = rich(cast, clock)
    whole, path = exported(), tmp_path / "store.jsonl"
    part = tmp_path / "store.jsonl.part"
    # What was stopped before is gone on with, and has its name at the end alone.
    part.write_bytes(b"".join(lines(whole)[:50]) + b'{"type":"top')
    assert "Going on behind line 50" in called("export", path)
    assert path.read_bytes() == whole
    assert not part.exists()
    with pytest.raises(CommandError, match="is there already"):
        called("export", path)
    with pytest.raises(CommandError, match="cannot be written"):
        called("export", tmp_path / "nowhere" / "store.jsonl")
    part.write_bytes(b"".join(lines(whole)[:50]))
    # What was made meanwhile is not written over either.
    with pytest.raises(CommandError, match="is there already"):
        called("export", path)
    part = part.rename(tmp_path / "other.jsonl.part")
    with part.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match="Another export writes"):
            called("export", tmp_path / "other.jsonl")
    with pytest.raises(CommandError, match="something else"):
        called("export", tmp_path / "other.jsonl", "--scope", "/work")
    part.unlink()
    # Somebody else has laid out where it is to go.
    part = tmp_path / "new.jsonl.part"
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CommandError, match="cannot be written"):
        called("export", tmp_path / "new.jsonl")
    assert not (tmp_path / "elsewhere").exists()
    part.unlink()
    told = AuditEvent.objects.filter(action="exported").order_by("id").values_list("actor", "after")
    assert list(told) == [("terminal", {"vectors": False, "behind": 50})]
    called("export", tmp_path / "new.jsonl", "--vectors")
    assert stat.S_IMODE((tmp_path / "new.jsonl").stat().st_mode) == 0o600
    assert (tmp_path / "new.jsonl").read_bytes() == exported(vectors=True)
    emptied()
    said = called("import", path, "--dry-run")
    assert "topics: would be brought." in said
    assert not Topic.objects.exists()
    said = called("import", path)
    assert "topics: brought." in said
    assert "All of it is here." in said
    assert exported() == whole
    assert "topics: there already, and left as they are." in called("import", path)
    assert str(Topic.objects.get(pk=made["odd"]).pk) == made["odd"]


@pytest.mark.django_db(transaction=True)
def test_an_export_is_one_snapshot_and_goes_to_the_standard_output(tmp_path: Path) -> None:
    agent = cast_make(in_process).agent
    ids = [agent.remember(f"Topic {number}") for number in range(3)]
    told = store_export(principal=SYSTEM)
    first = [next(told), next(told)]
    # Somebody writes and takes away meanwhile, with a connection of their own.
    writer = connection.copy()
    with writer.cursor() as cursor:
        cursor.execute("UPDATE memory_topic SET title = 'changed'")
        cursor.execute(
            "INSERT INTO memory_link (source_id, target_id, kind, created_at, actor) "
            "VALUES (%s, %s, 'late', now(), '')",
            [ids[0], ids[1]],
        )
    writer.close()
    content = b"".join([*first, *told])
    assert b"changed" not in content
    assert "link" not in sorts(content)
    assert b"changed" in (now := exported())
    environment = {**os.environ, "DATABASE_URL": _address()}
    done = subprocess.run(
        [sys.executable, "manage.py", "export", "-"], cwd=CHECKOUT, env=environment, capture_output=True, check=True
    )
    assert done.stdout == now


def _address() -> str:
    """Return the address of the database of this test, for a process of its own."""
    head, _, query = os.environ["DATABASE_URL"].partition("?")
    return f"{head.rpartition('/')[0]}/{connection.settings_dict['NAME']}?{query}"
