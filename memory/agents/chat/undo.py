"""Takes back everything that one conversation wrote, as far as nobody else has built on it since.

No row goes but links: topics that the conversation made are released, by a run that can be taken back itself; values
that it wrote get what was there before as a new revision; fields that it added say nothing any more, in an empty
revision. What others have touched since is left and told. So history only grows, and an undo that was a mistake is a
mistake that can be mended.
"""

import datetime as dt
import hashlib
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import SYSTEM, Principal
from memory.agents.chat.conversations import conversation_get
from memory.agents.chat.turns import turn_at_work, turns_hold
from memory.agents.chat.undo_preview import (
    AGAIN,
    Undoable,
    UndoPart,
    UndoStep,
    Write,
    merges_of,
    writes_judge,
    writes_read,
)
from memory.core.errors import Conflict, MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import topics_release
from memory.forgetting.runs import run_undo
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestField, IngestItem
from memory.jobs.resumable import job_cancel
from memory.models import AuditEvent, Conversation, ForgetRun, StudyJob

PROVENANCE = "undo"
UNLINKED = "unlinked"
UNDONE = "conversation_undone"
OUTDATED = "What would be undone has changed since the preview. Nothing was changed; preview it again."

# In the order in which every writer locks: runs, then topics with where they stand, then fields, each by their ids.
_LOCKS = (
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

_UNLINK = """
WITH gone AS (
    DELETE FROM memory_link WHERE id = ANY(%(links)s::bigint[])
    RETURNING id, source_id, target_id, kind, created_at, actor
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT %(now)s, %(actor)s, %(action)s, g.source_id, s.path, %(reason)s,
       jsonb_build_object('to', g.target_id, 'kind', g.kind, 'link', g.id, 'created_at', g.created_at,
                          'actor', g.actor),
       jsonb_build_object('conversation', %(conversation)s::text)
FROM gone g JOIN memory_topic t ON t.id = g.source_id JOIN memory_scope s ON s.id = t.scope_id ORDER BY g.id
"""

_SETTLE = """
UPDATE memory_conversationwrite SET undone_at = %(now)s, "left" = ''
WHERE id = ANY(%(settled)s::bigint[]) AND (undone_at IS NULL OR id = ANY(%(again)s::bigint[]))
"""
_LEAVE = """
UPDATE memory_conversationwrite w SET "left" = d.why FROM unnest(%(ids)s::bigint[], %(whys)s::text[]) AS d (id, why)
WHERE w.id = d.id
"""


@dataclass(frozen=True, slots=True)
class ConversationUndone:
    """What an undo did, or would do: what is taken back, what is left, each with the reason, and the run that the
    release of its topics is taken back by, if any was released. ``cancelled`` counts studies that were at work;
    ``at_work`` if the assistant is at a message, which an undo waits for."""

    taken_back: list[UndoPart]
    left: list[UndoPart] = field(default_factory=list)
    run_id: uuid.UUID | None = None
    cancelled: int = 0
    at_work: bool = False

    @property
    def digest(self) -> str:
        """What tells whether two looks are alike: of all that is taken back and left, and of studies at work."""
        told = [sorted(map(repr, self.taken_back)), sorted(map(repr, self.left)), self.cancelled]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:32]

    @property
    def counts(self) -> dict[str, int]:
        """How many of each sort are taken back."""
        found = dict.fromkeys(("topic", "value", "field", "link", "merge"), 0)
        for part in self.taken_back:
            found[part.what] += 1
        return found


class UndoPreviewOutdated(Conflict):
    """What would be taken back is not what was looked at (409)."""

    code = ProblemCode.PREVIEW_OUTDATED


def conversation_undo_preview(
    conversation_id: uuid.UUID, *, principal: Principal, now: dt.datetime
) -> ConversationUndone:
    """Return what an undo would take back now, and what not and why. Nothing is changed. At most twelve queries;
    merges are tried and rolled back, some thirty each, with what they touch locked meanwhile.

    Raises ``NotVisible`` as ``conversation_get`` does.
    """
    conversation = conversation_get(conversation_id, principal=principal)
    told = _told(_undoable(conversation, now=now), cancelled=len(_at_work(conversation)))
    return replace(told, at_work=turn_at_work(conversation, now=now))


