"""Manual changes: archive, release, restore, pin and unpin. One transaction makes the change and journals it as a run
with audit events."""

import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.core.policy_values import Knobs
from memory.core.problem_codes import ProblemCode
from memory.forgetting import state_changes
from memory.forgetting.manual_runs import HandAction, fields_read, hand_run_write
from memory.forgetting.topic_state import STATE
from memory.models import ForgetRun, Rung
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.policy.effective import policies_current

# A restored topic has at least this salience, which is the salience of a new topic.
RESTORED_SALIENCE = 1.0
# One change may name at most this many topics, because other writers of the topics wait until its transaction ends.
MAX_AT_ONCE = 10_000

# The scope is part of the query, so that rows outside the scope of the caller are not locked.
_STATES_SQL = """
SELECT t.id, s.path, {label}, t.rung, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL,
       v.pinned, v.pinned_by_agent, v.salience, v.reinforced_at, t.updated_at, {state}
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%(ids)s) AND (%(within)s = '/' OR s.path = %(within)s OR starts_with(s.path, %(within)s || '/'))
ORDER BY t.id
"""
_LOCK_SQL = _STATES_SQL.format(state=STATE, label=label_sql()) + "FOR NO KEY UPDATE OF t, v"
_READ_SQL = _STATES_SQL.format(state="'{}'::jsonb", label=label_sql())

_TOUCH_SQL = "UPDATE memory_topic SET updated_at = %(now)s WHERE id = ANY(%(ids)s)"


class TopicState(NamedTuple):
    """The state of one topic."""

    id: uuid.UUID
    scope: str
    title: str
    rung: int
    released: bool
    merged: bool
    pinned: bool
    pinned_by_agent: bool
    salience: float
    reinforced_at: dt.datetime
    updated_at: dt.datetime
    state: str = "{}"


class _Verb(NamedTuple):
    """A manual action. ``action`` is its name in journals, ``refusal`` returns why it does not apply to a topic, and
    ``after`` is the new state for the journal."""

    action: str
    refusal: Callable[[TopicState], str]
    after: dict[str, object]
    # Whether the action sets ``updated_at``, and whether it changes fields.
    touches: bool = True
    fields: bool = False


