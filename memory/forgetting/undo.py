"""Undoes a run: each topic that has not changed after the run gets exactly its former state. Changed topics are listed.

Undo works in batches like the run, so a killed undo continues where it stopped.
"""

import datetime as dt
import json
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q
from django.utils.module_loading import import_string

from memory.core.errors import Conflict
from memory.forgetting import state_changes
from memory.forgetting.apply import BATCH
from memory.forgetting.manual_runs import BY_HAND, MERGED, REVISE, TOOK_IN, undone_journal
from memory.forgetting.topic_state import HELD, MADE, USE, drift_words, undone_state_sql
from memory.models import AuditEvent, DuplicatePair, ForgetRun
from memory.models.formulas_sql import counted_sql, fade_key_sql, rung_label_sql

_TAKE_SQL = """
SELECT id, topic_id, place FROM memory_forgetaction
WHERE run_id = %(run)s AND state = 'applied' AND place > %(after)s
  AND (%(only)s::uuid[] IS NULL OR topic_id = ANY(%(only)s::uuid[]))
ORDER BY place LIMIT %(limit)s
"""
# A merge has two actions, one after the other.
PAIR = 2

_LOCK_SQL = f"""
WITH {HELD}
SELECT a.id, a.topic_id, {undone_state_sql("held.state", "a")}, a.before, a.after, held.state, a.action,
       a.changes
FROM memory_forgetaction a JOIN held ON held.id = a.topic_id
WHERE a.id = ANY(%(actions)s)
"""

_FROM = "FROM memory_forgetaction a WHERE a.id = ANY(%(actions)s)"


def fading_sql(row: str, *, used: str, floor: str) -> str:
    """Return the assignments of an UPDATE that restore the columns in ``USE`` and the fade keys of ``row`` from the
    earlier row ``b``. If the condition ``used`` is true, ``row`` keeps its values, and ``floor`` becomes its fade
    floor. ``row`` always keeps its half-life and clock, and its fade key is computed with them."""
    key = fade_key_sql("b.salience", counted=counted_sql("b", wall=f"{row}.wall"), half_life=f"{row}.half_life")
    same = f"WHEN {row}.half_life = b.half_life AND {row}.wall = b.wall THEN b"
    return ",\n    ".join(
        (
            *(f"{name} = CASE WHEN {used} THEN {row}.{name} ELSE b.{name} END" for name in USE),
            f"fade = CASE WHEN {used} THEN {row}.fade {same}.fade ELSE {key} END",
            f"fade_floor = CASE WHEN {used} THEN {floor} {same}.fade_floor ELSE {key} END",
        )
    )


# Topics that were used after the change keep their values of ``USE``. Only the undo of a merge accepts such topics, and
# the undo of a run that has made topics.
_USED = f"({', '.join(f'v.{name}' for name in USE)}) IS DISTINCT FROM ({', '.join(f'w.{name}' for name in USE)})"
_VITALITY_SQL = f"""
UPDATE memory_vitality v
SET rung = b.rung, live = b.live, pinned = b.pinned, pin_reason = b.pin_reason,
    pinned_by_agent = coalesce(b.pinned_by_agent, false),
    {fading_sql("v", used=_USED, floor="CASE WHEN b.rung > 0 THEN v.fade ELSE v.fade_floor END")}
FROM memory_forgetaction a CROSS JOIN LATERAL jsonb_populate_record(NULL::memory_vitality, a.before) b
CROSS JOIN LATERAL jsonb_populate_record(NULL::memory_vitality, a.after) w
WHERE a.id = ANY(%(actions)s) AND v.topic_id = a.topic_id
"""

# A manual change sets updated_at, a run does not. The time of a later write is kept.
_TOPIC_SQL = f"""
WITH b AS MATERIALIZED (
    SELECT a.topic_id, (a.before->>'rung')::int AS rung, (a.before->>'merged_into')::uuid AS merged_into,
           (a.before->>'released_at')::timestamptz AS released_at,
           (a.before->>'updated_at')::timestamptz AS updated_at, (a.after->>'updated_at')::timestamptz AS set_to
    {_FROM}
)
UPDATE memory_topic t
SET rung = b.rung, released_at = b.released_at, merged_into_id = b.merged_into,
    updated_at = CASE WHEN t.updated_at = b.set_to THEN b.updated_at ELSE t.updated_at END
FROM b WHERE t.id = b.topic_id
"""

