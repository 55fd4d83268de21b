"""SQL conditions on topics, shared by probe, candidates and bundles."""

import datetime as dt
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models import Rung
from memory.models.formulas_sql import scope_within_sql
from memory.recall.request import QueryRequest


def rung_below_sql(row: str, rung: Rung, *, as_of: dt.datetime | None) -> str:
    """Return the SQL condition that ``row``, an alias of Topic, is on a rung below ``rung``. With ``as_of``, topics
    that were below it at that time meet the condition too. The journal of actions has the rungs of that time."""
    now = f"{row}.rung < {int(rung)}"
    if as_of is None:
        return now
    return f"""({now} OR (
        SELECT fa.from_rung FROM memory_forgetaction fa
        WHERE fa.topic_id = {row}.id AND fa.at > %(as_of)s::timestamptz AND fa.state NOT IN ('planned', 'skipped')
        ORDER BY fa.at, fa.id LIMIT 1
    ) < {int(rung)})"""


_FIELD_VALUES = """
NOT EXISTS (
    SELECT 1 FROM jsonb_each_text(%(field_values)s::jsonb) AS wanted (name, value)
    WHERE NOT EXISTS (
        SELECT 1 FROM memory_field wf JOIN memory_revision wr ON wr.field_id = wf.id AND wr.seq = wf.last_seq
        WHERE wf.topic_id = t.id AND wf.name = wanted.name AND wr.value = wanted.value))
"""


def topic_conditions(
    *,
    kinds: Sequence[str] | None,
    categories: Sequence[str] | None,
    as_of: dt.datetime | None,
    created_after: dt.datetime | None,
    created_before: dt.datetime | None,
    field_values: Mapping[str, str] | None,
) -> list[str]:
    """Return SQL conditions on ``t``, a row of Topic: not released, not merged, and the filters that are not None."""
    conditions = ["t.released_at IS NULL", "t.merged_into_id IS NULL"]
    if kinds is not None:
        conditions.append("t.kind = ANY(%(kinds)s::text[])")
    if categories is not None:
        conditions.append("t.categories && %(categories)s::varchar[]")
    if field_values is not None:
        conditions.append(_FIELD_VALUES)
    if as_of is not None:
        conditions.append("t.created_at <= %(as_of)s::timestamptz")
    return conditions + created_conditions(created_after, created_before)


def created_conditions(after: dt.datetime | None, before: dt.datetime | None) -> list[str]:
    """Return SQL conditions on ``t``, a row of Topic: created at ``%(created_after)s`` or later, and before
    ``%(created_before)s``. None is no condition. Raises ``ValueRefused`` if no time meets both."""
    if after is not None and before is not None and after >= before:
        raise ValueRefused(
            "`created_before` must be later than `created_after`.",
            code=ProblemCode.INVALID_PERIOD,
            member="created_before",
        )
    conditions = []
    if after is not None:
        conditions.append("t.created_at >= %(created_after)s::timestamptz")
    if before is not None:
        conditions.append("t.created_at < %(created_before)s::timestamptz")
    return conditions


