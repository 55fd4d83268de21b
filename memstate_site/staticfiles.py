"""Static files that come inside Python packages, so that none of them has to be copied into this project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

# The address below /static/ -> the package and the file in it. Packages that are Django apps, as django-htmx is, bring
# their files by themselves and are not listed.
PACKAGE_FILES = {"plotly/plotly.min.js": ("plotly", "package_data/plotly.min.js")}


class PackageFileStorage(FileSystemStorage):
    """A read-only storage of the listed files."""

    def path(self, name: str) -> str:
        package, inside = PACKAGE_FILES[str(name)]
        # The package is found without importing it: plotly takes a while to import.
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError(f"The package {package} is not installed.")
        return str(Path(spec.submodule_search_locations[0]) / inside)


class PackageFileFinder(BaseFinder):
    """Finds the files of `PACKAGE_FILES`."""

    storage = PackageFileStorage()

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path not in PACKAGE_FILES:
            return [] if find_all else None
        found = self.storage.path(path)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        for path in PACKAGE_FILES:
            yield path, self.storage
