"""All that these tests make the product run keeps the rules for stores on a cluster."""

from collections.abc import Iterator

import pytest

from memory.stores import versions
from tests.stores.citus_rules import Watch


@pytest.fixture(autouse=True)
def _stores_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the list of stores for each request and each job, which processes do every few seconds."""
    monkeypatch.setattr(versions, "_known", None)
    monkeypatch.setattr(versions, "KNOWN_SECONDS", 0.0)


@pytest.fixture(autouse=True, scope="session")
def _statements_are_checked(statements: Watch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        statements.install(patch)
        yield
