"""Translates a predicate into SQL: one condition on the rows of a topic, with bound parameters."""

import datetime as dt
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from memory.core.callers import caller_names
from memory.core.patterns import pattern_to_postgres
from memory.models.formulas_sql import partition_idle_sql, salience_effective_sql, skipped_sql, written_sql
from memory.predicates.binding import Bind, path_sql
from memory.predicates.tree import RUNGS, AllOf, AnyOf, Comparison, Not, Phrase, Predicate, Word, value_words
from memory.text.search_words import words_for_search, words_for_websearch

_EQUAL = {"is": "="}
# A longer age is an earlier time, so the comparison is reversed.
_EARLIER = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

# The conditions on texts of a topic.
_TEXTS = ("title", "summary", "text", "field")
# The current values of a topic's fields.
_VALUES = (
    "SELECT 1 FROM memory_field pf JOIN memory_revision pr ON pr.field_id = pf.id AND pr.seq = pf.last_seq "
    "WHERE pf.topic_id ="
)
# A value after the name of its field, because the name may say what the value is about: "allergies: penicillin".
_NAMED_VALUE = "(pf.name || ': ' || pr.value)"


# The accents and vowel points that ``memory.text.folding`` ignores, after decomposition.
_ACCENTS = (
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u0655\u0670\u06d6-\u06dc]"
)


def _folded_sql(text: str) -> str:
    """Return the expression of a text without case, width and accents, as questions and documents are compared."""
    return f"regexp_replace(lower(normalize({text}, NFKD)), '{_ACCENTS}', '', 'g')"


@dataclass(frozen=True, slots=True)
class PredicateSql:
    """A boolean expression, and whether it refers to the row of Topic."""

    sql: str
    needs_topic: bool


@dataclass(frozen=True, slots=True)
class WordSearch:
    """How to search for words. ``config`` is the text search configuration, which ignores the words in ``blank``. If
    ``live`` is true, the indexed documents of live topics are searched, otherwise the documents of all other topics."""

    config: str
    live: bool
    blank: Container[str] = ()


def written_by_sql(topic: str, name: str, bind: Bind) -> str:
    """Return the condition that a caller with this name wrote, extended or edited a topic. ``topic`` is an expression
    for the id of the topic."""
    wrote = f"pe.actor = ANY({bind(caller_names(name))}::text[]) AND {written_sql('pe')}"
    return f"(EXISTS (SELECT 1 FROM memory_auditevent pe WHERE pe.topic_id = {topic} AND {wrote}))"


def words_sql(topic: str, text: str, bind: Bind) -> str:
    """Return the condition that the title, summary or values of a topic contain the words and quoted phrases of
    ``text``, and none that follows a minus. ``topic`` is an expression for the id of the topic."""
    asked = f"{bind(settings.MEMSTATE_TEXT_SEARCH_CONFIG)}::text::regconfig, {bind(words_for_websearch(text))}::text"
    documents = f"memory_topicdocument pd WHERE pd.topic_id = {topic}"
    return f"(EXISTS (SELECT 1 FROM {documents} AND pd.document @@ websearch_to_tsquery({asked})))"


def text_sql(text: str, bind: Bind) -> str:
    """Return the condition that topic ``t`` contains the words of ``text`` (see ``words_sql``), or ``text`` itself as a
    part of its title, its summary or a value."""
    part = predicate_sql(Comparison("text", "contains", text), now="", bind=bind, narrow=False).sql
    return f"({words_sql('t.id', text, bind)} OR {part})"


def predicate_sql(
    predicate: Predicate,
    *,
    now: str,
    bind: Bind,
    vitality: str = "v",
    topic: str = "t",
    narrow: bool = True,
    score_sql: str = "",
    skipped: str = "",
    categories_added: Mapping[str, str] | None = None,
    word_search: WordSearch | None = None,
    topic_id: str = "",
) -> PredicateSql:
    """Return ``predicate`` as SQL over aliases of Vitality and Topic. No queries. ``now`` is an expression of type
    timestamptz; ``bind`` registers a value and returns its placeholder. If ``narrow`` is true, columns that both tables
    have are read from Vitality. Otherwise they are read from Topic, so that lists use the indexes of Topic.
    ``score_sql`` is required for predicates on the score, ``word_search`` for words. ``skipped`` is an expression for
    the idle seconds of the partition since the last use. If it is empty, these seconds are computed for ``salience``
    and ignored for ``idle``. ``categories_added`` maps each category that other rules of the run add to the SQL
    condition under which a rule adds it. ``topic_id`` is the id of the topic if all rows are states of one topic; its
    texts are then read once. A null counts as false, so ``Not`` of a null is true."""
    compiler = _Compiler(
        vitality, topic, narrow, now, score_sql, skipped, bind, categories_added or {}, word_search, topic_id
    )
    return PredicateSql(compiler.compile(predicate), compiler.needs_topic)


