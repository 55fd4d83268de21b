"""Manual changes of topics: archive, release, restore, pin and unpin.

All copies of the state change in one transaction (``state_changes``), so that no reader sees a half archived topic. The
same transaction writes the run and the audit events (``manual_runs``).
"""

import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.forgetting import state_changes
from memory.forgetting.manual_runs import HandAction, fields_read, hand_run_write
from memory.forgetting.topic_state import STATE
from memory.models import ForgetRun, Rung
from memory.policy.effective import policies_current

# The least salience of a restored topic, which is that of a new one.
RESTORED_SALIENCE = 1.0
# The most topics that one change may name. A change is one transaction, and other writers of its topics wait for it.
MOST_AT_ONCE = 10_000

# The scope is part of the query, so that rows outside the scope of the caller are not locked.
_READ_SQL = """
SELECT t.id, s.path, t.title, t.rung, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL,
       v.pinned, v.pinned_by_agent, v.salience, v.reinforced_at, t.updated_at, {state}
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%(ids)s) AND (%(within)s = '/' OR s.path = %(within)s OR starts_with(s.path, %(within)s || '/'))
ORDER BY t.id
"""
_LOCK = _READ_SQL.format(state=STATE) + "FOR NO KEY UPDATE OF t, v"
_LOOK = _READ_SQL.format(state="'{}'::jsonb")

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


Act = Callable[[CursorWrapper, Sequence[TopicState], str, dt.datetime, Principal], Mapping[uuid.UUID, dict[str, Any]]]


class _Verb(NamedTuple):
    """A manual action. ``action`` is its name in journals, ``refusal`` returns why it does not apply to a topic,
    ``act`` applies it, and ``after`` is the new state for the journal."""

    action: str
    refusal: Callable[[TopicState], str]
    act: Act
    after: dict[str, object]
    # Whether the action sets ``updated_at``, and whether it changes fields.
    touches: bool = True
    fields: bool = False


