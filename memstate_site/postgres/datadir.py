"""The database folder: created once, updated with the package, and configured at each start."""

from __future__ import annotations

import locale
import os
import secrets
import shutil
import subprocess
from pathlib import Path

from memstate_site.folder import private_file_read, private_file_replace, secret_ensure
from memstate_site.postgres.account import Account
from memstate_site.postgres.address import DATABASE, PASSWORD_FILE, ROLE
from memstate_site.postgres.binaries import Binaries
from memstate_site.postgres.errors import PostgresError, explain, full_disk
from memstate_site.postgres.place import DataPlace, data_place, file_give, private_folder_make

SUPERUSER = "postgres"
RELEASE_FILE = "database-release"
# FirstNormalObjectId in PostgreSQL's source.
FIRST_NUMBER_FOR_USERS = 16384
# An empty database with its write-ahead log needs about half of this.
ROOM_NEEDED = 120 * 1024 * 1024

# The only access is by the socket, with the password.
ACCESS_RULES = """\
# Written by MemState at each start; changes here are overwritten.
local all all scram-sha-256
"""

CONFIGURATION = """\
# Written by MemState at each start; put settings of your own into local.conf, which counts last.
max_connections = 100
shared_buffers = {shared_buffers}MB
work_mem = 16MB
# A vector index is built quickly only while it fits in here.
maintenance_work_mem = 256MB
effective_cache_size = {cache}MB
random_page_cost = 1.1
# Statements here are short; compiling them costs more than it saves.
jit = off
# A small server with bursts of writing: fewer, smoother checkpoints, and a bounded log.
max_wal_size = 1GB
min_wal_size = 80MB
checkpoint_timeout = 10min
wal_compression = on
# Forgetting and reinforcement update many rows in place; vacuum follows closely.
autovacuum_vacuum_scale_factor = 0.05
autovacuum_analyze_scale_factor = 0.05
autovacuum_naptime = 20s
track_io_timing = on
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
log_line_prefix = '[%p] '
# The client reports errors of its statements; the log of the server is about the server.
log_min_messages = log
log_checkpoints = off
# Statements carry what people asked to be remembered, and may ask to be forgotten: none of them is written to a log.
log_min_duration_statement = -1
log_min_error_statement = panic
include_if_exists = 'local.conf'
"""

# Faster writes for tests, whose data may be lost.
CARELESS = """\
fsync = off
synchronous_commit = off
full_page_writes = off
"""


def configuration() -> str:
    """Return the server's settings for this machine. Shared buffers should hold the vector index. They get an eighth of
    the memory, from 128 to 1024 MB. The planner assumes that half of the memory, but at least 512 MB, caches files."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1024 * 1024)
    return CONFIGURATION.format(shared_buffers=max(128, min(1024, memory // 8)), cache=max(512, memory // 2))


def environment() -> dict[str, str]:
    """Return the environment of the server's processes: only the variables that they need."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LC_MESSAGES": "C", "TZ": "UTC", **kept}


