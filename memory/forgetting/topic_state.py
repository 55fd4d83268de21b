"""The state of a topic. An action stores the states before and after its change, to recognize later changes."""

from collections.abc import Sequence

from memory.models import Rung

# The columns that a retrieval changes.
USE = ("salience", "reinforced_at", "idle_before", "retrieval_count", "last_retrieved_at")
# The actions that write a topic: from several similar topics, and from the part of a released topic that is kept.
COMPACTED, KEPT_PART = "compacted", "kept_part"
MADE = (COMPACTED, KEPT_PART)

# Every column that a run may change, and the columns that show a change by another writer.
STATE = """jsonb_build_object(
    'rung', v.rung, 'live', v.live, 'salience', v.salience, 'reinforced_at', v.reinforced_at,
    'idle_before', v.idle_before, 'wall', v.wall, 'half_life', v.half_life, 'fade', v.fade, 'fade_floor', v.fade_floor,
    'pinned', v.pinned, 'pin_reason', v.pin_reason, 'pinned_by_agent', v.pinned_by_agent,
    'retrieval_count', v.retrieval_count,
    'last_retrieved_at', v.last_retrieved_at, 'kind', v.kind, 'released_at', t.released_at,
    'merged_into', t.merged_into_id, 'categories', t.categories, 'updated_at', t.updated_at)"""

# Locks the rows of topics in the order of their ids, and reads their states after all locks are taken.
HELD = f"""held AS MATERIALIZED (
    SELECT t.id, {STATE} AS state FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
    WHERE t.id = ANY(%(topics)s) ORDER BY t.id FOR NO KEY UPDATE OF t, v
)"""

# The states of the fields, which are stored before and after a topic moves between rungs above the archive.
FIELDS = """
SELECT f.topic_id, jsonb_object_agg(f.id, jsonb_build_array(f.cold_through, f.detached)) AS fields
FROM memory_field f WHERE f.topic_id = ANY(%(topics)s) GROUP BY f.topic_id
"""

# The names under which the action ``a`` is counted: its own name, and the names of its additional changes.
COUNTED = """unnest(ARRAY[
    a.action, CASE WHEN a.changes ? 'categories' AND a.action <> 'categorized' THEN 'categorized' END,
    CASE WHEN a.changes ? 'pinned' AND a.action NOT IN ('pinned', 'unpinned')
         THEN CASE WHEN (a.changes->>'pinned')::boolean THEN 'pinned' ELSE 'unpinned' END END
])"""

# These members are not compared. A new half-life or clock changes the fade keys of every row, but the version of the
# policy already shows this change. The run itself adds ``fields``.
_KEYS = ("half_life", "wall", "fade", "fade_floor", "fields", "pinned_by_agent")


# What changed if these members differ.
_DRIFTS = {
    ("retrieval_count",): "It was recalled since.",
    ("salience", "reinforced_at"): "Its salience was changed since.",
    ("kind", "categories"): "It was edited since.",
}


def same_state_sql(one: str, other: str, *, but: Sequence[str] = ()) -> str:
    """Return the condition that two states are equal. Fade keys and the members ``but`` are not compared."""
    left_out = ", ".join(f"'{name}'" for name in (*_KEYS, *but))
    return f"({one} - ARRAY[{left_out}]) = ({other} - ARRAY[{left_out}])"


def planned_state_sql(state: str, action: str) -> str:
    """Return the condition that a topic has not changed since the plan. For a manual change, its use does not
    matter."""
    before = f"{action}.before"
    by_hand = same_state_sql(state, before, but=USE)
    return f"CASE WHEN {action}.why->>'by' = 'hand' THEN {by_hand} ELSE {same_state_sql(state, before)} END"


def undone_state_sql(state: str, action: str) -> str:
    """Return the condition that undo can restore a topic. Later changes of the text do not matter, because undo keeps
    them. A topic that the run has made is different: undo releases it, so its text must be the same, and its use does
    not matter."""
    after = f"{action}.after"
    made, other = same_state_sql(state, after, but=USE), same_state_sql(state, after, but=["updated_at"])
    return f"CASE WHEN {action}.action IN {MADE} THEN {made} ELSE {other} END"


def drift_words(before: dict[str, object], now: dict[str, object]) -> str:
    """Return as a sentence what changed between two states of a topic."""
    if before.get("released_at") != now.get("released_at"):
        return "It was released since." if now.get("released_at") else "Its release was undone since."
    if before.get("merged_into") != now.get("merged_into"):
        return "It was merged since."
    if before.get("rung") != now.get("rung"):
        return f"It has since been moved: it is {Rung(int(str(now.get('rung')))).label} now."
    if before.get("pinned") != now.get("pinned"):
        return "It was pinned since." if now.get("pinned") else "It was unpinned since."
    for names, words in _DRIFTS.items():
        if any(before.get(name) != now.get(name) for name in names):
            return words
    return "It was written to since."