def conversation_undo(
    conversation_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime, digest: str | None = None
) -> ConversationUndone:
    """Take back what a conversation and its studies wrote, in one transaction with its journal. Studies that are at
    work are cancelled first. With the ``digest`` of a look, only if it would look the same now.

    Operators only, whoever led the conversation: to release topics is to forget, which no agent's key can do. About
    eighty statements, and some thirty more for each merge. Again, it takes back what has come since, and nothing twice.
    Raises ``NotAllowed``, ``NotVisible``, ``EmbeddingFailed``, ``Conflict`` while the assistant is at a message of the
    conversation, and ``UndoPreviewOutdated``.
    """
    principal.require("operator")
    conversation = conversation_get(conversation_id, principal=principal)
    told = "undo of a conversation" + (f": {reason}" if reason else "")
    # Embedded before anything is locked; what somebody changes in between is embedded again.
    items = [_item(step, told) for step in _undoable(conversation, now=now).steps if step.former]
    prepared = ingest_prepare(items, principal=principal, now=now, defer=False)
    with transaction.atomic(), connection.cursor() as cursor:
        turns_hold(conversation_id, now=now)
        # Topics before studies, as the worker locks them when it stores a step.
        _lock(cursor, conversation_id)
        cancelled = _studies_cancel(conversation, principal=principal, now=now)
        writes = _lock(cursor, conversation_id)
        found = _taken_apart(cursor, conversation, writes, principal=principal, reason=told, now=now)
        if digest is not None and _told(found, cancelled=cancelled).digest != digest:
            # With that everything is as it was: studies go on, and merges stand.
            raise UndoPreviewOutdated(OUTDATED)
        run = _topics_release(found, principal=principal, reason=told, now=now)
        _links_remove(cursor, conversation_id, found, principal=principal, reason=told, now=now)
        _values_restore(found, prepared, told, principal=principal, now=now)
        _note(cursor, found, now=now)
        undone = replace(_told(found, cancelled=cancelled), run_id=run.pk if run else None)
        if undone.taken_back or cancelled:
            _journal(conversation, undone, principal=principal, reason=reason, now=now)
        return undone


def _told(found: Undoable, *, cancelled: int) -> ConversationUndone:
    return ConversationUndone(
        [step.part for step in found.steps], [part for part, _rows in found.left], cancelled=cancelled
    )


def _undoable(conversation: Conversation, *, now: dt.datetime) -> Undoable:
    """Return what an undo would do now. What merges have moved shows where they are taken apart, and whether one can
    be may hang on one above it: so all are tried, and nothing of that stays."""
    with transaction.atomic(), connection.cursor() as cursor:
        writes = writes_read(cursor, conversation.pk)
        if any(write.run_id and not write.undone for write in writes):
            writes = _lock(cursor, conversation.pk)
        found = _taken_apart(cursor, conversation, writes, principal=SYSTEM, reason="", now=now)
        transaction.set_rollback(True)
    return found


def _at_work(conversation: Conversation) -> list[uuid.UUID]:
    rows = StudyJob.objects.filter(conversation=conversation, status=StudyJob.Status.WORKING)
    return list(rows.order_by("id").values_list("id", flat=True))


def _studies_cancel(conversation: Conversation, *, principal: Principal, now: dt.datetime) -> int:
    """Cancel what is at work, and return how much that was; what came to its end a moment ago needs no cancelling."""
    cancelled = 0
    for job_id in _at_work(conversation):
        with suppress(Conflict):
            job_cancel(StudyJob, job_id, principal=principal, now=now)
            cancelled += 1
    return cancelled


def _lock(cursor: CursorWrapper, conversation_id: uuid.UUID) -> list[Write]:
    """Lock everything that an undo may touch, and return what was written as it stands then."""
    writes = writes_read(cursor, conversation_id)
    wanted = {
        "topics": list({write.topic_id for write in writes}),
        "runs": list({write.run_id for write in writes if write.run_id}),
    }
    for statement in _LOCKS:
        cursor.execute(statement, wanted)
    return writes_read(cursor, conversation_id)