def cluster_ensure(folder: Path, account: Account, binaries: Binaries, *, careless: bool = False) -> DataPlace:
    """Return the database folder of a data folder, ready to start. A new database is created in another folder and
    moved when it is complete. The caller must have the lock of the data folder."""
    path = folder / "postgres"
    for unfinished in folder.glob("postgres.new-*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    if not path.exists() or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        _make(path, folder, account, binaries, careless=careless)
    place = data_place(path, account)
    _check_version(path, binaries)
    if private_file_read(folder / PASSWORD_FILE) is None:
        # Without the file of the password, no connection is possible, so a new password is set.
        _single_user(place, binaries, "postgres", [_password_statement(secret_ensure(folder / PASSWORD_FILE))])
    if private_file_read(folder / RELEASE_FILE) != binaries.release:
        # The package has changed, so its extension may be newer than that of the database.
        for database in ("template1", DATABASE):
            _single_user(place, binaries, database, ["ALTER EXTENSION vector UPDATE"])
        private_file_replace(folder / RELEASE_FILE, binaries.release)
    file_give(path / "pg_hba.conf", ACCESS_RULES, account)
    file_give(path / "postgresql.conf", configuration() + (CARELESS if careless else ""), account)
    return place


def _make(path: Path, folder: Path, account: Account, binaries: Binaries, *, careless: bool) -> None:
    if not careless and shutil.disk_usage(folder).free < ROOM_NEEDED:
        raise full_disk(folder)
    staging = folder / f"postgres.new-{secrets.token_hex(4)}"
    private_folder_make(staging, account)
    try:
        place = data_place(staging, account)
        _initdb(place, binaries, careless=careless)
        _next_object_id_set(place, binaries)
        # The superuser has no password, so no connection can act as superuser. Only the single-user mode can, and it
        # needs the server's own account. The application's role only owns its database.
        password = secret_ensure(folder / PASSWORD_FILE)
        _single_user(
            place,
            binaries,
            "template1",
            [
                "CREATE EXTENSION vector",
                f"CREATE ROLE {ROLE} LOGIN CREATEDB",
                _password_statement(password),
                f"CREATE DATABASE {DATABASE} OWNER {ROLE}",
            ],
        )
        private_file_replace(folder / RELEASE_FILE, binaries.release)
        if path.exists():
            path.rmdir()
        staging.rename(path)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _initdb(place: DataPlace, binaries: Binaries, *, careless: bool) -> None:
    command = [
        str(binaries.initdb),
        f"--pgdata={place.name}",
        f"--username={SUPERUSER}",
        "--auth=reject",
        "--encoding=UTF8",
        # PostgreSQL's own collation is the same on every system. With the collation of the C library, an upgrade of the
        # library could sort differently and invalidate indexes.
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        f"--lc-ctype={_character_locale()}",
        "--no-instructions",
        # Small log segments make a database fast to copy.
        *(["--no-sync", "--wal-segsize=1"] if careless else []),
    ]
    result = _run(command, place)
    if result.returncode != 0:
        raise explain((result.stdout + result.stderr).splitlines(), place.path)


def _next_object_id_set(place: DataPlace, binaries: Binaries) -> None:
    """Set the next object id to the first one that a running server would use. Otherwise, single-user mode would give
    the vector extension a lower id, and pg_dump would leave it out as a part of PostgreSQL."""
    command = [str(binaries.folder / "bin" / "pg_resetwal"), f"--next-oid={FIRST_NUMBER_FOR_USERS}"]
    result = _run([*command, f"--pgdata={place.name}"], place)
    if result.returncode != 0:
        raise explain((result.stdout + result.stderr).splitlines(), place.path)


def _single_user(place: DataPlace, binaries: Binaries, database: str, statements: list[str]) -> None:
    """Run SQL statements as the superuser without a server. They are sent over a pipe, so no list of processes shows
    them."""
    command = [str(binaries.postgres), "--single", "-j", "-D", str(place.name), "-c", "log_min_messages=warning"]
    # With -j, an empty line after a semicolon ends a statement. With exit_on_error, the first failure ends the script.
    script = "".join(f"{statement};\n\n" for statement in statements)
    result = _run([*command, "-c", "exit_on_error=on", database], place, script)
    if result.returncode != 0 or "ERROR:" in result.stderr or "FATAL:" in result.stderr:
        safe = [line for line in result.stderr.splitlines() if "PASSWORD" not in line]
        raise explain(safe, place.path)


def _run(command: list[str], place: DataPlace, script: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=script,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            start_new_session=True,
            **place.popen_options(),
        )
    except OSError as problem:
        raise PostgresError(f"{command[0]} cannot be run in {place.path}: {problem.strerror}.") from problem


def _password_statement(password: str) -> str:
    # Generated passwords contain only letters, digits, - and _, so they need no quoting.
    assert all(character.isalnum() or character in "-_" for character in password)
    return f"ALTER ROLE {ROLE} PASSWORD '{password}'"


def _character_locale() -> str:
    """Return a locale of this system that knows Unicode letters, or C if there is none. The parser of the text search
    uses it."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in ("C.UTF-8", "C.utf8", "en_US.UTF-8"):
            try:
                locale.setlocale(locale.LC_CTYPE, name)
            except locale.Error:
                continue
            return name
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return "C"


def _check_version(path: Path, binaries: Binaries) -> None:
    try:
        written_by = int((path / "PG_VERSION").read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        raise PostgresError(
            f"{path} contains files, but no PostgreSQL database. Move them away, "
            "or set MEMSTATE_DATA_DIR to another folder."
        ) from None
    if written_by > binaries.major:
        raise PostgresError(
            f"The database in {path} was written by PostgreSQL {written_by}, which is newer than the packaged "
            f"{binaries.major}. Use the version of MemState that wrote it, or set MEMSTATE_DATA_DIR to another folder."
        )
    if written_by < binaries.major:
        raise PostgresError(
            f"The database in {path} was written by PostgreSQL {written_by}, and the packaged one is {binaries.major}. "
            f"Write it out with pg_dump of version {written_by}, move the folder away, start MemState once, "
            "and read the dump into the new database."
        )
