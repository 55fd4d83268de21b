"""The archive, page by page: which topics are archived, since when and why, and whether they were missed. Read-only.

A list in order of time reads only the last archivings of the topics on the page. A list in order of score reads the
last archivings of all matching topics.
"""

import datetime as dt
import json
import math
import uuid
from dataclasses import dataclass
from typing import Any, Literal

from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_parse, cursor_time
from memory.forgetting.manual_runs import undone_sql
from memory.forgetting.run_text import event_words
from memory.models import Rung
from memory.models.formulas_sql import rung_label_sql, salience_now_sql
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.predicates.binding import Bound, scope_sql
from memory.predicates.sql import text_sql

Sort = Literal["archived", "-archived", "score", "-score", "title", "-title"]
Why = Literal["threshold", "rule", "hand"]


@dataclass(frozen=True, slots=True)
class ArchiveFilter:
    """Which archived topics are listed; None means all. ``scope`` includes the scopes below it.

    ``missed`` selects topics that were looked up or found by the shadow search after they were archived. It also
    selects topics that had been restored from an earlier archiving. ``unseen`` selects topics that were not looked up
    after they were archived.
    """

    scope: str = "/"
    kind: str | None = None
    text: str | None = None
    why: Why | None = None
    run: uuid.UUID | None = None
    policy: str | None = None
    version: int | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    missed: bool = False
    unseen: bool = False
    sort: Sort = "archived"


# The last archiving that was not undone.
_LAST = """
LATERAL (
    SELECT l.at, l.run_id, l.from_rung::int AS from_rung, l.why FROM memory_forgetaction l
    WHERE l.topic_id = {topic} AND l.action = 'archived' AND l.state IN ('applied', 'conflict')
    ORDER BY l.at DESC LIMIT 1
) a
"""

_BY_TIME_SQL = """
(
    SELECT l.topic_id, l.at FROM memory_forgetaction l
    WHERE l.action = 'archived' AND l.state IN ('applied', 'conflict') AND {range}
    ORDER BY l.at {way}, l.topic_id {way}
) i JOIN memory_vitality v ON v.topic_id = i.topic_id
"""

# The times of the last lookups are in one JSON object, by topic. With a join and a LIMIT instead, PostgreSQL would plan
# a nested loop over all lookups.
_LOOKUPS = """
looked AS MATERIALIZED (
    SELECT jsonb_object_agg(id, extract(epoch from at)) AS last FROM (
        SELECT x.id, max(l.at) AS at FROM memory_accesslog l CROSS JOIN LATERAL unnest(l.topic_ids) AS x (id)
        WHERE l.kind = 'lookup' AND x.id IS NOT NULL GROUP BY x.id
    ) each_last
)
"""
_LOOKED = "coalesce(((SELECT last FROM looked)->>v.topic_id::text)::numeric > extract(epoch from a.at), false)"
# A restore that was not undone.
_RESTORED = f"b.action = 'restored' AND NOT {undone_sql('b')}"
_MISSED = f"""(
    {_LOOKED} OR EXISTS (SELECT 1 FROM memory_shadowhit h WHERE h.topic_id = v.topic_id AND h.at >= a.at)
    OR EXISTS (SELECT 1 FROM memory_auditevent b WHERE b.topic_id = v.topic_id AND {_RESTORED})
)"""

_PAGE_SQL = f"""
SELECT d.id, {label_sql()}, sc.path, v.kind, a.at, {rung_label_sql("a.from_rung")}, a.why, a.run_id, r.actor, r.event,
       {salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id")}, v.pinned,
       (SELECT count(*) FROM memory_shadowhit h WHERE h.topic_id = d.id AND h.at >= a.at),
       (SELECT min(h.rank) FROM memory_shadowhit h WHERE h.topic_id = d.id AND h.at >= a.at),
       (SELECT count(*) FROM memory_auditevent b WHERE b.topic_id = d.id AND {_RESTORED})
FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS d (id, place)
JOIN memory_topic t ON t.id = d.id JOIN memory_vitality v ON v.topic_id = d.id
JOIN memory_scope sc ON sc.id = t.scope_id
LEFT JOIN {_LAST.format(topic="d.id")} ON true LEFT JOIN memory_forgetrun r ON r.id = a.run_id
ORDER BY d.place
"""

_PAGE_LOOKUPS_SQL = """
SELECT d.id, count(*), max(l.at) FROM memory_accesslog l CROSS JOIN LATERAL unnest(l.topic_ids) AS x (id)
JOIN unnest(%(ids)s::uuid[], %(since)s::timestamptz[]) AS d (id, at) ON d.id = x.id AND l.at > d.at
WHERE l.kind = 'lookup' AND l.at > %(first)s AND l.topic_ids && %(ids)s::uuid[] GROUP BY d.id
"""


