"""The lookup for operators: a search over all topics, including archived ones. Words rank the topics as in a query. If
the caller chooses another order, words are conditions instead. A lookup does not raise salience."""

import datetime as dt
import uuid
from collections import Counter
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
from memory.models.formulas_sql import epoch_sql, rung_label_sql, salience_now_sql, written_sql
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
from memory.predicates.tree import Comparison, Predicate, all_of, leaves
from memory.predicates.words import predicate_describe
from memory.recall.filters import CandidateFilter, ExtraCondition
from memory.recall.probe import question_probe
from memory.recall.ranking import Ranked, candidates_rank
from memory.recall.search_hits import SearchHit, hits_load
from memory.text.search_words import words_for_search

BEST, NEWEST = "best", "created"
# The number of hits per state on the first page. A list of one state continues by cursor.
SHOWN = {LIVE: 20, ARCHIVED: 10, RELEASED: 10}

# Each topic that is not merged has exactly one of these states.
STATE_SQL = {
    LIVE: "lv.live",
    ARCHIVED: f"(lv.rung = {int(Rung.ARCHIVED)} AND t.released_at IS NULL AND t.merged_into_id IS NULL)",
    RELEASED: "(t.released_at IS NOT NULL AND t.merged_into_id IS NULL)",
}

# Facets count the newest topics of a state, at most this number.
FACET_TOPICS = 10_000
_FACETS_SQL = f"""
WITH found AS MATERIALIZED (
    SELECT t.id, t.scope_id, t.kind, lv.rung FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
    WHERE {{condition}} ORDER BY t.created_at DESC, t.id DESC LIMIT %(most)s
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
_PAGE_SQL = """
SELECT t.id, {key} FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
WHERE {condition} {after} ORDER BY {key} {direction}, t.id {direction} LIMIT %(limit)s
"""
_COUNT_SQL = """
SELECT count(*) FROM (
    SELECT 1 FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id WHERE {condition} LIMIT %(most)s
) x
"""
_EXACT_SQL = """
SELECT t.id FROM memory_topic t JOIN memory_vitality lv ON lv.topic_id = t.id
WHERE t.id = ANY(%(ids)s) AND {condition}
"""
# Selects the words that text search ignores.
_BLANK_SQL = """
SELECT text FROM unnest(%s::text[], %s::text[]) AS x (text, words)
WHERE numnode(plainto_tsquery(%s::regconfig, words)) = 0
"""

# The fields of conditions that name a state.
_OF_STATE = frozenset({"rung", "live", "released"})
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
        """The lookup as a condition, without the ignored words."""
        return without_words(self.tree, self.blank)

    @property
    def left_out(self) -> list[str]:
        """The ignored words, in the order in which they were typed."""
        kept = texts_of(self.conditions)
        return [text for text in texts_of(self.tree) if text not in kept]


@dataclass(slots=True)
class SearchSection:
    """The hits in one state. ``next`` is the cursor of the next page; hits that are ranked have one page."""

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
    def any(self) -> bool:
        """Whether anything was found."""
        return any(section.hits for section in self.sections)

    @property
    def any_exact(self) -> bool:
        """Whether at least one ranked hit contains every word."""
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
    """Parse a lookup; ``part`` limits it to one of ``STATES``. At most one query. Raises ``SearchFlaw`` with the
    position of a mistake, ``ValueRefused`` for an unknown part."""
    tree = search_parse(text)
    if principal.scope != "/":
        tree = all_of(tree, Comparison("scope", "within", principal.scope))
    if part not in ("", *STATES):
        raise ValueRefused(f"Part {part[:30]!r} does not exist. Use one of {', '.join(STATES)}.")
    states = tuple(state for state in states_of(tree) if part in ("", state))
    blank: frozenset[str] = frozenset()
    if texts := texts_of(tree):
        with connection.cursor() as cursor:
            words = [words_for_search(text) for text in texts]
            cursor.execute(_BLANK_SQL, [texts, words, settings.MEMSTATE_TEXT_SEARCH_CONFIG])
            blank = frozenset(text for (text,) in cursor.fetchall())
    return TopicSearch(tree, blank, question_of(tree)[0], states)


def search_run(
    search: TopicSearch, *, sort: str, cursor: str | None, limit: int | None, now: dt.datetime
) -> SearchResult:
    """Return the hits by state: live, archived and, if requested, released. At most nine queries. If the lookup has
    words and ``sort`` is "best" or "", the hits are ranked. Ranking scans all archived topics, because they are in no
    index. In all other cases, the hits are listed. A ``cursor`` requires a list of one state. A list by salience or use
    reads all Vitality rows that match. Raises ``ValueRefused`` for an unknown order or an invalid cursor,
    ``EmbeddingFailed``."""
    if sort not in ("", BEST, *SORTS):
        raise ValueRefused(
            f"Order {sort[:30]!r} does not exist. Use one of {', '.join((BEST, *SORTS))}.", member="sort"
        )
    ranked = bool(search.question) and sort in ("", BEST)
    if cursor is not None and (ranked or len(search.states) > 1):
        raise ValueRefused(
            "A cursor requires a list of one part. Start again without a cursor.",
            code=ProblemCode.INVALID_CURSOR,
            member="cursor",
        )
    scores: dict[uuid.UUID, Ranked] = {}
    sections = []
    if ranked:
        vector = embedder_get().embed_query(search.question)
        with transaction.atomic():
            knobs = knobs_effective(scope_of(search.tree))
            for state in search.states:
                if state != RELEASED:
                    best = _rank(search, vector, state, knobs, now)
                    scores |= {found.topic_id: found for found in best}
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
    for section in sections:
        section.hits = [hits[topic_id] for topic_id in section.ids if topic_id in hits]
        if section.ranked and section.hits:
            exact = {topic_id for (topic_id,) in _select(_EXACT_SQL, search, section.state, now, ids=section.ids)}
            for hit in section.hits:
                hit.score, hit.exact = scores[hit.topic_id], hit.topic_id in exact
    return SearchResult(search, ranked, sections)


def search_page(
    search: TopicSearch, state: str, *, sort: str, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[uuid.UUID], str | None]:
    """Return the ids of one page of a list, and the cursor of the next page. One query. All pages are computed for the
    time of the first page."""
    key, kind, direction, read = SORTS[sort]
    after, place = "", {}
    if cursor is not None:
        cursor_sort, now, at, last = cursor_parse(cursor, str, cursor_time, read, uuid.UUID)
        if cursor_sort != sort:
            raise ValueRefused(
                "This cursor belongs to another order. Start again without a cursor.",
                code=ProblemCode.INVALID_CURSOR,
                member="cursor",
            )
        after = f"AND ({key}, t.id) {'<' if direction == 'DESC' else '>'} (%(at)s::{kind}, %(last)s::uuid)"
        place = {"at": at, "last": last}
    sql = _PAGE_SQL.format(key=key, condition="{condition}", after=after, direction=direction)
    rows = _select(sql, search, state, now, **place, limit=limit + 1)
    following = cursor_make(sort, now, rows[limit - 1][1], rows[limit - 1][0]) if len(rows) > limit else None
    return [topic_id for topic_id, _key in rows[:limit]], following


def search_count(search: TopicSearch, *, at_most: int, now: dt.datetime) -> int:
    """Return the number of topics that meet all conditions, at most ``at_most`` + 1. One query per state."""
    found = 0
    for state in search.states:
        if found <= at_most:
            found += _select(_COUNT_SQL, search, state, now, most=at_most + 1 - found)[0][0]
    return found


def search_facets(search: TopicSearch, *, now: dt.datetime) -> tuple[dict[str, Counter[str]], bool]:
    """Return (counts, partial). ``counts`` has the number of topics by value, for each of the qualifiers scope, kind,
    rung and by. ``partial`` is true if a state has more than ``FACET_TOPICS`` topics; in this case, only the newest of
    them are counted. One query per state."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("scope", "kind", "rung", "by")}
    partial = False
    above = scope_of(search.tree)
    place = {"above": above, "begin": above.rstrip("/") + "/", "most": FACET_TOPICS + 1}
    for state in search.states:
        for name, value, count in _select(_FACETS_SQL, search, state, now, **place):
            if name:
                counts[name][value] += count
            else:
                partial |= count > FACET_TOPICS
    return counts, partial