@dataclass(slots=True)
class _Compiler:
    v: str
    t: str
    narrow: bool
    now: str
    score_sql: str
    skipped: str
    bind: Bind
    categories_added: Mapping[str, str]
    word_search: WordSearch | None
    topic_id: str
    needs_topic: bool = False

    def compile(self, predicate: Predicate) -> str:
        match predicate:
            case AllOf(parts):
                return f"({' AND '.join(self.compile(part) for part in parts)})"
            case AnyOf(parts):
                return f"({' OR '.join(self.compile(part) for part in parts)})"
            case Not(part):
                # IS NOT TRUE instead of NOT, so that the opposite of null is true.
                return f"({self.compile(part)} IS NOT TRUE)"
            case Word(text):
                return self._word(text)
            case Phrase(text):
                return self._phrase(text)
            case Comparison(field, op, value):
                condition = self._comparison(predicate, field, op, value)
                if self.topic_id and field in _TEXTS:
                    # A subquery that does not depend on the row is computed once.
                    source = f"memory_topic {self.t} JOIN memory_vitality {self.v} ON {self.v}.topic_id = {self.t}.id"
                    return f"(SELECT {condition} FROM {source} WHERE {self.t}.id = {self.topic_id})"
                return condition

    def _comparison(self, comparison: Comparison, field: str, op: str, value: Any) -> str:
        match field:
            case "id" if op == "in":
                return f"({self._of('id', 'topic_id')} = ANY({self.bind(list(value))}::uuid[]))"
            case "id":
                low, high = (f"{self.bind(value.ljust(32, digit))}::uuid" for digit in "0f")
                return f"({self._of('id', 'topic_id')} BETWEEN {low} AND {high})"
            case "scope":
                return self._scope(op, value)
            case "category":
                return self._categories(value_words(comparison))
            case "kind":
                return self._words(self._of("kind"), comparison)
            case "provenance":
                return self._words(self._topic("provenance"), comparison)
            case "by":
                return self._by(str(value))
            case "rung":
                return self._rungs(op, value_words(comparison))
            case "pinned":
                return f"({self.v}.pinned)" if value else f"(NOT {self.v}.pinned)"
            case "live":
                return f"({self.v}.live)"
            case "released":
                return f"({self._topic('released_at')} IS NOT NULL)"
            case "age":
                return self._elapsed(self._of("created_at"), op, value)
            case "idle":
                used = f"coalesce({self.v}.last_retrieved_at, {self.v}.created_at)"
                if self.skipped not in ("", "0"):
                    used = f"({used} + {self.skipped} * interval '1 second')"
                return self._elapsed(used, op, value)
            case "created":
                return self._day(self._of("created_at"), op, value)
            case "used" if value is None:
                return f"({self.v}.retrieval_count = 0)"
            case "used":
                return self._day(f"{self.v}.last_retrieved_at", op, value)
            case "retrievals":
                return f"({self.v}.retrieval_count {_EQUAL.get(op, op)} {self.bind(value)}::bigint)"
            case "score":
                return f"(({self.score_sql}) {_EQUAL.get(op, op)} {self.bind(value)}::float8)"
            case "salience":
                skipped = self.skipped or skipped_sql(self.v, partition_idle_sql(f"{self.v}.scope_id", self.now))
                effective = salience_effective_sql(self.v, self.now, skipped=skipped)
                return f"({effective} {_EQUAL.get(op, op)} {self.bind(value)}::float8)"
            case "field":
                return self._field(op, *value)
            case "text":
                parts = [self._text(column, op, value) for column in ("title", "summary")]
                parts.append(f"EXISTS ({_VALUES} {self._topic('id')} AND {self._contains(_NAMED_VALUE, op, value)})")
                return f"({' OR '.join(parts)})"
            case column:
                return self._text(column, op, value)

    def _topic(self, column: str) -> str:
        self.needs_topic = True
        return f"{self.t}.{column}"

    def _of(self, column: str, narrow_column: str = "") -> str:
        """Return a column that both tables have. ``narrow_column`` is its name in Vitality if it differs."""
        return f"{self.v}.{narrow_column or column}" if self.narrow else self._topic(column)

    def _scope(self, op: str, path: str) -> str:
        if op == "within" and path == "/":
            return "(true)"
        wanted = f"path = {self.bind(path)}::text" if op == "is" else path_sql("path", path, self.bind)
        return f"({self._of('scope_id')} = ANY(ARRAY(SELECT id FROM memory_scope WHERE {wanted})))"

    def _categories(self, categories: tuple[str, ...]) -> str:
        stored = f"{self._topic('categories')} && {self.bind(list(categories))}::varchar[]"
        added = (self.categories_added[word] for word in categories if word in self.categories_added)
        return f"({' OR '.join([stored, *added])})"

    def _by(self, name: str) -> str:
        return written_by_sql(self._of("id", "topic_id"), name, self.bind)

    def _words(self, column: str, comparison: Comparison) -> str:
        words = value_words(comparison)
        if len(words) == 1:
            return f"({column} {'=' if comparison.op in ('is', 'in') else '<>'} {self.bind(words[0])}::text)"
        found = f"{column} = ANY({self.bind(list(words))}::text[])"
        return f"({found})" if comparison.op == "in" else f"(NOT {found})"

    def _rungs(self, op: str, rungs: tuple[str, ...]) -> str:
        places = [RUNGS.index(word) for word in rungs]
        found = f"= {places[0]:d}" if len(places) == 1 else f"= ANY({self.bind(places)}::smallint[])"
        return f"({'' if op in ('is', 'in') else 'NOT '}{self.v}.rung {found})"

    def _elapsed(self, moment: str, op: str, seconds: float) -> str:
        # The column is alone on one side, so that an index can be used and the other side is computed once.
        ago = f"make_interval(secs => {self.bind(float(seconds))}::float8)"
        return f"({moment} {_EARLIER[op]} {self.now} - {ago})"

    def _day(self, moment: str, op: str, day: dt.date) -> str:
        start = dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC)
        first, after = (f"{self.bind(at)}::timestamptz" for at in (start, start + dt.timedelta(days=1)))
        match op:
            case "<" | ">=":
                return f"({moment} {op} {first})"
            case "<=":
                return f"({moment} < {after})"
            case ">":
                return f"({moment} >= {after})"
            case _:
                return f"({moment} >= {first} AND {moment} < {after})"

    def _field(self, op: str, name: str, value: str | None = None) -> str:
        wanted = f"{self._of('id', 'topic_id')} AND pf.name = {self.bind(name)}::text"
        if value is None:
            return f"(EXISTS (SELECT 1 FROM memory_field pf WHERE pf.topic_id = {wanted}))"
        if op in ("matches", "contains"):
            return f"(EXISTS ({_VALUES} {wanted} AND {self._contains('pr.value', op, value)}))"
        return f"(EXISTS ({_VALUES} {wanted} AND lower(pr.value) = lower({self.bind(value)}::text)))"

    def _text(self, column: str, op: str, value: str) -> str:
        return self._contains(self._topic(column), op, value)

    def _contains(self, text: str, op: str, value: str) -> str:
        if op == "matches":
            return f"({text} ~* {self.bind(pattern_to_postgres(value))}::text)"
        return f"(strpos(lower({text}), lower({self.bind(value)}::text)) > 0)"

    def _word(self, text: str) -> str:
        return "true" if text in self._searching.blank else self._document("plainto_tsquery", text)

    def _phrase(self, text: str) -> str:
        # The words are searched first, with the index if there is one. The exact text is compared second.
        by_word = [] if text in self._searching.blank else [self._document("phraseto_tsquery", text)]
        part = _folded_sql(f"{self.bind(text)}::text")
        texts = [f"strpos({_folded_sql(self._topic(column))}, {part}) > 0" for column in ("title", "summary")]
        value = f"strpos({_folded_sql('pr.value')}, {part}) > 0"
        texts.append(f"EXISTS ({_VALUES} {self._of('id', 'topic_id')} AND {value})")
        verbatim = f"({' OR '.join(texts)})"
        return f"({' AND '.join([*by_word, verbatim])})"

    @property
    def _searching(self) -> WordSearch:
        assert self.word_search is not None, "Rules have no words."
        return self.word_search

    def _document(self, function: str, text: str) -> str:
        search = self._searching
        asked = f"{function}({self.bind(search.config)}::text::regconfig, {self.bind(words_for_search(text))}::text)"
        documents = "pd.live" if search.live else "NOT pd.live"
        return (
            f"({self._of('id', 'topic_id')} IN (SELECT pd.topic_id FROM memory_topicdocument pd WHERE {documents} "
            f"AND pd.document @@ {asked}))"
        )
