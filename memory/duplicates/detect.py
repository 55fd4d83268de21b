"""Finds duplicates by vector search and by title. A topic is compared only with the most similar ones.

Ingest queues each topic that it writes (``DuplicateLook``). Detection compares the queued topics, stores the pairs that
it finds, and removes the topics from the queue. A topic that is written during its comparison is queued again.
"""

import datetime as dt
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil
from typing import Any, NamedTuple

import structlog
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from memory.access.principal import SYSTEM, Principal
from memory.core.ids import uuid7_at
from memory.core.scopes import ROOT, scope_normalize
from memory.duplicates.merge_plan import Side, compared_texts, fields_read, sides_read
from memory.duplicates.pair_actions import MAX_AT_ONCE, pairs_merge
from memory.duplicates.pair_locks import PAIRS_LOCK_SQL
from memory.duplicates.verdict import SERIES, PairVerdict, pair_judge
from memory.embedding import embedder_get
from memory.ingest.nearest import NearPair, texts_near, topics_near
from memory.models import DuplicateLook, DuplicatePair, Scope, Topic
from memory.models.locks import Lock, lock_try
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies
from memory.text.likeness import differences_of

logger = structlog.get_logger(__name__)

# The most pairs stored by one call. Topics of further pairs stay in the queue.
PAIRS_A_RUN = 50
# The most topics that one transaction compares, and the most scopes of these topics.
TOPICS_A_STEP, SCOPES_A_STEP = 64, 16
# The time limit of one call, in seconds. It exists because the worker has other jobs.
SECONDS = 20.0

State = DuplicatePair.State

# Each scope gets an equal share, and the order of scopes is random, so that a busy scope does not delay the others.
_NEXT_SQL = """
WITH turns AS MATERIALIZED (
    SELECT s.id, s.path, greatest(1, %(limit)s / least(count(*) OVER (), {most_scopes})) AS share
    FROM memory_scope s
    WHERE EXISTS (SELECT FROM memory_duplicatelook l WHERE l.scope_id = s.id AND l.waiting) {within}
    ORDER BY random() LIMIT {most_scopes}
)
SELECT w.topic_id, turns.id, turns.path, w.text_hash
FROM turns CROSS JOIN LATERAL (
    SELECT l.topic_id, v.text_hash FROM memory_duplicatelook l JOIN memory_topicvector v ON v.topic_id = l.topic_id
    WHERE l.scope_id = turns.id AND l.waiting AND v.live AND v.model = %(model)s AND v.embedding IS NOT NULL
    ORDER BY l.topic_id LIMIT turns.share
) w
ORDER BY turns.id, w.topic_id
"""
# A topic that is purged meanwhile is waited for, and then left out.
_TOPICS_LOCK_SQL = "SELECT id FROM memory_topic WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE"
# This lock is taken after the pairs are written. A writer of a compared topic waits for the lock, and then queues the
# topic again.
_LOOKS_LOCK_SQL = "SELECT topic_id FROM memory_duplicatelook WHERE topic_id = ANY(%(ids)s) ORDER BY topic_id FOR UPDATE"
_DEQUEUE_SQL = """
UPDATE memory_duplicatelook l SET waiting = false, text_hash = d.hash
FROM unnest(%(ids)s::uuid[], %(hashes)s::text[]) AS d (id, hash)
JOIN memory_topicvector v ON v.topic_id = d.id AND v.text_hash = d.hash
WHERE l.topic_id = d.id
"""
# Topics are skipped if they are inactive or if the mode of their scope is ``off``. A skipped topic is queued again when
# it is restored or when the mode of its scope changes.
_SKIP_SQL = """
WITH held AS MATERIALIZED (
    SELECT l.topic_id FROM memory_duplicatelook l LEFT JOIN memory_topicvector v ON v.topic_id = l.topic_id
    WHERE l.waiting AND (l.scope_id = ANY(%(off)s) OR NOT v.live)
    ORDER BY l.topic_id FOR UPDATE OF l SKIP LOCKED
)
UPDATE memory_duplicatelook l SET waiting = false FROM held WHERE l.topic_id = held.topic_id
"""
# Marks inactive topics as not compared, because new topics are not compared with inactive ones.
_UNCOMPARE_SQL = """
WITH held AS MATERIALIZED (
    SELECT l.topic_id FROM memory_duplicatelook l JOIN memory_topicvector v ON v.topic_id = l.topic_id
    WHERE NOT v.live AND l.scope_id = ANY(%(scopes)s) AND l.text_hash <> ''
    ORDER BY l.topic_id FOR UPDATE OF l SKIP LOCKED
)
UPDATE memory_duplicatelook l SET text_hash = '' FROM held WHERE l.topic_id = held.topic_id
"""
_REQUEUE_SQL = """
INSERT INTO memory_duplicatelook (topic_id, scope_id, text_hash, waiting)
SELECT v.topic_id, v.scope_id, '', true FROM memory_topicvector v
LEFT JOIN memory_duplicatelook l ON l.topic_id = v.topic_id
WHERE v.live AND v.scope_id = ANY(%(scopes)s) AND (l.topic_id IS NULL OR (NOT l.waiting AND l.text_hash <> v.text_hash))
ORDER BY v.topic_id
ON CONFLICT (topic_id) DO UPDATE SET waiting = true
"""
_WAITING_SCOPES_SQL = """
SELECT s.id, s.path FROM memory_scope s
WHERE EXISTS (SELECT 1 FROM memory_duplicatelook l WHERE l.scope_id = s.id AND l.waiting)
"""
# Sets the open pairs of two records of a series to lapsed. They were found when there was no third record.
_LAPSE_SERIES_SQL = """
UPDATE memory_duplicatepair p SET state = 'lapsed'
WHERE p.state = 'open' AND p.one_id = ANY(%(ids)s) AND p.other_id = ANY(%(ids)s) AND p.differences <> '[]'
  AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(p.differences) d WHERE d->>'sort' <> ALL(%(kinds)s))
"""
# Sets an open pair to lapsed if the comparison has not found it again and one of its topics has changed or is inactive.
_LAPSE_SQL = """
UPDATE memory_duplicatepair p SET state = 'lapsed'
WHERE p.state = 'open' AND (p.one_id = ANY(%(ids)s) OR p.other_id = ANY(%(ids)s)) AND NOT p.id = ANY(%(again)s)
  AND EXISTS (
      SELECT 1 FROM memory_topicvector v WHERE v.topic_id IN (p.one_id, p.other_id)
        AND (NOT v.live OR v.text_hash <> CASE WHEN v.topic_id = p.one_id THEN p.one_hash ELSE p.other_hash END)
  )
"""


