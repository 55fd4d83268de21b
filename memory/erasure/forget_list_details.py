"""Details of a list for the confirmation page: the number of pinned topics, and other identifiers in the topics."""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from memory.models import TopicMention
from memory.text.identifiers import STRONG, identifiers_find

# The most identifiers shown per topic.
MOST_OTHERS = 3

_TALLY_SQL = """
SELECT count(*) FILTER (WHERE v.pinned), count(*) FILTER (WHERE coalesce(e.entry->'keeps', 'null') <> 'null')
FROM memory_forgetlisting l
CROSS JOIN LATERAL jsonb_array_elements(l.entries) e (entry)
JOIN memory_vitality v ON v.topic_id = (e.entry->>'id')::uuid
WHERE l.id = %s
"""


class ListTally(NamedTuple):
    """The number of topics of a list that are pinned now, and the number of topics of which a part is kept."""

    pinned: int
    kept: int


def listing_tally(listing_id: uuid.UUID) -> ListTally:
    """Return the tally of a list as of now. One query; zeros for a list that does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(_TALLY_SQL, [listing_id])
        return ListTally(*cursor.fetchone())


def listing_others(ids: Sequence[uuid.UUID], *, query: str) -> dict[uuid.UUID, list[str]]:
    """Return, by topic, at most ``MOST_OTHERS`` identifiers of persons or things that ``query`` does not name. They are
    forgotten together with the topic.

    One query. A query without an identifier gives nothing, because a person's own identifiers need no warning.
    """
    asked = {key for each in identifiers_find(query) for key in each.search_keys | each.stored}
    if not asked:
        return {}
    found: dict[uuid.UUID, list[str]] = {}
    rows = TopicMention.objects.filter(topic_id__in=ids).values_list("topic_id", "identifiers")
    for topic_id, identifiers in rows:
        parts = [each.partition(":") for each in identifiers if each not in asked]
        others = [canonical for kind, _colon, canonical in parts if kind in STRONG]
        if others:
            found[topic_id] = others[:MOST_OTHERS]
    return found
