"""The files of a release: one folder for each content, compressed, and no other beside it."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders

from memstate_site import staticfiles
from memstate_site.staticfiles import ReleaseStorage, release_make, release_name


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    settings.MEMSTATE_RELEASE_DIR = tmp_path / "static"
    release_name.cache_clear()
    yield tmp_path / "static"
    release_name.cache_clear()


def test_addresses_change_with_the_content_and_only_the_present_release_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ReleaseStorage().url("console/console.css") == "/static/console/console.css"
    made = release_make()
    assert ReleaseStorage().url("console/console.css") == f"/static/{made.name}/console/console.css"
    assert ReleaseStorage().url("admin/css/base.css") == "/static/admin/css/base.css"
    css = finders.find("console/console.css")
    assert css
    assert gzip.decompress((made / "console/console.css.gz").read_bytes()) == Path(css).read_bytes()
    assert (made / "plotly/plotly.min.js.gz").stat().st_size < 1_600_000
    assert release_make() == made

    changed = folder.parent / "console.css"
    changed.write_text("body { color: red }")
    files = dict(staticfiles._released()) | {"console/console.css": changed}
    monkeypatch.setattr(staticfiles, "_released", lambda: sorted(files.items()))
    release_name.cache_clear()
    newer = release_make()
    assert newer != made
    assert [path.name for path in folder.iterdir()] == [newer.name]


def test_a_package_that_is_not_installed_has_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(staticfiles.PACKAGE_FILES, "fonts/none.ttf", ("no_such_package", "none.ttf"))
    assert not finders.find("fonts/none.ttf")
    assert "fonts/none.ttf" not in [path for path, _storage in staticfiles.PackageFileFinder().list([])]
