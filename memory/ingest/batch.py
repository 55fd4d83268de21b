"""Many items in one request. Each is accepted or refused by itself; outcomes are in the order of the items."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode, validation_code
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemOutcome
from memory.ingest.replies import BatchItemReply, BatchReply
from memory.ingest.request import ingest_request

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
        # The problem of a value that does not fit its type; pydantic passes it through.
        return problem


# Replaces messages of pydantic that mention Python or its classes.
_SENTENCES = {
    "missing": "This member is required",
    "model_type": "This must be an object",
    "model_attributes_type": "This must be an object",
    "dict_type": "This must be an object",
}


def validation_problem(errors: Sequence[Any]) -> ValueRefused:
    """Return pydantic's errors as one problem, with a sentence for each of the first five, beginning with the
    member."""
    return ValueRefused(_validation_sentence(errors), code=validation_code(errors))


def _validation_sentence(errors: Sequence[Any]) -> str:
    sentences = []
    for error in errors[:5]:
        member = ".".join(str(part) for part in error["loc"] if part not in ("body", "query", "path", "payload"))
        message = _SENTENCES.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ").rstrip(".")
        sentences.append(f"{member}: {message}." if member else f"{message}.")
    if len(errors) > 5:
        sentences.append(f"And {len(errors) - 5} more.")
    return " ".join(sentences)


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
    """Ingest parsed JSON items and return ``(200, {results, accepted, refused})``.

    An item that could not be parsed is refused with its problem. All accepted items are written in one transaction.
    Raises ``ValueRefused`` for more than ``MAX_BATCH`` items, and as ``ingest_request``.
    """
    if len(raw) > MAX_BATCH:
        raise ValueRefused(
            f"A batch has at most {MAX_BATCH} items; this one has {len(raw)}.", code=ProblemCode.BATCH_TOO_LARGE
        )
    parsed = [item_parse(item) for item in raw]
    items = [item for item in parsed if isinstance(item, IngestItem)]

    def render(outcomes: list[ItemOutcome]) -> tuple[int, BatchReply]:
        following = iter(outcomes)
        results: list[BatchItemReply] = []
        for index, item in enumerate(parsed):
            outcome = next(following) if isinstance(item, IngestItem) else item
            if isinstance(outcome, MemoryProblem):
                status = status_of(outcome)
                results.append({"index": index, "status": status, "type": outcome.code.urn, "detail": outcome.sentence})
            else:
                reply = outcome.as_json()
                results.append(
                    {
                        "index": index,
                        "status": 200,
                        "topic_id": reply["topic_id"],
                        "applied": reply["applied"],
                        "version_ids": reply["version_ids"],
                        "similar_topic_ids": reply["similar_topic_ids"],
                    }
                )
        refused = sum("detail" in result for result in results)
        return 200, {"results": results, "accepted": len(results) - refused, "refused": refused}

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
