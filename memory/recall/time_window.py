"""SQL for questions that name a time: which of its possible meanings has memories, and which topics lie in it.

A topic lies in a time if it was created then, or if the current value of one of its fields of type date is a day of
this time. A time never excludes topics.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from memory.recall.filters import CandidateFilter
from memory.text.named_times import NamedTime

# At most this number of topics of a time are compared: the newest ones.
MOST = 1_000

_DATES_SQL = """
    SELECT f.topic_id FROM memory_revision r
    JOIN memory_field f ON f.id = r.field_id AND f.last_seq = r.seq AND NOT f.detached
    JOIN memory_topic t ON t.id = f.topic_id {join}
    WHERE r.field_type = 'date' AND r.value >= {begin}::date::text AND r.value < {end}::date::text AND {conditions}
"""


def window_parameters(times: Sequence[NamedTime]) -> dict[str, Any]:
    """Return the parameters of ``window_sql``."""
    rows: list[tuple[int, dt.date | None, dt.date | None, str | None]] = [
        (number, span.begin, span.end, None) for number, time in enumerate(times) for span in time.spans
    ]
    rows += [(number, None, None, time.edge) for number, time in enumerate(times) if time.edge]
    numbers, begins, ends, edges = zip(*rows, strict=True)
    return {
        "times": list(numbers),
        "begins": [_midnight(day) for day in begins],
        "ends": [_midnight(day) for day in ends],
        "edges": list(edges),
    }


def _midnight(day: dt.date | None) -> dt.datetime | None:
    return None if day is None else dt.datetime.combine(day, dt.time(), dt.UTC)


def window_sql(filters: CandidateFilter) -> str:
    """Return the common table expressions ``span`` and ``in_time``. ``span`` has (begin, end) of each time: the first
    of its possible meanings in which a topic lies. ``in_time.topic_id`` are the topics in these times, at most ``MOST``
    per time that were created in it, and as many by their dates."""
    join, conditions = filters.topics_sql()
    lies_in = (
        f"SELECT t.id FROM memory_topic t {join} "
        f"WHERE t.created_at >= {{begin}} AND t.created_at < {{end}} AND {conditions}"
    )
    possible = {"begin": "p.begin", "end": 'p."end"'}
    chosen = {"begin": "s.begin", "end": 's."end"'}
    edge = f"SELECT t.created_at FROM memory_topic t {join} WHERE {conditions} ORDER BY t.created_at"
    return f"""possible AS MATERIALIZED (
    SELECT time, place, coalesce(x.begin, e.day) AS begin, coalesce(x."end", e.day + interval '1 day') AS "end"
    FROM unnest(%(times)s::int[], %(begins)s::timestamptz[], %(ends)s::timestamptz[], %(edges)s::text[])
        WITH ORDINALITY AS x (time, begin, "end", edge, place)
    LEFT JOIN LATERAL (
        SELECT date_trunc('day', created_at, 'UTC') AS day FROM (
            ({edge} LIMIT CASE WHEN x.edge = 'first' THEN 1 ELSE 0 END)
            UNION ALL ({edge} DESC LIMIT CASE WHEN x.edge = 'latest' THEN 1 ELSE 0 END)
        ) y
    ) e ON x.edge IS NOT NULL
), span AS MATERIALIZED (
    SELECT x.begin, x."end" FROM (SELECT DISTINCT time FROM possible) n CROSS JOIN LATERAL (
        SELECT p.begin, p."end" FROM possible p
        WHERE p.time = n.time AND (EXISTS ({lies_in.format(**possible)})
            OR EXISTS ({_DATES_SQL.format(join=join, conditions=conditions, **possible)}))
        ORDER BY p.place LIMIT 1
    ) x
), in_time AS MATERIALIZED (
    SELECT x.id AS topic_id FROM span s CROSS JOIN LATERAL (
        ({lies_in.format(**chosen)} ORDER BY t.created_at DESC LIMIT {MOST})
        UNION ALL ({_DATES_SQL.format(join=join, conditions=conditions, **chosen)} LIMIT {MOST})
    ) x GROUP BY x.id
)"""
