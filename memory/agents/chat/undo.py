"""Undo of everything that one conversation wrote. Later changes by others are kept and reported.

Topics that the conversation created are released by a run, which can itself be undone. A changed field gets its former
value as a new revision, and an added field gets an empty revision. Only links are deleted. So no history is lost, and
an undo can be corrected. Fields and links that a merge has moved count as written by the conversation.
"""

import datetime as dt
import hashlib
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet

from memory.access.principal import SYSTEM, Principal
from memory.agents.chat.conversations import conversation_get
from memory.agents.chat.turns import AT_WORK, conversation_lock, turn_at_work
from memory.core.errors import Conflict, MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.core.truncate import line_cut
from memory.forgetting.manual_actions import topics_release
from memory.forgetting.runs import run_undo
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import EmptyField, IngestField, IngestItem, RestoringItem
from memory.models import AuditEvent, Conversation, StudyJob
from memory.models.labels import label_sql
from memory.resumable import job_cancel

What = Literal["topic", "value", "field", "link", "merge"]
PROVENANCE = "undo"
# The maximum number of characters of a value in a sentence.
MAX_VALUE = 80

# All writers lock in this order: runs, topics with their vitality, fields. Within a table, they lock by ascending id.
_TOPICS_SQL = """
SELECT topic_id FROM memory_conversationwrite WHERE conversation_id = %(conversation)s UNION
SELECT a.topic_id FROM memory_conversationwrite w JOIN memory_forgetaction a ON a.run_id = w.run_id
WHERE w.conversation_id = %(conversation)s
"""
_LOCK_SQL = (
    """
SELECT id FROM memory_forgetrun
WHERE id IN (SELECT run_id FROM memory_conversationwrite WHERE conversation_id = %(conversation)s)
ORDER BY id FOR NO KEY UPDATE
""",
    f"""
SELECT t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id WHERE t.id IN ({_TOPICS_SQL})
ORDER BY t.id FOR NO KEY UPDATE OF t, v
""",
    f"SELECT f.id FROM memory_field f WHERE f.topic_id IN ({_TOPICS_SQL}) ORDER BY f.id FOR NO KEY UPDATE",
)

# Each of the following statements returns the effect of an undo on one kind of write: the members of ``UndoItem`` up to
# ``writes``, whether no change is needed, and further columns of that kind.

# The merges, the last one first.
_MERGES_SQL = f"""
SELECT 'merge', a.topics[1], a.titles[1],
       CASE WHEN cardinality(a.titles) > 1 THEN 'merged into “' || a.titles[cardinality(a.titles)] || '”'
            ELSE 'merged' END,
       '', w.writes, r.id IS NULL, w.run_id, a.topics
FROM (
    SELECT run_id, array_agg(id) AS writes FROM memory_conversationwrite
    WHERE conversation_id = %(conversation)s AND what = 'merged' AND run_id IS NOT NULL AND undone_at IS NULL
    GROUP BY run_id
) w
LEFT JOIN memory_forgetrun r ON r.id = w.run_id AND r.status <> 'undone'
LEFT JOIN LATERAL (
    SELECT array_agg(a.topic_id ORDER BY a.place) AS topics, array_agg({label_sql()} ORDER BY a.place) AS titles
    FROM memory_forgetaction a JOIN memory_topic t ON t.id = a.topic_id WHERE a.run_id = r.id
) a ON true
ORDER BY r.created_at DESC, r.id DESC
"""

# ``made`` are the topics that the conversation created. Writes to them are undone with the topic. If the merge of such
# a topic is kept (``kept``), its values and links belong to the other topic; it has ``moved``. ``rest`` are the other
# writes that are not undone.
_WROTE_SQL = """
WITH wrote AS MATERIALIZED (
    SELECT w.id, w.topic_id, w.what, w.revision_id, w.link_id, w.undone_at IS NOT NULL AS undone,
           t.released_at IS NOT NULL AS released, t.merged_into_id IS NOT NULL AS merged,
           t.merged_into_id IS NOT NULL AND t.id = ANY(%(kept)s::uuid[]) AS moved
    FROM memory_conversationwrite w JOIN memory_topic t ON t.id = w.topic_id
    WHERE w.conversation_id = %(conversation)s
), made AS MATERIALIZED (
    SELECT topic_id AS id, moved,
           array_agg(id ORDER BY id) FILTER (WHERE what = 'topic' OR NOT moved AND what <> 'merged') AS writes
    FROM wrote GROUP BY topic_id, moved HAVING bool_or(what = 'topic')
), rest AS MATERIALIZED (
    SELECT w.*, m.id IS NOT NULL AS is_made FROM wrote w LEFT JOIN made m ON m.id = w.topic_id
    WHERE NOT w.undone AND (m.id IS NULL OR m.moved)
), own AS MATERIALIZED (SELECT revision_id AS id FROM wrote WHERE revision_id IS NOT NULL),
linked AS MATERIALIZED (SELECT link_id AS id FROM wrote WHERE link_id IS NOT NULL)
"""

