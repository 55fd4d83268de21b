"""What somebody wants to know of a list before saying yes: what is pinned, and what else its topics name."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from memory.models import TopicMention
from memory.text.identifiers import STRONG, identifiers_find

# So many of what else a topic names are told.
OTHERS_TOLD = 3

_TALLY = """
SELECT count(*) FILTER (WHERE v.pinned), count(*) FILTER (WHERE coalesce(e.entry->'keeps', 'null') <> 'null')
FROM memory_forgetlisting l
CROSS JOIN LATERAL jsonb_array_elements(l.entries) e (entry)
JOIN memory_vitality v ON v.topic_id = (e.entry->>'id')::uuid
WHERE l.id = %s
"""


class Tally(NamedTuple):
    """Of the topics of a list: how many are pinned by now, and of how many a part stays."""

    pinned: int
    kept: int


def listing_tally(listing_id: uuid.UUID) -> Tally:
    """Return what the topics of a list amount to, as they are now. One query; nothing is counted for a list that is
    not there."""
    with connection.cursor() as cursor:
        cursor.execute(_TALLY, [listing_id])
        return Tally(*cursor.fetchone())


def listing_others(ids: Sequence[uuid.UUID], *, query: str) -> dict[uuid.UUID, list[str]]:
    """Return what topics name beside the identifiers that ``query`` names, at most ``OTHERS_TOLD`` of each: addresses,
    numbers and codes of one person or thing. Who forgets such a topic forgets that with it.

    One query, none where ``query`` names no identifier: what a person goes by is not somebody else's.
    """
    asked = {key for each in identifiers_find(query) for key in each.sought | each.stored}
    if not asked:
        return {}
    found: dict[uuid.UUID, list[str]] = {}
    rows = TopicMention.objects.filter(topic_id__in=ids).values_list("topic_id", "identifiers")
    for topic_id, identifiers in rows:
        parts = [each.partition(":") for each in identifiers if each not in asked]
        others = [canonical for kind, _colon, canonical in parts if kind in STRONG]
        if others:
            found[topic_id] = others[:OTHERS_TOLD]
    return found
