"""Undo of everything that one conversation wrote. Later changes by others are kept and reported.

Topics that the conversation created are released by a run, which can itself be undone. A changed field gets its former
value as a new revision, and an added field gets an empty revision. Only links are deleted. So no history is lost, and
an undo can be corrected.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet

from memory.access.principal import SYSTEM, Principal
from memory.agents.chat.conversations import conversation_get
from memory.agents.chat.turns import conversation_lock, turn_at_work
from memory.agents.chat.undo_preview import ConversationUndone, UndoItem, Write, merges_of, writes_classify, writes_read
from memory.core.errors import Conflict, MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import topics_release
from memory.forgetting.runs import run_undo
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import EmptyField, IngestField, IngestItem, RestoringItem
from memory.jobs.resumable import job_cancel
from memory.models import AuditEvent, Conversation, StudyJob

PROVENANCE = "undo"

# All writers lock in this order: runs, topics with their vitality, fields. Within a table, they lock by ascending id.
_LOCK_SQL = (
    "SELECT id FROM memory_forgetrun WHERE id = ANY(%(runs)s) ORDER BY id FOR NO KEY UPDATE",
    """
SELECT t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%(topics)s::uuid[])
   OR t.id IN (SELECT a.topic_id FROM memory_forgetaction a WHERE a.run_id = ANY(%(runs)s::uuid[]))
ORDER BY t.id FOR NO KEY UPDATE OF t, v
""",
    """
SELECT f.id FROM memory_field f WHERE f.topic_id = ANY(%(topics)s::uuid[])
   OR f.topic_id IN (SELECT a.topic_id FROM memory_forgetaction a WHERE a.run_id = ANY(%(runs)s::uuid[]))
