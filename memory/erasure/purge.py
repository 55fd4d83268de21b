"""Purge: erases topics for good, with every copy of their content in the database. Rows of a topic are deleted,
references to it are set to null, and erased text in journals is masked. One transaction does this and stores the
receipt."""

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.erasure.compacted import compacted_journal, compacted_of, compacted_rewrite, compacted_texts
from memory.erasure.erased_text import erased_content, removed_rows_read
from memory.erasure.receipts import PURGED, anchor_of, purges_wait, reasons_mask, receipt_write
from memory.erasure.redact_tables import logs_redact, statistics_renew, turns_unlogged
from memory.erasure.related_rows import belongings, columns_of, cuts
from memory.erasure.sources import sources_of
from memory.forgetting.manual_actions import MAX_AT_ONCE, topics_states
from memory.models import AuditEvent, ErasureReceipt
from memory.recall.access_fold import fold_wait
from memory.recall.corpus import documents_erase

# Topics that were merged into a purged topic, directly or not, are purged with it.
_FAMILY_SQL = """
WITH RECURSIVE family AS (
    SELECT id FROM memory_topic WHERE id = ANY(%(ids)s::uuid[])
    UNION
    SELECT t.id FROM memory_topic t JOIN family f ON t.merged_into_id = f.id
)
SELECT id FROM family ORDER BY id
"""
# All writers lock rows in the order of ids. Both tables are restricted by key, so that the plan does not depend on
# estimates. The locks prevent new references to the topics.
_TOPICS_SQL = """
SELECT t.id, s.path, t.merged_into_id FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%(ids)s) AND v.topic_id = ANY(%(ids)s) ORDER BY t.id FOR UPDATE OF t, v
"""
_FIELDS_SQL = "SELECT id FROM memory_field WHERE topic_id = ANY(%(ids)s) ORDER BY id FOR UPDATE"

_CUT_SQL = """
WITH cut AS (
    UPDATE memory_revision r SET ref_topic_id = NULL WHERE ref_topic_id = ANY(%(ids)s::uuid[])
    RETURNING r.field_id, r.seq
), events (at, actor, action, topic_id, scope, reason, before, after) AS MATERIALIZED (
    SELECT %(now)s, %(actor)s, 'reference_cut', f.topic_id, s.path, %(reason)s, '{}'::jsonb,
           jsonb_build_object('references', jsonb_object_agg(f.name, f.revisions), 'number', %(number)s::bigint)
    FROM (
        SELECT f.topic_id, f.name, jsonb_agg(c.seq ORDER BY c.seq) AS revisions
        FROM cut c JOIN memory_field f ON f.id = c.field_id GROUP BY f.topic_id, f.name
    ) f JOIN memory_topic t ON t.id = f.topic_id JOIN memory_scope s ON s.id = t.scope_id
    GROUP BY f.topic_id, s.path ORDER BY f.topic_id
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT * FROM events
"""


def topics_purge(
    ids: Sequence[uuid.UUID],
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    request_texts: Sequence[str] = (),
    spellings: Collection[str] = (),
) -> ErasureReceipt:
    """Erase topics for good, and return the receipt. Topics that were merged into them, and texts from which they were
    extracted, are also erased. ``request_texts`` are masked in reasons and logs, too; the receipt has hashes of
    ``spellings``. In journals outside the caller's scope, only ids are removed. About a hundred statements. Each
    journal is read once, and other purges wait.

    Raises ``NotAllowed`` if the caller is not an operator, ``NotVisible``, ``ValueRefused``, and ``Conflict`` for a
    topic that was merged into a topic that is not purged.
    """
    principal.require("operator")
    if not ids:
        raise ValueRefused("Name at least one memory.", code=ProblemCode.MISSING_MEMBER)
    if len(set(ids)) > MAX_AT_ONCE:
        raise ValueRefused(
            f"At most {MAX_AT_ONCE:,} memories can be purged at once; the request names {len(set(ids)):,}.",
            code=ProblemCode.TOO_LARGE,
        )
    # This is checked before any lock or search, so that the time until a refusal reveals nothing about other scopes.
    seen = {row.id for row in topics_states(ids, principal=principal)}
    if missing := [topic_id for topic_id in ids if topic_id not in seen]:
        raise NotVisible(f"Memory {missing[0]} does not exist.")
    with transaction.atomic(), connection.cursor() as cursor:
        number = purges_wait()
        fold_wait()
        scopes, sources = _lock_all(cursor, ids, principal=principal)
        made = compacted_of(cursor, list(scopes))
        wanted, owned = list(scopes), belongings()
        columns = columns_of(cursor)
        found = removed_rows_read(cursor, wanted, owned, columns)
        found.texts |= compacted_texts(cursor, made)
        turns = turns_unlogged(cursor, wanted)
        counts = _rows_delete(cursor, wanted)
        compacted_rewrite(cursor, made, now=now)
        erased = erased_content(cursor, found, request_texts=request_texts)
        masked = erased.strict.masked(reason)
        cut = _references_cut(cursor, wanted, number=number, actor=principal.actor, reason=masked, now=now)
        counts |= cut
        if sources:
            counts["memory_topic.extracted_from"] = sources
        if made:
            counts["memory_topic.summary"] = len(made)
            compacted_journal(cursor, made, number=number, actor=principal.actor, reason=masked, now=now)
        redacted = logs_redact(
            cursor, erased.eraser, wanted, columns, within=principal.scope, turns=turns, derived=made
        )
        for table, times in redacted.items():
            counts[table] = counts.get(table, 0) + times
        if reworded := reasons_mask(erased.eraser.masked, within=principal.scope):
            counts["memory_erasurereceipt"] = reworded
        statistics_renew(cursor, erased.eraser, columns)
        receipt = receipt_write(
            number,
            wanted,
            passages=erased.passages,
            identifiers=erased.identifiers,
            spellings=spellings,
            counts=counts,
            elsewhere=erased.elsewhere,
            scope=scope_common(list(scopes.values())),
            reason=masked,
            actor=principal.actor,
            now=now,
        )
        _journal(receipt, scopes)
        return receipt


