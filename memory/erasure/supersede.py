"""Supersede: a fact is replaced by what is true now. The old value stays in history and is not returned by default.

Of a sentence that holds two facts, only the one that is meant goes. Where facts about different subjects are equally
near, nothing is done, and the refusal has a token for each.
"""

import datetime as dt
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.core import signing
from django.db import transaction

from memory.access.principal import Principal
from memory.core.errors import Conflict, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.text import UNTITLED, TopicText
from memory.embedding import embedder_get, text_hash
from memory.embedding.base import Vectors
from memory.erasure.field_values import value_given
from memory.erasure.remainder import remainder_of
from memory.finding.choose import Choice
from memory.finding.facts import (
    FIELD,
    SUMMARY,
    TITLE,
    Element,
    Fact,
    TopicContent,
    facts_of,
    facts_repeated,
    ids_read,
    text_key,
    title_cut,
    topic_contents,
    without,
)
from memory.finding.find import facts_replaced
from memory.finding.weigh import Candidate
from memory.forgetting.manual_actions import topics_release
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.edit import TopicChange, topic_edit
from memory.ingest.items import FieldType, IngestEdge, IngestField, IngestItem
from memory.ingest.plan import Reply
from memory.models import AuditEvent, Link
from memory.models.links import SUPERSEDES
from memory.predicates.binding import Bound, scope_sql
from memory.text.stems import same_text

MAX_TEXT = 20_000
# So long the token of a candidate can be sent.
TOKEN_SECONDS = 3_600
_SALT = "memory.supersede.candidate"

# A live topic that says the new text already, as its title or as the whole of a field.
_STORED = """
SELECT t.id FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id AND v.live
WHERE t.released_at IS NULL AND t.merged_into_id IS NULL AND {within}
  AND (md5(lower(t.title)) = ANY({digests}::text[]) OR t.id = ANY({ids}))
ORDER BY t.created_at, t.id LIMIT 20
"""


@dataclass(frozen=True, slots=True)
class Superseded:
    """What became of one topic: ``mode`` is ``whole`` or ``part``; ``before`` is the element that held the fact, and
    ``after`` what that element says now. ``confidence`` and ``by`` tell how surely and by what it was found."""

    topic_id: uuid.UUID
    mode: str
    before: str
    after: str
    confidence: float = 1.0
    by: str = "meaning"


