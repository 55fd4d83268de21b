"""An export in pages and parts: none is too long, and what goes on goes on with what is there."""

import io
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.command.purge import topics_purge
from memory.domain.errors import Conflict
from memory.models import Field
from memory.transfer import sections as sections_room
from memory.transfer.export import part_read, store_export
from tests.cast import Caller, Cast, Clock
from tests.transfer.shop import brought, emptied, exported, lines, rich

pytestmark = pytest.mark.django_db


def test_no_page_and_no_line_is_longer_than_a_few_megabytes(
    agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the texts are, and however many revisions there are of them."""
    monkeypatch.setattr(sections_room, "PAGE_BYTES", 40_000)
    words = "harbor walks " * 700
    values = {"one": words, "other": "short", "third": words}
    ids = [agent.remember(f"Topic {number}", values=values) for number in range(4)]
    for number in range(12):
        agent.ingest("version_field", topic_id=ids[0], fields=[{"name": "one", "value": f"{number} {words}"}])
    with CaptureQueriesContext(connection) as ran:
        content = exported()
    assert max(map(len, lines(content))) < 2 * 40_000
    assert [len(lines(content, sort)) for sort in ("topic", "history")] == [4, 2]
    told = json.loads(lines(content, "topic")[0])
    assert [len(field["revisions"]) for field in told["fields"] if field["name"] == "other"] == [1]
    assert len(ran) < 50
    monkeypatch.undo()
    whole = exported()
    assert lines(whole, "history") == []
    emptied()
    brought(content, tmp_path)
    assert exported() == whole


def test_what_was_erased_since_is_in_no_export_that_goes_on(cast: Cast) -> None:
    ids = [cast.agent.remember(f"Secret of {word} harbor") for word in ("amber", "birch", "cedar")]
    for topic_id in ids:
        cast.operator.post(f"/v1/topics/{topic_id}/archive", {"reason": "seldom"}).ok()
    whole = lines(exported())
    ends = {
        sort: next(n for n, line in enumerate(whole) if line.startswith(b'{"type":"%s"' % sort.encode()))
        for sort in ("topic", "action")
    }
    asked: dict[str, Any] = {"scope": "/", "vectors": False}

    def part(end: int) -> io.BytesIO:
        return io.BytesIO(b"".join(whole[: end + 1]))

    _offset, looked = part_read(part(ends["action"] + 1), **asked)
    # Another that was changed since.
    _offset, counted = part_read(io.BytesIO(part(ends["action"]).getvalue().replace(b"seldom", b"oftenx")), **asked)
    with pytest.raises(Conflict, match="start anew"):
        next(store_export(principal=SYSTEM, after=counted))
    topics_purge([uuid.UUID(ids[0])], principal=SYSTEM, reason="asked", now=timezone.now())
    for end in (ends["topic"], ends["action"] + 1, len(whole) - 1):
        with pytest.raises(Conflict, match="start anew"):
            part_read(part(end), **asked)
    with pytest.raises(Conflict, match="start anew"):
        next(store_export(principal=SYSTEM, after=looked))
    # What does not hold it goes on.
    offset, place = part_read(part(ends["topic"] - 1), **asked)
    assert b"".join(whole)[:offset] + b"".join(store_export(principal=SYSTEM, after=place)) == exported()


def test_a_long_history_goes_on_with_what_its_line_has_left_out(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    made = rich(cast, clock)
    whole = lines(exported())
    at = next(n for n, line in enumerate(whole) if line.startswith(b'{"type":"history"'))
    clock.forward(minutes=1)
    for number in range(3):
        new = {"name": "text", "value": f"Changed {number} times"}
        cast.agent.ingest("version_field", topic_id=made["odd"], fields=[new])
    for end in (at, at + 1):
        begun = b"".join(whole[:end])
        _offset, place = part_read(io.BytesIO(begun), scope="/", vectors=False)
        content = begun + b"".join(store_export(principal=SYSTEM, after=place))
        assert lines(content, "history") == [line for line in whole if line.startswith(b'{"type":"history"')]
    emptied()
    brought(content, tmp_path)
    assert Field.objects.get(topic_id=made["odd"], name="text").revisions.count() == 1201
