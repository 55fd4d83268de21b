"""Decides for each line of an export whether it is imported. An import does not change existing topics: it imports only
lines that belong to topics that it creates. During a check, a temporary table contains the ids of the topics that the
import would create."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from django.db import connection

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem
from memory.erasure.receipt_search import ReceiptEraser, erased_hashes
from memory.ingest import history
from memory.ingest.history import TopicHistory
from memory.models import ErasureReceipt, ImportedTopic, ImportJob
from memory.models.identities import ids_of_others
from memory.policy.restore import policies_restore, policy_scopes
from memory.transfer.lines import LineProblem, PolicyLine, line_topics
from memory.transfer.report import BROUGHT, ERASED, MISSING, THERE

# A FROM clause with the ids ``e.id`` of topics that were purged from this store.
ERASED_IDS = "memory_erasurereceipt r CROSS JOIN LATERAL jsonb_array_elements_text(r.topic_ids) AS e (id)"
ERASED_SQL = f"SELECT DISTINCT e.id::uuid FROM {ERASED_IDS} WHERE e.id = ANY(%s::text[])"
_NEW = "transfer_noted"
_BEGIN = (f"DROP TABLE IF EXISTS pg_temp.{_NEW}", f"CREATE TEMPORARY TABLE {_NEW} (id uuid PRIMARY KEY)")
_NOTE_SQL = f"INSERT INTO {_NEW} SELECT unnest(%s::uuid[])"
# For each id: the scope of the topic, and whether this import creates it.
_KNOWN_SQL = """
SELECT d.id, s.path, d.id IN (SELECT {created})
FROM unnest(%(ids)s::uuid[]) AS d (id) LEFT JOIN memory_topic t ON t.id = d.id
LEFT JOIN memory_scope s ON s.id = t.scope_id
"""
_CHECKED = f"id FROM {_NEW} WHERE id = ANY(%(ids)s)"
_IMPORTED = "topic_id FROM memory_importedtopic WHERE topic_id = ANY(%(ids)s) AND job_id = %(job)s"


# The functions that write what belongs to topics.
_ADD: dict[str, Callable[..., None]] = {
    "history": history.revisions_add,
    "reference": history.references_add,
    "merged": history.merges_add,
    "link": history.links_add,
}


@contextmanager
def topics_noted() -> Iterator[None]:
    """Let ``lines_reasons`` note the topics that an import would create, for a check on one connection."""
    with connection.cursor() as cursor:
        for statement in _BEGIN:
            cursor.execute(statement)
        try:
            yield
        finally:
            cursor.execute(f"DROP TABLE {_NEW}")


def lines_reasons(lines: Sequence[Any], *, principal: Principal, job_id: uuid.UUID | None = None) -> list[str]:
    """Return for each line ``BROUGHT`` or the reason why it is not imported. All lines must be of one kind. A check has
    no ``job_id`` and needs ``topics_noted``. One query for policies, three for other kinds, and one more to check
    topics."""
    if lines and isinstance(lines[0], PolicyLine):
        present = policy_scopes([line.scope for line in lines])
        return [THERE if line.scope in present else BROUGHT for line in lines]
    ids = list({topic for line in lines for ends in line_topics(line) for topic in ends})
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN_SQL.format(created=_IMPORTED if job_id else _CHECKED), {"ids": ids, "job": job_id})
        rows = cursor.fetchall()
        cursor.execute(ERASED_SQL, [[str(topic) for topic in ids]])
        erased = {row[0] for row in cursor.fetchall()}
        # In use in any scope; created by this import; seen by the caller or created by this import.
        stored = {topic for topic, scope, _new in rows if scope} | ids_of_others(cursor, ids)
        imported = {topic for topic, _scope, new in rows if new}
        here = imported | {topic for topic, scope, _new in rows if scope and principal.sees(scope)}

        def reason(line: Any) -> str:
            owners, others = line_topics(line)
            if owners & erased:
                return ERASED
            if isinstance(line, TopicHistory):
                return THERE if owners & stored else BROUGHT
            if not owners <= here:
                return MISSING
            if not owners & imported:
                return THERE
            return ERASED if others & erased else BROUGHT if others <= here else MISSING

        reasons = [reason(line) for line in lines]
        if job_id is None and isinstance(lines[0], TopicHistory):
            new = [line.id for line, why in zip(lines, reasons, strict=True) if why == BROUGHT]
            cursor.execute(_NOTE_SQL, [new])
    return reasons


def lines_import(lines: Sequence[Any], *, job: ImportJob, principal: Principal, now: dt.datetime) -> dict[str, int]:
    """Write those of ``lines`` that can be imported, and return the number of lines by outcome. All lines must be of
    one kind. A constant number of statements, except for policies. Needs a transaction that blocks purges
    (``purges_wait``). Raises the errors of the functions that write."""
    reasons = lines_reasons(lines, principal=principal, job_id=job.pk)
    new = [line for line, why in zip(lines, reasons, strict=True) if why == BROUGHT]
    if new:
        _write(lines[0].type, _masked(new), job=job, principal=principal, now=now)
    return dict(Counter(reasons))


def _write(kind: str, lines: Sequence[Any], *, job: ImportJob, principal: Principal, now: dt.datetime) -> None:
    if kind == "policy":
        try:
            policies_restore({line.scope: line.versions for line in lines}, now=now)
        except MemoryProblem as problem:
            raise LineProblem(f"The policies of the file cannot be in force here. {problem.sentence}") from problem
    elif kind == "topic":
        reason = f"import {job.pk}" + (f": {job.reason}" if job.reason else "")
        history.history_ingest(lines, principal=principal, reason=reason, now=now)
        ImportedTopic.objects.bulk_create(ImportedTopic(topic_id=line.id, job=job) for line in lines)
    else:
        with connection.cursor() as cursor:
            _ADD[kind](lines, cursor=cursor)


def _masked(lines: Sequence[Any]) -> Sequence[Any]:
    """Return the lines with erased texts masked in the reasons of pins and policies, because the file may be older than
    a purge. Texts of topics are not changed. One query; the first call after a purge runs two more."""
    last = ErasureReceipt.objects.order_by("-number").values_list("hash", flat=True).first()
    if last is None:
        return lines
    eraser = _eraser(last)
    masked: list[Any] = []
    for line in lines:
        if isinstance(line, TopicHistory) and line.pin_reason:
            line = line.model_copy(update={"pin_reason": eraser.at(None).masked(line.pin_reason)[:500]})
        elif isinstance(line, PolicyLine):
            versions = [
                version.model_copy(update={"reason": eraser.at(version.created_at).masked(version.reason)})
                for version in line.versions
            ]
            line = line.model_copy(update={"versions": versions})
        masked.append(line)
    return masked


@lru_cache(maxsize=1)
def _eraser(_last: str) -> ReceiptEraser:
    # The hash of the last receipt is the key of the cache. It identifies all receipts, because each receipt contains
    # the hash of the one before it.
    return ReceiptEraser(erased_hashes())
