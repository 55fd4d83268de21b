"""Many stores at once, and a release with one more migration. Import the fixtures where they are used."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from memory.access.keys import key_create
from memory.jobs.stores import store_create
from memory.stores import migrate, versions
from memory.stores.current import store_use
from memory.stores.models import Store
from memstate_site.folder import CHECKOUT
from tests.cast import Caller, in_process

NEXT_RELEASE = "9999_next"


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Callable[[], None]:
    """A release with one more migration, which begins when the function is called."""
    folder = tmp_path / "migrations_of_the_next_release"
    folder.mkdir()
    for path in (CHECKOUT / "memory" / "migrations").glob("*.py"):
        (folder / path.name).symlink_to(path)
    (folder / f"{NEXT_RELEASE}.py").write_text(
        "from django.db import migrations\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('memory', {versions.version_current()!r})]\n"
        "    operations = [migrations.RunSQL('ALTER TABLE memory_topic ADD COLUMN next text')]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def begin() -> None:
        settings.MIGRATION_MODULES = {"memory": folder.name}
        for module in (versions, migrate):
            monkeypatch.setattr(module, "version_current", lambda: NEXT_RELEASE)

    return begin


@pytest.fixture
def many_dropped() -> Iterator[None]:
    """Drop all stores after the test, and make ``main`` again."""
    yield
    with store_use(None), connection.cursor() as cursor:
        for name in Store.objects.values_list("name", flat=True):
            cursor.execute(f"DROP SCHEMA IF EXISTS store_{name} CASCADE")
        cursor.execute("DELETE FROM stores_keystore; DELETE FROM stores_store")
    migrate.stores_migrate()


def store_with_agent(name: str) -> Caller:
    """Make a store with the key of an agent, and return the caller that has the key."""
    store_create(name)
    secret = f"ms_secret-of-the-agent-of-{name}"
    with store_use(name):
        key_create(name="agent", role="agent", secret=secret)
    return Caller(in_process, secret)
