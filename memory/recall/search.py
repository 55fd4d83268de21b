"""The lookup for operators: one search over all topics, including archived ones.

Topics are ranked by the words as in a query, and need not contain them. Everything else is a condition. If a list is
sorted in another order, words are conditions too. A lookup does not write access rows or raise salience, because it
does not show what agents need.
"""

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_parse, cursor_time
from memory.core.errors import ValueRefused
from memory.core.policy_values import Knobs
from memory.core.problem_codes import ProblemCode
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.models import Rung
from memory.models.expressions import epoch_sql, rung_label_sql, salience_now_sql, written_sql
from memory.policy.effective import knobs_effective
from memory.predicates.binding import Bound
from memory.predicates.search_parts import (
    ARCHIVED,
    LIVE,
    RELEASED,
    STATES,
    question_of,
    scope_of,
    states_of,
    texts_of,
    without_words,
)
from memory.predicates.search_text import search_parse
from memory.predicates.sql import WordSearch, predicate_sql
from memory.predicates.tree import Comparison, Predicate, all_of
from memory.predicates.words import predicate_describe
from memory.recall.candidates import Ranked, candidates_rank
from memory.recall.filters import CandidateFilter, ExtraCondition
from memory.recall.probe import question_probe
from memory.recall.search_hits import SearchHit, hits_load

BEST, NEWEST = "best", "created"
# The number of hits per state on the first page. A list of one state continues by cursor.
SHOWN = {LIVE: 20, ARCHIVED: 10, RELEASED: 10}

# Each topic that is not merged has exactly one of these states.
STATE_SQL = {
    LIVE: "lv.live",
    ARCHIVED: f"(lv.rung = {int(Rung.ARCHIVED)} AND t.released_at IS NULL AND t.merged_into_id IS NULL)",
    RELEASED: "(t.released_at IS NOT NULL AND t.merged_into_id IS NULL)",
}

# The topics of a state that facets count, the newest ones.
FACET_TOPICS = 10_000
_FACETS_SQL = f"""
WITH found AS MATERIALIZED (
    SELECT t.id, t.scope_id, t.kind, lv.rung FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
    WHERE {{state}} AND {{condition}} ORDER BY t.created_at DESC, t.id DESC LIMIT %(most)s
)
SELECT '', '', count(*) FROM found
UNION ALL
SELECT 'scope', %(begin)s || split_part(substr(s.path, length(%(begin)s) + 1), '/', 1), count(*)
FROM found f JOIN memory_scope s ON s.id = f.scope_id WHERE s.path <> %(above)s GROUP BY 2
UNION ALL
SELECT 'kind', kind, count(*) FROM found WHERE kind <> '' GROUP BY 2
UNION ALL
SELECT 'rung', {rung_label_sql("rung")}, count(*) FROM found GROUP BY 2
UNION ALL
SELECT 'by', e.actor, count(DISTINCT f.id)
FROM found f JOIN memory_auditevent e ON e.topic_id = f.id AND {written_sql("e")} GROUP BY 2
"""

_USED = f"coalesce({epoch_sql('lv.last_retrieved_at')}, '-Infinity'::float8)"
_SALIENCE = salience_now_sql("lv", "%(now)s::timestamptz", scope="lv.scope_id")
# The orders of a list: the expression, its type, the direction, and the parser of its value in a cursor.
SORTS: dict[str, tuple[str, str, str, Any]] = {
    "created": ("t.created_at", "timestamptz", "DESC", cursor_time),
    "oldest": ("t.created_at", "timestamptz", "ASC", cursor_time),
    "salience": (_SALIENCE, "float8", "DESC", float),
    "faintest": (_SALIENCE, "float8", "ASC", float),
    "used": (_USED, "float8", "DESC", float),
    "idle": (_USED, "float8", "ASC", float),
}


