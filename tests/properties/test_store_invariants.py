"""A machine that writes, edits, pins, archives, restores, asks, folds and lets time pass, in any order.

After every step: nothing was lost, numbers have no gaps, every copy of the state of a topic says the same, and every
fade key is what the formula makes of its row.
"""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
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

from memory.formulas.salience import FADE_FLOOR_LAG, fade_key
from memory.recall.access_fold import accesses_fold
from memory.recall.corpus import documents_count
from tests.cast import Cast, cast_make, in_process, worker_turn
from tests.generated import TIMES
from tests.waits import turns_until_done

IDS = [str(uuid.UUID(int=number)) for number in range(1, 6)]
NAMES = ["city", "job"]
TABLES = [
    model._meta.db_table
    for model in apps.get_app_config("memory").get_models()
    # What the worker takes up, and receipts of requests, may go.
    if model._meta.db_table not in ("memory_wakeup", "memory_idempotencyrecord")
]

topics = st.integers(0, len(IDS) - 1)
words = st.sampled_from(["harbor", "bakery", "", "orchard keeper", "the violin of the harbor"])
entries = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(NAMES), "value": words}, optional={"why_changed": words}), max_size=3
)
saliences = st.sampled_from([0.0, 5e-324, 1e-30, 0.3, 1.0, 10.0])


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


