"""From the words of a request to the topics it is about.

An identifier or a name takes every topic that mentions it as a whole; anything else is about one fact, and meaning
decides among the facts that agree with the request in names, numbers and negation. Where two facts fit equally well,
both are the answer, and nobody guesses.
"""

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection

from memory.command.aliases import aliases_follow
from memory.command.fit import Asked, Fit, facts_fit, rivals, same_meaning, values_sought
from memory.command.refined import fits_refined
from memory.command.rest import rest_of
from memory.command.said import TopicSaid, facts_of, topics_said
from memory.command.spelled import code_like, spelled_enough, spelled_find, spelled_ids
from memory.domain.reading.folding import fold
from memory.domain.reading.identifiers import STRONG, Identifier, identifiers_find, identifiers_index
from memory.domain.reading.names import Mention, mentions_find, name_key, words_index
from memory.domain.reading.proper import name_meant
from memory.domain.reading.requests import Request, request_parse
from memory.embedding import embedder_get
from memory.forgetting.judgement import Bound
from memory.forgetting.standing import MOST_AT_ONCE
from memory.ingest.bulk import vector_text
from memory.ingest.mentions import mentions_give
from memory.llm.refine import matches_refine

# Facts of so many topics are compared: the nearest by meaning, and as many by the words they share.
NEAREST = 40
# Below this a fact is about something else; a list of all that match by meaning asks for more.
LEAST, LEAST_OF_MANY = 0.34, 0.5
# Two facts whose scores lie nearer to each other than this fit equally well.
MARGIN = 0.05
EXCERPT = 160
# "ISBN 0-306-40615-2" may stand without the word.
# Kinds that people write in other groups; in an address the groups tell one from another.
_GROUPED = frozenset({"code", "handle", "hashtag", "isbn", "path", "ssn", "vin", "card", "iban", "hash"})
_SIGNED = frozenset({"handle", "hashtag"})
_LABEL = re.compile(r"^[^\W\d_]+[\s:#.-]+")


