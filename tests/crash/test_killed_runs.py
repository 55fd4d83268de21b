"""Workers that are killed outright in the middle of a run, an undo or a re-keying: it ends as if no one had been.

The workers are processes of their own that do what the cluster's do, on the database of the tests: forked, as there,
from a process that has loaded everything, so that a killed one is replaced within a moment.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from memory.forgetting.runs import run_results
from memory.forgetting.triggers import event_raise
from memory.models import AuditEvent, ForgetAction, ForgetRun, Rekeying, WakeUp
from memory.models.formulas_sql import counted_sql, fade_key_sql
from memory.policy.effective import policies_current
from memory.policy.save import policy_save
from memstate_site.folder import CHECKOUT
from tests.seed import SEED
from tests.waits import eventually, line_of

pytestmark = pytest.mark.django_db(transaction=True)

# The full variant is MEMSTATE_TEST_KILLS=10.
KILLS = int(os.environ.get("MEMSTATE_TEST_KILLS", "5"))
DUE = 20_000
STAYING = 500
# Of ten topics that are due, so many have fallen to each rung.
SHARES = {"archived": 6, "detached": 2, "summarized": 2}
SCOPE = "/crash"

WORKER = """
import os, sys, time
import django
django.setup()
from django.db import connection
from django.utils import timezone
from memory.jobs import tasks
from memory.access.principal import SYSTEM
from memory.forgetting.runs import run_undo
import uuid

connection.settings_dict["NAME"] = sys.argv[1]
host = os.getpid()

def upkeep():
    while os.getppid() == host:
        tasks.upkeep()
        time.sleep(0.01)

def proceed(run_id):
    assert tasks.run_continue(run_id) == "done"

def undo(run_id):
    run_undo(uuid.UUID(run_id), principal=SYSTEM, reason="the crash tests", now=timezone.now())

def study(job_id):
    while os.getppid() == host and tasks.study_continue(job_id) == "working":
        time.sleep(0.05)

for line in sys.stdin:
    verb, *words = line.split()
    if verb == "wait":
        print(os.waitstatus_to_exitcode(os.waitpid(int(words[0]), 0)[1]), flush=True)
        continue
    child = os.fork()
    if child == 0:
        status = 1
        try:
            {"upkeep": upkeep, "proceed": proceed, "undo": undo, "study": study}[verb](*words)
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    print(child, flush=True)
"""


class Workers:
    """Starts, kills and replaces workers."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.running: list[tuple[int, str]] = []
        environment = {
            **os.environ,
            "MEMSTATE_EMBEDDER": "instant",
            "DJANGO_SETTINGS_MODULE": "memstate_site.settings",
            # What a killed worker had locked is free when its statement is through, which takes long on a busy machine.
            "MEMSTATE_LOCK_TIMEOUT_MS": "60000",
        }
        with log.open("wb") as output:
            self.host = subprocess.Popen(
                [sys.executable, "-c", WORKER, connection.settings_dict["NAME"]],
                cwd=CHECKOUT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def _ask(self, line: str) -> int:
        assert self.host.stdin is not None
        assert self.host.stdout is not None
        self.host.stdin.write(line + "\n")
        self.host.stdin.flush()
        said = line_of(self.host)
        assert said, self.said()
        return int(said)

    def start(self, work: str, count: int = 1) -> None:
        for _ in range(count):
            self.running.append((self._ask(work), work))

    def kill(self, chance: random.Random, *, replace: bool = True) -> int:
        """Kill one worker or all of them, put others in their place, and return how many were still at work."""
        victims = self.running if chance.random() < 0.5 else [chance.choice(self.running)]
        killed = 0
        for pid, work in list(victims):
            os.kill(pid, signal.SIGKILL)
            killed += self._ask(f"wait {pid}") == -signal.SIGKILL
            self.running.remove((pid, work))
            if replace:
                self.start(work)
        return killed

    def join(self, work: str) -> list[int]:
        """Wait until every worker on this work has ended by itself, and return with which statuses."""
        ending = [worker for worker in self.running if worker[1] == work]
        self.running = [worker for worker in self.running if worker not in ending]
        return [self._ask(f"wait {pid}") for pid, _work in ending]

    def stop(self) -> None:
        for pid, _work in self.running:
            os.kill(pid, signal.SIGKILL)
            self._ask(f"wait {pid}")
        self.running = []

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self) -> None:
        for pid, _work in self.running:
            os.kill(pid, signal.SIGKILL)
        assert self.host.stdin is not None
        assert self.host.stdout is not None
        self.host.stdin.close()
        self.host.wait(20)
        self.host.stdout.close()


