"""Writes a story to the store like any other memory, with every event at its own time."""

import datetime as dt
import hashlib
import itertools
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone

from memory.access.principal import Principal
from memory.core.errors import Conflict, MemoryProblem
from memory.core.policy_values import Knobs
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.demo.conversations import conversation_load
from memory.demo.forgetting import forgetting_load
from memory.demo.records import Story, StoryChange, StoryRetrieval, StoryRevision, StoryTopic, topic_id
from memory.demo.study import study_load
from memory.duplicates.detect import duplicates_find
from memory.forgetting.manual_actions import topics_archive, topics_pin, topics_restore
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.embed_pending import vectors_fill
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.models import AccessLog, Field, Topic
from memory.policy.effective import knobs_effective
from memory.recall.access_fold import accesses_fold, fold_wait
from memory.recall.corpus import documents_count
from memory.stores.pending import work_pending

DEMO = Principal(identity="demo", actor="demo", role="operator")
# Seconds for the search for duplicates; more than the largest story needs.
LOOK_SECONDS = 120.0
Progress = Callable[[int], object]


def story_load(story: Story, *, now: dt.datetime, progress: Progress) -> None:
    """Write ``story`` to the store. ``progress`` is called with the number of events of each step.

    Each day is one batch of ingest, so that the journal has the times of the story. Each topic is embedded once, at the
    end. Before each change by an operator, all earlier retrievals are applied to the salience, so that the salience is
    correct. Raises ``Conflict`` if the store already has one of the first topics of the story.
    """
    if Topic.objects.filter(pk__in=[topic_id(topic.key) for topic in story.topics[:50]]).exists():
        raise Conflict("The demo is in this store already.", code=ProblemCode.ALREADY_EXISTS)
    # One transaction, because a part of a demo would look like a store in use.
    with transaction.atomic():
        # The lock keeps the worker from applying retrievals to the salience. Otherwise, the worker could apply a late
        # retrieval after a change.
        fold_wait()
        _events_load(story, now, progress)
        forgetting_load(topics=len(story.topics), now=now)
        conversation_load([topic_id(topic.key) for topic in story.topics])
    for given in vectors_fill():
        progress(given)
    # The study comes after the embedding, because it links and merges topics by vectors.
    study_load(now=now)
    while documents_count():
        pass
    # Finds the duplicates of the story, so that they wait for a decision.
    duplicates_find(ROOT, now=now, limit=len(story.topics), seconds=LOOK_SECONDS)
    # In a store other than main, upkeep creates the schedules.
    work_pending()


def _events_load(story: Story, now: dt.datetime, progress: Progress) -> None:
    written: list[StoryTopic | StoryRevision] = sorted([*story.topics, *story.revisions], key=lambda event: event.at)
    for day, events in itertools.groupby(written, key=lambda event: event.at.date()):
        batch = list(events)
        _day_ingest(batch, now=min(now, dt.datetime.combine(day, dt.time.max, tzinfo=dt.UTC)))
        progress(len(batch))
    _usage_load(story, progress)


def story_size(story: Story) -> int:
    """Return the number of steps that ``story_load`` reports: one for each event, and one for each topic's vector."""
    return 2 * len(story.topics) + len(story.revisions) + len(story.retrievals) + len(story.changes)


def _day_ingest(events: Iterable[StoryTopic | StoryRevision], *, now: dt.datetime) -> None:
    items = [_topic_item(event) if isinstance(event, StoryTopic) else _revision_item(event) for event in events]
    prepared = ingest_prepare(items, principal=DEMO, now=now, defer=True)
    for outcome in ingest_apply(prepared, principal=DEMO, now=now, defer=True):
        if isinstance(outcome, MemoryProblem):
            raise outcome


def _topic_item(topic: StoryTopic) -> IngestItem:
    return IngestItem(
        placement="new_topic",
        topic_id=str(topic_id(topic.key)),
        title=topic.title,
        summary=topic.summary,
        topic_kind=topic.kind,
        salience=topic.salience,
        scope=topic.scope,
        categories=list(topic.categories),
        pinned=topic.pinned,
        created_at=topic.at,
        last_used_at=topic.at,
        fields=[
            IngestField(
                name=entry.name,
                value=entry.value,
                field_type=entry.field_type,
                provenance=entry.provenance,
                ref_topic_id=topic_id(entry.ref_key) if entry.ref_key else None,
            )
            for entry in topic.fields
        ],
        edges=[IngestEdge(to_topic_id=topic_id(link.to_key), kind=link.kind) for link in topic.links],
    )


def _revision_item(revision: StoryRevision) -> IngestItem:
    return IngestItem(
        placement="version_field",
        topic_id=str(topic_id(revision.key)),
        created_at=revision.at,
        last_used_at=revision.at,
        fields=[
            IngestField(
                name=revision.name,
                value=revision.value,
                field_type=revision.field_type,
                provenance=revision.provenance,
                why_changed=revision.why_changed or None,
                impact_expected=revision.impact_expected or None,
            )
        ],
    )


def _usage_load(story: Story, progress: Progress) -> None:
    fields: dict[uuid.UUID, list[tuple[dt.datetime, uuid.UUID]]] = {}
    own = [topic_id(topic.key) for topic in story.topics]
    for field_id, of_topic, created_at in Field.objects.filter(topic__in=own).values_list(
        "id", "topic_id", "created_at"
    ):
        fields.setdefault(of_topic, []).append((created_at, field_id))
    knobs = knobs_effective("/")
    retrievals = iter(story.retrievals)
    waiting = next(retrievals, None)
    for change in [*story.changes, None]:
        rows = []
        while waiting is not None and (change is None or waiting.at <= change.at):
            rows.append(_access(waiting, fields, knobs))
            waiting = next(retrievals, None)
        AccessLog.objects.bulk_create(rows, batch_size=500)
        while accesses_fold(now=rows[-1].at if rows else timezone.now()):
            pass
        progress(len(rows))
        if change is not None:
            _change_apply(change)
            progress(1)


def _access(
    retrieval: StoryRetrieval, fields: dict[uuid.UUID, list[tuple[dt.datetime, uuid.UUID]]], knobs: Knobs
) -> AccessLog:
    ids = [topic_id(key) for key in retrieval.keys]
    return AccessLog(
        at=retrieval.at,
        actor=retrieval.actor,
        scope="/",
        query=retrieval.query,
        query_hash=hashlib.sha256(retrieval.query.encode()).hexdigest(),
        topic_ids=ids,
        field_ids=[
            field_id
            for of_topic in ids
            for created_at, field_id in fields.get(of_topic, ())
            if created_at <= retrieval.at
        ],
        relevances=[max(0.4, 0.7 - 0.05 * place) for place in range(len(ids))],
        bump=knobs.query_salience_bump,
        field_bump=knobs.query_field_salience_bump,
        min_relevance=knobs.reinforce_min_relevance,
    )


def _change_apply(change: StoryChange) -> None:
    arguments: dict[str, Any] = {"principal": DEMO, "reason": change.reason, "now": change.at}
    ids = [topic_id(change.key)]
    match change.action:
        case "archive":
            topics_archive(ids, **arguments)
        case "restore":
            topics_restore(ids, **arguments)
        case "pin":
            topics_pin(ids, pinned=True, **arguments)
        case "unpin":
            topics_pin(ids, pinned=False, **arguments)
