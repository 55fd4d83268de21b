"""Merges one topic into another. ``unmerge`` undoes a merge.

Fields, revisions and links move to the topic that stays, the survivor. The former rows are stored with the actions of
the run.
"""

import datetime as dt
import uuid
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.access.principal import SYSTEM, Principal
from memory.core.errors import Conflict
from memory.duplicates.merge_plan import MergePlan, merge_plan, sides_read
from memory.duplicates.pair_locks import pairs_lapse, topics_lock
from memory.duplicates.unmerge import merge_fingerprint, revisions_move, rows_image, search_image
from memory.embedding import embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.forgetting import state_changes
from memory.forgetting.manual_runs import BY_HAND, MERGED, REVISE, TOOK_IN, HandAction, hand_run_write
from memory.ingest.load import KnownTopic, known_load
from memory.ingest.plan import WritePlan
from memory.ingest.write import plan_write
from memory.models import ForgetRun, Rung, TopicEdit
from memory.models.formulas_sql import salience_now_sql, scope_of_sql

_MOVE_SQL = "UPDATE memory_field SET topic_id = %(to)s WHERE id = ANY(%(ids)s)"

# The survivor (s) gets the higher of the two effective saliences, and the sum of the retrieval counts. Both topics have
# the same scope, so the times at which the loser (l) fades are also valid for the survivor.
_SALIENCE = {row: salience_now_sql(row, "%(now)s::timestamptz", scope=scope_of_sql(row)) for row in "ls"}
_MORE = f"{_SALIENCE['l']} > {_SALIENCE['s']} AS more"
_FADING = """
SET salience = CASE WHEN p.more THEN p.salience ELSE s.salience END,
    reinforced_at = CASE WHEN p.more THEN p.reinforced_at ELSE s.reinforced_at END,
    idle_before = CASE WHEN p.more THEN p.idle_before ELSE s.idle_before END,
    half_life = CASE WHEN p.more THEN p.half_life ELSE s.half_life END,
    wall = CASE WHEN p.more THEN p.wall ELSE s.wall END,
    fade = CASE WHEN p.more THEN p.fade ELSE s.fade END,
    fade_floor = CASE WHEN p.more THEN p.fade ELSE s.fade_floor END,
    retrieval_count = s.retrieval_count + p.retrieval_count,
    last_retrieved_at = greatest(s.last_retrieved_at, p.last_retrieved_at)
"""
# The survivor is pinned if one of the two topics was pinned. The pin counts as the pin of an agent only if agents made
# all pins of the two topics.
_PIN_SQL = """
UPDATE memory_vitality s
SET pinned = true, pin_reason = CASE WHEN s.pinned THEN s.pin_reason ELSE l.pin_reason END,
    pinned_by_agent = l.pinned_by_agent AND (s.pinned_by_agent OR NOT s.pinned)
FROM memory_vitality l
WHERE s.topic_id = %(survivor)s AND l.topic_id = %(loser)s AND l.pinned
"""

_VITALITY_SQL = f"""
WITH p AS (
    SELECT s.topic_id AS id, {_MORE}, l.* FROM memory_vitality s, memory_vitality l
    WHERE s.topic_id = %(survivor)s AND l.topic_id = %(loser)s
)
UPDATE memory_vitality s {_FADING} FROM p WHERE s.topic_id = p.id
"""
_JOINED_SQL = f"""
WITH p AS (
    SELECT d.of_survivor, d.last_seq AS now_last, d.cold AS now_cold, {_MORE}, l.*
    FROM unnest(%(of_survivor)s::uuid[], %(of_loser)s::uuid[], %(last)s::int[], %(cold)s::int[])
         AS d (of_survivor, of_loser, last_seq, cold)
    JOIN memory_field s ON s.id = d.of_survivor JOIN memory_field l ON l.id = d.of_loser
)
UPDATE memory_field s {_FADING}, last_seq = p.now_last, cold_through = p.now_cold FROM p WHERE s.id = p.of_survivor
"""
_EMPTIED_SQL = "UPDATE memory_field SET last_seq = 0, cold_through = 0 WHERE id = ANY(%(of_loser)s)"
_WITHDRAWN_SQL = """
UPDATE memory_fieldsummary SET withdrawn_at = %(now)s
WHERE field_id = ANY(%(fields)s) AND withdrawn_at IS NULL RETURNING id
"""
_LINKS_SQL = "UPDATE memory_link SET {side}_id = %(to)s WHERE id = ANY(%(ids)s)"
_TOPICS_SQL = """
UPDATE memory_topic t
SET updated_at = %(now)s,
    categories = CASE WHEN t.id = %(survivor)s THEN %(categories)s::varchar[] ELSE t.categories END,
    merged_into_id = CASE WHEN t.id = %(loser)s THEN %(survivor)s::uuid ELSE t.merged_into_id END
WHERE t.id IN (%(survivor)s, %(loser)s)
"""
# Lets a search for a name in either topic find the survivor.
_MENTIONS_SQL = """
UPDATE memory_topicmention m
SET identifiers = ARRAY(SELECT DISTINCT x FROM unnest(m.identifiers || l.identifiers) x ORDER BY x),
    words = ARRAY(SELECT DISTINCT x FROM unnest(m.words || l.words) x ORDER BY x),
    aliases = ARRAY(SELECT DISTINCT x FROM unnest(m.aliases || l.aliases) x ORDER BY x)
FROM memory_topicmention l WHERE m.topic_id = %(survivor)s AND l.topic_id = %(loser)s
"""


