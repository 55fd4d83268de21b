"""Computes the ids of a study's topics, and counts of its progress, from the recorded steps of the study.

The id of a topic is derived from the id of the study, the number of the part and the number of the topic. So a repeated
step creates topics with the same ids, and no query is needed to list them.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from memory.models import StudyJob

Phase = StudyJob.Phase

# How a step may end: because the model has finished, because of a limit, or because of a problem with the model.
Ended = Literal[
    "done", "nothing", "rounds", "time", "limited", "unavailable", "rejected", "refused", "unusable", "empty"
]


def topic_id_of(job_id: uuid.UUID, part: int, number: int) -> uuid.UUID:
    """Return the id of the ``number``-th topic created by part ``part`` of a study."""
    return uuid.uuid5(job_id, f"{part}:{number}")


def entries_of(job: StudyJob, phase: str, at: int | None = None) -> list[Mapping[str, Any]]:
    """Return the recorded entries of a phase, or only of its step ``at``. An interrupted step has several entries."""
    return [each for each in job.steps if each["phase"] == phase and (at is None or each["at"] == at)]


def topics_made(job: StudyJob, part: int) -> int:
    """Return how many topics a part has created so far."""
    return total(entries_of(job, Phase.BUILDING, part), "made")


def rounds_in(job: StudyJob, phase: str, at: int) -> int:
    """Return how many rounds of tool calls a step has made so far."""
    return total(entries_of(job, phase, at), "rounds")


def session_ids(job: StudyJob) -> list[uuid.UUID]:
    """Return the ids of all topics that a study has created, in order. Merged and erased topics are included."""
    made = Counter[int]()
    for each in entries_of(job, Phase.BUILDING):
        made[each["at"]] += each["made"]
    return [topic_id_of(job.id, part, number) for part in sorted(made) for number in range(made[part])]


def total(entries: Sequence[Mapping[str, Any]], name: str) -> int:
    """Return the sum of the count called ``name`` over all entries. An entry without this count adds 0."""
    return sum(int(each.get(name, 0)) for each in entries)
