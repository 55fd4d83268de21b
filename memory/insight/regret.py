"""Regret: archived topics that were needed afterwards, by policy version and by the rung before archiving.

An archiving is regretted if the topic was then looked up by its id, restored by a person or found by the shadow search.
Only what happened before the topic was restored or archived again counts. docs/regret.md has the definitions.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_parse, cursor_time
from memory.core.scopes import ROOT
from memory.forgetting.manual_runs import by_hand_sql, undone_sql
from memory.insight.activity import day_begin, days_begin, utc_days
from memory.insight.replies import RegretCounts, RegretOfRung, RegretOfVersion, RegretReply, RegretTopic, Signal, Source
from memory.models import Rung
from memory.predicates.binding import Bound, scope_sql

# The period of ``regret_recent``.
RECENT_DAYS = 30
SIGNALS: tuple[Signal, ...] = ("looked_up", "restored", "shadow")

# An archiving lasts until the topic is restored or archived again, and the restore is its last signal. Archivings and
# restores that were undone do not count. Manual changes are in both journals; they are read from the audit events,
# because these are complete.
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
    WHERE {since} AND {until}
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

_COUNTS_SQL = """
SELECT grouping(r.policy, r.version, r.source), grouping(r.from_rung), r.source, r.policy, r.version, r.from_rung,
       count(*), count(*) FILTER (WHERE regretted), count(*) FILTER (WHERE looked_up > 0),
       count(*) FILTER (WHERE restored > 0), count(*) FILTER (WHERE shadow > 0)
FROM regrets r
GROUP BY GROUPING SETS ((r.source, r.policy, r.version), (r.from_rung), ())
ORDER BY 1, 2, r.source DESC, r.policy, r.version DESC, r.from_rung
"""

_TOTALS_SQL = """
SELECT count(*), count(*) FILTER (WHERE regretted), count(*) FILTER (WHERE looked_up > 0),
       count(*) FILTER (WHERE restored > 0), count(*) FILTER (WHERE shadow > 0)
FROM regrets WHERE {which}
"""

_DAYS_SQL = """
SELECT (at AT TIME ZONE 'UTC')::date, count(*), count(*) FILTER (WHERE regretted)
FROM regrets WHERE source = 'run' GROUP BY 1
"""

_TOPICS_SQL = """
SELECT r.topic_id, t.title, t.kind, sc.path, t.rung, r.at, r.source, r.run_id, r.policy, r.version, r.from_rung,
       r.looked_up, r.looked_up_at, r.back_at, r.shadow, r.shadow_at, r.shadow_rank