@dataclass(frozen=True, slots=True)
class TopicSearch:
    """A parsed lookup. ``blank`` are words that text search ignores, such as "the"."""

    tree: Predicate | None
    blank: frozenset[str]
    question: str
    states: tuple[str, ...]

    @property
    def conditions(self) -> Predicate | None:
        """The whole lookup as a condition, including words."""
        return without_words(self.tree, self.blank)

    @property
    def left_out(self) -> list[str]:
        """The ignored words, in the order in which they were typed."""
        kept = texts_of(self.conditions)
        return [text for text in texts_of(self.tree) if text not in kept]


@dataclass(slots=True)
class SearchSection:
    """The hits in one state. ``next`` is the cursor of the next page, if this is a list."""

    state: str
    ranked: bool
    ids: list[uuid.UUID]
    next: str | None = None
    hits: list[SearchHit] = field(default_factory=list)

    @property
    def exact(self) -> list[SearchHit]:
        """The hits in which every word occurs; in a list, all hits."""
        return [hit for hit in self.hits if hit.exact]

    @property
    def resembling(self) -> list[SearchHit]:
        """The hits that only resemble the question."""
        return [hit for hit in self.hits if not hit.exact]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a lookup."""

    search: TopicSearch
    ranked: bool
    sections: list[SearchSection]

    @property
    def any_exact(self) -> bool:
        """Whether any ranked hit has every word."""
        return any(section.ranked and section.exact for section in self.sections)

    @property
    def any_ranked(self) -> bool:
        """Whether there is any ranked hit."""
        return any(section.ranked and section.hits for section in self.sections)

    @property
    def words(self) -> str:
        """The conditions as a clause of plain English; empty for all topics."""
        conditions = self.search.conditions
        if self.ranked:
            _question, conditions = question_of(conditions)
        return "" if conditions is None else predicate_describe(conditions)


def search_read(text: str, *, principal: Principal, part: str = "") -> TopicSearch:
    """Parse a lookup; ``part`` limits it to one of ``STATES``. Runs one query if there are words, else none.

    Raises ``SearchFlaw`` with the position of a mistake, ``ValueRefused`` for an unknown part.
    """
    tree = search_parse(text)
    if principal.scope != "/":
        tree = all_of(tree, Comparison("scope", "within", principal.scope))
    question, _conditions = question_of(tree)
    states = states_of(tree)
    if part:
        if part not in STATES:
            raise ValueRefused(
                f"Part {part[:30]!r} does not exist. Use one of {', '.join(STATES)}.", code=ProblemCode.UNKNOWN_CHOICE
            )
        states = tuple(state for state in states if state == part)
    return TopicSearch(tree, _blank(texts_of(tree)), question, states)


def search_run(
    search: TopicSearch, *, sort: str, cursor: str | None, limit: int | None, now: dt.datetime
) -> SearchResult:
    """Return the hits in a section for each state: live, archived and, if requested, released.

    With words and a ``sort`` of "best" or "", hits are ranked as in a query, with the parts of each score. The search
    in live topics costs as much as a query. Archived topics are scanned, because they are in no index. Runs at most
    eight queries: policies, three each for live and archived topics (probe, candidates, exact hits), and one for the
    hits.

    Otherwise hits are listed, with one query per state and one for the hits. ``cursor`` requires a lookup of one state.
    A list by salience or use reads the Vitality rows of all topics that meet the conditions.

    Raises ``ValueRefused`` for an unknown order or an invalid cursor, ``EmbeddingFailed``.
    """
    if sort not in ("", BEST, *SORTS):
        raise ValueRefused(
            f"Order {sort[:30]!r} does not exist. Use one of {', '.join((BEST, *SORTS))}.",
            code=ProblemCode.UNKNOWN_CHOICE,
        )
    ranked = bool(search.question) and sort in ("", BEST)
    if cursor is not None and (ranked or len(search.states) > 1):
        raise ValueRefused(
            "A cursor requires a list of one part. Start again without a cursor.", code=ProblemCode.INVALID_CURSOR
        )
    parts: dict[uuid.UUID, Ranked] = {}
    sections = []
    if ranked:
        vector = embedder_get().embed_query(search.question)
        with transaction.atomic():
            knobs = knobs_effective(scope_of(search.tree))
            for state in search.states:
                if state != RELEASED:
                    best = _rank(search, vector, state, knobs, now)
                    parts |= {found.topic_id: found for found in best}
                    sections.append(SearchSection(state, True, [found.topic_id for found in best]))
    for state in search.states:
        # Released topics cannot be ranked, so they are always listed.
        if not ranked or state == RELEASED:
            order = NEWEST if sort in ("", BEST) else sort
            ids, following = search_page(search, state, sort=order, cursor=cursor, limit=limit or SHOWN[state], now=now)
            sections.append(SearchSection(state, False, ids, following))
    everything = [topic_id for section in sections for topic_id in section.ids]
    marks = texts_of(search.conditions, wanted=True)
    hits = {hit.topic_id: hit for hit in hits_load(everything, marks=marks, now=now)}
    exact = _exact(search, sections, now) if ranked else set()
    for section in sections:
        section.hits = [hits[topic_id] for topic_id in section.ids if topic_id in hits]
        for hit in section.hits:
            hit.score = parts.get(hit.topic_id)
            hit.exact = not section.ranked or hit.topic_id in exact
    return SearchResult(search, ranked, sections)


def search_page(
    search: TopicSearch, state: str, *, sort: str, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[uuid.UUID], str | None]:
    """Return the ids of one page of a list, and the cursor of the next page. One query.

    All pages use the time of the first page, so that fading salience does not change the order.
    """
    key, kind, direction, read = SORTS[sort]
    after, place = "", {}
    if cursor is not None:
        cursor_sort, now, at, last = cursor_parse(cursor, str, cursor_time, read, uuid.UUID)
        if cursor_sort != sort:
            raise ValueRefused(
                "This cursor belongs to another order. Start again without a cursor.", code=ProblemCode.INVALID_CURSOR
            )
        after = f"AND ({key}, t.id) {'<' if direction == 'DESC' else '>'} (%(at)s::{kind}, %(last)s::uuid)"
        place = {"at": at, "last": last}
    condition, parameters = _sql(search.conditions, search, state, now)
    sql = f"""
        SELECT t.id, {key} FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
        WHERE {STATE_SQL[state]} AND {condition} {after}
        ORDER BY {key} {direction}, t.id {direction} LIMIT %(limit)s
    """
    with connection.cursor() as database:
        database.execute(sql, {**parameters, **place, "now": now, "limit": limit + 1})
        rows: list[tuple[uuid.UUID, Any]] = database.fetchall()
    following = cursor_make(sort, now, rows[limit - 1][1], rows[limit - 1][0]) if len(rows) > limit else None
    return [topic_id for topic_id, _key in rows[:limit]], following


def search_count(search: TopicSearch, *, at_most: int, now: dt.datetime) -> int:
    """Return the number of topics that meet all conditions of the lookup, including words; at most ``at_most`` + 1. One
    query per state."""
    found = 0
    for state in search.states:
        condition, parameters = _sql(search.conditions, search, state, now)
        sql = f"""
            SELECT count(*) FROM (
                SELECT 1 FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
                WHERE {STATE_SQL[state]} AND {condition} LIMIT %(most)s
            ) x
        """
        with connection.cursor() as cursor:
            cursor.execute(sql, {**parameters, "most": at_most + 1 - found})
            found += cursor.fetchone()[0]
        if found > at_most:
            break
    return found


def search_facets(search: TopicSearch, *, now: dt.datetime) -> tuple[dict[str, Counter[str]], bool]:
    """Return by qualifier how many topics of a lookup each value would leave, and whether only the newest
    ``FACET_TOPICS`` of each state were counted. One query per state.

    The qualifiers are scope, with the scopes directly below that of the lookup, kind, rung and by.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("scope", "kind", "rung", "by")}
    partial = False
    above = scope_of(search.tree)
    for state in search.states:
        condition, parameters = _sql(search.conditions, search, state, now)
        sql = _FACETS_SQL.format(state=STATE_SQL[state], condition=condition)
        parameters |= {"above": above, "begin": above.rstrip("/") + "/", "most": FACET_TOPICS + 1}
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            for name, value, count in cursor.fetchall():
                if name:
                    counts[name][value] += count
                else:
                    partial |= count > FACET_TOPICS
    return counts, partial


