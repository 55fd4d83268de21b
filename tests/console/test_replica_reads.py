"""People who have just changed something read from the primary."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memory.console import page as pages


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pretend to have a replica; return the lag of each of its answers."""
    answers: list[float] = []

    def answer(work: Callable[[], Any]) -> tuple[Any, float | None]:
        answers.append(0.5)
        return work(), 0.5

    monkeypatch.setattr(pages, "replica_answer", answer)
    monkeypatch.setattr(pages, "replica_is_set", lambda: True)
    return answers


def test_pages_are_read_from_the_replica_until_something_is_changed(op: Client, asked: list[float]) -> None:
    assert op.get("/").headers["X-MemState-Replica-Lag"] == "0.500"
    assert len(asked) == 1
    changed = op.post("/pause/", {"scope": "/", "reason": "tests", "hours": "1"})
    assert changed.status_code < 500
    assert changed.cookies["memstate-wrote"]["max-age"] == pages.WROTE_SECONDS
    assert op.get("/").status_code == 200
    assert len(asked) == 1


def test_an_export_is_read_from_the_replica(looker: Client, asked: list[float]) -> None:
    reply = looker.get("/archived/export.csv")
    assert reply.status_code == 200
    assert b"".join(reply.streaming_content)
    assert len(asked) == 1
