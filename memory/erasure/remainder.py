"""What stays of a topic when one of its facts goes: the same topic without that fact."""

import datetime as dt
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from memory.access.principal import Principal
from memory.core.errors import MemoryProblem
from memory.finding.facts import (
    FIELD,
    HISTORY,
    SUMMARY,
    TITLE,
    Fact,
    TopicSaid,
    is_label,
    text_key,
    title_cut,
    topics_said,
    without,
)
from memory.ingest.apply import PreparedItems, ingest_apply
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.text.folding import fold

# The link from what stays to the topic it was part of.
REST_OF = "rest_of"

_AGES = """
SELECT t.id, t.created_at, v.salience FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""
_LED = """
INSERT INTO memory_link (source_id, target_id, kind, created_at, actor)
SELECT l.source_id, d.kept, l.kind, l.created_at, l.actor
FROM unnest(%s::uuid[], %s::uuid[]) AS d (whole, kept) JOIN memory_link l ON l.target_id = d.whole
WHERE l.source_id <> ALL(%s::uuid[]) AND l.source_id <> d.kept
ON CONFLICT DO NOTHING
"""
_LINKS = "SELECT source_id, target_id, kind FROM memory_link WHERE source_id = ANY(%s) ORDER BY id"


def rest_of(topic: TopicSaid, facts: Sequence[Fact]) -> dict[str, Any] | None:
    """Return what ``topic`` says without ``facts``: title, summary and fields; None if nothing is left to say.

    A fact that is said twice, as title and as field, goes from both. A title that only names something is not left by
    itself.
    """
    gone = {text_key(fact.text) for fact in facts}
    title, summary = topic.title, topic.summary
    fields: dict[str, str] = {}
    for element in topic.elements():
        mine = [fact for fact in facts if fact.element == element]
        text = without(element.text, mine) if mine else element.text
        if not mine and text_key(text) in gone:
            text = ""
        if element.where == TITLE:
            title = text
        elif element.where == SUMMARY:
            summary = text
        elif text.strip():
            fields[element.name] = text
    states = bool(summary.strip() or fields) or (bool(title and topic.name) and not is_label(title))
    if not states:
        return None
    if title_cut(topic.title, [fact.element.text for fact in facts if fact.element.where == FIELD]):
        # The title was the beginning of the text that changed.
        title = next(iter(fields.values()), summary)[:200]
    return {"title": title, "summary": summary, "fields": fields}


def rest_left(topic: TopicSaid, facts: Sequence[Fact]) -> dict[str, Any] | None:
    """Return what stays of ``topic`` when ``facts`` are forgotten, as ``rest_of``; None if all of it goes.

    Nothing stays of a topic that no query returns: it would come back with that. Nor of one that says a fact once more
    in other surroundings; and no title keeps the words of one.
    """
    if not topic.live or any(fact.element.where == HISTORY for fact in facts):
        return None
    rest = rest_of(topic, facts)
    if rest is None:
        return None
    gone = {key for fact in facts if _tells(key := text_key(fact.text))}
    left = [*rest["fields"].values(), rest["summary"]]
    if any(_within(fact, text) for fact in gone for text in left):
        return None
    if any(_within(fact, rest["title"]) for fact in gone):
        return rest | {"title": next((text for text in left if text), "")[:200]}
    return rest


def _tells(text: str) -> bool:
    """Tell whether a text, found again elsewhere, says the same there. A short number or word does not: "2", "ok"."""
    return len(text) > (3 if text.isdigit() else 2)


def _within(part: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", fold(text)) is not None


def rest_items(rests: Mapping[uuid.UUID, dict[str, Any]], *, why: str, verb: str) -> list[IngestItem]:
    """Return the topics that keep ``rests``, given by the topic each is part of.

    They have its scope, kind, categories, age, salience and links, and for a release one that leads to it. Four
    queries, none without rests.
    """
    if not rests:
        return []
    linked: dict[uuid.UUID, list[IngestEdge]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_LINKS, [list(rests)])
        for source, target, kind in cursor.fetchall():
            linked.setdefault(source, []).append(IngestEdge(to_topic_id=target, kind=kind))
        cursor.execute(_AGES, [list(rests)])
        ages = {topic_id: (created_at, salience) for topic_id, created_at, salience in cursor.fetchall()}
    items = []
    for topic_id, topic in topics_said(list(rests)).items():
        rest = rests[topic_id]
        edges = linked.get(topic_id, []) + (
            [IngestEdge(to_topic_id=topic_id, kind=REST_OF)] if verb == "release" else []
        )
        fields = [
            IngestField(name=name, value=value, why_changed=why or None, provenance="forget")
            for name, value in rest["fields"].items()
        ]
        created_at, salience = ages[topic_id]
        items.append(
            IngestItem(
                created_at=created_at,
                salience=min(10.0, salience),
                placement="new_topic",
                title=rest["title"][:1000],
                summary=rest["summary"] or None,
                topic_kind=topic.kind or None,
                scope=topic.scope,
                categories=topic.categories,
                pinned=topic.pinned,
                edges=[edge for edge in edges if edge.to_topic_id not in rests or verb == "release"],
                fields=fields,
            )
        )
    return items


def rests_keep(
    prepared: PreparedItems, parts_of: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime
) -> None:
    """Remember what stays of the topics ``parts_of``, in the caller's transaction, and let what led to these lead there
    too. As many statements as an ingest, and one."""
    kept = []
    for outcome in ingest_apply(prepared, principal=principal, now=now):
        if isinstance(outcome, MemoryProblem):
            raise outcome
        kept.append(outcome.topic_id)
    with connection.cursor() as cursor:
        cursor.execute(_LED, [list(parts_of), kept, list(parts_of)])


def rest_words(rest: dict[str, Any]) -> str:
    """Return what stays in one line."""
    return " · ".join(
        dict.fromkeys(part for part in (rest["title"], rest["summary"], *rest["fields"].values()) if part)
    )
