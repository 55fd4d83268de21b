"""Evidence that forgetting helps: how much can be archived, and what is still found, beside archiving by lot.

On the conversations (see ``test_recall``) each turn is ingested at its own date. When a conversation has ended, half of
its questions are asked, one every six hours, and what they return is reinforced: that is the usage. Thirty-one days
after, a run forgets, and all questions are asked; recall is reported apart for those asked before and for new ones. The
halves are taken in two ways: the first half in the order of the dates of their evidence (new questions are then about
later turns), and every other question (new ones are about turns of any age, which nothing but luck has reinforced).

The default policy reinforces by relevance. Rows of other designs let each retrieval count alike and by 0.1, as they
were published; so does the row "before". The bump was chosen on the first two conversations; the table is of the
others.

On the demo store the recorded half year is replayed by the backtest. Its usage is as invented as its story.
"""

import datetime as dt
import json
import random
import statistics
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory.core.policy_presets import PRESETS
from memory.core.policy_values import Knobs
from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.forgetting import state_changes as moves
from memory.forgetting.runs import run_start, run_undo
from memory.models import AccessLog, Field, ForgetAction, ForgetRun, Vitality
from memory.models.formulas_sql import score_sql
from memory.policy.draft import policies_drafted
from memory.policy.effective import policies_current
from memory.policy.save import policy_save
from memory.recall.access_fold import accesses_fold
from memory.recall.filters import CandidateFilter
from memory.recall.probe import question_probe
from memory.recall.ranking import candidates_rank
from memory.simulate.backtest import backtest
from memory.simulate.replies import BacktestReply
from tests.benchmarks.report import table
from tests.benchmarks.synthetic import store_clear
from tests.benchmarks.test_recall import FOLDER, TURN_ID, _turns
from tests.cast import Caller, Clock, cast_make, in_process, principal_like

CHOSEN_ON = 2
SHARES = (0.3, 0.5, 0.7)
DRAWS = 2
NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)
PAUSE = dt.timedelta(days=31)
FREE: dict[str, Any] = {"topic_count_soft_limit": 0, "max_archive_share": 1.0}


@dataclass
class Asked:
    """One question; ``before`` says that it belongs to the usage."""

    text: str
    vector: Vectors
    evidence: set[str]
    at: dt.datetime
    before: bool = False


@dataclass
class Conversation:
    """One conversation in a scope of its own."""

    scope: str
    ends: dt.datetime
    topics: list[str] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)
    forgets_at: dt.datetime = NEVER


def _date(said: str) -> dt.datetime:
    return dt.datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=dt.UTC)


def _load(file: Path, agent: Caller, clock: Clock) -> Conversation:
    data = json.loads(file.read_text(encoding="utf-8"))
    scope, topic_of, at_of, previous = f"/bench/{file.stem}", {}, {}, None
    sessions: dict[dt.datetime, list[dict[str, Any]]] = {}
    for turn_id, speaker, said, text in _turns(data):
        at = _date(said)
        topic_of[turn_id], at_of[turn_id] = str(uuid.uuid4()), at
        sessions.setdefault(at, []).append(
            {
                "placement": "new_topic",
                "topic_id": topic_of[turn_id],
                "scope": scope,
                "title": f"{speaker}, {said}",
                "summary": text,
                "topic_kind": "utterance",
                "fields": [{"name": "speaker", "value": speaker}, {"name": "said_at", "value": said}],
                "edges": [{"to_topic_id": previous, "kind": "follows"}] if previous else [],
            }
        )
        previous = topic_of[turn_id]
    for at, items in sessions.items():
        clock.set(at)
        for first in range(0, len(items), 200):
            assert agent.post("/v1/ingest/batch", items[first : first + 200]).ok()["refused"] == 0
    loaded = Conversation(scope, max(sessions), list(topic_of.values()))
    for asked in data["qa"]:
        named = {turn for evidence in asked.get("evidence") or () for turn in TURN_ID.findall(evidence)}
        named &= topic_of.keys()
        if named and asked["category"] != 5:
            vector = embedder_get().embed_query(asked["question"])
            evidence = {topic_of[turn] for turn in named}
            loaded.questions.append(Asked(asked["question"], vector, evidence, max(at_of[turn] for turn in named)))
    loaded.questions.sort(key=lambda question: question.at)
    return loaded


def _use(conversation: Conversation, agent: Caller, clock: Clock, *, split: str) -> None:
    """Ask the half of the questions that is the usage."""
    clock.set(conversation.ends)
    half = len(conversation.questions) / 2
    for number, question in enumerate(conversation.questions):
        question.before = number < half if split == "first half" else number % 2 == 0
        if question.before:
            clock.forward(hours=6)
            agent.query(question.text, scope=conversation.scope, stages=["semantic"])
    conversation.forgets_at = clock.now + PAUSE


