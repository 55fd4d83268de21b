"""Evidence recall on long conversations, with each part of recall switched off in turn.

The conversations are the LoCoMo set (CC BY-NC 4.0), which is not part of this project: ``MEMSTATE_LOCOMO`` names a
folder that holds its files. Where it is not set, this benchmark says so and skips.
"""

import dataclasses
import json
import os
import re
import statistics
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memory.core.policy_values import Knobs
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.recall.filters import CandidateFilter
from memory.recall.probe import question_probe
from memory.recall.ranking import Ranked, candidates_rank
from tests.benchmarks.report import table
from tests.benchmarks.synthetic import store_clear
from tests.cast import cast_make, in_process, worker_turn

FOLDER = os.environ.get("MEMSTATE_LOCOMO", "")
TURN_ID = re.compile(r"D\d+:\d+")
DEPTHS = (5, 10, 20)
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("everything", {}),
    ("without the mean taken off the question", {"recall_center": 0.0}),
    ("without words of neighbours", {"recall_neighbor_share": 0.0}),
    ("without both", {"recall_center": 0.0, "recall_neighbor_share": 0.0}),
    ("words only", {"recall_semantic_weight": 0.0}),
    ("meaning only", {"recall_lexical_weight": 0.0}),
    ("meaning only, mean left in", {"recall_lexical_weight": 0.0, "recall_center": 0.0}),
    ("no penalty for length (b = 0)", {"bm25_b": 0.0}),
    ("full penalty for length (b = 0.75)", {"bm25_b": 0.75}),
    ("neighbours count a quarter", {"recall_neighbor_share": 0.25}),
    ("10 candidates per search", {"recall_candidates": 10}),
    ("100 candidates per search", {"recall_candidates": 100}),
    ("by index, as in a large store", {"recall_exact_below": 0}),
)


def _turns(conversation: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    sessions = sorted((int(found[1]), name) for name in conversation if (found := re.fullmatch(r"session_(\d+)", name)))
    for _number, name in sessions:
        for turn in conversation[name]:
            caption = turn.get("blip_caption")
            text = turn["text"] + (f" [shares {caption}]" if caption else "")
            yield turn["dia_id"], turn["speaker"], conversation.get(f"{name}_date_time", ""), text


@pytest.mark.bench
@pytest.mark.meaning
@pytest.mark.django_db(transaction=True)
def test_each_part_of_recall_earns_its_place() -> None:
    files = sorted(Path(FOLDER).glob("*.json")) if FOLDER else []
    if not files:
        pytest.skip("The LoCoMo conversations are not here: set MEMSTATE_LOCOMO to the folder that holds them.")
    agent = cast_make(in_process).agent
    questions: list[tuple[str, str, str, set[str], Vectors]] = []
    for file in files:
        conversation = json.loads(file.read_text(encoding="utf-8"))
        scope, topic_of, items, previous = f"/bench/{file.stem}", {}, [], None
        for turn_id, speaker, date, text in _turns(conversation):
            topic_of[turn_id] = str(uuid.uuid4())
            items.append(
                {
                    "placement": "new_topic",
                    "topic_id": topic_of[turn_id],
                    "scope": scope,
                    "title": f"{speaker}, {date}",
                    "summary": text,
                    "topic_kind": "utterance",
                    "fields": [{"name": "speaker", "value": speaker}, {"name": "said_at", "value": date}],
                    "edges": [{"to_topic_id": previous, "kind": "follows"}] if previous else [],
                }
            )
            previous = topic_of[turn_id]
        for at in range(0, len(items), 200):
            assert agent.post("/v1/ingest/batch", items[at : at + 200]).ok()["refused"] == 0
        for asked in conversation["qa"]:
            if asked.get("evidence") and asked["category"] != 5:
                named = {turn for evidence in asked["evidence"] for turn in TURN_ID.findall(evidence)}
                evidence = {topic_of[turn] for turn in named & topic_of.keys()}
                if evidence:
                    vector = embedder_get().embed_query(asked["question"])
                    questions.append((file.stem, scope, asked["question"], evidence, vector))
    worker_turn()
    rows = []
    for label, changes in VARIANTS:
        found, per_file = _recall(questions, dataclasses.replace(Knobs(), **changes))
        shares = " ".join(f"{statistics.mean(per_file[file.stem]):.2f}" for file in files)
        rows.append([label, *(f"{statistics.mean(found[depth]):.3f}" for depth in DEPTHS), shares])
    _relevance_measure(questions, [file.stem for file in files])
    names = " ".join(file.stem.removeprefix("conv-") for file in files)
    table(
        f"Evidence recall over {len(questions)} questions",
        ["recall", *(f"@{depth}" for depth in DEPTHS), f"@10 of {names}"],
        rows,
    )
    store_clear()


def _relevance_measure(questions: list[tuple[str, str, str, set[str], Vectors]], names: list[str]) -> None:
    """Print how much evidence the floor of reinforcement keeps, and how much of what questions to other conversations
    return. Formula and floor were chosen on the first two conversations."""
    knobs, rows = Knobs(), []
    for label, among in (("chosen on", names[:2]), ("**result**", names[2:])):
        evidence, asked, wrong = [], 0, []
        for name, _scope, question, needed, vector in questions:
            for other in among if name in among else ():
                ranked = _ranked(question, vector, f"/bench/{other}", knobs, limit=8)
                renewed = [(candidate.relevance or 0.0) >= knobs.reinforce_min_relevance for candidate in ranked]
                if other != name:
                    wrong += renewed
                    continue
                asked += len(needed)
                evidence += [
                    kept for candidate, kept in zip(ranked, renewed, strict=True) if str(candidate.topic_id) in needed
                ]
        rows.append(
            [
                f"{label}: {' '.join(name.removeprefix('conv-') for name in among)}",
                f"{len(evidence)} of {asked}",
                f"{statistics.mean(evidence):.1%}",
                len(wrong),
                f"{statistics.mean(wrong):.1%}",
            ]
        )
    table(
        f"Relevance of at least {knobs.reinforce_min_relevance:g} among the first 8",
        ["conversations", "evidence returned", "renewed", "hits in another conversation", "renewed"],
        rows,
    )


def _ranked(question: str, vector: Vectors, scope: str, knobs: Knobs, *, limit: int) -> list[Ranked]:
    wanted = CandidateFilter(scope=scope)
    with transaction.atomic():
        probe = question_probe(
            question, wanted, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates
        )
        return candidates_rank(
            vector, probe, wanted, limit=limit, knobs=knobs, embedder=embedder_get(), now=timezone.now()
        )


def _recall(
    questions: list[tuple[str, str, str, set[str], Vectors]], knobs: Knobs
) -> tuple[dict[int, list[float]], dict[str, list[float]]]:
    found: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    per_file: dict[str, list[float]] = {}
    for file, scope, question, evidence, vector in questions:
        ranked = _ranked(question, vector, scope, knobs, limit=20)
        ids = [str(candidate.topic_id) for candidate in ranked]
        for depth in DEPTHS:
            found[depth].append(len(evidence & set(ids[:depth])) / len(evidence))
        per_file.setdefault(file, []).append(found[10][-1])
    return found, per_file