@pytest.fixture
def chance() -> random.Random:
    print(f"MEMSTATE_TEST_SEED={SEED}")
    return random.Random(SEED)


@pytest.fixture
def workers(tmp_path: Path, store: None) -> Iterator[Workers]:
    made = Workers(tmp_path / "workers.log")
    try:
        yield made
    finally:
        made.end()


_FILL = """
WITH made AS (
    SELECT n, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id,
           now() - interval '60 days' AS at,
           -- Two half-lives ago, so that a quarter is left. No two alike, so that a mistaken one shows.
           n * 1e-7 + CASE WHEN n > %(due)s THEN CASE n %% 2 WHEN 0 THEN 4 ELSE 0.1 END
                           WHEN n %% 10 < 6 THEN 0.1 WHEN n %% 10 < 8 THEN 0.32 ELSE 0.8 END AS salience
    FROM generate_series(1, %(due)s + %(staying)s) AS n
), keyed AS (
    SELECT *, extract(epoch FROM at)::float8 + 2592000 * (ln(salience::float8) / ln(2::float8)) AS fade FROM made
), scope AS (
    INSERT INTO memory_scope (path) VALUES (%(scope)s) RETURNING id
), topics AS (
    INSERT INTO memory_topic
        (id, scope_id, kind, title, summary, categories, provenance, created_at, updated_at, rung)
    SELECT made.id, scope.id, 'observation', 'topic ' || n, 'word' || n %% 97, '{}', 'test', at, at, 0 FROM made, scope
), vitality AS (
    INSERT INTO memory_vitality (topic_id, scope_id, salience, reinforced_at, half_life, fade, fade_floor, pinned,
        pin_reason, kind, created_at, retrieval_count, rung, live)
    SELECT keyed.id, scope.id, salience, at, 2592000, fade, fade, n > %(due)s AND n %% 2 = 1, '', 'observation',
        at, 0, 0, true
    FROM keyed, scope
), documents AS (
    INSERT INTO memory_topicdocument (topic_id, scope_id, live, document, counted, length, uncounted)
    SELECT made.id, scope.id, true, words, words, 3, false
    FROM made, scope, to_tsvector('english', 'topic ' || n || ' word' || n %% 97) AS words
), vectors AS (
    INSERT INTO memory_topicvector (topic_id, scope_id, live, model, text_hash, embedding)
    SELECT made.id, scope.id, true, 'instant', '', ('[' || repeat('0,', 383) || '1]')::vector FROM made, scope
), fields AS (
    INSERT INTO memory_field (id, topic_id, name, last_seq, cold_through, salience, reinforced_at, created_at,
        half_life, fade, fade_floor, retrieval_count, detached)
    SELECT keyed.id, keyed.id, 'state', CASE WHEN n %% 10 < 7 THEN 1 ELSE 8 END, 0, salience, at, at, 2592000, fade,
        fade, 0, false
    FROM keyed
)
INSERT INTO memory_revision (id, field_id, seq, value, field_type, valid_from, recorded_at, provenance,
    why_changed, impact_expected, actor)
SELECT gen_random_uuid(), made.id, seq, 'value ' || seq || ' of ' || n, 'string', at, at, 'test', '', '', 'test'
FROM made CROSS JOIN LATERAL generate_series(1, CASE WHEN n %% 10 < 7 THEN 1 ELSE 8 END) AS seq
"""

