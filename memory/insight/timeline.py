"""The history of the texts of a topic and its fields, each version with its difference to the version before."""

import datetime as dt
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from memory.access.principal import Principal
from memory.core.differences import Piece, pieces_shorten, words_differ
from memory.recall.lookup import field_history, topic_detail

# How many revisions of each field, and how many edits of the topic, ``topic_timeline`` returns.
NEWEST, MOST_EDITS = 3, 100

# The newest revisions of each field, and one more to compute the difference of the oldest one shown.
_REVISIONS_SQL = """
SELECT f.id, r.seq, r.value, r.valid_from, r.provenance, r.why_changed, r.impact_expected, r.recorded_at, r.actor,
       r.seq <= f.cold_through
FROM memory_field f CROSS JOIN LATERAL (
    SELECT * FROM memory_revision r WHERE r.field_id = f.id AND r.seq > f.last_seq - %(most)s ORDER BY r.seq DESC
) r
WHERE f.topic_id = %(id)s
ORDER BY f.id, r.seq DESC
"""

# The reason of an edit is stored in the audit event of the same transaction, which has the time of the request.
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
    """Return a topic as ``topic_detail`` does, with the newest revisions of each field and the edits of the topic.

    Each field gains ``timeline``, its newest revisions with their differences, and ``older``, the number of older
    revisions; the topic gains ``edits``. Five queries. Raises ``NotVisible``.
    """
    topic: dict[str, Any] = {**topic_detail(topic_id, principal=principal, now=now)}
    with connection.cursor() as cursor:
        cursor.execute(_REVISIONS_SQL, {"id": topic_id, "most": NEWEST + 1})
        found = cursor.fetchall()
        cursor.execute(_EDITS_SQL, {"id": topic_id, "most": MOST_EDITS})
        edits = cursor.fetchall()
    revisions: dict[str, list[dict[str, Any]]] = {}
    names = (
        "seq",
        "value",
        "valid_from",
        "provenance",
        "why_changed",
        "impact_expected",
        "recorded_at",
        "actor",
        "cold",
    )
    for field_id, *members in found:
        revisions.setdefault(str(field_id), []).append(dict(zip(names, members, strict=True)))
    for field in topic["fields"]:
        field["timeline"] = differences_add(revisions.get(field["id"], []))[:NEWEST]
        field["older"] = max(0, field["revisions"] - NEWEST)
    topic["edits"] = _edits_as_dicts(topic, edits)
    return topic


def field_timeline(
    topic_id: uuid.UUID, name: str, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the revisions of a field, newest first, each with its difference to the revision before, and the cursor of
    the next page. Two queries. Raises as ``field_history`` does."""
    # One more than the page has, to compute the difference of its oldest revision.
    page = field_history(topic_id, name, principal=principal, cursor=cursor, limit=limit + 1, now=now)
    revisions = differences_add(page["items"])
    return revisions[:limit], str(revisions[limit - 1]["seq"]) if len(revisions) > limit else None


def differences_add(revisions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return revisions, newest first, each with its ``difference`` to the revision before; None for the oldest."""
    items = []
    for index, revision in enumerate(revisions):
        older = revisions[index + 1] if index + 1 < len(revisions) else None
        items.append({**revision, "difference": None if older is None else _differ(older["value"], revision["value"])})
    return items


def _edits_as_dicts(topic: dict[str, Any], edits: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return edits, newest first, each with its differences. An edit stores the values before it. The values after it
    are stored by the next edit of the same member, or are the present values of the topic."""
    later = {
        "title": topic["title"],
        "summary": topic["summary"],
        "kind": topic["topic_kind"],
        "categories": topic["categories"],
    }
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
