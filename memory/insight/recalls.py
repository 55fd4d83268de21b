"""Recalls: the queries in the access log, each with the topics that it returned and their present state. Read-only."""

import datetime as dt
import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.db import connection
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from memory.access.keys import caller_identities, caller_labels
from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_number, cursor_parse, cursor_time
from memory.core.errors import NotVisible
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_within
from memory.formulas.salience import reinforcement_share
from memory.insight.shadow import WATERMARK, access_sampled
from memory.models import AccessLog, ForgetRun, Rung, ShadowHit, Watermark
from memory.policy.effective import knobs_effective
from memory.predicates.binding import path_q
from memory.recall.query import query_answer
from memory.recall.request import MAX_TOP_K, QueryRequest

# The longest time between the counting of a query and the planning of the run that answers it. Usually both happen
# within two minutes.
SETS_OFF_WITHIN = dt.timedelta(minutes=10)
# The event of runs that answer queries.
AFTER_QUERY = "query_complete"
# The least number of topics for which a query is repeated.
TOP_K = 8

# The present state of topics, and the summaries that were replaced since. Purged topics have no row.
_TOPICS_SQL = f"""
SELECT t.id, t.title, t.summary,
       (SELECT e.before->>'summary' FROM memory_topicedit e
        WHERE e.topic_id = t.id AND e.at > %(at)s AND e.before ? 'summary' ORDER BY e.at, e.id LIMIT 1),
       s.path, t.rung, t.created_at, t.updated_at, t.released_at, t.merged_into_id,
       CASE WHEN t.rung = {Rung.ARCHIVED:d} THEN greatest(
           (SELECT max(a.at) FROM memory_forgetaction a
            WHERE a.topic_id = t.id AND a.action = 'archived' AND a.state = 'applied'),
           (SELECT max(e.at) FROM memory_auditevent e WHERE e.topic_id = t.id AND e.action = 'archived')
       ) END
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id WHERE t.id = ANY(%(ids)s)
"""
# A query causes runs in the partitions of the topics that it returned.
_TOUCHES_SQL = """
EXISTS (SELECT 1 FROM unnest(memory_accesslog.topic_ids) AS x (id) JOIN memory_topic t ON t.id = x.id
        JOIN memory_scope s ON s.id = t.scope_id
        WHERE %s = '/' OR s.path = %s OR starts_with(s.path, %s))
"""

# Topics without a known relevance do not count.
_IRRELEVANT_SQL = """
(SELECT max(x.relevance) FROM unnest(memory_accesslog.relevances) AS x (relevance)) < memory_accesslog.min_relevance
"""

# The newest query that can have caused each run, among the queries of the last hour before the run.
_BEHIND_SQL = f"""
SELECT r.id, a.id, a.query, a.actor
FROM memory_forgetrun r CROSS JOIN LATERAL (
    SELECT l.id, l.query, l.actor FROM memory_accesslog l
    WHERE l.kind = 'query' AND l.at > r.created_at - interval '1 hour' AND l.at <= r.created_at
      AND l.folded_at > r.created_at - interval '{SETS_OFF_WITHIN.total_seconds():.0f} seconds'
      AND l.folded_at <= r.created_at
      AND EXISTS (SELECT 1 FROM unnest(l.topic_ids) AS x (id) JOIN memory_topic t ON t.id = x.id
                  JOIN memory_scope s ON s.id = t.scope_id
                  WHERE r.scope = '/' OR s.path = r.scope OR starts_with(s.path, r.scope || '/'))
    ORDER BY l.at DESC, l.id DESC LIMIT 1
) a
WHERE r.id = ANY(%(runs)s)
"""


@dataclass(frozen=True, slots=True)
class RecallBehind:
    """The query that caused a run, and the label of its caller."""

    recall_id: int
    query: str
    actor: str


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """Which recalls a list shows; None means all. ``scope`` is canonical and includes the scopes below it. ``actor``
    may be given without ``user:`` or ``key:``. ``text`` must occur in the question. ``run`` selects the recalls that
    may have caused this run. ``result`` selects those that returned nothing, or nothing relevant."""

    scope: str = ROOT
    actor: str | None = None
    text: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    run: uuid.UUID | None = None
    result: Literal["nothing", "irrelevant"] | None = None


