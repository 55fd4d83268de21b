"""Counts the contents of a store and its backlog."""

import datetime as dt

from memory.core.scopes import ROOT
from memory.explain.topic_counts import topic_counts
from memory.ingest.waiting import waiting_told
from memory.models.formulas_sql import scope_within_sql
from memory.models.statements import rows_read
from memory.recall.replies import Stats

_WITHIN = f"(%(scope)s::text = '/' OR {scope_within_sql('v.scope_id')})"
_PATH_WITHIN = "(%(scope)s = '/' OR {path} = %(scope)s OR starts_with({path}, %(below)s))"

# Live and archived topics. Those that were released or merged are not counted, and neither are their fields and links.
_CONTENT_SQL = f"""
WITH present AS MATERIALIZED (
    SELECT t.id, v.retrieval_count FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
    WHERE t.released_at IS NULL AND t.merged_into_id IS NULL AND {_WITHIN}
)
SELECT (SELECT coalesce(sum(retrieval_count), 0)::bigint FROM present),
       (SELECT count(*) FROM memory_field f JOIN present p ON p.id = f.topic_id),
       (SELECT coalesce(sum(f.last_seq), 0)::bigint FROM memory_field f JOIN present p ON p.id = f.topic_id),
       (SELECT count(*) FROM memory_link l JOIN present p ON p.id = l.source_id
        JOIN memory_topic t ON t.id = l.target_id WHERE t.released_at IS NULL AND t.merged_into_id IS NULL),
       (SELECT count(*) FROM memory_scope WHERE {_PATH_WITHIN.format(path="path")}),
       (SELECT count(*) FROM memory_accesslog WHERE folded_at IS NULL AND {_PATH_WITHIN.format(path="scope")}),
       (SELECT count(*) FROM memory_topicvector v WHERE embedding IS NULL AND {_WITHIN}),
       (SELECT count(*) FROM memory_topicdocument v WHERE outdated AND {_WITHIN})
"""


def stats_collect(scope: str, *, now: dt.datetime) -> Stats:
    """Return the counts and the backlog of ``scope`` and the scopes below. Two queries, which read whole tables with
    short rows, and another one if topics wait for the worker."""
    counts = topic_counts(scope)
    below = scope if scope == ROOT else f"{scope}/"
    ((retrievals, fields, revisions, links, scopes, unfolded, waiting, outdated),) = rows_read(
        _CONTENT_SQL, {"scope": scope, "below": below}
    )
    return {
        "scope": scope,
        "topics": counts.total - counts.released,
        "live": counts.live,
        "rungs": counts.rungs,
        "released": counts.released,
        "pinned": counts.pinned,
        "retrievals": retrievals,
        "fields": fields,
        "revisions": revisions,
        "links": links,
        "scopes": scopes,
        "backlog": {"unfolded_accesses": unfolded, "topics_without_vector": waiting, "outdated_documents": outdated},
        "waiting": waiting_told(waiting, now=now),
    }
