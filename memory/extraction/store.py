"""Stores facts as topics through ingest. Each topic has an edge to the text from which its fact was extracted.

The text becomes a topic of the kind ``source``, whose id is derived from the text. The source is released from the
start, because queries must not return forgotten or superseded facts by returning the text. Each fact also refers to its
source in a field, because released topics are not listed as neighbours.
"""

import datetime as dt
import uuid
from collections.abc import Sequence

from django.db import connection
from django.utils.crypto import salted_hmac

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem
from memory.core.field_values import MAX_VALUE_LENGTH
from memory.extraction.known import FACT_FIELD, Known, known_facts_split
from memory.extraction.parts import parts_cut
from memory.forgetting import state_changes
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.plan import ItemReply
from memory.models import AuditEvent, Revision, Topic
from memory.models.locks import Lock, lock_wait
from memory.text.statements import Statement as Fact

SOURCE_KIND = "source"
FACT_KIND = "fact"
TEXT_FIELD = "text"
SOURCE_FIELD = "source"
EDGE = "extracted_from"
RELEASED_BECAUSE = "Kept as the source of extracted facts, outside every recall."


def source_id_of(content: str, *, scope: str) -> uuid.UUID:
    """Return the id of the source of ``content`` in ``scope``. It reveals nothing about the text."""
    digest = salted_hmac("memory.extraction.source", f"{scope}\x00{content}", algorithm="sha256").digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def source_text(source_id: uuid.UUID | None) -> str | None:
    """Return the text of a source; None if it was erased. One query."""
    if source_id is None:
        return None
    # Sources are released topics, so their fields never get a second revision.
    rows = Revision.objects.filter(field__topic_id=source_id, field__name__startswith=TEXT_FIELD, seq=1)
    parts = dict(rows.values_list("field__name", "value"))
    if TEXT_FIELD not in parts:
        return None
    return "".join(parts[name] for name in sorted(parts, key=lambda name: (len(name), name)))


def source_lock(source_id: uuid.UUID | None) -> bool:
    """Lock a source until the transaction ends, and return whether it still exists. One query."""
    if source_id is None:
        return False
    return Topic.objects.select_for_update(no_key=True).filter(pk=source_id).first() is not None


def scope_wait(scope: str) -> None:
    """Lock ``scope`` against other extractions until the transaction ends. So if several requests have the same text,
    only one stores the facts."""
    lock_wait(Lock.STORE_EXTRACTION, scope)


def facts_store(
    facts: Sequence[tuple[Fact, str]],
    content: str,
    *,
    scope: str,
    kind: str,
    principal: Principal,
    now: dt.datetime,
    source: uuid.UUID | None = None,
) -> tuple[list[uuid.UUID], list[Known]]:
    """Store the new facts. Return (the new topics in the order of their facts, the known facts).

    ``facts`` are pairs of a fact and the method that found it. Runs in the transaction of the caller, which has called
    ``scope_wait``. Costs the queries of ``known_facts_split``. For new facts, also those of one batch of ingest, and
    those of ``source_ensure`` if ``source`` is None. Raises the errors of ingest.
    """
    new, known = known_facts_split([fact for fact, _how in facts], scope=scope, kind=kind, principal=principal)
    how = {fact: "llm" if method == "llm" else "extract" for fact, method in facts}
    if not new:
        return [], known
    source = source or source_ensure(content, scope=scope, principal=principal, now=now)
    items = [
        IngestItem(
            placement="new_topic",
            topic_kind=kind,
            scope=scope,
            fields=[
                IngestField(name=FACT_FIELD, value=fact.text, provenance=how[fact]),
                # The reference has no text, so that a search finds the topic only by its fact.
                IngestField(name=SOURCE_FIELD, ref_topic_id=source, provenance=how[fact]),
            ],
            edges=[IngestEdge(to_topic_id=source, kind=EDGE)],
        )
        for fact in new
    ]
    return _written(items, principal=principal, now=now), known


def source_ensure(content: str, *, scope: str, principal: Principal, now: dt.datetime) -> uuid.UUID:
    """Return the id of the source of ``content`` in ``scope``. If it does not exist, create and release it.

    Runs in the transaction of the caller, which has called ``scope_wait``. One query if the source exists. Otherwise
    six queries, plus those of one batch of ingest.
    """
    source_id = source_id_of(content, scope=scope)
    if Topic.objects.filter(pk=source_id).exists():
        return source_id
    item = IngestItem(
        placement="new_topic",
        topic_id=str(source_id),
        # The title reveals nothing about the text, because lists and logs show titles.
        title=f"Text of {now:%Y-%m-%d}, {len(content):,} characters",
        topic_kind=SOURCE_KIND,
        scope=scope,
        fields=[
            IngestField(name=TEXT_FIELD if at == 1 else f"{TEXT_FIELD} {at}", value=content[a:b], provenance="extract")
            for at, (a, b) in enumerate(parts_cut(content, at_most=MAX_VALUE_LENGTH), start=1)
        ],
    )
    _written([item], principal=principal, now=now)
    with connection.cursor() as cursor:
        state_changes.release(cursor, [source_id], now=now)
    AuditEvent.objects.create(
        at=now,
        actor=principal.actor,
        action="released",
        topic_id=source_id,
        scope=scope,
        reason=RELEASED_BECAUSE,
        after={"released": True},
    )
    return source_id


def _written(items: list[IngestItem], *, principal: Principal, now: dt.datetime) -> list[uuid.UUID]:
    made = []
    prepared = ingest_prepare(items, principal=principal, now=now, defer=False)
    for outcome in ingest_apply(prepared, principal=principal, now=now):
        if isinstance(outcome, MemoryProblem):
            raise outcome
        assert isinstance(outcome, ItemReply)
        made.append(outcome.topic_id)
    return made