class Journaled:
    """A topic that a run changed. ``journal`` is the reason as JSON, and ``event`` the event of the run."""

    __slots__ = ()
    journal: str | None
    event: str | None

    @property
    def why(self) -> dict[str, Any]:
        """The reason in the journal; empty if the journal has no entry."""
        return json.loads(self.journal) if self.journal else {}

    @property
    def because(self) -> Why | None:
        """The kind of the reason; None if the journal has no entry, or the run that made the topic was undone."""
        why = self.why
        if why.get("by") == "undo":
            return None
        return ("hand" if why.get("by") == "hand" else "rule" if why.get("rule") else "threshold") if why else None

    @property
    def reason(self) -> str:
        """The reason as a sentence, or the reason that a person gave."""
        why = self.why
        if not why:
            return "The journal has no entry for it."
        if why.get("by") == "undo":
            return "The run that made it was undone."
        if why.get("by") == "hand":
            return str(why.get("reason") or "")
        if why.get("rule"):
            return f"By rule “{why['rule']}”."
        if why.get("threshold"):
            return f"Score below {why['theta']:g}."
        return "By the policy."

    @property
    def run_words(self) -> str:
        """The words for the run, which depend on its event."""
        return event_words(self.event) if self.event else "Run"

    @property
    def policy(self) -> str | None:
        """The scope of the policy by which the run archived the topic."""
        return self.why.get("policy")

    @property
    def version(self) -> int | None:
        """The version of the policy by which the run archived the topic."""
        return self.why.get("version")

    @property
    def score(self) -> float | None:
        """The score of the topic when it was archived."""
        score = self.why.get("score")
        return score if score is None or math.isfinite(score) else None


@dataclass(slots=True)
class ArchivedTopic(Journaled):
    """A row of the list. The attributes are in the order of the columns of ``_PAGE_SQL``."""

    topic_id: uuid.UUID
    title: str
    scope: str
    kind: str
    archived_at: dt.datetime | None
    from_rung: str | None
    journal: str | None
    run_id: uuid.UUID | None
    by: str | None
    event: str | None
    salience: float
    pinned: bool
    shadow_hits: int
    shadow_rank: int | None
    restored_before: int
    looked_up: int = 0
    looked_up_at: dt.datetime | None = None


def archived_list(
    filters: ArchiveFilter, *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[ArchivedTopic], str | None]:
    """Return (archived topics, cursor of the next page). Three queries. Raises ``NotVisible`` and ``ValueRefused``."""
    query = _Query(filters, principal)
    query.after(cursor)
    keys = query.rows(limit + 1)
    following = cursor_make(*keys[limit - 1]) if len(keys) > limit else None
    ids = [key[-1] for key in keys[:limit]]
    if not ids:
        return [], None
    topics = [ArchivedTopic(*row) for row in rows_read(_PAGE_SQL, {"ids": ids, "now": now})]
    by_id = {topic.topic_id: topic for topic in topics}
    since = {topic.topic_id: topic.archived_at for topic in topics if topic.archived_at is not None}
    if since:
        parameters = {"ids": list(since), "since": list(since.values()), "first": min(since.values())}
        for topic_id, times, last in rows_read(_PAGE_LOOKUPS_SQL, parameters):
            by_id[topic_id].looked_up, by_id[topic_id].looked_up_at = times, last
    return topics, following


