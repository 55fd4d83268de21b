"""Writes one compacted topic for each group of similar topics: summary, number of sources, period, and links."""

import dataclasses
import datetime as dt
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from memory.access.principal import SYSTEM
from memory.core.errors import MemoryProblem
from memory.core.summary import DatedValue
from memory.core.text import MAX_CATEGORIES
from memory.forgetting.compaction import Groups
from memory.forgetting.field_summaries import MODEL_SECONDS, question_seconds
from memory.formulas.ladder import CLIMB_MARGIN
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.load import KnownTopic, known_load
from memory.llm.chat_request import model_configured
from memory.llm.summaries import topics_summarize
from memory.models import ForgetRun, Topic
from memory.models.formulas_sql import salience_now_sql
from memory.models.links import COMPACTED_FROM
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

# The fields of a compacted topic: the number of its sources, and the days on which the first and last were created.
COUNT, PERIOD = "compacted_topics", "period"
PROVENANCE = "compaction"

MAX_TITLE = 1000
MAX_SALIENCE = 10.0

# The end of the title of a compacted topic, with the number of its other sources.
_MORE = re.compile(r" \(and \d+ more\)$")
_END = re.compile(r"[.!?…。！？]$")

_SALIENCES_SQL = f"""
SELECT v.topic_id, v.kind, {salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id")} FROM memory_vitality v
WHERE v.topic_id = ANY(%(ids)s)
"""


