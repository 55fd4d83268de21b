"""The progress of a study as JSON, and its warnings as sentences."""

import datetime as dt
from collections import Counter
from typing import Annotated

from memory.agents.study.ids import Phase, entries_of, total
from memory.core.replies import TypedDict, doc, one_of
from memory.models import StudyJob

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
    parts: dict[str, list[int]] = {}
    rounds = Counter[int]()
    for each in entries_of(job, Phase.BUILDING):
        part = each["at"] + 1
        parts.setdefault(each["ended"], []).append(part)
        rounds[part] += each["rounds"]
    for ended, (one, several) in _ENDED.items():
        if which := parts.get(ended):
            sentence = one if len(which) == 1 else several
            most = max(rounds[each] for each in which)
            sentences.append(sentence.format(which=which[0], count=len(which), rounds=most))
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
