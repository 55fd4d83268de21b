"""The data folder and its secrets are closed to others, and nothing that we did not make is changed."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memstate_site.env import SettingError
from memstate_site.folder import data_folder_ensure, private_file_replace, secret_ensure


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMSTATE_DATA_DIR", str(tmp_path / "below" / "data"))
    return tmp_path / "below" / "data"


def test_a_new_data_folder_cannot_be_listed_by_others(place: Path) -> None:
    before = os.umask(0)
    try:
        assert data_folder_ensure() == place
    finally:
        os.umask(before)
    assert mode(place) & 0o066 == 0


def test_the_mode_of_a_folder_that_exists_is_left_alone(place: Path) -> None:
    place.mkdir(parents=True)
    place.chmod(0o755)
    data_folder_ensure()
    assert mode(place) == 0o755


def test_a_file_in_the_place_of_the_data_folder_is_named(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("")
    with pytest.raises(SettingError, match="is not a folder"):
        data_folder_ensure()


def test_a_secret_is_made_once_and_closed_to_others(place: Path) -> None:
    before = os.umask(0)
    try:
        secret = secret_ensure(data_folder_ensure() / "secret-key")
    finally:
        os.umask(before)
    assert len(secret) >= 50
    assert secret_ensure(data_folder_ensure() / "secret-key") == secret
    assert mode(place / "secret-key") == 0o600


def test_processes_that_ask_at_once_get_the_same_secret(place: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        secrets = set(pool.map(lambda _: secret_ensure(data_folder_ensure() / "secret-key"), range(64)))
    assert len(secrets) == 1
    assert [path.name for path in place.iterdir()] == ["secret-key"]


def test_a_file_that_is_written_again_is_closed_even_if_it_was_open(place: Path) -> None:
    path = data_folder_ensure() / "credentials.json"
    path.write_text("old")
    path.chmod(0o644)
    private_file_replace(path, "new")
    assert path.read_text() == "new\n"
    assert mode(path) == 0o600


def test_a_full_disk_is_named_and_no_half_written_file_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data_folder_ensure() / "credentials.json"

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SettingError, match=r"The disk that holds .* is full\. Make room there"):
        private_file_replace(path, "new")
    assert list(place.iterdir()) == []