def search_export(
    search: TopicSearch, *, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[SearchHit], str | None]:
    """Return (hits, cursor of the next page): the topics that meet all conditions of the lookup, state by state, newest
    first. Runs two queries, and two more if one state ends within the page."""
    rows: list[SearchHit] = []
    begun, _colon, inner = (cursor or "").partition(":")
    states = search.states[search.states.index(begun) :] if begun else search.states
    for place, state in enumerate(states):
        ids, following = search_page(search, state, sort=NEWEST, cursor=inner or None, limit=limit - len(rows), now=now)
        inner = ""
        rows += hits_load(ids, marks=None, now=now)
        if following is not None:
            return rows, f"{state}:{following}"
        if len(rows) >= limit:
            return rows, f"{states[place + 1]}:" if place + 1 < len(states) else None
    return rows, None


def question_filter(search: TopicSearch, state: str, *, now: dt.datetime) -> CandidateFilter:
    """Return the filter for ranking topics in one state: all conditions of the lookup except single words."""
    scope = scope_of(search.tree)
    _question, conditions = question_of(search.conditions)
    extra = None
    if conditions not in (None, Comparison("scope", "within", scope)):
        extra = ExtraCondition(*_sql(conditions, search, state, now))
    return CandidateFilter(scope=scope, only_archived=state == ARCHIVED, extra=extra)