# A topic that is already released, by another undo or by a person, needs no change.
_MADE_SQL = f"""{_WROTE_SQL}
SELECT 'topic', t.id, {label_sql()}, 'created', CASE
    WHEN t.merged_into_id IS NOT NULL THEN 'It is merged into another memory.'
    WHEN v.pinned THEN 'It is pinned.'
    ELSE concat_ws(' ',
        CASE WHEN EXISTS (
            SELECT 1 FROM memory_field f JOIN memory_revision r ON r.field_id = f.id
            WHERE f.topic_id = t.id AND r.recorded_at > t.created_at AND r.id NOT IN (SELECT id FROM own)
        ) THEN 'It was written to from outside this conversation.' END,
        CASE WHEN EXISTS (
            SELECT 1 FROM memory_topicedit e
            WHERE e.topic_id = t.id AND e.at > t.created_at AND e.actor <> 'system' AND e.actor NOT LIKE 'rule %%'
        ) THEN 'It was edited afterwards.' END,
        CASE WHEN EXISTS (
            SELECT 1 FROM memory_link l
            WHERE l.target_id = t.id AND l.id NOT IN (SELECT id FROM linked)
              AND l.source_id NOT IN (SELECT id FROM made)
        ) OR EXISTS (
            SELECT 1 FROM memory_link l
            WHERE l.source_id = t.id AND l.created_at > t.created_at AND l.id NOT IN (SELECT id FROM linked)
              AND l.target_id NOT IN (SELECT id FROM made)
        ) THEN 'It was linked from outside this conversation.' END,
        CASE WHEN EXISTS (
            SELECT 1 FROM memory_topic o WHERE o.merged_into_id = t.id AND o.id NOT IN (SELECT id FROM made)
        ) THEN 'Another memory was merged into it afterwards.' END,
        CASE WHEN EXISTS (
            SELECT 1 FROM memory_revision r JOIN memory_field f ON f.id = r.field_id AND f.last_seq = r.seq
            WHERE r.ref_topic_id = t.id AND f.topic_id NOT IN (SELECT id FROM made)
              AND r.id NOT IN (SELECT id FROM own)
        ) THEN 'A field of another memory refers to it.' END)
    END, m.writes, t.released_at IS NOT NULL
FROM made m JOIN memory_topic t ON t.id = m.id JOIN memory_vitality v ON v.topic_id = t.id
ORDER BY m.writes[1]
"""

# The fields to which the conversation wrote, each with its last value from another source. A field needs no change if
# it already has that value, or if its topic is released as a whole.
_VALUES_SQL = f"""{_WROTE_SQL}
SELECT CASE WHEN x.added THEN 'field' ELSE 'value' END, f.topic_id, {label_sql()}, f.name, CASE
    WHEN x.merged THEN 'Its memory was merged into another one.'
    WHEN x.released THEN 'Its memory was released.'
    WHEN cur.id NOT IN (SELECT id FROM own) THEN 'It has a newer value from outside this conversation.'
    ELSE '' END,
    x.writes,
    (coalesce(prev.value, ''), coalesce(prev.field_type, 'string'), prev.ref_topic_id)
        IS NOT DISTINCT FROM (cur.value, cur.field_type, cur.ref_topic_id) OR f.topic_id IN (SELECT id FROM made),
    prev.id IS NULL, coalesce(prev.value, ''), coalesce(prev.field_type, 'string'), prev.ref_topic_id, prev.valid_from
FROM (
    SELECT f.id, array_agg(w.id ORDER BY w.id) AS writes, bool_or(w.what = 'field') AS added,
           bool_or(w.released) AS released,
           bool_or((w.topic_id <> f.topic_id OR w.merged) AND NOT w.is_made) AS merged
    FROM rest w JOIN memory_revision r ON r.id = w.revision_id JOIN memory_field f ON f.id = r.field_id GROUP BY f.id
) x
JOIN memory_field f ON f.id = x.id
JOIN memory_topic t ON t.id = f.topic_id
JOIN memory_revision cur ON cur.field_id = f.id AND cur.seq = f.last_seq
LEFT JOIN LATERAL (
    SELECT r.* FROM memory_revision r
    WHERE r.field_id = f.id AND r.seq < f.last_seq AND r.id NOT IN (SELECT id FROM own)
    ORDER BY r.seq DESC LIMIT 1
) prev ON true
ORDER BY f.topic_id, f.created_at, f.id
"""