def recalls_list(
    filters: RecallFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return recalls, newest first, and the cursor of the next page. Three statements, two more with ``actor``, one
    more with ``run``.

    Raises ``NotVisible`` for a scope outside the caller's scope, ``ValueRefused`` for an invalid cursor.
    """
    found = _recalls(filters, principal).order_by("-at", "-id")
    if cursor is not None:
        at, number = cursor_parse(cursor, cursor_time, cursor_number)
        found = found.filter(Q(at__lt=at) | Q(at=at, id__lt=number))
    rows = list(found[: limit + 1])
    following = cursor_make(rows[limit - 1].at, rows[limit - 1].pk) if len(rows) > limit else None
    names = caller_labels(row.actor for row in rows[:limit])
    return [_recall_as_dict(row, names) for row in rows[:limit]], following


def recalls_behind(runs: Iterable[ForgetRun]) -> dict[uuid.UUID, RecallBehind]:
    """Return, by the id of the run, the newest query that can have caused each run. Only runs that answer queries have
    an entry. At most three statements; none without such runs."""
    wanted = [run.pk for run in runs if run.event == AFTER_QUERY]
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_BEHIND_SQL, {"runs": wanted})
        rows = cursor.fetchall()
    names = caller_labels(actor for *_rest, actor in rows)
    return {run_id: RecallBehind(access_id, query, names.get(actor, actor)) for run_id, access_id, query, actor in rows}


def recalls_count(filters: RecallFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of recalls, at most ``at_most`` + 1. One query, two more with ``actor``, one more with
    ``run``."""
    return _recalls(filters, principal)[: at_most + 1].count()


def _recalls(filters: RecallFilter, principal: Principal) -> QuerySet[AccessLog]:
    found = AccessLog.objects.filter(path_q(principal.scope_chosen(filters.scope)), kind=AccessLog.Kind.QUERY)
    if filters.actor is not None:
        found = found.filter(actor__in=caller_identities(filters.actor))
    if filters.text is not None:
        found = found.filter(query__icontains=filters.text)
    if filters.since is not None:
        found = found.filter(at__gte=filters.since)
    if filters.until is not None:
        found = found.filter(at__lt=filters.until)
    if filters.result == "nothing":
        found = found.filter(topic_ids__len=0)
    elif filters.result == "irrelevant":
        found = found.filter(RawSQL(_IRRELEVANT_SQL, [], output_field=BooleanField()))  # noqa: S611 (constant)
    if filters.run is not None:
        run = ForgetRun.objects.filter(pk=filters.run, event=AFTER_QUERY).first()
        if run is None:
            return found.none()
        parameters = [run.scope, run.scope, f"{run.scope}/"]
        touches = RawSQL(_TOUCHES_SQL, parameters, output_field=BooleanField())  # noqa: S611 (the text is constant)
        found = found.filter(
            touches,
            folded_at__gt=run.created_at - SETS_OFF_WITHIN,
            folded_at__lte=run.created_at,
            # Older queries cause no run. The condition lets PostgreSQL use the only index of the log by time.
            at__gt=run.created_at - dt.timedelta(days=1),
        )
    return found


def _recall_as_dict(row: AccessLog, names: Mapping[str, str]) -> dict[str, Any]:
    best = max((relevance for relevance in row.relevances if relevance is not None), default=None)
    return {
        "recall_id": row.pk,
        "at": row.at,
        "actor": names.get(row.actor, row.actor),
        "scope": row.scope,
        "query": row.query,
        "returned": len(row.topic_ids),
        "relevance": best,
        # Topics below the least relevance are not reinforced.
        "irrelevant": best is not None and best < row.min_relevance,
        "tokens": row.tokens,
        "milliseconds": row.milliseconds,
    }


def recall_get(access_id: int, *, principal: Principal, now: dt.datetime, again: bool = False) -> dict[str, Any]:
    """Return one recall: the question, the returned topics, the topics that its limits cut, the archived topics that
    the shadow search found, and the run after it. With ``again``, also what the question would return at ``now``;
    asking again reinforces nothing.

    At most eight queries, and with ``again`` those of a query. Raises ``NotVisible``.
    """
    row = AccessLog.objects.filter(path_q(principal.scope), pk=access_id, kind=AccessLog.Kind.QUERY).first()
    if row is None:
        raise NotVisible("This recall does not exist.", code=ProblemCode.RECALL_NOT_FOUND)
    now_returned = _asked_again(row, principal, now) if again and row.query.strip() else None
    shadow = list(ShadowHit.objects.filter(access_id=access_id).order_by("rank"))
    topics = _topics({*row.topic_ids, *row.cut_ids, *(hit.topic_id for hit in shadow), *(now_returned or {})}, row)
    place_then = {topic_id: place for place, topic_id in enumerate(row.topic_ids, start=1)}
    returned = []
    for index, topic_id in enumerate(row.topic_ids):
        relevance = row.relevances[index] if row.relevances else None
        share = reinforcement_share(math.nan if relevance is None else relevance, min_relevance=row.min_relevance)
        measured = {
            "place": index + 1,
            "score": row.scores[index] if row.scores else None,
            "relevance": relevance,
            "share": float(share),
            "bump": row.bump * float(share),
            "place_now": ((now_returned or {}).get(topic_id) or {}).get("place"),
        }
        returned.append(topics[topic_id] | measured)
    return _recall_as_dict(row, caller_labels([row.actor])) | {
        "topics": returned,
        "cut": [topics[topic_id] for topic_id in row.cut_ids],
        "missed": [topics[hit.topic_id] | {"rank": hit.rank, "similarity": hit.similarity} for hit in shadow],
        "shadow": _shadow_state(row),
        "waiting": row.folded_at is None,
        "counted": bool(row.counted),
        "least": row.min_relevance,
        # A purge empties the hash of each row from which it removes anything.
        "erased": not row.query_hash,
        "run": _run_after(row, topics),
        "now": now_returned
        and [topics[each] | found | {"place_then": place_then.get(each)} for each, found in now_returned.items()],
    }


def _asked_again(row: AccessLog, principal: Principal, now: dt.datetime) -> dict[uuid.UUID, dict[str, Any]]:
    """Return what the question finds now, best first. If a limit cut the recorded answer, the new answer has the same
    number of topics."""
    most = len(row.topic_ids) if row.cut_ids else max(TOP_K, len(row.topic_ids))
    request = QueryRequest(q=row.query, scope=row.scope, top_k=min(max(most, 1), MAX_TOP_K), depth=0)
    found = query_answer(request, principal=principal, now=now, record=False).body["candidates"]
    return {
        uuid.UUID(each["topic_id"]): {"place": place, "score": each.get("score"), "relevance": each.get("relevance")}
        for place, each in enumerate(found, start=1)
    }


def _topics(ids: Iterable[uuid.UUID], row: AccessLog) -> dict[uuid.UUID, dict[str, Any]]:
    wanted = list(ids)
    with connection.cursor() as cursor:
        cursor.execute(_TOPICS_SQL, {"ids": wanted, "at": row.at})
        found = {each[0]: _topic_as_dict(each, row) for each in cursor.fetchall()}
    return {
        topic_id: found.get(topic_id, {"topic_id": topic_id, "title": None, "state": "erased"}) for topic_id in wanted
    }


def _topic_as_dict(found: tuple[Any, ...], row: AccessLog) -> dict[str, Any]:
    topic_id, title, summary, replaced, scope, rung, created_at, updated_at, released_at, merged_into, archived_at = (
        found
    )
    state, since = "live", None
    if merged_into is not None:
        state = "merged"
    elif released_at is not None:
        state, since = "released", released_at
    elif rung == Rung.ARCHIVED:
        state, since = "archived", archived_at
    return {
        "topic_id": topic_id,
        "title": title,
        "summary": summary if replaced is None else replaced,
        "summary_now": summary,
        # The former text may be lost, for example by a purge of what it was made from.
        "then_unknown": replaced is None and row.at < updated_at,
        "scope": scope,
        "state": state,
        "since": since,
        "merged_into": merged_into,
        "changed": row.at < updated_at,
        "is_new": row.at < created_at,
    }


def _shadow_state(row: AccessLog) -> str:
    """Return whether the shadow search has repeated a query: ``waiting``, ``left_out`` (not in the sample) or ``done``.

    The present share of the sample is used. After a change of the share, the result may be wrong for older queries.
    """
    if not row.query.strip():
        return "left_out"
    mark = Watermark.objects.filter(name=WATERMARK).first()
    if not access_sampled(row.pk, knobs_effective(row.scope).shadow_share):
        return "left_out"
    return "done" if mark is not None and mark.position >= row.pk else "waiting"


def _run_after(row: AccessLog, topics: Mapping[uuid.UUID, Mapping[str, Any]]) -> ForgetRun | None:
    """Return the first run that answers queries, was planned soon after this query was counted, and covers one of the
    returned topics."""
    if row.folded_at is None:
        return None
    runs = ForgetRun.objects.filter(
        event=AFTER_QUERY, created_at__gte=row.folded_at, created_at__lt=row.folded_at + SETS_OFF_WITHIN
    )
    scopes = {topics[topic_id].get("scope", ROOT) for topic_id in row.topic_ids}
    over = (run for run in runs.order_by("created_at", "id") if any(scope_within(scope, run.scope) for scope in scopes))
    return next(over, None)
