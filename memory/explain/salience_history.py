"""Salience over time: the past salience of a topic, and its forecast if nothing uses the topic."""

import dataclasses
import datetime as dt
import json
import math
import uuid
from collections.abc import Iterable
from typing import Any

from memory.access.principal import Principal
from memory.explain.outlook import THRESHOLDS, outlook, protections, rung_name, salience_of, score_of
from memory.explain.salience_replay import CountedUse, Replay, SalienceEvent, State, What, curve_times, salience_replay
from memory.explain.topic_snapshot import TopicSnapshot, topic_snapshot
from memory.forgetting.state_changes import RESTORED_SALIENCE
from memory.formulas.partition_time import PartitionTime
from memory.formulas.salience import SECONDS_PER_DAY
from memory.formulas.strategies import TopicUsage
from memory.models import Rung
from memory.models.formulas_sql import share_of_topic_sql
from memory.models.statements import rows_read
from memory.policy.effective import policies_current
from memory.policy.snapshot import EffectivePolicy

FORECAST_DAYS = 90
# At most this many of the newest uses, and of the newest salience events in each journal, are replayed. Earlier values
# are estimates.
MAX_USES = 5000
MAX_EVENTS = 500
# The number of points of the curve and of the forecast.
POINTS, POINTS_AHEAD = 400, 90

# Scans the index by time backwards from the last use. The limit ends the scan when all counted uses are found.
_SHARE = share_of_topic_sql("a", "%(id)s::uuid")
_USES_SQL = f"""
SELECT extract(epoch from at)::float8, extract(epoch from coalesce(folded_at, at))::float8, bump * {_SHARE}
FROM memory_accesslog a
WHERE at <= %(last)s AND at >= %(first)s AND counted AND %(id)s = ANY(topic_ids) AND {_SHARE} > 0
ORDER BY at DESC, id DESC LIMIT %(most)s
"""

_ACTIONS_SQL = """
SELECT a.at, a.action, a.state, a.before, a.after, r.undone_at
FROM memory_forgetaction a JOIN memory_forgetrun r ON r.id = a.run_id
WHERE a.topic_id = %(id)s AND a.at IS NOT NULL AND a.state IN ('applied', 'undone', 'conflict')
ORDER BY a.id DESC LIMIT %(most)s
"""

_EVENTS_SQL = """
SELECT at, action, before, after FROM memory_auditevent
WHERE topic_id = %(id)s
  AND (action IN ('ingest_new_topic', 'imported', 'archived', 'restored', 'released', 'pinned', 'unpinned')
       OR (action = 'edited' AND after ? 'salience'))
ORDER BY at DESC, id DESC LIMIT %(most)s
"""