def _unused_keep() -> None:
    """Keep a copy of what usage changes, as it is before the usage is folded."""
    with connection.cursor() as cursor:
        for model in (Vitality, Field):
            table = model._meta.db_table
            cursor.execute(f"DROP TABLE IF EXISTS unused_{table}")
            cursor.execute(f"CREATE TEMP TABLE unused_{table} AS SELECT * FROM {table}")


def _reinforce(preset: str) -> None:
    """Let the usage reinforce as by ``preset``, and nothing else."""
    values = PRESETS[preset].values
    AccessLog.objects.update(
        folded_at=None,
        counted=None,
        bump=values["query_salience_bump"],
        field_bump=values["query_field_salience_bump"],
        min_relevance=values["reinforce_min_relevance"],
    )
    with connection.cursor() as cursor:
        for model in (Vitality, Field):
            table, key = model._meta.db_table, model._meta.pk.column
            columns = ", ".join(field.column for field in model._meta.fields if not field.primary_key)
            cursor.execute(
                f"UPDATE {table} t SET ({columns}) = (SELECT {columns} FROM unused_{table} u WHERE u.{key} = t.{key})"
            )
    while accesses_fold(now=timezone.now()):
        pass


def _found(conversations: list[Conversation]) -> dict[bool, list[float]]:
    """Return the evidence recall at 10 of every question, those asked before (True) and new ones."""
    knobs, found = Knobs(), {True: [], False: []}  # type: dict[bool, list[float]]
    for conversation in conversations:
        wanted = CandidateFilter(scope=conversation.scope)
        for question in conversation.questions:
            with transaction.atomic():
                probe = question_probe(
                    question.text, wanted, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates
                )
                ranked = candidates_rank(
                    question.vector,
                    probe,
                    wanted,
                    limit=10,
                    knobs=knobs,
                    embedder=embedder_get(),
                    now=conversation.forgets_at,
                )
            ids = {str(candidate.topic_id) for candidate in ranked}
            found[question.before].append(len(question.evidence & ids) / len(question.evidence))
    return found


def _row(label: str, conversations: list[Conversation], gone: set[str]) -> list[object]:
    """Return one row of the table: share archived, recall of either kind, and what was regretted."""
    found = _found(conversations)
    topics = sum(len(conversation.topics) for conversation in conversations)
    needed = {topic for each in conversations for question in each.questions for topic in question.evidence}
    regret = f"{len(gone & needed) / len(gone):.1%}" if gone else "–"
    both = found[True] + found[False]
    return [
        label,
        f"{len(gone) / topics:.0%}",
        *(f"{statistics.mean(part):.3f}" for part in (both, found[True], found[False])),
        regret,
    ]


def _forgotten(
    label: str, conversations: list[Conversation], policies: list[dict[str, Any]]
) -> tuple[list[object], int]:
    """Let real runs forget, each conversation under its policy; measure, and undo the runs."""
    operator, runs = principal_like("operator"), []
    for conversation, policy in zip(conversations, policies, strict=True):
        values = {**FREE, **policy.get("values", {})}
        policy_save(
            conversation.scope,
            preset=policy.get("preset"),
            values=values,
            author="bench",
            reason="for the benchmark",
            now=conversation.forgets_at,
        )
        runs.append(
            run_start(conversation.scope, event="cron", dry_run=False, principal=operator, now=conversation.forgets_at)
        )
        assert runs[-1].status == ForgetRun.Status.DONE, runs[-1].held_because
    done = ForgetAction.objects.filter(run__in=runs, state="applied", action="archived")
    gone = {str(topic) for topic in done.values_list("topic_id", flat=True)}
    row = _row(label, conversations, gone)
    for run, conversation in zip(runs, conversations, strict=True):
        if run.applied:
            run_undo(run.id, principal=operator, reason="", now=conversation.forgets_at)
    return row, len(gone)


def _by_lot(count: int, conversations: list[Conversation]) -> list[object]:
    """Archive as many by lot, several times, and return the means as a row."""
    topics = [uuid.UUID(topic) for conversation in conversations for topic in conversation.topics]
    rows = []
    for draw in range(DRAWS):
        ids = random.Random(draw).sample(topics, count)
        with connection.cursor() as cursor:
            moves.live_set(cursor, ids, live=False)
            rows.append(_row("", conversations, {str(topic) for topic in ids}))
            moves.live_set(cursor, ids, live=True)
    means = [f"{statistics.mean(float(str(row[at])) for row in rows):.3f}" for at in (2, 3, 4)]
    regret = statistics.mean(float(str(row[5]).rstrip("%")) for row in rows)
    return [f"by lot (mean of {DRAWS})", rows[0][1], *means, f"{regret:.1f}%"]