@dataclass(frozen=True, slots=True)
class TopicsPreview:
    """The topics that a verb would change, and the topics that it would not, each with the reason. A topic that does
    not exist has no state."""

    touched: list[TopicState]
    left: list[tuple[uuid.UUID, TopicState | None, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of a change of many topics: its run, or None if no topic was changed, and the topics that were not
    changed, each with the reason."""

    run: ForgetRun | None
    left: list[tuple[uuid.UUID, TopicState | None, str]]


def topics_archive(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Archive topics: their salience is attenuated, and only ids and ``include_archived`` find them.

    Return the run, which ``run_undo`` can undo. Ten statements. Raises ``NotVisible`` if a topic is outside the
    caller's scope, ``Conflict`` if a topic is already archived, released or merged; then nothing is changed.
    """
    return _all_move("archive", ids, principal=principal, reason=reason, now=now)


def topics_restore(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Restore archived and released topics: they become active, with all fields attached and warm and at least the
    salience of a new topic.

    Return the run. About fifteen statements. Raises ``NotVisible`` and ``Conflict`` as ``topics_archive`` does.
    """
    return _all_move("restore", ids, principal=principal, reason=reason, now=now)


def topics_release(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Release topics: no query finds them until they are restored. Return the run. Nine statements.

    Raises ``NotVisible`` if a topic is outside the caller's scope, ``Conflict`` if a topic is already released or
    merged.
    """
    return _all_move("release", ids, principal=principal, reason=reason, now=now)


def topics_pin(
    ids: Sequence[uuid.UUID], *, pinned: bool, principal: Principal, reason: str, now: dt.datetime
) -> ForgetRun:
    """Pin topics, which protects them from forgetting, or unpin them. Return the run. Five statements.

    Pinning a pinned topic changes the reason of its pin. Raises ``NotVisible`` if a topic is outside the caller's
    scope, and ``NotAllowed`` if an agent unpins a topic that was pinned by an operator or a rule.
    """
    return _all_move("pin" if pinned else "unpin", ids, strict=False, principal=principal, reason=reason, now=now)


def topics_preview(verb: str, ids: Sequence[uuid.UUID], *, principal: Principal) -> TopicsPreview:
    """Return which topics ``verb``, one of ``VERBS``, would change, and which it would not and why, in the given order.

    One query. Raises ``ValueRefused`` for more than ``MOST_AT_ONCE``.
    """
    _check_count(ids)
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, {"ids": list(ids), "within": principal.scope})
        return _split(verb, ids, cursor.fetchall())


def topics_states(ids: Sequence[uuid.UUID], *, principal: Principal) -> list[TopicState]:
    """Return the states of topics in the given order, without those outside the caller's scope.

    One query. Raises ``ValueRefused`` for more than ``MOST_AT_ONCE``.
    """
    _check_count(ids)
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, {"ids": list(ids), "within": principal.scope})
        known = {row.id: row for row in itertools.starmap(TopicState, cursor.fetchall())}
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
    """Apply ``verb``, one of ``VERBS``, to as many of these topics as possible, in one transaction.

    The result lists the other topics with the reason: the verb does not apply, or the topic changed after ``seen_at``,
    when the caller decided. Pinning does not set the time of the last change, so ``pinned`` names the topics that were
    pinned at ``seen_at``; with None, pins are not compared. As many statements as the verb needs. Raises
    ``NotAllowed`` and ``ValueRefused``.
    """
    principal.require("operator")
    _check_count(ids)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, {"ids": list(ids), "within": principal.scope})
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
        raise ValueRefused("Name at least one topic.", code=ProblemCode.NOTHING_NAMED)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, {"ids": list(ids), "within": principal.scope})
        rows = list(itertools.starmap(TopicState, cursor.fetchall()))
        missing = sorted(set(ids) - {row.id for row in rows})
        if missing:
            raise NotVisible(f"Topic {missing[0]} does not exist.", code=ProblemCode.TOPIC_NOT_FOUND)
        if verb == "unpin" and not principal.covers("operator"):
            _pins_check(rows)
        for row in rows:
            if strict and (why := VERBS[verb].refusal(row)):
                raise Conflict(
                    f"Topic {row.id} {why}, so it cannot be {VERBS[verb].action}.", code=ProblemCode.WRONG_STANDING
                )
        return _move(cursor, verb, rows, principal=principal, reason=reason, now=now)


def _pins_check(rows: Sequence[TopicState]) -> None:
    protected = next((row for row in rows if row.pinned and not row.pinned_by_agent), None)
    if protected is not None:
        raise NotAllowed(
            f"Topic {protected.id} was pinned by an operator or a rule; only an operator key can unpin it.",
            code=ProblemCode.ROLE_TOO_LOW,
        )


def _split(verb: str, ids: Sequence[uuid.UUID], found: Sequence[tuple[Any, ...]]) -> TopicsPreview:
    """Return which of these topics ``verb`` would change. ``found`` are the rows of those in the caller's scope."""
    known = {row.id: row for row in itertools.starmap(TopicState, found)}
    preview = TopicsPreview([])
    for topic_id in dict.fromkeys(ids):
        row = known.get(topic_id)
        if row is None:
            preview.left.append((topic_id, None, "This topic does not exist."))
        elif why := VERBS[verb].refusal(row):
            preview.left.append((topic_id, row, f"It {why}."))
        else:
            preview.touched.append(row)
    return preview


def _check_count(ids: Sequence[uuid.UUID]) -> None:
    if len(ids) > MOST_AT_ONCE:
        raise ValueRefused(
            f"At most {MOST_AT_ONCE:,} topics can be changed at once, not {len(ids):,}. Narrow the filter.",
            code=ProblemCode.TOO_MANY_TOPICS,
        )


