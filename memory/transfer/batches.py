"""Decides for each line of an export whether it is imported. An import does not change existing topics: it imports only
lines that belong to topics that it creates. During a check, a temporary table contains the ids of the topics that the
import would create."""

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

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
_STORED_SQL = "SELECT t.id, s.path FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id WHERE t.id = ANY(%s)"
_IMPORTED_SQL = "SELECT topic_id FROM memory_importedtopic WHERE topic_id = ANY(%s) AND job_id = %s"
_NOTED_SQL = "SELECT id FROM transfer_noted WHERE id = ANY(%s)"
_NOTE_SQL = "INSERT INTO transfer_noted SELECT unnest(%s::uuid[])"
_BEGIN = "CREATE TEMPORARY TABLE IF NOT EXISTS transfer_noted (id uuid PRIMARY KEY)"
_EMPTY = "TRUNCATE transfer_noted"
_END = "DROP TABLE IF EXISTS pg_temp.transfer_noted"


class _Found(NamedTuple):
    """Sets of ids. ``stored`` are in use in any scope. ``here`` are topics that the caller sees or that this import
    creates. ``imported`` are topics that this import creates. ``erased`` are topics that were purged."""

    stored: set[uuid.UUID]
    here: set[uuid.UUID]
    imported: set[uuid.UUID]
    erased: set[uuid.UUID]


class Target:
    """The store into which lines are imported. A check has no ``job_id``, and uses the target as a context manager on
    one connection."""

    def __init__(self, principal: Principal, job_id: uuid.UUID | None = None) -> None:
        self._principal, self._job_id = principal, job_id

    def __enter__(self) -> Self:
        self._execute(_BEGIN)
        self._execute(_EMPTY)
        return self

    def __exit__(self, *_problem: object) -> None:
        self._execute(_END)

    def reasons(self, lines: Sequence[Any]) -> list[str]:
        """Return for each line ``BROUGHT`` or the reason why it is not imported. All lines must be of one kind. One
        query for policies, four for other kinds, and one more to check topics."""
        if lines and isinstance(lines[0], PolicyLine):
            present = policy_scopes([line.scope for line in lines])
            return [THERE if line.scope in present else BROUGHT for line in lines]
        found = self._ids_find({topic for line in lines for ends in line_topics(line) for topic in ends})
        reasons = [_reason(line, found) for line in lines]
        if self._job_id is None and lines and isinstance(lines[0], TopicHistory):
            new = [line.id for line, why in zip(lines, reasons, strict=True) if why == BROUGHT]
            self._execute(_NOTE_SQL, new)
        return reasons

    def _ids_find(self, ids: Collection[uuid.UUID]) -> _Found:
        wanted = list(ids)
        erased = self._execute(ERASED_SQL, [str(each) for each in wanted])
        stored = dict(self._execute(_STORED_SQL, wanted))
        with connection.cursor() as cursor:
            others = ids_of_others(cursor, wanted)
        own = (_NOTED_SQL, wanted) if self._job_id is None else (_IMPORTED_SQL, wanted, self._job_id)
        imported = {row[0] for row in self._execute(*own)}
        seen = {topic for topic, scope in stored.items() if self._principal.sees(scope)}
        return _Found({*stored, *others}, seen | imported, imported, {row[0] for row in erased})

    @staticmethod
    def _execute(sql: str, *values: Any) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql, list(values) or None)
            return cursor.fetchall() if cursor.description else []


def _reason(line: Any, found: _Found) -> str:
    owners, others = line_topics(line)
    if owners & found.erased:
        return ERASED
    if isinstance(line, TopicHistory):
        return THERE if owners & found.stored else BROUGHT
    if not owners <= found.here:
        return MISSING
    if not owners & found.imported:
        return THERE
    if others & found.erased:
        return ERASED
    return BROUGHT if others <= found.here else MISSING


def lines_import(lines: Sequence[Any], *, job: ImportJob, principal: Principal, now: dt.datetime) -> dict[str, int]:
    """Write those of ``lines`` that can be imported, and return the number of lines by outcome. All lines must be of
    one kind. A constant number of statements, except for policies. Needs a transaction that blocks purges
    (``purges_wait``). Raises the errors of the functions that write."""
    reasons = Target(principal, job.pk).reasons(lines)
    new = [line for line, why in zip(lines, reasons, strict=True) if why == BROUGHT]
    if new:
        _write(lines[0].type, _masked(new), job=job, principal=principal, now=now)
    return {why: reasons.count(why) for why in dict.fromkeys(reasons)}


def _write(kind: str, lines: Sequence[Any], *, job: ImportJob, principal: Principal, now: dt.datetime) -> None:
    with connection.cursor() as cursor:
        match kind:
            case "policy":
                try:
                    policies_restore({line.scope: line.versions for line in lines}, now=now)
                except MemoryProblem as problem:
                    raise LineProblem(
                        f"The policies of the file cannot be in force here. {problem.sentence}"
                    ) from problem
            case "topic":
                reason = f"import {job.pk}" + (f": {job.reason}" if job.reason else "")
                history.history_ingest(lines, principal=principal, reason=reason, now=now)
                ImportedTopic.objects.bulk_create(ImportedTopic(topic_id=line.id, job=job) for line in lines)
            case "history":
                history.revisions_add(lines, cursor=cursor)
            case "reference":
                history.references_add(lines, cursor=cursor)
            case "merged":
                history.merges_add(lines, cursor=cursor)
            case "link":
                history.links_add(lines, cursor=cursor)


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
