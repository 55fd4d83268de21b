"""Regret: archived topics that were needed afterwards, by policy version and by the rung before archiving.

docs/regret.md has the definitions.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_parse, cursor_time
from memory.core.days import day_begin, days_begin, utc_days
from memory.core.scopes import ROOT
from memory.explain.replies import RegretCounts, RegretOfVersion, RegretReply, RegretTopic, Signal, Source
from memory.forgetting.manual_runs import by_hand_sql, undone_sql
from memory.models import Rung
from memory.models.formulas_sql import rung_label_sql
from memory.models.labels import label_sql
from memory.models.statements import dicts_read, rows_by_store
from memory.predicates.binding import Bound, scope_sql
from memory.predicates.sql import written_by_sql

# The period of ``regret_recent``.
RECENT_DAYS = 30
SIGNALS: tuple[Signal, ...] = ("looked_up", "restored", "shadow")

# Lookups, hits of the shadow search and a restore are signals that a topic was needed. They count for an archiving
# until the topic is restored or archived again. Archivings and restores that were undone do not count. Manual changes
# are read from the audit events, because only these contain all manual changes.
_REGRETS_SQL = """
WITH archivings AS MATERIALIZED (
    SELECT *, row_number() OVER () AS n, lead(at) OVER (PARTITION BY topic_id ORDER BY at, source) AS next_at FROM (
        SELECT a.topic_id, a.at, 'run' AS source, a.run_id, a.from_rung::int AS from_rung,
               a.why->>'policy' AS policy, (a.why->>'version')::int AS version
        FROM memory_forgetaction a JOIN memory_vitality v ON v.topic_id = a.topic_id
        WHERE a.action = 'archived' AND a.state IN ('applied', 'conflict') AND NOT {by_hand}
          AND {within} {topic_action}
        UNION ALL
        SELECT e.topic_id, e.at, 'hand', NULL, array_position(%(rungs)s::text[], e.before->>'rung') - 1, NULL, NULL
        FROM memory_auditevent e JOIN memory_vitality v ON v.topic_id = e.topic_id
        WHERE e.action = 'archived' AND NOT {archive_back} AND {within} {topic_audit}
    ) x
), restores AS MATERIALIZED (
    SELECT a.n, min(r.at) AS at FROM archivings a JOIN memory_auditevent r ON r.topic_id = a.topic_id
    WHERE r.action = 'restored' AND r.at >= a.at AND (a.next_at IS NULL OR r.at <= a.next_at)
      AND NOT {restore_back}
    GROUP BY a.n
), bounded AS MATERIALIZED (
    SELECT a.*, r.at AS back_at, coalesce(r.at, a.next_at, 'infinity') AS ends_at
    FROM archivings a LEFT JOIN restores r USING (n)
    WHERE {since} AND a.at < %(until)s::timestamptz + interval '1 microsecond'
), lookups AS MATERIALIZED (
    SELECT b.n, count(*) AS times, max(l.at) AS last_at
    FROM memory_accesslog l CROSS JOIN LATERAL unnest(l.topic_ids) AS x (id)
    JOIN bounded b ON b.topic_id = x.id AND l.at > b.at AND l.at <= b.ends_at
    WHERE l.kind = 'lookup' AND l.at >= (SELECT min(at) FROM bounded)
    GROUP BY b.n
), shadows AS MATERIALIZED (
    SELECT b.n, count(*) AS times, max(h.at) AS last_at, min(h.rank) AS best
    FROM memory_shadowhit h JOIN bounded b ON b.topic_id = h.topic_id AND h.at >= b.at AND h.at <= b.ends_at
    GROUP BY b.n
), regrets AS MATERIALIZED (
    SELECT b.*, coalesce(l.times, 0) AS looked_up, l.last_at AS looked_up_at, (b.back_at IS NOT NULL)::int AS restored,
           coalesce(s.times, 0) AS shadow, s.last_at AS shadow_at, s.best AS shadow_rank,
           l.n IS NOT NULL OR b.back_at IS NOT NULL OR s.n IS NOT NULL AS regretted
    FROM bounded b LEFT JOIN lookups l USING (n) LEFT JOIN shadows s USING (n)
)
"""

_NUMBERS = """
count(*) AS archived, count(*) FILTER (WHERE regretted) AS regretted,
count(*) FILTER (WHERE looked_up > 0) AS looked_up, count(*) FILTER (WHERE restored > 0) AS restored,
count(*) FILTER (WHERE shadow > 0) AS shadow
"""

_COUNTS_SQL = f"""
SELECT c.*, {rung_label_sql("c.from_rung")} AS rung, p.author, p.reason
FROM (
    SELECT grouping(policy, version, source) > 0 AS no_version, grouping(from_rung) > 0 AS no_rung,
           source, policy, version, from_rung, {_NUMBERS}
    FROM regrets GROUP BY GROUPING SETS ((source, policy, version), (from_rung), ())
) c
LEFT JOIN memory_policyversion p ON p.scope = c.policy AND p.number = c.version
ORDER BY c.source DESC, c.policy, c.version DESC, c.from_rung
"""

_DAYS_SQL = """
SELECT (at AT TIME ZONE 'UTC')::date AS day, count(*) AS archived, count(*) FILTER (WHERE regretted) AS regretted
FROM regrets WHERE source = 'run' GROUP BY 1
"""

_RECENT_SQL = """
SELECT count(*) AS archived, count(*) FILTER (WHERE regretted) AS regretted FROM regrets WHERE source = 'run'
"""

_CHOSEN = "r.regretted AND (%(by)s::text IS NULL OR r.source = %(by)s::text)"
_TOPICS_SQL = f"""
SELECT r.topic_id::text, {label_sql()} AS title, t.kind AS topic_kind, sc.path AS scope,
       {rung_label_sql("t.rung")} AS rung, r.at AS archived_at, r.source AS by, r.run_id::text, r.policy, r.version,
       {rung_label_sql("r.from_rung")} AS from_rung,
       array_remove(ARRAY[CASE WHEN r.looked_up > 0 THEN 'looked_up' END, CASE WHEN r.restored > 0 THEN 'restored' END,
                          CASE WHEN r.shadow > 0 THEN 'shadow' END], NULL) AS signals,
       r.looked_up, r.looked_up_at, r.back_at AS restored_at, r.shadow AS shadow_hits, r.shadow_at, r.shadow_rank
