"""Manual changes: archive, release, restore, pin and unpin. A change is made in one transaction and journaled as a run
with audit events, or planned as a run and applied later."""

import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.core.policy_values import Knobs
from memory.core.problem_codes import ProblemCode
from memory.forgetting.apply import Action, actions_apply
from memory.forgetting.manual_runs import HandPlan, hand_plan_write, hand_run_create
from memory.models import ForgetRun, Rung
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.policy.effective import policies_current

# A change that is made at once may name at most this many topics, because other writers of the topics wait until its
# transaction ends. A plan is applied in batches.
MAX_AT_ONCE = 10_000
MAX_PLANNED = 100_000

# The scope is part of the query, so that rows outside the scope of the caller are not locked.
_STATES_SQL = """
SELECT t.id, s.path, {label}, t.rung, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL,
       v.pinned, v.pinned_by_agent, v.salience, v.reinforced_at, t.updated_at
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%(ids)s) AND (%(within)s = '/' OR s.path = %(within)s OR starts_with(s.path, %(within)s || '/'))
ORDER BY t.id
"""
_READ_SQL = _STATES_SQL.format(label=label_sql())
_LOCK_SQL = _READ_SQL + "FOR NO KEY UPDATE OF t, v"


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


class _Verb(NamedTuple):
    """A manual action. ``action`` is its name in journals, ``refusal`` returns why it does not apply to a topic, and
    ``rung`` is the new rung, or None if the rung stays."""

    action: str
    refusal: Callable[[TopicState], str]
    rung: Rung | None = None


# The topics that a change skips, each with the reason.
Skipped = list[tuple[uuid.UUID, str]]


class MoveResult(NamedTuple):
    """The run of a change, or None if no topic can be changed; and the skipped topics."""

    run: ForgetRun | None
    left: Skipped


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


def topics_plan(
    verb: str, ids: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime, seen_at: dt.datetime | None = None
) -> MoveResult:
    """Plan ``verb`` (one of ``VERBS``) for as many of the topics as possible, at most ``MAX_PLANNED``. Nothing changes
    until ``run_begin`` applies the run. The run also lists the topics that it skips: those that changed after
    ``seen_at``, and those that change before the run is applied. Five SQL statements. Raises ``NotAllowed`` and
    ``ValueRefused``."""
    principal.require("operator")
    _check_count(ids, MAX_PLANNED)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SQL, {"ids": list(ids), "within": principal.scope})
        rows, left = _split(verb, ids, cursor.fetchall(), seen_at=seen_at)
        if not rows:
            return MoveResult(None, left)
        run = _run_create(verb, rows, at_once=False, principal=principal, now=now)
        plans = _plans(verb, rows, principal=principal) + [HandPlan(topic_id, {}, why) for topic_id, why in left]
        _plans_write(cursor, run, verb, plans, reason="")
        return MoveResult(run, left)


def topics_states(ids: Sequence[uuid.UUID], *, principal: Principal) -> list[TopicState]:
    """Return the states of topics in the order of ``ids``. Topics outside the caller's scope are left out. One query.
    Raises ``ValueRefused`` for more than ``MAX_AT_ONCE`` topics."""
    _check_count(ids, MAX_AT_ONCE)
    known = {
        row.id: row
        for row in itertools.starmap(TopicState, rows_read(_READ_SQL, {"ids": list(ids), "within": principal.scope}))
    }
    return [known[topic_id] for topic_id in dict.fromkeys(ids) if topic_id in known]


def topics_move(
    verb: str, ids: Sequence[uuid.UUID], *, seen_at: dt.datetime, principal: Principal, reason: str, now: dt.datetime
) -> MoveResult:
    """Apply ``verb`` (one of ``VERBS``) to as many of the topics as possible, in one transaction. Topics that changed
    after ``seen_at`` are left unchanged. Raises ``NotAllowed`` and ``ValueRefused``."""
    principal.require("operator")
    _check_count(ids, MAX_AT_ONCE)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SQL, {"ids": list(ids), "within": principal.scope})
        rows, left = _split(verb, ids, cursor.fetchall(), seen_at=seen_at)
        run = _move(cursor, verb, rows, principal=principal, reason=reason, now=now) if rows else None
        return MoveResult(run, left)