def archived_count(filters: ArchiveFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of matching topics, at most ``at_most`` + 1. One query."""
    return _Query(filters, principal).count(at_most)


def archived_ids(filters: ArchiveFilter, *, principal: Principal, at_most: int) -> list[uuid.UUID]:
    """Return the matching topics in the order of the list, at most ``at_most`` + 1. One query."""
    return [key[-1] for key in _Query(filters, principal).rows(at_most + 1)]


class _Query:
    """The SQL statement that finds the matching topics. Its rows are the sort keys."""

    def __init__(self, filters: ArchiveFilter, principal: Principal) -> None:
        self.bound = Bound()
        self.filters = filters
        bind = self.bound.bind
        scope = principal.scope_chosen(filters.scope)
        self.where = [
            f"v.rung = {Rung.ARCHIVED:d}",
            "v.rung > 0",
            "t.released_at IS NULL",
            "t.merged_into_id IS NULL",
            scope_sql("v.scope_id", scope, bind),
        ]
        # The conditions of ``_BY_TIME_SQL``.
        self.range: list[str] = []
        if filters.kind is not None:
            self.where.append(f"v.kind = {bind(filters.kind)}")
        if filters.text is not None:
            self.where.append(text_sql(filters.text, bind))
        about: list[str] = []
        if filters.why == "hand":
            about.append("a.why->>'by' = 'hand'")
        elif filters.why is not None:
            about.append(f"a.why->>{bind(filters.why)}::text IS NOT NULL")
        if filters.run is not None:
            about.append(f"a.run_id = {bind(filters.run)}")
        if filters.policy is not None:
            about.append(f"a.why->>'policy' = {bind(filters.policy)}")
        if filters.version is not None:
            about.append(f"a.why->>'version' = {bind(str(filters.version))}")
        for sign, moment in ((">=", filters.since), ("<", filters.until)):
            if moment is not None:
                about.append(f"a.at {sign} {bind(moment)}::timestamptz")
                self.range.append(f"l.at {sign} {bind(moment)}::timestamptz")
        if filters.missed:
            about.append(_MISSED)
        if filters.unseen:
            about.append(f"NOT {_LOOKED}")
        self.where += about
        self.about_archiving = bool(about)

    def after(self, cursor: str | None) -> None:
        """Start after the row that ``cursor`` names. Raises ``ValueRefused`` for an invalid cursor."""
        if cursor is None:
            return
        key, topic_key, kind, read, way = _ORDERS[self.filters.sort]
        value, topic_id = cursor_parse(cursor, read, uuid.UUID)
        place = f"({self.bound.bind(value)}::{kind}, {self.bound.bind(topic_id)}::uuid)"
        if self.by_time:
            key, topic_key, conditions = "l.at", "l.topic_id", self.range
        else:
            conditions = self.where
        conditions.append(f"({key}, {topic_key}) {'<' if way == 'DESC' else '>'} {place}")

    @property
    def by_time(self) -> bool:
        """Whether the rows are read in the order of the index of archivings."""
        return self.filters.sort.endswith("archived")

    def rows(self, limit: int) -> list[tuple[Any, ...]]:
        """Return the sort keys of the first rows. The last member of a key is the topic."""
        key, topic_key, _kind, _read, way = _ORDERS[self.filters.sort]
        found = self._from(sort=self.filters.sort)
        return self._read(
            f"SELECT {key} AS key, {topic_key} {found} ORDER BY key {way}, {topic_key} {way} LIMIT {limit:d}"
        )

    def count(self, at_most: int) -> int:
        counted = f"SELECT count(*) FROM (SELECT 1 {self._from(sort=None)} LIMIT {at_most + 1:d}) x"
        return int(self._read(counted)[0][0])

    def _from(self, *, sort: str | None) -> str:
        where = list(self.where)
        source = "memory_vitality v"
        if sort is not None and self.by_time:
            source = _BY_TIME_SQL.format(range=" AND ".join(self.range) or "true", way=_ORDERS[sort][-1])
            # ``a`` is the last archiving, so this condition means a.at = i.at. With "=", PostgreSQL would expect few
            # rows, and choose a plan that reads all archivings.
            where.append("a.at <= i.at")
        # The last archiving is joined only if a filter or the sort needs it.
        needed = self.about_archiving or (sort is not None and not sort.endswith("title"))
        last = f"CROSS JOIN {_LAST.format(topic='v.topic_id')}" if needed else ""
        return f"FROM {source} JOIN memory_topic t ON t.id = v.topic_id {last} WHERE {' AND '.join(where)}"

    def _read(self, sql: str) -> list[tuple[Any, ...]]:
        lookups = f"WITH {_LOOKUPS} " if "FROM looked" in sql else ""
        return rows_read(lookups + sql, self.bound.values)


# Topics that were archived by hand have no score and come last.
_SCORE = "coalesce((a.why->>'score')::float8, '-infinity')"


# For each order of the list: the SQL of key and topic, the SQL type and the cursor parser of the key, and the
# direction.
_ORDERS: dict[str, tuple[str, str, str, Any, str]] = {
    "archived": ("i.at", "i.topic_id", "timestamptz", cursor_time, "DESC"),
    "-archived": ("i.at", "i.topic_id", "timestamptz", cursor_time, "ASC"),
    "score": (_SCORE, "v.topic_id", "float8", float, "DESC"),
    "-score": (_SCORE, "v.topic_id", "float8", float, "ASC"),
    "title": (label_sql(), "v.topic_id", "text", str, "ASC"),
    "-title": (label_sql(), "v.topic_id", "text", str, "DESC"),
}


def like_plain(text: str) -> str:
    """Return ``text`` with the special characters of LIKE patterns escaped."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
