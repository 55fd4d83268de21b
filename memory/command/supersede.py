"""Supersede: a fact is replaced by what is true now. The old value stays in history and is not returned by default.

Of a sentence that holds two facts, only the one that is meant goes. Nothing is guessed: two facts that fit equally well
are named in the refusal.
"""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from django.db import transaction

from memory.access.principal import Principal
from memory.command.fit import Asked, Fit, facts_fit, rivals, same_meaning
from memory.command.match import MOST_NAMED, asked_of, facts_meant, known_asked, names_alternatives
from memory.command.refined import fits_refined
from memory.command.rest import rest_of
from memory.command.said import FIELD, SUMMARY, TITLE, Fact, TopicSaid, text_key, title_cut, topics_said, without
from memory.domain.errors import Conflict, ValueRefused
from memory.domain.reading.attributes import attributes_shared
from memory.domain.reading.requests import request_parse
from memory.forgetting.ground import scope_sql
from memory.forgetting.judgement import Bound
from memory.ingest.apply import ingest_apply, ingest_prepare
from memory.ingest.edit import TopicChange, topic_edit
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.mentions import mentions_complete
from memory.ingest.plan import Reply
from memory.llm.refine import supersede_refine
from memory.models import AuditEvent, Rung
from memory.models.links import SUPERSEDES

MAX_TEXT = 20_000
LEAST = 0.3
MARGIN = 0.015
# How much it counts, beside the request, that the new text goes on with an old fact.
CONTINUES = 0.5


@dataclass(frozen=True, slots=True)
class Superseded:
    """What became of one topic: ``mode`` is ``whole`` or ``part``; ``before`` is the element that held the fact, and
    ``after`` what that element says now."""

    topic_id: uuid.UUID
    mode: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Supersession:
    """Where the new text stands, and what it replaced: nothing, if nothing said the old."""

    topic_id: uuid.UUID
    superseded: list[Superseded] = field(default_factory=list)


class Ambiguous(Conflict):
    """Several facts fit equally well (409). ``candidates`` are ``(topic_id, text)``."""

    def __init__(self, sentence: str, candidates: Sequence[tuple[uuid.UUID, str]]) -> None:
        super().__init__(sentence)
        self.candidates = list(candidates)


def supersede(
    old_query: str, new_text: str, *, scope: str | None = None, reason: str = "", principal: Principal, now: dt.datetime
) -> Supersession:  # fmt: skip
    """Replace the fact that ``old_query`` means by ``new_text``, in one transaction.

    A topic that says nothing else keeps its id, and the field that held the fact gets a new revision; of one that says
    more, only the fact goes, and the new text becomes a topic that links to it. Where nothing matches, the new text is
    remembered all the same. About fifty statements, however many topics there are. Raises ``Ambiguous``,
    ``ValueRefused`` for an empty or too long text, ``NotAllowed``, ``NotVisible`` and ``EmbeddingFailed``.
    """
    principal.require("agent")
    old_query, new_text = old_query.strip(), new_text.strip()
    for name, text in (("old_query", old_query), ("new_text", new_text)):
        if not text:
            raise ValueRefused(f"{name} is empty.")
        if len(text) > MAX_TEXT:
            raise ValueRefused(f"{name} has {len(text):,} characters; at most {MAX_TEXT:,} are possible.")
    place = principal.scope_chosen(scope)
    mentions_complete()
    fits = old_facts(old_query, new_text, scope=place)
    with transaction.atomic():
        topics = list(dict.fromkeys(fit.fact.topic.id for fit in fits))
        # Locked and read again: what somebody changed in between is not overwritten.
        locked = topics_said(topics, lock=True)
        if any(_stands(locked.get(fit.fact.topic.id)) != _stands(fit.fact.topic) for fit in fits):
            raise Conflict("What was to be superseded changed a moment ago. Nothing was done; send the request again.")
        return _supersede(fits, new_text, place, reason=reason, principal=principal, now=now)


