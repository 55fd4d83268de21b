"""A machine that writes, asks, lets time pass, turns policies, and forgets: previews, plans, runs, undo, restore, pins.

Whatever happened before: a preview, a dry run and a run name the same topics with the same actions, a second run in a
row changes nothing, an undo is identity on every topic that no one has touched, and nothing is ever lost.
"""

import datetime as dt
import itertools
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory.core.policy_presets import PRESETS
from memory.core.policy_values import STRATEGIES
from memory.core.scopes import scope_within
from memory.embedding.instant import InstantEmbedder
from memory.forgetting.candidates import groups_find
from memory.forgetting.soft_limit import gate_of
from memory.formulas.salience import FADE_FLOOR_LAG, fade_key
from memory.policy.effective import policies_current
from memory.policy.rekey import half_lives_rekey
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS
from memory.recall.access_fold import accesses_fold
from tests.cast import Cast, cast_make, in_process, worker_turn
from tests.generated import TIMES
from tests.properties.test_store_invariants import TABLES, rows
from tests.waits import turns_until_done

SCOPES = ["/", "/user/alice", "/project/old", "/project/new"]
NODES = ["/", "/user", "/project", "/project/old"]
KINDS = ["", "identity", "decision", "finding", "tool_output", "session_state"]
TITLES = ["harbor", "the bakery", "no allergies known", "orchard keeper"]
CATEGORIES = ["home", "stale"]
DAY = 86_400.0

places = st.integers(0, 7)
scopes = st.sampled_from(SCOPES)
events = st.sampled_from(["manual", "manual", "cron", "memory_pressure", "ingest_complete"])

thetas = st.sampled_from([(0.25, 0.12, 0.05), (0.05, 0.05, 0.05), (0.8, 0.5, 0.2), (1.5, 1.2, 0.9), (0.3, 0.0, 0.0)])
values = st.builds(
    lambda three, chosen: dict(
        zip(("theta_summary", "theta_detach", "forget_salience_threshold"), three or (), strict=bool(three)), **chosen
    ),
    st.one_of(st.none(), thetas),
    st.fixed_dictionaries(
        {},
        optional={
            "strategy": st.sampled_from(STRATEGIES),
            "clock": st.sampled_from(["active", "wall", "wall"]),
            "half_life_days": st.sampled_from([0.5, 10, 30, 90]),
            "active_half_life_days": st.sampled_from([5, 90]),
            "prune_after_days": st.sampled_from([0, 1, 30]),
            "archive_attenuation": st.sampled_from([0.3, 0.5, 1]),
            "keep_recent_revisions": st.sampled_from([1, 2]),
            "exempt_kinds": st.sampled_from([[], ["finding"], ["identity", "decision"]]),
            "exempt_scopes": st.sampled_from([[], ["/user"], ["/project/old"], ["/"]]),
            "max_topics_for_forget_scan": st.sampled_from([1, 2, 3]),
            "max_field_history": st.sampled_from([2, 3]),
            "query_salience_bump": st.sampled_from([0, 1]),
            "mode": st.sampled_from(["auto", "review", "off"]),
            "topic_count_soft_limit": st.sampled_from([0, 0, 3]),
            "reinforce_once_seconds": st.just(0),
            "compact": st.sampled_from([True, True, False]),
        },
    ),
)

