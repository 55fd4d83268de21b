"""Recalls: the queries in the access log, each with the topics that it returned and their present state. Read-only."""

import datetime as dt
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import BooleanField, FloatField, QuerySet
from django.db.models.expressions import RawSQL

from memory.access.keys import caller_identities, caller_labels
from memory.access.principal import Principal
from memory.core.cursors import cursor_number, cursor_time
from memory.core.errors import NotVisible
from memory.core.scopes import ROOT, scope_within
from memory.explain.shadow import archive_search, may_miss
from memory.formulas.salience import reinforcement_share
from memory.models import AccessLog, ForgetRun, Rung, ShadowHit
from memory.models.labels import label_sql
from memory.models.newest_first import Order, sorted_page
from memory.models.statements import dicts_read, rows_read
from memory.predicates.binding import path_q
from memory.recall.query import query_answer
from memory.recall.request import QueryRequest, request_again

# The longest time between counting a query and planning the run that it causes. Usually it is at most two minutes.
SETS_OFF_WITHIN = dt.timedelta(minutes=10)
# The event of runs that queries cause.
AFTER_QUERY = "query_complete"

# The present state of topics, and their summaries at the time of the query. ``then_unknown`` means that the topic was
# updated later, and that no earlier summary is stored. Purged topics have no row.
_TOPICS_SQL = f"""
SELECT topic_id, title, coalesce(replaced, summary_now) AS summary, summary_now,
       replaced IS NULL AND updated_at > %(at)s AS then_unknown, scope, state,
       CASE state WHEN 'released' THEN released_at WHEN 'archived' THEN greatest(
           (SELECT max(a.at) FROM memory_forgetaction a
            WHERE a.topic_id = x.topic_id AND a.action = 'archived' AND a.state = 'applied'),
           (SELECT max(e.at) FROM memory_auditevent e WHERE e.topic_id = x.topic_id AND e.action = 'archived')
       ) END AS since,
       merged_into, updated_at > %(at)s AS changed, created_at > %(at)s AS is_new
FROM (
    SELECT t.id AS topic_id, {label_sql(until="%(at)s")} AS title, t.summary AS summary_now, s.path AS scope,
           t.created_at, t.updated_at, t.released_at, t.merged_into_id AS merged_into,
           CASE WHEN t.merged_into_id IS NOT NULL THEN 'merged' WHEN t.released_at IS NOT NULL THEN 'released'
                WHEN t.rung = {Rung.ARCHIVED:d} THEN 'archived' ELSE 'live' END AS state,
           (SELECT e.before->>'summary' FROM memory_topicedit e
            WHERE e.topic_id = t.id AND e.at > %(at)s AND e.before ? 'summary' ORDER BY e.at, e.id LIMIT 1) AS replaced
    FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id WHERE t.id = ANY(%(ids)s)
) x
"""
# A query causes runs in the partitions of the topics that it returned.
_TOUCHES_SQL = """
EXISTS (SELECT 1 FROM unnest(memory_accesslog.topic_ids) AS x (id) JOIN memory_topic t ON t.id = x.id
        JOIN memory_scope s ON s.id = t.scope_id
        WHERE %s = '/' OR s.path = %s OR starts_with(s.path, %s))
"""

