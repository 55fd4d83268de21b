"""The ids of the topics of a study, and counts of its progress, calculated from the record of its steps.

The id of a topic is derived from the id of the study, the part and a number. So a step that is repeated after a crash
creates the same topics, and no query is needed to list the topics.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from memory.models import StudyJob

Phase = StudyJob.Phase

# How a step may end: with the last answer of the model, at a limit, or with a problem of the model.
Ended = Literal[
    "done", "nothing", "rounds", "time", "limited", "unavailable", "rejected", "refused", "unusable", "empty"
]


def topic_id_of(job_id: uuid.UUID, part: int, number: int) -> uuid.UUID:
    """Return the id of the ``number``-th topic created by part ``part`` of a study."""
    return uuid.uuid5(job_id, f"{part}:{number}")


def entries_of(job: StudyJob, phase: str, at: int | None = None) -> list[Mapping[str, Any]]:
    """Return the entries of a phase, or of one step of the phase. A step that was interrupted has several entries."""
    return [each for each in job.steps if each["phase"] == phase and (at is None or each["at"] == at)]


def topics_made(job: StudyJob, part: int) -> int:
    """Return how many topics a part has created so far."""
    return sum(int(each["made"]) for each in entries_of(job, Phase.BUILDING, part))


def rounds_in(job: StudyJob, phase: str, at: int) -> int:
    """Return how many rounds of tool calls a step has made so far."""
    return sum(int(each["rounds"]) for each in entries_of(job, phase, at))


def session_ids(job: StudyJob) -> list[uuid.UUID]:
    """Return the ids of all topics that a study has created, in order, including topics that were merged or erased."""
    made: dict[int, int] = {}
    for each in entries_of(job, Phase.BUILDING):
        made[each["at"]] = made.get(each["at"], 0) + each["made"]
    return [topic_id_of(job.id, part, number) for part in sorted(made) for number in range(made[part])]


def total(entries: Sequence[Mapping[str, Any]], name: str) -> int:
    """Return the sum of the counts ``name`` of these entries."""
    return sum(int(each.get(name, 0)) for each in entries)