@dataclass(frozen=True, slots=True)
class ExtraCondition:
    """A condition that the caller adds, on ``t`` (Topic) and ``lv`` (Vitality), with its parameters."""

    sql: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CandidateFilter:
    """Conditions on candidates; None means all. ``only_archived`` excludes live topics, also as neighbours. Topics
    that were created at ``created_after`` itself meet the condition, at ``created_before`` they do not."""

    scope: str
    kinds: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    topic_ids: Sequence[uuid.UUID] | None = None
    as_of: dt.datetime | None = None
    created_after: dt.datetime | None = None
    created_before: dt.datetime | None = None
    include_archived: bool = False
    only_archived: bool = False
    field_values: Mapping[str, str] | None = None
    extra: ExtraCondition | None = None

    @property
    def on_topic(self) -> bool:
        """Whether the conditions need the row of Topic."""
        limits = (
            *(self.kinds, self.categories, self.topic_ids, self.as_of, self.created_after, self.created_before),
            *(self.field_values, self.extra),
        )
        return self.include_archived or self.only_archived or any(limit is not None for limit in limits)

    @property
    def since(self) -> bool:
        """Whether topics that were archived after ``as_of`` are candidates."""
        return self.as_of is not None and not (self.include_archived or self.only_archived)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the conditions."""
        return {
            "scope": self.scope,
            "below": self.scope.rstrip("/") + "/",
            "kinds": list(self.kinds) if self.kinds is not None else None,
            "categories": list(self.categories) if self.categories is not None else None,
            "topic_ids": list(self.topic_ids) if self.topic_ids is not None else None,
            "as_of": self.as_of,
            "created_after": self.created_after,
            "created_before": self.created_before,
            "field_values": None if self.field_values is None else json.dumps(self.field_values),
            **(self.extra.parameters if self.extra is not None else {}),
        }

    def within_sql(self, row: str) -> str:
        """Return the conditions on ``row``, an alias of TopicVector or TopicDocument: its scope, and whether it is
        live."""
        conditions = [] if self.scope == "/" else [scope_within_sql(f"{row}.scope_id")]
        if self.only_archived:
            conditions.append(f"NOT {row}.live")
        elif not self.include_archived:
            conditions.append(f"{row}.live")
        return " AND ".join(conditions) or "true"

    def since_sql(self) -> str:
        """Return the query for topics that meet the conditions and that were archived after ``as_of``, according to the
        journal."""
        conditions = self._on_topic_sql() + ([] if self.scope == "/" else [scope_within_sql("t.scope_id")])
        return f"""
            SELECT DISTINCT t.id AS topic_id FROM memory_forgetaction a JOIN memory_topic t ON t.id = a.topic_id
            WHERE a.action = 'archived' AND a.at > %(as_of)s::timestamptz AND t.rung = {int(Rung.ARCHIVED)}
              AND {rung_below_sql("t", Rung.ARCHIVED, as_of=self.as_of)}
              AND {" AND ".join(conditions)}"""

    def _on_topic_sql(self) -> list[str]:
        conditions = topic_conditions(
            kinds=self.kinds,
            categories=self.categories,
            as_of=self.as_of,
            created_after=self.created_after,
            created_before=self.created_before,
            field_values=self.field_values,
        )
        if self.topic_ids is not None:
            conditions.append("t.id = ANY(%(topic_ids)s::uuid[])")
        return conditions

    def topics_sql(self) -> tuple[str, str]:
        """Return (joins, all conditions) on ``t``, a row of Topic, both as SQL."""
        conditions = self._on_topic_sql() + ([] if self.scope == "/" else [scope_within_sql("t.scope_id")])
        if self.only_archived:
            conditions.append(f"t.rung = {int(Rung.ARCHIVED)}")
        elif not self.include_archived:
            conditions.append(rung_below_sql("t", Rung.ARCHIVED, as_of=self.as_of))
        if self.extra is None:
            return "", " AND ".join(conditions)
        return "JOIN memory_vitality lv ON lv.topic_id = t.id", " AND ".join([*conditions, self.extra.sql])

    def joined_sql(self, row: str) -> tuple[str, str]:
        """Return (a join of ``row`` with Topic, the conditions on Topic), both as SQL. Both are empty if no condition
        needs Topic."""
        if not self.on_topic:
            return "", ""
        conditions = self._on_topic_sql()
        join = f"JOIN memory_topic t ON t.id = {row}.topic_id"
        if self.extra is not None:
            join += f" JOIN memory_vitality lv ON lv.topic_id = {row}.topic_id"
            conditions.append(self.extra.sql)
        return join, " AND " + " AND ".join(conditions)


def filters_of(request: QueryRequest, *, scope: str) -> CandidateFilter:
    """Return the conditions of a query in ``scope``."""
    return CandidateFilter(
        scope=scope,
        kinds=request.kinds,
        categories=request.categories,
        topic_ids=request.topic_ids,
        as_of=request.as_of,
        created_after=request.created_after,
        created_before=request.created_before,
        field_values=request.field_values,
        include_archived=request.include_archived,
    )
