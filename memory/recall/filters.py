"""SQL conditions on candidates, shared by probe and candidates."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.models import Rung
from memory.models.expressions import scope_within_sql


def rung_below_sql(row: str, rung: Rung, *, as_of: dt.datetime | None) -> str:
    """Return the condition that ``row``, an alias of Topic, is above ``rung`` on the ladder now, or was at ``as_of``.

    The first entry of the journal after that time has the rung of then.
    """
    now = f"{row}.rung < {int(rung)}"
    if as_of is None:
        return now
    return f"""({now} OR (
        SELECT fa.from_rung FROM memory_forgetaction fa
        WHERE fa.topic_id = {row}.id AND fa.at > %(as_of)s::timestamptz AND fa.state NOT IN ('planned', 'skipped')
        ORDER BY fa.at, fa.id LIMIT 1
    ) < {int(rung)})"""


def topic_conditions(
    *, kinds: Sequence[str] | None, categories: Sequence[str] | None, as_of: dt.datetime | None
) -> list[str]:
    """Return the conditions on a topic's row ``t``: neither released nor merged, and the filters that are not None."""
    conditions = ["t.released_at IS NULL", "t.merged_into_id IS NULL"]
    if kinds is not None:
        conditions.append("t.kind = ANY(%(kinds)s::text[])")
    if categories is not None:
        conditions.append("t.categories && %(categories)s::varchar[]")
    if as_of is not None:
        conditions.append("t.created_at <= %(as_of)s::timestamptz")
    return conditions


@dataclass(frozen=True, slots=True)
class ExtraCondition:
    """A condition of the caller's on ``t`` (Topic) and ``lv`` (Vitality), with its parameters."""

    sql: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CandidateFilter:
    """Which topics may be candidates. ``scope`` is canonical; None means all.

    With ``only_archived`` nothing live takes part, as candidate or as neighbour.
    """

    scope: str
    kinds: Sequence[str] | None = None
    categories: Sequence[str] | None = None
    topic_ids: Sequence[uuid.UUID] | None = None
    as_of: dt.datetime | None = None
    include_archived: bool = False
    only_archived: bool = False
    extra: ExtraCondition | None = None

    @property
    def on_topic(self) -> bool:
        """Whether the conditions need the topic's own row."""
        return (
            any(part is not None for part in (self.kinds, self.categories, self.topic_ids, self.as_of))
            or self.include_archived
            or self.only_archived
            or self.extra is not None
        )

    @property
    def since(self) -> bool:
        """Whether topics take part that were archived after ``as_of``."""
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
            **(self.extra.parameters if self.extra is not None else {}),
        }

    def within_sql(self, row: str) -> str:
        """Return the conditions on a vector or document row: its scope, and that recall may return it."""
        conditions = [] if self.scope == "/" else [scope_within_sql(f"{row}.scope_id")]
        if self.only_archived:
            conditions.append(f"NOT {row}.live")
        elif not self.include_archived:
            conditions.append(f"{row}.live")
        return " AND ".join(conditions) or "true"

    def since_sql(self) -> str:
        """Return the query for the topics that were archived after ``as_of`` and meet the other conditions.

        It reads the journal of what was archived since, and no index of recall.
        """
        conditions = self._on_topic_sql() + ([] if self.scope == "/" else [scope_within_sql("t.scope_id")])
        return f"""
            SELECT DISTINCT t.id AS topic_id FROM memory_forgetaction a JOIN memory_topic t ON t.id = a.topic_id
            WHERE a.action = 'archived' AND a.at > %(as_of)s::timestamptz AND t.rung = {int(Rung.ARCHIVED)}
              AND {rung_below_sql("t", Rung.ARCHIVED, as_of=self.as_of)}
              AND {" AND ".join(conditions)}"""

    def _on_topic_sql(self) -> list[str]:
        conditions = topic_conditions(kinds=self.kinds, categories=self.categories, as_of=self.as_of)
        if self.topic_ids is not None:
            conditions.append("t.id = ANY(%(topic_ids)s::uuid[])")
        return conditions

    def joined_sql(self, row: str) -> tuple[str, str]:
        """Return a join to the topic's row and the conditions on it; both are empty if they are not needed."""
        if not self.on_topic:
            return "", ""
        conditions = self._on_topic_sql()
        join = f"JOIN memory_topic t ON t.id = {row}.topic_id"
        if self.extra is not None:
            join += f" JOIN memory_vitality lv ON lv.topic_id = {row}.topic_id"
            conditions.append(self.extra.sql)
        return join, " AND " + " AND ".join(conditions)