comparisons = st.one_of(
    st.tuples(st.just("kind"), st.sampled_from(["is", "is_not"]), st.sampled_from(KINDS[1:])),
    st.tuples(st.just("scope"), st.just("within"), st.sampled_from(["/", "/project", "/user/alice"])),
    st.tuples(st.just("category"), st.just("has"), st.sampled_from(CATEGORIES)),
    st.tuples(st.sampled_from(["age", "idle"]), st.sampled_from(["<", ">="]), st.sampled_from(["1d", "30d", "400d"])),
    st.tuples(st.just("retrievals"), st.sampled_from(["is", "<", ">"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["score", "salience"]), st.sampled_from(["<", ">="]), st.sampled_from([0.05, 0.3, 1.0])),
    st.tuples(st.just("text"), st.just("matches"), st.sampled_from([r"\ballerg(y|ic|ies)\b", "^the "])),
    st.tuples(st.just("title"), st.just("contains"), st.just("harbor")),
).map(lambda parts: dict(zip(("field", "op", "value"), parts, strict=True)))
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=3,
)
own_rules = st.builds(
    lambda condition, action, category: {
        "condition": condition,
        "action": action,
        "events": ["cron", "manual", "memory_pressure", "ingest_complete"],
        **({"category": category} if action == "categorize" else {}),
    },
    conditions,
    st.sampled_from(["summarize", "detach", "archive", "release", "pin", "unpin", "categorize", "compact"]),
    st.sampled_from(CATEGORIES),
)
rule_lists = st.one_of(
    st.just([]),
    st.none(),
    st.sampled_from(sorted(SHIPPED_RULE_SETS)).map(lambda name: [name]),
    st.lists(own_rules, max_size=3).map(
        lambda rules: [{"name": f"rule {place}", **rule} for place, rule in enumerate(rules)]
    ),
)
policies = st.fixed_dictionaries(
    {"preset": st.one_of(st.none(), st.none(), st.sampled_from(sorted(PRESETS))), "values": values},
    optional={"rules": rule_lists},
)

# Everything of a topic that a run may change, as bytes: what undo has to bring back.
_TOPICS = """
SELECT t.id::text, row_to_json(t)::text || row_to_json(v)::text || x.live::text || d.live::text || coalesce((
    SELECT string_agg(row_to_json(f)::text || coalesce((
        SELECT string_agg(concat_ws('/', s.from_seq, s.through_seq, s.depth, s.text), ',' ORDER BY s.id)
        FROM memory_fieldsummary s WHERE s.field_id = f.id AND s.withdrawn_at IS NULL), ''), ';' ORDER BY f.id)
    FROM memory_field f WHERE f.topic_id = t.id), '')
FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
JOIN memory_topicvector x ON x.topic_id = t.id JOIN memory_topicdocument d ON d.topic_id = t.id
"""
# What tells undo that someone else was here.
_STATES = """
SELECT t.id::text, concat_ws('|', v.rung, v.live, v.salience, v.reinforced_at, v.pinned, v.pin_reason,
    v.retrieval_count, v.last_retrieved_at, v.kind, t.released_at, t.merged_into_id, t.categories)
FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
"""
_STANDING = """
SELECT t.id::text, s.path, t.kind, v.pinned, v.live, v.rung, v.salience, v.reinforced_at, t.released_at
FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id JOIN memory_scope s ON s.id = t.scope_id
"""


def snapshot() -> dict[str, str]:
    return dict(rows(_TOPICS))


def states() -> dict[str, str]:
    return dict(rows(_STATES))


@dataclass
class Done:
    """A run that was made: what it moved, and the rows before and after it."""

    run_id: str
    acted: set[str]
    made: set[str]
    before: dict[str, str]
    after: dict[str, str]
    states_after: dict[str, str]