class _Waiting(NamedTuple):
    id: uuid.UUID
    scope_id: int
    path: str
    text_hash: str


def duplicates_find(scope: str | None, *, now: dt.datetime, limit: int = PAIRS_A_RUN, seconds: float = SECONDS) -> int:
    """Compare the queued topics of the whole store, or of ``scope`` and the scopes below. Then merge pairs in scopes
    with the mode ``auto``. Return the number of new pairs, at most ``limit``; 0 while another process searches.

    If ``scope`` is given, topics that were skipped are compared, too. One vector search and one title search per topic.
    One transaction and a dozen statements for each ``TOPICS_A_STEP`` topics.
    """
    until = time.monotonic() + seconds
    policies = policies_current()
    scopes = None if scope is None else _requeue(scope_normalize(scope))
    _skip(policies)
    found = 0
    while found < limit and time.monotonic() < until:
        try:
            stored = _step(scopes, policies, room=limit - found, now=now)
        except OperationalError as problem:
            # A purge has held a lock for too long. The topics stay in the queue. Messages of the database may quote
            # rows, so only the type of the error is logged.
            logger.warning("duplicates_step_failed", problem=type(problem.__cause__ or problem).__name__)
            break
        if stored is None:
            break
        found += stored
    _merge_automatic(scopes, policies, now=now, limit=limit)
    return found


def near_duplicates(texts: Sequence[str], *, scope: str, kind: str, principal: Principal) -> list[uuid.UUID | None]:
    """Return for each text the id of a live topic in ``scope`` and of ``kind`` that says the same, or None.

    Six queries, seven in a large scope, and one call of the embedder. Raises ``EmbeddingFailed``, ``NotVisible``.
    """
    path = principal.scope_chosen(scope)
    place = Scope.objects.filter(path=path).values_list("id", flat=True).first()
    if place is None or not texts:
        return [None] * len(texts)
    embedder, knobs = embedder_get(), policies_current().knobs(path)
    with transaction.atomic():
        near = texts_near(
            embedder.embed_passages(list(texts)),
            scope_id=place,
            kind=kind,
            model=embedder.model_name,
            exact_below=knobs.recall_exact_below,
            above=knobs.duplicate_threshold,
        )
    candidates = sorted({topic_id for found in near.values() for topic_id, _cosine in found})
    fields = fields_read(candidates)
    stored = {
        topic_id: [title, summary, f"{title}\n{summary}", *(each.value for each in fields[topic_id])]
        for topic_id, title, summary in Topic.objects.filter(pk__in=candidates).values_list("id", "title", "summary")
    }
    return [
        next((topic_id for topic_id, _cosine in near.get(at, ()) if _is_same(text, stored.get(topic_id, ()))), None)
        for at, text in enumerate(texts)
    ]


def _is_same(text: str, stored: Sequence[str]) -> bool:
    return any(all(found.kind == "wording" for found in differences_of(text, each)) for each in stored if each)


