"""Ingests many items in one request. Each is accepted or refused individually. Outcomes are in the order of items."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, cast

from pydantic import ValidationError

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.requests import validation_problem
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemOutcome
from memory.ingest.replies import BatchItemReply, BatchReply
from memory.ingest.request import ingest_request
from memory.ingest.waiting import Waiting

MAX_BATCH = 1000


def item_parse(raw: object) -> IngestItem | MemoryProblem:
    """Validate parsed JSON, and return the item or the problem. ``raw`` may itself be a problem, which is returned."""
    if isinstance(raw, MemoryProblem):
        return raw
    try:
        return IngestItem.model_validate(raw)
    except ValidationError as problem:
        return validation_problem(problem.errors())
    except MemoryProblem as problem:
        # A value does not fit its type. Pydantic passes this exception through.
        return problem


def batch_ingest(
    raw: Sequence[object],
    *,
    status_of: Callable[[MemoryProblem], int],
    idempotency_key: str | None,
    principal: Principal,
    now: dt.datetime,
    defer: bool,
    on_deferred: Callable[[], None],
) -> tuple[int, dict[str, Any]]:
    """Ingest parsed JSON items in one transaction and return ``(200, {results, accepted, refused})``, with ``waiting``
    if topics wait for the worker. Raises ``ValueRefused`` for more than ``MAX_BATCH`` items, and the errors of
    ``ingest_request``."""
    if len(raw) > MAX_BATCH:
        raise ValueRefused(
            f"A batch has at most {MAX_BATCH} items; this one has {len(raw)}.", code=ProblemCode.TOO_LARGE
        )
    parsed = [item_parse(item) for item in raw]
    items = [item for item in parsed if isinstance(item, IngestItem)]

    def render(outcomes: list[ItemOutcome], waiting: Waiting | None) -> tuple[int, BatchReply]:
        following = iter(outcomes)
        results: list[BatchItemReply] = []
        for index, item in enumerate(parsed):
            outcome = next(following) if isinstance(item, IngestItem) else item
            if isinstance(outcome, MemoryProblem):
                status = status_of(outcome)
                refused_item: BatchItemReply = {"index": index, "status": status, "type": outcome.code.urn}
                refused_item["detail"] = outcome.sentence
                if outcome.member:
                    refused_item["member"] = outcome.member
                results.append(refused_item)
            else:
                results.append(cast("BatchItemReply", {"index": index, "status": 200, **outcome.as_json()}))
        refused = sum("detail" in result for result in results)
        reply: BatchReply = {"results": results, "accepted": len(results) - refused, "refused": refused}
        if waiting is not None:
            reply["waiting"] = waiting
        return 200, reply

    return ingest_request(
        items,
        route="ingest/batch",
        body=raw,
        render=render,
        idempotency_key=idempotency_key,
        principal=principal,
        now=now,
        defer=defer,
        on_deferred=on_deferred,
    )
