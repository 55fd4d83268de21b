"""The progress of a study as JSON, and its warnings as sentences."""

import datetime as dt
from collections import Counter
from typing import Annotated

from memory.agents.study.ids import Phase, entries_of, total
from memory.core.replies import TypedDict, doc, one_of
from memory.models import StudyJob

# The share of phase A in the progress. Its steps are longer and more numerous than those of phase B.
BUILDING_SHARE = 0.75

# The sentences about unusual ends of steps: for one part, and for several parts.
_ENDED = {
    "nothing": ("Part {which} has produced no topic.", "{count} parts have produced no topics."),
    "rounds": (
        "Part {which} was stopped after {rounds} rounds of tool calls. Its topics so far are kept.",
        "{count} parts were stopped after {rounds} rounds of tool calls. Their topics so far are kept.",
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
        doc("building creates topics from the text, linking connects or merges them with existing topics."),
    ]
    scope: str
    kind: Annotated[str, doc("The kind of its topics.")]
    model: Annotated[str, doc("The requested model; empty for the default.")]
    actor: str
    segments: Annotated[int, doc("Number of parts of the text.")]
    done: Annotated[int, doc("Parts whose topics are stored.")]
    to_link: Annotated[int, doc("Topics to link; 0 until linking starts.")]
    linked: int
    progress: Annotated[float, doc("0 to 1, over both phases.")]
    topics: Annotated[int, doc("Topics made so far.")]
    links: Annotated[int, doc("Links made so far.")]
    merged: Annotated[int, doc("Topics that were merged into earlier topics.")]
    source_topic_id: Annotated[str | None, doc("The topic that stores the text; no query returns it.")]
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
    """Return the progress of a study, without the record of its steps and without any of the text. No query.

    ``topics`` counts the topics that phase A has created, ``merged`` the topics that phase B has merged into others.
    ``waits_until`` is when a study continues that waits for phase B or for the model.
    """
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
    """Return sentences about unusual ends of steps; an empty text if there were none."""
    sentences = []
    parts: dict[str, list[int]] = {}
    for each in entries_of(job, Phase.BUILDING):
        parts.setdefault(each["ended"], []).append(each["at"] + 1)
    rounds = {each["at"] + 1: 0 for each in job.steps}
    for each in entries_of(job, Phase.BUILDING):
        rounds[each["at"] + 1] += each["rounds"]
    for ended, (one, several) in _ENDED.items():
        if which := parts.get(ended):
            sentence = one if len(which) == 1 else several
            most = max(rounds[each] for each in which)
            sentences.append(sentence.format(which=which[0], count=len(which), rounds=most))
    linking = entries_of(job, Phase.LINKING)
    early = Counter(each["ended"] for each in linking)
    if count := sum(early[each] for each in _ENDED if each != "nothing"):
        sentences.append(f"{count} of the steps that link topics ended early.")
    if skipped := total(linking, "skipped"):
        topics = "1 topic" if skipped == 1 else f"{skipped:,} topics"
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
