"""Static files. ``release_make`` copies the files of the console into a folder that is named after their contents, so
that browsers can keep them for a year. Without this folder, as in tests, files have their plain addresses."""

from __future__ import annotations

import functools
import gzip
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder, get_finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.files.storage import FileSystemStorage, Storage

# Maps an address below /static/ to a package and a file in the package. Packages that are Django apps, like
# django-htmx, are not listed, because Django finds their files.
PACKAGE_FILES = {
    "fonts/figtree.ttf": ("fontpkg_figtree", "files/Figtree[wght].ttf"),
    "plotly/plotly.min.js": ("plotly", "package_data/plotly.min.js"),
}


class PackageFileStorage(FileSystemStorage):
    """A read-only storage of `PACKAGE_FILES`."""

    def path(self, name: str) -> str:
        package, inside = PACKAGE_FILES[str(name)]
        # The package is found without an import, because importing plotly takes long.
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(f"The package {package} is not installed.")
        return str(Path(spec.submodule_search_locations[0]) / inside)

    def exists(self, name: str) -> bool:
        """Return whether the package is installed. Without the package of the font, pages use a font of the system."""
        return name in PACKAGE_FILES and find_spec(PACKAGE_FILES[name][0]) is not None


class PackageFileFinder(BaseFinder):
    """Finds the files of `PACKAGE_FILES`."""

    storage = PackageFileStorage()

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if not self.storage.exists(path):
            return []
        found = self.storage.path(path)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        for path in filter(self.storage.exists, PACKAGE_FILES):
            yield path, self.storage


# The files of the console. The admin and the documentation of the API keep their addresses.
RELEASED = ("console/", "django_htmx/htmx-2.min.js", "fonts/", "plotly/")
# This level takes a third of a second for plotly.js. The slowest level would save only 1 % more.
COMPRESSION = 5


def release_make() -> Path:
    """Write the files of this release to ``MEMSTATE_RELEASE_DIR`` unless they exist, remove other releases, and return
    the folder. Takes half a second after an installation or an upgrade, otherwise 0.01 seconds."""
    root, name = settings.MEMSTATE_RELEASE_DIR, release_name()
    if not (root / name).is_dir():
        making = root / f"{name}.{os.getpid()}"
        for path, file in _released():
            target = making / path
            target.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes()
            target.write_bytes(content)
            target.with_name(f"{target.name}.gz").write_bytes(gzip.compress(content, COMPRESSION, mtime=0))
        shutil.rmtree(root / name, ignore_errors=True)
        making.rename(root / name)
    for other in root.iterdir():
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return Path(root / name)


@functools.cache
def release_name() -> str:
    """Return the name of the folder of this release, which is a hash of its files. The name is cached, because the
    files do not change."""
    found = hashlib.sha256()
    for path, file in _released():
        found.update(f"{path}\0".encode())
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def _released() -> list[tuple[str, Path]]:
    """Return pairs of an address below /static/ and a file, for all files of a release."""
    found: dict[str, Path] = {}
    for finder in get_finders():
        for path, storage in finder.list([]):
            if path.startswith(RELEASED):
                found.setdefault(path, Path(storage.path(path)))
    return sorted(found.items())


class ReleaseStorage(StaticFilesStorage):
    """Returns the addresses of static files in the folder of the release, if this folder exists."""

    def url(self, name: str | None) -> str:
        if name and name.startswith(RELEASED) and self.released:
            name = f"{release_name()}/{name}"
        return super().url(name)

    @functools.cached_property
    def released(self) -> bool:
        """Whether the folder of the release exists."""
        return bool((settings.MEMSTATE_RELEASE_DIR / release_name()).is_dir())