ORDER BY f.id FOR NO KEY UPDATE
""",
)

_DELETE_LINKS_SQL = """
WITH gone AS (
    DELETE FROM memory_link WHERE id = ANY(%(links)s::bigint[])
    RETURNING id, source_id, target_id, kind, created_at, actor
), events (at, actor, action, topic_id, scope, reason, before, after) AS MATERIALIZED (
    SELECT %(now)s, %(actor)s, 'unlinked', g.source_id, s.path, %(reason)s,
           jsonb_build_object('to', g.target_id, 'kind', g.kind, 'link', g.id, 'created_at', g.created_at,
                              'actor', g.actor),
           jsonb_build_object('conversation', %(conversation)s::text)
    FROM gone g JOIN memory_topic t ON t.id = g.source_id JOIN memory_scope s ON s.id = t.scope_id ORDER BY g.id
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT * FROM events
"""

_MARK_UNDONE_SQL = """
UPDATE memory_conversationwrite SET undone_at = %(now)s, "left" = ''
WHERE id = ANY(%(settled)s::bigint[]) AND (undone_at IS NULL OR id = ANY(%(again)s::bigint[]))
"""
_MARK_LEFT_SQL = """
UPDATE memory_conversationwrite w SET "left" = d.why FROM unnest(%(ids)s::bigint[], %(whys)s::text[]) AS d (id, why)
WHERE w.id = d.id
"""


class UndoPreviewOutdated(Conflict):
    """The effect of the undo has changed since the preview (409)."""

    code = ProblemCode.PREVIEW_OUTDATED


def conversation_undo_preview(
    conversation_id: uuid.UUID, *, principal: Principal, now: dt.datetime
) -> ConversationUndone:
    """Return what an undo would change now, and what it would keep, with the reasons. Changes nothing.

    At most twelve queries, and about thirty more for each merge. If there are merges, the rows that an undo may change
    are locked during the call. Raises ``NotVisible``.
    """
    conversation = conversation_get(conversation_id, principal=principal)
    found = _undoable(conversation, now=now)
    found.cancelled, found.at_work = _studies(conversation).count(), turn_at_work(conversation, now=now)
    return found


def conversation_undo(
    conversation_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime, digest: str | None = None
) -> ConversationUndone:
    """Undo the writes of a conversation and its studies, and journal this in the same transaction.

    Running studies are cancelled first. Only operators may undo, because releasing topics is forgetting. A second undo
    skips what is already undone. About eighty SQL statements, and about thirty more for each merge. Raises
    ``NotAllowed``, ``NotVisible``, ``EmbeddingFailed``, ``Conflict`` while the assistant answers a message of the
    conversation, and ``UndoPreviewOutdated`` if the effect has changed since the preview with this ``digest``.
    """
    principal.require("operator")
    conversation = conversation_get(conversation_id, principal=principal)
    why = "undo of a conversation" + (f": {reason}" if reason else "")
    # Values are embedded before rows are locked. If a value changes before the lock, it is embedded again.
    items = [_ingest_item(item, why) for item in _undoable(conversation, now=now).taken_back if item.former]
    prepared = ingest_prepare(items, principal=principal, now=now, defer=False)
    with transaction.atomic(), connection.cursor() as cursor:
        conversation_lock(conversation_id, now=now)
        # Lock topics before studies. A worker that stores a step uses the same order.
        _lock(cursor, conversation_id)
        cancelled = _studies_cancel(conversation, principal=principal, now=now)
        writes = _lock(cursor, conversation_id)
        found = _undo_merges(cursor, conversation, writes, principal=principal, reason=why, now=now)
        found.cancelled = cancelled
        if digest is not None and found.digest != digest:
            # The rollback also reverts the cancellation of studies and the undo of merges.
            raise UndoPreviewOutdated(
                "What would be undone has changed since the preview. Nothing was changed; preview it again."
            )
        if topics := [item.topic_id for item in found.of("topic")]:
            found.run_id = topics_release(topics, principal=principal, reason=why, now=now).pk
        if links := [item.link for item in found.of("link")]:
            wanted: dict[str, Any] = {"links": links, "now": now, "actor": principal.actor, "reason": why}
            cursor.execute(_DELETE_LINKS_SQL, {**wanted, "conversation": conversation_id})
        _values_restore(found, prepared, why, principal=principal, now=now)
        _writes_mark(cursor, found, now=now)
        if found.taken_back or cancelled:
            _journal(conversation, found, principal=principal, reason=reason, now=now)
        return found


def _undoable(conversation: Conversation, *, now: dt.datetime) -> ConversationUndone:
    # A merge moves fields and links, and an earlier merge may depend on a later one. So the effect is known only after
    # all merges have been undone. They are undone here and then rolled back.
    with transaction.atomic(), connection.cursor() as cursor:
        writes = writes_read(cursor, conversation.pk)
        if any(write.run_id and not write.undone for write in writes):
            writes = _lock(cursor, conversation.pk)
        found = _undo_merges(cursor, conversation, writes, principal=SYSTEM, reason="", now=now)
        transaction.set_rollback(True)
    return found


def _studies(conversation: Conversation) -> QuerySet[StudyJob]:
    return StudyJob.objects.filter(conversation=conversation, status=StudyJob.Status.WORKING).order_by("id")


def _studies_cancel(conversation: Conversation, *, principal: Principal, now: dt.datetime) -> int:
    cancelled = 0
    for job in _studies(conversation):
        # The study may have ended in the meantime.
        with suppress(Conflict):
            job_cancel(StudyJob, job.pk, principal=principal, now=now)
            cancelled += 1
    return cancelled


def _lock(cursor: CursorWrapper, conversation_id: uuid.UUID) -> list[Write]:
    """Lock all rows that an undo may change. Return the writes, read under the lock."""
    writes = writes_read(cursor, conversation_id)
    parameters = {
        "topics": list({write.topic_id for write in writes}),
        "runs": list({write.run_id for write in writes if write.run_id}),
    }
    for statement in _LOCK_SQL:
        cursor.execute(statement, parameters)
    return writes_read(cursor, conversation_id)


def _undo_merges(
    cursor: CursorWrapper,
    conversation: Conversation,
    writes: Sequence[Write],
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
) -> ConversationUndone:
    """Undo the merges, the last one first, and return the effect on all writes. A merge that cannot be undone is
    kept."""
    found = merges_of(cursor, writes)
    for item in found.items:
        assert item.run_id is not None
        try:
            undone = run_undo(item.run_id, principal=principal, reason=reason, now=now)
            item.why = undone.conflicts[0][1] if undone.conflicts else ""
        except Conflict as problem:
            item.why = problem.sentence
        if not item.why:
            item.told += "; merge undone"
    if found.taken_back:
        # The merged topics are separate again, so the writes are read again.
        writes = writes_read(cursor, conversation.pk)
    writes_classify(cursor, conversation, writes, found)
    return found


def _values_restore(
    found: ConversationUndone, prepared: PreparedItems, why: str, *, principal: Principal, now: dt.datetime
) -> None:
    """Write the former values as new revisions. If ingest refuses a value, the reason becomes the ``why`` of its
    item."""
    items = [item for item in found.taken_back if item.former]
    former_items = PreparedItems([_ingest_item(item, why) for item in items], prepared.vectors, prepared.policies)
    outcomes = ingest_apply(former_items, principal=principal, now=now) if items else []
    for item, outcome in zip(items, outcomes, strict=True):
        if isinstance(outcome, MemoryProblem):
            item.why = outcome.sentence


def _ingest_item(item: UndoItem, why: str) -> IngestItem:
    assert item.former is not None
    former = item.former
    value = (IngestField if former.value else EmptyField).model_validate(
        {
            "name": former.name,
            "value": former.value,
            "field_type": former.field_type,
            "ref_topic_id": former.ref_topic_id,
            "why_changed": why,
            "provenance": PROVENANCE,
        }
    )
    return RestoringItem(
        placement="version_field", topic_id=str(item.topic_id), fields=[value], valid_from=former.valid_from
    )


def _writes_mark(cursor: CursorWrapper, found: ConversationUndone, *, now: dt.datetime) -> None:
    again = [row for item in found.taken_back for row in item.writes]
    cursor.execute(_MARK_UNDONE_SQL, {"now": now, "settled": found.settled + again, "again": again})
    left = {row: item.why for item in found.left for row in item.writes}
    cursor.execute(_MARK_LEFT_SQL, {"ids": list(left), "whys": list(left.values())})


def _journal(
    conversation: Conversation, undone: ConversationUndone, *, principal: Principal, reason: str, now: dt.datetime
) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(undone_at=now, undone_by=principal.actor)
    effect: dict[str, Any] = {
        "conversation": str(conversation.pk),
        "taken_back": {what: count for what, count in undone.counts.items() if count},
        "left": len(undone.left),
        "run": str(undone.run_id) if undone.run_id else None,
        "studies_cancelled": undone.cancelled or None,
    }
    effect = {name: value for name, value in effect.items() if value is not None}
    AuditEvent.objects.create(
        at=now,
        actor=principal.actor,
        action="conversation_undone",
        scope=conversation.scope,
        reason=reason,
        after=effect,
    )
