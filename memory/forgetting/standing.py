"""Where a topic stands, changed by hand: archived, released, restored, pinned; each time with a journal row.

All copies of the state change in one transaction (``moves``), so that no read path can see a topic half archived.
"""

import datetime as dt
import itertools
import json
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.domain.errors import Conflict, NotVisible
from memory.forgetting import moves
from memory.models import Rung
from memory.policy.effective import policies_current

# A topic that somebody brings back is wanted: it starts again with the salience of a new one, or with what it had.
RESTORED_SALIENCE = 1.0

_LOCK = """
SELECT t.id, s.path, t.rung, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL,
       v.pinned, v.salience, v.reinforced_at
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
ORDER BY t.id FOR NO KEY UPDATE OF t, v
"""

_TOUCH = "UPDATE memory_topic SET updated_at = %(now)s WHERE id = ANY(%(ids)s)"

_JOURNAL = """
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT %(now)s, %(actor)s, %(action)s, d.id, d.scope, %(reason)s, d.before, %(after)s::jsonb
FROM unnest(%(ids)s::uuid[], %(scopes)s::text[], %(befores)s::jsonb[]) AS d (id, scope, before)
"""


class _Row(NamedTuple):
    """One locked topic as it stood."""

    id: uuid.UUID
    scope: str
    rung: int
    released: bool
    merged: bool
    pinned: bool
    salience: float
    reinforced_at: dt.datetime


def topics_archive(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Take topics out of retrieval: archived, salience halved, found by id and by ``include_archived`` only.

    Six statements. Raises ``NotVisible`` if one is unknown to the caller, ``Conflict`` if one is archived or gone
    already; then nothing is changed.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _rows_lock(cursor, ids, principal)
        for row in rows:
            if row.released or row.merged or row.rung == Rung.ARCHIVED:
                raise Conflict(f"Topic {row.id} is not active, so it cannot be archived.")
        cursor.execute(_TOUCH, {"ids": [row.id for row in rows], "now": now})
        policies = policies_current()
        moves.archive(cursor, {row.id: policies.knobs(row.scope).archive_attenuation for row in rows})
        _journal(cursor, rows, "archived", {"rung": Rung.ARCHIVED.label}, principal=principal, reason=reason, now=now)


def topics_restore(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Bring archived and released topics back: active, all fields attached and warm, with the salience of a new topic
    or what they had before, if that is more.

    About eleven statements. Raises ``NotVisible`` and ``Conflict`` as ``topics_archive`` does.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _rows_lock(cursor, ids, principal)
        for row in rows:
            if row.merged:
                raise Conflict(f"Topic {row.id} was merged into another, so it cannot be restored by itself.")
            if not row.released and row.rung != Rung.ARCHIVED:
                raise Conflict(f"Topic {row.id} is neither archived nor released, so there is nothing to restore.")
        cursor.execute(_TOUCH, {"ids": [row.id for row in rows], "now": now})
        knobs = {row.id: policies_current().knobs(row.scope) for row in rows}
        moves.revive(
            cursor,
            {row.id: knobs[row.id].archive_attenuation if row.rung == Rung.ARCHIVED else 1.0 for row in rows},
            least=RESTORED_SALIENCE,
            most={topic_id: each.max_field_history for topic_id, each in knobs.items()},
            now=now,
        )
        _journal(cursor, rows, "restored", {"rung": Rung.ACTIVE.label}, principal=principal, reason=reason, now=now)


def topics_release(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Take topics out of every query, by exact text too, until somebody restores them. Seven statements.

    Raises ``NotVisible`` if one is unknown to the caller, ``Conflict`` if one is released or merged already.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _rows_lock(cursor, ids, principal)
        for row in rows:
            if row.released or row.merged:
                raise Conflict(f"Topic {row.id} was released or merged before, so it cannot be released.")
        cursor.execute(_TOUCH, {"ids": [row.id for row in rows], "now": now})
        moves.release(cursor, [row.id for row in rows], now=now)
        _journal(cursor, rows, "released", {"released": True}, principal=principal, reason=reason, now=now)


def topics_pin(ids: Sequence[uuid.UUID], *, pinned: bool, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Protect topics from every forgetting, or end that. Three statements; pinning a pinned topic changes its reason.

    Raises ``NotVisible`` if one is unknown to the caller.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _rows_lock(cursor, ids, principal)
        moves.pins_set(cursor, {row.id: (pinned, reason if pinned else "") for row in rows})
        action = "pinned" if pinned else "unpinned"
        _journal(cursor, rows, action, {"pinned": pinned}, principal=principal, reason=reason, now=now)


def _rows_lock(cursor: CursorWrapper, ids: Sequence[uuid.UUID], principal: Principal) -> list[_Row]:
    cursor.execute(_LOCK, [list(ids)])
    rows = [row for row in itertools.starmap(_Row, cursor.fetchall()) if principal.sees(row.scope)]
    missing = sorted(set(ids) - {row.id for row in rows})
    if missing:
        raise NotVisible(f"There is no topic {missing[0]}.")
    return rows


def _journal(
    cursor: CursorWrapper, rows: Sequence[_Row], action: str, after: dict[str, object], *, principal: Principal,
    reason: str, now: dt.datetime,
) -> None:  # fmt: skip
    befores = [
        json.dumps(
            {
                "rung": Rung(row.rung).label,
                "released": row.released,
                "pinned": row.pinned,
                "salience": row.salience,
                "reinforced_at": row.reinforced_at.isoformat(),
            }
        )
        for row in rows
    ]
    cursor.execute(
        _JOURNAL,
        {
            "now": now, "actor": principal.actor, "action": action, "reason": reason, "after": json.dumps(after),
            "ids": [row.id for row in rows], "scopes": [row.scope for row in rows], "befores": befores,
        },
    )  # fmt: skip
