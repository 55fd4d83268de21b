"""Handles one ingest request: replays an earlier reply, or writes the items and stores the reply."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction

from memory.access.principal import Principal
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.idempotency import Recorded, idempotency_claim, idempotency_finish, idempotency_replay, request_hash
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemOutcome

Render = Callable[[list[ItemOutcome]], Recorded]


def ingest_request(
    items: Sequence[IngestItem],
    *,
    route: str,
    body: object,
    render: Render,
    idempotency_key: str | None,
    principal: Principal,
    now: dt.datetime,
    defer: bool,
    on_deferred: Callable[[], None],
) -> tuple[int, Any]:
    """Ingest ``items`` and return ``(status, reply)``, which ``render`` makes from the outcomes.

    ``body`` is the request body, to recognise a repeated request with the same key. If ``render`` raises, nothing is
    written and the key stays free. ``on_deferred`` runs in the transaction if topics are left without a vector.
    Raises ``Conflict`` or ``ValueRefused`` for a key in use, ``EmbeddingFailed``.
    """
    # ``defer`` is not part of the hash, because it does not change what is stored.
    digest = "" if idempotency_key is None else request_hash(route, body)
    if idempotency_key is not None:
        replay = idempotency_replay(idempotency_key, digest, principal=principal)
        if replay is not None:
            return replay
    prepared = ingest_prepare(items, principal=principal, now=now, defer=defer)
    with transaction.atomic():
        if idempotency_key is not None:
            replay = idempotency_claim(idempotency_key, digest, principal=principal, now=now)
            if replay is not None:
                return replay
        reply = render(ingest_apply(prepared, principal=principal, now=now, defer=defer))
        if defer or prepared.incomplete:
            on_deferred()
        if idempotency_key is not None:
            idempotency_finish(idempotency_key, *reply, principal=principal)
    return reply