def _all_move(
    verb: str, ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime, strict: bool = True
) -> ForgetRun:
    if not ids:
        raise ValueRefused("Name at least one memory.", code=ProblemCode.MISSING_MEMBER)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SQL, {"ids": list(ids), "within": principal.scope})
        rows = list(itertools.starmap(TopicState, cursor.fetchall()))
        missing = sorted(set(ids) - {row.id for row in rows})
        if missing:
            raise NotVisible(f"Memory {missing[0]} does not exist.")
        if verb == "unpin" and not principal.covers("operator"):
            _pins_check(rows)
        for row in rows:
            if strict and (why := VERBS[verb].refusal(row)):
                raise Conflict(f"Memory {row.id} {why}, so it cannot be {VERBS[verb].action}.")
        return _move(cursor, verb, rows, principal=principal, reason=reason, now=now)


def _pins_check(rows: Sequence[TopicState]) -> None:
    protected = next((row for row in rows if row.pinned and not row.pinned_by_agent), None)
    if protected is not None:
        raise NotAllowed(
            f"Memory {protected.id} was pinned by an operator or a rule; only an operator key can unpin it.",
            code=ProblemCode.ROLE_TOO_LOW,
        )


def _split(
    verb: str, ids: Sequence[uuid.UUID], found: Sequence[tuple[Any, ...]], *, seen_at: dt.datetime | None
) -> tuple[list[TopicState], Skipped]:
    """Return which topics of ``ids`` ``verb`` would change, and the others with reasons. ``found`` are the rows that
    the caller may see. Topics that changed after ``seen_at`` are not changed."""
    known = {row.id: row for row in itertools.starmap(TopicState, found)}
    rows: list[TopicState] = []
    left: Skipped = []
    for topic_id in dict.fromkeys(ids):
        row = known.get(topic_id)
        if row is None:
            left.append((topic_id, "This memory does not exist."))
        elif why := VERBS[verb].refusal(row):
            left.append((topic_id, f"It {why}."))
        elif seen_at is not None and row.updated_at > seen_at:
            left.append((topic_id, "It was changed since."))
        else:
            rows.append(row)
    return rows, left


def _check_count(ids: Sequence[uuid.UUID], most: int) -> None:
    if len(ids) > most:
        raise ValueRefused(
            f"At most {most:,} memories can be changed at once, not {len(ids):,}. Narrow the filter.",
            code=ProblemCode.TOO_LARGE,
        )


def _move(
    cursor: CursorWrapper, verb: str, rows: Sequence[TopicState], *, principal: Principal, reason: str, now: dt.datetime
) -> ForgetRun:
    """Plan a change of locked topics and apply it at once."""
    run = _run_create(verb, rows, at_once=True, principal=principal, now=now)
    actions = _plans_write(cursor, run, verb, _plans(verb, rows, principal=principal), reason=reason)
    actions_apply(cursor, actions, {}, run=run, now=now)
    return run


def _run_create(
    verb: str, rows: Sequence[TopicState], *, at_once: bool, principal: Principal, now: dt.datetime
) -> ForgetRun:
    scopes, counts = {row.scope for row in rows}, {VERBS[verb].action: len(rows)}
    return hand_run_create(scopes, counts, planned=len(rows), at_once=at_once, actor=principal.actor, now=now)


def _plans(verb: str, rows: Sequence[TopicState], *, principal: Principal) -> list[HandPlan]:
    knobs = _knobs(rows) if VERBS[verb].rung is not None else {}
    plans: list[HandPlan] = []
    for row in rows:
        changes: dict[str, Any] = {}
        match verb:
            case "archive":
                changes = {"attenuation": knobs[row.id].archive_attenuation}
            case "restore":
                attenuation = knobs[row.id].archive_attenuation if row.rung == Rung.ARCHIVED else 1.0
                changes = {"revive": {"attenuation": attenuation, "max_history": knobs[row.id].max_field_history}}
            case "release":
                changes = {"released": True}
            case "pin" | "unpin":
                changes = {"pinned": verb == "pin"}
                if verb == "pin" and not principal.covers("operator"):
                    changes["by_agent"] = True
        plans.append(HandPlan(row.id, changes))
    return plans


def _plans_write(
    cursor: CursorWrapper, run: ForgetRun, verb: str, plans: Sequence[HandPlan], *, reason: str
) -> list[Action]:
    chosen = VERBS[verb]
    written = hand_plan_write(cursor, run, plans, action=chosen.action, reason=reason, rung=chosen.rung)
    return [Action.of_row(row) for row in written]


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
    "archive": _Verb("archived", _archive_refusal, Rung.ARCHIVED),
    "restore": _Verb("restored", _restore_refusal, Rung.ACTIVE),
    "release": _Verb("released", _release_refusal),
    "pin": _Verb("pinned", lambda row: "is pinned already" if row.pinned else ""),
    "unpin": _Verb("unpinned", lambda row: "" if row.pinned else "is not pinned"),
}