# The best relevance of a recall. Topics without a known relevance do not count. A recall with a purged topic does not
# count as irrelevant, because this topic may have been relevant.
_RELEVANCE_SQL = """
(SELECT max(x.relevance) FROM unnest(memory_accesslog.relevances[:cardinality(memory_accesslog.topic_ids)])
 AS x (relevance))
"""
_IRRELEVANT_SQL = f"""
{_RELEVANCE_SQL} < memory_accesslog.min_relevance AND array_position(memory_accesslog.topic_ids, NULL) IS NULL
"""
# The orders of the list. Only the order by time has an index, because every query would have to update further indexes.
ORDERS = {
    "time": Order("at", cursor_time),
    "relevance": Order(RawSQL(_RELEVANCE_SQL, [], output_field=FloatField()), float, among="at"),  # noqa: S611 (constant)
    "tokens": Order("tokens", cursor_number, among="at"),
    "milliseconds": Order("milliseconds", float, among="at"),
}

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
    may omit ``user:`` or ``key:``. ``text`` must occur in the question. ``run`` selects the recalls that may have
    caused this run. ``result`` selects recalls that returned nothing, or nothing relevant. ``sort`` is a key of
    ``ORDERS``; a ``-`` before it reverses the order."""

    scope: str = ROOT
    actor: str | None = None
    text: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    run: uuid.UUID | None = None
    result: Literal["nothing", "irrelevant"] | None = None
    sort: str = "time"


def recalls_list(
    filters: RecallFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return (recalls, cursor of the next page). At most six SQL statements. Raises ``NotVisible`` and
    ``ValueRefused``."""
    rows, following = sorted_page(_recalls(filters, principal), ORDERS, filters.sort, cursor=cursor, limit=limit)
    names = caller_labels(row.actor for row in rows)
    return [_recall_as_dict(row, names) for row in rows], following


def recalls_behind(runs: Iterable[ForgetRun]) -> dict[uuid.UUID, RecallBehind]:
    """Return a dict from the id of each run to the newest query that can have caused the run. Only runs for the event
    ``AFTER_QUERY`` have an entry. At most three SQL statements."""
    wanted = [run.pk for run in runs if run.event == AFTER_QUERY]
    if not wanted:
        return {}
    rows = rows_read(_BEHIND_SQL, {"runs": wanted})
    names = caller_labels(actor for *_rest, actor in rows)
    return {run_id: RecallBehind(access_id, query, names.get(actor, actor)) for run_id, access_id, query, actor in rows}


