"""Mixed traffic for a running installation: queries, writes, lookups, runs and changes of a policy.

`make load` runs it for ten minutes with 16 users against the installation of the data folder. All it writes is below
the scope /load. Every half minute it prints the memory of the web processes, which has to stay flat.
"""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import gevent
import psutil
from locust import HttpUser, between, events, task

DATA = Path(os.environ.get("MEMSTATE_DATA_DIR", ".memstate")).resolve()
KEYS = json.loads((DATA / "credentials.json").read_text(encoding="utf-8"))
WORDS = [f"word{n}" for n in range(8_000)]
SCOPES = [f"/load/user-{n}" for n in range(50)]
SAMPLE_SECONDS = 30


def sentence(words: int) -> str:
    """Return words of which some are frequent and most are rare, as in a language."""
    return " ".join(WORDS[int(len(WORDS) * random.random() ** 3)] for _ in range(words))


class Agent(HttpUser):
    """An agent that remembers and asks."""

    weight = 15
    wait_time = between(0.05, 0.5)

    def on_start(self) -> None:
        """Use the agent's key."""
        self.client.headers["X-API-Key"] = KEYS["agent_key"]
        self.written: list[str] = []

    @task(10)
    def query(self) -> None:
        """Ask within one scope or within all."""
        scope = random.choice([*SCOPES, "/load"])
        self.client.post("/v1/query", json={"q": f"What do we know about {sentence(3)}?", "scope": scope})

    @task(4)
    def ingest(self) -> None:
        """Store a new topic."""
        reply = self.client.post("/v1/ingest", json=self._item())
        if reply.ok:
            self.written = [*self.written[-50:], reply.json()["topic_id"]]

    @task(1)
    def ingest_batch(self) -> None:
        """Store ten topics at once."""
        self.client.post("/v1/ingest/batch", json=[self._item() for _ in range(10)])

    @task(2)
    def change(self) -> None:
        """Give a field of a topic another value."""
        if self.written:
            fields = [{"name": "state", "value": sentence(2)}]
            item = {"placement": "version_field", "topic_id": random.choice(self.written), "fields": fields}
            self.client.post("/v1/ingest", json=item, name="/v1/ingest (version_field)")

    @task(4)
    def lookup(self) -> None:
        """Read a topic and its history, and list topics."""
        if self.written:
            self.client.get(f"/v1/topics/{random.choice(self.written)}", name="/v1/topics/ID")
        self.client.get("/v1/topics", params={"scope": random.choice(SCOPES), "limit": 20}, name="/v1/topics")

    def _item(self) -> dict[str, Any]:
        return {
            "placement": "new_topic",
            "scope": random.choice(SCOPES),
            "title": sentence(4),
            "summary": sentence(20),
            "topic_kind": "note",
            "fields": [{"name": "state", "value": sentence(2)}],
        }


class Operator(HttpUser):
    """An operator who previews, runs, and moves a threshold."""

    weight = 1
    wait_time = between(5, 15)

    def on_start(self) -> None:
        """Use the operator's key."""
        self.client.headers["X-API-Key"] = KEYS["operator_key"]

    @task(2)
    def dry_run(self) -> None:
        """Plan a run."""
        self.client.post("/v1/runs", json={"scope": "/load"}, name="/v1/runs (dry)")

    @task(1)
    def applied_run(self) -> None:
        """Forget what is due."""
        self.client.post("/v1/runs", json={"scope": "/load", "dry_run": False}, name="/v1/runs (applied)")

    @task(2)
    def preview(self) -> None:
        """Ask what another threshold would do."""
        body = {"scope": "/load", "values": {"forget_salience_threshold": round(random.uniform(0.02, 0.1), 3)}}
        self.client.post("/v1/policies/preview", json=body)

    @task(1)
    def policy(self) -> None:
        """Move a threshold."""
        values = {"forget_salience_threshold": round(random.uniform(0.02, 0.06), 3)}
        self.client.put("/v1/policies/load", json={"values": values, "reason": "load"}, name="/v1/policies/load")


def _web_megabytes() -> float:
    processes = (each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"])
    held = 0
    for process in processes:
        if "gunicorn" in " ".join(process.info["cmdline"]):
            try:
                if process.environ().get("MEMSTATE_DATA_DIR", str(DATA)) == str(DATA):
                    held += process.memory_full_info().uss
            except psutil.Error:
                continue
    return held / 2**20


@events.test_start.add_listener
def _watch_memory(environment: Any, **_more: Any) -> None:
    began = time.monotonic()

    def sample() -> None:
        while environment.runner.state not in ("stopping", "stopped", "cleanup"):
            print(f"web processes after {time.monotonic() - began:4.0f} s: {_web_megabytes():.0f} MB", flush=True)
            gevent.sleep(SAMPLE_SECONDS)

    gevent.spawn(sample)