def old_facts(old_query: str, new_text: str, *, scope: str) -> list[Fit]:
    """Return the facts that ``new_text`` replaces, best first; none if nothing says the old. Raises ``Ambiguous``."""
    request = request_parse(old_query)
    if len(request.names) > MOST_NAMED:
        raise ValueRefused(f"One request names at most {MOST_NAMED} persons or things. Say one fact at a time.")
    bound = Bound()
    within = scope_sql("t.scope_id", scope, bound.bind)
    conditions = f"t.released_at IS NULL AND t.merged_into_id IS NULL AND t.rung < {Rung.ARCHIVED:d} AND {within}"
    names = names_alternatives(request.names, scope)
    whole = replace(asked_of(request, names), also=new_text)
    find = partial(_fitting, new_text=new_text, conditions=conditions, bound=bound)
    fits = known_asked(whole, find, conditions=conditions, bound=bound)
    if not fits and len(names) > 1:
        # "Maria lives in Madrid" where the store says Barcelona: whom it is about stays, what it says of her does not.
        loose = Asked(whole.text, names[:1], whole.negated, False, new_text)
        fits = find(loose, relaxed=True)
    refined = fits_refined(fits, lambda texts: supersede_refine(old_query, new_text, texts))
    if refined is not None:
        meant, unsure = refined
        return _same(_chosen(meant) if unsure and meant else meant)
    return _chosen(fits) if fits else []


def _fitting(asked: Asked, *, new_text: str, conditions: str, bound: Bound, relaxed: bool = False) -> list[Fit]:
    fits = facts_meant(asked, conditions=conditions, bound=bound, live=True, strict=not relaxed)
    return _continuing(fits, new_text, relaxed=relaxed)


def _continuing(fits: Sequence[Fit], new_text: str, *, relaxed: bool) -> list[Fit]:
    """Weigh in how well the new text goes on with a fact, and leave out what is not meant."""
    if not fits:
        return []
    new = Asked(new_text, (), False, False)
    goes_on = {id(fit.fact): fit.score for fit in facts_fit(new, [fit.fact for fit in fits], strict=False)}
    found = []
    for fit in fits:
        agree = attributes_shared(new_text, fit.fact.told())
        score = fit.score + CONTINUES * goes_on[id(fit.fact)]
        if relaxed and agree < 1:
            continue
        if fit.exact or score >= LEAST:
            found.append(Fit(fit.fact, score, fit.exact, fit.words, fit.meaning, fit.attribute))
    return sorted(found, key=lambda fit: -fit.score)


def _chosen(fits: Sequence[Fit]) -> list[Fit]:
    exact = [fit for fit in fits if fit.exact]
    best = (exact or fits)[0]
    others = [
        fit
        for fit in fits
        if rivals(best, fit, margin=MARGIN)
        and not (exact or fit.fact.topic.id == best.fact.topic.id or same_meaning(best.fact, fit.fact))
    ]
    if others:
        meant = list({(fit.fact.topic.id, fit.fact.text): fit for fit in (best, *others)}.values())
        raise Ambiguous(
            f"{len(meant)} facts match equally well: " + "; ".join(repr(fit.fact.text[:200]) for fit in meant)
            + ". Say which is meant.",
            [(fit.fact.topic.id, fit.fact.text) for fit in meant],
        )  # fmt: skip
    # What says the old in other words would go on saying it.
    return _same([fit for fit in fits if fit is best or fit.exact or same_meaning(best.fact, fit.fact)])


def _same(fits: list[Fit]) -> list[Fit]:
    """Leave out the clauses of sentences that go whole."""
    return [fit for fit in fits if not any(_inside(fit.fact, other.fact) for other in fits if other is not fit)]


def _inside(part: Fact, whole: Fact) -> bool:
    same = part.topic.id == whole.topic.id and part.element == whole.element and part.sentence == whole.sentence
    return same and len(part.clauses) > 1 and len(whole.clauses) == 1


def _stands(topic: TopicSaid | None) -> tuple[bool, list[str]]:
    return (False, []) if topic is None else (topic.live, topic.texts())