class Store(RuleBasedStateMachine):
    """The store beside a small model of what it should hold."""

    cast: Cast

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self.patch.setattr(timezone, "now", lambda: self.now)
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.values: dict[str, dict[str, list[str]]] = {}
        self.archived: set[str] = set()
        self.pinned: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.history: dict[Any, list[Any]] = {}
        self.edits: list[Any] = []

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)
        self.patch.undo()

    @initialize()
    def begin(self) -> None:
        self.new_topic(0, "harbor", [], 1.0, False)

    def some(self, place: int) -> str:
        return sorted(self.values)[place % len(self.values)]

    # --- What can happen ---

    @rule(place=topics, title=words, fields=entries, salience=saliences, pinned=st.booleans())
    def new_topic(self, place: int, title: str, fields: list[dict[str, Any]], salience: float, pinned: bool) -> None:
        item = {
            "placement": "new_topic",
            "topic_id": IDS[place],
            "title": title,
            "fields": fields,
            "salience": salience,
            "pinned": pinned,
        }
        reply = self.cast.agent.post("/v1/ingest", item)
        if IDS[place] in self.values:
            assert reply.status == 409
            return
        reply.ok()
        self.values[IDS[place]] = {}
        if pinned:
            self.pinned[IDS[place]] = "asked for on ingest"
        self._wrote(IDS[place], fields)

    def _wrote(self, topic_id: str, fields: list[dict[str, Any]]) -> None:
        for entry in fields:
            self.values[topic_id].setdefault(entry["name"], []).append(entry["value"])

    @rule(place=topics, other=topics, fields=entries, pinned=st.booleans())
    def extend(self, place: int, other: int, fields: list[dict[str, Any]], pinned: bool) -> None:
        topic_id = self.some(place)
        edges = [{"to_topic_id": self.some(other), "kind": "near"}]
        self.cast.agent.ingest("extend_topic", topic_id=topic_id, fields=fields, edges=edges, pinned=pinned)
        if pinned:
            self.pinned.setdefault(topic_id, "asked for on ingest")
        self._wrote(topic_id, fields)

    @rule(place=topics, name=st.sampled_from(NAMES), value=words, defer=st.booleans())
    def version(self, place: int, name: str, value: str, defer: bool) -> None:
        topic_id = self.some(place)
        fields = [{"name": name, "value": value}]
        item = {"placement": "version_field", "topic_id": topic_id, "fields": fields}
        self.cast.agent.post(f"/v1/ingest?defer={int(defer)}", item).ok()
        self._wrote(topic_id, fields)

    @rule(place=topics, value=words)
    def refused_batch(self, place: int, value: str) -> None:
        items = [
            {"placement": "version_field", "topic_id": self.some(place), "fields": []},
            {"placement": "extend_topic", "topic_id": str(uuid.UUID(int=99)), "fields": [{"name": "x"}]},
            {"placement": "new_topic", "title": value, "edges": [{"to_topic_id": str(uuid.UUID(int=99))}]},
            {"placement": "new_topic", "fields": [{"name": "n", "value": "one", "field_type": "int"}]},
        ]
        assert self.cast.agent.post("/v1/ingest/batch", items).ok()["accepted"] == 0

    @rule(place=topics, title=words, summary=words)
    def edit(self, place: int, title: str, summary: str) -> None:
        self.cast.agent.patch(f"/v1/topics/{self.some(place)}", {"title": title, "summary": summary}).ok()

    @rule(place=topics, salience=saliences)
    def set_salience(self, place: int, salience: float) -> None:
        self.cast.operator.patch(f"/v1/topics/{self.some(place)}", {"salience": salience}).ok()

    @rule(place=topics, pinned=st.booleans())
    def pin(self, place: int, pinned: bool) -> None:
        topic_id = self.some(place)
        self.cast.operator.post(f"/v1/topics/{topic_id}/{'pin' if pinned else 'unpin'}", {"reason": "because"}).ok()
        self.pinned.pop(topic_id, None)
        if pinned:
            self.pinned[topic_id] = "because"

    @rule(place=topics)
    def archive(self, place: int) -> None:
        topic_id = self.some(place)
        status = self.cast.operator.post(f"/v1/topics/{topic_id}/archive", {}).status
        assert status == (409 if topic_id in self.archived else 200)
        self.archived.add(topic_id)

    @precondition(lambda self: self.archived)
    @rule(place=topics)
    def restore(self, place: int) -> None:
        topic_id = sorted(self.archived)[place % len(self.archived)]
        self.cast.operator.post(f"/v1/topics/{topic_id}/restore", {}).ok()
        self.archived.discard(topic_id)

    @rule(q=st.sampled_from(["harbor", "bakery orchard", "violin"]), as_agent=st.booleans())
    def ask(self, q: str, as_agent: bool) -> None:
        caller = self.cast.agent if as_agent else self.cast.reader
        assert set(caller.found(q, top_k=50)) <= set(self.values) - self.archived

    @rule()
    def fold(self) -> None:
        accesses_fold(now=self.now)

    @rule()
    def tend(self) -> None:
        turns_until_done(worker_turn)
        self.words_are_counted()

    @rule(seconds=st.sampled_from([1.0, 59.0, 61.0, 86_400.0, 86_400.0 * 300, 86_400.0 * 36_500]))
    def wait(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)

    def words_are_counted(self) -> None:
        assert documents_count() == 0
        assert dict(rows("SELECT word, documents FROM memory_lexeme WHERE documents <> 0")) == dict(
            rows("SELECT word, ndoc FROM ts_stat('SELECT document FROM memory_topicdocument WHERE live')")
        )
        assert rows("SELECT coalesce(sum(documents), 0)::bigint FROM memory_corpustotals") == rows(
            "SELECT count(*) FROM memory_topicdocument WHERE live"
        )

    # --- What always holds ---

    @invariant()
    def no_row_is_ever_lost(self) -> None:
        counts = dict(rows(" UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in TABLES)))
        assert all(counts[table] >= before for table, before in self.counts.items())
        self.counts = counts

    @invariant()
    def history_only_grows_and_has_no_gaps(self) -> None:
        history: dict[Any, list[Any]] = {}
        for field, seq, *rest in rows(
            """SELECT field_id, seq, id, value, field_type, ref_topic_id, valid_from, recorded_at, provenance,
                      why_changed, impact_expected, actor FROM memory_revision ORDER BY field_id, seq"""
        ):
            history.setdefault(field, []).append(rest)
            assert seq == len(history[field])
        for field, before in self.history.items():
            assert history[field][: len(before)] == before
        self.history = history
        edits = rows("SELECT id, topic_id, at, before::text, actor FROM memory_topicedit ORDER BY id")
        assert edits[: len(self.edits)] == self.edits
        self.edits = edits
        stored: dict[str, dict[str, list[str]]] = {topic_id: {} for topic_id in self.values}
        for topic_id, name, last_seq, field in rows("SELECT topic_id, name, last_seq, id FROM memory_field"):
            assert last_seq == len(history[field])
            stored[str(topic_id)][name] = [value for _id, value, *_rest in history[field]]
        assert stored == self.values

    @invariant()
    def every_copy_of_a_topics_state_says_the_same(self) -> None:
        found = rows(
            """SELECT t.id, t.rung, v.rung, v.live, x.live, d.live, v.pinned, v.pin_reason,
                      t.scope_id = v.scope_id AND t.scope_id = x.scope_id AND t.scope_id = d.scope_id
                          AND t.kind = v.kind AND t.created_at = v.created_at
               FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
               JOIN memory_topicvector x ON x.topic_id = t.id JOIN memory_topicdocument d ON d.topic_id = t.id"""
        )
        assert len(found) == len(self.values)
        for topic_id, rung, rung_again, *lives, pinned, reason, one_scope in found:
            live = str(topic_id) not in self.archived
            assert rung == rung_again == (0 if live else 3)
            assert lives == [live] * 3
            assert one_scope
            assert (pinned, reason) == (str(topic_id) in self.pinned, self.pinned.get(str(topic_id), ""))

    @invariant()
    def the_fade_key_is_the_formula_of_its_row(self) -> None:
        for table in ("memory_vitality", "memory_field"):
            for salience, at, half_life, fade, floor in rows(
                f"SELECT salience, reinforced_at, half_life, fade, fade_floor FROM {table}"
            ):
                formula = fade_key(salience, reinforced_at=at.timestamp(), half_life=half_life)
                assert fade == formula or fade == pytest.approx(formula, rel=1e-12, abs=1e-3)
                assert floor <= fade
                assert floor == fade or fade - floor <= FADE_FLOOR_LAG * half_life * (1 + 1e-9)
                assert at <= self.now
                assert 0 <= salience <= 20

    @invariant()
    def documents_say_what_the_fields_say(self) -> None:
        assert not rows(
            """SELECT t.id FROM memory_topic t JOIN memory_topicdocument d ON d.topic_id = t.id
               WHERE d.document <> to_tsvector('english', concat_ws(E'\\n', nullif(t.title, ''),
                   nullif(t.summary, ''), (
                   SELECT string_agg(r.value, E'\\n' ORDER BY f.created_at, f.id) FROM memory_field f
                   JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
                   WHERE f.topic_id = t.id AND r.value <> '')))"""
        )


@pytest.mark.django_db
def test_nothing_that_can_happen_breaks_what_always_holds(settings_of_machine: settings) -> None:
    Store.cast = cast_make(in_process)
    run_state_machine_as_test(Store, settings=settings_of_machine)


@pytest.fixture
def settings_of_machine(settings: Any) -> Any:
    # More than any run of the machine sends; its clock stands still.
    settings.MEMSTATE_REQUESTS_PER_MINUTE = 1_000_000
    return machine_settings()


def machine_settings() -> settings:
    return settings(max_examples=max(1, int(12 * TIMES)), stateful_step_count=25)
