"""Stored lists: their contents and state, before and after execution."""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number
from memory.core.errors import NotVisible
from memory.core.problem_codes import ProblemCode
from memory.erasure.remainder import remainder_summary
from memory.models import ForgetListing, Rung
from memory.models.newest_first import newest_page
from memory.predicates.binding import path_q

# A list keeps its request for this time after it expired.
KEPT_FOR = dt.timedelta(days=7)

_SHOWN_SQL = """
SELECT t.id, t.title, t.summary, s.path, t.kind, t.rung, t.released_at IS NOT NULL, v.pinned
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""


class _Shown(NamedTuple):
    """A row of ``_SHOWN_SQL`` without the id; the defaults stand for a purged topic."""

    title: str = ""
    summary: str = ""
    scope: str = ""
    kind: str = ""
    rung: int = 0
    released: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """One topic of a list: its present state, the reason (``why``), the confidence (0 to 1), the words that matched
    (``excerpt``), the part that is kept, and by what the topic was found."""

    topic_id: uuid.UUID
    title: str
    summary: str
    scope: str
    kind: str
    standing: str
    pinned: bool
    why: str
    confidence: float
    excerpt: str = ""
    keeps: str = ""
    by: str = "filter"


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as shown to users. If the list cannot be executed, ``token`` is None, and ``question`` says why.

    ``state`` is ``open``, ``executed``, ``expired``, ``ambiguous`` or ``empty``.
    """

    id: uuid.UUID
    verb: str
    query: str
    filter: dict[str, Any]
    scope: str
    reason: str
    actor: str
    created_at: dt.datetime
    expires_at: dt.datetime
    count: int
    ambiguous: bool
    question: str
    state: str
    executed_at: dt.datetime | None = None
    run_id: uuid.UUID | None = None
    receipt_id: uuid.UUID | None = None
    matches: list[ListedTopic] = field(default_factory=list)

    @property
    def token(self) -> str | None:
        """The token that executes the list."""
        return str(self.id) if self.state == "open" else None


def listing_get(listing_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> Listing:
    """Return a list without its topics. One query. Raises ``NotVisible`` outside the caller's scope."""
    return listing_of(_row(listing_id, principal), now=now)


def listing_matches(
    listing_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[ListedTopic], str | None]:
    """Return a page of the topics of a list, and the cursor of the next page. A topic that was purged since has only
    its id. Two queries. Raises ``NotVisible`` and ``ValueRefused``."""
    row = _row(listing_id, principal)
    at = cursor_as_number(cursor) if cursor else 0
    page = row.entries[at : at + limit]
    return listed_topics(page), str(at + limit) if at + limit < len(row.entries) else None


def listings_list(
    *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[Listing], str | None]:
    """Return lists, newest first, and the cursor of the next page. One query. Raises ``ValueRefused``."""
    rows = ForgetListing.objects.filter(path_q(principal.scope)).defer("entries")
    found, following = newest_page(rows, cursor=cursor or None, limit=limit)
    return [listing_of(row, now=now) for row in found], following


def listings_count(*, principal: Principal, at_most: int) -> int:
    """Return the number of lists, at most ``at_most`` + 1. One query."""
    return ForgetListing.objects.filter(path_q(principal.scope))[: at_most + 1].count()


def listings_tidy(*, now: dt.datetime) -> int:
    """Remove the requests of lists that expired ``KEPT_FOR`` ago, and return the number of changed lists. One query.

    A request to forget something must not itself be kept. The row stays as a record that there was a list.
    """
    return (
        ForgetListing.objects.filter(expires_at__lt=now - KEPT_FOR)
        .exclude(query="", filter={}, entries=[], reason="", question="")
        .update(query="", filter={}, entries=[], reason="", question="")
    )


def listing_state(row: ForgetListing, now: dt.datetime) -> str:
    """Return the state of a list: ``executed``, ``ambiguous``, ``empty``, ``expired`` or ``open``. No query."""
    if row.executed_at is not None:
        return "executed"
    if row.ambiguous:
        return "ambiguous"
    if not row.count:
        return "empty"
    return "expired" if row.expires_at <= now else "open"


def listing_of(row: ForgetListing, *, now: dt.datetime, matches: list[ListedTopic] | None = None) -> Listing:
    """Return a stored list as shown to users. No query."""
    return Listing(
        id=row.id,
        verb=row.verb,
        query=row.query,
        filter=row.filter,
        scope=row.scope,
        reason=row.reason,
        actor=row.actor,
        created_at=row.created_at,
        expires_at=row.expires_at,
        count=row.count,
        ambiguous=row.ambiguous,
        question=row.question,
        state=listing_state(row, now),
        executed_at=row.executed_at,
        run_id=row.run_id,
        receipt_id=row.receipt_id,
        matches=matches or [],
    )


def listed_topics(entries: Sequence[dict[str, Any]]) -> list[ListedTopic]:
    """Return the entries of a list with the present state of their topics. A purged topic has only its id. One
    query."""
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN_SQL, [[entry["id"] for entry in entries]])
        known = {topic_id: _Shown(*row) for topic_id, *row in cursor.fetchall()}
    found = []
    for entry in entries:
        topic_id = uuid.UUID(entry["id"])
        topic = known.get(topic_id, _Shown())
        standing = "purged" if topic_id not in known else "released" if topic.released else Rung(topic.rung).label
        found.append(
            ListedTopic(
                topic_id,
                topic.title,
                topic.summary,
                topic.scope,
                topic.kind,
                standing,
                topic.pinned,
                entry["why"],
                entry["confidence"],
                entry.get("excerpt", ""),
                remainder_summary(entry["keeps"]) if entry.get("keeps") else "",
                entry.get("by", "filter"),
            )
        )
    return found


def _row(listing_id: uuid.UUID, principal: Principal) -> ForgetListing:
    row = ForgetListing.objects.filter(pk=listing_id).first()
    if row is None or not principal.sees(row.scope):
        raise NotVisible(f"List {listing_id} does not exist.", code=ProblemCode.LIST_NOT_FOUND)
    return row