# A link that is older than the conversation is not undone, even if the log of the conversation contains it. Nor is a
# link of a topic that the conversation created: it is hidden if the topic is released, and kept if the topic is kept.
_LINKS_SQL = f"""{_WROTE_SQL}
SELECT 'link', l.source_id, {label_sql("one")}, l.kind || ' → “' || {label_sql("other")} || '”; link removed', '',
       ARRAY[w.id], l.id IS NULL, l.id
FROM rest w
LEFT JOIN memory_link l ON l.id = w.link_id
    AND l.created_at >= (SELECT created_at FROM memory_conversation WHERE id = %(conversation)s)
    AND l.source_id NOT IN (SELECT id FROM made) AND l.target_id NOT IN (SELECT id FROM made)
LEFT JOIN memory_topic one ON one.id = l.source_id LEFT JOIN memory_topic other ON other.id = l.target_id
WHERE w.link_id IS NOT NULL ORDER BY l.id
"""

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

    code = ProblemCode.CHANGED_MEANWHILE


@dataclass(slots=True)
class UndoItem:
    """One thing that a conversation wrote.

    ``told`` is the effect of the undo. If the item is kept, ``why`` is the reason. For a link, topic and title are
    those of its source. The other members are not shown. ``writes`` are ids of ConversationWrite. A value or field has
    ``former``, which restores it, and a link has ``link``.
    """

    what: What
    topic_id: uuid.UUID
    title: str
    told: str
    why: str
    writes: list[int] = field(repr=False)
    former: IngestItem | None = field(default=None, repr=False)
    link: int | None = field(default=None, repr=False)


@dataclass(slots=True)
class ConversationUndone:
    """What an undo did or would do. ``run_id`` is the run that released topics, if any.

    ``settled`` are the ids of writes that need no change: the former value is already restored, or the row no longer
    exists. ``cancelled`` is the number of studies that the undo cancels. If ``at_work`` is true, the assistant is
    answering a message, so an undo is refused.
    """

    items: list[UndoItem] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    run_id: uuid.UUID | None = None
    cancelled: int = 0
    at_work: bool = False

    @property
    def taken_back(self) -> list[UndoItem]:
        """The items that are undone."""
        return [item for item in self.items if not item.why]

    @property
    def left(self) -> list[UndoItem]:
        """The items that are kept, each with the reason."""
        return [item for item in self.items if item.why]

    def of(self, what: What) -> list[UndoItem]:
        """Return the undone items of one type."""
        return [item for item in self.taken_back if item.what == what]

    @property
    def counts(self) -> dict[str, int]:
        """The number of undone items of each type."""
        return {what: len(self.of(what)) for what in get_args(What)}

    @property
    def digest(self) -> str:
        """A hash of the effect: all items and the number of cancelled studies."""
        return hashlib.sha256(repr([sorted(map(repr, self.items)), self.cancelled]).encode()).hexdigest()[:32]


def conversation_undo_preview(
    conversation_id: uuid.UUID, *, principal: Principal, now: dt.datetime
) -> ConversationUndone:
    """Return what an undo would change now, and what it would keep, with the reasons. Changes nothing.

    At most twelve queries, and about thirty more for each merge. If there are merges, the rows that an undo may change
    are locked during the call. Raises ``NotVisible``.
    """
    conversation = conversation_get(conversation_id, principal=principal)
    found = _undoable(conversation, "", now=now)
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
    items = [item.former for item in _undoable(conversation, why, now=now).taken_back if item.former]
    prepared = ingest_prepare(items, principal=principal, now=now, defer=False)
    with transaction.atomic(), connection.cursor() as cursor:
        conversation_lock(conversation_id, now=now)
        # Lock topics before studies. A worker that stores a step uses the same order.
        _lock(cursor, conversation_id)
        cancelled = _studies_cancel(conversation, principal=principal, now=now)
        _lock(cursor, conversation_id)
        found = _merges_undo(cursor, conversation, why, principal=principal, now=now)
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
        _values_restore(found, prepared, principal=principal, now=now)
        _writes_mark(cursor, found, now=now)
        if found.taken_back or cancelled:
            _journal(conversation, found, principal=principal, reason=reason, now=now)
        return found


