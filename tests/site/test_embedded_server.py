"""The embedded database lets no one else in, and says in sentences what is wrong."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from memstate_site.env import SettingError
from memstate_site.folder import CHECKOUT
from memstate_site.postgres import binaries
from memstate_site.postgres import datadir as cluster
from memstate_site.postgres.account import Account, server_account
from memstate_site.postgres.address import socket_address
from memstate_site.postgres.errors import PostgresError, StillAttachedError, explain
from memstate_site.postgres.place import socket_folder_ensure
from memstate_site.postgres.server import EmbeddedServer
from memstate_site.postgres.session import server_session
from tests.postgres_process import server_pid
from tests.site.conftest import folder_copy
from tests.waits import eventually, line_of

ROOT = os.geteuid() == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def need_root() -> None:
    if not ROOT:
        pytest.skip("only root can act as another account")


def start_fails(folder: Path) -> str:
    """Start in vain; the sentence."""
    with pytest.raises(PostgresError) as refused:
        EmbeddedServer(folder, careless=True).start()
    return str(refused.value)


def socket_of(server: EmbeddedServer) -> Path:
    return Path((server.folder / "socket-folder").read_text().strip())


def test_a_dump_asks_for_the_vector_extension_by_itself(server: EmbeddedServer) -> None:
    tool = binaries.binaries_for(server_account()).folder / "bin" / "pg_dump"
    dump = subprocess.run([tool, server.address()], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "CREATE EXTENSION IF NOT EXISTS vector" in dump


# --- Who gets in ---


def test_the_address_opens_the_database_and_its_vectors(server: EmbeddedServer) -> None:
    with psycopg.connect(server.address()) as connection:
        row = connection.execute("SELECT '[1,2]'::vector <-> '[1,4]'::vector, current_user").fetchone()
    assert row == (2.0, "memstate")


def test_the_application_is_not_the_superuser(server: EmbeddedServer) -> None:
    with psycopg.connect(server.address()) as connection:
        rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolsuper").fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("COPY (SELECT 1) TO PROGRAM 'true'")
    assert rows == [("postgres",)]


@pytest.mark.parametrize("role", ["memstate", "postgres"])
@pytest.mark.parametrize("password", ["", "wrong"])
def test_no_one_gets_in_without_the_password(server: EmbeddedServer, role: str, password: str) -> None:
    # The superuser has no password at all, so there is none that would be right.
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(socket_address(socket_of(server), password, role=role))


def test_there_is_no_way_in_over_the_network(server: EmbeddedServer) -> None:
    assert server.process is not None
    assert psutil.Process(server.process.pid).net_connections(kind="inet") == []
    rules = (server.folder / "postgres" / "pg_hba.conf").read_text().splitlines()
    assert [rule for rule in rules if not rule.startswith("#")] == ["local all all scram-sha-256"]


def test_data_socket_and_password_are_closed_to_other_accounts(server: EmbeddedServer) -> None:
    assert mode(server.folder / "postgres") == 0o700
    assert mode(socket_of(server)) == 0o700
    for name in ("database-password", "socket-folder", "postgres.log", "database.lock"):
        assert mode(server.folder / name) == 0o600
    assert [path for path in (server.folder / "postgres").rglob("*") if mode(path) & 0o077] == []


def test_another_local_account_is_refused(server: EmbeddedServer) -> None:
    need_root()
    stranger = pwd.getpwnam("nobody")

    def as_stranger(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *arguments],
            cwd="/",
            user=stranger.pw_uid,
            group=stranger.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    # Even with the right password the stranger does not reach the socket, nor can it read the password or the data.
    perl = "use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die $!"
    refused = as_stranger("perl", "-e", perl, str(socket_of(server) / ".s.PGSQL.5432"))
    assert refused.returncode != 0
    assert "Permission denied" in refused.stderr
    for secret in (server.folder / "database-password", server.folder / "postgres" / "PG_VERSION"):
        assert "Permission denied" in as_stranger("cat", str(secret)).stderr
    assert as_stranger("ls", str(socket_of(server))).returncode != 0


def test_root_runs_the_server_under_an_account_without_privileges(server: EmbeddedServer) -> None:
    need_root()
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    assert process.username() == "memstate-db"
    assert 0 not in (*process.uids(), *process.gids())
    groups = Path(f"/proc/{process.pid}/status").read_text().split("Groups:")[1].splitlines()[0].split()
    assert set(groups) <= {str(pwd.getpwnam("memstate-db").pw_gid)}


def test_the_server_knows_nothing_of_our_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTATE_OPENAI_API_KEY", "not for the database")
    server = EmbeddedServer(folder, careless=True)
    server.start()
    try:
        assert server.process is not None
        assert not any(name.startswith("MEMSTATE") for name in psutil.Process(server.process.pid).environ())
    finally:
        server.stop()


def test_naming_root_as_the_account_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    need_root()
    monkeypatch.setenv("MEMSTATE_POSTGRES_ACCOUNT", "root")
    with pytest.raises(PostgresError, match="which is root itself"):
        server_account()


def test_an_account_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need_root()
    monkeypatch.setenv("MEMSTATE_POSTGRES_ACCOUNT", "no:such:name")
    with pytest.raises(PostgresError, match="the account no:such:name for it cannot be made"):
        server_account()


# --- Where it can run ---


def test_no_folder_that_was_there_before_changes(made_once: Path) -> None:
    top = Path(tempfile.mkdtemp(prefix="memstate-modes-"))
    try:
        given = {top: 0o700, top / "a": 0o750, top / "a" / "b": 0o2770, top / "a" / "b" / "data": 0o755}
        for path, bits in given.items():
            path.mkdir(exist_ok=True)
            path.chmod(bits)
        data = top / "a" / "b" / "data"
        subprocess.run(["cp", "-a", *made_once.iterdir(), data], check=True, timeout=60)
        before = {path: path.stat() for path in [*given, Path("/tmp"), Path("/")]}
        server = EmbeddedServer(data, careless=True)
        server.start()
        server.stop()
        for path, status in before.items():
            now = path.stat()
            assert (now.st_mode, now.st_uid, now.st_gid) == (status.st_mode, status.st_uid, status.st_gid), path
    finally:
        shutil.rmtree(top)


def test_a_new_database_below_a_closed_folder_works(working_folder: Path) -> None:
    closed = working_folder / "closed"
    closed.mkdir(mode=0o700)
    data = closed / "data"
    data.mkdir(mode=0o700)
    account = server_account()
    assert account.can("-x", data) is not account.other, "the folder must be closed to the account for this test"
    server = EmbeddedServer(data, careless=True)
    try:
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("SELECT count(*) FROM pg_class").fetchone() != (0,)
    finally:
        server.stop()
    assert mode(closed) == mode(data) == 0o700


def test_a_closed_folder_is_named_where_it_cannot_be_passed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_root()
    monkeypatch.setattr("memstate_site.postgres.place.STANDING_HERE", Path("/nowhere"))
    sentence = start_fails(folder)
    assert "cannot go through" in sentence
    assert "Set MEMSTATE_DATA_DIR" in sentence


def test_a_path_too_long_for_a_socket_works(made_once: Path, working_folder: Path) -> None:
    parent = working_folder / ("long" * 20) / ("longer" * 20)
    parent.mkdir(parents=True)
    data = parent / "data"
    folder_copy(made_once, data)
    assert len(str(data)) > 200
    server = EmbeddedServer(data, careless=True)
    try:
        psycopg.connect(server.start()).close()
    finally:
        server.stop()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for copies of the programs that every account can enter, as /var/lib/memstate is."""
    place = Path(tempfile.mkdtemp(prefix="memstate-programs-"))
    place.chmod(0o755)
    monkeypatch.setattr(binaries, "COPIES", place)
    yield place
    shutil.rmtree(place)


