"""The topics that a run would act on, read from the statement by which runs are planned."""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.db import connection

from memory.forgetting.candidates import candidates_possible, candidates_sql
from memory.policy.snapshot import Policies


@dataclass(frozen=True, slots=True)
class Candidate:
    """One topic that a run would act on."""

    topic_id: uuid.UUID
    from_rung: int
    to_rung: int
    action: str
    score: float


def candidates_find(
    policies: Policies,
    scope: str,
    *,
    event: str,
    now: dt.datetime,
    limit: int | None = None,
    keys_outdated: bool = False,
) -> list[Candidate]:
    """Return what a run would act on, lowest score first. One query if nothing is due, else two."""
    if not keys_outdated and not candidates_possible(policies, scope, event=event, now=now):
        return []
    query = candidates_sql(policies, scope, event=event, now=now, keys_outdated=keys_outdated)
    most = "" if limit is None else f" LIMIT {limit:d}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT topic_id, from_rung, to_rung, action, score FROM ({query.text}) c ORDER BY score, topic_id{most}",
            query.bound.values,
        )
        return [Candidate(*row) for row in cursor.fetchall()]


def candidates_count(policies: Policies, scope: str, *, event: str, now: dt.datetime) -> dict[str, int]:
    """Return how many topics a run would act on, by action. One query if nothing is due, else two."""
    if not candidates_possible(policies, scope, event=event, now=now):
        return {}
    query = candidates_sql(policies, scope, event=event, now=now)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT action, count(*) FROM ({query.text}) c GROUP BY action", query.bound.values)
        return dict(cursor.fetchall())