FROM regrets r JOIN memory_topic t ON t.id = r.topic_id JOIN memory_scope sc ON sc.id = t.scope_id
WHERE r.regretted AND {by} AND {after}
ORDER BY greatest(r.looked_up_at, r.back_at, r.shadow_at) DESC, r.topic_id DESC, r.at DESC LIMIT {limit:d}
"""
_AFTER = """
(greatest(r.looked_up_at, r.back_at, r.shadow_at), r.topic_id, r.at)
< ({last}::timestamptz, {id}::uuid, {at}::timestamptz)
"""

_COUNT_SQL = "SELECT count(*) FROM (SELECT 1 FROM regrets r WHERE regretted AND {by} LIMIT {most:d}) x"

_REASONS_SQL = """
SELECT p.scope, p.number, p.author, p.reason FROM memory_policyversion p
JOIN unnest(%(scopes)s::text[], %(numbers)s::int[]) AS d (scope, number) ON d.scope = p.scope AND d.number = p.number
"""


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
    """Return how many archivings at or below ``scope`` were regretted, by policy version and by rung, and the topics.

    ``since`` and ``until`` select archivings by their time; signals count until ``now``. At most ``limit`` topics are
    listed, those with the latest signal first. Three queries. Raises ``NotVisible`` for a scope outside the caller's
    scope.
    """
    chosen = principal.scope_chosen(scope)
    bound = Bound()
    regrets = _regrets_sql(bound, scope=chosen, since=since, until=until or now)
    with connection.cursor() as cursor:
        cursor.execute(regrets + _COUNTS_SQL, bound.values)
        counted: list[tuple[Any, ...]] = cursor.fetchall()
        cursor.execute(regrets + _TOPICS_SQL.format(by="true", after="true", limit=limit), bound.values)
        topics = [_topic(*row) for row in cursor.fetchall()]
        versions = [(row[3], row[4]) for row in counted if row[0] == 0 and row[3] is not None]
        cursor.execute(
            _REASONS_SQL, {"scopes": [path for path, _n in versions], "numbers": [number for _path, number in versions]}
        )
        reasons = {(path, number): (author, reason) for path, number, author, reason in cursor.fetchall()}
    totals = _numbers((0, 0, 0, 0, 0))
    by_version: list[RegretOfVersion] = []
    by_rung: list[RegretOfRung] = []
    for no_version, no_rung, source, policy, version, rung, *counts in counted:
        if no_version and no_rung:
            totals = _numbers(counts)
        elif no_rung:
            found = reasons.get((policy, version)) if policy is not None and principal.sees(policy) else None
            author, reason = found or (None, None)
            by_version.append(
                {
                    "by": source,
                    "policy": policy,
                    "version": version,
                    "author": author,
                    "reason": reason,
                    **_numbers(counts),
                }
            )
        else:
            by_rung.append({"rung": _label(rung), **_numbers(counts)})
    return {
        "scope": chosen,
        "since": since,
        "until": until,
        **totals,
        "by_version": by_version,
        "by_rung": by_rung,
        "topics": topics,
        "sentence": _sentence(totals),
    }


@dataclass(frozen=True, slots=True)
class RegretDay:
    """How many topics runs archived on one day in UTC, and how many of these were needed afterwards."""

    day: dt.date
    archived: int = 0
    regretted: int = 0


def regret_days(*, days: int, principal: Principal, now: dt.datetime, scope: str = ROOT) -> list[RegretDay]:
    """Return the last ``days`` days in UTC, earliest first, including today and days without archivings.

    Only archivings by runs count, because the figures measure the policy. One query over the archivings of these days.
    Raises ``NotVisible`` for a scope outside the caller's scope.
    """
    bound = Bound()
    every = utc_days(days, now=now)
    regrets = _regrets_sql(bound, scope=principal.scope_chosen(scope), since=day_begin(every[0]), until=now)
    with connection.cursor() as cursor:
        cursor.execute(regrets + _DAYS_SQL, bound.values)
        found = {day: RegretDay(day, archived, regretted) for day, archived, regretted in cursor.fetchall()}
    return [found.get(day, RegretDay(day)) for day in every]


def regret_recent(*, now: dt.datetime) -> tuple[int, int]:
    """Return (archived, regretted): how many topics runs archived in the whole store in the last 30 days, and how many
    of these were needed afterwards. One query over the archivings of these days."""
    bound = Bound()
    regrets = _regrets_sql(bound, scope="/", since=days_begin(RECENT_DAYS, now=now), until=now)
    with connection.cursor() as cursor:
        cursor.execute(regrets + _TOTALS_SQL.format(which="source = 'run'"), bound.values)
        archived, regretted, *_signals = cursor.fetchone()
    return archived, regretted


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
) -> tuple[list[RegrettedTopic], str | None]:
    """Return the regretted archivings, those with the latest signal first, and the cursor of the next page.

    A topic with two regretted archivings is listed twice. ``by`` selects the archivings by runs or the manual ones. One
    query over the archivings of the period. Raises ``NotVisible`` for a scope outside the caller's scope,
    ``ValueRefused`` for an invalid cursor.
    """
    bound, after = Bound(), "true"
    regrets = _regrets_sql(bound, scope=principal.scope_chosen(scope), since=since, until=until or now)
    if cursor is not None:
        signal_at, topic_id, at = cursor_parse(cursor, cursor_time, uuid.UUID, cursor_time)
        after = _AFTER.format(last=bound.bind(signal_at), id=bound.bind(topic_id), at=bound.bind(at))
    with connection.cursor() as ask:
        ask.execute(regrets + _TOPICS_SQL.format(by=_by_sql(bound, by), after=after, limit=limit + 1), bound.values)
        rows = [_regretted(_topic(*row)) for row in ask.fetchall()]
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
) -> int:
    """Return the number of regretted archivings, at most ``at_most`` + 1. One query."""
    bound = Bound()
    regrets = _regrets_sql(bound, scope=principal.scope_chosen(scope), since=since, until=until or now)
    with connection.cursor() as ask:
        ask.execute(regrets + _COUNT_SQL.format(by=_by_sql(bound, by), most=at_most + 1), bound.values)
        return int(ask.fetchone()[0])


def regret_of_topic(topic_id: uuid.UUID, *, now: dt.datetime) -> list[RegretTopic]:
    """Return the regretted archivings of one topic with their signals, newest first. One query.

    The function does not check whether the caller may see the topic.
    """
    bound = Bound()
    regrets = _regrets_sql(bound, scope="/", since=None, until=now, topic_id=topic_id)
    with connection.cursor() as cursor:
        cursor.execute(regrets + _TOPICS_SQL.format(by="true", after="true", limit=50), bound.values)
        return [_topic(*row) for row in cursor.fetchall()]


def regret_of_run(run_id: uuid.UUID, *, now: dt.datetime) -> RegretCounts:
    """Return how many archivings of one run were regretted until ``now``, by signal. One query over the journal of the
    topics that the run archived. The function does not check whether the caller may see the run."""
    bound = Bound()
    regrets = _regrets_sql(bound, scope="/", since=None, until=now, run_id=run_id)
    with connection.cursor() as cursor:
        cursor.execute(regrets + _TOTALS_SQL.format(which=f"run_id = {bound.bind(run_id)}"), bound.values)
        return _numbers(cursor.fetchone())


def _regrets_sql(
    bound: Bound,
    *,
    scope: str,
    since: dt.datetime | None,
    until: dt.datetime,
    topic_id: uuid.UUID | None = None,
    run_id: uuid.UUID | None = None,
) -> str:
    bound.values["rungs"] = [rung.label for rung in Rung]
    one = None
    if topic_id is not None:
        one = f"{bound.bind(topic_id)}::uuid"
    elif run_id is not None:
        one = f"ANY(ARRAY(SELECT topic_id FROM memory_forgetaction WHERE run_id = {bound.bind(run_id)} AND "
        one += "action = 'archived'))"
    return _REGRETS_SQL.format(
        by_hand=by_hand_sql("a"),
        archive_back=undone_sql("e"),
        restore_back=undone_sql("r"),
        within=scope_sql("v.scope_id", scope, bound.bind),
        since="true" if since is None else f"a.at >= {bound.bind(since)}::timestamptz",
        until=f"a.at < {bound.bind(until)}::timestamptz + interval '1 microsecond'",
        topic_action=f"AND a.topic_id = {one}" if one else "",
        topic_audit=f"AND e.topic_id = {one}" if one else "",
    )


def _by_sql(bound: Bound, by: Source | None) -> str:
    return "true" if by is None else f"r.source = {bound.bind(by)}"


def _numbers(counts: Sequence[int]) -> RegretCounts:
    archived, regretted, looked_up, restored, shadow = counts
    return {
        "archived": archived,
        "regretted": regretted,
        "rate": regretted / archived if archived else 0.0,
        "signals": {"looked_up": looked_up, "restored": restored, "shadow": shadow},
    }


def _regretted(topic: RegretTopic) -> RegrettedTopic:
    signals = (topic["looked_up_at"], topic["restored_at"], topic["shadow_at"])
    return {**topic, "regretted_at": max(at for at in signals if at is not None)}


def _label(rung: int | None) -> str | None:
    return None if rung is None else Rung(rung).label


def _sentence(report: RegretCounts) -> str:
    if not report["archived"]:
        return "Nothing was archived in this period."
    signals = report["signals"]
    return (
        f"{report['regretted']:,} of {report['archived']:,} archivings were regretted ({report['rate']:.1%}): "
        f"{signals['looked_up']:,} looked up, {signals['restored']:,} restored, {signals['shadow']:,} found by the "
        "shadow search."
    )


def _topic(
    topic_id: uuid.UUID,
    title: str,
    kind: str,
    scope: str,
    rung: int,
    at: dt.datetime,
    source: Source,
    run_id: uuid.UUID | None,
    policy: str | None,
    version: int | None,
    from_rung: int | None,
    looked_up: int,
    looked_up_at: dt.datetime | None,
    back_at: dt.datetime | None,
    shadow: int,
    shadow_at: dt.datetime | None,
    shadow_rank: int | None,
) -> RegretTopic:
    """Return a row of ``_TOPICS_SQL`` as a reply."""
    times = {"looked_up": looked_up, "restored": int(back_at is not None), "shadow": shadow}
    return {
        "topic_id": str(topic_id),
        "title": title,
        "topic_kind": kind,
        "scope": scope,
        "rung": Rung(rung).label,
        "archived_at": at,
        "by": source,
        "run_id": str(run_id) if run_id else None,
        "policy": policy,
        "version": version,
        "from_rung": _label(from_rung),
        "signals": [name for name in SIGNALS if times[name]],
        "looked_up": looked_up,
        "looked_up_at": looked_up_at,
        "restored_at": back_at,
        "shadow_hits": shadow,
        "shadow_at": shadow_at,
        "shadow_rank": shadow_rank,
    }
