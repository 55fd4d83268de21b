"""Decisions about a pair: merge, keep both, supersede, and undo, each in one transaction with its audit events."""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from memory.access.principal import Principal
from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.duplicates.merge_apply import merge_vectors, merge_write
from memory.duplicates.merge_plan import Side, merge_plan, sides_read, survivor_first
from memory.duplicates.pair_locks import pairs_lapse, topics_lock
from memory.duplicates.pairs import pair_get
from memory.forgetting import state_changes
from memory.forgetting.manual_runs import HandAction, hand_run_write
from memory.forgetting.runs import run_undo
from memory.forgetting.undo import UNDONE_MERGES, Conflicts
from memory.models import AuditEvent, DuplicatePair, ForgetRun, Link
from memory.models.links import SUPERSEDES

MAX_AT_ONCE = 200
SUPERSEDED = "superseded"

State = DuplicatePair.State
# States in which a pair can be decided.
_UNDECIDED = (State.OPEN, State.KEPT)
_DECIDED_WORDS = {State.MERGED: "merged", State.SUPERSEDED: "superseded", State.KEPT: "kept as two"}


@dataclass(frozen=True, slots=True)
class PairsMerged:
    """The result of merging many pairs: (pair, run) for each merge, and (pair, reason) for each skipped pair. All
    merges have one run, unless two of them share a topic."""

    merged: list[tuple[uuid.UUID, ForgetRun]]
    skipped: list[tuple[uuid.UUID, str]]


class _Locked(NamedTuple):
    pair: DuplicatePair
    newer: Side
    older: Side
    states: dict[uuid.UUID, str]