def scope_common(paths: Sequence[str]) -> str:
    """Return the lowest scope that contains all ``paths``."""
    parts = [[part for part in path.split("/") if part] for path in paths]
    shared = []
    for each in zip(*parts, strict=False):
        if len(set(each)) > 1:
            break
        shared.append(each[0])
    return ROOT + "/".join(shared)


def _lock_all(
    cursor: CursorWrapper, ids: Sequence[uuid.UUID], *, principal: Principal
) -> tuple[dict[uuid.UUID, str], int]:
    """Lock the topics and the sources from which they were extracted. Return the scope of each topic, and the number of
    sources.

    The sources are searched for before the first lock, so that all rows are locked in the order of their ids. The
    search is repeated under the locks until it finds no more sources.
    """
    sources = set(sources_of(cursor, ids))
    while True:
        scopes = _lock(cursor, [*ids, *sources], principal=principal)
        more = sources_of(cursor, list(scopes))
        if not more:
            return scopes, len(sources)
        sources.update(more)


def _lock(cursor: CursorWrapper, ids: Sequence[uuid.UUID], *, principal: Principal) -> dict[uuid.UUID, str]:
    """Lock the topics and all topics that were merged into them. Return the scope of each topic."""
    wanted = list(dict.fromkeys(ids))
    scopes: dict[uuid.UUID, str] = {}
    merged: dict[uuid.UUID, uuid.UUID] = {}
    locked: set[uuid.UUID] = set()
    while True:
        cursor.execute(_FAMILY_SQL, {"ids": wanted})
        family = [row[0] for row in cursor.fetchall()]
        # Topics that were compacted from the family are locked, too, because they will be rewritten.
        needed = {*family, *compacted_of(cursor, family)}
        if locked == needed:
            break
        cursor.execute(_TOPICS_SQL, {"ids": sorted(needed)})
        found = cursor.fetchall()
        locked = {row[0] for row in found}
        of_family = [row for row in found if row[0] in set(family)]
        scopes = {topic_id: path for topic_id, path, _into in of_family}
        merged = {topic_id: into for topic_id, _path, into in of_family if into is not None}
    missing = [topic_id for topic_id in wanted if topic_id not in scopes or not principal.sees(scopes[topic_id])]
    if missing:
        raise NotVisible(f"Memory {missing[0]} does not exist.")
    # A merge requires that both topics have the same scope. If the scopes differ in spite of this, a topic outside the
    # caller's scope must not be erased.
    outside = [topic_id for topic_id, scope in scopes.items() if not principal.sees(scope)]
    if outside:
        raise NotVisible("A memory that was merged into one of these is outside the scope of the key.")
    for topic_id, into in merged.items():
        if into not in scopes:
            raise Conflict(
                f"Memory {topic_id} was merged into {into}, which holds its content. To erase this memory too, purge "
                f"{into}. To purge only this memory, undo the merge first.",
                code=ProblemCode.TOPIC_GONE,
            )
    cursor.execute(_FIELDS_SQL, {"ids": family})
    return scopes


def _rows_delete(cursor: CursorWrapper, ids: Sequence[uuid.UUID]) -> dict[str, int]:
    """Delete all rows that belong to the topics. Return the number of deleted rows by table. One statement per
    table."""
    counts: dict[str, int] = {}
    counts["memory_topicdocument"], counts["memory_lexeme"] = documents_erase(ids)
    for each in belongings():
        if each.table == "memory_topic":
            # Topics are deleted last, in one statement, because they refer to one another.
            continue
        cursor.execute(f"DELETE FROM {each.table} WHERE {each.where}", {"ids": list(ids)})
        counts[each.table] = counts.get(each.table, 0) + cursor.rowcount
    cursor.execute("DELETE FROM memory_topic WHERE id = ANY(%(ids)s)", {"ids": list(ids)})
    counts["memory_topic"] = cursor.rowcount
    return {table: times for table, times in counts.items() if times}


def _references_cut(
    cursor: CursorWrapper, ids: Sequence[uuid.UUID], *, number: int, actor: str, reason: str, now: dt.datetime
) -> dict[str, int]:
    """Set references from fields of other topics to null, and write an audit event for each of these other topics."""
    parameters: dict[str, Any] = {"ids": list(ids), "number": number, "actor": actor, "reason": reason, "now": now}
    counts: dict[str, int] = {}
    for model, column in cuts():
        table = model._meta.db_table
        cursor.execute(f'SELECT count(*) FROM {table} WHERE "{column}" = ANY(%(ids)s)', parameters)
        counts[f"{table}.{column}"] = int(cursor.fetchone()[0])
        if table == "memory_revision":
            cursor.execute(_CUT_SQL, parameters)
        else:
            cursor.execute(f'UPDATE {table} SET "{column}" = NULL WHERE "{column}" = ANY(%(ids)s)', parameters)
    return {table: times for table, times in counts.items() if times}


def _journal(receipt: ErasureReceipt, scopes: dict[uuid.UUID, str]) -> None:
    anchor = anchor_of(receipt)
    AuditEvent.objects.bulk_create(
        AuditEvent(
            at=receipt.at,
            actor=receipt.actor,
            action=PURGED,
            topic_id=topic_id,
            scope=scope,
            reason=receipt.reason,
            after=anchor,
        )
        for topic_id, scope in scopes.items()
    )