def test_programs_in_a_closed_folder_are_copied_once(
    programs: Path, working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_root()
    packaged = binaries.packaged_binaries()
    closed = working_folder / "environment"
    closed.mkdir(mode=0o700)
    for name in (binaries.PACKAGE, f"{binaries.PACKAGE}.libs"):
        (closed / name).symlink_to(packaged.folder.parent.parent / name)
    hidden = binaries.Binaries(closed / binaries.PACKAGE / packaged.folder.name, packaged.major, packaged.release)
    monkeypatch.setattr(binaries, "packaged_binaries", lambda: hidden)
    account = server_account()
    copied = binaries.binaries_for(account)
    assert copied.folder.is_relative_to(programs)
    assert [path for path in programs.rglob("*") if not path.is_symlink() and mode(path) & 0o022] == []
    made = copied.postgres.stat().st_mtime_ns, copied.postgres.stat().st_ino
    assert binaries.binaries_for(account) == copied
    assert (copied.postgres.stat().st_mtime_ns, copied.postgres.stat().st_ino) == made


def test_programs_are_never_taken_from_a_folder_that_others_can_write_to(programs: Path) -> None:
    need_root()
    programs.chmod(0o777)
    with pytest.raises(PostgresError, match="can be written to by accounts other than root"):
        binaries._copy(binaries.packaged_binaries())


def test_a_socket_folder_that_someone_else_prepared_is_not_used(folder: Path) -> None:
    account = server_account()
    first = socket_folder_ensure(folder, account)
    assert socket_folder_ensure(folder, account) == first
    first.chmod(0o755)
    second = socket_folder_ensure(folder, account)
    assert second != first
    shutil.move(second, first / "elsewhere")
    second.symlink_to(first / "elsewhere")
    third = socket_folder_ensure(folder, account)
    assert third not in (first, second)
    if ROOT:
        os.chown(third, pwd.getpwnam("nobody").pw_uid, -1)
        fourth = socket_folder_ensure(folder, account)
        assert fourth != third
        shutil.rmtree(third)
        third = fourth
    second.unlink()
    shutil.rmtree(first)
    shutil.rmtree(third)


# --- What can be wrong ---


def test_a_second_owner_is_refused_with_the_number_of_the_first(server: EmbeddedServer) -> None:
    assert f"in use by process {os.getpid()}" in start_fails(server.folder)


def test_a_pid_file_whose_process_is_gone_does_not_matter(folder: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait(60)
    check_with_pid_file(folder, ended.pid)


def test_a_pid_file_with_the_id_of_another_program_is_ignored(folder: Path) -> None:
    # The number of a process of the same account is the hard case: PostgreSQL itself would take it for a server.
    account = server_account()
    other = subprocess.Popen(["sleep", "60"], cwd="/", **account.popen_options())
    try:
        check_with_pid_file(folder, other.pid)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait(60)


def check_with_pid_file(folder: Path, number: int) -> None:
    path = folder / "postgres" / "postmaster.pid"
    path.write_text(f"{number}\n{folder / 'postgres'}\n1700000000\n5432\n/tmp/nowhere\n\n  5432001  65536\nready   \n")
    server_account().give(path)
    sentences: list[str] = []
    server = EmbeddedServer(folder, say=sentences.append, careless=True)
    try:
        psycopg.connect(server.start()).close()
    finally:
        server.stop()
    assert "The database was not shut down properly; it is recovering." in sentences


def test_after_a_kill_the_next_start_recovers_and_says_so(folder: Path) -> None:
    server = EmbeddedServer(folder)
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        assert server.process is not None
        server.process.kill()
        server.process.wait(60)
    # Some of the killed server's processes may still be around at this moment; the start waits for them.
    sentences: list[str] = []
    server.say = sentences.append
    server.restart()
    try:
        with psycopg.connect(server.address()) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
    finally:
        server.stop()
    assert any("recover" in sentence for sentence in sentences)


def test_the_server_ends_when_its_owner_is_killed(folder: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells a process that its parent has ended")
    program = (
        "import sys, time, pathlib; from memstate_site.postgres.server import EmbeddedServer;"
        f"s = EmbeddedServer(pathlib.Path({str(folder)!r})); s.start(); print('up', flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert line_of(owner) == b"up\n"
    assert server_pid(folder) is not None
    owner.kill()
    owner.communicate(timeout=60)
    eventually(lambda: server_pid(folder) is None)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("99", "was written by PostgreSQL 99, which is newer than the packaged"),
        ("14", "Write it out with pg_dump of version 14"),
        ("eighteen", "contains files, but no PostgreSQL database"),
    ],
)
def test_data_of_another_version_is_left_alone_with_a_sentence(folder: Path, version: str, sentence: str) -> None:
    (folder / "postgres" / "PG_VERSION").write_text(f"{version}\n")
    assert sentence in start_fails(folder)


def test_data_that_belongs_to_another_account_is_left_alone(folder: Path) -> None:
    need_root()
    os.chown(folder / "postgres", pwd.getpwnam("nobody").pw_uid, -1)
    assert "belongs to account number" in start_fails(folder)


def test_a_full_disk_is_noticed_before_a_database_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1024))
    with pytest.raises(PostgresError, match=r"The disk that holds .* is full"):
        EmbeddedServer(tmp_path).start()
    assert not list(tmp_path.glob("postgres*"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            'FATAL:  could not write lock file "postmaster.pid": No space left on device',
            "The disk that holds /d is full",
        ),
        ("initdb: error: could not create directory: Disk quota exceeded", "The disk that holds /d is full"),
        ('FATAL:  could not resize shared memory segment "/x": No space left on device', "--shm-size"),
        ("FATAL:  database files are incompatible with server", "Start it with the version of MemState that wrote it"),
        ("FATAL:  something never heard of", "The end of its output:\n  LOG:  starting PostgreSQL\n  FATAL:  some"),
    ],
)
def test_what_the_server_says_becomes_a_sentence(line: str, sentence: str) -> None:
    assert sentence in str(explain(["LOG:  starting PostgreSQL", line], Path("/d")))


