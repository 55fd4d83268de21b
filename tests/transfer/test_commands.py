"""``manage.py export`` and ``manage.py import``: files that are whole, and what the commands say that they did."""

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
from memory.transfer.export import export_size, store_export
from memstate_site.folder import CHECKOUT
from tests.cast import Cast, Clock, cast_make, in_process
from tests.transfer.shop import emptied, exported, kinds, lines, rich

pytestmark = pytest.mark.django_db


def called(*words: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(*map(str, words), stdout=out, **options)
    return out.getvalue()


def test_the_commands_take_a_store_from_here_to_there(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    made = rich(cast, clock)
    whole, path = exported(), tmp_path / "store.jsonl"
    part = tmp_path / "store.jsonl.part"
    # What an export that was stopped has left is replaced; a file has its name once it is whole.
    part.write_bytes(b"".join(lines(whole)[:50]) + b'{"type":"top' + b"x" * len(whole))
    assert f"{len(lines(whole)):,} lines" in called("export", path)
    assert path.read_bytes() == whole
    assert not part.exists()
    with pytest.raises(CommandError, match=r"\[already-exists\]$"):
        called("export", path)
    with pytest.raises(CommandError, match=r"\[file-not-writable\]$"):
        called("export", tmp_path / "nowhere" / "store.jsonl")
    part.write_bytes(b"".join(lines(whole)[:50]))
    # What was made meanwhile is not written over either.
    with pytest.raises(CommandError, match=r"\[already-exists\]$"):
        called("export", path)
    part = part.rename(tmp_path / "other.jsonl.part")
    with part.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match=r"\[busy\]$"):
            called("export", tmp_path / "other.jsonl")
    part.unlink()
    # Someone else has laid out where it is to go.
    part = tmp_path / "new.jsonl.part"
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CommandError, match=r"\[file-not-writable\]$"):
        called("export", tmp_path / "new.jsonl")
    assert not (tmp_path / "elsewhere").exists()
    part.unlink()
    events = AuditEvent.objects.filter(action="exported").values_list("actor", "after")
    assert list(events) == [("terminal", {"vectors": False})]
    assert lines(whole, "history")
    assert export_size(principal=SYSTEM, sample=0)[0] == len(lines(whole)) - len(lines(whole, "history"))
    called("export", tmp_path / "new.jsonl", "--vectors")
    assert stat.S_IMODE((tmp_path / "new.jsonl").stat().st_mode) == 0o600
    assert (tmp_path / "new.jsonl").read_bytes() == exported(vectors=True)
    emptied()
    said = called("import", path, "--dry-run")
    assert "memories: would be imported." in said
    assert not Topic.objects.exists()
    said = called("import", path, "--reason", "a new machine")
    assert "memories: imported." in said
    assert "Import finished." in said
    started = AuditEvent.objects.get(action="import_started")
    assert (started.actor, started.reason) == ("terminal", "a new machine")
    assert AuditEvent.objects.filter(action="imported", reason__endswith=": a new machine").exists()
    assert exported() == whole
    assert "memories: already present, not changed." in called("import", path)
    assert str(Topic.objects.get(pk=made["odd"]).pk) == made["odd"]


@pytest.mark.django_db(transaction=True)
def test_an_export_is_one_snapshot_and_goes_to_the_standard_output(tmp_path: Path) -> None:
    agent = cast_make(in_process).agent
    ids = [agent.remember(f"Topic {number}") for number in range(3)]
    stream = store_export(principal=SYSTEM)
    first = [next(stream), next(stream)]
    # Someone writes and takes away meanwhile, with a connection of their own.
    writer = connection.copy()
    with writer.cursor() as cursor:
        cursor.execute("UPDATE memory_topic SET title = 'changed'")
        cursor.execute(
            "INSERT INTO memory_link (source_id, target_id, kind, created_at, actor) "
            "VALUES (%s, %s, 'late', now(), '')",
            [ids[0], ids[1]],
        )
    writer.close()
    content = b"".join([*first, *stream])
    assert b"changed" not in content
    assert "link" not in kinds(content)
    assert b"changed" in (now := exported())
    environment = {**os.environ, "DATABASE_URL": _address()}
    done = subprocess.run(
        [sys.executable, "manage.py", "export", "-"],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == now


def _address() -> str:
    """Return the address of the database of this test, for a process of its own."""
    head, _, query = os.environ["DATABASE_URL"].partition("?")
    return f"{head.rpartition('/')[0]}/{connection.settings_dict['NAME']}?{query}"
