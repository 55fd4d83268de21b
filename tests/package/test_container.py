"""The steps of the container file, executed in a fresh Debian folder. There is no registry of images in a test."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate import MemState
from memstate_site.folder import CHECKOUT
from tests.waits import eventually

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("debootstrap") is None, reason="needs root and the program debootstrap"
    ),
]

FILE = CHECKOUT / "Containerfile"
# How this machine reaches its package index, which the container file does not say.
OF_THE_MACHINE = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
CERTIFICATES = "/etc/certificates-of-the-machine.crt"


def steps() -> list[tuple[str, str]]:
    """The instructions of the file with their arguments."""
    lines = re.sub(r"\\\n", " ", "\n".join(line for line in FILE.read_text().splitlines() if line[:1] != "#"))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines.splitlines() if line)]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    release = re.fullmatch(r"debian:(\w+)-slim", dict(steps())["FROM"])
    assert release is not None
    folder = tmp_path / "root"
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates", release[1], str(folder)]
    subprocess.run(command, check=True, timeout=600, stdout=subprocess.DEVNULL)
    for name in OF_THE_MACHINE:
        if Path(name).exists():
            shutil.copy(name, folder / (CERTIFICATES if name.endswith(".crt") else name)[1:])
    mounts = [("proc", "proc", folder / "proc"), ("tmpfs", "tmpfs", folder / "dev/shm")]
    for kind, source, place in mounts:
        place.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", kind, source, str(place)], check=True, timeout=30)
    try:
        yield folder
    finally:
        for _kind, _source, place in mounts:
            subprocess.run(["umount", "--lazy", str(place)], check=False, timeout=30)


class Container:
    """What the instructions have set so far."""

    def __init__(self, root: Path) -> None:
        self.root, self.user, self.folder = root, "root", "/"
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def command(self, arguments: list[str]) -> list[str]:
        inside = f"cd {self.folder} && exec {shlex.join(arguments)}"
        return ["chroot", f"--userspec={self.user}", str(self.root), "/bin/sh", "-c", inside]

    def run(self, line: str) -> None:
        environment = {**self.environment, "PIP_CERT": CERTIFICATES}
        command = self.command(["/bin/sh", "-c", line])
        subprocess.run(command, check=True, timeout=900, env=environment, stdout=subprocess.DEVNULL)

    def copy(self, target: str) -> None:
        ignored = shutil.ignore_patterns(*(CHECKOUT / ".dockerignore").read_text().split())
        shutil.copytree(CHECKOUT, self.root / target[1:], ignore=ignored, symlinks=True)


def built(root: Path) -> tuple[Container, list[str], list[str]]:
    """Execute the file. Return the container, its command and its health check."""
    container, command, check = Container(root), list[str](), list[str]()
    for word, rest in steps():
        match word:
            case "RUN":
                container.run(rest)
            case "COPY":
                container.copy(rest.split()[1])
            case "ENV":
                for name, value in (pair.split("=", 1) for pair in shlex.split(rest)):
                    container.environment[name] = value.replace("$PATH", container.environment["PATH"])
            case "USER":
                container.user = rest
            case "WORKDIR":
                container.folder = rest
            case "CMD":
                command = json.loads(rest)
            case "HEALTHCHECK":
                check = json.loads(rest.partition("CMD ")[2])
            case _:
                assert word in ("FROM", "VOLUME", "EXPOSE", "STOPSIGNAL")
    return container, command, check


def test_the_container_starts_answers_and_stops(root: Path):
    container, command, check = built(root)
    assert container.user != "root"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**container.environment, "MEMSTATE_API_PORT": str(port)}
    process = subprocess.Popen(
        container.command(command),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        asked = [part.replace(":8765", f":{port}") for part in check]

        def healthy() -> bool:
            done = subprocess.run(
                container.command(asked), env=environment, timeout=30, check=False, capture_output=True
            )
            return done.returncode == 0

        eventually(healthy, seconds=180)
        file = root / environment["MEMSTATE_DATA_DIR"][1:] / "credentials.json"
        with MemState(f"http://127.0.0.1:{port}", json.loads(file.read_text())["agent_key"]) as memory:
            memory.ingest("new_topic", title="Tea", summary="Mara drinks green tea.")
            assert "green tea" in memory.query("What does Mara drink?")["summary_text"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
