"""Requests made from the OpenAPI document, sensible and senseless: no route fails, and each keeps to its word."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from memory.api.app import api
from memory.duplicates.detect import duplicates_find
from tests.agents.chat.shop import Talk
from tests.agents.study.shop import study_ready
from tests.cast import Cast, secret_of
from tests.llm.server import Model

# Not among them: that everything senseless is refused. A number given as text, or 0 for false, is understood, as the
# published server understands it; what must be refused is in test_bad_input.py.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    ignored_auth,
]
OPERATIONS = 60
# The client is a file, for which no one needs a key and which has no parameters: nothing there can be refused.
NEVER_REFUSED = "GET /v1/client.py"
seen: dict[str, set[int]] = defaultdict(set)


@schemathesis.serializer("application/x-ndjson")
def _lines(_context: Any, value: Any) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")


_application = get_wsgi_application()


def application(environ: Any, start_response: Any) -> Any:
    """The whole application, but for its habit of closing the connection, and with it the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    return _application(environ, start_response)


@pytest.fixture
def _connections_closed_again() -> Iterator[None]:
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


schema = schemathesis.openapi.from_dict(api.get_openapi_schema(path_prefix="/v1/"))
schema.app = application


@pytest.mark.usefixtures("_connections_closed_again")
@schema.parametrize()
@hypothesis_settings(
    max_examples=10, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
def test_requests_from_the_document_are_answered_as_it_says(
    case: Any, cast: Cast, known: "Known", model: Model, settings: Any
):
    known.put_into(case)
    # Each assignment to the settings makes them slower, and this is called for each request.
    if case.operation.path != "/v1/chat" and settings.MEMSTATE_LLM_MODEL:
        settings.MEMSTATE_LLM_MODEL = ""
    model.answers("Hello.")
    response = case.call_and_validate(headers={"X-API-Key": secret_of("operator")}, checks=CHECKS)
    seen[case.operation.label].add(response.status_code)


class Known:
    """Things that exist, for every other request: one with only made-up ids would never come far."""

    def __init__(self, cast: Cast) -> None:
        first = cast.agent.remember("Tea", values={"kind": "green"}, scope="/user/alice")
        second = cast.agent.remember(
            "Coffee", values={"kind": "black"}, edges=[{"to_topic_id": first, "kind": "beside"}]
        )
        self.ids = itertools.cycle([first, None, second, None])
        cast.agent.query("tea")
        self.operator = cast.operator
        self.numbers = itertools.count()
        values = {"strategy": "static", "prune_after_days": 0, "mode": "review", "topic_count_soft_limit": 0}
        cast.operator.put("/v1/policies/faded", {"values": values, "reason": "for the test"}).ok()

    def put_into(self, case: Any) -> None:
        topic_id = next(self.ids)
        if topic_id is None:
            return
        if case.path_parameters and "topic_id" in case.path_parameters:
            case.path_parameters["topic_id"] = topic_id
            if "name" in case.path_parameters:
                case.path_parameters["name"] = "kind"
            for verb, opposite in (("/restore", "archive"), ("/archive", "restore")):
                if case.operation.path.endswith(verb):
                    self.operator.post(f"/v1/topics/{topic_id}/{opposite}")
        if case.path_parameters and "run_id" in case.path_parameters:
            case.path_parameters["run_id"] = self.run_for(case.operation.path.rpartition("/")[2])
        self.put_pair_and_others(case)
        if isinstance(case.body, dict):
            if case.operation.path.endswith("/pause/lift"):
                scope = f"/paused/{next(self.numbers)}"
                self.operator.remember("At rest", scope=scope)
                self.operator.post("/v1/pause", {"scope": scope, "reason": "for the test"}).ok()
                case.body["scope"] = scope
            if case.operation.path.endswith("/backtest"):
                case.body |= {"start": "2020-01-01T00:00:00Z", "end": "2020-02-01T00:00:00Z"}
            if case.body.get("placement") in ("extend_topic", "version_field"):
                case.body["topic_id"] = topic_id
            if isinstance(case.body.get("to"), int):
                case.body["to"] = 0
            if "messages" in case.body:
                case.body["messages"] = [{"role": "user", "content": "Which tea?"}]
                for name in ("conversation_id", "scope", "model"):
                    case.body.pop(name, None)
            if "topic_ids" in case.body:
                case.body["topic_ids"] = [topic_id]

    def put_pair_and_others(self, case: Any) -> None:
        given = case.path_parameters or {}
        if "pair_id" in given:
            given["pair_id"] = self.pair_for(case.operation.path.rpartition("/")[2])
        if "receipt_id" in given:
            gone = self.operator.remember("To be purged", scope="/gone")
            given["receipt_id"] = self.operator.request("DELETE", f"/v1/topics/{gone}").ok()["receipt_id"]
        if "job_id" in given:
            text = {"content": "Tea is green. Coffee is black.", "store": True, "scope": "/read"}
            given["job_id"] = self.operator.post("/v1/extract?background=1", text).json["job_id"]
        if "study_id" in given:
            given["study_id"] = study_ready(case.operation.path.rpartition("/")[2])
        if "conversation_id" in given:
            talk = Talk()
            talk.new("Made in a conversation", kind="green")
            given["conversation_id"] = str(talk.row.pk)

    def pair_for(self, verb: str) -> str:
        """Return a pair with which ``verb`` is possible."""
        scope = f"/twice/{next(self.numbers)}"
        for _time in range(2):
            self.operator.remember("Said twice", values={"kind": "green"}, scope=scope)
        duplicates_find(scope, now=timezone.now())
        (pair,) = self.operator.get(f"/v1/duplicates?scope={scope}").ok()["items"]
        if verb == "undo":
            self.operator.post(f"/v1/duplicates/{pair['id']}/merge", {}).ok()
        return str(pair["id"])

    def run_for(self, verb: str) -> str:
        """Return a run on which ``verb`` is possible."""
        self.operator.remember("Faded", salience=0.01, scope="/faded")
        asked = {"scope": "/faded", "event": "manual", "dry_run": verb not in ("approve", "refuse", "undo")}
        run_id = self.operator.post("/v1/runs", asked).ok()["run_id"]
        if verb == "undo":
            self.operator.post(f"/v1/runs/{run_id}/approve").ok()
        return str(run_id)


@pytest.fixture
def known(cast: Cast) -> Known:
    return Known(cast)


def test_the_document_describes_all_operations():
    assert len([result.ok() for result in schema.get_all_operations()]) == OPERATIONS


def test_every_operation_was_both_answered_and_refused():
    # Otherwise the requests above would prove little. Runs after them, as it stands here.
    if len(seen) < OPERATIONS:
        pytest.skip("Only some operations were tried in this run.")
    # Needs no key and takes nothing; only another method is refused.
    assert {200} <= seen.pop(NEVER_REFUSED) <= {200, 304, 405}
    assert {label: statuses for label, statuses in seen.items() if not statuses & {200, 202} or len(statuses) < 2} == {}
