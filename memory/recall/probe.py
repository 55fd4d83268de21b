"""The step before the search for candidates: the words of the question, and whether the scope is small."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from memory.models.prepared import rows_prepared
from memory.recall.filters import CandidateFilter

# Of a longer question, the rarest words are kept.
MAX_WORDS = 32
# hnsw.ef_search, pgvector's own default; more if more candidates are requested.
EF_SEARCH = 40
# hnsw.max_scan_tuples, where the index scan gives up. More than ``recall_exact_below`` topics pass the filter, so the
# scan meets enough of them in a store of some millions.
MAX_SCAN_TUPLES = 200_000

_PROBE = """
WITH words AS MATERIALIZED (
    SELECT w.word, coalesce(l.documents, 0) AS documents
    FROM unnest(tsvector_to_array(to_tsvector(%(config)s::text::regconfig, %(q)s::text))) AS w (word)
    LEFT JOIN memory_lexeme l ON l.word = w.word
)
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM memory_topicdocument d {join} WHERE {within} {topics} LIMIT %(limit)s::int + 1) small),
       (SELECT coalesce(array_agg(word ORDER BY word), '{{}}') FROM words),
       (SELECT coalesce(array_agg(documents ORDER BY word), '{{}}') FROM words),
       coalesce((SELECT documents FROM memory_corpustotals WHERE id = 1), 0),
       (SELECT atttypmod FROM pg_attribute
        WHERE attrelid = 'memory_topicvector'::regclass AND attname = 'embedding'),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.max_scan_tuples', '{most}', true),
       set_config('hnsw.ef_search', %(ef_search)s, true),
       set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('synchronous_commit', 'off', true)
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """``words`` are the stems of the question; ``documents`` is the number of live topics with each.

    ``width`` is the dimension of stored vectors.
    """

    small: bool
    words: Sequence[str]
    documents: Sequence[int]
    total: int
    width: int


def question_probe(q: str, wanted: CandidateFilter, *, exact_below: int, candidates: int) -> Probe:
    """Return the words of a question, and whether few topics may answer it. One statement.

    The count stops at ``exact_below``, so its cost does not grow with the store, unless a filter on kinds, categories
    or time leaves so few topics that the whole scope is read. Those few are then compared exactly; an index scan would
    give up before it met them.

    It also makes settings for the transaction: the index scan continues until enough rows pass its filter, plans are
    kept (they do not depend on the parameters), and the commit does not wait for the disk. A query only writes its
    access row: a crash may lose those of the last fraction of a second.
    """
    join, topics = wanted.joined_sql("d")
    sql = _PROBE.format(join=join, within=wanted.within_sql("d"), topics=topics, most=MAX_SCAN_TUPLES)
    parameters = {
        **wanted.parameters(),
        "limit": exact_below,
        "config": settings.MEMSTATE_TEXT_SEARCH_CONFIG,
        "q": q,
        "ef_search": str(min(1000, max(EF_SEARCH, candidates))),
    }
    count, words, documents, total, width, *_settings = rows_prepared(sql, parameters)[0]
    if len(words) > MAX_WORDS:
        rarest = sorted(zip(documents, words, strict=True))[:MAX_WORDS]
        documents, words = [number for number, _word in rarest], [word for _number, word in rarest]
    return Probe(count <= exact_below, words, documents, max(total, *documents) if documents else total, width)