def _threshold(conversation: Conversation, strategy: str, share: float) -> dict[str, Any]:
    """Return values under which the strategy archives that share of the conversation."""
    knobs = Knobs(strategy=strategy)
    score = score_sql(
        strategy,
        row="v",
        now="%(now)s::timestamptz",
        half_life=knobs.half_life,
        active_half_life=knobs.active_half_life,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT percentile_disc(%(share)s) WITHIN GROUP (ORDER BY {score}) FROM memory_vitality v "
            "JOIN memory_scope s ON s.id = v.scope_id WHERE s.path = %(scope)s",
            {"share": share, "now": conversation.forgets_at, "scope": conversation.scope},
        )
        theta = float(cursor.fetchone()[0])
    thresholds = dict.fromkeys(("theta_summary", "theta_detach", "forget_salience_threshold"), max(theta, 0.0))
    return {"values": {"strategy": strategy, "prune_after_days": 30, **thresholds}}


@pytest.mark.bench
@pytest.mark.meaning
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("split", ["first half", "every other"])
def test_what_is_still_found_of_the_conversations(clock: Clock, split: str) -> None:
    files = sorted(Path(FOLDER).glob("*.json"))[CHOSEN_ON:] if FOLDER else []
    if not files:
        pytest.skip("The LoCoMo conversations are not here: set MEMSTATE_LOCOMO to the folder that holds them.")
    agent = cast_make(in_process).agent
    conversations = []
    for file in files:
        conversations.append(_load(file, agent, clock))
        _use(conversations[-1], agent, clock, split=split)
    _unused_keep()
    rows = [_row("no forgetting", conversations, set())]

    def forget(label: str, strategy: str, share: float) -> int:
        policies = [_threshold(conversation, strategy, share) for conversation in conversations]
        row, count = _forgotten(f"{label} at {share:.0%}", conversations, policies)
        rows.append(row)
        return count

    _reinforce("balanced")
    for share in SHARES:
        count = forget("**default policy**", "half_life", share)
        rows.append(_by_lot(count, conversations))
    rows.append(_forgotten("preset balanced", conversations, [{"preset": "balanced"} for _ in conversations])[0])
    _reinforce("memstate")
    for share in SHARES:
        forget("before", "half_life", share)
    forget("active forgetting", "active_forgetting", SHARES[1])
    forget("relevance", "relevance", SHARES[1])
    for preset in PRESETS:
        if preset != "balanced":
            row, _count = _forgotten(f"preset {preset}", conversations, [{"preset": preset} for _ in conversations])
            rows.append(row)
    questions = sum(len(conversation.questions) for conversation in conversations)
    table(
        f"{questions} questions on {len(conversations)} conversations; usage: {split} of the questions",
        ["policy", "archived", "recall@10", "asked before", "new", "regret: archived turns that a question needs"],
        rows,
    )
    store_clear()


@pytest.mark.bench
@pytest.mark.django_db
def test_what_the_demo_would_have_missed() -> None:
    now = dt.datetime(2026, 6, 30, 12, tzinfo=dt.UTC)
    story_load(story_build(now=now), now=now, progress=lambda _steps: None)
    window = {"start": now - dt.timedelta(days=100), "end": now}

    def replay(preset: str | None, **values: Any) -> BacktestReply:
        draft = policies_drafted(policies_current(), "/", preset=preset, values={**FREE, **values})
        return backtest(draft, "/", now=now, **window)

    rows = [_demo_rows(f"preset {preset}", replay(preset)) for preset in PRESETS]
    for share in SHARES:
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = (low + high) / 2
            thresholds = dict.fromkeys(("theta_summary", "theta_detach", "forget_salience_threshold"), middle)
            found = replay(None, prune_after_days=0, **thresholds)
            low, high = (low, middle) if found["archived_share"] > share else (middle, high)
        rows.append(_demo_rows(f"**default policy**, threshold for {share:.0%}", found))
    table(
        "The demo's last 100 days, replayed",
        ["policy", "archived", "used afterwards", "by lot", "retrievals that miss something", "by lot", "saved"],
        rows,
    )


def _demo_rows(label: str, found: BacktestReply) -> list[object]:
    draft, lot = found["draft"], found["by_lot"]
    asked = max(1, found["retrievals"])
    return [
        label,
        f"{found['archived_share']:.0%}",
        f"{draft['used_afterwards']:.0f}",
        f"{lot['used_afterwards']:.0f}",
        f"{draft['missed_retrievals'] / asked:.1%}",
        f"{lot['missed_retrievals'] / asked:.1%}",
        f"{draft['saved']:.0%}",
    ]