FROM regrets r JOIN memory_topic t ON t.id = r.topic_id JOIN memory_scope sc ON sc.id = t.scope_id
WHERE {_CHOSEN} AND (
    %(last)s::timestamptz IS NULL OR (greatest(r.looked_up_at, r.back_at, r.shadow_at), r.topic_id, r.at)
    < (%(last)s::timestamptz, %(after_id)s::uuid, %(after_at)s::timestamptz))
ORDER BY greatest(r.looked_up_at, r.back_at, r.shadow_at) DESC, r.topic_id DESC, r.at DESC LIMIT %(limit)s
"""
_COUNT_SQL = f"SELECT count(*) FROM (SELECT 1 FROM regrets r WHERE {_CHOSEN} LIMIT %(limit)s) x"


class RegrettedTopic(RegretTopic):
    """An archiving that was regretted, and the time of its latest signal."""

    regretted_at: dt.datetime


def regret_report(
    *,
    scope: str,
    principal: Principal,
    now: dt.datetime,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    limit: int = 50,
) -> RegretReply:
    """Return how many archivings at or below ``scope`` were regretted, by policy version and by rung. Also return the
    topics with the latest signals. ``since`` and ``until`` limit the times of the archivings. Two queries. Raises
    ``NotVisible``."""
    chosen = principal.scope_chosen(scope)
    counted = _rows(_COUNTS_SQL, scope=chosen, since=since, until=until or now)
    totals = next((_numbers(row) for row in counted if row["no_version"] and row["no_rung"]), _numbers(_NOTHING))
    by_version: list[RegretOfVersion] = []
    for row in counted:
        if not row["no_version"]:
            seen = row["policy"] is not None and principal.sees(row["policy"])
            by_version.append(
                {
                    "by": row["source"],
                    "policy": row["policy"],
                    "version": row["version"],
                    "author": row["author"] if seen else None,
                    "reason": row["reason"] if seen else None,
                    **_numbers(row),
                }
            )
    return {
        "scope": chosen,
        "since": since,
        "until": until,
        **totals,
        "by_version": by_version,
        "by_rung": [{"rung": row["rung"], **_numbers(row)} for row in counted if not row["no_rung"]],
        "topics": _topics(scope=chosen, since=since, until=until or now, limit=limit),
        "sentence": _sentence(totals),
    }


@dataclass(frozen=True, slots=True)
class RegretDay:
    """How many topics were archived by runs on one day in UTC, and how many of them were needed afterwards."""

    day: dt.date
    archived: int = 0
    regretted: int = 0


def regret_days(
    *, days: int, principal: Principal, now: dt.datetime, scope: str = ROOT, writer: str | None = None
) -> list[RegretDay]:
    """Return the last ``days`` days in UTC until today, earliest first. ``writer`` restricts the topics to those that
    the caller with this name wrote. One query. Raises ``NotVisible``."""
    every = utc_days(days, now=now)
    chosen = principal.scope_chosen(scope)
    rows = _rows(_DAYS_SQL, scope=chosen, since=day_begin(every[0]), until=now, writer=writer)
    found = {row["day"]: RegretDay(**row) for row in rows}
    return [found.get(day, RegretDay(day)) for day in every]


def regret_recent(*, now: dt.datetime) -> tuple[int, int]:
    """Return (archived, regretted): how many topics were archived by runs in the last ``RECENT_DAYS`` days, and how
    many of them were needed afterwards. One query."""
    (row,) = _rows(_RECENT_SQL, since=days_begin(RECENT_DAYS, now=now), until=now)
    return row["archived"], row["regretted"]


def regret_recent_by_store(names: Sequence[str], *, now: dt.datetime) -> dict[str, tuple[int, int]]:
    """Return the numbers of ``regret_recent`` for each store in ``names``, as a dict by name. One query."""
    statement, values = _statement(_RECENT_SQL, since=days_begin(RECENT_DAYS, now=now), until=now)
    return {name: (archived, regretted) for name, archived, regretted in rows_by_store(statement, names, values)}


def regretted_list(
    *,
    scope: str,
    principal: Principal,
    now: dt.datetime,
    cursor: str | None,
    limit: int,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    by: Source | None = None,
    writer: str | None = None,
) -> tuple[list[RegrettedTopic], str | None]:
    """Return the regretted archivings, latest signal first, and the cursor of the next page. ``by`` selects the
    archivings by runs or by people. ``writer`` selects the archivings of topics that the caller with this name wrote.
    None selects all. One query. Raises ``NotVisible`` and ``ValueRefused``."""
    after = [None] * 3 if cursor is None else cursor_parse(cursor, cursor_time, uuid.UUID, cursor_time)
    found = _topics(
        scope=principal.scope_chosen(scope),
        since=since,
        until=until or now,
        by=by,
        writer=writer,
        after=after,
        limit=limit + 1,
    )
    rows: list[RegrettedTopic] = []
    for topic in found:
        signals = (topic["looked_up_at"], topic["restored_at"], topic["shadow_at"])
        rows.append({**topic, "regretted_at": max(at for at in signals if at is not None)})
    last = rows[limit - 1] if len(rows) > limit else None
    following = cursor_make(last["regretted_at"], last["topic_id"], last["archived_at"]) if last else None
    return rows[:limit], following


def regretted_count(
    *,
    scope: str,
    principal: Principal,
    now: dt.datetime,
    at_most: int,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    by: Source | None = None,
    writer: str | None = None,
) -> int:
    """Return the number of regretted archivings, at most ``at_most`` + 1. One query."""
    chosen = principal.scope_chosen(scope)
    (row,) = _rows(_COUNT_SQL, scope=chosen, since=since, until=until or now, by=by, writer=writer, limit=at_most + 1)
    return int(row["count"])


def regret_of_topic(topic_id: uuid.UUID, *, now: dt.datetime) -> list[RegretTopic]:
    """Return the regretted archivings of one topic, newest first. One query. Does not check who may see the topic."""
    return _topics(until=now, one="%(topic)s::uuid", topic=topic_id, limit=50)


def regret_of_run(run_id: uuid.UUID, *, now: dt.datetime) -> RegretCounts:
    """Return how many archivings of one run were regretted. One query. Does not check who may see the run."""
    archived = "SELECT topic_id FROM memory_forgetaction WHERE run_id = %(run)s AND action = 'archived'"
    select = f"SELECT {_NUMBERS} FROM regrets WHERE run_id = %(run)s"
    return _numbers(_rows(select, until=now, one=f"ANY(ARRAY({archived}))", run=run_id)[0])


def _topics(
    *, limit: int, by: Source | None = None, after: Sequence[Any] = (None,) * 3, **selection: Any
) -> list[RegretTopic]:
    last, topic_id, at = after
    found: Any = _rows(_TOPICS_SQL, limit=limit, by=by, last=last, after_id=topic_id, after_at=at, **selection)
    return cast("list[RegretTopic]", found)


def _rows(select: str, **selection: Any) -> list[dict[str, Any]]:
    return dicts_read(*_statement(select, **selection))


def _statement(
    select: str,
    *,
    until: dt.datetime,
    scope: str = ROOT,
    since: dt.datetime | None = None,
    one: str = "",
    writer: str | None = None,
    **values: Any,
) -> tuple[str, dict[str, Any]]:
    """Return the SQL statement for ``select`` over ``regrets``, and its parameters. ``one`` is the right side of a
    condition ``topic_id = ...``. ``writer`` restricts the topics to those that this caller wrote."""
    bound = Bound()
    bound.values |= {"rungs": Rung.labels, "since": since, "until": until, **values}
    within = scope_sql("v.scope_id", scope, bound.bind)
    if writer is not None:
        within += f" AND {written_by_sql('v.topic_id', writer, bound.bind)}"
    regrets = _REGRETS_SQL.format(
        by_hand=by_hand_sql("a"),
        archive_back=undone_sql("e"),
        restore_back=undone_sql("r"),
        within=within,
        since="true" if since is None else "a.at >= %(since)s::timestamptz",
        topic_action=f"AND a.topic_id = {one}" if one else "",
        topic_audit=f"AND e.topic_id = {one}" if one else "",
    )
    return regrets + select, bound.values


_NOTHING = dict.fromkeys(("archived", "regretted", *SIGNALS), 0)


def _numbers(row: Mapping[str, Any]) -> RegretCounts:
    return {
        "archived": row["archived"],
        "regretted": row["regretted"],
        "rate": row["regretted"] / row["archived"] if row["archived"] else 0.0,
        "signals": {"looked_up": row["looked_up"], "restored": row["restored"], "shadow": row["shadow"]},
    }


def _sentence(report: RegretCounts) -> str:
    if not report["archived"]:
        return "Nothing was archived in this period."
    signals = report["signals"]
    return (
        f"{report['regretted']:,} of {report['archived']:,} archivings were regretted ({report['rate']:.1%}): "
        f"{signals['looked_up']:,} looked up, {signals['restored']:,} restored, {signals['shadow']:,} found by the "
        "shadow search."
    )
