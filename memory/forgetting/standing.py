"""Where a topic stands: archived or not, pinned or not. The only code that changes it, each time with a journal row.

``rung`` is kept on Topic and repeated on Vitality; ``live`` on Vitality, TopicVector and TopicDocument follows from it.
All of them change in one transaction here, so that no read path can see a topic half archived.
"""

import datetime as dt
import itertools
import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.access.principal import Principal
from memory.domain.errors import Conflict, NotVisible
from memory.models import Rung
from memory.models.expressions import fade_key_sql, faded_sql, salience_effective_sql

ARCHIVE_ATTENUATION = 0.5
# A topic that somebody brings back is wanted: it starts again with the salience of a new one, or with what it had.
RESTORED_SALIENCE = 1.0

_LOCK = """
SELECT t.id, s.path, t.rung, t.released_at IS NOT NULL OR t.merged_into_id IS NOT NULL,
       v.pinned, v.salience, v.reinforced_at
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
ORDER BY t.id FOR NO KEY UPDATE OF t, v
"""

_RUNG = "UPDATE memory_topic SET rung = %(rung)s, updated_at = %(now)s WHERE id = ANY(%(ids)s)"

_LIVE = (
    "UPDATE memory_topicvector SET live = %(live)s WHERE topic_id = ANY(%(ids)s)",
    "UPDATE memory_topicdocument SET live = %(live)s, uncounted = true WHERE topic_id = ANY(%(ids)s)",
)

# Halving the salience at the last reinforcement halves it at every moment; the clock keeps telling of the last use.
_HALVED = faded_sql("salience", "%(factor)s")
_ATTENUATE = f"""
UPDATE memory_vitality
SET rung = %(rung)s, live = false, salience = {_HALVED},
    fade = {fade_key_sql(_HALVED, reinforced_at="reinforced_at", half_life="half_life")},
    fade_floor = {fade_key_sql(_HALVED, reinforced_at="reinforced_at", half_life="half_life")}
WHERE topic_id = ANY(%(ids)s)
"""

_REVIVE = f"""
WITH revived AS (
    SELECT v.topic_id,
           greatest({salience_effective_sql("v", "%(now)s::timestamptz")} / %(factor)s, %(least)s) AS salience
    FROM memory_vitality v WHERE v.topic_id = ANY(%(ids)s)
)
UPDATE memory_vitality v
SET rung = 0, live = true, salience = r.salience, reinforced_at = %(now)s,
    fade = {fade_key_sql("r.salience", reinforced_at="%(now)s::timestamptz", half_life="v.half_life")},
    fade_floor = {fade_key_sql("r.salience", reinforced_at="%(now)s::timestamptz", half_life="v.half_life")}
FROM revived r WHERE v.topic_id = r.topic_id
"""

_PIN = "UPDATE memory_vitality SET pinned = %(pinned)s, pin_reason = %(reason)s WHERE topic_id = ANY(%(ids)s)"

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
    gone: bool
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
            if row.gone or row.rung == Rung.ARCHIVED:
                raise Conflict(f"Topic {row.id} is not active, so it cannot be archived.")
        wanted: dict[str, Any] = {
            "ids": [row.id for row in rows], "rung": int(Rung.ARCHIVED), "now": now, "live": False,
            "factor": ARCHIVE_ATTENUATION,
        }  # fmt: skip
        for statement in (_RUNG, *_LIVE, _ATTENUATE):
            cursor.execute(statement, wanted)
        _journal(cursor, rows, "archived", {"rung": Rung.ARCHIVED.label}, principal=principal, reason=reason, now=now)


def topics_restore(ids: Sequence[uuid.UUID], *, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Bring archived topics back: active, with the salience of a new topic or what they had before, if that is more.

    Six statements. Raises ``NotVisible`` and ``Conflict`` as ``topics_archive`` does.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _rows_lock(cursor, ids, principal)
        for row in rows:
            if row.gone or row.rung != Rung.ARCHIVED:
                raise Conflict(f"Topic {row.id} is not archived, so there is nothing to restore.")
        wanted: dict[str, Any] = {
            "ids": [row.id for row in rows], "rung": int(Rung.ACTIVE), "now": now, "live": True,
            "factor": ARCHIVE_ATTENUATION, "least": RESTORED_SALIENCE,
        }  # fmt: skip
        for statement in (_RUNG, *_LIVE, _REVIVE):
            cursor.execute(statement, wanted)
        _journal(cursor, rows, "restored", {"rung": Rung.ACTIVE.label}, principal=principal, reason=reason, now=now)


def topics_pin(ids: Sequence[uuid.UUID], *, pinned: bool, principal: Principal, reason: str, now: dt.datetime) -> None:
    """Protect topics from every forgetting, or end that. Three statements; pinning a pinned topic changes its reason.

    Raises ``NotVisible`` if one is unknown to the caller.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _rows_lock(cursor, ids, principal)
        cursor.execute(_PIN, {"ids": [row.id for row in rows], "pinned": pinned, "reason": reason if pinned else ""})
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
