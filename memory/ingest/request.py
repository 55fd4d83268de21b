"""Handles one ingest request: replays an earlier reply, or writes the items and stores the reply."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction

from memory.access.principal import Principal
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.idempotency import Recorded, idempotency_claim, idempotency_finish, idempotency_replay, request_hash
from memory.ingest.items import IngestItem
from memory.ingest.plan import ItemOutcome, ItemReply
from memory.ingest.waiting import Waiting, waiting_told
from memory.models import TopicVector
from memory.stores.pending import after_commit, work_pending

Render = Callable[[list[ItemOutcome], Waiting | None], Recorded]


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
    """Ingest ``items`` and return ``(status, reply)``, which ``render`` makes from the outcomes and from what waits for
    the worker. If ``render`` raises, nothing is written. A repeated request is recognised by ``idempotency_key``;
    ``route`` and ``body`` show whether it is the same request. ``on_deferred`` is called after the commit if topics
    have no vector yet. Raises ``Conflict`` or ``ValueRefused`` if the key is in use, and ``EmbeddingFailed``."""
    # ``defer`` is not part of the hash, because it does not change what is stored.
    digest = "" if idempotency_key is None else request_hash(route, body)
    if idempotency_key is not None:
        replay = idempotency_replay(idempotency_key, digest, principal=principal)
        if replay is not None:
            return replay
    prepared = ingest_prepare(items, principal=principal, now=now, defer=defer)
    # This comes before the transaction, so that upkeep finds the work even if the process dies after the commit.
    work_pending()
    with transaction.atomic():
        if idempotency_key is not None:
            replay = idempotency_claim(idempotency_key, digest, principal=principal, now=now)
            if replay is not None:
                return replay
        outcomes = ingest_apply(prepared, principal=principal, now=now, defer=defer)
        waiting = None
        if defer or prepared.incomplete:
            after_commit(on_deferred)
            written = {outcome.topic_id for outcome in outcomes if isinstance(outcome, ItemReply)}
            without = TopicVector.objects.filter(pk__in=written, embedding__isnull=True)
            waiting = waiting_told(without.count(), now=now)
        reply = render(outcomes, waiting)
        if idempotency_key is not None:
            idempotency_finish(idempotency_key, *reply, principal=principal)
    return reply