def salience_history(topic_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> dict[str, Any]:
    """Return the curve of a topic's salience, the events that changed it, the thresholds and the forecast.

    ``points`` and ``ahead`` are lists of (time, salience, score). Before ``exact_since`` the curve is an estimate. At
    most seven queries. Raises ``NotVisible``.
    """
    row = topic_snapshot(topic_id, principal)
    uses = _uses_load(topic_id, row)
    policy = policies_current().effective(row.scope)
    events = _events_load(topic_id, policy.time)
    knobs = policy.knobs
    unknown = row.retrieval_count - len(uses)
    events = [_completed(event, knobs.archive_attenuation, unknown) for event in events]
    replay = _replay(row, events, uses, policy, now)
    until = now.timestamp()
    times = curve_times(replay, until=until, most=POINTS)
    points = []
    for index, at in enumerate(times):
        # The time of a step occurs twice. The first of the two points has the values before the step.
        before = 0 < index < len(times) - 1 and times[index + 1] == at
        points.append((_utc(at), *_values_at(replay, row.usage, policy, at, before, unknown)))
    points.append(_point(row, policy, until))
    gone = row.is_gone or row.rung == Rung.ARCHIVED
    protected = protections(row.usage, policy, pinned=row.pinned)
    ahead = policy.projected(now)
    marks = [] if gone or protected else _marks(topic_id, row, policy, now)
    return {
        "strategy": knobs.strategy,
        "clock": knobs.clock,
        "half_life": row.half_life,
        # If both curves are the same, only one is drawn.
        "score_differs": knobs.strategy != "half_life" or knobs.half_life != row.half_life,
        "policy": policy.at,
        "version": policy.version,
        "thresholds": [
            {"rung": Rung(rung).label, "name": name, "theta": getattr(knobs, name)} for rung, name in THRESHOLDS.items()
        ],
        "points": points,
        "exact_since": None
        if replay.exact_since <= row.created_at.timestamp() and not unknown
        else _utc(replay.exact_since),
        "uses": len(uses),
        "uses_unknown": unknown,
        "turns": [
            {
                "at": _utc(step.event.at),
                "what": step.event.what,
                "note": step.event.note,
                "before": step.before,
                "after": step.state.at(step.event.at, replay.half_life, replay.time),
            }
            for step in replay.steps
            if step.event
        ],
        "ahead": [] if gone else _ahead(row, ahead, until, marks),
        "marks": marks,
        "protected": [] if gone else protected,
        "gone": gone,
        "salience": points[-1][1],
        "score": points[-1][2],
    }


def _uses_load(topic_id: uuid.UUID, row: TopicSnapshot) -> list[CountedUse]:
    if row.last_retrieved_at is None:
        return []
    last, most = row.last_retrieved_at, min(MAX_USES, row.retrieval_count)
    found = rows_read(_USES_SQL, {"id": topic_id, "last": last, "first": min(row.created_at, last), "most": most})
    return [CountedUse(*use) for use in found]


def _events_load(topic_id: uuid.UUID, time: PartitionTime) -> list[SalienceEvent]:
    """Return the salience events of runs and of manual changes, from both journals. Two queries."""
    events: list[SalienceEvent] = []
    for at, action, state, was, became, undone_at in rows_read(_ACTIONS_SQL, {"id": topic_id, "most": MAX_EVENTS}):
        events.append(_by_run(at.timestamp(), action, json.loads(was), json.loads(became or "{}"), time))
        if state == "undone" and undone_at is not None:
            events.append(_by_run(undone_at.timestamp(), "undone", json.loads(became), json.loads(was), time))
    by_run = {event.at for event in events}
    # If both journals have an entry for a change, the entry of the run is used, because it has more details.
    return events + [
        event
        for at, action, was, became in rows_read(_EVENTS_SQL, {"id": topic_id, "most": MAX_EVENTS})
        if at.timestamp() not in by_run or action == "ingest_new_topic"
        for event in _by_hand(at.timestamp(), action, json.loads(was), json.loads(became), time)
    ]


def _by_run(at: float, action: str, was: dict[str, Any], became: dict[str, Any], time: PartitionTime) -> SalienceEvent:
    what: What = "archived" if action == "archived" else "undone" if action == "undone" else "moved"
    if not was or not became:
        return SalienceEvent(at, what, note=action)
    before, after = (_state(each["salience"], _epoch(each["reinforced_at"]), time) for each in (was, became))
    if before.since > at:
        # The writer's clock was ahead of the clock of the run, so only the ratio of the two values is reliable.
        return SalienceEvent(at, what, factor=after.salience / before.salience if before.salience else 1.0, note=action)
    return SalienceEvent(at, what, before=before, after=after, note=action, uses=was["retrieval_count"])


def _state(salience: float, since: float, time: PartitionTime) -> State:
    return State(salience, since, float(time.idle(since)))


def _by_hand(
    at: float, action: str, was: dict[str, Any], became: dict[str, Any], time: PartitionTime
) -> Iterable[SalienceEvent]:
    since = _epoch(was["reinforced_at"]) if "reinforced_at" in was else math.inf
    # None if the journal lacks the value before the change, or if the process that wrote it had a fast clock.
    before = _state(was["salience"], since, time) if since <= at else None
    match action:
        case "ingest_new_topic":
            yield SalienceEvent(at, "created", after=_state(float(became.get("salience", 1.0)), at, time))
        case "edited" | "imported":
            yield SalienceEvent(at, "set", after=_state(float(became["salience"]), at, time))
        case "archived":
            yield SalienceEvent(at, "archived", before=before, factor=math.nan)
        case "restored":
            factor = math.nan if was.get("rung") == Rung.ARCHIVED.label else 1.0
            yield SalienceEvent(at, "restored", before=before, factor=factor, least=RESTORED_SALIENCE)
        case _:
            yield SalienceEvent(at, "seen", before=before, note=action)


def _completed(event: SalienceEvent, attenuation: float, unknown: int) -> SalienceEvent:
    """Return ``event`` with the factor of the present policy if the journal has no factor. ``unknown``, the number of
    uses that were not loaded, is subtracted from the number of uses of the event."""
    return dataclasses.replace(
        event,
        factor=attenuation if math.isnan(event.factor) else event.factor,
        uses=None if event.uses is None else event.uses - unknown,
    )


def _replay(
    row: TopicSnapshot, events: list[SalienceEvent], uses: list[CountedUse], policy: EffectivePolicy, now: dt.datetime
) -> Replay:
    created_at, time = row.created_at.timestamp(), policy.time
    created = next((event for event in events if event.what == "created"), None)
    first = created.after.salience if created and created.after else 1.0
    return salience_replay(
        SalienceEvent(created_at, "created", after=_state(first, created_at, time)),
        [event for event in events if event.what != "created"],
        uses,
        stored=State(row.salience, row.reinforced_at.timestamp(), row.idle_before),
        half_life=row.half_life,
        cap=policy.knobs.field_salience_max,
        now=now.timestamp(),
        time=time,
    )


def _values_at(
    replay: Replay, usage: TopicUsage, policy: EffectivePolicy, at: float, before: bool, unknown: int
) -> tuple[float, float]:
    step = replay.step_at(at - 1e-6 if before else at)
    usage = dataclasses.replace(
        usage,
        salience=step.state.salience,
        reinforced_at=step.state.since,
        idle_before=step.state.idle_before,
        last_retrieved_at=step.last_use,
        retrieval_count=step.uses + unknown,
    )
    value = score_of(usage, policy, now=at)
    return step.state.at(at, replay.half_life, replay.time), value


def _marks(topic_id: uuid.UUID, row: TopicSnapshot, policy: EffectivePolicy, now: dt.datetime) -> list[dict[str, Any]]:
    """Return when runs would move the topic down if nothing uses it. At most one query."""
    found = []
    for step in outlook(topic_id, row.rung, policy, now=now).moves:
        if step.at is not None:
            _at, salience, value = _point(row, policy.projected(now), step.at.timestamp())
            found.append(
                {
                    "rung": rung_name(step.rung),
                    "at": step.at,
                    "due": step.at == now,
                    "salience": salience,
                    "score": value,
                    "theta": None if step.rule else getattr(policy.knobs, THRESHOLDS[step.rung]),
                    "rule": step.rule.name if step.rule else None,
                }
            )
    return found


def _point(row: TopicSnapshot, policy: EffectivePolicy, at: float) -> tuple[dt.datetime, float, float]:
    """Return the time, the salience and the score at ``at`` if nothing uses the topic until then."""
    usage = row.usage
    return _utc(at), salience_of(usage, policy, half_life=row.half_life, now=at), score_of(usage, policy, now=at)


def _ahead(
    row: TopicSnapshot, policy: EffectivePolicy, now: float, marks: list[dict[str, Any]]
) -> list[tuple[dt.datetime, float, float]]:
    """Return the forecast as (time, salience, score). It ends when the topic would be archived or released, or after
    ``FORECAST_DAYS`` days."""
    end = now + FORECAST_DAYS * SECONDS_PER_DAY
    ends = [mark["at"].timestamp() for mark in marks if mark["rung"] in ("archived", "released") and not mark["due"]]
    end = min([end, *ends])
    return [_point(row, policy, now + (end - now) * step / POINTS_AHEAD) for step in range(POINTS_AHEAD + 1)]


def _epoch(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def _utc(epoch: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(epoch, dt.UTC)
