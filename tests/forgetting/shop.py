"""Short words for what the tests of this folder do, all of it over HTTP."""

import datetime as dt
from typing import Any

from django.db import connection
from django.utils import timezone

from tests.cast import Caller

NOON = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)


def policy_put(operator: Caller, scope: str = "/", /, **members: Any) -> Any:
    """Set exactly these values at ``scope``; ``preset`` and ``rules`` may be named among them."""
    got = {name: members.pop(name) for name in ("preset", "rules") if name in members}
    return operator.put(f"/v1/policies{scope}", {**got, "values": members, "reason": "for the test"}).ok()


def topics_make(operator: Caller, number: int, *, days: float = 0.0, **members: Any) -> list[str]:
    """Ingest so many topics alike, made so many days ago, and return their ids in order."""
    at = (timezone.now() - dt.timedelta(days=days)).isoformat()
    found: list[str] = []
    while len(found) < number:
        items = [
            {"placement": "new_topic", "title": f"topic {place}", "created_at": at, "last_used_at": at, **members}
            for place in range(len(found), min(number, len(found) + 1000))
        ]
        reply = operator.post("/v1/ingest/batch", items).ok()
        assert reply["refused"] == 0, reply
        found += [result["topic_id"] for result in reply["results"]]
    return found


def run(operator: Caller, **asked: Any) -> Any:
    """Plan a run that is not gated, which must be accepted; ``dry_run=False`` makes it."""
    return operator.post("/v1/runs", {"event": "manual", **asked}).ok()


def actions(caller: Caller, run_id: str, *, state: str | None = None) -> list[Any]:
    """Return every action of a run."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = caller.get(f"/v1/runs/{run_id}/actions?limit=100{cursor}{'' if state is None else f'&state={state}'}")
        found += page.ok()["items"]
        if page.json["next"] is None:
            return found
        cursor = f"&cursor={page.json['next']}"


def rungs(caller: Caller, *topic_ids: str) -> list[str]:
    """Return the rung of each topic."""
    return [caller.topic(topic_id)["rung"] for topic_id in topic_ids]


def dump(*without: str) -> dict[str, list[str]]:
    """Return every row of every table of the store but these, each table in a fixed order."""
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name::text FROM information_schema.tables "
            "WHERE table_schema = current_schema() AND table_name LIKE 'memory_%'"
        )
        for (table,) in cursor.fetchall():
            if table not in without:
                cursor.execute(f"SELECT row_to_json(x)::text FROM {table} x ORDER BY 1")
                found[table] = [row[0] for row in cursor.fetchall()]
    return found


# The journal of forgetting and of people, and what the worker writes down about itself.
JOURNALS = (
    "memory_forgetrun",
    "memory_forgetaction",
    "memory_auditevent",
    "memory_workerheartbeat",
    "memory_duplicatelook",
)
