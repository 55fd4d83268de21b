"""Replaces a fact by a new text. The old value stays in the history. In a sentence with two facts, only the requested
fact is replaced."""

import datetime as dt
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.core import signing
from django.db import transaction

from memory.access.principal import Principal
from memory.core.errors import Conflict, ValueRefused
from memory.core.field_values import FIELD_TYPES
from memory.core.problem_codes import ProblemCode
from memory.core.text import TopicText
from memory.embedding import embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.erasure.field_values import value_given
from memory.erasure.remainder import remainder_of
from memory.erasure.replies import CandidateOut, SupersededOut, SupersedeReply
from memory.finding.facts import (
    FIELD,
    SUMMARY,
    TITLE,
    Element,
    Fact,
    TopicContent,
    facts_of,
    facts_removed,
    facts_repeated,
    ids_read,
    text_key,
    title_repeats,
    topic_contents,
)
from memory.finding.find import facts_replaced
from memory.finding.finder import Candidate, Choice
from memory.forgetting.manual_actions import topics_release
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.edit import TopicChange, topic_edit
from memory.ingest.items import EmptyField, FieldType, IngestEdge, IngestField, IngestItem
from memory.ingest.plan import ItemReply
from memory.models import AuditEvent, Link
from memory.models.links import SUPERSEDES
from memory.predicates.binding import Bound, scope_sql
from memory.text.stems import same_text

MAX_TEXT = 20_000
# How long the token of a candidate is valid, in seconds.
TOKEN_SECONDS = 3_600
_SALT = "memory.supersede.candidate"

# Live topics whose title or whole text may be the new text, and live topics whose facts are replaced.
_STORED_SQL = """
SELECT t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id AND v.live
WHERE t.released_at IS NULL AND t.merged_into_id IS NULL AND {within}
  AND (md5(lower(t.title)) = ANY({digests}::text[]) OR t.id = ANY({ids})
       OR t.id IN (SELECT topic_id FROM memory_topicvector WHERE live AND text_hash = ANY({hashes}::text[])))
ORDER BY t.created_at, t.id LIMIT 20
"""


class Ambiguous(Conflict):
    """Facts about different subjects match equally well (409)."""

    code = ProblemCode.AMBIGUOUS_REQUEST

    def __init__(self, sentence: str, candidates: list[CandidateOut]) -> None:
        super().__init__(sentence)
        self.candidates = candidates