class Forgetting(RuleBasedStateMachine):
    """The store under random policies."""

    cast: Cast

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self.patch.setattr(timezone, "now", lambda: self.now)
        # Topics with the same beginning are near each other.
        plain = InstantEmbedder.embed_passages
        near = lambda embedder, texts: plain(embedder, [text[:6] for text in texts])  # noqa: E731
        self.patch.setattr(InstantEmbedder, "embed_passages", near)
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.topics: list[str] = []
        self.runs: list[Done] = []
        self.counts: dict[str, int] = {}
        self.reasons = itertools.count(1)

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)
        self.patch.undo()

    @initialize()
    def begin(self) -> None:
        # Nothing is gated and little is held unless a policy says so.
        self.put("/", {"preset": None, "values": {"topic_count_soft_limit": 0, "compact": True}})
        for place, kind in enumerate(KINDS):
            self.ingest(SCOPES[place % 4], kind, TITLES[place % 4], 1.0 if place % 2 else 0.2, False, place * 20, 4)
        self.ingest_near("finding", "/project/new", 1000)

    def some(self, place: int) -> str:
        return self.topics[place % len(self.topics)]

    def writable(self, place: int) -> str | None:
        """Return a topic that may be written to: a released one may not."""
        topics = sorted(row[0] for row in rows(_STANDING) if row[8] is None)
        return topics[place % len(topics)] if topics else None

    def put(self, node: str, policy: dict[str, Any]) -> bool:
        answer = self.cast.operator.put(f"/v1/policies{node}", {**policy, "reason": f"reason {next(self.reasons)}"})
        assert answer.status in (200, 422), answer.body
        return answer.status == 200

    # --- What can happen ---

    @rule(
        scope=scopes,
        kind=st.sampled_from(KINDS),
        title=st.sampled_from(TITLES),
        salience=st.sampled_from([0.0, 5e-324, 0.04, 0.1, 0.2, 1.0, 10.0]),
        pinned=st.booleans(),
        days=st.sampled_from([0, 0, 10, 100, 1000]),
        revisions=st.integers(0, 4),
    )
    def ingest(
        self, scope: str, kind: str, title: str, salience: float, pinned: bool, days: int, revisions: int
    ) -> None:
        if len(self.topics) >= 12:
            return
        topic_id = str(uuid.UUID(int=len(self.topics) + 1))
        made = self.now - dt.timedelta(days=days)
        self.cast.operator.ingest(
            topic_id=topic_id,
            title=title,
            scope=scope,
            topic_kind=kind,
            salience=salience,
            pinned=pinned,
            created_at=made.isoformat(),
            last_used_at=made.isoformat(),
            categories=["home"] if pinned else [],
            fields=[{"name": name, "value": f"{name} {number}"} for number in range(revisions) for name in ("a", "b")],
        )
        self.topics.append(topic_id)

    @rule(kind=st.sampled_from(KINDS[2:]), scope=scopes, days=st.sampled_from([10, 1000]))
    def ingest_near(self, kind: str, scope: str, days: int) -> None:
        for _each in range(3):
            self.ingest(scope, kind, TITLES[0], 0.2, False, days, 0)

    @rule(place=places, number=st.integers(1, 4), defer=st.booleans())
    def version(self, place: int, number: int, defer: bool) -> None:
        topic_id = self.writable(place)
        if topic_id is None:
            return
        fields = [{"name": "a", "value": f"version {each} of {self.now}"} for each in range(number)]
        item = {"placement": "extend_topic", "topic_id": topic_id, "fields": fields}
        self.cast.operator.post(f"/v1/ingest?defer={int(defer)}", item).ok()

    @rule(place=places, other=places)
    def link(self, place: int, other: int) -> None:
        topic_id, other_id = self.writable(place), self.writable(other)
        if topic_id is None:
            return
        edges = [{"to_topic_id": other_id, "kind": "near"}]
        self.cast.operator.ingest("extend_topic", topic_id=topic_id, edges=edges)

    @rule(q=st.sampled_from(TITLES), names=st.sampled_from([None, ["a"]]))
    def ask(self, q: str, names: list[str] | None) -> None:
        live = {topic_id for topic_id, *_rest, live, _rung, _s, _at, _released in rows(_STANDING) if live}
        more = {} if names is None else {"field_names": names}
        assert set(self.cast.agent.found(q, top_k=3, **more)) <= live
        accesses_fold(now=self.now)

    @rule(place=places)
    def ask_for(self, place: int) -> None:
        self.cast.agent.query("?", stages=["structural"], topic_ids=[self.some(place)])
        accesses_fold(now=self.now)

    @rule(days=st.sampled_from([0.01, 1.0, 8.0, 40.0, 400.0]))
    def wait(self, days: float) -> None:
        self.now += dt.timedelta(days=days)

    @rule(node=st.sampled_from(NODES), policy=policies)
    def policy(self, node: str, policy: dict[str, Any]) -> None:
        # Re-keying is left unfinished here; runs have to cope.
        self.put(node, policy)

    @rule()
    def rekey(self) -> None:
        while half_lives_rekey(now=self.now, budget_seconds=10):
            pass

    @rule()
    def tend(self) -> None:
        """The worker's turn; it may make runs of its own."""
        with self.watched():
            turns_until_done(worker_turn)

    @rule(place=places, pinned=st.booleans())
    def pin(self, place: int, pinned: bool) -> None:
        self.cast.operator.post(f"/v1/topics/{self.some(place)}/{'pin' if pinned else 'unpin'}").ok()

    @rule(place=places)
    def restore(self, place: int) -> None:
        gone = sorted(row[0] for row in rows(_STANDING) if not row[4])
        if gone:
            got = self.cast.operator.post(f"/v1/topics/{gone[place % len(gone)]}/restore").ok()
            assert (got["rung"], got["archived"]) == ("active", False)

    @rule(place=places)
    def archive(self, place: int) -> None:
        assert self.cast.operator.post(f"/v1/topics/{self.some(place)}/archive").status in (200, 409)

    # --- Forgetting ---

    @rule(scope=st.sampled_from(NODES), event=events, direct=st.booleans())
    def run(self, scope: str, event: str, direct: bool) -> None:
        expected, _counted = self.previewed(scope, event)
        self.planned_and_made(scope, event, expected, direct=direct)

    @rule(scope=st.sampled_from(NODES), policy=policies, finished=st.booleans())
    def draft_then_saved(self, scope: str, policy: dict[str, Any], finished: bool) -> None:
        """What a draft is said to do is what it does once it is saved."""
        answer = self.cast.operator.post("/v1/policies/preview", {"scope": scope, **policy, "event": "manual"})
        if not self.put(scope, policy):
            assert answer.status == 422
            return
        answer.ok()
        saved = self.previewed(scope, "manual")
        if finished:
            self.rekey()
            assert self.previewed(scope, "manual") == saved
        assert {name: step["draft"] for name, step in answer.json["rungs"].items()} == saved[1]
        first = [(topic["topic_id"], topic["action"]) for topic in answer.json["affected"]]
        assert first == saved[0][: len(first)]
        assert bool(answer.json["next"]) == (len(saved[0]) > len(first))
        self.planned_and_made(scope, "manual", saved[0], direct=False)

    def previewed(self, scope: str, event: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
        found: list[tuple[str, str]] = []
        body = {"scope": scope, "event": event, "limit": 3}
        while True:
            page = self.cast.operator.post("/v1/policies/preview", body).ok()
            found += [(topic["topic_id"], topic["action"]) for topic in page["affected"]]
            assert all(step["now"] == step["draft"] for step in page["rungs"].values())
            if page["next"] is None:
                break
            body = {**body, "cursor": page["next"]}
        counted = {name: step["draft"] for name, step in page["rungs"].items()}
        actions = [action for _topic, action in found]
        assert len(found) == len({topic for topic, _action in found})
        assert counted == {
            "archive": actions.count("archived") + actions.count("released"),
            "detach": actions.count("detached"),
            "summarize": actions.count("summarized"),
        }
        return found, counted

    def planned_and_made(self, scope: str, event: str, expected: list[tuple[str, str]], *, direct: bool) -> None:
        asked = {"scope": scope, "event": event}
        plan = self.cast.operator.post("/v1/runs", asked).ok()
        assert plan["status"] == "planned"
        if plan["gate"]:
            # A preview ignores soft limits; a run leaves what is below its limit alone.
            policies = policies_current()
            gate = gate_of(policies, scope, event=event)
            paths = {row[0]: row[1] for row in rows(_STANDING)}
            expected = [
                (topic, action)
                for topic, action in expected
                if not gate.closed and policies.node_of(paths[topic]) not in gate.excluded
            ]
        policies = policies_current()
        most = policies.knobs(scope).max_topics_for_forget_scan
        gate = gate_of(policies, scope, event=event)
        groups = groups_find(policies, scope, event=event, now=self.now, gate=gate, most=most)
        planned = self.actions(plan["run_id"], "planned")
        if groups:
            self.grouped(plan, planned, expected, {str(each) for group in groups for each in group}, most)
            expected = planned
        assert planned == expected[:most]
        if not groups:
            assert (plan["planned"], plan["left_over"]) == (len(expected[:most]), max(0, len(expected) - most))
        for action, count in plan["counts"].items():
            if action in ("summarized", "detached", "archived", "restored", "released"):
                assert count == [done for _topic, done in expected[:most]].count(action)
        assert {result.split(":")[1] for result in plan["results"]} == {topic for topic, _action in expected[:most]}
        before = snapshot()
        with self.watched():
            if direct:
                made = self.cast.operator.post("/v1/runs", {**asked, "dry_run": False}).ok()
                if made["status"] == "held":
                    assert snapshot() == before
                    made = self.cast.operator.post(f"/v1/runs/{made['run_id']}/approve").ok()
            else:
                made = self.cast.operator.post(f"/v1/runs/{plan['run_id']}/apply").ok()
        assert (made["status"], made["skipped"], made["applied"]) == ("done", 0, len(expected[:most]))
        applied = self.actions(made["run_id"], "applied")
        assert [each for each in applied if each[1] != "compacted"] == expected[:most]
        assert [result for result in made["results"] if not result.startswith("compacted")] == plan["results"]
        after = snapshot()
        new = after.keys() - before.keys()
        assert {topic for topic, action in applied if action == "compacted"} == new
        assert len(new) == made["counts"].get("compacted", 0) == plan["counts"].get("compacted", 0)
        acted = {topic for topic, _action in expected[:most]}
        assert {topic for topic in before if after[topic] != before[topic]} <= acted
        if acted:
            self.runs.append(Done(made["run_id"], acted, new, before, after, states()))
        if not plan["left_over"]:
            again = self.cast.operator.post("/v1/runs", asked).ok()
            # A rule may match a new topic, but none is due to be forgotten.
            following = dict(self.actions(again["run_id"], "planned"))
            assert following.keys() <= new
            assert not any(
                result.startswith("archived") and result.split(":")[1] not in new for result in again["results"]
            )

    def grouped(
        self,
        plan: dict[str, Any],
        planned: list[tuple[str, str]],
        expected: list[tuple[str, str]],
        members: set[str],
        most: int,
    ) -> None:
        """A plan with groups: what is near others is archived with them, and nothing else differs."""
        assert plan["planned"] == len(planned) <= most
        known = dict(expected)
        for topic, action in planned:
            assert known.get(topic) == action or (topic in members and action == "archived")
        if not plan["left_over"]:
            assert known.keys() | members == dict(planned).keys()

    def actions(self, run_id: str, state: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        following = ""
        while following is not None:
            page = self.cast.reader.get(f"/v1/runs/{run_id}/actions?limit=4&state={state}{following}").ok()
            found += [(item["topic_id"], item["action"]) for item in page["items"]]
            following = None if page["next"] is None else f"&cursor={page['next']}"
        return found

    @precondition(lambda self: self.runs)
    @rule(place=places)
    def undo(self, place: int) -> None:
        done = self.runs.pop(-1 - place % len(self.runs))
        current, standing = snapshot(), states()
        got = self.cast.operator.post(f"/v1/runs/{done.run_id}/undo").ok()
        conflicts = {conflict["topic_id"]: conflict["why"] for conflict in got["conflicts"]}
        assert conflicts.keys() - done.made == {
            topic for topic in done.acted if standing[topic] != done.states_after[topic]
        }
        assert conflicts.keys() >= {topic for topic in done.made if standing[topic] != done.states_after[topic]}
        assert all(conflicts.values())
        assert got["restored"] + len(conflicts.keys() - done.made) == len(done.acted)
        after = snapshot()
        for topic in current:
            if topic in done.made - conflicts.keys():
                assert not self.is_live(topic)
            elif topic not in done.acted or topic in conflicts:
                assert after[topic] == current[topic]
            elif current[topic] == done.after[topic]:
                assert after[topic] == done.before[topic]
        assert self.cast.operator.post(f"/v1/runs/{done.run_id}/undo").ok() == got
        assert snapshot() == after

    def is_live(self, topic_id: str) -> bool:
        return any(row[0] == topic_id and row[4] for row in rows(_STANDING))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Whatever is forgotten meanwhile: what is pinned or exempt stays where it is."""
        before = {row[0]: row for row in rows(_STANDING)}
        yield
        for topic, scope, kind, pinned, *standing in rows(_STANDING):
            if topic not in before:
                continue
            knobs = policies_current().knobs(scope)
            exempt = kind in knobs.exempt_kinds or any(scope_within(scope, path) for path in knobs.exempt_scopes)
            _id, _scope, _kind, was_pinned, *stood = before[topic]
            if exempt or knobs.mode == "off" or (was_pinned and pinned):
                assert standing == stood
            if any(scope_within(scope, path) for path in knobs.exempt_scopes) or knobs.mode == "off":
                assert pinned == was_pinned

    # --- What always holds ---

    @invariant()
    def no_row_is_ever_lost(self) -> None:
        counts = dict(rows(" UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in TABLES)))
        assert all(counts[table] >= before for table, before in self.counts.items())
        self.counts = counts

    @invariant()
    def every_copy_of_a_topics_state_says_the_same(self) -> None:
        assert not rows(
            """SELECT t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
               LEFT JOIN memory_topicvector x ON x.topic_id = t.id LEFT JOIN memory_topicdocument d ON d.topic_id = t.id
               WHERE (t.rung, t.kind, t.scope_id, t.created_at) IS DISTINCT FROM
                     (v.rung, v.kind, v.scope_id, v.created_at)
                  OR v.live IS DISTINCT FROM (t.rung < 3 AND t.released_at IS NULL AND t.merged_into_id IS NULL)
                  OR v.live IS DISTINCT FROM x.live OR v.live IS DISTINCT FROM d.live"""
        )

    @invariant()
    def what_is_cold_and_summarized_fits(self) -> None:
        assert not rows(
            """SELECT f.id FROM memory_field f LEFT JOIN memory_fieldsummary s
                 ON s.field_id = f.id AND s.withdrawn_at IS NULL
               WHERE f.cold_through > f.last_seq OR s.depth > 2 OR s.through_seq > f.cold_through
                  OR s.from_seq > s.through_seq OR f.cold_through < 0"""
        )
        # On the first rung nothing is detached or summarized.
        assert not rows(
            """SELECT f.id FROM memory_field f JOIN memory_topic t ON t.id = f.topic_id
               WHERE (t.rung = 0 AND (f.detached OR EXISTS (
                   SELECT 1 FROM memory_fieldsummary s WHERE s.field_id = f.id AND s.withdrawn_at IS NULL)))
                  OR (t.rung = 1 AND f.detached)"""
        )

    @invariant()
    def the_depth_is_at_most_two(self) -> None:
        assert not rows(
            """SELECT 1 FROM memory_link a JOIN memory_link b ON b.source_id = a.target_id
               JOIN memory_link c ON c.source_id = b.target_id
               WHERE (a.kind, b.kind, c.kind) = ('compacted_from', 'compacted_from', 'compacted_from')"""
        )

    @invariant()
    def the_fade_key_is_the_formula_of_its_row(self) -> None:
        for table in ("memory_vitality", "memory_field"):
            for salience, at, idle, wall, half_life, fade, floor in rows(
                f"SELECT salience, reinforced_at, idle_before, wall, half_life, fade, fade_floor FROM {table}"
            ):
                counted = at.timestamp() - (0.0 if wall else idle)
                formula = fade_key(salience, reinforced_at=counted, half_life=half_life)
                # The half-life of "static" is so long that the last digit of the key is hours.
                assert fade == formula or math.isclose(fade, formula, rel_tol=1e-12, abs_tol=max(1e-3, half_life / 1e9))
                assert floor <= fade
                assert floor == fade or fade - floor <= FADE_FLOOR_LAG * half_life * (1 + 1e-9)


@pytest.mark.django_db
def test_whatever_happens_a_preview_a_plan_and_a_run_agree_and_undo_is_exact(settings: Any) -> None:
    # More than any run of the machine sends; its clock stands still.
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 1_000_000
    Forgetting.cast = cast_make(in_process)
    run_state_machine_as_test(Forgetting, settings=machine_settings())


def machine_settings() -> settings:
    return settings(max_examples=max(1, int(10 * TIMES)), stateful_step_count=20)
