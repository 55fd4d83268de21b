"""A value that was true earlier does not replace one that is true since later, in whatever order they are learned."""

from typing import Any

import pytest
from django.utils import timezone

from memory.models import Revision
from tests.cast import Caller


def written(agent: Caller, topic_id: str, *years: int | None) -> list[str]:
    """Write the value of each year, in one batch, and return what the last item applied."""
    items: list[dict[str, Any]] = []
    for year in years:
        since = {} if year is None else {"valid_from": f"{year}-01-01T00:00:00Z"}
        fields = [{"name": "city", "value": f"City of {year}"}]
        items.append({"placement": "version_field", "topic_id": topic_id, "fields": fields, **since})
    reply = agent.post("/v1/ingest/batch", items).ok()
    assert reply["refused"] == 0
    applied: list[str] = reply["results"][-1]["applied"]
    return applied


def history(agent: Caller, topic_id: str) -> list[str]:
    rows = agent.get(f"/v1/topics/{topic_id}/fields/city/history").ok()["items"]
    assert [row["seq"] for row in rows] == list(range(len(rows), 0, -1))
    return [row["value"] for row in rows]


@pytest.mark.parametrize(
    ("learned", "current"),
    [
        ([[2024], [2019]], 2024),
        ([[2024, 2019]], 2024),
        ([[2024], [2019, 2020, 2018]], 2024),
        ([[2019], [2024]], 2024),
        ([[2024], [2019, 2025, 2021]], 2025),
        ([[2024], [2019], [None]], None),
        ([[2024, 2024]], 2024),
    ],
)
def test_the_later_validity_stays_current(agent: Caller, learned: list[list[int | None]], current: int | None) -> None:
    topic_id = agent.ingest(title="Mara", fields=[])["topic_id"]
    for years in learned:
        applied = written(agent, topic_id, *years)
    said = f"City of {current}"
    field = agent.topic(topic_id)["fields"][0]
    assert field["current"]["value"] == said
    values = history(agent, topic_id)
    assert values[0] == said
    assert sorted(values) == sorted(f"City of {year}" for years in learned for year in years)
    assert ("stays_current:city" in applied) == (learned[-1][-1] not in (current, None))
    found = agent.post("/v1/query", {"q": said}).ok()["candidates"][0]["fields"][0]
    assert found["current"]["value"] == said


def test_as_of_returns_what_was_known_then(agent: Caller, clock: Any) -> None:
    topic_id = agent.ingest(title="Mara", fields=[])["topic_id"]
    written(agent, topic_id, 2021)
    times = [timezone.now().isoformat()]
    clock.forward(days=1)
    written(agent, topic_id, 2019)
    times.append(timezone.now().isoformat())
    clock.forward(days=1)
    written(agent, topic_id, 2024)
    times.append(timezone.now().isoformat())
    known = [
        agent.post("/v1/query", {"q": "Mara", "as_of": at}).ok()["candidates"][0]["fields"][0]["current"]["value"]
        for at in times
    ]
    assert known == ["City of 2021", "City of 2021", "City of 2024"]
    assert history(agent, topic_id) == ["City of 2024", "City of 2021", "City of 2019"]
    assert Revision.objects.filter(field__topic_id=topic_id).count() == 3
