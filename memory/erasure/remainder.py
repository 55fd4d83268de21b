"""Computes and stores remainders. A remainder is the part of a topic that is kept if facts are forgotten."""

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
    TopicContent,
    facts_removed,
    is_label,
    text_key,
    title_repeats,
    topic_contents,
)
from memory.forgetting.made_topics import Made, made_write
from memory.forgetting.topic_state import KEPT_PART
from memory.ingest.apply import PreparedItems, ingest_apply
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.models import ForgetRun
from memory.text.folding import fold

# The kind of the link from a remainder to its original topic.
REST_OF = "rest_of"

_AGES_SQL = """
SELECT t.id, t.created_at, v.salience FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""
_LINKS_COPY_SQL = """
WITH links (source_id, target_id, kind, created_at, actor) AS MATERIALIZED (
    SELECT l.source_id, d.kept, l.kind, l.created_at, l.actor
    FROM unnest(%s::uuid[], %s::uuid[]) AS d (whole, kept) JOIN memory_link l ON l.target_id = d.whole
    WHERE l.source_id <> ALL(%s::uuid[]) AND l.source_id <> d.kept
)
INSERT INTO memory_link (source_id, target_id, kind, created_at, actor)
SELECT * FROM links
ON CONFLICT DO NOTHING
"""
_LINKS_SQL = "SELECT source_id, target_id, kind FROM memory_link WHERE source_id = ANY(%s) ORDER BY id"


def remainder_of(topic: TopicContent, facts: Sequence[Fact]) -> dict[str, Any] | None:
    """Return the title, summary and fields of ``topic`` without ``facts``; None if nothing or only a label is left. A
    fact that is in both the title and a field is removed from both."""
    removed = {text_key(fact.text) for fact in facts}
    title, summary = topic.title, topic.summary
    fields: dict[str, str] = {}
    for element in topic.elements():
        of_element = [fact for fact in facts if fact.element == element]
        text = facts_removed(element.text, of_element) if of_element else element.text
        if not of_element and text_key(text) in removed:
            text = ""
        if element.where == TITLE:
            title = text
        elif element.where == SUMMARY:
            summary = text
        elif text.strip():
            fields[element.name] = text
    has_content = bool(summary.strip() or fields) or (bool(title and topic.title) and not is_label(title))
    if not has_content:
        return None
    if title_repeats(topic.title, [fact.element.text for fact in facts if fact.element.where == FIELD]):
        # The title was the beginning of a text that has changed.
        title = ""
    return {"title": title, "summary": summary, "fields": fields}


def remainder_if_forgotten(topic: TopicContent, facts: Sequence[Fact]) -> dict[str, Any] | None:
    """Return the result of ``remainder_of`` if it may be stored when ``facts`` are forgotten, else None.

    Queries would return a stored remainder. Therefore, nothing may be stored if the topic is inactive, if a fact is in
    the history, or if the remainder repeats a forgotten fact.
    """
    if not topic.live or any(fact.element.where == HISTORY for fact in facts):
        return None
    remainder = remainder_of(topic, facts)
    if remainder is None:
        return None
    forgotten = {key for fact in facts if _is_distinctive(key := text_key(fact.text))}
    texts = [*remainder["fields"].values(), remainder["summary"]]
    if any(_within(fact, text) for fact in forgotten for text in texts):
        return None
    if any(_within(fact, remainder["title"]) for fact in forgotten):
        return remainder | {"title": ""}
    return remainder


def _is_distinctive(text: str) -> bool:
    """Return whether a text is long enough to mean the same wherever it occurs. "2" and "ok" are not."""
    return len(text) > (3 if text.isdigit() else 2)


def _within(part: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", fold(text)) is not None


def remainder_items(remainders: Mapping[uuid.UUID, dict[str, Any]], *, reason: str, verb: str) -> list[IngestItem]:
    """Return the items of ingest that store ``remainders``, which maps ids of original topics to remainders.

    Each new topic has the scope, kind, categories, age, salience and links of its original. For a release, it also has
    a link to the original. Four queries, or none if there are no remainders.
    """
    if not remainders:
        return []
    linked: dict[uuid.UUID, list[IngestEdge]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_LINKS_SQL, [list(remainders)])
        for source, target, kind in cursor.fetchall():
            linked.setdefault(source, []).append(IngestEdge(to_topic_id=target, kind=kind))
        cursor.execute(_AGES_SQL, [list(remainders)])
        ages = {topic_id: (created_at, salience) for topic_id, created_at, salience in cursor.fetchall()}
    items = []
    for topic_id, topic in topic_contents(list(remainders)).items():
        remainder = remainders[topic_id]
        edges = linked.get(topic_id, []) + (
            [IngestEdge(to_topic_id=topic_id, kind=REST_OF)] if verb == "release" else []
        )
        fields = [
            IngestField(name=name, value=value, why_changed=reason or None, provenance="forget")
            for name, value in remainder["fields"].items()
        ]
        created_at, salience = ages[topic_id]
        items.append(
            IngestItem(
                created_at=created_at,
                salience=min(10.0, salience),
                placement="new_topic",
                title=remainder["title"][:1000],
                summary=remainder["summary"] or None,
                topic_kind=topic.kind or None,
                scope=topic.scope,
                categories=topic.categories,
                pinned=topic.pinned,
                edges=[edge for edge in edges if edge.to_topic_id not in remainders or verb == "release"],
                fields=fields,
            )
        )
    return items


def remainders_store(
    prepared: PreparedItems, origins: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime
) -> list[uuid.UUID]:
    """Store the remainders of the topics ``origins`` in the transaction of the caller, and copy the links that lead to
    the original topics. Return the ids of the new topics. Costs an ingest and one more statement."""
    kept = []
    for outcome in ingest_apply(prepared, principal=principal, now=now):
        if isinstance(outcome, MemoryProblem):
            raise outcome
        kept.append(outcome.topic_id)
    with connection.cursor() as cursor:
        cursor.execute(_LINKS_COPY_SQL, [list(origins), kept, list(origins)])
    return kept


def remainders_journal(run: ForgetRun, kept: Sequence[uuid.UUID], *, reason: str, now: dt.datetime) -> None:
    """Add the remainders ``kept`` to the run of a release, so that its undo releases them. Two SQL statements, or none
    if there are no remainders."""
    if not kept:
        return
    why = {"by": "hand", "reason": reason}
    made = [Made(topic_id, place, {}, why) for place, topic_id in enumerate(kept, start=run.planned + 1)]
    with connection.cursor() as cursor:
        made_write(cursor, KEPT_PART, made, run=run.pk, now=now)
    run.counts[KEPT_PART] = len(kept)
    run.save(update_fields=["counts"])


def remainder_summary(remainder: dict[str, Any]) -> str:
    """Return a remainder in one line."""
    return " · ".join(
        dict.fromkeys(
            part for part in (remainder["title"], remainder["summary"], *remainder["fields"].values()) if part
        )
    )