def _move(
    cursor: CursorWrapper, verb: str, rows: Sequence[TopicState], *, principal: Principal, reason: str, now: dt.datetime
) -> ForgetRun:
    """Apply ``verb`` to locked topics and write both journals."""
    chosen = VERBS[verb]
    ids = [row.id for row in rows]
    fields = fields_read(cursor, ids) if chosen.fields else {}
    if chosen.touches:
        cursor.execute(_TOUCH_SQL, {"ids": ids, "now": now})
    changes = chosen.act(cursor, rows, reason, now, principal)
    actions = [
        HandAction(row.id, row.scope, row.state, chosen.after, fields.get(row.id), changes.get(row.id, {}))
        for row in rows
    ]
    return hand_run_write(cursor, actions, action=chosen.action, actor=principal.actor, reason=reason, now=now)


def _archive(
    cursor: CursorWrapper, rows: Sequence[TopicState], _reason: str, _now: dt.datetime, _principal: Principal
) -> dict[uuid.UUID, Any]:
    policies = policies_current()
    state_changes.archive(cursor, {row.id: policies.knobs(row.scope).archive_attenuation for row in rows})
    return {}


def _restore(
    cursor: CursorWrapper, rows: Sequence[TopicState], _reason: str, now: dt.datetime, _principal: Principal
) -> dict[uuid.UUID, Any]:
    policies = policies_current()
    knobs = {scope: policies.knobs(scope) for scope in {row.scope for row in rows}}
    withdrawn = state_changes.revive(
        cursor,
        {row.id: knobs[row.scope].archive_attenuation if row.rung == Rung.ARCHIVED else 1.0 for row in rows},
        least=RESTORED_SALIENCE,
        most={row.id: knobs[row.scope].max_field_history for row in rows},
        now=now,
    )
    return {topic_id: {"withdrawn": summaries} for topic_id, summaries in withdrawn.items()}


def _release(
    cursor: CursorWrapper, rows: Sequence[TopicState], _reason: str, now: dt.datetime, _principal: Principal
) -> dict[uuid.UUID, Any]:
    state_changes.release(cursor, [row.id for row in rows], now=now)
    return {row.id: {"released": True} for row in rows}


def _pin(
    cursor: CursorWrapper, rows: Sequence[TopicState], reason: str, _now: dt.datetime, principal: Principal
) -> dict[uuid.UUID, Any]:
    by_agent = not principal.covers("operator")
    state_changes.pins_set(cursor, {row.id: (True, reason) for row in rows}, by_agent=by_agent)
    return {row.id: {"pinned": True} for row in rows}


def _unpin(
    cursor: CursorWrapper, rows: Sequence[TopicState], _reason: str, _now: dt.datetime, _principal: Principal
) -> dict[uuid.UUID, Any]:
    state_changes.pins_set(cursor, {row.id: (False, "") for row in rows})
    return {row.id: {"pinned": False} for row in rows}


def _release_refusal(row: TopicState) -> str:
    return "was merged into another topic" if row.merged else "was released before" if row.released else ""


def _archive_refusal(row: TopicState) -> str:
    return _release_refusal(row) or ("is archived already" if row.rung == Rung.ARCHIVED else "")


def _restore_refusal(row: TopicState) -> str:
    if row.merged:
        return "was merged into another topic"
    return "" if row.released or row.rung == Rung.ARCHIVED else "is neither archived nor released"


VERBS = {
    "archive": _Verb("archived", _archive_refusal, _archive, {"rung": Rung.ARCHIVED.label}),
    "restore": _Verb("restored", _restore_refusal, _restore, {"rung": Rung.ACTIVE.label}, fields=True),
    "release": _Verb("released", _release_refusal, _release, {"released": True}),
    "pin": _Verb("pinned", lambda row: "is pinned already" if row.pinned else "", _pin, {"pinned": True}, False),
    "unpin": _Verb("unpinned", lambda row: "" if row.pinned else "is not pinned", _unpin, {"pinned": False}, False),
}