def supersede(
    old_query: str,
    new_text: str,
    *,
    scope: str | None = None,
    reason: str = "",
    token: str | None = None,
    principal: Principal,
    now: dt.datetime,
) -> SupersedeReply:
    """Replace the fact to which ``old_query`` refers by ``new_text``, in one transaction. A topic that states only this
    fact keeps its id. If the topic states more, the new text becomes a new topic with a link to the old one. If nothing
    matches, the new text is stored as a new topic. ``token`` (see ``Ambiguous``) chooses the fact. About fifty
    statements.

    Raises ``Ambiguous``, ``ValueRefused``, ``NotAllowed``, ``NotVisible`` and ``EmbeddingFailed``.
    """
    principal.require("agent")
    old_query, new_text = old_query.strip(), new_text.strip()
    for name, text in (("old_query", old_query), ("new_text", new_text)):
        if not text:
            raise ValueRefused(f"`{name}` is empty.", code=ProblemCode.MISSING_MEMBER, member=name)
        if len(text) > MAX_TEXT:
            raise ValueRefused(
                f"`{name}` has {len(text):,} characters; the limit is {MAX_TEXT:,}.",
                code=ProblemCode.TOO_LARGE,
                member=name,
            )
    place = principal.scope_chosen(scope)
    # The new text is embedded in the form of a new topic. If it becomes a topic, it is not embedded again.
    embedded_text = TopicText("", "", [new_text]).embedded()
    vector = embedder_get().embed_passages([embedded_text])[0]
    choice = _of_token(token, place) if token else facts_replaced(old_query, new_text, new_vector=vector, scope=place)
    if choice.ambiguous:
        raise _ambiguous(choice)
    with transaction.atomic():
        topics = list(dict.fromkeys(one.fact.topic.id for one in choice.candidates))
        # The topics are locked and read again, so that a change made meanwhile is not overwritten.
        locked = topic_contents(topics, lock=True)
        if any(_state(locked.get(one.fact.topic.id)) != _state(one.fact.topic) for one in choice.candidates):
            raise Conflict(
                "The fact to supersede has just changed. Nothing was done; send the request again.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
        writer = _Writer(new_text, place, reason, principal, now, {text_hash(embedded_text): vector})
        return writer.replace(choice.candidates)


def _ambiguous(choice: Choice) -> Ambiguous:
    candidates: list[CandidateOut] = [
        {
            "topic_id": str(one.fact.topic.id),
            "text": one.fact.text,
            "confidence": round(one.confidence, 3),
            "by": one.by,
            "token": signing.dumps([str(one.fact.topic.id), _digest(one.fact)], salt=_SALT),
        }
        for one in choice.candidates
    ]
    named = "; ".join(repr(one["text"][:200]) for one in candidates)
    return Ambiguous(
        f"{len(candidates)} facts match equally well: {named}. Send the token of the one you mean.", candidates
    )


def _of_token(token: str, scope: str) -> Choice:
    try:
        topic_id, digest = signing.loads(token, salt=_SALT, max_age=TOKEN_SECONDS)
    except signing.SignatureExpired:
        raise ValueRefused(
            "This token has expired. Send the request again without it.", code=ProblemCode.EXPIRED, member="token"
        ) from None
    except signing.BadSignature:
        raise ValueRefused("This is not a token of a candidate.", code=ProblemCode.NOT_FOUND, member="token") from None
    bound = Bound()
    within = scope_sql("t.scope_id", scope, bound.bind)
    is_active = f"t.id = {bound.bind(uuid.UUID(topic_id))} AND t.released_at IS NULL AND t.merged_into_id IS NULL"
    sql = f"SELECT t.id FROM memory_topic t WHERE {is_active} AND {within}"
    facts = [
        fact
        for topic in topic_contents(ids_read(sql, bound)).values()
        for fact in facts_of(topic)
        if topic.live and _digest(fact) == digest
    ]
    if not facts:
        raise Conflict(
            "The fact of this token no longer exists. Send the request again without the token.",
            code=ProblemCode.CHANGED_MEANWHILE,
        )
    return Choice([Candidate(facts[0], exact=True)])


def _digest(fact: Fact) -> str:
    return hashlib.sha256(fact.with_context().encode()).hexdigest()[:32]


def _state(topic: TopicContent | None) -> tuple[bool, list[str]]:
    return (False, []) if topic is None else (topic.live, topic.texts())


@dataclass(slots=True)
class _Writer:
    """Writes one supersession. The caller must have locked the topics in its transaction."""

    new_text: str
    scope: str
    reason: str
    principal: Principal
    now: dt.datetime
    # Maps the hash of an embedded text to its vector.
    vectors: dict[str, Vectors]

    def replace(self, chosen: Sequence[Candidate]) -> SupersedeReply:
        by_topic: dict[uuid.UUID, list[Candidate]] = {}
        for one in chosen:
            by_topic.setdefault(one.fact.topic.id, []).append(one)
        stated_by = self._stored(set(by_topic))
        done: list[SupersededOut] = []
        released: list[uuid.UUID] = []
        for topic_id, group in by_topic.items():
            facts = [fact for one in group for fact in facts_repeated(one.fact)]
            topic, element = facts[0].topic, facts[0].element
            whole = remainder_of(topic, facts) is None
            value = _field_value(topic, facts, self.new_text)
            mode, after = "whole", self.new_text
            # A typed field cannot contain a sentence. So the field is emptied, and the sentence becomes a topic.
            fits = value is not None or element.kind == "string"
            if stated_by is None and fits and (whole or value is not None):
                after = value or self.new_text
                self._rewrite(topic, facts, value if value is not None else self.new_text)
                stated_by = topic_id
            elif whole and fits:
                # Another topic already states the new text, so this topic is released instead of repeating it.
                released.append(topic_id)
            else:
                self._rewrite(topic, facts, None)
                mode = "part"
                after = facts_removed(element.text, [fact for fact in facts if fact.element == element])
            done.append(
                {
                    "topic_id": str(topic_id),
                    "mode": mode,
                    "before": element.text,
                    "after": after,
                    "confidence": round(group[0].confidence, 3),
                    "by": group[0].by,
                }
            )
        if stated_by is None:
            source = chosen[0].fact.topic if chosen else None
            stated_by = self._store(source, list(by_topic))
        else:
            Link.objects.bulk_create(
                (
                    Link(
                        source_id=stated_by,
                        target_id=topic_id,
                        kind=SUPERSEDES,
                        created_at=self.now,
                        actor=self.principal.actor,
                    )
                    for topic_id in by_topic
                    if topic_id != stated_by
                ),
                ignore_conflicts=True,
            )
        if released:
            topics_release(released, principal=self.principal, reason=self.reason or "superseded", now=self.now)
        AuditEvent.objects.bulk_create(
            AuditEvent(
                at=self.now,
                actor=self.principal.actor,
                action="superseded",
                topic_id=entry["topic_id"],
                scope=self.scope,
                reason=self.reason,
                before={"text": entry["before"], "mode": entry["mode"]},
                after={"text": entry["after"], "by": str(stated_by)},
            )
            for entry in done
        )
        return {"topic_id": str(stated_by), "superseded": done}

    def _stored(self, replaced: set[uuid.UUID]) -> uuid.UUID | None:
        """Return the id of a topic that already states the new text; None if there is none. At most three queries."""
        plain = self.new_text.rstrip(".!? ")
        texts = {self.new_text, plain, f"{plain}."}
        bound = Bound()
        sql = _STORED_SQL.format(
            within=scope_sql("t.scope_id", self.scope, bound.bind),
            digests=bound.bind([_md5(text.lower()) for text in texts]),
            hashes=bound.bind([text_hash(TopicText("", "", [text]).embedded()) for text in texts]),
            ids=bound.bind(list(replaced)),
        )
        for topic in topic_contents(ids_read(sql, bound)).values():
            if any(same_text(fact.text, self.new_text) for fact in facts_of(topic, divide=len(self.new_text) < 500)):
                return topic.id
        return None

    def _rewrite(self, topic: TopicContent, facts: Sequence[Fact], new: str | None) -> None:
        """Replace ``facts`` by ``new`` in the elements of ``topic`` that state them."""
        replaced = {text_key(fact.text) for fact in facts}
        title = summary = None
        fields: dict[str, str] = {}
        kinds: dict[str, FieldType] = {}
        placed = False
        for element in sorted(topic.elements(), key=lambda element: element.where != FIELD):
            of_element = [fact for fact in facts if fact.element == element]
            if not of_element and text_key(element.text) not in replaced:
                continue
            rest = facts_removed(element.text, of_element) if of_element else ""
            fits = FIELD_TYPES[element.kind][0]
            if not rest.strip() and new is not None and fits(new):
                # The new text is stored once.
                rest, placed = ("" if placed else new), True
            if element.where == TITLE:
                title = rest[:1000]
            elif element.where == SUMMARY:
                summary = rest
            else:
                # What remains of a list is stored as text if it is not a valid list.
                fields[element.name] = rest
                kinds[element.name] = element.kind if not rest or fits(rest) else "string"
        changed = " ".join(fields.values()) or (summary or "")
        texts = [fact.element.text for fact in facts if fact.element.where != TITLE]
        if title is None and changed and title_repeats(topic.title, texts):
            title = ""
        edited = title is not None or summary is not None
        if fields:
            item = IngestItem(
                placement="extend_topic",
                topic_id=str(topic.id),
                fields=[
                    (IngestField if value else EmptyField)(
                        name=name,
                        value=value,
                        why_changed=self.reason or "superseded",
                        provenance="supersede",
                        field_type=kinds[name],
                    )
                    for name, value in fields.items()
                ],
            )
            self._ingest(item, edited=edited)
        if edited:
            change = TopicChange(title=title, summary=summary)
            reason = self.reason or "superseded"
            topic_edit(topic.id, change, principal=self.principal, reason=reason, now=self.now, vectors=self.vectors)

    def _store(self, source: TopicContent | None, replaced: Sequence[uuid.UUID]) -> uuid.UUID:
        item = IngestItem(
            placement="new_topic",
            scope=source.scope if source else self.scope,
            topic_kind=source.kind or None if source else None,
            categories=source.categories if source else [],
            fields=[
                IngestField(name="fact", value=self.new_text, why_changed=self.reason or None, provenance="supersede")
            ],
            edges=[IngestEdge(to_topic_id=topic_id, kind=SUPERSEDES) for topic_id in replaced],
        )
        return self._ingest(item).topic_id

    def _ingest(self, item: IngestItem, *, edited: bool = False) -> ItemReply:
        """Write one item. With ``edited``, no vector is computed, because an edit with the final text follows."""
        prepared = ingest_prepare([item], principal=self.principal, now=self.now, defer=edited, vectors=self.vectors)
        (outcome,) = ingest_apply(prepared, principal=self.principal, now=self.now, defer=edited)
        if not isinstance(outcome, ItemReply):
            raise outcome
        return outcome


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _field_value(topic: TopicContent, facts: Sequence[Fact], new_text: str) -> str | None:
    """Return the new value of a field that states only the fact. Return None if the field states more, or if the field
    has a type and the new text gives no value of this type."""
    element: Element = facts[0].element
    if element.where != FIELD or facts_removed(element.text, [f for f in facts if f.element == element]).strip():
        return None
    if not facts[0].context and element.kind == "string":
        return new_text
    value = value_given(new_text, title=topic.title, name=element.name, old=element.text, field_type=element.kind)
    return new_text if value is None and element.kind == "string" else value
