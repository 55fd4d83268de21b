"""The history of a topic: all versions of its texts and its fields, each with the difference to the version before."""

import datetime as dt
import itertools
import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from memory.access.principal import Principal
from memory.core.differences import Piece, pieces_shorten, words_differ
from memory.models.statements import dicts_read, rows_read
from memory.recall.lookup import field_history, topic_detail

# ``topic_timeline`` returns at most this many revisions of each field, and this many edits of the topic.
NEWEST, MAX_EDITS = 3, 100

# The newest revisions of each field, and one more to compute the difference of the oldest one shown.
_REVISIONS_SQL = """
SELECT f.id::text AS field_id, r.seq, r.value, r.valid_from, r.provenance, r.why_changed, r.impact_expected,
       r.recorded_at, r.actor, r.seq <= f.cold_through AS cold
FROM memory_field f CROSS JOIN LATERAL (
    SELECT * FROM memory_revision r WHERE r.field_id = f.id AND r.seq > f.last_seq - %(most)s ORDER BY r.seq DESC
) r
WHERE f.topic_id = %(id)s
ORDER BY f.id, r.seq DESC
"""

# The reason for an edit is stored in the audit event of the same transaction. This event has the time of the request,
# which may be up to a second before the edit.
_EDITS_SQL = """
SELECT e.at, e.actor, e.before, (
    SELECT a.reason FROM memory_auditevent a
    WHERE a.topic_id = e.topic_id AND a.at BETWEEN e.at - interval '1 second' AND e.at
      AND a.action IN ('edited', 'categorized')
    ORDER BY a.at DESC, a.id DESC LIMIT 1
)
FROM memory_topicedit e WHERE e.topic_id = %(id)s ORDER BY e.at DESC, e.id DESC LIMIT %(most)s
"""


def topic_timeline(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> dict[str, Any]:
    """Return the topic of ``topic_detail`` and its ``edits``. Each field gets a ``timeline`` with its newest revisions,
    and ``older`` with the number of its other revisions. Five queries. Raises ``NotVisible``."""
    topic: dict[str, Any] = {**topic_detail(topic_id, principal=principal, now=now)}
    revisions: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for revision in dicts_read(_REVISIONS_SQL, {"id": topic_id, "most": NEWEST + 1}):
        revisions[revision.pop("field_id")].append(revision)
    for field in topic["fields"]:
        field["timeline"] = differences_add(revisions[field["id"]])[:NEWEST]
        field["older"] = max(0, field["revisions"] - NEWEST)
    topic["edits"] = _edits_as_dicts(topic, rows_read(_EDITS_SQL, {"id": topic_id, "most": MAX_EDITS}))
    return topic


def field_timeline(
    topic_id: uuid.UUID, name: str, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the revisions of a field, newest first, each with its difference to the revision before, and the cursor of
    the next page. Two queries. Raises the errors of ``field_history``."""
    # One revision more than the page shows, to compute the difference of the oldest revision.
    page = field_history(topic_id, name, principal=principal, cursor=cursor, limit=limit + 1, now=now)
    revisions = differences_add(page["items"])
    return revisions[:limit], str(revisions[limit - 1]["seq"]) if len(revisions) > limit else None


def differences_add(revisions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return revisions, newest first, each with its ``difference`` to the revision before; None for the oldest."""
    return [
        {**revision, "difference": _differ(older["value"], revision["value"]) if older else None}
        for revision, older in itertools.zip_longest(revisions, revisions[1:])
    ]


def _edits_as_dicts(topic: dict[str, Any], edits: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    # An edit stores only the values before the edit. The values after the edit are in the next edit of the same member,
    # or in the topic.
    later = {"kind": topic["topic_kind"], **{name: topic[name] for name in ("title", "summary", "categories")}}
    items = []
    for at, actor, before, reason in edits:
        changes = []
        for member, was in json.loads(before).items():
            changes.append({"member": member, "difference": _differ(_text(was), _text(later.get(member, "")))})
            later[member] = was
        items.append({"at": at, "actor": actor, "reason": reason or "", "changes": changes})
    return items


def _differ(before: str, after: str) -> list[Piece]:
    return pieces_shorten(words_differ(before, after))


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