def _supersede(
    fits: Sequence[Fit], new_text: str, scope: str, *, reason: str, principal: Principal, now: dt.datetime
) -> Supersession:
    by_topic: dict[uuid.UUID, list[Fact]] = {}
    for fit in fits:
        by_topic.setdefault(fit.fact.topic.id, []).append(fit.fact)
    stands: uuid.UUID | None = None
    done: list[Superseded] = []
    for topic_id, facts in by_topic.items():
        topic = facts[0].topic
        if rest_of(topic, facts) is None or (stands is None and _own_field(facts)):
            # A second topic that says no more than the old learns the new too: no agent's word takes a topic away.
            _rewrite(topic, facts, new_text, reason=reason, principal=principal, now=now)
            stands = stands or topic_id
            done.append(Superseded(topic_id, "whole", facts[0].element.text, new_text))
        else:
            _rewrite(topic, facts, None, reason=reason, principal=principal, now=now)
            element = facts[0].element
            after = without(element.text, [fact for fact in facts if fact.element == element])
            done.append(Superseded(topic_id, "part", element.text, after))
    if stands is None:
        source = fits[0].fact.topic if fits else None
        stands = _remember(new_text, source, list(by_topic), scope, reason=reason, principal=principal, now=now)
    if done:
        AuditEvent.objects.bulk_create(
            AuditEvent(
                at=now, actor=principal.actor, action="superseded", topic_id=entry.topic_id, scope=scope, reason=reason,
                before={"text": entry.before, "mode": entry.mode}, after={"text": entry.after, "by": str(stands)},
            )
            for entry in done
        )  # fmt: skip
    return Supersession(stands, done)


def _own_field(facts: Sequence[Fact]) -> bool:
    """Tell whether the fact is the whole value of one field of a topic that says more in others."""
    element = facts[0].element
    return (
        element.where == FIELD
        and all(fact.element == element for fact in facts)
        and not without(element.text, facts).strip()
    )


def _rewrite(
    topic: TopicSaid, facts: Sequence[Fact], new_text: str | None, *, reason: str, principal: Principal,
    now: dt.datetime,
) -> None:  # fmt: skip
    """Take ``facts`` out of the elements of ``topic`` that say them, and put ``new_text`` in their place."""
    gone = {text_key(fact.text) for fact in facts}
    title = summary = None
    fields: dict[str, str] = {}
    placed = False
    for element in sorted(topic.elements(), key=lambda element: element.where != FIELD):
        mine = [fact for fact in facts if fact.element == element]
        if not mine and text_key(element.text) not in gone:
            continue
        left = without(element.text, mine) if mine else ""
        if not left.strip() and new_text is not None:
            # The title repeats what the field says; a summary does not have to.
            left, placed = (new_text if not placed or element.where == TITLE else ""), True
        if element.where == TITLE:
            title = left[:1000] or _first_of(fields, topic)
        elif element.where == SUMMARY:
            summary = left
        else:
            fields[element.name] = left
    changed = " ".join(fields.values()) or (summary or "")
    if (
        title is None
        and changed
        and title_cut(topic.title, [fact.element.text for fact in facts if fact.element.where != TITLE])
    ):
        title = changed[:200]
    if fields:
        item = IngestItem(
            placement="extend_topic", topic_id=str(topic.id),
            fields=[
                IngestField(name=name, value=value, why_changed=reason or "superseded", provenance="supersede")
                for name, value in fields.items()
            ],
        )  # fmt: skip
        _ingest(item, principal=principal, now=now)
    if title is not None or summary is not None:
        change = TopicChange(title=title, summary=summary)
        topic_edit(topic.id, change, principal=principal, reason=reason or "superseded", now=now)


def _first_of(fields: Mapping[str, str], topic: TopicSaid) -> str:
    return next((value for value in fields.values() if value), topic.summary)[:200] or "untitled"


def _remember(
    text: str, source: TopicSaid | None, replaced: Sequence[uuid.UUID], scope: str, *, reason: str,
    principal: Principal, now: dt.datetime,
) -> uuid.UUID:  # fmt: skip
    item = IngestItem(
        placement="new_topic", title=text[:200], scope=source.scope if source else scope,
        topic_kind=source.kind or None if source else None, categories=source.categories if source else [],
        fields=[IngestField(name="fact", value=text, why_changed=reason or None, provenance="supersede")],
        edges=[IngestEdge(to_topic_id=topic_id, kind=SUPERSEDES) for topic_id in replaced],
    )  # fmt: skip
    return _ingest(item, principal=principal, now=now).topic_id


def _ingest(item: IngestItem, *, principal: Principal, now: dt.datetime) -> Reply:
    prepared = ingest_prepare([item], principal=principal, now=now, defer=False)
    (outcome,) = ingest_apply(prepared, principal=principal, now=now)
    if not isinstance(outcome, Reply):
        raise outcome
    return outcome