def test_processes_of_a_killed_server_are_waited_for() -> None:
    line = "FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use"
    assert isinstance(explain([line], Path("/d")), StillAttachedError)


def test_an_interrupted_first_start_leaves_nothing_half_made(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = working_folder / "interrupted"
    data.mkdir()

    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, "_single_user", interrupted)
    with pytest.raises(KeyboardInterrupt):
        EmbeddedServer(data, careless=True).start()
    assert not list(data.glob("postgres*"))


def test_a_lost_password_file_is_replaced_by_a_new_password(folder: Path) -> None:
    (folder / "database-password").unlink()
    server = EmbeddedServer(folder, careless=True)
    try:
        psycopg.connect(server.start()).close()
    finally:
        server.stop()


def test_settings_of_ones_own_count_last(folder: Path) -> None:
    path = folder / "postgres" / "local.conf"
    path.write_text("work_mem = '7MB'\n")
    server_account().give(path)
    server = EmbeddedServer(folder, careless=True)
    try:
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)
    finally:
        server.stop()


# --- For the length of a command ---


def test_a_command_starts_a_server_and_stops_it_afterwards(folder: Path) -> None:
    with server_session() as address:
        psycopg.connect(address).close()
        assert server_pid(folder) is not None
    assert server_pid(folder) is None
    assert not (folder / "socket-folder").exists()