_COUNT = """
WITH totals AS (INSERT INTO memory_corpustotals (id, documents) VALUES (1, %(topics)s))
INSERT INTO memory_lexeme (word, documents)
SELECT word, ndoc FROM ts_stat('SELECT document FROM memory_topicdocument')
"""


@pytest.fixture
def store(transactional_db: None) -> Iterator[None]:
    """20,000 topics that are due and 500 that are not: fresh ones and pinned ones."""
    with connection.cursor() as cursor:
        # What is killed here is the worker; the index of vectors would only make it slow.
        cursor.execute("SELECT pg_get_indexdef('topicvector_hnsw'::regclass)")
        definition = cursor.fetchone()[0]
        cursor.execute("DROP INDEX topicvector_hnsw")
        try:
            cursor.execute(_FILL, {"due": DUE, "staying": STAYING, "scope": SCOPE})
            cursor.execute(_COUNT, {"topics": DUE + STAYING})
            cursor.execute("ANALYZE memory_topic, memory_vitality, memory_field, memory_revision, memory_topicdocument")
            yield
        finally:
            cursor.execute("TRUNCATE memory_topicvector")
            cursor.execute(definition)


# The journal, the notes of the worker, what tells it where it stands, and what it reads up on its own: mentions.
NOT_COMPARED = {
    "memory_forgetrun",
    "memory_forgetaction",
    "memory_auditevent",
    "memory_workerheartbeat",
    "memory_wakeup",
    "memory_policyversion",
    "memory_partitionactivity",
    "memory_rekeying",
    "memory_watermark",
    "memory_topicmention",
}


def dump() -> dict[str, str]:
    """Copy every table but the journal, and return the names of the copies by table."""
    tables = {model._meta.db_table for model in apps.get_app_config("memory").get_models()} - NOT_COMPARED
    copies = {table: f"before_{table}" for table in sorted(tables)}
    with connection.cursor() as cursor:
        for table, copy in copies.items():
            cursor.execute(f"DROP TABLE IF EXISTS {copy}")
            cursor.execute(f"CREATE TEMPORARY TABLE {copy} AS TABLE {table}")
    return copies


def differences(copies: dict[str, str]) -> dict[str, list[str]]:
    """Return rows that are in only one of a table and its copy, byte for byte, by table."""
    found = {}
    with connection.cursor() as cursor:
        for table, copy in copies.items():
            cursor.execute(
                f"""(SELECT x::text FROM {table} x EXCEPT ALL SELECT x::text FROM {copy} x)
                    UNION ALL (SELECT x::text FROM {copy} x EXCEPT ALL SELECT x::text FROM {table} x) LIMIT 5"""
            )
            if rows := [row for (row,) in cursor.fetchall()]:
                found[table] = rows
    return found


def number(sql: str, *parameters: object) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.fetchone()[0])


def counted() -> bool:
    """Whether the worker has counted the words of every document, as they were when the copy was made."""
    return not number("SELECT count(*) FROM memory_topicdocument WHERE uncounted")


