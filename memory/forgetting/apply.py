"""Applies a plan in batches. A batch and its journal are one transaction, so a killed run continues where it stopped.

A batch locks the row of the run, so no action is applied twice. Topics that changed after the plan was made are
skipped.
"""

import datetime as dt
import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from memory.forgetting import state_changes
from memory.forgetting.compaction import LEAST_GROUP, MAX_GROUP, TOO_FEW, compactor_get
from memory.forgetting.field_summaries import Fold, Keep, folds_prepare, folds_write
from memory.forgetting.made_topics import Made, made_write
from memory.forgetting.manual_runs import BY_HAND, PINS, fields_read, hand_journal
from memory.forgetting.pause import pauses_active
from memory.forgetting.topic_state import COMPACTED, COUNTED, FIELDS, HELD, STATE, drift_words, planned_state_sql
from memory.llm.chat_request import model_configured
from memory.models import ForgetRun, Rung

BATCH = 500
# The batch size if a language model is configured. A summary then takes seconds, and the time limit is checked only
# between batches.
BATCH_WITH_MODEL = 10

# The reasons of an action that hold for one topic, and not for the topic that is made of several.
_OF_ONE_TOPIC = ("score", "strategy", "threshold", "theta")

_TAKE_SQL = """
SELECT id, topic_id, action, from_rung, to_rung, place, why, changes FROM memory_forgetaction
WHERE run_id = %(run)s AND state = 'planned' ORDER BY place LIMIT %(limit)s
"""

# The rows are locked first and then compared.
_LOCK_SQL = f"""
WITH {HELD}
SELECT a.topic_id, {planned_state_sql("held.state", "a")}, a.before, held.state
FROM memory_forgetaction a JOIN held ON held.id = a.topic_id
WHERE a.id = ANY(%(actions)s)
"""

_JOURNAL_SQL = f"""
WITH now_states AS (
    SELECT t.id, {STATE} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
    WHERE t.id = ANY(%(topics)s)
), now_fields AS ({FIELDS}), moves AS (
    SELECT a.id, a.changes || d.done AS changes,
           a.before || CASE WHEN d.fields IS NULL THEN '{{}}' ELSE jsonb_build_object('fields', d.fields) END AS before,
           s.state || CASE WHEN d.fields IS NULL THEN '{{}}' ELSE jsonb_build_object('fields', n.fields) END AS after
    FROM unnest(%(actions)s::bigint[], %(fields)s::jsonb[], %(done)s::jsonb[]) AS d (id, fields, done)
    JOIN memory_forgetaction a ON a.id = d.id JOIN now_states s ON s.id = a.topic_id
    LEFT JOIN now_fields n ON n.topic_id = s.id
)
UPDATE memory_forgetaction a
SET state = 'applied', at = %(now)s, before = m.before, after = m.after, changes = m.changes
FROM moves m WHERE a.id = m.id
"""

_SKIP_SQL = """
UPDATE memory_forgetaction a SET state = 'skipped', at = %(now)s, note = d.note
FROM unnest(%(actions)s::bigint[], %(notes)s::text[]) AS d (id, note) WHERE a.id = d.id
"""

# Skipped actions are subtracted from the counts of the plan, so that the counts show what was done.
_UNCOUNT_SQL = f"""
SELECT name, count(*) FROM memory_forgetaction a CROSS JOIN LATERAL {COUNTED} AS x (name)
WHERE a.id = ANY(%(actions)s) AND name IS NOT NULL GROUP BY name
"""

_EDITS_SQL = """
INSERT INTO memory_topicedit (topic_id, at, before, actor)
SELECT t.id, %(now)s, jsonb_build_object('categories', t.categories), %(actor)s
FROM memory_topic t WHERE t.id = ANY(%(topics)s)
"""

_CATEGORIES_SQL = """
UPDATE memory_topic t
SET categories = ARRAY(SELECT DISTINCT c FROM unnest(t.categories || d.added) AS c ORDER BY c)
FROM (SELECT id, ARRAY(SELECT jsonb_array_elements_text(added))::varchar[] AS added
      FROM unnest(%(topics)s::uuid[], %(added)s::jsonb[]) AS x (id, added)) d
WHERE t.id = d.id
"""

_TOUCH_SQL = "UPDATE memory_topic SET updated_at = %(now)s WHERE id = ANY(%(ids)s)"