def _step(scopes: Sequence[int] | None, policies: Policies, *, room: int, now: dt.datetime) -> int | None:
    """Compare the next topics. Return the number of new pairs; None if no topic is queued or another process
    searches."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not lock_try(Lock.FIND_DUPLICATES):
            return None
        waiting = _waiting_read(cursor, scopes)
        if not waiting:
            return None
        stored, found, compared = 0, list[uuid.UUID](), list[_Waiting]()
        postponed: set[uuid.UUID] = set()
        groups = [list(members) for _scope, members in groupby(waiting, key=lambda each: each.scope_id)]
        judged = [_scope_compare(of_scope, policies, now=now) for of_scope in groups]
        series = [topic_id for _verdicts, _sides, ids in judged for topic_id in ids]
        # Topics are locked before pairs, as a purge does.
        paired = {topic_id for verdicts, _sides, _series in judged for pair in verdicts for topic_id in pair[:2]}
        wanted = sorted(paired.union(series))
        cursor.execute(_TOPICS_LOCK_SQL, {"ids": wanted})
        present = {topic_id for (topic_id,) in cursor.fetchall()}
        cursor.execute(PAIRS_LOCK_SQL, {"topics": [*(each.id for each in waiting), *series]})
        for at, (of_scope, (verdicts, sides, _series)) in enumerate(zip(groups, judged, strict=True)):
            if stored >= room:
                break
            # The unused part of a share goes to the next scopes.
            share = ceil((room - stored) / (len(groups) - at))
            kept = {pair: verdict for pair, verdict in verdicts.items() if present.issuperset(pair[:2])}
            new, open_pairs, left = _pairs_write(kept, sides, scope_id=of_scope[0].scope_id, room=share, now=now)
            stored += new
            found += open_pairs
            postponed |= left
            compared += of_scope
        cursor.execute(_LAPSE_SQL, {"ids": [each.id for each in compared], "again": found})
        if series:
            cursor.execute(_LAPSE_SERIES_SQL, {"ids": series, "kinds": sorted(SERIES)})
        finished = [each for each in compared if each.id not in postponed]
        ids = [each.id for each in finished]
        cursor.execute(_LOOKS_LOCK_SQL, {"ids": ids})
        cursor.execute(_DEQUEUE_SQL, {"ids": ids, "hashes": [each.text_hash for each in finished]})
        return stored


def _waiting_read(cursor: CursorWrapper, scopes: Sequence[int] | None) -> list[_Waiting]:
    """Return the next queued topics that have a vector, grouped by scope. An idle worker does not load the model."""
    if not DuplicateLook.objects.filter(waiting=True).exists():
        return []
    within = "" if scopes is None else "AND s.id = ANY(%(scopes)s)"
    wanted: dict[str, Any] = {"model": embedder_get().model_name, "limit": TOPICS_A_STEP, "scopes": list(scopes or ())}
    cursor.execute(_NEXT_SQL.format(within=within, most_scopes=SCOPES_A_STEP), wanted)
    return [_Waiting(*row) for row in cursor.fetchall()]


# The number of new pairs, the ids of all pairs that are open now, and the topics of pairs that the limit has left out.
_Written = tuple[int, list[uuid.UUID], set[uuid.UUID]]


def _scope_compare(
    waiting: Sequence[_Waiting], policies: Policies, *, now: dt.datetime
) -> tuple[dict[NearPair, PairVerdict], dict[uuid.UUID, Side], set[uuid.UUID]]:
    """Compare topics of one scope. Return the verdicts on similar pairs, the topics of these pairs, and the topics that
    are records of a series. Two records of a series are no pair."""
    knobs = policies.knobs(waiting[0].path)
    near = topics_near(
        [each.id for each in waiting],
        scope_id=waiting[0].scope_id,
        exact_below=knobs.recall_exact_below,
        above=min(knobs.duplicate_threshold, knobs.supersedes_threshold),
    )
    ids = sorted({topic_id for pair in near for topic_id in (pair.one, pair.other)})
    sides, fields = sides_read(ids, now=now), fields_read(ids)
    texts = {topic_id: compared_texts(side, fields[topic_id]) for topic_id, side in sides.items()}
    verdicts: dict[NearPair, PairVerdict] = {}
    for pair in near:
        if pair.one not in texts or pair.other not in texts:
            # It was purged since.
            continue
        verdict = pair_judge(
            texts[pair.one], texts[pair.other], cosine=pair.cosine, same_title=pair.same_title, knobs=knobs
        )
        if verdict is not None:
            verdicts[pair] = verdict
    near_in_series = Counter(
        topic_id for pair, verdict in verdicts.items() if verdict.may_be_series for topic_id in (pair.one, pair.other)
    )
    series = {
        topic_id
        for pair, verdict in verdicts.items()
        if verdict.may_be_series and max(near_in_series[pair.one], near_in_series[pair.other]) > 1
        for topic_id in (pair.one, pair.other)
    }
    kept = {
        pair: verdict
        for pair, verdict in verdicts.items()
        if not (verdict.may_be_series and series.issuperset((pair.one, pair.other)))
    }
    return kept, sides, series


def _pairs_write(
    verdicts: Mapping[NearPair, PairVerdict],
    sides: Mapping[uuid.UUID, Side],
    *,
    scope_id: int,
    room: int,
    now: dt.datetime,
) -> _Written:
    rows = DuplicatePair.objects.filter(
        one_id__in={pair.one for pair in verdicts}, other_id__in={pair.other for pair in verdicts}
    )
    known = {(row.one_id, row.other_id): row for row in rows}
    new, renewed, reopened = list[DuplicatePair](), list[DuplicatePair](), list[uuid.UUID]()
    found: list[uuid.UUID] = []
    postponed: set[uuid.UUID] = set()
    for pair, verdict in verdicts.items():
        row = known.get((pair.one, pair.other))
        hashes = (sides[pair.one].text_hash, sides[pair.other].text_hash)
        is_open = row is not None and row.state == State.OPEN
        if row is not None and not is_open and row.state != State.LAPSED and (row.one_hash, row.other_hash) == hashes:
            # The pair is already decided, and both texts are unchanged.
            continue
        if not is_open and len(new) + len(reopened) >= room:
            postponed |= {pair.one, pair.other}
            continue
        if row is None:
            row = DuplicatePair(id=uuid7_at(now), scope_id=scope_id, one_id=pair.one, other_id=pair.other, found_at=now)
            new.append(row)
        else:
            # A decided pair is opened again if one of its texts has changed.
            if not is_open:
                reopened.append(row.id)
            renewed.append(row)
        row.state, row.kind = State.OPEN, sides[pair.one].kind
        row.verdict, row.held, row.differences = verdict.verdict, verdict.held, verdict.differences
        row.similarity, row.same_title = pair.cosine, pair.same_title
        row.one_hash, row.other_hash = hashes
        found.append(row.id)
    DuplicatePair.objects.bulk_create(new, ignore_conflicts=True)
    if reopened:
        # A separate statement sets the times, because Citus refuses times in a statement that has one value for each
        # row.
        DuplicatePair.objects.filter(pk__in=reopened).update(
            state=State.OPEN, found_at=now, decided_at=None, decided_by="", reason="", run=None, survivor=None
        )
    columns = "kind verdict held differences similarity same_title one_hash other_hash"
    DuplicatePair.objects.bulk_update(renewed, columns.split())
    return len(new) + len(reopened), found, postponed


def _requeue(scope: str) -> list[int]:
    """Queue the skipped topics of a scope and the scopes below, and return the ids of these scopes."""
    scopes = (
        Scope.objects.all() if scope == ROOT else Scope.objects.filter(Q(path=scope) | Q(path__startswith=f"{scope}/"))
    )
    ids = list(scopes.values_list("id", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(_UNCOMPARE_SQL, {"scopes": ids})
        cursor.execute(_REQUEUE_SQL, {"scopes": ids})
    return ids


def _skip(policies: Policies) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_SCOPES_SQL)
        off = [int(pk) for pk, path in cursor.fetchall() if policies.knobs(path).duplicates_mode == "off"]
        cursor.execute(_SKIP_SQL, {"off": off})


def _merge_automatic(scopes: Sequence[int] | None, policies: Policies, *, now: dt.datetime, limit: int) -> None:
    """Merge open pairs in scopes with the mode ``auto``, the oldest first, at most ``limit``. Pairs with a difference
    that matters are left out."""
    # An open pair with ``decided_at`` was decided once, and somebody undid the decision.
    ready = DuplicatePair.objects.filter(
        state=State.OPEN, held=False, verdict=DuplicatePair.Verdict.DUPLICATE, decided_at__isnull=True
    )
    if scopes is not None:
        ready = ready.filter(scope_id__in=scopes)
    places = ready.order_by().values_list("scope_id", "scope__path").distinct()
    automatic = [pk for pk, path in places if policies.knobs(path).duplicates_mode == "auto"]
    if not automatic:
        return
    ids = ready.filter(scope_id__in=automatic).order_by("found_at", "id").values_list("id", flat=True)
    done = pairs_merge(
        list(ids[: min(limit, MAX_AT_ONCE)]),
        principal=SYSTEM,
        reason="Equal, apart from case and punctuation.",
        now=now,
        seen_at=now,
    )
    for pair_id, why in done.skipped:
        logger.info("duplicate_left", pair=str(pair_id), why=why)