@dataclass(frozen=True, slots=True)
class TopicsPreview:
    """``touched`` are the topics that a verb would change. ``left`` lists the other topics as (id, state, reason). The
    state of a topic that does not exist is None."""

    touched: list[TopicState]
    left: list[tuple[uuid.UUID, TopicState | None, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The run of a change, or None if nothing changed. ``left`` lists the unchanged topics as (id, state, reason)."""

    run: ForgetRun | None
    left: list[tuple[uuid.UUID, TopicState | None, str]]


def topics_archive(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Archive topics, and return the run, which ``run_undo`` can undo. Ten SQL statements. Raises ``NotVisible``, and
    ``Conflict`` if a topic is already archived, released or merged; then nothing is changed."""
    return _all_move("archive", ids, principal=principal, reason=reason, now=now)


def topics_restore(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Restore archived and released topics, with all fields and at least the salience of a new topic. Return the run.
    About fifteen SQL statements. Raises ``NotVisible`` and ``Conflict``."""
    return _all_move("restore", ids, principal=principal, reason=reason, now=now)


def topics_release(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Release topics, and return the run. Nine SQL statements. Raises ``NotVisible``, and ``Conflict`` if a topic is
    already released or merged."""
    return _all_move("release", ids, principal=principal, reason=reason, now=now)


def topics_pin(
    ids: Sequence[uuid.UUID], *, pinned: bool, principal: Principal, reason: str, now: dt.datetime
) -> ForgetRun:
    """Pin or unpin topics, and return the run. Five SQL statements. Pinning a pinned topic changes its reason. Raises
    ``NotVisible``, and ``NotAllowed`` if an agent unpins a topic that an operator or a rule pinned."""
    return _all_move("pin" if pinned else "unpin", ids, strict=False, principal=principal, reason=reason, now=now)


def topics_preview(verb: str, ids: Sequence[uuid.UUID], *, principal: Principal) -> TopicsPreview:
    """Return the topics that ``verb`` (one of ``VERBS``) would change, and the other topics with reasons, in the order
    of ``ids``. One query. Raises ``ValueRefused`` for more than ``MAX_AT_ONCE`` topics."""
    _check_count(ids)
    return _split(verb, ids, rows_read(_READ_SQL, {"ids": list(ids), "within": principal.scope}))


def topics_states(ids: Sequence[uuid.UUID], *, principal: Principal) -> list[TopicState]:
    """Return the states of topics in the order of ``ids``. Topics outside the caller's scope are left out. One query.
    Raises ``ValueRefused`` for more than ``MAX_AT_ONCE`` topics."""
    _check_count(ids)
    known = {
        row.id: row
        for row in itertools.starmap(TopicState, rows_read(_READ_SQL, {"ids": list(ids), "within": principal.scope}))
    }
    return [known[topic_id] for topic_id in dict.fromkeys(ids) if topic_id in known]


def topics_move(
    verb: str,
    ids: Sequence[uuid.UUID],
    *,
    seen_at: dt.datetime,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    pinned: Collection[uuid.UUID] | None = None,
) -> MoveResult:
    """Apply ``verb`` (one of ``VERBS``) to as many of the topics as possible, in one transaction.

    Topics that changed after ``seen_at`` are left unchanged. Pinning does not set ``updated_at``, so ``pinned``
    contains the topics that were pinned at ``seen_at``. If ``pinned`` is None, pins are not compared. Raises
    ``NotAllowed`` and ``ValueRefused``.
    """
    principal.require("operator")
    _check_count(ids)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SQL, {"ids": list(ids), "within": principal.scope})
        found = _split(verb, ids, cursor.fetchall())
        rows, left = [], found.left
        for row in found.touched:
            if row.updated_at > seen_at:
                left.append((row.id, row, "It was changed while you looked."))
            elif pinned is not None and row.pinned != (row.id in pinned):
                left.append((row.id, row, f"It was {'pinned' if row.pinned else 'unpinned'} while you looked."))
            else:
                rows.append(row)
        if not rows:
            return MoveResult(None, left)
        return MoveResult(_move(cursor, verb, rows, principal=principal, reason=reason, now=now), left)


def _all_move(
    verb: str, ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime, strict: bool = True
) -> ForgetRun:
    if not ids:
        raise ValueRefused("Name at least one memory.", code=ProblemCode.NOTHING_NAMED)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SQL, {"ids": list(ids), "within": principal.scope})
        rows = list(itertools.starmap(TopicState, cursor.fetchall()))
        missing = sorted(set(ids) - {row.id for row in rows})
        if missing:
            raise NotVisible(f"Memory {missing[0]} does not exist.", code=ProblemCode.TOPIC_NOT_FOUND)
        if verb == "unpin" and not principal.covers("operator"):
            _pins_check(rows)
        for row in rows:
            if strict and (why := VERBS[verb].refusal(row)):
                raise Conflict(
                    f"Memory {row.id} {why}, so it cannot be {VERBS[verb].action}.", code=ProblemCode.WRONG_STANDING
                )
        return _move(cursor, verb, rows, principal=principal, reason=reason, now=now)


def _pins_check(rows: Sequence[TopicState]) -> None:
    protected = next((row for row in rows if row.pinned and not row.pinned_by_agent), None)
    if protected is not None:
        raise NotAllowed(
            f"Memory {protected.id} was pinned by an operator or a rule; only an operator key can unpin it.",
            code=ProblemCode.ROLE_TOO_LOW,
        )


def _split(verb: str, ids: Sequence[uuid.UUID], found: Sequence[tuple[Any, ...]]) -> TopicsPreview:
    """Return which topics of ``ids`` ``verb`` would change, and the others with reasons. ``found`` are the rows that
    the caller may see."""
    known = {row.id: row for row in itertools.starmap(TopicState, found)}
    preview = TopicsPreview([])
    for topic_id in dict.fromkeys(ids):
        row = known.get(topic_id)
        if row is None:
            preview.left.append((topic_id, None, "This memory does not exist."))
        elif why := VERBS[verb].refusal(row):
            preview.left.append((topic_id, row, f"It {why}."))
        else:
            preview.touched.append(row)
    return preview


def _check_count(ids: Sequence[uuid.UUID]) -> None:
    if len(ids) > MAX_AT_ONCE:
        raise ValueRefused(
            f"At most {MAX_AT_ONCE:,} memories can be changed at once, not {len(ids):,}. Narrow the filter.",
            code=ProblemCode.TOO_MANY_TOPICS,
        )


def _move(
    cursor: CursorWrapper, verb: str, rows: Sequence[TopicState], *, principal: Principal, reason: str, now: dt.datetime
) -> ForgetRun:
    chosen = VERBS[verb]
    ids = [row.id for row in rows]
    fields = fields_read(cursor, ids) if chosen.fields else {}
    if chosen.touches:
        cursor.execute(_TOUCH_SQL, {"ids": ids, "now": now})
    changes = _act(cursor, verb, rows, principal=principal, reason=reason, now=now)
    actions = [
        HandAction(row.id, row.scope, row.state, chosen.after, fields.get(row.id), changes.get(row.id, {}))
        for row in rows
    ]
    return hand_run_write(cursor, actions, action=chosen.action, actor=principal.actor, reason=reason, now=now)


def _act(
    cursor: CursorWrapper, verb: str, rows: Sequence[TopicState], *, principal: Principal, reason: str, now: dt.datetime
) -> dict[uuid.UUID, dict[str, Any]]:
    """Change the topics. Return what changed besides the rung, keyed by topic id."""
    match verb:
        case "archive":
            knobs = _knobs(rows)
            state_changes.archive(cursor, {row.id: knobs[row.id].archive_attenuation for row in rows})
            return {}
        case "restore":
            knobs = _knobs(rows)
            archived = {row.id for row in rows if row.rung == Rung.ARCHIVED}
            withdrawn = state_changes.revive(
                cursor,
                {row.id: knobs[row.id].archive_attenuation if row.id in archived else 1.0 for row in rows},
                least=RESTORED_SALIENCE,
                most={row.id: knobs[row.id].max_field_history for row in rows},
                now=now,
            )
            return {topic_id: {"withdrawn": summaries} for topic_id, summaries in withdrawn.items()}
        case "release":
            state_changes.release(cursor, [row.id for row in rows], now=now)
            return {row.id: {"released": True} for row in rows}
    pinned = verb == "pin"
    by_agent = pinned and not principal.covers("operator")
    state_changes.pins_set(cursor, {row.id: (pinned, reason if pinned else "") for row in rows}, by_agent=by_agent)
    return {row.id: {"pinned": pinned} for row in rows}


def _knobs(rows: Sequence[TopicState]) -> dict[uuid.UUID, Knobs]:
    policies = policies_current()
    return {row.id: policies.knobs(row.scope) for row in rows}


def _release_refusal(row: TopicState) -> str:
    return "was merged into another memory" if row.merged else "was released before" if row.released else ""


def _archive_refusal(row: TopicState) -> str:
    return _release_refusal(row) or ("is archived already" if row.rung == Rung.ARCHIVED else "")


def _restore_refusal(row: TopicState) -> str:
    if row.merged:
        return "was merged into another memory"
    return "" if row.released or row.rung == Rung.ARCHIVED else "is neither archived nor released"


VERBS = {
    "archive": _Verb("archived", _archive_refusal, {"rung": Rung.ARCHIVED.label}),
    "restore": _Verb("restored", _restore_refusal, {"rung": Rung.ACTIVE.label}, fields=True),
    "release": _Verb("released", _release_refusal, {"released": True}),
    "pin": _Verb("pinned", lambda row: "is pinned already" if row.pinned else "", {"pinned": True}, False),
    "unpin": _Verb("unpinned", lambda row: "" if row.pinned else "is not pinned", {"pinned": False}, False),
}