def merge_vectors(topic_id: uuid.UUID, into: uuid.UUID, *, now: dt.datetime) -> dict[str, Vectors]:
    """Return a mapping from the hash of the text that ``into`` will have to the vector of this text. It is empty if the
    topics cannot be merged or the text stays the same. Must be called before any lock is taken."""
    try:
        plan = _plan(topic_id, into, now=now)
    except Conflict:
        return {}
    text = plan.text.embedded()
    if text == plan.text_before.embedded():
        return {}
    return {text_hash(text): embedder_get().embed_passages([text])[0]}


def topic_merge_into(
    cursor: CursorWrapper,
    topic_id: uuid.UUID,
    into: uuid.UUID,
    *,
    principal: Principal,
    reason: str,
    now: dt.datetime,
    vectors: dict[str, Vectors],
) -> ForgetRun:
    """Lock two topics, and merge one into the other with ``merge_write``. The kind of ``into`` stays. About forty
    statements.

    Runs in the transaction of the caller, who checks permissions. A caller that merges several topics must lock all of
    them first. Raises ``Conflict`` if one of the two topics is inactive, if their scopes differ, or if ``into`` would
    have too many fields.
    """
    states = topics_lock(cursor, [topic_id, into])
    plan = _plan(topic_id, into, now=now)
    return merge_write(cursor, plan, states=states, principal=principal, reason=reason, now=now, vectors=vectors)


def merge_write(
    cursor: CursorWrapper,
    plan: MergePlan,
    *,
    states: dict[uuid.UUID, str],
    principal: Principal,
    reason: str,
    now: dt.datetime,
    vectors: dict[str, Vectors],
    run: ForgetRun | None = None,
) -> ForgetRun:
    """Execute a plan on locked topics, write its audit events, and return the run. About thirty statements.

    The merge is added to ``run``, if one is given. ``states`` are the states of both topics, read under the lock.
    ``vectors`` maps the hashes of texts to vectors; a missing vector is computed here.
    """
    survivor, loser = plan.survivor, plan.loser
    joined = [each.id for pair in plan.joined for each in (pair.of_survivor, pair.of_loser)]
    rows = {each.id: rows_image(cursor, each.id, joined=joined) for each in (survivor, loser)}
    search = search_image(cursor, survivor.id)
    withdrawn = _fields_join(cursor, plan, now=now)
    links = {side: [link for link, which in plan.links if which == side] for side in ("source", "target")}
    for side, ids in links.items():
        if ids:
            cursor.execute(_LINKS_SQL.format(side=side), {"ids": ids, "to": survivor.id})
    _topics_write(cursor, plan, principal=principal, now=now)
    _text_write(plan, vectors=vectors)
    cursor.execute(_MENTIONS_SQL, {"survivor": survivor.id, "loser": loser.id})
    fingerprint = merge_fingerprint(cursor, [survivor.id, loser.id])
    pairs_lapse(loser.id)
    automatic = principal.identity == SYSTEM.identity
    return hand_run_write(
        cursor,
        [
            HandAction(
                loser.id,
                loser.scope,
                states[loser.id],
                {"into": str(survivor.id)},
                action=MERGED,
                changes={"into": str(survivor.id), "rows": rows[loser.id], "links": links},
            ),
            HandAction(
                survivor.id,
                survivor.scope,
                states[survivor.id],
                {
                    "from": str(loser.id),
                    "fields": [each.name for each in plan.moved],
                    "histories": [each.of_survivor.name for each in plan.joined],
                    "links": len(plan.links),
                },
                action=TOOK_IN,
                changes={
                    "from": str(loser.id),
                    "rows": rows[survivor.id],
                    "search": search,
                    "withdrawn": withdrawn,
                    "left": fingerprint,
                },
            ),
        ],
        action=MERGED,
        actor=principal.actor,
        reason=reason,
        now=now,
        event=REVISE if automatic else BY_HAND,
        run=run,
    )


