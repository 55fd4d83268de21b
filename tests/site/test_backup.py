"""`manage.py backup` and `manage.py restore`: nothing is lost, receipts included, and no other account can read it."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memstate_site.folder import CHECKOUT
from tests.site.conftest import Installation, folder_copied
from tests.waits import eventually

TEXT = "The code of the shed is 4711"


def command(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of ``manage.py`` on a data folder."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "MEMSTATE_SECRET_KEY")
    }
    return subprocess.run(
        [sys.executable, CHECKOUT / "manage.py", *arguments],
        env={**inherited, "MEMSTATE_DATA_DIR": str(folder), "MEMSTATE_EMBEDDER": "instant"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        # A careless account, whose files everybody may read.
        umask=0o022,
    )


def asked(installation: Installation, method: str, path: str, body: Any = None) -> Any:
    key = json.loads((installation.folder / "credentials.json").read_text())["operator_key"]
    connection = http.client.HTTPConnection("127.0.0.1", installation.port, timeout=10)
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
    answer = connection.getresponse()
    got = answer.read()
    connection.close()
    assert answer.status == 200, got
    return json.loads(got)


@pytest.fixture(scope="module")
def backup(made_once: Path, working_folder: Path) -> Iterator[Path]:
    """A backup of a running store with two topics, of which one was purged."""
    with folder_copied(made_once, working_folder) as folder:
        installation = Installation(folder)
        installation.environment.pop("MEMSTATE_SECRET_KEY", None)
        installation.start()
        try:
            eventually(installation.answers)
            for title in (TEXT, "Mara lives in Berlin"):
                made = asked(installation, "POST", "/v1/ingest", {"placement": "new_topic", "title": title})
                if title == TEXT:
                    asked(installation, "DELETE", f"/v1/topics/{made['topic_id']}?reason=test")
            written = working_folder / "backup"
            result = command(folder, "backup", written)
            assert result.returncode == 0, result.stderr
            assert command(folder, "backup", written).returncode == 1, "an existing folder is left alone"
        finally:
            installation.stop()
        yield written


def test_only_the_account_that_made_it_can_read_a_backup(backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o700
    assert {path.name for path in backup.iterdir()} == {"memstate.sql", "secret-key"}
    for path in backup.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_restored_store_holds_everything_and_can_prove_its_erasures(backup: Path, working_folder: Path) -> None:
    folder = working_folder / "restored"
    result = command(folder, "restore", backup)
    assert result.returncode == 0, result.stderr
    assert (folder / "secret-key").read_text() == (backup / "secret-key").read_text()
    proof = command(folder, "verify_erasure")
    assert proof.returncode == 0, proof.stdout + proof.stderr
    assert "against 1 receipt" in proof.stdout
    got = command(folder, "export", "-")
    assert "Mara lives in Berlin" in got.stdout
    assert TEXT not in got.stdout
    again = command(folder, "restore", backup)
    assert again.returncode == 1
    assert "[conflict]" in again.stderr


def test_what_is_not_a_backup_is_refused(working_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for given in (tmp_path, tmp_path / "file"):
        result = command(working_folder / "restored", "restore", given)
        assert result.returncode == 1
        assert "[invalid-file]" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_backup_that_cannot_be_restored_leaves_everything_as_it_was(backup: Path, working_folder: Path) -> None:
    damaged, folder = working_folder / "damaged", working_folder / "untouched"
    shutil.copytree(backup, damaged)
    dump = damaged / "memstate.sql"
    dump.write_text(dump.read_text() + "\nSELECT 1 FROM a_table_that_is_not_there;\n")
    result = command(folder, "restore", damaged)
    assert result.returncode == 1
    assert "[program-failed]" in result.stderr
    assert (folder / "secret-key").read_text() != (backup / "secret-key").read_text()
    # The store is still empty, so a sound backup is accepted.
    result = command(folder, "restore", backup)
    assert result.returncode == 0, result.stderr
    assert (folder / "secret-key").read_text() == (backup / "secret-key").read_text()