@dataclass(frozen=True, slots=True)
class Supersession:
    """Where the new text stands, and what it replaced: nothing, if nothing said the old."""

    topic_id: uuid.UUID
    superseded: list[Superseded] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact that may be meant, and the token that says it is."""

    topic_id: uuid.UUID
    text: str
    confidence: float
    by: str
    token: str


class Ambiguous(Conflict):
    """Facts about different subjects are equally near (409)."""

    code = ProblemCode.AMBIGUOUS_REQUEST

    def __init__(self, sentence: str, candidates: Sequence[FactCandidate]) -> None:
        super().__init__(sentence)
        self.candidates = list(candidates)


def supersede(
    old_query: str,
    new_text: str,
    *,
    scope: str | None = None,
    reason: str = "",
    token: str | None = None,
    principal: Principal,
    now: dt.datetime,
) -> Supersession:
    """Replace the fact that ``old_query`` means by ``new_text``, in one transaction.

    A topic that says nothing else keeps its id, and the field that held the fact gets a new revision; of one that says
    more, only the fact goes, and the new text becomes a topic that links to it. A new text that is stored already is
    not stored again: then what said the old alone is released. Where nothing matches, the new text is remembered all
    the same. ``token``, from an ``Ambiguous`` refusal, says which fact is meant. About fifty statements, however many
    topics there are. Raises ``Ambiguous``, ``ValueRefused`` for an empty or too long text or a bad token,
    ``NotAllowed``, ``NotVisible`` and ``EmbeddingFailed``.
    """
    principal.require("agent")
    old_query, new_text = old_query.strip(), new_text.strip()
    for name, text in (("old_query", old_query), ("new_text", new_text)):
        if not text:
            raise ValueRefused(f"{name} is empty.", code=ProblemCode.EMPTY_TEXT)
        if len(text) > MAX_TEXT:
            raise ValueRefused(
                f"{name} has {len(text):,} characters; at most {MAX_TEXT:,} are possible.",
                code=ProblemCode.TEXT_TOO_LONG,
            )
    place = principal.scope_chosen(scope)
    # As a topic of its own says it: where that is written in the end, it is not embedded again.
    said = TopicText(new_text[:200], "", [new_text]).embedded()
    vector = embedder_get().embed_passages([said])[0]
    choice = _of_token(token, place) if token else facts_replaced(old_query, new_text, new_vector=vector, scope=place)
    if choice.ambiguous:
        raise _asked_back(choice)
    with transaction.atomic():
        topics = list(dict.fromkeys(one.fact.topic.id for one in choice.candidates))
        # Locked and read again: what somebody changed in between is not overwritten.
        locked = topic_contents(topics, lock=True)
        if any(_state(locked.get(one.fact.topic.id)) != _state(one.fact.topic) for one in choice.candidates):
            raise Conflict(
                "What was to be superseded changed a moment ago. Nothing was done; send the request again.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
        writer = _Writer(new_text, place, reason, principal, now, {text_hash(said): vector})
        return writer.replace(choice.candidates)


def _asked_back(choice: Choice) -> Ambiguous:
    asked = [
        FactCandidate(
            one.fact.topic.id,
            one.fact.text,
            round(one.confidence, 3),
            one.by,
            signing.dumps([str(one.fact.topic.id), _digest(one.fact)], salt=_SALT),
        )
        for one in choice.candidates
    ]
    named = "; ".join(repr(one.text[:200]) for one in asked)
    return Ambiguous(f"{len(asked)} facts are equally near: {named}. Send the token of the one that is meant.", asked)


def _of_token(token: str, scope: str) -> Choice:
    try:
        topic_id, digest = signing.loads(token, salt=_SALT, max_age=TOKEN_SECONDS)
    except signing.SignatureExpired:
        raise ValueRefused(
            "This token has expired. Send the request again without it.", code=ProblemCode.TOKEN_EXPIRED
        ) from None
    except signing.BadSignature:
        raise ValueRefused("This is no token of a candidate.", code=ProblemCode.UNKNOWN_TOKEN) from None
    bound = Bound()
    within = scope_sql("t.scope_id", scope, bound.bind)
    there = f"t.id = {bound.bind(uuid.UUID(topic_id))} AND t.released_at IS NULL AND t.merged_into_id IS NULL"
    sql = f"SELECT t.id FROM memory_topic t WHERE {there} AND {within}"
    facts = [
        fact
        for topic in topic_contents(ids_read(sql, bound)).values()
        for fact in facts_of(topic)
        if topic.live and _digest(fact) == digest
    ]
    if not facts:
        raise Conflict(
            "The fact that this token names is not there any more. Send the request again without it.",
            code=ProblemCode.CHANGED_MEANWHILE,
        )
    return Choice([Candidate(facts[0], facts[0].with_context(), frozenset(), {"exact": 1.0}, 1.0)])


def _digest(fact: Fact) -> str:
    return hashlib.sha256(fact.with_context().encode()).hexdigest()[:32]


def _state(topic: TopicContent | None) -> tuple[bool, list[str]]:
    return (False, []) if topic is None else (topic.live, topic.texts())


@dataclass(slots=True)
class _Writer:
    """Writes one supersession, in the transaction of the caller, who holds the topics."""

    new_text: str
    scope: str
    reason: str
    principal: Principal
    now: dt.datetime
    # What is embedded already, by the hash of the text.
    vectors: dict[str, Vectors]

    def replace(self, chosen: Sequence[Candidate]) -> Supersession:
        by_topic: dict[uuid.UUID, list[Candidate]] = {}
        for one in chosen:
            by_topic.setdefault(one.fact.topic.id, []).append(one)
        stands = self._stored(set(by_topic))
        done: list[Superseded] = []
        released: list[uuid.UUID] = []
        for topic_id, group in by_topic.items():
            facts = [fact for one in group for fact in facts_repeated(one.fact)]
            topic, element = facts[0].topic, facts[0].element
            sure = (round(group[0].confidence, 3), group[0].by)
            whole = remainder_of(topic, facts) is None
            value = _field_value(topic, facts, self.new_text)
            # A field of a type cannot hold a sentence: it is emptied, and the sentence becomes a topic.
            fits = value is not None or element.kind == "string"
            if stands is None and fits and (whole or value is not None):
                self._rewrite(topic, facts, value if value is not None else self.new_text)
                stands = topic_id
                done.append(Superseded(topic_id, "whole", element.text, value or self.new_text, *sure))
            elif whole and fits:
                # The new text stands elsewhere, and a topic is not left to say the same once more.
                released.append(topic_id)
                done.append(Superseded(topic_id, "whole", element.text, self.new_text, *sure))
            else:
                self._rewrite(topic, facts, None)
                after = without(element.text, [fact for fact in facts if fact.element == element])
                done.append(Superseded(topic_id, "part", element.text, after, *sure))
        if stands is None:
            source = chosen[0].fact.topic if chosen else None
            stands = self._remember(source, list(by_topic))
        else:
            self._link(stands, [topic_id for topic_id in by_topic if topic_id != stands])
        if released:
            topics_release(released, principal=self.principal, reason=self.reason or "superseded", now=self.now)
        AuditEvent.objects.bulk_create(
            AuditEvent(
                at=self.now,
                actor=self.principal.actor,
                action="superseded",
                topic_id=entry.topic_id,
                scope=self.scope,
                reason=self.reason,
                before={"text": entry.before, "mode": entry.mode},
                after={"text": entry.after, "by": str(stands)},
            )
            for entry in done
        )
        return Supersession(stands, done)

    def _stored(self, replaced: set[uuid.UUID]) -> uuid.UUID | None:
        """Return a topic that says the new text already. Three queries at most."""
        plain = self.new_text.rstrip(".!? ")
        digests = [
            hashlib.md5(text.lower().encode(), usedforsecurity=False).hexdigest()
            for text in {self.new_text[:200], plain[:200], f"{plain}."[:200], self.new_text[:1000]}
        ]
        bound = Bound()
        within = scope_sql("t.scope_id", self.scope, bound.bind)
        sql = _STORED.format(within=within, digests=bound.bind(digests), ids=bound.bind(list(replaced)))
        for topic in topic_contents(ids_read(sql, bound)).values():
            if any(same_text(fact.text, self.new_text) for fact in facts_of(topic, divide=len(self.new_text) < 500)):
                return topic.id
        return None

    def _rewrite(self, topic: TopicContent, facts: Sequence[Fact], new: str | None) -> None:
        """Take ``facts`` out of the elements of ``topic`` that say them, and put ``new`` in their place."""
        gone = {text_key(fact.text) for fact in facts}
        title = summary = None
        fields: dict[str, str] = {}
        kinds: dict[str, FieldType] = {}
        placed = False
        for element in sorted(topic.elements(), key=lambda element: element.where != FIELD):
            mine = [fact for fact in facts if fact.element == element]
            if not mine and text_key(element.text) not in gone:
                continue
            left = without(element.text, mine) if mine else ""
            if not left.strip() and new is not None:
                # The title repeats what the field says; a summary does not have to.
                left, placed = (new if not placed or element.where == TITLE else ""), True
            if element.where == TITLE:
                title = left[:1000] or _first_of(fields, topic)
            elif element.where == SUMMARY:
                summary = left
            else:
                fields[element.name], kinds[element.name] = left, element.kind
        changed = " ".join(fields.values()) or (summary or "")
        texts = [fact.element.text for fact in facts if fact.element.where != TITLE]
        if title is None and changed and title_cut(topic.title, texts):
            title = changed[:200]
        edited = title is not None or summary is not None
        if fields:
            item = IngestItem(
                placement="extend_topic",
                topic_id=str(topic.id),
                fields=[
                    IngestField(
                        name=name,
                        value=value,
                        why_changed=self.reason or "superseded",
                        provenance="supersede",
                        field_type=kinds[name] if value == new else "string",
                    )
                    for name, value in fields.items()
                ],
            )
            self._ingest(item, edited=edited)
        if edited:
            change = TopicChange(title=title, summary=summary)
            reason = self.reason or "superseded"
            topic_edit(topic.id, change, principal=self.principal, reason=reason, now=self.now, vectors=self.vectors)

    def _remember(self, source: TopicContent | None, replaced: Sequence[uuid.UUID]) -> uuid.UUID:
        item = IngestItem(
            placement="new_topic",
            title=self.new_text[:200],
            scope=source.scope if source else self.scope,
            topic_kind=source.kind or None if source else None,
            categories=source.categories if source else [],
            fields=[
                IngestField(name="fact", value=self.new_text, why_changed=self.reason or None, provenance="supersede")
            ],
            edges=[IngestEdge(to_topic_id=topic_id, kind=SUPERSEDES) for topic_id in replaced],
        )
        return self._ingest(item).topic_id

    def _link(self, stands: uuid.UUID, replaced: Sequence[uuid.UUID]) -> None:
        Link.objects.bulk_create(
            (
                Link(
                    source_id=stands,
                    target_id=topic_id,
                    kind=SUPERSEDES,
                    created_at=self.now,
                    actor=self.principal.actor,
                )
                for topic_id in replaced
            ),
            ignore_conflicts=True,
        )

    def _ingest(self, item: IngestItem, *, edited: bool = False) -> Reply:
        """Write one item. One that is ``edited`` right afterwards gets its vector then."""
        prepared = ingest_prepare([item], principal=self.principal, now=self.now, defer=edited, vectors=self.vectors)
        (outcome,) = ingest_apply(prepared, principal=self.principal, now=self.now, defer=edited)
        if not isinstance(outcome, Reply):
            raise outcome
        return outcome


def _field_value(topic: TopicContent, facts: Sequence[Fact], new_text: str) -> str | None:
    """Return what a named or typed field of a topic is to hold instead of the fact that is all it holds; None if the
    fact is no whole field, or the new text gives no value that the field can hold."""
    element: Element = facts[0].element
    if element.where != FIELD or without(element.text, [f for f in facts if f.element == element]).strip():
        return None
    named = bool(facts[0].context) or element.kind != "string"
    if not named:
        return new_text
    value = value_given(new_text, title=topic.title, name=element.name, old=element.text, field_type=element.kind)
    if value is None and element.kind == "string":
        return new_text
    return value


def _first_of(fields: Mapping[str, str], topic: TopicContent) -> str:
    return next((value for value in fields.values() if value), topic.summary)[:200] or UNTITLED
