"""Finds the facts to which a request refers. Recall and the index of mentions give candidates for the finder."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.finding.facts import Fact, TopicContent, facts_distinct, facts_of, ids_read, topic_contents
from memory.finding.finder import Candidate, Choice, meant, replaced
from memory.finding.request import asks_for_all, dates_hidden, request_divide
from memory.forgetting.manual_actions import MAX_AT_ONCE
from memory.ingest.bulk import vector_text
from memory.llm.chat_request import model_configured
from memory.llm.refine import Refined, matches_refine, supersede_refine
from memory.policy.effective import knobs_effective
from memory.predicates.binding import Bound, scope_sql
from memory.recall.filters import CandidateFilter, ExtraCondition
from memory.recall.probe import question_probe
from memory.recall.ranking import candidates_rank
from memory.text.aliases import ALIAS_ROUNDS, aliases_add
from memory.text.folding import fold
from memory.text.keys import codes_of, keys_certain
from memory.text.name_match import names_of
from memory.text.names import name_keys
from memory.text.stems import UNSPACED, stems

# This number of the best-ranked topics is divided into facts.
POOL = 16
# If there are more topics, each text counts as one fact, because dividing a sentence takes a millisecond.
MAX_DIVIDED = 60
# A request for one fact about a name examines at most this number of topics.
MAX_NEAR = 40
# The most facts that are sent to a language model, and the least confidence of each.
MAX_SENT = 12
LEAST_SENT = 0.02
# The most names in a request, because each name costs several SQL statements.
MAX_NAMED = 20
TOO_MANY = f"One request can name at most {MAX_NAMED} persons or things. Send several requests, or use a filter."
MAX_ALIAS_TEXTS = 200
# The most facts that are embedded for one request, because each takes some milliseconds.
MAX_EMBEDDED = 4
# One more than a command accepts, so that the command notices when there are too many.
MAX_IDS = MAX_AT_ONCE + 1

# Topics that mention a name, the oldest first. For a request about one fact, the most similar topics come first.
_MENTIONING_SQL = """
SELECT m.topic_id FROM memory_topicmention m JOIN memory_topic t ON t.id = m.topic_id {vectors}
WHERE ({wanted}) AND {conditions} ORDER BY {first}, t.id LIMIT {most}
"""
_SAME_TITLE_SQL = """
SELECT t.id FROM memory_topic t WHERE md5(lower(t.title)) = md5(lower({wanted})) AND {conditions}
ORDER BY t.created_at, t.id LIMIT {most}
"""
_VECTORS_SQL = """
SELECT v.topic_id, -(v.embedding <#> {asked}::vector), -(v.embedding <#> {new}::vector)
FROM memory_topicvector v WHERE v.topic_id = ANY({ids}) AND v.model = {model} AND v.embedding IS NOT NULL
"""
_ALIASES_SQL = """
SELECT m.topic_id FROM memory_topicmention m WHERE m.aliases && {names}::text[] AND {within}
ORDER BY m.topic_id LIMIT {most}
"""


@dataclass(frozen=True)
class RequestVectors:
    """The vectors of the request and of the new text, if there is one, and how near facts are to them."""

    text: str
    new_vector: Vectors | None = None

    @cached_property
    def vector(self) -> Vectors:
        """The vector of the request, embedded on first use, because requests with identifiers need none."""
        return embedder_get().embed_query(self.text)

    def similarities(self, facts: Sequence[Fact]) -> list[tuple[float, float]]:
        """Return for each fact its nearness to the request and to the new text; 0 for unrelated texts. One query for
        the vectors of topics. The facts of a topic that states several are embedded, at most ``MAX_EMBEDDED``."""
        asked, new = vector_text(self.vector), self.new_vector
        bound = Bound()
        sql = _VECTORS_SQL.format(
            asked=bound.bind(asked),
            new=bound.bind(asked if new is None else vector_text(new)),
            ids=bound.bind(list({fact.topic.id for fact in facts})),
            model=bound.bind(embedder_get().model_name),
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, bound.values)
            topics = {
                topic_id: (_scaled(one), 0.0 if new is None else _scaled(other))
                for topic_id, one, other in cursor.fetchall()
            }
        found = [topics.get(fact.topic.id, (0.0, 0.0)) for fact in facts]
        counts = Counter(fact.topic.id for fact in facts)
        several = sorted(
            (at for at, fact in enumerate(facts) if counts[fact.topic.id] > 1 and fact.topic.id in topics),
            key=lambda at: -sum(found[at]),
        )
        nearest = several[:MAX_EMBEDDED]
        own: Iterable[Vectors] = (
            embedder_get().embed_passages([facts[at].found_by for at in nearest]) if nearest else ()
        )
        for at, vector in zip(nearest, own, strict=True):
            found[at] = _scaled(vector @ self.vector), 0.0 if new is None else _scaled(vector @ new)
        return found


def facts_meant(
    query: str, *, scope: str, conditions: str, bound: Bound, history: bool, any_script: bool = False
) -> Choice:
    """Return the facts to which ``query`` refers, in topics within ``scope`` that match ``conditions``, an SQL
    condition on ``t`` (a row of Topic). If ``history`` is true, earlier texts are searched, too. For ``any_script``,
    see ``meant``. Topics that are not live are not found by meaning. About ten SQL statements, plus at least four for
    each name. Raises ``EmbeddingFailed``, and ``ValueRefused`` for more than ``MAX_NAMED`` names."""
    body, _kept = request_divide(query)
    everything = asks_for_all(body)
    _identifiers_check(body)
    question = RequestVectors(body)

    def chosen(ids: Sequence[uuid.UUID]) -> Choice:
        topics = topic_contents(list(dict.fromkeys(ids)), ever=history)
        divided = len(topics) <= MAX_DIVIDED
        facts = facts_distinct(fact for topic in topics.values() for fact in facts_of(topic, divide=divided))
        choice = meant(query, facts, question.similarities, any_script=any_script)
        choice.divided = divided
        return choice

    identified = _ids_identified(body, conditions, bound)
    choice = chosen(identified) if identified else Choice()
    if not choice.candidates:
        # The wanted fact may be stored without the identifier.
        extra = ExtraCondition(conditions, bound.values)
        pool = topic_contents(_ranked([(question.text, question.vector)], scope, extra))
        ids = [*identified, *pool, *_ids_titled(body, conditions, bound)]
        names = _names_counted(body, pool)
        one_fact = not everything and bool(frozenset(stems(body)) - frozenset(stems(" ".join(names))))
        ids += _ids_named(names, scope, conditions, bound, near=question.vector if one_fact else None)
        if everything and not names:
            # For "everything about the van", all content words are searched.
            words = [word for word in body.split() if stems(word) and not UNSPACED.search(word)]
            if wanted := _worded_sql([keys for word in words for keys in name_keys(word)], bound):
                ids += _ids_mentioning(wanted, conditions, bound)
        choice = chosen(ids)
    return _refined(choice, lambda texts: matches_refine(query, texts))


def facts_replaced(old_query: str, new_text: str, *, new_vector: Vectors, scope: str) -> Choice:
    """Return the current facts within ``scope`` that ``new_text`` replaces; ``new_vector`` is its vector. About ten SQL
    statements. Raises the same errors as ``facts_meant``."""
    _identifiers_check(old_query)
    question = RequestVectors(old_query, new_vector)
    bound = Bound()
    within = scope_sql("t.scope_id", scope, bound.bind)
    conditions = (
        "EXISTS (SELECT 1 FROM memory_topicvector lv WHERE lv.topic_id = t.id AND lv.live)"
        f" AND t.released_at IS NULL AND t.merged_into_id IS NULL AND {within}"
    )

    def chosen(topics: Iterable[TopicContent]) -> Choice:
        facts = facts_distinct(fact for topic in topics if topic.live for fact in facts_of(topic))
        return replaced(old_query, new_text, facts, question.similarities)

    identified = _ids_identified(dates_hidden(old_query), conditions, bound, most=2 * POOL)
    choice = chosen(topic_contents(identified).values()) if identified else Choice()
    if not choice.candidates:
        # The stored fact may not contain the identifier, so search by meaning, too.
        ids = identified + _ranked([(old_query, question.vector), (new_text, new_vector)], scope, None)
        ids += _ids_titled(new_text, conditions, bound)
        pool = topic_contents(list(dict.fromkeys(ids)))
        names = _names_counted(old_query, pool)
        others = [also for name in names for also in aliases_follow(name, scope=scope)[1:]]
        if others:
            pool |= topic_contents(_ids_named(others, scope, conditions, bound, follow=False, most=2 * POOL))
        choice = chosen(pool.values())
    return _refined(choice, lambda texts: supersede_refine(old_query, new_text, texts))


def aliases_follow(name: str, *, scope: str) -> tuple[str, ...]:
    """Return ``name`` and its aliases. Aliases are taken from all topics within ``scope``, including archived and
    released ones. Four SQL statements for each of at most ``ALIAS_ROUNDS`` rounds."""
    known = {fold(name): name}
    asked: set[str] = set()
    for _round in range(ALIAS_ROUNDS):
        names = sorted(set(known) - asked)
        if not names:
            break
        asked |= set(names)
        bound = Bound()
        within = scope_sql("m.scope_id", scope, bound.bind)
        sql = _ALIASES_SQL.format(names=bound.bind(names), within=within, most=MAX_ALIAS_TEXTS)
        topics = topic_contents(ids_read(sql, bound), ever=True)
        aliases_add(known, asked, (text for topic in topics.values() for text in topic.texts()))
    return tuple(known.values())


def _refined(choice: Choice, ask: Callable[[Sequence[tuple[str, str]]], Refined | None]) -> Choice:
    """Let a language model choose among the ranked facts. Return ``choice`` unchanged if no model is configured or if a
    fact equals the request. ``ask`` may take some seconds."""
    if not model_configured() or not choice.ranked or choice.ranked[0].exact:
        return choice
    sent: dict[str, Candidate] = {}
    for one in choice.ranked:
        if one.confidence >= LEAST_SENT and len(sent) < MAX_SENT:
            sent.setdefault(f"{one.fact.topic.id} {one.text}", one)
    refined = ask([(key, one.text) for key, one in sent.items()]) if sent else None
    if refined is None:
        return choice
    known = {id(one) for one in sent.values()}
    chosen = [one for key, one in sent.items() if key in set(refined.chosen)]
    # The model saw only the first facts of a long list. Chosen facts that it did not see are kept.
    chosen += [one for one in choice.candidates if id(one) not in known]
    return replace(choice, candidates=chosen, ambiguous=refined.unsure and len(chosen) > 1)


def _scaled(cosine: Any) -> float:
    unrelated = embedder_get().unrelated
    return (float(cosine) - unrelated) / (1 - unrelated)


def _identifiers_check(text: str) -> None:
    if len(set(keys_certain(text).values())) > MAX_NAMED:
        raise ValueRefused(TOO_MANY, code=ProblemCode.TOO_LARGE)


def _names_counted(text: str, topics: Mapping[uuid.UUID, TopicContent]) -> list[str]:
    """Return the names in ``text``; ``topics`` help to distinguish them from common words."""
    texts = [fact.found_by for topic in topics.values() for fact in facts_of(topic, divide=False)]
    names = [" ".join(name) for name in names_of(text, texts)]
    if len(names) > MAX_NAMED:
        raise ValueRefused(TOO_MANY, code=ProblemCode.TOO_LARGE)
    return names


def _ranked(asked: Sequence[tuple[str, Vectors]], scope: str, extra: ExtraCondition | None) -> list[uuid.UUID]:
    """Return the best topics for each text in ``asked``, ranked by recall. Three SQL statements for the first text, and
    two for each further text."""
    found: list[uuid.UUID] = []
    # A separate transaction, because the probe sets options that must not apply to later writes.
    with transaction.atomic():
        knobs = knobs_effective(scope)
        wanted = CandidateFilter(scope=scope, extra=extra)
        for text, vector in asked:
            probe = question_probe(
                text, wanted, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates
            )
            ranked = candidates_rank(
                vector, probe, wanted, limit=POOL, knobs=knobs, embedder=embedder_get(), now=timezone.now()
            )
            found += [one.topic_id for one in ranked]
    return list(dict.fromkeys(found))


def _ids_named(
    names: Sequence[str],
    scope: str,
    conditions: str,
    bound: Bound,
    *,
    follow: bool = True,
    near: Vectors | None = None,
    most: int = MAX_IDS,
) -> list[uuid.UUID]:
    """Return the topics that may mention one of ``names`` or, if ``follow`` is true, one of their aliases. If the
    vector ``near`` is given, return only the ``MAX_NEAR`` topics that are most similar to it."""
    also = [other for name in names for other in (aliases_follow(name, scope=scope) if follow else (name,))]
    words = [word for name in also for word in name.split() if len(word) > 2]
    for wholes in (also, words):
        wanted = [sql for name in dict.fromkeys(wholes) if (sql := _worded_sql(name_keys(name), bound))]
        # The single words of a name are searched only if no topic has the whole name, because given names are common.
        if wanted and (ids := _ids_mentioning(" OR ".join(wanted), conditions, bound, near=near, most=most)):
            return ids
    return []


def _worded_sql(words: Sequence[frozenset[str]], bound: Bound) -> str:
    """Return the SQL condition that the index of a topic has a key of each word; empty if there are no words. ``words``
    has the possible keys of each word."""
    alone = sorted({key for keys in words if len(keys) == 1 for key in keys})
    found = [f"m.words && {bound.bind(sorted(keys))}::text[]" for keys in words if len(keys) > 1]
    if alone:
        found.append(f"m.words @> {bound.bind(alone)}::text[]")
    return f"({' AND '.join(found)})" if found else ""


def _ids_identified(text: str, conditions: str, bound: Bound, *, most: int = MAX_IDS) -> list[uuid.UUID]:
    keys = sorted(codes_of(text))
    wanted = f"m.identifiers && {bound.bind(keys)}::text[]"
    return _ids_mentioning(wanted, conditions, bound, most=most) if keys else []


def _ids_titled(title: str, conditions: str, bound: Bound) -> list[uuid.UUID]:
    return ids_read(_SAME_TITLE_SQL.format(wanted=bound.bind(title), conditions=conditions, most=MAX_IDS), bound)


def _ids_mentioning(
    wanted: str, conditions: str, bound: Bound, *, near: Vectors | None = None, most: int = MAX_IDS
) -> list[uuid.UUID]:
    vectors, first = "", "t.created_at"
    if near is not None:
        model = bound.bind(embedder_get().model_name)
        vectors = f"LEFT JOIN memory_topicvector v ON v.topic_id = t.id AND v.model = {model}"
        first, most = f"v.embedding <#> {bound.bind(vector_text(near))}::vector", MAX_NEAR
    sql = _MENTIONING_SQL.format(wanted=wanted, conditions=conditions, vectors=vectors, first=first, most=most)
    return ids_read(sql, bound)
