"""Writes compacted topics: one for each group of near topics, with a summary, their number, their period and links."""

import dataclasses
import datetime as dt
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from memory.access.principal import SYSTEM
from memory.core.errors import MemoryProblem
from memory.core.summary import DatedValue
from memory.core.text import MAX_CATEGORIES, UNTITLED
from memory.forgetting.compaction import Groups
from memory.forgetting.field_summaries import MODEL_SECONDS, question_seconds
from memory.formulas.ladder import CLIMB_MARGIN
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.load import KnownTopic, known_load
from memory.llm.client import model_configured
from memory.llm.summaries import topics_summarize
from memory.models import ForgetRun, Topic
from memory.models.expressions import salience_now_sql
from memory.models.links import COMPACTED_FROM
from memory.policy.effective import policies_current
from memory.policy.snapshot import Policies

# The fields of a compacted topic: how many topics it was made of, and when the first and the last was created.
COUNT, PERIOD = "compacted_topics", "period"
PROVENANCE = "compaction"

MAX_TITLE = 1000
MAX_SALIENCE = 10.0

# A title that says how many other topics it stands for.
_MORE = re.compile(r" \(and \d+ more\)$")
_END = re.compile(r"[.!?…。！？]$")

_STANDING_SQL = f"""
SELECT v.topic_id, v.kind, {salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id")} FROM memory_vitality v
WHERE v.topic_id = ANY(%(ids)s)
"""


class _Standing(NamedTuple):
    """The kind of a topic and its effective salience."""

    kind: str
    salience: float


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of some groups, and when the topics were created that they, if compacted themselves, stand for."""

    topics: dict[uuid.UUID, KnownTopic]
    standing: dict[uuid.UUID, _Standing]
    created: dict[uuid.UUID, dt.datetime]
    policies: Policies

    def leaves(self, topic: KnownTopic) -> list[dt.datetime]:
        """Return when the topics were created that this one stands for; for most topics that is the topic itself."""
        return [self.created[each] for each in _compacted(topic) if each in self.created] or [topic.created_at]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The item for each group, with its sources."""

    items: dict[int, IngestItem]
    members: dict[int, list[uuid.UUID]]
    sources: _Sources


class TopicCompactor:
    """Writes the topics of a run through the path of ingest, with the actor of the run. The worker embeds them."""

    def prepare(self, groups: Groups, *, run: ForgetRun, until: float | None, now: dt.datetime) -> _Prepared:
        """Read the sources and summarize them. About six queries, for any number of groups."""
        sources = _sources_read([topic_id for members in groups.values() for topic_id in members], now=now)
        until = time.monotonic() + MODEL_SECONDS if until is None else until
        prepared = _Prepared({}, {}, sources)
        for number, wanted in groups.items():
            # One that was purged since is not in the group that is written.
            if members := [topic_id for topic_id in wanted if topic_id in sources.topics]:
                left = until - time.monotonic()
                # The first group is always summarized by the model, as the first fold is.
                asks = model_configured() and (left > 0 or not prepared.items)
                within = question_seconds(left) if asks else None
                prepared.items[number] = _item(members, sources, within=within, run=run, now=now)
                prepared.members[number] = members
        return prepared

    def write(self, groups: Groups, prepared: _Prepared, *, run: ForgetRun, now: dt.datetime) -> dict[int, uuid.UUID]:
        """Write the topics. About thirty statements. A group that lost members is summarized without the model."""
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
        cursor.execute(_STANDING_SQL, {"ids": list(topics), "now": now})
        standing = {topic_id: _Standing(*row) for topic_id, *row in cursor.fetchall()}
    inner = {each for topic in topics.values() for each in _compacted(topic)}
    created = dict(Topic.objects.filter(pk__in=inner).values_list("id", "created_at")) if inner else {}
    return _Sources(topics, standing, created, policies_current())


def _compacted(topic: KnownTopic) -> list[uuid.UUID]:
    return [target for target, kind in topic.links if kind == COMPACTED_FROM]


def _item(
    members: Sequence[uuid.UUID], sources: _Sources, *, within: float | None, run: ForgetRun, now: dt.datetime
) -> IngestItem:
    """Return the topic for a group, whose first member is the most central one."""
    topics = [sources.topics[topic_id] for topic_id in members]
    scope = topics[0].scope
    knobs = sources.policies.knobs(scope)
    leaves = sorted(at for topic in topics for at in sources.leaves(topic))
    title, summary = topics_text(topics, leaves=len(leaves), within=within)
    # It must not fall in the next run: at least as much as a new topic has, and enough for the first rung.
    highest = max(sources.standing[topic_id].salience for topic_id in members)
    needed = CLIMB_MARGIN * max(knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold)
    period = " to ".join(dict.fromkeys(f"{at.astimezone(dt.UTC):%Y-%m-%d}" for at in (leaves[0], leaves[-1])))
    reason = f"Compacted from {len(topics)} topics by run {run.pk}."
    return IngestItem(
        placement="new_topic",
        scope=scope,
        topic_kind=sources.standing[members[0]].kind,
        title=title,
        summary=summary,
        salience=min(MAX_SALIENCE, max(1.0, highest, needed)),
        categories=sorted({category for topic in topics for category in topic.categories})[:MAX_CATEGORIES],
        fields=[
            IngestField(name=COUNT, value=len(leaves), field_type="int", why_changed=reason, provenance=PROVENANCE),
            IngestField(name=PERIOD, value=period, provenance=PROVENANCE),
        ],
        edges=[IngestEdge(to_topic_id=topic_id, kind=COMPACTED_FROM) for topic_id in members],
        # With a time, the item raises no event: a run must not start another one.
        created_at=now,
    )


def topics_text(topics: Iterable[KnownTopic], *, leaves: int, within: float | None) -> tuple[str, str]:
    """Return title and summary for these topics, which stand for ``leaves`` topics; the first one is the most central.

    A model is asked for at most ``within`` seconds, and not at all if that is None."""
    ordered = list(topics)
    title = next((topic.title for topic in ordered if topic.title != UNTITLED), UNTITLED)
    more = f" (and {leaves - 1} more)" if leaves > 1 else ""
    texts = [
        DatedValue(_text(topic), topic.created_at)
        for topic in sorted(ordered, key=lambda topic: (topic.created_at, topic.id))
    ]
    summary = topics_summarize(texts, ask_model=within is not None, within=within)
    return f"{_MORE.sub('', title)[: MAX_TITLE - len(more)]}{more}", summary.text


def _text(topic: KnownTopic) -> str:
    """Return what a topic says as sentences. Of a compacted topic, the summary alone."""
    if _compacted(topic):
        return topic.summary
    parts = [topic.title if topic.title != UNTITLED else "", topic.summary]
    parts += [field.value for field in topic.fields.values()]
    said = dict.fromkeys(" ".join(part.split()) for part in parts)
    return " ".join(part if _END.search(part) else f"{part}." for part in said if part)
