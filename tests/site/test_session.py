"""The limits of a test run: a test that hangs fails by name, and nothing that a run started outlives it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from memstate_site.folder import CHECKOUT
from tests.waits import eventually

SLEEPS = """
import pathlib, time

def test_that_sleeps():
    pathlib.Path(__file__).with_name("sleeps").touch()
    time.sleep(999)
"""
WAITS = """
import threading

def test_that_waits_for_a_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
LEAVES = """
import pathlib, subprocess, sys, time

def test_that_leaves_a_process():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(999)"])
    pathlib.Path(__file__).with_name("pid").write_text(str(process.pid))
    {then}

def test_that_comes_next():
    pid = int(pathlib.Path(__file__).with_name("pid").read_text())
    import psutil
    assert not psutil.pid_exists(pid)
"""


def started(folder: Path, source: str, *options: str) -> subprocess.Popen[str]:
    """Start pytest on a file of tests, as a run of its own."""
    file = folder / "test_it.py"
    file.write_text(source)
    outer = ("MEMSTATE_TEST_", "PYTEST_", "DATABASE_URL")
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", CHECKOUT / "pyproject.toml", *options, file],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith(outer)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(run: subprocess.Popen[str]) -> str:
    return run.communicate(timeout=280)[0]


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [(SLEEPS, "test_that_sleeps", "time.sleep(999)"), (WAITS, "test_that_waits_for_a_lock", "lock.acquire()")],
)
def test_a_test_that_hangs_fails_by_name_with_its_stack(tmp_path: Path, source: str, name: str, line: str) -> None:
    run = started(tmp_path, source, "-o", "timeout=2")
    output = output_of(run)
    assert run.returncode == 1, output
    assert f"::{name} - Failed: Timeout" in output
    assert line in output


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_run_that_exceeds_its_time_names_the_tests_at_work_and_ends(tmp_path: Path, workers: tuple[str, ...]) -> None:
    # A test has longer than the run.
    limits = ("--minutes", "10", "-o", "timeout=900")
    # A shell starts what runs in the background with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = started(tmp_path, f"def test_that_fails():\n    assert False\n\n{SLEEPS}", *limits, *workers)
    finally:
        signal.signal(signal.SIGINT, before)
    # The signal does what the end of the minutes does, without the wait.
    eventually((tmp_path / "sleeps").exists, 120)
    run.send_signal(signal.SIGUSR2)
    output = output_of(run)
    assert run.returncode not in (0, 1), output
    assert re.search(r"FAILED .*::test_that_fails", output), output
    assert "::test_that_sleeps (for " in output
    # The stack.
    assert re.search(r"test_it\.py\", line \d+ in test_that_sleeps", output)


def test_a_run_ends_when_its_minutes_have_passed(tmp_path: Path) -> None:
    run = started(tmp_path, SLEEPS, "--minutes", "0.001", "-o", "timeout=900")
    output = output_of(run)
    assert run.returncode not in (0, 1), output
    assert "The run has taken 0.001 minutes and ends here." in output


@pytest.mark.parametrize("then", ["pass", "assert False"], ids=["passed", "failed"])
def test_a_process_that_a_test_leaves_ends_with_the_test(tmp_path: Path, then: str) -> None:
    run = started(tmp_path, LEAVES.format(then=then), "-v")
    output = output_of(run)
    assert "test_that_comes_next PASSED" in output, output


def test_processes_and_folder_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    source = LEAVES.format(then="time.sleep(999)").replace("(str(process.pid))", "(f'{process.pid} {folder()}')")
    run = started(tmp_path, "import os\n\ndef folder():\n    return os.environ['MEMSTATE_TEST_FOLDER']\n" + source)
    pid_file = tmp_path / "pid"
    eventually(lambda: pid_file.exists() and pid_file.read_text())
    pid, folder = pid_file.read_text().split()
    assert psutil.pid_exists(int(pid))
    assert Path(folder).is_dir()
    run.send_signal(signal.SIGKILL)
    run.wait(60)
    eventually(lambda: not psutil.pid_exists(int(pid)) and not Path(folder).exists())
    assert run.stdout is not None
    run.stdout.close()
