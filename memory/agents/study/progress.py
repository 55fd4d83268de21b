"""The record of the steps of a study: the ids of its topics, counts, its progress as JSON, and its warnings.

The id of a topic is derived from the id of the study, the number of the part and the number of the topic. So a repeated
step creates topics with the same ids, and no query is needed to list them.
"""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from memory.core.replies import TypedDict, doc, one_of
from memory.models import StudyJob

Phase = StudyJob.Phase

# How a step may end: because the model has finished, because of a limit, or because of a problem with the model.
Ended = Literal[
    "done", "nothing", "rounds", "time", "limited", "unavailable", "rejected", "refused", "unusable", "empty"
]

# The share of phase A in the progress. It is large because phase A has more and longer steps than phase B.
BUILDING_SHARE = 0.75

# The sentences about parts that ended unusually: the singular and the plural.
_ENDED = {
    "nothing": ("Part {which} has produced no memory.", "{count} parts have produced no memories."),
    "rounds": (
        "Part {which} was stopped after {rounds} rounds of tool calls. Its memories so far are kept.",
        "{count} parts were stopped after {rounds} rounds of tool calls. Their memories so far are kept.",
    ),
    "refused": ("The language model refused part {which}.", "The language model refused {count} parts."),
    "rejected": (
        "The endpoint of the language model rejected part {which}.",
        "The endpoint of the language model rejected {count} parts.",
    ),
    "unusable": (
        "Part {which} ended early, because an answer of the language model was unusable.",
        "{count} parts ended early, because answers of the language model were unusable.",
    ),
}


class StudyOut(TypedDict):
    """The progress of the study of a long message, without the message itself."""

    study_id: str
    conversation_id: str
    status: Annotated[str, one_of(("working", "done", "cancelled", "failed"))]
    phase: Annotated[
        str,
        one_of(StudyJob.Phase.values),
        doc("building creates memories from the text, linking connects or merges them with existing memories."),
    ]
    scope: str
    kind: Annotated[str, doc("The kind of its memories.")]
    model: Annotated[str, doc("The requested model; empty for the default.")]
    actor: str
    segments: Annotated[int, doc("Number of parts of the text.")]
    done: Annotated[int, doc("Parts whose memories are stored.")]
    to_link: Annotated[int, doc("Memories to link; 0 until linking starts.")]
    linked: int
    progress: Annotated[float, doc("0 to 1, over both phases.")]
    topics: Annotated[int, doc("Memories made so far.")]
    links: Annotated[int, doc("Links made so far.")]
    merged: Annotated[int, doc("Memories that were merged into earlier memories.")]
    source_topic_id: Annotated[str | None, doc("The memory that stores the text; no query returns it.")]
    warning: Annotated[str | None, doc("Warnings about the result.")]
    failure: Annotated[str | None, doc("Why the study has failed or is waiting.")]
    waits_until: Annotated[dt.datetime | None, doc("When it continues, if it is waiting.")]
    created_at: dt.datetime
    moved_at: dt.datetime
    finished_at: dt.datetime | None


class StudyPage(TypedDict):
    """Studies, newest first, and the cursor of the next page."""

    items: list[StudyOut]
    next: str | None


def topic_id_of(job_id: uuid.UUID, part: int, number: int) -> uuid.UUID:
    """Return the id of the ``number``-th topic created by part ``part`` of a study."""
    return uuid.uuid5(job_id, f"{part}:{number}")


def entries_of(job: StudyJob, phase: str, at: int | None = None) -> list[Mapping[str, Any]]:
    """Return the recorded entries of a phase, or only of its step ``at``. An interrupted step has several entries."""
    return [each for each in job.steps if each["phase"] == phase and (at is None or each["at"] == at)]


def session_ids(job: StudyJob) -> list[uuid.UUID]:
    """Return the ids of all topics that a study has created, in order. Merged and erased topics are included."""
    made = Counter[int]()
    for each in entries_of(job, Phase.BUILDING):
        made[each["at"]] += each["made"]
    return [topic_id_of(job.id, part, number) for part in sorted(made) for number in range(made[part])]


def total(entries: Sequence[Mapping[str, Any]], name: str) -> int:
    """Return the sum of the count called ``name`` over all entries. An entry without this count adds 0."""
    return sum(int(each.get(name, 0)) for each in entries)


def study_as_json(job: StudyJob) -> StudyOut:
    """Return the progress of a study, without the record of its steps and without its text. No query."""
    return {
        "study_id": str(job.id),
        "conversation_id": str(job.conversation_id),
        "status": job.status,
        "phase": job.phase,
        "scope": job.scope,
        "kind": job.kind,
        "model": job.model,
        "actor": job.actor,
        "segments": job.segments,
        "done": job.done,
        "to_link": job.to_link,
        "linked": job.linked,
        "progress": _progress(job),
        "topics": job.topics,
        "links": job.links,
        "merged": job.merged,
        "source_topic_id": str(job.source_id) if job.source_id else None,
        "warning": job.warning or None,
        "failure": job.failure or None,
        "waits_until": job.not_before if job.status == StudyJob.Status.WORKING else None,
        "created_at": job.created_at,
        "moved_at": job.moved_at,
        "finished_at": job.finished_at,
    }


def warning_of(job: StudyJob) -> str:
    """Return the sentences about steps that ended unusually; empty if there were none."""
    sentences = []
    for ended, (one, several) in _ENDED.items():
        if parts := [each["at"] for each in entries_of(job, Phase.BUILDING) if each["ended"] == ended]:
            rounds = max(total(entries_of(job, Phase.BUILDING, part), "rounds") for part in parts)
            sentence = one if len(parts) == 1 else several
            sentences.append(sentence.format(which=parts[0] + 1, count=len(parts), rounds=rounds))
    linking = entries_of(job, Phase.LINKING)
    if count := sum(each["ended"] in _ENDED and each["ended"] != "nothing" for each in linking):
        sentences.append(f"{count} of the steps that link memories ended early.")
    if skipped := total(linking, "skipped"):
        topics = "1 memory" if skipped == 1 else f"{skipped:,} memories"
        sentences.append(f"{topics} became inactive before linking.")
    if refused := total(job.steps, "refused"):
        sentences.append(f"{refused} {'change was' if refused == 1 else 'changes were'} no longer possible.")
    return " ".join(sentences)


def _progress(job: StudyJob) -> float:
    if job.status == StudyJob.Status.DONE:
        return 1.0
    built = job.done / job.segments if job.segments else 1.0
    linked = job.linked / job.to_link if job.to_link else 0.0
    return round(BUILDING_SHARE * built + (1 - BUILDING_SHARE) * linked, 4)
