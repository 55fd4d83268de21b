"""The account that the server runs under: PostgreSQL refuses to run as root, so root needs another account."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memstate_site.env import envstr
from memstate_site.postgres.errors import PostgresError

DEFAULT_ACCOUNT = "memstate-db"
# Administration commands are not always in the search path of a service or after `su`.
ADMINISTRATION_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Account:
    """The account of the server's processes. `other` is true if it is not the account of this process."""

    name: str
    uid: int
    gid: int
    other: bool

    def popen_options(self) -> dict[str, Any]:
        """Return the options of `subprocess` that start a program under this account, without supplementary groups."""
        if not self.other:
            return {"umask": 0o077}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "umask": 0o077}

    def give(self, path: Path) -> None:
        """Change the owner of a newly created file or folder to the account."""
        if self.other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def can(self, test: str, path: Path) -> bool:
        """Return whether the account can enter (`-x`) or read (`-r`) a path. The test runs under the account, because
        access lists, security modules and mount options can also deny access."""
        if not self.other:
            return os.access(path, {"-x": os.X_OK, "-r": os.R_OK}[test])
        result = subprocess.run(
            ["/bin/sh", "-c", f'test {test} "$1"', "sh", str(path)], cwd="/", check=False, **self.popen_options()
        )
        return result.returncode == 0


def server_account() -> Account:
    """Return the account for the server: that of this process, or an unprivileged one if this process runs as root. The
    unprivileged account is created if it is missing."""
    if os.geteuid() != 0:
        uid = os.geteuid()
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            # Containers often run under a user id without a name, which is sufficient here.
            name = str(uid)
        return Account(name, uid, os.getegid(), other=False)

    name = envstr("MEMSTATE_POSTGRES_ACCOUNT", DEFAULT_ACCOUNT)
    entry = _entry(name) or _make(name)
    if entry.pw_uid == 0:
        raise PostgresError(
            f"MEMSTATE_POSTGRES_ACCOUNT names {name}, which is root itself. PostgreSQL refuses to run as root; "
            "name an account without privileges."
        )
    account = Account(name, entry.pw_uid, entry.pw_gid, other=True)
    try:
        subprocess.run(["/bin/sh", "-c", "exit 0"], cwd="/", check=True, **account.popen_options())
    except (OSError, subprocess.SubprocessError) as problem:
        raise PostgresError(
            f"Programs cannot be started under the account {name} ({problem}), and PostgreSQL refuses to run as root. "
            "Start MemState as an ordinary user instead."
        ) from problem
    return account


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _make(name: str) -> pwd.struct_passwd:
    useradd = shutil.which("useradd", path=ADMINISTRATION_PATH)
    reason = "this system has no useradd"
    if useradd is not None:
        nologin = shutil.which("nologin", path=ADMINISTRATION_PATH) or "/bin/false"
        result = subprocess.run(
            [useradd, "--system", "--no-create-home", "--shell", nologin, "--user-group", name],
            capture_output=True,
            text=True,
            check=False,
        )
        reason = result.stderr.strip() or f"useradd ended with status {result.returncode}"
    # Another first start may have created the account at the same moment.
    entry = _entry(name)
    if entry is None:
        raise PostgresError(
            f"PostgreSQL refuses to run as root, and the account {name} for it cannot be made: {reason}. "
            "Start MemState as an ordinary user, or make an account without privileges and name it in "
            "MEMSTATE_POSTGRES_ACCOUNT."
        )
    return entry