_EDITS_SQL = f"""
WITH edits (topic_id, at, before, actor) AS MATERIALIZED (
    SELECT t.id, %(now)s, jsonb_build_object('categories', t.categories), %(actor)s
    FROM memory_topic t JOIN (SELECT * {_FROM}) a
      ON a.topic_id = t.id AND to_jsonb(t.categories) <> a.before->'categories'
)
INSERT INTO memory_topicedit (topic_id, at, before, actor)
SELECT * FROM edits
"""
_CATEGORIES_SQL = f"""
UPDATE memory_topic t SET categories = b.categories
FROM (
    SELECT a.topic_id, ARRAY(SELECT jsonb_array_elements_text(a.before->'categories'))::varchar[] AS categories {_FROM}
) b
WHERE t.id = b.topic_id AND t.categories <> b.categories
"""

# A field that was folded again later keeps its cold revisions. Only runs change ``detached``, so the stored value is
# always restored.
_FIELD_SQL = f"""
UPDATE memory_field f
SET detached = (b.value->>1)::boolean,
    cold_through = CASE WHEN f.cold_through = (a.after->'fields'->b.key->>0)::int THEN (b.value->>0)::int
                        ELSE f.cold_through END
FROM (SELECT * {_FROM} AND a.before ? 'fields') a CROSS JOIN LATERAL jsonb_each(a.before->'fields') b
WHERE f.id = b.key::uuid AND f.topic_id = a.topic_id
"""

_SUMMARIES_SQL = f"""
WITH named AS (SELECT a.changes {_FROM}), away AS (
    UPDATE memory_fieldsummary s SET withdrawn_at = %(now)s
    FROM named CROSS JOIN LATERAL jsonb_array_elements_text(named.changes->'summaries') x (id)
    WHERE s.id = x.id::bigint AND s.withdrawn_at IS NULL
)
UPDATE memory_fieldsummary s SET withdrawn_at = NULL
FROM named CROSS JOIN LATERAL jsonb_array_elements_text(named.changes->'withdrawn') x (id)
WHERE s.id = x.id::bigint
"""

# Only the link that the manual change created is deleted.
_LINKS_SQL = f"""
DELETE FROM memory_link l USING (SELECT a.changes {_FROM}) a WHERE l.id = (a.changes->>'link_made')::bigint
"""

_RESTORE_SQL = (_EDITS_SQL, _CATEGORIES_SQL, _VITALITY_SQL, _TOPIC_SQL, _SUMMARIES_SQL, _FIELD_SQL, _LINKS_SQL)

_MARK_SQL = """
UPDATE memory_forgetaction a SET state = d.state, note = d.note
FROM unnest(%(actions)s::bigint[], %(states)s::text[], %(notes)s::text[]) AS d (id, state, note) WHERE a.id = d.id
"""

MAX_CONFLICTS = 1000

# What undo did to topics. The columns of a stage come first, because a run may move a topic and pin it.
_EFFECTS_SQL = f"""
SELECT a.action IN {MADE} AS made, CASE
    WHEN a.action IN {(MERGED, TOOK_IN)} THEN 'separate'
    WHEN (a.before->>'rung', a.before->>'released_at') IS DISTINCT FROM (a.after->>'rung', a.after->>'released_at')
    THEN CASE WHEN a.before->>'released_at' IS NOT NULL THEN 'released'
              ELSE {rung_label_sql("(a.before->>'rung')::int")} END
    WHEN a.before->'pinned' <> a.after->'pinned'
    THEN CASE WHEN (a.before->>'pinned')::boolean THEN 'pinned' ELSE 'unpinned' END
    ELSE '' END AS effect, count(*)
FROM memory_forgetaction a WHERE a.run_id = %s AND a.state = 'undone' GROUP BY made, effect
ORDER BY made, count(*) DESC, effect
"""

# The topics that have changed since the run, each with what changed.
Conflicts = list[tuple[uuid.UUID, str]]