def recalls_count(filters: RecallFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of recalls, at most ``at_most`` + 1. At most four SQL statements."""
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
            # Older queries cause no run. This condition lets PostgreSQL use the index of the log by time.
            at__gt=run.created_at - dt.timedelta(days=1),
        )
    return found


def _recall_as_dict(row: AccessLog, names: Mapping[str, str]) -> dict[str, Any]:
    returned = row.relevances[: len(row.topic_ids)]
    best = max((relevance for relevance in returned if relevance is not None), default=None)
    return {
        "recall_id": row.pk,
        "at": row.at,
        "actor": names.get(row.actor, row.actor),
        "scope": row.scope,
        "query": row.query,
        "returned": len(row.topic_ids),
        "relevance": best,
        # Topics below the least relevance are not reinforced.
        "irrelevant": best is not None and best < row.min_relevance and None not in row.topic_ids,
        "tokens": row.tokens,
        "milliseconds": row.milliseconds,
    }


def recall_get(access_id: int, *, principal: Principal, now: dt.datetime, again: bool = False) -> dict[str, Any]:
    """Return one recall: the question, the returned topics, the topics cut by limits, and the run that the recall
    caused. A purged topic keeps its place, but its id is None. ``again`` adds what the same request returns at ``now``,
    without reinforcing any topic. At most six SQL statements, plus those of ``query_answer``. Raises ``NotVisible``."""
    row = _row(access_id, principal)
    request = _request(row)
    now_returned = _query_repeat(request, principal, now) if again and request is not None else None
    topics = _topics([*row.topic_ids, *row.cut_ids, *(now_returned or {})], row)
    place_then = {topic_id: place for place, topic_id in enumerate(row.topic_ids, start=1)}
    returned = []
    for index, topic_id in enumerate(row.topic_ids):
        measured = _measured(row, index)
        relevance = measured["relevance"]
        share = reinforcement_share(math.nan if relevance is None else relevance, min_relevance=row.min_relevance)
        measured |= {
            "place": index + 1,
            "share": float(share),
            "bump": row.bump * float(share),
            "place_now": ((now_returned or {}).get(topic_id) or {}).get("place") if topic_id else None,
        }
        returned.append(topics[topic_id] | measured)
    first_cut = len(row.topic_ids)
    return _recall_as_dict(row, caller_labels([row.actor])) | {
        "topics": returned,
        "cut": [topics[topic_id] | _measured(row, index) for index, topic_id in enumerate(row.cut_ids, first_cut)],
        "request": row.request or {},
        "repeats": request is not None,
        "waiting": row.folded_at is None,
        "counted": bool(row.counted),
        "least": row.min_relevance,
        # A purge empties the hash of each row from which it removes anything.
        "erased": not row.query_hash,
        "run": _run_after(row, topics),
        "now": now_returned
        and [topics[each] | found | {"place_then": place_then.get(each)} for each, found in now_returned.items()],
    }


def recall_missed(access_id: int, *, principal: Principal, now: dt.datetime) -> dict[str, Any]:
    """Return the archived topics that a recall missed. ``missed`` has the topics that ``archive_search`` finds now;
    ``regretted`` marks those that the shadow search also found. ``before`` has the topics that only the shadow search
    found. Nothing is recorded. Seven SQL statements. Raises ``NotVisible`` and ``EmbeddingFailed``."""
    row = _row(access_id, principal)
    request = _request(row)
    searched = request is not None and may_miss(request)
    found = archive_search(request, at=row.at, now=now) if request is not None and searched else []
    hits = {hit.topic_id: hit for hit in ShadowHit.objects.filter(access_id=access_id).order_by("rank")}
    topics = _topics([*(each.topic_id for _rank, each in found), *hits], row)
    missed = [
        topics[each.topic_id] | {"rank": rank, "relevance": each.relevance, "regretted": each.topic_id in hits}
        for rank, each in found
    ]
    known = {each.topic_id for _rank, each in found}
    return {
        "recall_id": access_id,
        "query": row.query,
        "searched": searched,
        "top_k": request.top_k if request is not None else None,
        "missed": missed,
        "before": [topics[each] | {"rank": hit.rank} for each, hit in hits.items() if each not in known],
    }


def _row(access_id: int, principal: Principal) -> AccessLog:
    row = AccessLog.objects.filter(path_q(principal.scope), pk=access_id, kind=AccessLog.Kind.QUERY).first()
    if row is None:
        raise NotVisible("This recall does not exist.")
    return row


def _request(row: AccessLog) -> QueryRequest | None:
    return request_again(row.query, at=row.at, scope=row.scope, kept=row.request)


def _measured(row: AccessLog, index: int) -> dict[str, float | None]:
    """Return the score and the relevance of the topic at the place ``index`` of the row. A value that was not recorded
    is None."""
    return {"score": _at(row.scores, index), "relevance": _at(row.relevances, index)}


def _at(values: Sequence[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _query_repeat(request: QueryRequest, principal: Principal, now: dt.datetime) -> dict[uuid.UUID, dict[str, Any]]:
    """Return the topics that a request finds now, best first, as a dict from the id to place, score and relevance."""
    found = query_answer(request, principal=principal, now=now, record=False).body["candidates"]
    return {
        uuid.UUID(each["topic_id"]): {"place": place, "score": each.get("score"), "relevance": each.get("relevance")}
        for place, each in enumerate(found, start=1)
    }


def _topics(ids: Iterable[uuid.UUID | None], row: AccessLog) -> dict[uuid.UUID | None, dict[str, Any]]:
    topics: dict[uuid.UUID | None, dict[str, Any]] = {
        topic_id: {"topic_id": topic_id, "title": None, "state": "erased"} for topic_id in ids
    }
    for topic in dicts_read(_TOPICS_SQL, {"ids": [each for each in topics if each is not None], "at": row.at}):
        topics[topic["topic_id"]] = topic
    return topics


def _run_after(row: AccessLog, topics: Mapping[uuid.UUID | None, Mapping[str, Any]]) -> ForgetRun | None:
    """Return the run that this query probably caused. It is the first run for ``AFTER_QUERY`` that was planned soon
    after the query was counted and that covers one of the returned topics."""
    if row.folded_at is None:
        return None
    runs = ForgetRun.objects.filter(
        event=AFTER_QUERY, created_at__gte=row.folded_at, created_at__lt=row.folded_at + SETS_OFF_WITHIN
    )
    scopes = {topics[topic_id].get("scope", ROOT) for topic_id in row.topic_ids}
    over = (run for run in runs.order_by("created_at", "id") if any(scope_within(scope, run.scope) for scope in scopes))
    return next(over, None)
