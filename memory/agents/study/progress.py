"""How far a study has come, in numbers for programs and in sentences for people."""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from memory.access.principal import Principal
from memory.agents.study.control import studies_visible
from memory.agents.study.ids import Phase, entries_of, total
from memory.core.replies import TypedDict, one_of
from memory.models import StudyJob
from memory.models.newest_first import newest_page

# Of the whole, so much is phase A; its steps are longer, and there are more of them.
BUILDING_SHARE = 0.75

# How a step ended, if not as it should, as a sentence about one and about several.
_ENDED = {
    "nothing": ("Part {which} has brought no topic.", "{count} parts have brought no topic."),
    "rounds": (
        "Part {which} was ended after {rounds} rounds of tools; what was noted until then is kept.",
        "{count} parts were ended after {rounds} rounds of tools; what was noted until then is kept.",
    ),
    "refused": ("The language model refused part {which}.", "The language model refused {count} parts."),
    "rejected": (
        "The endpoint of the language model did not take part {which}.",
        "The endpoint of the language model did not take {count} parts.",
    ),
    "unusable": (
        "An answer about part {which} could not be used, so that it ended early.",
        "Answers about {count} parts could not be used, so that they ended early.",
    ),
}


class StudyOut(TypedDict):
    """How far the study of a long message has come. No word of the message is in it."""

    study_id: str
    conversation_id: str
    status: Annotated[str, one_of(StudyJob.Status.values)]
    phase: Annotated[
        str,
        one_of(StudyJob.Phase.values),
        Field(
            description="building makes topics of the text by themselves, linking puts them in their place among "
            "the rest."
        ),
    ]
    scope: str
    kind: Annotated[str, Field(description="The kind of its topics, by which they are listed.")]
    model: Annotated[str, Field(description="The model that was asked for; empty for the usual one.")]
    actor: str
    segments: Annotated[int, Field(description="Parts that the text is cut into.")]
    done: Annotated[int, Field(description="Parts whose topics are stored.")]
    to_link: Annotated[int, Field(description="Topics to link; 0 until linking starts.")]
    linked: int
    progress: Annotated[float, Field(description="0 to 1, over both phases.")]
    topics: Annotated[int, Field(description="Topics made so far.")]
    links: Annotated[int, Field(description="Links that linking has made.")]
    merged: Annotated[int, Field(description="Of the topics, those that were merged into topics known before.")]
    source_topic_id: Annotated[str | None, Field(description="The topic that holds the text, outside every query.")]
    warning: Annotated[str | None, Field(description="What went otherwise than it should, in sentences.")]
    failure: Annotated[str | None, Field(description="Why it has failed, or why it waits.")]
    waits_until: Annotated[dt.datetime | None, Field(description="When it goes on, if it waits.")]
    created_at: dt.datetime
    moved_at: dt.datetime
    finished_at: dt.datetime | None


class StudyPage(TypedDict):
    """Studies, newest first, and the cursor of the next page."""

    items: list[StudyOut]
    next: str | None


def study_as_json(job: StudyJob) -> StudyOut:
    """Return how far a study has come. No query, without the record of its steps, and no word of the text.

    ``topics`` counts what phase A has made, ``merged`` those of them that phase B has merged into others; all are of
    the kind ``kind``. ``waits_until`` is when it goes on, if it waits for phase B or for the model.
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


def studies_list(
    *, principal: Principal, cursor: str | None, limit: int, conversation_id: uuid.UUID | None = None
) -> tuple[Sequence[StudyJob], str | None]:
    """Return a page of the studies that the caller began, or oversees, newest first, and the cursor of the next.

    One query, without the records of their steps. Raises ``ValueRefused``.
    """
    rows = studies_visible(principal)
    if conversation_id is not None:
        rows = rows.filter(conversation_id=conversation_id)
    return newest_page(rows, cursor=cursor, limit=limit)


def warning_of(job: StudyJob) -> str:
    """Return in sentences what went otherwise than it should; empty if nothing did."""
    said = []
    parts: dict[str, list[int]] = {}
    for each in entries_of(job, Phase.BUILDING):
        parts.setdefault(each["ended"], []).append(each["at"] + 1)
    rounds = {each["at"] + 1: 0 for each in job.told}
    for each in entries_of(job, Phase.BUILDING):
        rounds[each["at"] + 1] += each["rounds"]
    for ended, (one, several) in _ENDED.items():
        if which := parts.get(ended):
            words = one if len(which) == 1 else several
            said.append(words.format(which=which[0], count=len(which), rounds=max(rounds[each] for each in which)))
    placed = entries_of(job, Phase.LINKING)
    early = Counter(each["ended"] for each in placed)
    if count := sum(early[each] for each in _ENDED if each != "nothing"):
        said.append(f"{count} of the steps that link topics ended early.")
    if skipped := total(placed, "skipped"):
        said.append(f"{_topics(skipped)} gone before anything was linked to {'it' if skipped == 1 else 'them'}.")
    if refused := total(job.told, "refused"):
        said.append(f"{refused} {'change was' if refused == 1 else 'changes were'} no longer possible in the end.")
    return " ".join(said)


def _topics(count: int) -> str:
    return "1 topic had" if count == 1 else f"{count:,} topics had"


def _progress(job: StudyJob) -> float:
    if job.status == StudyJob.Status.DONE:
        return 1.0
    built = job.done / job.segments if job.segments else 1.0
    placed = job.linked / job.to_link if job.to_link else 0.0
    return round(BUILDING_SHARE * built + (1 - BUILDING_SHARE) * placed, 4)