def test_a_long_running_command_uses_the_running_database(folder: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    ended = subprocess.run(
        [sys.executable, CHECKOUT / "manage.py", "mcp"],
        env={**outside, "MEMSTATE_API_KEY": "ms_any"},
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "MemState is not running" in ended.stderr
    assert "make run" in ended.stderr
    assert server_pid(folder) is None
    with server_session() as address, server_session(start=False) as found:
        assert found == address


def test_a_second_command_uses_the_server_of_the_first(folder: Path) -> None:
    program = "from memstate_site.postgres.session import server_session\nwith server_session() as a: print(a)"
    with server_session() as address:
        result = subprocess.run(
            [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
        )
        assert result.stdout.strip() == address
        assert server_pid(folder) is not None


def test_the_first_command_waits_for_the_second(folder: Path) -> None:
    program = (
        "import sys\nfrom memstate_site.postgres.session import server_session\n"
        "import psycopg\n"
        "with server_session() as a:\n"
        "    print('in', flush=True); sys.stdin.readline()\n"
        "    psycopg.connect(a).close(); print('still there', flush=True)"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", program], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert first.stdin is not None
    assert line_of(first) == "in\n"
    with server_session() as address:
        first.stdin.write("go on\n")
        first.stdin.flush()
        assert line_of(first) == "still there\n"
        psycopg.connect(address).close()
        assert first.poll() is None
    first.communicate(timeout=10)
    assert first.returncode == 0
    assert server_pid(folder) is None


def test_a_data_folder_that_this_account_cannot_read_is_named(folder: Path) -> None:
    if ROOT:
        pytest.skip("root can read everything")
    (folder / "database-password").chmod(0)
    with pytest.raises(SettingError, match="cannot be read by this account"), server_session():
        pass


def test_an_ordinary_account_runs_its_own_server() -> None:
    account = server_account()
    if not account.other:
        assert account == Account(account.name, os.geteuid(), os.getegid(), other=False)
        return
    assert account.uid != 0


def test_a_stopped_server_has_said_goodbye_within_its_grace(folder: Path) -> None:
    server = EmbeddedServer(folder, careless=True)
    address = server.start()
    # A session in the middle of something does not hold up the end.
    with psycopg.connect(address) as connection:
        connection.execute("SELECT 1")
        process = server.process
        server.stop()
        assert process is not None
        assert process.returncode == 0
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_server_that_does_not_listen_is_ended_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstate_site.postgres.server.FAST_SHUTDOWN_SECONDS", 0.2)
    monkeypatch.setattr("memstate_site.postgres.server.IMMEDIATE_SHUTDOWN_SECONDS", 0.2)
    server = EmbeddedServer(folder, careless=True)
    server.start()
    process = server.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    server.stop()
    assert process.returncode == -signal.SIGKILL