def _rank(search: TopicSearch, vector: Vectors, state: str, knobs: Knobs, now: dt.datetime) -> list[Ranked]:
    filters = question_filter(search, state, now=now)
    probe = question_probe(
        search.question, filters, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates
    )
    return candidates_rank(vector, probe, filters, limit=SHOWN[state], knobs=knobs, embedder=embedder_get(), now=now)


def _exact(search: TopicSearch, sections: Sequence[SearchSection], now: dt.datetime) -> set[uuid.UUID]:
    """Return the ranked topics in which every word occurs. One query for each ranked section with hits."""
    found: set[uuid.UUID] = set()
    for section in sections:
        if section.ranked and section.ids:
            condition, parameters = _sql(search.conditions, search, section.state, now)
            sql = f"""
                SELECT t.id FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
                WHERE t.id = ANY(%(ids)s) AND {condition}
            """
            with connection.cursor() as cursor:
                cursor.execute(sql, {**parameters, "ids": section.ids})
                found |= {topic_id for (topic_id,) in cursor.fetchall()}
    return found


def _sql(predicate: Predicate | None, search: TopicSearch, state: str, now: dt.datetime) -> tuple[str, dict[str, Any]]:
    """Return (condition on ``t`` (Topic) and ``lv`` (Vitality), its parameters)."""
    if predicate is None:
        return "true", {}
    bound = Bound()
    words = WordSearch(settings.MEMSTATE_TEXT_SEARCH_CONFIG, live=state == LIVE, blank=search.blank)
    moment = f"{bound.bind(now)}::timestamptz"
    found = predicate_sql(predicate, now=moment, bind=bound.bind, vitality="lv", narrow=False, word_search=words)
    return found.sql, bound.values


def _blank(texts: Sequence[str]) -> frozenset[str]:
    if not texts:
        return frozenset()
    sql = "SELECT text FROM unnest(%s::text[]) AS x (text) WHERE numnode(plainto_tsquery(%s::regconfig, text)) = 0"
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(texts), settings.MEMSTATE_TEXT_SEARCH_CONFIG])
        return frozenset(text for (text,) in cursor.fetchall())