@dataclass(frozen=True, slots=True)
class _Sources:
    """The topics of all groups. Some of these topics are themselves compacted. ``created`` has the creation times of
    the sources of compacted topics."""

    topics: dict[uuid.UUID, KnownTopic]
    kinds: dict[uuid.UUID, str]
    saliences: dict[uuid.UUID, float]
    created: dict[uuid.UUID, dt.datetime]
    policies: Policies

    def created_times(self, topic: KnownTopic) -> list[dt.datetime]:
        """Return when the sources of a compacted topic were created; for any other topic, when it was created."""
        return [self.created[each] for each in _compacted(topic) if each in self.created] or [topic.created_at]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The item of each group, and the ids of the topics from which the item was made. The keys are the numbers of the
    groups."""

    items: dict[int, IngestItem]
    members: dict[int, list[uuid.UUID]]
    sources: _Sources


class TopicCompactor:
    """Writes the compacted topics of a run through ingest, with the actor of the run. The worker embeds them."""

    def prepare(self, groups: Groups, *, run: ForgetRun, until: float | None, now: dt.datetime) -> _Prepared:
        """Read the sources and summarize them. About six queries, for any number of groups."""
        sources = _sources_read([topic_id for members in groups.values() for topic_id in members], now=now)
        until = time.monotonic() + MODEL_SECONDS if until is None else until
        prepared = _Prepared({}, {}, sources)
        for number, wanted in groups.items():
            # Topics that were purged after they were grouped are left out.
            if members := [topic_id for topic_id in wanted if topic_id in sources.topics]:
                seconds = until - time.monotonic()
                # The model always summarizes the first group, so that every run makes progress.
                asks = model_configured() and (seconds > 0 or not prepared.items)
                within = question_seconds(seconds) if asks else None
                prepared.items[number] = _item(members, sources, within=within, run=run, now=now)
                prepared.members[number] = members
        return prepared

    def write(self, groups: Groups, prepared: _Prepared, *, run: ForgetRun, now: dt.datetime) -> dict[int, uuid.UUID]:
        """Write the topics. About thirty statements. A group that has lost members since ``prepare`` is summarized
        again, without the model."""
        items = [
            prepared.items[number]
            if list(members) == prepared.members[number]
            else _item(members, prepared.sources, within=None, run=run, now=now)
            for number, members in groups.items()
        ]
        principal = dataclasses.replace(SYSTEM, actor=run.actor)
        ready = ingest_prepare(items, principal=principal, now=now, defer=True)
        made = {}
        for number, outcome in zip(groups, ingest_apply(ready, principal=principal, now=now, defer=True), strict=True):
            if isinstance(outcome, MemoryProblem):
                raise outcome
            made[number] = outcome.topic_id
        return made


def _sources_read(ids: Sequence[uuid.UUID], *, now: dt.datetime) -> _Sources:
    topics = known_load(changed=ids, read=[], lock=False).topics
    with connection.cursor() as cursor:
        cursor.execute(_SALIENCES_SQL, {"ids": list(topics), "now": now})
        rows = cursor.fetchall()
    inner = {each for topic in topics.values() for each in _compacted(topic)}
    created = dict(Topic.objects.filter(pk__in=inner).values_list("id", "created_at")) if inner else {}
    kinds = {topic_id: kind for topic_id, kind, _salience in rows}
    saliences = {topic_id: salience for topic_id, _kind, salience in rows}
    return _Sources(topics, kinds, saliences, created, policies_current())


def _compacted(topic: KnownTopic) -> list[uuid.UUID]:
    return [target for target, kind in topic.links if kind == COMPACTED_FROM]


def _item(
    members: Sequence[uuid.UUID], sources: _Sources, *, within: float | None, run: ForgetRun, now: dt.datetime
) -> IngestItem:
    """Return the item that creates the topic of a group. The first member of a group is the most central one."""
    topics = [sources.topics[topic_id] for topic_id in members]
    scope = topics[0].scope
    knobs = sources.policies.knobs(scope)
    created = sorted(at for topic in topics for at in sources.created_times(topic))
    title, summary = topics_text(topics, leaves=len(created), within=within)
    # The next run must not archive the topic. Its salience is therefore at least that of a new topic, and high enough
    # for the first rung.
    highest = max(sources.saliences[topic_id] for topic_id in members)
    needed = CLIMB_MARGIN * max(knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold)
    period = " to ".join(dict.fromkeys(f"{at.astimezone(dt.UTC):%Y-%m-%d}" for at in (created[0], created[-1])))
    reason = f"Compacted from {len(topics)} topics by run {run.pk}."
    return IngestItem(
        placement="new_topic",
        scope=scope,
        topic_kind=sources.kinds[members[0]],
        title=title,
        summary=summary,
        salience=min(MAX_SALIENCE, max(1.0, highest, needed)),
        categories=sorted({category for topic in topics for category in topic.categories})[:MAX_CATEGORIES],
        fields=[
            IngestField(name=COUNT, value=len(created), field_type="int", why_changed=reason, provenance=PROVENANCE),
            IngestField(name=PERIOD, value=period, provenance=PROVENANCE),
        ],
        edges=[IngestEdge(to_topic_id=topic_id, kind=COMPACTED_FROM) for topic_id in members],
        # A run must not start another run, and an item with ``created_at`` raises no event.
        created_at=now,
    )


def topics_text(topics: Iterable[KnownTopic], *, leaves: int, within: float | None) -> tuple[str, str]:
    """Return (title, summary) of a compacted topic. The first of ``topics`` is the most central one; ``leaves`` is the
    number of original topics, including those that earlier runs compacted. ``within`` is the time limit for the model
    in seconds; if it is None, no model is used."""
    ordered = list(topics)
    title = next((topic.title for topic in ordered if topic.title), "")
    more = f" (and {leaves - 1} more)" if title and leaves > 1 else ""
    texts = [
        DatedValue(_text(topic), topic.created_at)
        for topic in sorted(ordered, key=lambda topic: (topic.created_at, topic.id))
    ]
    summary = topics_summarize(texts, ask_model=within is not None, within=within)
    return f"{_MORE.sub('', title)[: MAX_TITLE - len(more)]}{more}", summary.text


def _text(topic: KnownTopic) -> str:
    """Return the text of a topic as sentences; for a compacted topic, only the summary."""
    if _compacted(topic):
        return topic.summary
    parts = [topic.title, topic.summary]
    parts += [field.value for field in topic.fields.values()]
    distinct = dict.fromkeys(" ".join(part.split()) for part in parts)
    return " ".join(part if _END.search(part) else f"{part}." for part in distinct if part)
