"""Counts the contents of a store and its backlog."""

import datetime as dt

from django.db import connection

from memory.ingest.waiting import waiting_told
from memory.models import Rung
from memory.models.formulas_sql import scope_within_sql
from memory.recall.replies import Stats

_WITHIN = f"(%(scope)s::text = '/' OR {scope_within_sql('v.scope_id')})"
_PATH_WITHIN = "(%(scope)s = '/' OR {path} = %(scope)s OR starts_with({path}, %(below)s))"

_RUNGS_SQL = f"""
SELECT v.rung, count(*), count(*) FILTER (WHERE v.pinned), sum(v.retrieval_count)
FROM memory_vitality v
WHERE {_WITHIN}
GROUP BY v.rung
"""

_CONTENT_SQL = f"""
SELECT (SELECT count(*) FROM memory_field f JOIN memory_vitality v ON v.topic_id = f.topic_id WHERE {_WITHIN}),
       (SELECT coalesce(sum(f.last_seq), 0) FROM memory_field f
        JOIN memory_vitality v ON v.topic_id = f.topic_id WHERE {_WITHIN}),
       (SELECT count(*) FROM memory_link l JOIN memory_vitality v ON v.topic_id = l.source_id WHERE {_WITHIN}),
       (SELECT count(*) FROM memory_scope WHERE {_PATH_WITHIN.format(path="path")}),
       (SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL AND {_PATH_WITHIN.format(path="scope")}),
       (SELECT count(*) FROM memory_topicvector v WHERE embedding IS NULL AND {_WITHIN}),
       (SELECT count(*) FROM memory_topicdocument v WHERE outdated AND {_WITHIN})
"""


def stats_collect(scope: str, *, now: dt.datetime) -> Stats:
    """Return the counts and the backlog of ``scope`` and the scopes below. Two queries, which read whole tables with
    short rows, and another one if topics wait for the worker."""
    parameters = {"scope": scope, "below": scope.rstrip("/") + "/"}
    rungs = {rung.label: 0 for rung in Rung}
    pinned = retrievals = 0
    with connection.cursor() as cursor:
        cursor.execute(_RUNGS_SQL, parameters)
        for rung, count, pinned_count, retrieved in cursor.fetchall():
            rungs[Rung(rung).label] = count
            pinned += pinned_count
            retrievals += int(retrieved or 0)
        cursor.execute(_CONTENT_SQL, parameters)
        fields, revisions, links, scopes, unfolded, waiting, outdated = cursor.fetchone()
    return {
        "scope": scope,
        "topics": sum(rungs.values()),
        "rungs": rungs,
        "pinned": pinned,
        "retrievals": retrievals,
        "fields": fields,
        "revisions": revisions,
        "links": links,
        "scopes": scopes,
        "backlog": {"unfolded_accesses": unfolded, "topics_without_vector": waiting, "outdated_documents": outdated},
        "waiting": waiting_told(waiting, now=now),
    }