def _plan(topic_id: uuid.UUID, into: uuid.UUID, *, now: dt.datetime) -> MergePlan:
    sides = sides_read([topic_id, into], now=now)
    for side_id in (topic_id, into):
        side = sides.get(side_id)
        if side is None or side.inactive_because:
            raise Conflict(
                f"Memory {side_id} {side.inactive_because if side else 'does not exist'}, so it cannot be merged."
            )
    survivor, loser = sides[into], sides[topic_id]
    if topic_id == into:
        raise Conflict("A memory cannot be merged into itself.")
    if survivor.scope != loser.scope:
        raise Conflict(f"The two memories have different scopes, {loser.scope} and {survivor.scope}.")
    return merge_plan(survivor, loser)


def _fields_join(cursor: CursorWrapper, plan: MergePlan, *, now: dt.datetime) -> list[int]:
    """Move and join the fields; return the ids of the summaries that were withdrawn."""
    if plan.moved:
        cursor.execute(_MOVE_SQL, {"to": plan.survivor.id, "ids": [each.id for each in plan.moved]})
    if not plan.joined:
        return []
    revisions_move(
        cursor,
        [
            (revision.id, each.of_survivor.id, at)
            for each in plan.joined
            for at, revision in enumerate(each.order, start=1)
            if (revision.field_id, revision.seq) != (each.of_survivor.id, at)
        ],
    )
    wanted: dict[str, Any] = {
        "now": now,
        "of_survivor": [each.of_survivor.id for each in plan.joined],
        "of_loser": [each.of_loser.id for each in plan.joined],
        "last": [len(each.order) for each in plan.joined],
        "cold": [each.cold for each in plan.joined],
    }
    cursor.execute(_JOINED_SQL, wanted)
    cursor.execute(_EMPTIED_SQL, wanted)
    cursor.execute(_WITHDRAWN_SQL, {"fields": [each.of_survivor.id for each in plan.joined if each.refold], "now": now})
    return sorted(int(row[0]) for row in cursor.fetchall())


def _topics_write(cursor: CursorWrapper, plan: MergePlan, *, principal: Principal, now: dt.datetime) -> None:
    survivor, loser = plan.survivor, plan.loser
    wanted: dict[str, Any] = {"survivor": survivor.id, "loser": loser.id, "now": now, "categories": plan.categories}
    cursor.execute(_VITALITY_SQL, wanted)
    if plan.rung != survivor.rung:
        state_changes.rungs_set(cursor, {survivor.id: plan.rung})
    elif plan.rung:
        # On every rung after ``ACTIVE``, the indexed floor equals ``fade``.
        cursor.execute("UPDATE memory_vitality SET fade_floor = fade WHERE topic_id = %s", [survivor.id])
    if plan.rung < Rung.DETACHED:
        state_changes.fields_attach(cursor, [survivor.id])
    if loser.pinned:
        cursor.execute(_PIN_SQL, wanted)
    if plan.categories != survivor.categories:
        TopicEdit.objects.create(
            topic_id=survivor.id, at=now, before={"categories": survivor.categories}, actor=principal.actor
        )
    cursor.execute(_TOPICS_SQL, wanted)
    state_changes.live_set(cursor, [loser.id], live=False)


def _text_write(plan: MergePlan, *, vectors: dict[str, Vectors]) -> None:
    if plan.text == plan.text_before:
        return
    known: KnownTopic = known_load(changed=[plan.survivor.id], read=[], lock=False).topics[plan.survivor.id]
    text = known.text()
    digest = text_hash(text.embedded())
    if digest not in vectors:
        vectors[digest] = embedder_get().embed_passages([text.embedded()])[0]
    plan_write(
        WritePlan(texts={plan.survivor.id: known}, scopes={known.scope}),
        texts={plan.survivor.id: text},
        model=embedder_get().model_name,
        vectors=vectors,
    )