class LockedAction(NamedTuple):
    """An action with the states of its locked topic as JSON: ``before`` and ``after`` the action, and now
    (``present``). ``same`` says whether undo can restore the topic."""

    id: int
    topic_id: uuid.UUID
    same: bool
    before: str
    after: str
    present: str
    action: str
    changes: str


# The functions that return what prevents the undo of merges, and that undo one, except for the states of its topics.
# They are imported by name, because merges belong to a higher layer.
MERGE_CONFLICTS = "memory.duplicates.unmerge.merge_conflicts"
MERGE_UNDO = "memory.duplicates.unmerge.merge_undo"
# The key in the counts of a run for the merges that were undone while others of the run stay.
UNDONE_MERGES = "undone"


@dataclass(frozen=True, slots=True)
class Undone:
    """The outcome of an undo. ``effects`` counts the topics by what they became again: a stage, released, pinned,
    unpinned, ``separate`` after a merge, or an empty text for other values. ``made`` counts the topics that the run had
    made, which are released. ``conflicts`` lists at most ``MAX_CONFLICTS`` skipped topics, each with the reason;
    ``conflict_count`` counts all."""

    effects: dict[str, int]
    made: int
    conflicts: Conflicts
    conflict_count: int

    @property
    def restored(self) -> int:
        """The number of topics that have their former state."""
        return sum(self.effects.values())


def run_revert(
    run_id: uuid.UUID, *, actor: str, reason: str = "", now: dt.datetime, only: Collection[uuid.UUID] | None = None
) -> Undone:
    """Undo a run and return the outcome. At most 19 SQL statements per ``BATCH`` topics, each batch in its own
    transaction.

    Each merge of a run is undone as a whole or not at all, in about thirty SQL statements. The run is undone when none
    of its merges is left. ``only`` limits the undo of such a run to the merges of these topics.

    Raises ``Conflict`` for a run that is not finished or has changed nothing. A second undo returns the first outcome.
    """
    run = ForgetRun.objects.get(pk=run_id)
    if run.status not in (ForgetRun.Status.DONE, ForgetRun.Status.UNDONE, ForgetRun.Status.FAILED):
        raise Conflict(f"Run {run_id} is {run.status}; only a finished run can be undone.")
    if not run.applied:
        raise Conflict(f"Run {run_id} changed nothing, so it cannot be undone.")
    merged = bool(run.counts.get(MERGED))
    after, restored = 0, 0
    conflicts: Conflicts = []
    while run.status != ForgetRun.Status.UNDONE and (
        step := _batch_undo(run_id, after, only=only, actor=actor, reason=reason, now=now)
    ):
        after, restored = step.last, restored + step.restored
        conflicts += step.conflicts
    if conflicts and not restored:
        return Undone({}, 0, conflicts, len(conflicts))
    with transaction.atomic():
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        if run.status != ForgetRun.Status.UNDONE:
            undone = undo_outcome(run_id)
            if merged:
                undone = replace(undone, conflicts=conflicts[:MAX_CONFLICTS], conflict_count=len(conflicts))
            if not merged or not run.actions.filter(state="applied").exists():
                run.counts.pop(UNDONE_MERGES, None)
                run.status, run.undone_at, run.undone_by = ForgetRun.Status.UNDONE, now, actor
            run.save(update_fields=["status", "undone_at", "undone_by", "counts"])
            AuditEvent.objects.create(
                at=now,
                actor=actor,
                action="run_undone",
                scope=run.scope,
                reason=reason,
                after={"run": str(run_id), "restored": undone.restored, "conflicts": undone.conflict_count},
            )
            return undone
    return undo_outcome(run_id)