def assert_every_action_was_taken_once(run: ForgetRun) -> None:
    assert (run.status, run.planned, run.applied, run.skipped, run.left_over) == ("done", DUE, DUE, 0, 0)
    assert not run.failure
    expected = {name: DUE * share // 10 for name, share in SHARES.items()}
    assert run.counts == {**expected, "restored": 0}
    actions = list(ForgetAction.objects.filter(run=run).values_list("topic_id", "place", "action", "state"))
    assert len(actions) == DUE
    assert len({topic_id for topic_id, *_rest in actions}) == DUE
    assert sorted(place for _topic, place, *_rest in actions) == list(range(1, DUE + 1))
    assert Counter(action for *_rest, action, _state in actions) == expected
    assert {state for *_rest, state in actions} == {"applied"}
    assert not ForgetAction.objects.filter(run=run, after=None).exists()
    assert len(set(run_results(run))) == DUE


def assert_every_topic_moved_once() -> None:
    rungs = {"archived": 3, "detached": 2, "summarized": 1}
    joined = """SELECT count(*) FROM memory_forgetaction a JOIN memory_vitality v ON v.topic_id = a.topic_id
        JOIN memory_topic t ON t.id = a.topic_id JOIN before_memory_vitality b ON b.topic_id = a.topic_id
        JOIN memory_topicvector e ON e.topic_id = a.topic_id JOIN memory_topicdocument d ON d.topic_id = a.topic_id"""
    for action, rung in rungs.items():
        factor = 0.5 if action == "archived" else 1.0
        right = number(
            f"""{joined} WHERE a.action = %s AND v.rung = %s AND t.rung = %s AND v.salience = b.salience * %s
                AND v.reinforced_at = b.reinforced_at AND v.live = (v.rung < 3) AND e.live = v.live AND d.live = v.live
                AND (a.before->>'salience')::float8 = b.salience AND (a.after->>'salience')::float8 = v.salience""",
            action,
            rung,
            rung,
            factor,
        )
        assert right == DUE * SHARES[action] // 10, action
    # Each field with more than five revisions has been folded once, and no other.
    folded = "SELECT count(*) FROM memory_field WHERE last_seq = 8 AND cold_through = 3"
    assert number(folded) == number("SELECT count(*) FROM memory_fieldsummary") == DUE * 3 // 10
    assert (
        number("SELECT count(DISTINCT field_id) FROM memory_fieldsummary WHERE withdrawn_at IS NULL") == DUE * 3 // 10
    )
    assert number("SELECT count(*) FROM memory_vitality WHERE rung = 0") == STAYING


def assert_every_word_is_counted_once() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word, documents FROM memory_lexeme WHERE documents <> 0")
        stored = dict(cursor.fetchall())
        cursor.execute("SELECT word, ndoc FROM ts_stat('SELECT document FROM memory_topicdocument WHERE live')")
        assert stored == dict(cursor.fetchall())


def pause(chance: random.Random) -> None:
    """Let about one batch pass, so that the kill comes at any moment of it."""
    time.sleep(chance.uniform(0.0, 0.2))


def test_a_run_whose_workers_are_killed_is_done_once_and_its_killed_undo_is_exact(
    workers: Workers, chance: random.Random
) -> None:
    now = timezone.now()
    policy_save(
        "/",
        preset=None,
        # Looking for duplicates without the index would be most of what the workers do.
        values={"max_topics_for_forget_scan": 50_000, "max_archive_share": 1.0, "duplicates_mode": "off"},
        author="test",
        reason="a run over everything",
        now=now,
    )
    before = dump()

    event_raise(SCOPE, event="memory_pressure", now=timezone.now())
    workers.start("upkeep", 2)
    # The first kills come before there is a run, or while it is planned: the wake-up is not lost.
    for _ in range(2):
        time.sleep(chance.uniform(0.0, 0.15))
        assert workers.kill(chance)
    eventually(lambda: ForgetRun.objects.exists(), 60)
    run, hits = ForgetRun.objects.get(), 0
    for turn in range(KILLS):
        # From one end of the run to the other.
        reached = DUE * turn // (KILLS + 2)
        eventually(lambda reached=reached: ForgetRun.objects.get().applied >= reached, 60)
        pause(chance)
        assert workers.kill(chance)
        # At every moment the run counts exactly what is in its journal.
        assert not number(
            """SELECT count(*) FROM memory_forgetrun r
               WHERE applied <> (SELECT count(*) FROM memory_forgetaction WHERE run_id = r.id AND state = 'applied')"""
        )
        run.refresh_from_db()
        hits += run.status == ForgetRun.Status.APPLYING
    # Not asserted, since it depends on the speed of the machine.
    print(f"{hits} of {KILLS} kills hit the run at work")
    eventually(lambda: ForgetRun.objects.get().status == ForgetRun.Status.DONE, 120)
    # A second attempt at the run finds nothing left to do.
    workers.start(f"proceed {run.pk}", 2)
    assert workers.join(f"proceed {run.pk}") == [0, 0]
    eventually(counted, 60)
    run.refresh_from_db()
    assert_every_action_was_taken_once(run)
    assert_every_topic_moved_once()
    assert_every_word_is_counted_once()
    assert not WakeUp.objects.exists()
    workers.stop()

    undone = ForgetAction.objects.filter(run=run, state="undone")
    hits = 0
    for turn in range(KILLS):
        workers.start(f"undo {run.pk}", 2 - len(workers.running))
        reached = DUE * turn // (KILLS + 2)
        eventually(lambda reached=reached: undone.count() >= reached, 60)
        pause(chance)
        # On a busy machine the undo may be through before it is noticed to be under way; what counts is below.
        assert workers.kill(chance, replace=False) or undone.count() == DUE
        hits += undone.count() < DUE
    print(f"{hits} of {KILLS} kills hit the undo at work")
    workers.start(f"undo {run.pk}", 2)
    assert set(workers.join(f"undo {run.pk}")) == {0}
    run.refresh_from_db()
    assert (run.status, undone.count()) == ("undone", DUE)
    assert AuditEvent.objects.filter(action="run_undone").count() == 1
    workers.start("upkeep")
    eventually(counted, 60)
    workers.stop()
    assert number("SELECT count(*) FROM memory_fieldsummary WHERE withdrawn_at IS NULL") == 0
    assert number("SELECT count(*) FROM memory_fieldsummary") == DUE * 3 // 10
    del before["memory_fieldsummary"]
    assert differences(before) == {}
    assert ForgetRun.objects.count() == 1
    assert "Traceback" not in workers.said()
    assert "failed" not in workers.said()


def test_a_change_of_keys_with_killed_workers_gives_every_row_its_key(workers: Workers, chance: random.Random) -> None:
    before = dump()
    # Only the half-life changes: with mode off nothing is forgotten meanwhile.
    policy_save(
        "/",
        preset=None,
        values={"half_life_days": 7, "mode": "off"},
        author="test",
        reason="faster",
        now=timezone.now(),
    )
    topics = DUE + STAYING
    workers.start("upkeep", 2)
    kills, hits = min(KILLS, 8), 0
    for turn in range(kills):
        eventually(lambda turn=turn: Rekeying.objects.get().done >= min(5000 * turn, 10_000), 60)
        pause(chance)
        assert workers.kill(chance)
        # At every moment exactly what is said to be done is done.
        assert not number(
            """SELECT count(*) FROM memory_rekeying
               WHERE done <> (SELECT count(*) FROM memory_vitality WHERE half_life = 7 * 86400)"""
        )
        hits += 0 < Rekeying.objects.get().done < topics
    print(f"{hits} of {kills} kills hit the change of keys at work")
    eventually(lambda: Rekeying.objects.get().finished_at is not None, 60)
    eventually(counted, 60)
    workers.stop()
    work = Rekeying.objects.get()
    assert (work.done, work.total) == (topics, topics)
    assert not policies_current().rekeying
    key = fade_key_sql("r.salience", counted=counted_sql("r"), half_life="(7 * 86400)::float8")
    for table, name in (("memory_vitality", "topic_id"), ("memory_field", "id")):
        right = number(
            f"""SELECT count(*) FROM {table} r JOIN {before[table]} b USING ({name})
                WHERE r.half_life = 7 * 86400 AND r.fade = {key} AND r.fade_floor = r.fade
                  AND r.salience = b.salience AND r.reinforced_at = b.reinforced_at"""
        )
        assert right == topics, table
    kept = {name: copy for name, copy in before.items() if name in ("memory_topic", "memory_revision")}
    assert differences(kept) == {}
    assert "Traceback" not in workers.said()