@dataclass(frozen=True, slots=True)
class Matched:
    """A topic that a request is about: why, how sure that is (0 to 1), and the words that matched."""

    topic_id: uuid.UUID
    why: str
    confidence: float
    excerpt: str = ""
    rest: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is about. Ambiguous: several topics match equally well, and ``question`` asks which."""

    matches: list[Matched] = field(default_factory=list)
    ambiguous: bool = False
    question: str = ""


class Hit(NamedTuple):
    """A name in a text of a topic."""

    topic: TopicSaid
    name: str
    text: str
    mention: Mention


_BY_IDENTIFIERS = """
SELECT m.topic_id FROM memory_topicmention m JOIN memory_topic t ON t.id = m.topic_id
WHERE m.identifiers && {wanted}::text[] AND {conditions} ORDER BY t.created_at, t.id LIMIT {most}
"""
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


def matches_find(query: str, *, scope: str, conditions: str, bound: Bound, history: bool) -> Answer:
    """Return the topics among those of ``conditions`` (on a row ``t`` of Topic) that ``query`` is about.

    ``history`` also takes topics that no longer say what the request names, but once did. At most eight statements;
    names and identifiers cost the topics that mention them, facts at most twice ``NEAREST`` topics.
    """
    # What topics mention is asked of the index, so it has to be whole; after the first time this costs nothing.
    while mentions_give():
        pass
    request = request_parse(query)
    if request.kind == "identifiers":
        answer = _identified(request, conditions, bound, history=history)
        known = {match.topic_id for match in answer.matches}
        spelled = [m for m in _spelled(request, conditions, bound, history=history) if m.topic_id not in known]
        return Answer([*answer.matches, *spelled]) if spelled else answer
    if code_like(request.body) and (spelled := _spelled(request, conditions, bound, history=history)):
        # "apt 12" is not whatever says 12.
        return Answer(spelled)
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
        if _ids(sql, bound):
            known.append(either)
    return tuple(known)


def facts_near(
    text: str, names: Sequence[Sequence[str]], *, conditions: str, bound: Bound
) -> dict[uuid.UUID, TopicSaid]:
    """Return what the topics say that may state ``text``: those that mention every one of ``names``, the nearest of
    them by meaning and by words. Three statements."""
    wanted = " AND ".join(f"({_words_sql(either, bound)})" for either in names) or "true"
    vector = vector_text(embedder_get().embed_query(text))
    sql = _NEAR.format(
        wanted=wanted, conditions=conditions, model=bound.bind(embedder_get().model_name), most=NEAREST,
        vector=bound.bind(vector), words=bound.bind(sorted(words_index(text))),
    )  # fmt: skip
    return topics_said(_ids(sql, bound))


# Identifiers


def _identified(request: Request, conditions: str, bound: Bound, *, history: bool) -> Answer:
    """Return the topics that name one of the identifiers that single out a thing, and all that merely describe."""
    strong = frozenset(key for found in request.identifiers if found.kind in STRONG for key in found.sought)
    weak = [keys for keys in values_sought(request.body) if not keys & strong]
    wanted = strong or frozenset(key for keys in weak for key in keys)
    sql = _BY_IDENTIFIERS.format(wanted=bound.bind(sorted(wanted)), conditions=conditions, most=MOST_AT_ONCE + 1)
    matches = []
    for topic in topics_said(_ids(sql, bound), ever=history).values():
        for text in topic.texts():
            found = _first(text, wanted)
            if found is not None and all(identifiers_index(text) & keys for keys in weak):
                why = f"It names the {found.kind.replace('_', ' ')} {found.text}."
                matches.append(Matched(topic.id, why, 1.0, _excerpt(text, found.start)))
                break
    told = " or ".join(dict.fromkeys(found.text for found in request.identifiers))
    return Answer(matches, question="" if matches else f"Nothing here names {told}.")


def _first(text: str, wanted: frozenset[str]) -> Identifier | None:
    return next((found for found in identifiers_find(text) if found.stored & wanted), None)


def _spelled(request: Request, conditions: str, bound: Bound, *, history: bool) -> list[Matched]:
    """Return the topics that write the codes of a request in other groups, or without their leading sign or word."""
    codes = {request.body: False} if code_like(request.body) else {}
    for one in request.identifiers:
        if one.kind in _GROUPED and spelled_enough(one.text):
            plain = _LABEL.sub("", one.text)
            codes |= {text: one.kind in _SIGNED for text in (one.text, plain, one.canonical) if spelled_enough(text)}
    matches: dict[uuid.UUID, Matched] = {}
    for code, signed in codes.items():
        ids = spelled_ids(code, conditions=conditions, bound=bound, history=history, most=MOST_AT_ONCE + 1)
        for topic in topics_said(ids, ever=history).values():
            for text in topic.texts():
                place = spelled_find(text, code)
                # A name in its plain form is a person's; a handle without its sign is written as it is spelled.
                if place and not (signed and text[slice(*place)].istitle()) and not _another(text, place):
                    why = f"It writes {text[slice(*place)]}."
                    matches.setdefault(topic.id, Matched(topic.id, why, 0.9, _excerpt(text, place[0])))
                    break
    return list(matches.values())


def _another(text: str, place: tuple[int, int]) -> bool:
    """Tell whether what stands there is an identifier by itself; it was compared already, and is another one."""
    return any(one.kind in STRONG and (one.start, one.end) == place for one in identifiers_find(text))


# Names


def _named(request: Request, scope: str, conditions: str, bound: Bound, *, history: bool) -> Answer:
    either = [name for names in names_alternatives(request.things, scope) for name in names]
    sql = _BY_WORDS.format(wanted=_words_sql(either, bound), conditions=conditions, most=MOST_AT_ONCE + 1)
    found: list[Hit] = []
    for topic in topics_said(_ids(sql, bound), ever=history).values():
        hits = [
            Hit(topic, name, text, mention)
            for text in topic.texts()
            for name in either
            for mention in mentions_find(text, name)
        ]
        if hits:
            found.append(max(hits, key=lambda hit: (hit.mention.how != "tagged", name_meant(hit.text, hit.mention))))
    found = _of_one_kind(found)
    matches = [
        Matched(
            hit.topic.id, _mention_words(hit, request.things), _SURE[hit.mention.how],
            _excerpt(hit.text, hit.mention.start),
        )
        for hit in found
    ]  # fmt: skip
    told = " or ".join(request.things)
    return Answer(matches, question="" if matches else f"Nothing here mentions {told}.")


def _mention(text: str, name: str) -> Mention | None:
    return next(iter(mentions_find(text, name)), None)


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
    names = names_alternatives(request.names, scope)
    topics = facts_near(request.body, names, conditions=conditions, bound=bound)
    fits = facts_fit(asked_of(request, names), [fact for topic in topics.values() for fact in facts_of(topic)])
    if not fits and names and not request.states:
        known = names_known(names, conditions=conditions, bound=bound)
        if known and known != names:
            topics = facts_near(request.body, known, conditions=conditions, bound=bound)
            fits = facts_fit(asked_of(request, known), [fact for topic in topics.values() for fact in facts_of(topic)])
    refined = fits_refined(fits, lambda texts: matches_refine(request.text, texts))
    if refined is not None and refined[0]:
        chosen, unsure = refined
        asked = f"{len(chosen)} facts may be meant. Which?" if unsure else ""
        return Answer(_by_topic(chosen), ambiguous=unsure and not _one_meaning(chosen), question=asked)
    fits = [fit for fit in fits if fit.score >= (LEAST_OF_MANY if request.many else LEAST)]
    if not fits or (refined is not None and not refined[0]):
        return Answer(question=f"Nothing here says {request.body!r}.")
    chosen = fits if request.many else fits_chosen(fits)
    matches = _by_topic(chosen)
    if request.many or len({fit.fact.text for fit in chosen}) == 1 or _one_meaning(chosen):
        return Answer(matches)
    return Answer(matches, ambiguous=True, question=f"{len(matches)} topics match equally well. Which is meant?")


def asked_of(request: Request, names: tuple[tuple[str, ...], ...]) -> Asked:
    """Return what the facts are compared with."""
    return Asked(request.body, names, request.negated, request.states)


def fits_chosen(fits: Sequence[Fit], *, margin: float = MARGIN) -> list[Fit]:
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
        or (fit.fact.topic.id != best.fact.topic.id and rivals(best, fit, margin=margin))
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
            "It says exactly this." if group[0].exact else f"It says {_excerpt(group[0].fact.text, 0)!r}.",
            round(max(0.0, group[0].score), 3),
            _excerpt(group[0].fact.text, 0),
            rest_of(group[0].fact.topic, [fit.fact for fit in group]),
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


def _ids(sql: str, bound: Bound) -> list[uuid.UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql, bound.values)
        return [row[0] for row in cursor.fetchall()]


def _excerpt(text: str, at: int) -> str:
    start = max(0, at - EXCERPT // 3)
    piece = " ".join(text[start : start + EXCERPT].split())
    return f"{'…' if start else ''}{piece}{'…' if start + EXCERPT < len(text) else ''}"
