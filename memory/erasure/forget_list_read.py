"""Reads stored lists of topics to forget. The topics of a list are returned in their present state."""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number
from memory.core.errors import NotVisible
from memory.erasure.remainder import remainder_summary
from memory.erasure.replies import ForgetMatch
from memory.models import ForgetListing, Rung, Topic, TopicMention
from memory.models.labels import labels_read
from memory.models.newest_first import newest_page
from memory.predicates.binding import path_q
from memory.text.keys import CODE, codes_of

# The request of a list is kept for this time after the list has expired.
KEPT_FOR = dt.timedelta(days=7)
# The most topics of a list in a reply. The others are read page by page.
MATCHES_SHOWN = 200
# The most identifiers shown per topic.
MAX_OTHERS = 3

_TALLY_SQL = """
SELECT count(*) FILTER (WHERE v.pinned), count(*) FILTER (WHERE coalesce(e.entry->'keeps', 'null') <> 'null')
FROM memory_forgetlisting l
CROSS JOIN LATERAL jsonb_array_elements(l.entries) e (entry)
JOIN memory_vitality v ON v.topic_id = (e.entry->>'id')::uuid
WHERE l.id = %s AND coalesce((e.entry->>'chosen')::boolean, true)
"""


class ListTally(NamedTuple):
    """``pinned`` counts the topics of a list that are pinned now. ``kept`` counts the topics that are kept in part."""

    pinned: int
    kept: int


def listing_get(listing_id: uuid.UUID, *, principal: Principal) -> ForgetListing:
    """Return a list. One query. Raises ``NotVisible`` outside the caller's scope."""
    row = ForgetListing.objects.filter(pk=listing_id).first()
    if row is None or not principal.sees(row.scope):
        raise NotVisible(f"List {listing_id} does not exist.")
    return row


def listing_matches(listing: ForgetListing) -> list[ForgetMatch]:
    """Return the first ``MATCHES_SHOWN`` topics of a list. Two queries."""
    return _matches(listing.entries[:MATCHES_SHOWN])


def listing_matches_page(
    listing_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[ForgetMatch], str | None]:
    """Return a page of the topics of a list, and the cursor of the next page. Two queries.

    Raises ``NotVisible`` outside the caller's scope, and ``ValueRefused`` for an invalid cursor.
    """
    entries = listing_get(listing_id, principal=principal).entries
    at = cursor_as_number(cursor) if cursor else 0
    return _matches(entries[at : at + limit]), str(at + limit) if at + limit < len(entries) else None


def listings_list(*, principal: Principal, cursor: str | None, limit: int) -> tuple[list[ForgetListing], str | None]:
    """Return a page of lists without their topics, each with its run, newest first, and the cursor of the next page.
    One query.

    Raises ``ValueRefused`` for an invalid cursor.
    """
    rows = ForgetListing.objects.filter(path_q(principal.scope)).defer("entries").select_related("run")
    return newest_page(rows, cursor=cursor or None, limit=limit)


def listings_count(*, principal: Principal, at_most: int) -> int:
    """Return the number of lists in the caller's scope, at most ``at_most`` + 1. One query."""
    return ForgetListing.objects.filter(path_q(principal.scope))[: at_most + 1].count()


def listings_tidy(*, now: dt.datetime) -> None:
    """Empty the lists that expired more than ``KEPT_FOR`` ago, because a request to forget something must not be kept
    for long. One query."""
    empty: dict[str, Any] = {"query": "", "filter": {}, "entries": [], "reason": "", "question": ""}
    ForgetListing.objects.filter(expires_at__lt=now - KEPT_FOR).exclude(**empty).update(**empty)


def listing_tally(listing_id: uuid.UUID) -> ListTally:
    """Count the pinned and the partly kept topics of a list; zeros if the list does not exist. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_TALLY_SQL, [listing_id])
        return ListTally(*cursor.fetchone())


def spellings_of(listing: ForgetListing) -> set[str]:
    """Return the spellings in which topics of a list have the names of its request, other than the request's own."""
    return {part for entry in listing.entries for part in entry.get("spelling", "").split(", ")} - {""}


def listing_others(matches: Sequence[ForgetMatch], *, query: str) -> dict[str, list[str]]:
    """Return, by topic id, the identifiers that are forgotten with the topic although ``query`` does not contain them.

    At most ``MAX_OTHERS`` for each topic. One query, or none if ``query`` contains no identifier.
    """
    asked = codes_of(query).keys()
    if not asked:
        return {}
    found: dict[str, list[str]] = {}
    rows = TopicMention.objects.filter(topic_id__in=[match["topic_id"] for match in matches])
    for topic_id, identifiers in rows.values_list("topic_id", "identifiers"):
        others = [key.removeprefix(CODE) for key in identifiers if key not in asked]
        # A part of an identifier is not another one.
        whole = [
            one for one in others if "…" not in one and not any(one in key for key in (*others, *asked) if key != one)
        ]
        if whole:
            found[str(topic_id)] = whole[:MAX_OTHERS]
    return found


def _matches(entries: Sequence[dict[str, Any]]) -> list[ForgetMatch]:
    """Return entries with the present state of their topics. A purged topic has only its id. Two queries."""
    rows = Topic.objects.select_related("scope", "vitality").filter(pk__in=[entry["id"] for entry in entries])
    known = {str(topic.pk): topic for topic in rows}
    labels = labels_read(topic.pk for topic in known.values())
    return [_match(entry, known.get(entry["id"]), labels) for entry in entries]


def _match(entry: dict[str, Any], topic: Topic | None, labels: dict[uuid.UUID, str]) -> ForgetMatch:
    standing = "purged"
    if topic is not None:
        standing = "released" if topic.released_at is not None else Rung(topic.rung).label
    return {
        "topic_id": entry["id"],
        "title": labels[topic.pk] if topic else "",
        "summary": topic.summary if topic else "",
        "scope": topic.scope.path if topic else "",
        "topic_kind": topic.kind if topic else "",
        "standing": standing,
        "pinned": topic is not None and topic.vitality.pinned,
        "why": entry["why"],
        "confidence": entry["confidence"],
        "by": entry.get("by", "filter"),
        "excerpt": entry.get("excerpt", ""),
        "spelling": entry.get("spelling", ""),
        "chosen": entry.get("chosen", True),
        "keeps": remainder_summary(entry["keeps"]) if entry.get("keeps") else "",
    }
