"""Prepares the search for candidates: finds the words of the question, and whether the scope is small."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from memory.core.scopes import ROOT
from memory.models.prepared import rows_prepared
from memory.recall.filters import CandidateFilter
from memory.stores.citus import VERSION_SQL, settings_send
from memory.text.named_times import NamedTime, times_named
from memory.text.search_words import words_for_search

# A search uses at most this number of words of a question: the rarest ones.
MAX_WORDS = 32
# hnsw.ef_search: pgvector's default. Raised if more candidates are requested.
EF_SEARCH = 40
# hnsw.max_scan_tuples: the index scan ends after this number of rows. The index is used only if more than
# ``recall_exact_below`` topics pass the filter, so a scan of this length finds enough of them in a store of some
# million topics.
MAX_SCAN_TUPLES = 200_000

# Word counts in a scope are estimated from its first and its last topics, this number of each.
SAMPLE = 1_000
# The count of topics without a vector ends at this number.
MOST_WAITING = 10_000
# The estimate treats a larger scope as one with this number of topics.
MAX_COUNTED = 20_000

_OF_STORE_SQL = """
    SELECT w.word, coalesce(l.documents, 0) AS documents
    FROM asked w LEFT JOIN memory_lexeme l ON l.word = w.word
"""
_TOTAL_OF_STORE = "coalesce((SELECT documents FROM memory_corpustotals WHERE id = 1), 0)"

# The weight of a word in a scope depends only on topics of this scope. Otherwise, a key that is bound to the scope
# could infer the words of other scopes from the scores. The sample is not read if the counts are not needed.
_SAMPLE = r"""
, sample AS MATERIALIZED (
    SELECT s.document FROM (
        (SELECT d.topic_id FROM memory_topicdocument d WHERE {within} ORDER BY d.scope_id, d.topic_id LIMIT {sample})
        UNION
        (SELECT d.topic_id FROM memory_topicdocument d WHERE {within}
         ORDER BY d.scope_id DESC, d.topic_id DESC LIMIT {sample})
    ) x JOIN memory_topicdocument s ON s.topic_id = x.topic_id
    WHERE (SELECT number FROM small) > %(limit)s::int OR (SELECT count(*) FROM asked) > {words}
), size AS MATERIALIZED (
    SELECT greatest(1, count(*)) AS sampled,
           (SELECT count(*) FROM (
               SELECT 1 FROM memory_topicdocument d WHERE {within} AND EXISTS (SELECT FROM sample) LIMIT {most_counted}
           ) y) AS total
    FROM sample
)"""
_OF_SCOPE_SQL = r"""
    SELECT w.word, (
        SELECT ceil(count(*) * max(size.total) / max(size.sampled)::float8) FROM sample s CROSS JOIN size
        WHERE s.document @@ ('$' || replace(replace(w.word, '\', '\\'), '$', '$$') || '$')::tsquery
    )::bigint AS documents FROM asked w
""".replace("$", "''")
_TOTAL_OF_SCOPE_SQL = "(SELECT total FROM size)"

_PROBE_SQL = """
WITH asked AS MATERIALIZED (
    SELECT w.word FROM unnest(tsvector_to_array(to_tsvector(%(config)s::text::regconfig, %(q)s::text))) AS w (word)
), rest AS MATERIALIZED (
    SELECT tsvector_to_array(to_tsvector(%(config)s::text::regconfig, %(rest)s::text)) AS words
), small AS MATERIALIZED (
    SELECT count(*) AS number FROM (
        SELECT 1 FROM memory_topicdocument d {join} WHERE {within} {topics} LIMIT %(limit)s::int + 1
    ) x
){sample}, words AS MATERIALIZED ({counted})
SELECT (SELECT number FROM small),
       (SELECT coalesce(array_agg(word ORDER BY word), '{{}}') FROM words),
       (SELECT coalesce(array_agg(coalesce(documents, 0) ORDER BY word), '{{}}') FROM words),
       (SELECT coalesce(array_agg(w.word <> ALL(rest.words) IS TRUE ORDER BY word), '{{}}') FROM words w, rest),
       {total},
       (SELECT count(*) FROM (
           SELECT 1 FROM memory_topicvector d WHERE embedding IS NULL AND {within} LIMIT {most_waiting}
       ) z),
       (SELECT atttypmod FROM pg_attribute
        WHERE attrelid = 'memory_topicvector'::regclass AND attname = 'embedding'),
       {version},
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.max_scan_tuples', '{most}', true),
       set_config('hnsw.ef_search', %(ef_search)s, true),
       CASE WHEN {version} IS NULL THEN set_config('plan_cache_mode', 'force_generic_plan', true) END,
       set_config('synchronous_commit', 'off', true)
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """``words`` are the stems of the question. ``documents`` is the number of live topics with each word, ``total`` the
    number of all live topics; both are estimates within a scope. ``of_times`` says which words only name one of
    ``times``, the times that the question names. ``waiting`` is the number of topics without a vector, at most
    ``MOST_WAITING``. ``width`` is the dimension of stored vectors."""

    small: bool
    words: Sequence[str]
    documents: Sequence[int]
    of_times: Sequence[bool]
    total: int
    waiting: int
    width: int
    times: Sequence[NamedTime] = ()


def index_settings(candidates: int) -> dict[str, str]:
    """Return the settings of the database for a search of the vector index."""
    return {
        "hnsw.iterative_scan": "strict_order",
        "hnsw.max_scan_tuples": str(MAX_SCAN_TUPLES),
        "hnsw.ef_search": str(min(1000, max(EF_SEARCH, candidates))),
    }


def question_probe(
    q: str, filters: CandidateFilter, *, exact_below: int, candidates: int, today: dt.date | None = None
) -> Probe:
    """Return the words of a question, the times that it names relative to ``today`` (no times if it is None), and
    whether only few topics can be candidates (``small``). One statement. It stops counting topics at ``exact_below``.
    If fewer topics pass the filter, the search compares all of them, because a scan of the vector index could stop
    before it has found them. The statement also sets options of the transaction. One is ``synchronous_commit = off``:
    a crash may lose the latest rows of the access log. On a cluster, up to five short statements send the options to
    the node of the store. Query plans are not kept there, because the cluster cannot plan without the parameters."""
    join, topics = filters.joined_sql("d")
    within = filters.within_sql("d")
    sample = _SAMPLE.format(within=within, sample=SAMPLE, words=MAX_WORDS, most_counted=MAX_COUNTED)
    of_store = filters.scope == ROOT
    sql = _PROBE_SQL.format(
        join=join,
        within=within,
        topics=topics,
        sample="" if of_store else sample,
        counted=_OF_STORE_SQL if of_store else _OF_SCOPE_SQL,
        total=_TOTAL_OF_STORE if of_store else _TOTAL_OF_SCOPE_SQL,
        most=MAX_SCAN_TUPLES,
        most_waiting=MOST_WAITING,
        version=VERSION_SQL,
    )
    search = index_settings(candidates)
    named = times_named(q, today=today) if today is not None else None
    parameters = {
        **filters.parameters(),
        "limit": exact_below,
        "config": settings.MEMSTATE_TEXT_SEARCH_CONFIG,
        "q": words_for_search(q),
        "rest": words_for_search(named.rest) if named is not None and named.times else None,
        "ef_search": search["hnsw.ef_search"],
    }
    count, words, documents, of_times, total, waiting, width, cluster, *_settings = rows_prepared(sql, parameters)[0]
    if cluster:
        settings_send({"synchronous_commit": "off", **(search if count > exact_below else {})})
    if len(words) > MAX_WORDS:
        rarest = sorted(zip(documents, words, of_times, strict=True))[:MAX_WORDS]
        documents, words, of_times = (list(column) for column in zip(*rarest, strict=True))
    total = max(total, *documents) if documents else total
    return Probe(count <= exact_below, words, documents, of_times, total, waiting, width, named.times if named else ())