def _undoable(conversation: Conversation, why: str, *, now: dt.datetime) -> ConversationUndone:
    # A merge moves fields and links, and an earlier merge may depend on a later one. So the effect is known only after
    # all merges have been undone. They are undone here and then rolled back.
    with transaction.atomic(), connection.cursor() as cursor:
        if conversation.writes.filter(run_id__isnull=False, undone_at=None).exists():
            _lock(cursor, conversation.pk)
        found = _merges_undo(cursor, conversation, why, principal=SYSTEM, now=now)
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


def _lock(cursor: CursorWrapper, conversation_id: uuid.UUID) -> None:
    """Lock all rows that an undo may change."""
    for statement in _LOCK_SQL:
        cursor.execute(statement, {"conversation": conversation_id})


def _merges_undo(
    cursor: CursorWrapper, conversation: Conversation, why: str, *, principal: Principal, now: dt.datetime
) -> ConversationUndone:
    """Undo the merges, the last one first, and return the effect on all writes. A merge that cannot be undone is
    kept."""
    found = ConversationUndone()
    kept: list[uuid.UUID] = []
    parameters = {"conversation": conversation.pk, "kept": kept}
    for item, (run_id, topics) in _items(cursor, _MERGES_SQL, parameters, found):
        try:
            undone = run_undo(run_id, principal=principal, reason=why, now=now)
            item.why = undone.conflicts[0][1] if undone.conflicts else ""
        except Conflict as problem:
            item.why = problem.sentence
        kept += topics if item.why else []
        item.told += "" if item.why else "; merge undone"
    for item, _more in _items(cursor, _MADE_SQL, parameters, found):
        item.told += "" if item.why else "; released"
    for item, (new, value, field_type, ref, valid_from) in _items(cursor, _VALUES_SQL, parameters, found):
        members = {"name": item.told, "value": value, "field_type": field_type, "ref_topic_id": ref}
        restoring = (IngestField if value else EmptyField)(**members, why_changed=why, provenance=PROVENANCE)
        item.former = RestoringItem(
            placement="version_field", topic_id=str(item.topic_id), fields=[restoring], valid_from=valid_from
        )
        if not item.why:
            item.told += ": emptied" if new else f": “{line_cut(value, MAX_VALUE)}” restored"
    for item, (link,) in _items(cursor, _LINKS_SQL, parameters, found):
        item.link = link
    return found


def _items(
    cursor: CursorWrapper, sql: str, parameters: dict[str, Any], found: ConversationUndone
) -> list[tuple[UndoItem, list[Any]]]:
    """Add the writes that ``sql`` returns to ``found``. Return the items, each with the further columns of its row."""
    cursor.execute(sql, parameters)
    items = []
    for what, topic_id, title, told, why, writes, settled, *more in cursor.fetchall():
        if settled:
            found.settled += writes
        else:
            items.append((UndoItem(what, topic_id, title, told, why, writes), more))
    found.items += [item for item, _more in items]
    return items


def _values_restore(
    found: ConversationUndone, prepared: PreparedItems, *, principal: Principal, now: dt.datetime
) -> None:
    """Write the former values as new revisions. If ingest refuses a value, the reason becomes the ``why`` of its
    item."""
    formers = {position: item.former for position, item in enumerate(found.items) if item.former and not item.why}
    former_items = PreparedItems([*formers.values()], prepared.vectors, prepared.policies)
    outcomes = ingest_apply(former_items, principal=principal, now=now) if formers else []
    for position, outcome in zip(formers, outcomes, strict=True):
        if isinstance(outcome, MemoryProblem):
            found.items[position].why = outcome.sentence


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


# Maps each type to its singular, its plural, and the effect of the undo.
_TYPE_LABELS = {
    "topic": ("memory", "memories", "released"),
    "value": ("value", "values", "restored"),
    "field": ("new field", "new fields", "emptied"),
    "link": ("link", "links", "removed"),
    "merge": ("merge", "merges", "undone"),
}


def undo_summary(undone: ConversationUndone, *, done: bool) -> str:
    """Return the effect in words: ``Undone: 2 memories are released, 1 value is restored. 1 change is kept.``"""
    parts = [
        f"{number:,} {_TYPE_LABELS[what][number != 1]} {'is' if number == 1 else 'are'} {_TYPE_LABELS[what][2]}"
        for what, number in undone.counts.items()
        if number
    ]
    verb = "Undone" if done else "To be undone"
    sentences = [f"{verb}: {', '.join(parts)}." if parts else "There is nothing to undo."]
    if left := len(undone.left):
        sentences.append("1 change is kept." if left == 1 else f"{left:,} changes are kept.")
    if undone.at_work:
        sentences.append(AT_WORK)
    return " ".join(sentences)
