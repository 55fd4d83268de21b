"""The requests of the README have the effects that it states."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.cast import Cast

README = Path(settings.BASE_DIR) / "README.md"


@pytest.mark.django_db
def test_the_old_memory_of_the_readme_is_archived_explained_and_restored(cast: Cast) -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## Forgetting within a minute") :]
    item, run = (json.loads(each) for each in re.findall(r"-d '(\{.*?\})'", section, re.DOTALL)[:2])
    topic_id = cast.operator.post("/v1/ingest", item).ok()["topic_id"]
    plan = cast.operator.post("/v1/runs", run).ok()
    assert (plan["counts"]["archived"], plan["results"]) == (1, [f"archived:{topic_id}"])
    address = f"/v1/runs/{plan['run_id']}"
    assert cast.operator.post(f"{address}/apply").status == 200
    assert cast.operator.topic(topic_id)["rung"] == "archived"
    assert cast.operator.get(f"/v1/topics/{topic_id}/why").status == 200
    assert cast.operator.post(f"{address}/undo").status == 200
    assert cast.operator.topic(topic_id)["rung"] == "active"
