"""Compaction combines several similar topics of one scope and kind into one new topic, and archives the old ones.

The topic with the lowest score forms a group with the topics most similar to it. Then the next topic without a group
forms one, and so on. The new topic links to each of its sources.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from django.utils.module_loading import import_string

from memory.core.rules import COMPACT
from memory.forgetting.judge import RulesSql
from memory.models import ForgetRun, Rung
from memory.models.links import COMPACTED_FROM
from memory.policy.snapshot import EffectivePolicy

TOO_FEW = "Too few memories of its group are left to be compacted."

# Pairs of similar topics are left to the search for duplicates, which merges them without losing a word.
LEAST_GROUP = 3
# The summary of more topics than this would leave most of them out.
MAX_GROUP = 20
# One run compares at most this many topics, lowest score first. A vector takes 1.5 KB.
MAX_COMPARED = 10_000

# The number of rows of the similarity matrix that are computed at once.
_BLOCK = 512

_LINKED = f"SELECT 1 FROM memory_link l WHERE l.source_id = topic_id AND l.kind = '{COMPACTED_FROM}'"
# A topic made by compaction may be compacted once more; the result of this second compaction may not.
_LINKED_TWICE = f"""
SELECT 1 FROM memory_link l JOIN memory_link m ON m.source_id = l.target_id AND m.kind = '{COMPACTED_FROM}'
WHERE l.source_id = topic_id AND l.kind = '{COMPACTED_FROM}'
"""

VECTORS_SQL = """
SELECT c.topic_id, v.scope_id, v.kind, x.model, c.least_cosine, vector_send(x.embedding)
FROM (SELECT * FROM ({query}) q ORDER BY score, topic_id LIMIT {most:d}) c
JOIN memory_vitality v ON v.topic_id = c.topic_id
JOIN memory_topicvector x ON x.topic_id = c.topic_id AND x.embedding IS NOT NULL
ORDER BY v.scope_id, v.kind, x.model, c.score, c.topic_id
"""


Groups = Mapping[int, Sequence[uuid.UUID]]


class Compactor(Protocol):
    """Writes the topics that a run makes from groups. It is imported by name, because it belongs to a higher layer."""

    def prepare(self, groups: Groups, *, run: ForgetRun, until: float | None, now: dt.datetime) -> Any:
        """Return the topics to write for the groups. Uses no model after ``until`` (monotonic clock). Takes no
        locks."""

    def write(self, groups: Groups, prepared: Any, *, run: ForgetRun, now: dt.datetime) -> dict[int, uuid.UUID]:
        """Write one topic for each group and return the ids. The caller has locked the sources and skipped those that
        have changed."""


def compactor_get() -> Compactor:
    """Return the object that writes compacted topics."""
    compactor: Compactor = import_string("memory.ingest.compaction.TopicCompactor")()
    return compactor


def compacts_on(policy: EffectivePolicy, event: str) -> bool:
    """Return whether runs for ``event`` compact topics under ``policy``."""
    return policy.knobs.compact or any(rule.action == COMPACT for rule in policy.rules.on(event))


def compacts_sql(policy: EffectivePolicy, rules: RulesSql) -> str:
    """Return the condition that a topic may be compacted with similar topics.

    The topic must be archived by a threshold, archived by a rule that cannot match a new topic, or compacted by a rule.
    Any other rule that archives the topic would match the new topic at once. For the same reason, a rule compacts a
    topic made by compaction only if a threshold archives it.
    """
    ways = []
    low = f"ladder = {Rung.ARCHIVED:d}"
    timed = f"rule IN ({', '.join(map(str, rules.timed))})" if rules.timed else "false"
    if policy.knobs.compact:
        ways.append(f"({low} OR rule_rung = {Rung.ARCHIVED:d})")
    if rules.compact_rule != "0":
        ways.append(f"(compact_rule > 0 AND ({low} OR NOT EXISTS ({_LINKED})))")
    if not ways:
        return "false"
    not_at_once = f"rule_rung < {Rung.ARCHIVED:d} OR (rule_rung = {Rung.ARCHIVED:d} AND {timed})"
    return f"""(NOT protected AND from_rung < {Rung.ARCHIVED:d} AND ({not_at_once})
                AND ({" OR ".join(ways)}) AND NOT EXISTS ({_LINKED_TWICE}))"""


def groups_make(rows: Sequence[tuple[Any, ...]], *, most: int = MAX_GROUP) -> list[list[uuid.UUID]]:
    """Return the groups among the rows of ``VECTORS_SQL``. In each group, the most central topic is first. Topics that
    are similar to too few others are in no group. Deterministic; takes about a second for ``MAX_COMPARED`` topics."""
    found: list[list[uuid.UUID]] = []
    comparable: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        comparable.setdefault(tuple(row[1:5]), []).append(at)
    for (*_alike, least_cosine), members in comparable.items():
        if len(members) >= LEAST_GROUP:
            # The wire format of pgvector: four bytes, then big-endian single floats.
            vectors = np.stack([np.frombuffer(rows[at][5], dtype=">f4", offset=4) for at in members]).astype("f4")
            found += [[rows[members[at]][0] for at in group] for group in _cluster(vectors, least_cosine, most)]
    return found


def _cluster(vectors: npt.NDArray[np.float32], least_cosine: float, most: int) -> list[list[int]]:
    free = np.ones(len(vectors), dtype=np.bool_)
    groups: list[list[int]] = []
    for begin in range(0, len(vectors), _BLOCK):
        block = vectors[begin : begin + _BLOCK] @ vectors.T
        for first, cosines in enumerate(block, start=begin):
            if not free[first]:
                continue
            # The first topic stays in its group even if more than ``most`` others are equal to it.
            cosines[first] = np.inf
            members = np.flatnonzero(free & (cosines >= least_cosine))
            if len(members) >= LEAST_GROUP:
                members = members[np.argsort(-cosines[members], kind="stable")][:most]
                free[members] = False
                central = vectors[members] @ vectors[members].mean(axis=0)
                groups.append([int(member) for member in members[np.argsort(-central, kind="stable")]])
    return groups