def merges_blocked(run: ForgetRun) -> Conflicts:
    """Return what prevents the undo of the merges of a run. Four SQL statements."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_TAKE_SQL, {"run": run.pk, "after": 0, "only": None, "limit": None})
        return _merge_conflicts(cursor, _actions_lock(cursor, cursor.fetchall()))


def undo_outcome(run_id: uuid.UUID) -> Undone:
    """Return the outcome of the undo of a run. Two queries."""
    with connection.cursor() as cursor:
        cursor.execute(_EFFECTS_SQL, [run_id])
        counts = cursor.fetchall()
        cursor.execute(
            "SELECT topic_id, note, count(*) OVER () FROM memory_forgetaction "
            "WHERE run_id = %s AND state = 'conflict' ORDER BY place LIMIT %s",
            [run_id, MAX_CONFLICTS],
        )
        rows = cursor.fetchall()
    effects = {effect: times for made, effect, times in counts if not made}
    made = sum(times for made, _effect, times in counts if made)
    return Undone(effects, made, [(topic_id, note) for topic_id, note, _all in rows], rows[0][2] if rows else 0)


class _Step(NamedTuple):
    """One batch of an undo: the last place, the number of restored topics, and what prevents the undo of a merge."""

    last: int
    restored: int
    conflicts: Conflicts


def _actions_lock(cursor: CursorWrapper, taken: Sequence[tuple[int, uuid.UUID, int]]) -> list[LockedAction]:
    cursor.execute(_LOCK_SQL, {"topics": [row[1] for row in taken], "actions": [row[0] for row in taken]})
    return [LockedAction(*row) for row in cursor.fetchall()]


def _merge_conflicts(cursor: CursorWrapper, actions: Sequence[LockedAction]) -> Conflicts:
    check: Callable[[CursorWrapper, Sequence[LockedAction]], Conflicts] = import_string(MERGE_CONFLICTS)
    return check(cursor, actions)


def _batch_undo(
    run_id: uuid.UUID, after: int, *, only: Collection[uuid.UUID] | None, actor: str, reason: str, now: dt.datetime
) -> _Step | None:
    """Undo the next actions with a place above ``after``: at most ``BATCH``, or one merge. None if no action is
    left."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Because of this lock, only one undo of the run works at a time.
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        merged = bool(run.counts.get(MERGED))
        topics = None if only is None or not merged else list(only)
        cursor.execute(_TAKE_SQL, {"run": run_id, "after": after, "only": topics, "limit": PAIR if merged else BATCH})
        taken = cursor.fetchall()
        if not taken:
            return None
        last = int(taken[-1][2])
        actions = _actions_lock(cursor, taken)
        if merged:
            if conflicts := _merge_conflicts(cursor, actions):
                return _Step(last, 0, conflicts)
            merge_undo: Callable[[CursorWrapper, Sequence[LockedAction]], None] = import_string(MERGE_UNDO)
            merge_undo(cursor, actions)
            run.counts[UNDONE_MERGES] = run.counts.get(UNDONE_MERGES, 0) + 1
            run.save(update_fields=["counts"])
        states: dict[int, tuple[str, str]] = {}
        restorable: list[LockedAction] = []
        revived: list[uuid.UUID] = []
        hidden: list[uuid.UUID] = []
        for each in actions:
            before, present = json.loads(each.before), json.loads(each.present)
            if not each.same and not merged:
                states[each.id] = ("conflict", drift_words(json.loads(each.after), present))
                continue
            states[each.id] = ("undone", "")
            restorable.append(each)
            if before["live"] != present["live"]:
                (revived if before["live"] else hidden).append(each.topic_id)
        # The stored states do not contain the copies of ``live`` in the search tables.
        state_changes.live_set(cursor, revived, live=True)
        state_changes.live_set(cursor, hidden, live=False)
        if restorable:
            for statement in _RESTORE_SQL:
                cursor.execute(statement, {"actions": [each.id for each in restorable], "now": now, "actor": actor})
        if run.event in (BY_HAND, REVISE):
            undone_journal(cursor, [each.id for each in restorable], actor=actor, reason=reason, now=now)
            _pairs_reopen(run, [each.topic_id for each in restorable], actor=actor, reason=reason, now=now)
        cursor.execute(
            _MARK_SQL,
            {
                "actions": list(states),
                "states": [state for state, _note in states.values()],
                "notes": [note for _state, note in states.values()],
            },
        )
        return _Step(last, len(restorable), [])


def _pairs_reopen(run: ForgetRun, topics: Sequence[uuid.UUID], *, actor: str, reason: str, now: dt.datetime) -> None:
    """Let the pairs of restored topics wait for a decision again. Because they were decided before, they are not merged
    automatically. One SQL statement."""
    DuplicatePair.objects.filter(Q(one_id__in=topics) | Q(other_id__in=topics), run=run).update(
        state=DuplicatePair.State.OPEN, decided_at=now, decided_by=actor, reason=reason, run=None, survivor=None
    )
