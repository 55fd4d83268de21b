"""What extraction without a model finds of what people would write down, beside splitting into sentences.

On the conversations (see ``test_recall``) each session comes with observations that annotators wrote: what there is to
remember of it. Each session is extracted from as one text; facts and observations are paired greedily by the cosine of
their embeddings, each once, as long as it is at least the threshold. Recall is the share of observations with a fact,
precision the share of facts with an observation; since one observation is often stated in several turns, the share of
facts that are near *any* observation is reported too.

The threshold is where pairs that have nothing to do with each other end: of a fact and an observation of another
session of the same people, 1 in 500 are as near. It is found for each way of reading by itself, since texts that name
people more often lie nearer to each other whatever they say; beside it stand two thresholds that are the same for all.
Rules were made while looking at two of the conversations; the others tell how they do elsewhere.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.text.statements import facts_read
from tests.benchmarks.report import table
from tests.benchmarks.test_recall import FOLDER

SEEN = ("conv-26", "conv-43")
THRESHOLDS = (0.90, 0.92)
UNRELATED = 1 / 500
_SESSION = re.compile(r"session_\d+")
_ENDS = re.compile(r"(?<=[.!?])\s+")

Session = tuple[str, list[str]]


def _sessions(file: Path) -> list[Session]:
    data = json.loads(file.read_text(encoding="utf-8"))
    found = []
    for name in filter(_SESSION.fullmatch, data):
        said = "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in data[name])
        noted = [entry[0] for entries in data.get(f"{name}_observation", {}).values() for entry in entries]
        if noted:
            found.append((said, noted))
    return found


def _facts(said: str) -> list[str]:
    return [fact.text for fact in facts_read(said).facts]


def _sentences(said: str) -> list[str]:
    return [part for line in said.splitlines() for part in _ENDS.split(line.partition(": ")[2]) if part.strip()]


def _sentences_by(said: str) -> list[str]:
    return [
        f"{line.partition(': ')[0]}: {part}"
        for line in said.splitlines()
        for part in _ENDS.split(line.partition(": ")[2])
        if part.strip()
    ]


def _pairs(cosines: Vectors, least: float) -> int:
    """Return how many pairs there are if the nearest are taken first, each row and column once."""
    rows, columns = set[int](), set[int]()
    for place in np.argsort(-cosines, axis=None):
        row, column = divmod(int(place), cosines.shape[1])
        if cosines[row, column] < least:
            break
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
    return len(rows)


def _measured(label: str, read: Callable[[str], list[str]], sessions: Sequence[Session]) -> list[list[object]]:
    embed = embedder_get().embed_passages
    got = [embed(read(said)) for said, _noted in sessions]
    noted = [embed(notes) for _said, notes in sessions]
    facts, observations = sum(map(len, got)), sum(map(len, noted))
    elsewhere = np.concatenate(
        [(got[at] @ noted[(at + shift) % len(sessions)].T).ravel() for at in range(len(sessions)) for shift in (3, 7)]
    )
    rows: list[list[object]] = []
    for least in (float(np.quantile(elsewhere, 1 - UNRELATED)), *THRESHOLDS):
        found = sum(_pairs(one @ two.T, least) for one, two in zip(got, noted, strict=True))
        near = sum(int(((one @ two.T).max(axis=1) >= least).sum()) for one, two in zip(got, noted, strict=True))
        rows.append(
            [
                label,
                f"{least:.3f}",
                facts,
                f"{found / facts:.3f}",
                f"{found / observations:.3f}",
                f"{near / facts:.3f}",
                f"{float((elsewhere >= least).mean()):.4f}",
            ]
        )
    return rows


@pytest.mark.bench
@pytest.mark.meaning
@pytest.mark.parametrize("seen", [True, False], ids=["seen while the rules were made", "not seen"])
def test_facts_of_conversations(seen: bool) -> None:
    files = [file for file in sorted(Path(FOLDER).glob("*.json")) if (file.stem in SEEN) == seen] if FOLDER else []
    if not files:
        pytest.skip("The LoCoMo conversations are not here: set MEMSTATE_LOCOMO to the folder that holds them.")
    sessions = [session for file in files for session in _sessions(file)]
    rows: list[list[object]] = []
    for label, read in (
        ("extraction without a model", _facts),
        ("sentences", _sentences),
        ("sentences with who said them", _sentences_by),
    ):
        rows += _measured(label, read, sessions)
    observations = sum(len(noted) for _said, noted in sessions)
    table(
        f"{observations} observations of {len(sessions)} sessions, {'' if seen else 'not '}seen while rules were made",
        ["read by", "threshold", "facts", "precision", "recall", "facts near any", "unrelated pairs as near"],
        rows,
    )
    # At the same rate of mistaken pairs, what is reported is more often something to remember.
    each = 1 + len(THRESHOLDS)
    assert float(str(rows[0][3])) > max(float(str(rows[each][3])), float(str(rows[2 * each][3])))