def pair_merge(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Merge the two topics of a pair, and return the run by which the merge can be undone. About forty statements.

    The topic that was written to last survives. Raises ``NotAllowed``, ``NotVisible``, ``EmbeddingFailed``, and
    ``Conflict`` if the pair is already decided or one of the topics is inactive.
    """
    principal.require("operator")
    return _merge(pair_id, principal=principal, reason=reason, now=now)


def pairs_merge(
    pair_ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime, seen_at: dt.datetime
) -> PairsMerged:
    """Merge at most ``MAX_AT_ONCE`` pairs as one run, each in a transaction of its own. Pairs with a difference that
    matters, or with a topic that changed after ``seen_at``, are skipped. Raises ``NotAllowed`` and ``ValueRefused``."""
    principal.require("operator")
    if len(pair_ids) > MAX_AT_ONCE:
        raise ValueRefused(
            f"At most {MAX_AT_ONCE} pairs can be merged at once; {len(pair_ids):,} were given.",
            code=ProblemCode.TOO_LARGE,
        )
    done = PairsMerged([], [])
    run: ForgetRun | None = None
    for pair_id in dict.fromkeys(pair_ids):
        try:
            run = _merge(pair_id, principal=principal, reason=reason, now=now, seen_at=seen_at, earlier=run)
        except MemoryProblem as problem:
            done.skipped.append((pair_id, problem.sentence))
        else:
            done.merged.append((pair_id, run))
    return done


def pair_keep_both(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Record that both topics stay. The decision holds until one of the texts changes. Four statements.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if the pair is merged, superseded or lapsed.
    """
    principal.require("operator")
    with transaction.atomic():
        pair = pair_get(pair_id, principal=principal, lock=True)
        _check_undecided(pair)
        _decide(pair, State.KEPT, principal=principal, reason=reason, now=now)
        _pair_journal(pair, "kept_both", principal=principal, reason=reason, now=now)


def pair_supersede(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> ForgetRun:
    """Release the older topic, add a ``supersedes`` link from the newer topic to it, and return the run. About fifteen
    statements.

    Raises the errors of ``pair_merge``.
    """
    principal.require("operator")
    with transaction.atomic(), connection.cursor() as cursor:
        found = _lock(cursor, pair_id, principal=principal, now=now)
        newer, older = found.newer, found.older
        state_changes.release(cursor, [older.id], now=now)
        cursor.execute("UPDATE memory_topic SET updated_at = %s WHERE id = %s", [now, older.id])
        link, made = Link.objects.get_or_create(
            source_id=newer.id,
            target_id=older.id,
            kind=SUPERSEDES,
            defaults={"created_at": now, "actor": principal.actor},
        )
        changes: dict[str, Any] = {"released": True, "by": str(newer.id)}
        run = hand_run_write(
            cursor,
            [
                HandAction(
                    older.id,
                    older.scope,
                    found.states[older.id],
                    changes | {"link": link.pk},
                    changes=changes | ({"link_made": link.pk} if made else {}),
                )
            ],
            action=SUPERSEDED,
            actor=principal.actor,
            reason=reason,
            now=now,
        )
        AuditEvent.objects.create(
            at=now,
            actor=principal.actor,
            action=SUPERSEDES,
            topic_id=newer.id,
            scope=newer.scope,
            reason=reason,
            before={"released": False},
            after={"old": str(older.id), "link": link.pk, "run": str(run.pk)},
        )
        _decide(found.pair, State.SUPERSEDED, principal=principal, reason=reason, now=now, run=run, survivor=newer.id)
        pairs_lapse(older.id)
        return run


def pair_undo(pair_id: uuid.UUID, *, principal: Principal, reason: str, now: dt.datetime) -> Conflicts:
    """Undo a decision: restore both topics byte for byte, or change nothing and return the reasons.

    Raises ``NotAllowed``, ``NotVisible``, and ``Conflict`` if nothing was decided.
    """
    principal.require("operator")
    with transaction.atomic():
        pair = pair_get(pair_id, principal=principal, lock=True)
        if pair.state == State.KEPT:
            _decide(pair, State.OPEN, principal=principal, reason="", now=None)
            _pair_journal(pair, "kept_both_undone", principal=principal, reason=reason, now=now)
            return []
    if pair.state not in (State.MERGED, State.SUPERSEDED) or pair.run_id is None:
        raise Conflict("This pair has no decision that can be undone.")
    topics = (pair.one_id, pair.other_id)
    return run_undo(pair.run_id, principal=principal, reason=reason, now=now, only=topics).conflicts


def _merge(
    pair_id: uuid.UUID,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    seen_at: dt.datetime | None = None,
    earlier: ForgetRun | None = None,
) -> ForgetRun:
    """Merge a pair. If ``seen_at`` is given, merge only if the topics have not changed since then and no difference
    that matters was found. The merge becomes part of the run ``earlier``, if this run still stands and has none of the
    two topics."""
    pair = pair_get(pair_id, principal=principal)
    newer, older = survivor_first([pair.one, pair.other])
    vectors = merge_vectors(older.pk, newer.pk, now=now)
    with transaction.atomic(), connection.cursor() as cursor:
        run = _run_of_others(earlier, pair_id) if earlier else None
        found = _lock(cursor, pair_id, principal=principal, now=now)
        if seen_at is not None:
            _check_unchanged(found, seen_at)
        run = merge_write(
            cursor,
            merge_plan(found.newer, found.older),
            states=found.states,
            principal=principal,
            reason=reason,
            now=now,
            vectors=vectors,
            run=run,
        )
        _decide(found.pair, State.MERGED, principal=principal, reason=reason, now=now, run=run, survivor=found.newer.id)
        return run


def _run_of_others(earlier: ForgetRun, pair_id: uuid.UUID) -> ForgetRun | None:
    """Lock a run, and return it if it is not undone and has no action on the topics of the pair. Two statements."""
    sides = DuplicatePair.objects.filter(pk=pair_id)
    shared = Q(topic__in=sides.values("one_id")) | Q(topic__in=sides.values("other_id"))
    run = ForgetRun.objects.select_for_update(no_key=True).get(pk=earlier.pk)
    standing = run.status == ForgetRun.Status.DONE and UNDONE_MERGES not in run.counts
    return run if standing and not run.actions.filter(shared).exists() else None


def _check_unchanged(found: _Locked, seen_at: dt.datetime) -> None:
    if found.pair.held:
        raise Conflict("A difference that matters was found. Review this pair by itself.")
    if found.pair.state != State.OPEN:
        raise Conflict("This pair is already decided.")
    if max(found.newer.updated_at, found.older.updated_at) > seen_at:
        raise Conflict(
            "One of the two memories was changed after you opened the page.", code=ProblemCode.CHANGED_MEANWHILE
        )
    hashes = {found.pair.one_id: found.pair.one_hash, found.pair.other_id: found.pair.other_hash}
    if any(hashes[side.id] != side.text_hash for side in (found.newer, found.older)):
        raise Conflict("The text of one of the two memories has changed.", code=ProblemCode.CHANGED_MEANWHILE)


def _lock(cursor: CursorWrapper, pair_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> _Locked:
    """Lock topics, fields and pair in this order. Raises ``Conflict`` if the pair cannot be decided."""
    pair = pair_get(pair_id, principal=principal)
    ids = [pair.one_id, pair.other_id]
    states = topics_lock(cursor, ids)
    pair = pair_get(pair_id, principal=principal, lock=True)
    _check_undecided(pair)
    newer, older = survivor_first(list(sides_read(ids, now=now).values()))
    for side in (newer, older):
        if side.inactive_because:
            raise Conflict(
                f"Memory {side.id} {side.inactive_because}, so this pair cannot be decided.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
    if (newer.scope, newer.kind) != (older.scope, older.kind):
        raise Conflict("The two memories no longer have the same scope and kind.", code=ProblemCode.CHANGED_MEANWHILE)
    return _Locked(pair, newer, older, states)


def _check_undecided(pair: DuplicatePair) -> None:
    if pair.state == State.LAPSED:
        raise Conflict(
            "One of the two memories was changed or is inactive. The pair will be compared again.",
            code=ProblemCode.CHANGED_MEANWHILE,
        )
    if pair.state not in _UNDECIDED:
        raise Conflict(f"This pair is already {_DECIDED_WORDS.get(State(pair.state), 'decided')}.")


def _decide(
    pair: DuplicatePair,
    state: State,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime | None,
    run: ForgetRun | None = None,
    survivor: uuid.UUID | None = None,
) -> None:
    pair.state, pair.reason, pair.decided_at = state, reason, now
    pair.decided_by = principal.actor if now else ""
    pair.run, pair.survivor_id = run, survivor
    pair.save(update_fields=["state", "reason", "decided_at", "decided_by", "run", "survivor"])


def _pair_journal(pair: DuplicatePair, action: str, *, principal: Principal, reason: str, now: dt.datetime) -> None:
    AuditEvent.objects.bulk_create(
        AuditEvent(
            at=now,
            actor=principal.actor,
            action=action,
            topic_id=topic,
            scope=pair.scope.path,
            reason=reason,
            after={"pair": str(pair.pk), "with": str(other)},
        )
        for topic, other in ((pair.one_id, pair.other_id), (pair.other_id, pair.one_id))
    )