def search_export(
    search: TopicSearch, *, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[SearchHit], str | None]:
    """Return (hits, cursor of the next page): the topics that meet all conditions, state by state, newest first. Two
    queries, and two more if one state ends within the page."""
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
        search.question,
        filters,
        exact_below=knobs.recall_exact_below,
        candidates=knobs.recall_candidates,
        today=now.astimezone(dt.UTC).date(),
    )
    return candidates_rank(vector, probe, filters, limit=SHOWN[state], knobs=knobs, embedder=embedder_get(), now=now)


def _select(sql: str, search: TopicSearch, state: str, now: dt.datetime, **values: Any) -> list[Any]:
    """Return the rows of ``sql``. Its ``{condition}`` becomes the state and the conditions of the lookup."""
    condition, parameters = _sql(search.conditions, search, state, now)
    with connection.cursor() as cursor:
        cursor.execute(
            sql.format(condition=f"{STATE_SQL[state]} AND {condition}"), {**parameters, **values, "now": now}
        )
        rows: list[Any] = cursor.fetchall()
        return rows


def search_sql(search: TopicSearch, bound: Bound, *, now: str, vitality: str, archived: bool) -> str:
    """Return the condition that topic ``t`` is in one of the states of a lookup and meets its conditions. Archived
    topics are left out unless ``archived`` is true or the lookup names a state. ``now`` is an expression of type
    timestamptz, ``vitality`` the alias of its row in Vitality."""
    named = any(isinstance(leaf, Comparison) and leaf.field in _OF_STATE for leaf, _negated in leaves(search.tree))
    parts = []
    for state in search.states:
        if state == ARCHIVED and not (archived or named):
            continue
        found = STATE_SQL[state].replace("lv.", f"{vitality}.")
        if search.conditions is not None:
            conditions = _conditions_sql(search.conditions, search, state, bound, now=now, vitality=vitality)
            found = f"({found} AND {conditions})"
        parts.append(found)
    return f"({' OR '.join(parts) or 'false'})"


def _sql(predicate: Predicate | None, search: TopicSearch, state: str, now: dt.datetime) -> tuple[str, dict[str, Any]]:
    """Return (condition on ``t`` (Topic) and ``lv`` (Vitality), its parameters)."""
    if predicate is None:
        return "true", {}
    bound = Bound()
    moment = f"{bound.bind(now)}::timestamptz"
    return _conditions_sql(predicate, search, state, bound, now=moment, vitality="lv"), bound.values


def _conditions_sql(
    conditions: Predicate, search: TopicSearch, state: str, bound: Bound, *, now: str, vitality: str
) -> str:
    words = WordSearch(settings.MEMSTATE_TEXT_SEARCH_CONFIG, live=state == LIVE, blank=search.blank)
    return predicate_sql(conditions, now=now, bind=bound.bind, vitality=vitality, narrow=False, word_search=words).sql