@dataclass(slots=True)
class Action:
    """A planned action. ``why`` is JSON; ``done`` is added to ``changes`` when the action is applied."""

    id: int
    topic_id: uuid.UUID
    action: str
    from_rung: int
    to_rung: int
    place: int
    why: str
    changes: dict[str, Any]
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> "Action":
        """Return the action of a row of the database, in which ``changes`` is JSON."""
        *members, changes = row
        return cls(*[*members, json.loads(changes)])

    @property
    def group(self) -> int | None:
        """The number of the group with which the topic is compacted, or None."""
        return self.changes.get("group")

    @property
    def archives(self) -> bool:
        return self.to_rung == Rung.ARCHIVED and self.from_rung != Rung.ARCHIVED

    @property
    def moves(self) -> bool:
        """Whether the action moves the topic between rungs above the archive."""
        return self.to_rung != self.from_rung and not self.archives and not self.revives

    @property
    def revives(self) -> bool:
        """Whether the action restores an archived or released topic."""
        return "revive" in self.changes

    @property
    def folds(self) -> bool:
        """Whether fields of the topic are summarized."""
        return "fold" in self.changes or (self.moves and self.to_rung > Rung.ACTIVE)

    @property
    def keep(self) -> Keep:
        """How many revisions stay warm, and the least number of warm revisions at which a field is folded."""
        return Keep.of_action(self.changes, falls=self.to_rung > self.from_rung)


def run_step(run_id: uuid.UUID, *, now: dt.datetime, size: int | None = None, until: float | None = None) -> bool:
    """Apply the next actions of a run and return whether more are left. The last step ends the run. One transaction of
    at most 26 SQL statements; about 30 more if topics are compacted.

    Summaries are prepared before the transaction, because a language model may be slow. The preparation stops at
    ``until`` (monotonic clock), and the step applies what is ready. If forgetting was paused in the scope after the run
    began, the run fails.
    """
    size = size or (BATCH_WITH_MODEL if model_configured() else BATCH)
    ahead = _prepare(run_id, size, until, now)
    with transaction.atomic(), connection.cursor() as cursor:
        run = ForgetRun.objects.select_for_update(no_key=True).get(pk=run_id)
        if run.status != ForgetRun.Status.APPLYING:
            return False
        # Only pauses that began after the run are checked, because the plan respects earlier pauses. Applied actions
        # stay and can be undone; the remaining actions are dropped.
        started = run.started_at or now
        paused = pauses_active(now, run.scope) if run.event != BY_HAND else []
        if pauses := [pause for pause in paused if pause.created_at >= started]:
            run.status, run.finished_at = ForgetRun.Status.FAILED, now
            run.failure = f"Stopped, because forgetting was paused in {pauses[0].scope}."
            run.save(update_fields=["status", "finished_at", "failure"])
            return False
        actions = _take(cursor, run_id, ahead.size)
        if not actions:
            run.status, run.finished_at, run.failure = ForgetRun.Status.DONE, now, ""
            run.save(update_fields=["status", "finished_at", "failure"])
            return False
        if any((action.folds or action.group) and action.id not in ahead.actions for action in actions):
            # Another worker has already applied the prepared actions. The next step prepares later actions.
            return True
        unchanged, skipped = _lock(cursor, actions)
        unchanged, groups = _groups_left(actions, unchanged, skipped, run)
        actions_skip(cursor, run, skipped, now=now)
        _compact(cursor, groups, ahead.topics, run=run, now=now)
        actions_apply(cursor, unchanged, ahead.folds, run=run, now=now)
        run.applied += len(unchanged)
        run.save(update_fields=["applied", "skipped", "counts"])
    return True


def actions_skip(cursor: CursorWrapper, run: ForgetRun, notes: Mapping[int, str], *, now: dt.datetime) -> None:
    """Mark planned actions as skipped, and count them in the run, which the caller saves. ``notes`` maps the id of an
    action to the reason. Two SQL statements, or none."""
    if notes:
        cursor.execute(_SKIP_SQL, {"actions": list(notes), "notes": list(notes.values()), "now": now})
        cursor.execute(_UNCOUNT_SQL, {"actions": list(notes)})
        run.counts |= {name: run.counts[name] - times for name, times in cursor.fetchall()}
        run.skipped += len(notes)


