"""Lists of extractions, and the progress and facts of each."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F, Func, IntegerField

from memory.access.principal import Principal
from memory.core.cursors import cursor_as_number
from memory.extraction.known import FACT_FIELD
from memory.extraction.replies import ExtractionOut, KnownFact
from memory.extraction.segments import method_of, note_of
from memory.extraction.store import source_text
from memory.models import ExtractionJob, Revision, Rung, Topic
from memory.models.labels import labels_read
from memory.models.newest_first import newest_page
from memory.resumable import jobs_visible

STORED, KNOWN = "stored", "known"
# The text of a known fact is shown up to this number of characters.
EXCERPT = 300


def extractions_list(
    *, principal: Principal, cursor: str | None, limit: int
) -> tuple[Sequence[ExtractionJob], str | None]:
    """Return a page of jobs, newest first, and the cursor of the next page. One query. Raises ``ValueRefused``.

    Each job has ``stored_count`` and ``known_count`` instead of the lists of facts.
    """
    rows = jobs_visible(ExtractionJob, principal).defer("stored", "skipped", "methods")
    rows = rows.annotate(stored_count=_length("stored"), known_count=_length("skipped"))
    return newest_page(rows, cursor=cursor, limit=limit)


def extraction_facts(
    job: ExtractionJob, which: str, *, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of the facts that a job stored, or of the facts that were known, and the cursor of the next page.

    At most three queries. A topic that was erased since has no title. Raises ``ValueRefused`` for an invalid cursor.
    """
    after = 0 if cursor is None else cursor_as_number(cursor)
    entries = [{"topic_id": topic_id} for topic_id in job.stored] if which == STORED else list(job.skipped)
    shown = entries[after : after + limit]
    ids = [entry["topic_id"] for entry in shown if _has_id(entry)]
    labels = labels_read(uuid.UUID(topic_id) for topic_id in ids)
    topics = {
        str(topic.pk): {
            "title": labels[topic.pk],
            "released": topic.released_at is not None,
            "archived": topic.rung == Rung.ARCHIVED,
        }
        for topic in Topic.objects.filter(pk__in=ids).only("released_at", "rung")
    }
    content = (source_text(job.source_id) or "") if which == KNOWN and shown else ""
    facts = []
    for entry in shown:
        said = " ".join(content[entry.get("start", 0) : entry.get("end", 0)].split())[:EXCERPT]
        topic = topics.get(str(entry.get("topic_id")), {"title": "", "released": False, "archived": False})
        facts.append({"topic_id": entry.get("topic_id"), "said": said, **topic})
    return facts, str(after + limit) if after + limit < len(entries) else None


def extraction_as_json(job: ExtractionJob) -> ExtractionOut:
    """Return a job as JSON, with the present texts of its facts. At most two queries."""
    facts = _facts_of([uuid.UUID(topic_id) for topic_id in job.stored])
    content = (source_text(job.source_id) or "") if job.skipped else ""
    skipped: list[KnownFact] = [
        {"text": " ".join(content[each["start"] : each["end"]].split()), "topic_id": each["topic_id"]}
        for each in job.skipped
        if _has_id(each)
    ]
    return {
        "job_id": str(job.id),
        "status": job.status,
        "scope": job.scope,
        "kind": job.kind,
        "segments": job.segments,
        "done": job.done,
        "progress": job.done / job.segments if job.segments else 1.0,
        "actor": job.actor,
        "extracted": [facts[topic_id] for topic_id in job.stored if topic_id in facts],
        "stored": job.stored,
        "skipped_duplicates": skipped,
        "method": method_of(job.methods),
        "methods": job.methods,
        "note": note_of(job.methods),
        "warning": job.warning or None,
        "failure": job.failure or None,
        "dropped": job.dropped,
        "source_topic_id": str(job.source_id) if job.source_id else None,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
    }


def _facts_of(ids: list[uuid.UUID]) -> dict[str, str]:
    newest = (
        Revision.objects.filter(field__topic_id__in=ids, field__name=FACT_FIELD)
        .order_by("field__topic_id", "-seq")
        .distinct("field__topic_id")
    )
    return {str(topic_id): value for topic_id, value in newest.values_list("field__topic_id", "value")}


def _has_id(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry has the id of a topic. A purge masks the ids of erased topics."""
    try:
        uuid.UUID(str(entry.get("topic_id")))
    except ValueError:
        return False
    return True


def _length(name: str) -> Func:
    return Func(F(name), function="jsonb_array_length", output_field=IntegerField())
