"""From the words of a request to the topics it is about.

An identifier or a name takes every topic that mentions it as a whole; anything else is about one fact, and meaning
decides among the facts that agree with the request in names, numbers and negation. Where two facts fit equally well,
both are the answer, and nobody guesses.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from django.db import connection, transaction

from memory.command.aliases import aliases_follow
from memory.command.answer import Answer, Matched, excerpt, ids_read
from memory.command.fit import Asked, Fit, facts_fit, rivals, same_meaning
from memory.command.identified import codes_find, identified_find
from memory.command.refined import fits_refined
from memory.command.rest import rest_left
from memory.command.said import TopicSaid, facts_of, topics_said
from memory.command.spelled import code_like
from memory.domain.errors import ValueRefused
from memory.domain.reading.attributes import lemmas_of
from memory.domain.reading.folding import fold
from memory.domain.reading.names import Mention, mentions_find, name_key, words_index
from memory.domain.reading.proper import name_meant
from memory.domain.reading.requests import Request, request_parse
from memory.embedding import embedder_get
from memory.forgetting.judgement import Bound
from memory.forgetting.standing import MOST_AT_ONCE
from memory.ingest.bulk import vector_text
from memory.ingest.mentions import mentions_complete
from memory.llm.refine import matches_refine

# Facts of so many topics are compared: the nearest by meaning, and as many by the words they share.
NEAREST = 40
# Below this a fact is about something else; a list of all that match by meaning asks for more.
LEAST, LEAST_OF_MANY = 0.34, 0.5
# Two facts whose scores lie nearer to each other than this fit equally well.
MARGIN = 0.05
# Each name costs statements of its own.
MOST_NAMED = 20


class Hit(NamedTuple):
    """A name in a text of a topic."""

    topic: TopicSaid
    name: str
    text: str
    mention: Mention


_BY_WORDS = """
SELECT m.topic_id FROM memory_topicmention m JOIN memory_topic t ON t.id = m.topic_id
WHERE ({wanted}) AND {conditions} ORDER BY t.created_at, t.id LIMIT {most}
"""
_NEAR = """
WITH possible AS MATERIALIZED (
    SELECT m.topic_id, m.words FROM memory_topicmention m JOIN memory_topic t ON t.id = m.topic_id
    WHERE {wanted} AND {conditions}
), near AS (
    SELECT p.topic_id FROM possible p JOIN memory_topicvector v ON v.topic_id = p.topic_id AND v.model = {model}
    WHERE v.embedding IS NOT NULL ORDER BY v.embedding <#> {vector}::vector LIMIT {most}
), worded AS (
    SELECT p.topic_id FROM possible p WHERE p.words && {words}::text[]
    ORDER BY cardinality(ARRAY(SELECT unnest(p.words) INTERSECT SELECT unnest({words}::text[]))) DESC, p.topic_id
    LIMIT {most}
)
SELECT topic_id FROM near UNION SELECT topic_id FROM worded
"""

_NEAR_LIVE = """
(SELECT v.topic_id FROM memory_topicvector v JOIN memory_topic t ON t.id = v.topic_id
 WHERE v.live AND v.model = {model} AND v.embedding IS NOT NULL AND {conditions}
 ORDER BY v.embedding <#> {vector}::vector LIMIT {most})
UNION
(SELECT m.topic_id FROM memory_topicmention m JOIN memory_topic t ON t.id = m.topic_id
 WHERE m.words && {words}::text[] AND {conditions}
 ORDER BY cardinality(ARRAY(SELECT unnest(m.words) INTERSECT SELECT unnest({words}::text[]))) DESC, m.topic_id
 LIMIT {most})
"""
# In nearly every sentence: nothing is found by them.
COMMON = words_index(
    "the a an is are was were be has have had do does of to in on at for with and or not it its this that"
)


def matches_find(query: str, *, scope: str, conditions: str, bound: Bound, history: bool) -> Answer:
    """Return the topics among those of ``conditions`` (on a row ``t`` of Topic) that ``query`` is about.

    ``history`` also takes topics that no longer say what the request names, but once did. At most eight statements for
    one name, and two or three for each further one, of which there are ``MOST_NAMED`` at most; names and identifiers
    cost the topics that mention them, facts at most twice ``NEAREST`` topics. Raises ``ValueRefused`` for more names.
    """
    mentions_complete()
    request = request_parse(query)
    if len(request.identifiers) > MOST_NAMED or len(request.names) + len(request.things) > MOST_NAMED:
        raise ValueRefused(f"One request names at most {MOST_NAMED} persons or things. Send several, or use a filter.")
    if request.kind == "identifiers":
        return identified_find(request, conditions, bound, history=history)
    if code_like(request.body) and (codes := codes_find(request, conditions, bound, history=history)):
        # "apt 12" is not whatever says 12.
        return Answer(codes)
    if request.kind == "names":
        answer = _named(request, scope, conditions, bound, history=history)
        if answer.matches or _only_name(request):
            return answer
    return _meant(request, scope, conditions, bound)


def names_alternatives(names: Iterable[str], scope: str) -> tuple[tuple[str, ...], ...]:
    """Return for each name all names it goes by in ``scope``, itself first. Two statements a round, three rounds."""
    return tuple(aliases_follow(name, scope=scope) for name in names)


def names_known(names: tuple[tuple[str, ...], ...], *, conditions: str, bound: Bound) -> tuple[tuple[str, ...], ...]:
    """Return those of ``names`` that any topic may mention: a German noun is written as a name is. One query each."""
    known = []
    for either in names:
        sql = _BY_WORDS.format(wanted=_words_sql(either, bound), conditions=conditions, most=1)
        if ids_read(sql, bound):
            known.append(either)
    return tuple(known)


def facts_near(
    text: str, names: Sequence[Sequence[str]], *, conditions: str, bound: Bound, live: bool = False
) -> dict[uuid.UUID, TopicSaid]:
    """Return what the topics say that may state ``text``: those that mention every one of ``names``, the nearest of
    them by meaning and by words. Four statements at most.

    With ``live`` none that left retrieval is asked for, and without names the indexes of recall and of words are
    walked; else every topic of ``conditions`` is looked at.
    """
    if live and not names:
        return topics_said(_ids_walked(text, conditions, bound))
    wanted = " AND ".join(f"({_words_sql(either, bound)})" for either in names) or "true"
    vector = vector_text(embedder_get().embed_query(text))
    sql = _NEAR.format(
        wanted=wanted, conditions=conditions, model=bound.bind(embedder_get().model_name), most=NEAREST,
        vector=bound.bind(vector), words=bound.bind(sorted(words_index(text))),
    )  # fmt: skip
    return topics_said(ids_read(sql, bound))


def facts_meant(
    asked: Asked, *, conditions: str, bound: Bound, live: bool = False, strict: bool = True
) -> list[Fit]:  # fmt: skip
    """Return the facts that ``asked`` may mean, best first: those of ``facts_near``, weighed by ``facts_fit``."""
    topics = facts_near(asked.text, asked.names, conditions=conditions, bound=bound, live=live)
    return facts_fit(asked, [fact for topic in topics.values() for fact in facts_of(topic)], strict=strict)


def known_asked(asked: Asked, find: Callable[[Asked], list[Fit]], *, conditions: str, bound: Bound) -> list[Fit]:
    """Return what ``find`` gives for ``asked``, or else for ``asked`` without the names that nothing mentions."""
    fits = find(asked)
    if fits or not asked.names:
        return fits
    known = names_known(asked.names, conditions=conditions, bound=bound)
    return find(replace(asked, names=known)) if known and known != asked.names else []


def _ids_walked(text: str, conditions: str, bound: Bound) -> list[uuid.UUID]:
    sql = _NEAR_LIVE.format(
        conditions=conditions, model=bound.bind(embedder_get().model_name), most=NEAREST,
        vector=bound.bind(vector_text(embedder_get().embed_query(text))),
        words=bound.bind(sorted(words_index(" ".join(lemmas_of(text))) | words_index(text) - COMMON)),
    )  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        # With further conditions the index alone would give too few (docs/recall.md).
        cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        return ids_read(sql, bound)


# Names


def _named(request: Request, scope: str, conditions: str, bound: Bound, *, history: bool) -> Answer:
    either = [name for names in names_alternatives(request.things, scope) for name in names]
    sql = _BY_WORDS.format(wanted=_words_sql(either, bound), conditions=conditions, most=MOST_AT_ONCE + 1)
    found: list[Hit] = []
    for topic in topics_said(ids_read(sql, bound), ever=history).values():
        hits = [
            Hit(topic, name, text, mention)
            for text in topic.texts()
            for name in either
            for mention in mentions_find(text, name)
        ]
        if hits:
            found.append(max(hits, key=_plainness))
    found = _of_one_kind(found)
    matches = [
        Matched(
            hit.topic.id, _mention_words(hit, request.things), _SURE[hit.mention.how],
            excerpt(hit.text, hit.mention.start),
        )
        for hit in found
    ]  # fmt: skip
    told = " or ".join(request.things)
    return Answer(matches, question="" if matches else f"Nothing here mentions {told}.")


def _plainness(hit: Hit) -> tuple[bool, bool, bool]:
    """Return how plainly a name stands there: what an alias says in whole words is no mere likeness."""
    return hit.mention.how != "tagged", hit.mention.how != "latin", name_meant(hit.text, hit.mention)


def _of_one_kind(found: list[Hit]) -> list[Hit]:
    """Leave out words that merely look like the name where other topics write it as one: "mark the day" beside Mark,
    ``@ann`` beside Ann."""
    if any(hit.mention.how != "tagged" for hit in found):
        found = [hit for hit in found if hit.mention.how != "tagged"]
    if any(hit.mention.how != "latin" for hit in found):
        # Whoever is written in the script of the request is meant; who merely sounds alike is somebody else.
        found = [hit for hit in found if hit.mention.how != "latin"]
    proper = [
        hit for hit in found if not hit.name[:1].isupper() or " " in hit.name or name_meant(hit.text, hit.mention)
    ]
    return proper or found


_FORMS = {"whole": "", "tagged": " as a tag", "inflected": " in another form", "latin": " in another spelling"}
_SURE = {"whole": 1.0, "tagged": 0.9, "inflected": 0.9, "latin": 0.8}


def _mention_words(hit: Hit, asked: Sequence[str]) -> str:
    also = "" if any(fold(hit.name) == fold(thing) for thing in asked) else ", another name for it"
    return f"It mentions {hit.name}{_FORMS[hit.mention.how]}{also}."


def _only_name(request: Request) -> bool:
    return bool(request.names) or len(request.body.split()) > 1


# Facts


def _meant(request: Request, scope: str, conditions: str, bound: Bound) -> Answer:
    asked = asked_of(request, names_alternatives(request.names, scope))
    find = partial(facts_meant, conditions=conditions, bound=bound)
    # Of a statement every name belongs to what is stated.
    fits = find(asked) if request.states else known_asked(asked, find, conditions=conditions, bound=bound)
    nothing = Answer(question=f"Nothing here says {request.body!r}.")
    refined = fits_refined(fits, lambda texts: matches_refine(request.text, texts))
    if refined is not None:
        chosen, unsure = refined
        if not chosen:
            return nothing
        matches, several = _by_topic(chosen), not _one_meaning(chosen)
        question = f"{len(matches)} topics may be meant. Which?" if several or unsure else ""
        # Of several the model may be sure; whoever asked says so too before they go.
        return Answer(matches, ambiguous=several and not request.many, question=question)
    fits = [fit for fit in fits if fit.score >= (LEAST_OF_MANY if request.many else LEAST)]
    if not fits:
        return nothing
    chosen = fits if request.many else _chosen(fits)
    matches = _by_topic(chosen)
    if request.many or _one_meaning(chosen):
        return Answer(matches)
    return Answer(matches, ambiguous=True, question=f"{len(matches)} topics match equally well. Which is meant?")


def asked_of(request: Request, names: tuple[tuple[str, ...], ...]) -> Asked:
    """Return what the facts are compared with."""
    return Asked(request.body, names, request.negated, request.states)


def _chosen(fits: Sequence[Fit]) -> list[Fit]:
    """Return the best of ``fits``, best first, with all that are as good or say the same; exact ones alone."""
    exact = [fit for fit in fits if fit.exact]
    if exact:
        return exact
    best = fits[0]
    # Of two facts in one topic the better one is meant: the other one stays beside it.
    return [
        fit
        for fit in fits
        if fit is best
        or same_meaning(best.fact, fit.fact)
        or (fit.fact.topic.id != best.fact.topic.id and rivals(best, fit, margin=MARGIN))
    ]  # fmt: skip


def _one_meaning(fits: Sequence[Fit]) -> bool:
    return all(
        fit.exact or fit.fact.topic.id == fits[0].fact.topic.id or same_meaning(fits[0].fact, fit.fact) for fit in fits
    )


def _by_topic(fits: Sequence[Fit]) -> list[Matched]:
    grouped: dict[uuid.UUID, list[Fit]] = {}
    for fit in fits:
        grouped.setdefault(fit.fact.topic.id, []).append(fit)
    return [
        Matched(
            topic_id,
            "It says exactly this." if group[0].exact else f"It says {excerpt(group[0].fact.text, 0)!r}.",
            round(max(0.0, group[0].score), 3),
            excerpt(group[0].fact.text, 0),
            rest_left(group[0].fact.topic, [fit.fact for fit in group]),
        )
        for topic_id, group in grouped.items()
    ]


def _words_sql(names: Iterable[str], bound: Bound) -> str:
    """Return the condition that a row ``m`` has the words of one of ``names``."""
    conditions = []
    for name in names:
        key = sorted(name_key(name))
        if not key:
            # A word that may be written otherwise is in no index; every topic has to be read.
            return "true"
        conditions.append(f"m.words @> {bound.bind(key)}::text[]")
    return " OR ".join(conditions) or "false"
