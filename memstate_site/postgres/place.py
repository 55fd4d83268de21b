"""The data folder and the socket folder of a server, and how an account gets access to them."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memstate_site.folder import private_file_read, private_file_replace
from memstate_site.postgres.account import Account
from memstate_site.postgres.address import SOCKET_FOLDER_FILE
from memstate_site.postgres.errors import PostgresError

# By this name, a process can reach its working folder, even if it may not enter the folders above.
STANDING_HERE = Path("/proc/self/cwd")
# This path is short and the same for every account. $TMPDIR can be too long for a socket, and the temporary folder of a
# session is removed with the session, although the server may continue.
SOCKET_BASE = Path("/tmp")  # noqa: S108 - the folder made below has a random name and is closed to others


@dataclass(frozen=True)
class DataPlace:
    """The data folder of a server (``path``). ``name`` is the path by which the server's account can reach it."""

    path: Path
    account: Account
    name: Path

    def popen_options(self) -> dict[str, Any]:
        """Return the options of `subprocess` for the account. Root enters the folder before it changes to the
        account."""
        return {"cwd": self.path, **self.account.popen_options()}


def data_place(path: Path, account: Account) -> DataPlace:
    """Return an existing data folder with a path by which the account can reach it. Raises ``PostgresError`` if the
    folder belongs to another account or cannot be reached."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PostgresError(f"{path} should be the database's folder, but it is not a folder.")
    if status.st_uid != account.uid:
        raise PostgresError(
            f"The database in {path} belongs to account number {status.st_uid}, but it would run as {account.name} "
            f"(number {account.uid}). Start MemState as the account that started it first, "
            "or set MEMSTATE_DATA_DIR to another folder."
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        # The folder was created with 0700, and its mode was changed since.
        path.chmod(0o700)
    if account.can("-x", path):
        return DataPlace(path, account, path)
    if sys.platform.startswith("linux") and STANDING_HERE.exists():
        return DataPlace(path, account, STANDING_HERE)
    raise PostgresError(
        f"The account {account.name}, under which PostgreSQL runs, cannot go through {_closed_folder(path, account)} "
        f"to the database in {path}. Set MEMSTATE_DATA_DIR to a folder such as /var/lib/memstate-data, "
        "or start MemState as an ordinary user."
    )


def _closed_folder(path: Path, account: Account) -> Path:
    for parent in reversed(path.parents):
        if not account.can("-x", parent):
            return parent
    return path


def private_folder_make(path: Path, account: Account) -> None:
    """Create a folder that only the account (and root) can enter."""
    path.mkdir(mode=0o700)
    # The mask of the process may have removed bits, but PostgreSQL requires 0700.
    path.chmod(0o700)
    account.give(path)


def socket_folder_ensure(folder: Path, account: Account) -> Path:
    """Return the private folder of the server's socket, and create it if it is missing. Clients read its path from a
    file. The name is random, so that no other account can create the folder first."""
    remembered = private_file_read(folder / SOCKET_FOLDER_FILE)
    if remembered is not None and _is_private(Path(remembered), account):
        return Path(remembered)
    try:
        made = Path(tempfile.mkdtemp(prefix="memstate-", dir=SOCKET_BASE))
    except OSError as problem:
        raise PostgresError(
            f"No folder for the database's socket can be made in /tmp: {problem.strerror}."
        ) from problem
    account.give(made)
    private_file_replace(folder / SOCKET_FOLDER_FILE, str(made))
    return made


def socket_folder_remove(folder: Path, account: Account) -> None:
    """Delete the socket folder after the server has ended."""
    remembered = private_file_read(folder / SOCKET_FOLDER_FILE)
    if remembered is not None and _is_private(Path(remembered), account):
        shutil.rmtree(remembered, ignore_errors=True)
    (folder / SOCKET_FOLDER_FILE).unlink(missing_ok=True)


def _is_private(path: Path, account: Account) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == account.uid and stat.S_IMODE(status.st_mode) == 0o700


def file_give(path: Path, text: str, account: Account) -> None:
    """Write a file into a folder of the account, atomically and without following links in it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if account.other:
            os.fchown(file.fileno(), account.uid, account.gid)
    temporary.replace(path)