def _take(cursor: CursorWrapper, run_id: uuid.UUID, size: int) -> list[Action]:
    cursor.execute(_TAKE_SQL, {"run": run_id, "limit": size + MAX_GROUP})
    actions = [Action.of_row(row) for row in cursor.fetchall()]
    # A group is never divided between two batches.
    while size < len(actions) and actions[size].group and actions[size].group == actions[size - 1].group:
        size += 1
    return actions[:size]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was prepared for the next ``size`` actions. ``folds`` maps the id of a field to its summary; ``topics`` are
    the new topics of compacted groups. ``actions`` are the ids of the actions that need a summary or compact a
    topic."""

    actions: set[int]
    size: int
    folds: dict[uuid.UUID, Fold]
    topics: Any


def _prepare(run_id: uuid.UUID, size: int, until: float | None, now: dt.datetime) -> _Prepared:
    with connection.cursor() as cursor:
        actions = _take(cursor, run_id, size)
    folding = [action for action in actions if action.folds]
    prepared = folds_prepare({each.topic_id: each.keep for each in folding}, until=until)
    # Actions are applied in order, up to the first one whose summary is missing.
    ready = next((index for index, action in enumerate(actions) if action.topic_id in prepared.left), len(actions))
    grouped = [action for action in actions[:ready] if action.group]
    topics = None
    if grouped:
        run = ForgetRun.objects.get(pk=run_id)
        topics = compactor_get().prepare(_sources(_by_group(grouped)), run=run, until=until, now=now)
    return _Prepared({action.id for action in (*folding, *grouped)}, ready, prepared.folds, topics)


def _by_group(actions: Iterable[Action]) -> dict[int, list[Action]]:
    groups: dict[int, list[Action]] = defaultdict(list)
    for action in actions:
        if action.group:
            groups[action.group].append(action)
    return groups


def _sources(groups: dict[int, list[Action]]) -> dict[int, list[uuid.UUID]]:
    return {number: [action.topic_id for action in members] for number, members in groups.items()}


def _groups_left(
    actions: Sequence[Action], unchanged: Sequence[Action], skipped: dict[int, str], run: ForgetRun
) -> tuple[list[Action], dict[int, list[Action]]]:
    """Return the actions to apply, and the remaining groups with their actions. Add the actions of groups with too few
    unchanged topics to ``skipped``."""
    groups = _by_group(unchanged)
    small = {number for number in _by_group(actions) if len(groups.get(number, ())) < LEAST_GROUP}
    skipped |= {each.id: TOO_FEW for number in small for each in groups.get(number, ())}
    if small:
        run.counts[COMPACTED] -= len(small)
    left = [each for each in unchanged if each.group not in small]
    return left, {number: members for number, members in groups.items() if number not in small}


def _compact(
    cursor: CursorWrapper, groups: dict[int, list[Action]], prepared: Any, *, run: ForgetRun, now: dt.datetime
) -> None:
    if not groups:
        return
    topics = compactor_get().write(_sources(groups), prepared, run=run, now=now)
    made = []
    for number, members in groups.items():
        for action in members:
            action.done["into"] = str(topics[number])
        last = members[-1]
        why = {name: value for name, value in json.loads(last.why).items() if name not in _OF_ONE_TOPIC}
        made.append(Made(topics[number], last.place + 1, {"from": len(members)}, why))
    made_write(cursor, COMPACTED, made, run=run.id, now=now)


def _lock(cursor: CursorWrapper, actions: list[Action]) -> tuple[list[Action], dict[int, str]]:
    cursor.execute(
        _LOCK_SQL, {"topics": [action.topic_id for action in actions], "actions": [action.id for action in actions]}
    )
    found = {row[0]: row[1:] for row in cursor.fetchall()}
    unchanged, skipped = [], {}
    for action in actions:
        if action.topic_id not in found:
            # The topic and its action were purged after the actions were read.
            continue
        same, before, state = found[action.topic_id]
        if same:
            unchanged.append(action)
        else:
            skipped[action.id] = drift_words(json.loads(before), json.loads(state))
    return unchanged, skipped


def actions_apply(
    cursor: CursorWrapper, actions: Sequence[Action], folds: dict[uuid.UUID, Fold], *, run: ForgetRun, now: dt.datetime
) -> None:
    """Apply actions of a run to their locked topics, and journal them. At most 18 SQL statements. ``folds`` has the
    prepared summaries, keyed by field."""
    if not actions:
        return
    if run.event == BY_HAND:
        # A pin does not count as a change of the topic.
        cursor.execute(_TOUCH_SQL, {"ids": _ids(a for a in actions if a.action not in PINS), "now": now})
    moving = [action.topic_id for action in actions if action.moves or action.folds or action.revives]
    fields = fields_read(cursor, moving) if moving else {}
    state_changes.archive(cursor, {a.topic_id: float(a.changes["attenuation"]) for a in actions if a.archives})
    state_changes.rungs_set(cursor, {a.topic_id: a.to_rung for a in actions if a.moves})
    state_changes.fields_detach(
        cursor,
        {
            a.topic_id: float(a.changes["detach_below"])
            for a in actions
            if a.moves and a.to_rung == Rung.DETACHED > a.from_rung
        },
        now=run.judged_at,
    )
    state_changes.fields_attach(
        cursor, _ids(a for a in actions if a.moves and a.to_rung < Rung.DETACHED <= a.from_rung)
    )
    _fields_fold(cursor, actions, folds, now=now)
    _revive(cursor, [a for a in actions if a.revives], now=now)
    state_changes.release(cursor, _ids(a for a in actions if a.changes.get("released")), now=now)
    _pins_set(cursor, [a for a in actions if "pinned" in a.changes], run=run)
    _categories_add(cursor, [a for a in actions if "categories" in a.changes], run=run, now=now)
    cursor.execute(
        _JOURNAL_SQL,
        {
            "topics": [a.topic_id for a in actions],
            "actions": [a.id for a in actions],
            "fields": [fields.get(a.topic_id) for a in actions],
            "done": [json.dumps(a.done) for a in actions],
            "now": now,
        },
    )
    if run.event == BY_HAND:
        hand_journal(cursor, run, dict.fromkeys(_ids(actions)), now=now)


def _revive(cursor: CursorWrapper, actions: list[Action], *, now: dt.datetime) -> None:
    withdrawn = state_changes.revive(
        cursor,
        {a.topic_id: float(a.changes["revive"]["attenuation"]) for a in actions},
        most={a.topic_id: int(a.changes["revive"]["max_history"]) for a in actions},
        now=now,
    )
    for action in actions:
        if action.topic_id in withdrawn:
            action.done["withdrawn"] = withdrawn[action.topic_id]


def _pins_set(cursor: CursorWrapper, actions: list[Action], *, run: ForgetRun) -> None:
    if not actions:
        return
    # All actions of a manual change have the same reason.
    reason = json.loads(actions[0].why)["reason"] if run.event == BY_HAND else f"a rule, in run {run.id}"
    pins = {each.topic_id: (True, reason) if each.changes["pinned"] else (False, "") for each in actions}
    by_agent = any(action.changes.get("by_agent") for action in actions)
    state_changes.pins_set(cursor, pins, by_agent=by_agent)


def _fields_fold(
    cursor: CursorWrapper, actions: Sequence[Action], folds: dict[uuid.UUID, Fold], *, now: dt.datetime
) -> None:
    keep = {a.topic_id: a.keep for a in actions if a.folds}
    written = folds_write(cursor, keep, folds, now=now)
    rising = [a for a in actions if a.moves and a.to_rung == Rung.ACTIVE]
    withdrawn = state_changes.fields_unfold(
        cursor, {a.topic_id: int(a.changes["max_history"]) for a in rising}, now=now
    )
    for action in actions:
        if action.topic_id in written:
            action.done["summaries"] = written[action.topic_id]
        if action.topic_id in withdrawn:
            action.done["withdrawn"] = withdrawn[action.topic_id]


def _categories_add(cursor: CursorWrapper, actions: list[Action], *, run: ForgetRun, now: dt.datetime) -> None:
    if not actions:
        return
    topics = _ids(actions)
    cursor.execute(_EDITS_SQL, {"topics": topics, "now": now, "actor": f"run {run.id}"})
    cursor.execute(_CATEGORIES_SQL, {"topics": topics, "added": [json.dumps(a.changes["categories"]) for a in actions]})


def _ids(actions: Iterable[Action]) -> list[uuid.UUID]:
    return [action.topic_id for action in actions]