def _taken_apart(
    cursor: CursorWrapper,
    conversation: Conversation,
    writes: Sequence[Write],
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
) -> Undoable:
    """Take merges apart, and return that with what is to be done about everything else afterwards."""
    found = _merges_undo(cursor, writes, principal=principal, reason=reason, now=now)
    if found.steps:
        # Topics that were merged stand by themselves again.
        writes = writes_read(cursor, conversation.pk)
    rest = writes_judge(cursor, conversation, writes, joined=found.joined)
    return Undoable(found.steps + rest.steps, found.left + rest.left, found.settled + rest.settled)


def _merges_undo(
    cursor: CursorWrapper, writes: Sequence[Write], *, principal: Principal, reason: str, now: dt.datetime
) -> Undoable:
    """Take merges apart, the last one first. What is in the way of one is told, and the others go on."""
    found = merges_of(cursor, writes)
    done = []
    for step in found.steps:
        assert step.run_id is not None
        try:
            undone = run_undo(step.run_id, principal=principal, reason=reason, now=now)
            why = undone.conflicts[0][1] if undone.conflicts else ""
        except Conflict as problem:
            why = problem.sentence
        if why:
            part = replace(step.part, told=step.part.told.removesuffix(AGAIN), why=why)
            found.left.append((part, step.writes))
            found.joined.update(step.topics)
        else:
            done.append(step)
    found.steps = done
    return found


def _topics_release(found: Undoable, *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun | None:
    topics = [step.part.topic_id for step in found.of("topic")]
    return topics_release(topics, principal=principal, reason=reason, now=now) if topics else None


def _links_remove(
    cursor: CursorWrapper,
    conversation_id: uuid.UUID,
    found: Undoable,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
) -> None:
    links = [step.link for step in found.of("link")]
    if links:
        cursor.execute(
            _UNLINK,
            {
                "links": links,
                "now": now,
                "actor": principal.actor,
                "action": UNLINKED,
                "reason": reason,
                "conversation": conversation_id,
            },
        )


def _values_restore(
    found: Undoable, prepared: PreparedItems, told: str, *, principal: Principal, now: dt.datetime
) -> None:
    """Write what was there before as new revisions; what ingest refuses is left."""
    steps = [step for step in found.steps if step.former]
    if not steps:
        return
    now_wanted = PreparedItems([_item(step, told) for step in steps], prepared.vectors, prepared.policies)
    for step, outcome in zip(steps, ingest_apply(now_wanted, principal=principal, now=now), strict=True):
        if isinstance(outcome, MemoryProblem):
            found.steps.remove(step)
            found.left.append((_left(step.part, outcome.sentence), step.writes))


def _item(step: UndoStep, told: str) -> IngestItem:
    assert step.former is not None
    former = step.former
    value = IngestField.model_validate(
        {
            "name": former.name,
            "value": former.value,
            "field_type": former.field_type,
            "ref_topic_id": former.ref_topic_id,
            "why_changed": told,
            "provenance": PROVENANCE,
        }
    )
    return IngestItem(
        placement="version_field", topic_id=str(step.part.topic_id), fields=[value], valid_from=former.valid_from
    )


def _left(part: UndoPart, why: str) -> UndoPart:
    return UndoPart(part.what, part.topic_id, part.title, part.told, why)


def _note(cursor: CursorWrapper, found: Undoable, *, now: dt.datetime) -> None:
    again = [row for step in found.steps for row in step.writes]
    cursor.execute(_SETTLE, {"now": now, "settled": found.settled + again, "again": again})
    left = [(row, part.why) for part, rows in found.left for row in rows]
    if left:
        cursor.execute(_LEAVE, {"ids": [row for row, _why in left], "whys": [why for _row, why in left]})


def _journal(
    conversation: Conversation, undone: ConversationUndone, *, principal: Principal, reason: str, now: dt.datetime
) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(undone_at=now, undone_by=principal.actor)
    told = {
        "conversation": str(conversation.pk),
        "taken_back": {k: v for k, v in undone.counts.items() if v},
        "left": len(undone.left),
    }
    if undone.run_id:
        told["run"] = str(undone.run_id)
    if undone.cancelled:
        told["studies_cancelled"] = undone.cancelled
    AuditEvent.objects.create(
        at=now, actor=principal.actor, action=UNDONE, scope=conversation.scope, reason=reason, after=told
    )
