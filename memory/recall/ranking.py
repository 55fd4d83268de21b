"""Finds and ranks the topics that answer a question, in one statement (docs/recall.md).

The score is ``(ws * meaning + wl * words + time) * decay``, where ``decay`` is the factor of ``ranking_decay``.
Meaning and words are each scaled to 0..1 over the candidates. Meaning is the inner product of the topic's vector and
the question's vector. A share of the scope's mean vector is first subtracted from the question's vector
(``question_sql``). Words is BM25. A word in the topic counts once, even if it is repeated. By default, a word in a
linked topic counts half, and a word in a topic two links away a quarter. These weights are added before BM25
saturates. A topic in a time that the question names gains ``time`` (``TIME_PART``).

The relevance is from 0 to 1 and can be compared between questions. It is the weighted mean of three values: the cosine;
the share of the question's information that the topic and its neighbours contain; the share that all topics together
contain. The information of words is the sum of their IDF. The relevance is at least ``LEAST_OF_COSINE`` times the
cosine, because PostgreSQL knows the forms of words in few languages.
"""

import datetime as dt
import math
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.core.policy_values import Knobs
from memory.embedding.base import Embedder, Vectors
from memory.formulas.salience import SECONDS_PER_DAY
from memory.ingest.bulk import vector_text
from memory.models.formulas_sql import partition_idle_sql, ranking_factor_sql, skipped_sql
from memory.models.prepared import rows_prepared
from memory.recall.filters import CandidateFilter
from memory.recall.probe import Probe
from memory.recall.time_window import window_parameters, window_sql
from memory.text.search_words import is_pair

# The mean vector of this number of topics is close to the mean vector of all topics.
MEAN_OVER = 32
# A mean of few topics resembles each of them too much. The relevance therefore blends it with the usual cosine of
# unrelated texts (``Embedder.unrelated``). The share of the mean of n texts is n² / (n² + USUAL_TEXTS).
USUAL_TEXTS = 128
# In a small store, the IDF of a rare word is unreliable. The relevance assumes this number of further topics without
# the word.
USUAL_TOPICS = 30
# The weights of the three values in the relevance. docs/benchmarks.md has the measurement.
COSINE_PART, COVERED_PART, KNOWN_PART = 0.5, 0.3, 0.2
LEAST_OF_COSINE = 0.9
# What a topic in the time of the question gains in score, as a share of the weights of meaning and words.
TIME_PART = 0.75
# In the relevance, a time is as much information as this number of words that no topic has. A topic in this time covers
# ``TIME_ALONE`` of it, and all of it from the cosine ``TIME_COSINE``: what else happened that day is no answer.
# docs/benchmarks.md has the measurement.
TIME_WORDS, TIME_ALONE, TIME_COSINE = 4.0, 0.5, 0.25
# Words in scripts without spaces have about two letters, so every second pair of letters is a part of two words. A pair
# that no topic has therefore counts half.
UNKNOWN_PAIR = 0.5
# Two topics with at least this cosine may say the same. The best candidates, this number, are compared.
SAME_COSINE = 0.97
COMPARED = 30
# The words of at most this number of neighbours count in each direction of links: those with the highest ids, usually
# the newest.
LENDERS = 12
# In a large store, the search by words reads about this number of topics: those with the rarest words of the question.
LEXICAL_REACH = 400


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate. ``similarity`` is the plain cosine. ``relevance`` is None if nothing can be compared. ``score`` is
    (``meaning`` + ``own_words`` + ``neighbor_words`` + ``time``) * ``decay``."""

    topic_id: uuid.UUID
    similarity: float | None
    relevance: float | None
    score: float
    meaning: float
    own_words: float
    neighbor_words: float
    time: float = 0.0
    decay: float = 1.0
    similar_ids: Sequence[uuid.UUID] = ()
    similar_cosines: Sequence[float] = ()

    @property
    def similar(self) -> Iterator[tuple[uuid.UUID, float]]:
        """(topic, cosine) of the better candidates whose cosine with this one is at least ``SAME_COSINE``, best
        first."""
        return zip(self.similar_ids, self.similar_cosines, strict=True)


def candidates_rank(
    vector: Vectors,
    probe: Probe,
    filters: CandidateFilter,
    *,
    limit: int,
    more: int = 0,
    compare: bool = False,
    knobs: Knobs,
    embedder: Embedder,
    now: dt.datetime,
) -> list[Ranked]:
    """Return the best ``limit`` + ``more`` topics for a question with this ``vector`` and ``probe``, best first. With
    ``compare``, the best ``COMPARED`` of them have ``similar``. One query. In a small scope, or with
    ``include_archived``, all topics are compared. Otherwise, the cost depends on ``recall_candidates`` and
    ``LEXICAL_REACH``, not on the size of the store."""
    rare = _rare_words(probe)
    comparable = probe.width == len(vector)
    parameters = {
        "q": vector_text(vector),
        # If the new model has vectors of another length, no stored vector is comparable until ``reembed`` has run.
        "model": embedder.model_name if comparable else "",
        "unrelated": embedder.unrelated,
        **filters.parameters(),
        "words": [_tsquery(word) for word in probe.words],
        "idf": [math.log(1 + (probe.total - count + 0.5) / (count + 0.5)) for count in probe.documents],
        "known": [count > 0 for count in probe.documents],
        "rare": [word in rare for word in probe.words],
        "counts": [0.0 if named else 1.0 for named in probe.of_times],
        "unknown": [UNKNOWN_PAIR if is_pair(word) else 1.0 for word in probe.words],
        "any_word": " | ".join(_tsquery(word) for word in probe.words),
        "total": probe.total,
        "center": knobs.recall_center,
        "ws": knobs.recall_semantic_weight,
        "wl": knobs.recall_lexical_weight,
        "share": knobs.recall_neighbor_share,
        "k1": knobs.bm25_k1,
        "b": knobs.bm25_b,
        "now": now,
    }
    if probe.times:
        parameters |= window_parameters(probe.times)
    pool = max(knobs.recall_candidates, limit)
    sql = _statement(
        probe.small,
        filters,
        pool=pool,
        limit=limit + more,
        comparable=comparable,
        decay=_decay(knobs),
        timed=bool(probe.times),
        compare=compare,
    )
    return [Ranked(*row) for row in rows_prepared(sql, parameters)]


def _decay(knobs: Knobs) -> str | None:
    """Return the SQL factor of ``ranking_decay`` on ``used``, a row of Vitality; None if the decay is off."""
    if knobs.ranking_decay == "off":
        return None
    return ranking_factor_sql(
        knobs.ranking_decay,
        row="used",
        now="%(now)s::timestamptz",
        # ``knobs.half_life`` is not used, because it is about salience, and infinite under a static policy.
        half_life=knobs.half_life_days * SECONDS_PER_DAY,
        active_half_life=knobs.active_half_life,
        skipped=skipped_sql("used", partition_idle_sql("used.scope_id", "%(now)s::timestamptz")),
    )


def _rare_words(probe: Probe) -> set[str]:
    """Return the rarest words of the question, which select the candidates. Together, they occur in at most about
    ``LEXICAL_REACH`` topics."""
    chosen: set[str] = set()
    topics = 0
    for count, word in sorted(zip(probe.documents, probe.words, strict=True)):
        topics += count
        if topics > LEXICAL_REACH:
            break
        chosen.add(word)
    return chosen


def _tsquery(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


# Archived neighbours are left out before the LIMIT, so that they do not replace live ones.
_LINKED_SQL = f"""
    (SELECT l.target_id AS topic_id
     FROM memory_link l JOIN memory_topicdocument n ON n.topic_id = l.target_id AND n.live
     WHERE l.source_id = {{topic}} AND l.target_id <> {{topic}} ORDER BY l.target_id DESC LIMIT {LENDERS})
    UNION ALL
    (SELECT l.source_id FROM memory_link l JOIN memory_topicdocument n ON n.topic_id = l.source_id AND n.live
     WHERE l.target_id = {{topic}} AND l.source_id <> {{topic}} ORDER BY l.source_id DESC LIMIT {LENDERS})
"""

_BM25 = (
    "{times} * (%(k1)s::float8 + 1) / nullif({times} + %(k1)s::float8"
    " * (1 - %(b)s::float8 + %(b)s::float8 * s.length / nullif(s.usual, 0)), 0)"
)


def question_sql(vectors: str) -> str:
    """Return the common table expressions ``mean`` and ``question``. ``mean.vector`` is the mean vector of topics that
    meet the condition ``vectors`` on ``v``, a row of TopicVector. ``question.asked`` is the vector ``%(q)s``.
    ``question.vector`` is ``asked`` minus the share ``%(center)s`` of the mean vector."""
    return f"""mean AS MATERIALIZED (
    SELECT avg(s.embedding) AS vector, count(*) AS texts FROM (
        SELECT v.embedding FROM memory_topicvector v
        WHERE {vectors} AND v.model = %(model)s::text AND v.embedding IS NOT NULL
        ORDER BY v.scope_id, v.topic_id LIMIT {MEAN_OVER}
    ) s
), question AS MATERIALIZED (
    SELECT asked, coalesce(
               asked - mean.vector * array_fill(%(center)s::real, ARRAY[vector_dims(asked)])::vector, asked
           ) AS vector
    FROM mean, (SELECT (%(q)s::text)::vector AS asked OFFSET 0) q
)"""


def _statement(
    small: bool,
    filters: CandidateFilter,
    *,
    pool: int,
    limit: int,
    comparable: bool,
    decay: str | None,
    timed: bool,
    compare: bool,
) -> str:
    vectors, documents = filters.within_sql("v"), filters.within_sql("d")
    vector_join, vector_topics = filters.joined_sql("v")
    document_join, document_topics = filters.joined_sql("d")
    # Topics that were archived after ``as_of`` are in no index of recall, so they are compared row by row.
    since, since_by_meaning, since_by_word = "", "", ""
    seen_vectors, seen_documents = vectors, documents
    if filters.since:
        since = f"since AS MATERIALIZED ({filters.since_sql()}), "
        since_by_meaning = f"""UNION ALL (
        SELECT v.topic_id FROM since JOIN memory_topicvector v USING (topic_id)
        WHERE v.model = %(model)s::text AND v.embedding IS NOT NULL
        ORDER BY (v.embedding <#> (SELECT vector FROM question)) + 0 LIMIT {pool if comparable else 0:d})"""
        since_by_word = f"""UNION ALL
    SELECT d.topic_id, w.place, d.length FROM since JOIN memory_topicdocument d USING (topic_id)
    JOIN words w ON d.document @@ w.word {"" if small else "AND w.rare"}"""
        seen_vectors = f"({vectors} OR v.topic_id IN (SELECT topic_id FROM since))"
        seen_documents = f"({documents} OR d.topic_id IN (SELECT topic_id FROM since))"
    # In a small scope, "+ 0" keeps the planner from using the vector index, and this statement counts the words. In a
    # large scope, the probe has counted them.
    order = "(v.embedding <#> (SELECT vector FROM question))" + (" + 0" if small else "")
    hits = (
        f"""matched AS MATERIALIZED (
    SELECT d.topic_id, d.document, d.length FROM memory_topicdocument d {document_join}
    WHERE d.document @@ (%(any_word)s::text)::tsquery AND {documents} {document_topics}
), hits AS MATERIALIZED (
    SELECT m.topic_id, w.place, m.length FROM matched m JOIN words w ON m.document @@ w.word {since_by_word}
)"""
        if small
        else f"""hits AS MATERIALIZED (
    SELECT x.topic_id, w.place, x.length FROM words w CROSS JOIN LATERAL (
        SELECT d.topic_id, d.length FROM memory_topicdocument d {document_join}
        WHERE d.document @@ w.word AND {documents} {document_topics}
    ) x
    WHERE w.rare {since_by_word}
)"""
    )
    idf = "ln(1 + (n.total - c.documents + 0.5) / (c.documents + 0.5))" if small else "w.idf"
    # If the question names a time in which topics lie, its words say nothing beyond the time.
    counts_word = "CASE WHEN EXISTS (SELECT FROM span) THEN counts ELSE 1 END" if timed else "1"
    # The IDF of all words of the question, including those that no topic has.
    information = (
        f"SELECT place, {counts_word} * ln(1 + (n.total + {USUAL_TOPICS} - coalesce(c.documents, 0) + 0.5)"
        " / (coalesce(c.documents, 0) + 0.5)) * CASE WHEN c.documents IS NULL THEN unknown ELSE 1 END AS idf,"
        " c.documents IS NOT NULL AS known FROM words LEFT JOIN c USING (place) CROSS JOIN n"
        if small
        else f"SELECT place, {counts_word} * idf * CASE WHEN known THEN 1 ELSE unknown END AS idf, known FROM words"
    )
    counts = (
        f"""
    , n AS (SELECT count(*)::float8 AS total FROM memory_topicdocument d WHERE {seen_documents})
    , c AS (SELECT place, count(*)::float8 AS documents FROM hits GROUP BY place)
    , terms AS (SELECT w.place, w.word, {idf} AS idf FROM words w JOIN c USING (place) CROSS JOIN n)
    """
        if small
        else f", terms AS (SELECT w.place, w.word, {idf} AS idf FROM words w)"
    )
    # Topics in the time that the question names: the nearest of them are candidates. If there are none, the question is
    # read as if it named no time.
    window = by_time = timed_topics = time_information = ""
    in_time = of_time = "0::float8"
    if timed:
        window = f"{window_sql(filters)}, "
        by_time = f"""UNION (
        SELECT v.topic_id FROM in_time JOIN memory_topicvector v USING (topic_id)
        WHERE v.model = %(model)s::text AND v.embedding IS NOT NULL
        ORDER BY (v.embedding <#> (SELECT vector FROM question)) + 0 LIMIT {pool if comparable else 0:d})"""
        timed_topics = """, timed AS MATERIALIZED (
    SELECT p.topic_id FROM pool p JOIN memory_topic t ON t.id = p.topic_id
    WHERE EXISTS (SELECT FROM span s WHERE t.created_at >= s.begin AND t.created_at < s."end")
    UNION SELECT topic_id FROM in_time
)"""
        total = f"n.total + {USUAL_TOPICS}" if small else "%(total)s::float8"
        time_information = f"""UNION ALL
    SELECT 0, {TIME_WORDS} * ln(1 + ({total} + 0.5) / 0.5), false{" FROM n" if small else ""}
    WHERE EXISTS (SELECT FROM span)"""
        in_time = "(p.topic_id IN (SELECT topic_id FROM timed))::int::float8"
        of_time = f"{in_time} * (SELECT coalesce(max(idf), 0) FROM information WHERE place = 0)"
    used = "" if decay is None else "JOIN memory_vitality used ON used.topic_id = p.topic_id"
    score = "meaning + words + time" if decay is None else "(meaning + words + time) * decay"
    return f"""
WITH {question_sql(vectors)}, {since}{window}words AS MATERIALIZED (
    SELECT place, word::tsquery AS word, idf, known, rare, unknown, counts
    FROM unnest(%(words)s::text[], %(idf)s::float8[], %(known)s::bool[], %(rare)s::bool[], %(unknown)s::float8[],
                %(counts)s::float8[]) WITH ORDINALITY AS w (word, idf, known, rare, unknown, counts, place)
), by_meaning AS MATERIALIZED (
    (SELECT v.topic_id FROM memory_topicvector v {vector_join}
     WHERE {vectors} AND v.model = %(model)s::text AND v.embedding IS NOT NULL {vector_topics}
     ORDER BY {order} LIMIT {pool if comparable else 0:d}) {since_by_meaning}
), {hits}{counts}
, information AS MATERIALIZED ({information} {time_information}), by_word AS MATERIALIZED (
    SELECT h.topic_id FROM hits h JOIN terms USING (place)
    GROUP BY h.topic_id, h.length ORDER BY sum(terms.idf) DESC, h.length, h.topic_id LIMIT {pool:d}
), core AS MATERIALIZED (
    SELECT topic_id FROM by_meaning UNION SELECT topic_id FROM by_word {by_time}
), core_links AS MATERIALIZED (
    SELECT core.topic_id AS from_id, x.topic_id
    FROM core CROSS JOIN LATERAL ({_LINKED_SQL.format(topic="core.topic_id")}) x
), pool AS MATERIALIZED (
    -- A topic without a vector of this model is ranked by its words alone.
    SELECT p.topic_id,
           CASE WHEN v.model = %(model)s::text THEN -(v.embedding <#> question.vector) END AS meaning,
           CASE WHEN v.model = %(model)s::text THEN -(v.embedding <#> question.asked) END AS similarity,
           -(v.embedding <#> mean.vector) AS common
    FROM (SELECT topic_id FROM core UNION SELECT topic_id FROM core_links) p
    JOIN memory_topicvector v ON v.topic_id = p.topic_id AND {seen_vectors}
    {vector_join}
    CROSS JOIN question CROSS JOIN mean
    WHERE true {vector_topics}
){timed_topics}, links AS MATERIALIZED (
    -- The more links a topic has, the less each counts. The parts of one topic add up to at most two.
    SELECT from_id, topic_id, 1 / greatest(1, count(*) OVER (PARTITION BY from_id) / 2::float8) AS part
    FROM (
        SELECT from_id, topic_id FROM core_links
        UNION
        SELECT p.topic_id, x.topic_id
        FROM (SELECT topic_id FROM pool EXCEPT SELECT topic_id FROM core) p
        CROSS JOIN LATERAL ({_LINKED_SQL.format(topic="p.topic_id")}) x
    ) l
), near AS (
    SELECT topic_id AS for_id, topic_id, 1::float8 AS share FROM pool
    UNION ALL
    SELECT from_id, topic_id, %(share)s::float8 * part FROM links
    UNION ALL
    SELECT a.from_id, b.topic_id, %(share)s::float8 ^ 2 * a.part * b.part
    FROM links a JOIN links b ON b.from_id = a.topic_id AND b.topic_id <> a.from_id
), lent AS MATERIALIZED (
    SELECT for_id, topic_id, max(share) AS share FROM near WHERE share > 0 GROUP BY for_id, topic_id
), speaking AS MATERIALIZED (
    SELECT d.topic_id, d.document, d.length FROM (SELECT DISTINCT topic_id FROM lent) x
    JOIN memory_topicdocument d ON d.topic_id = x.topic_id AND {seen_documents}
), said AS MATERIALIZED (
    SELECT s.topic_id, terms.place, terms.idf FROM speaking s JOIN terms ON s.document @@ terms.word
), sizes AS MATERIALIZED (
    SELECT lent.for_id, sum(lent.share * s.length) AS length, avg(sum(lent.share * s.length)) OVER () AS usual
    FROM lent JOIN speaking s USING (topic_id) GROUP BY lent.for_id
), counted AS (
    SELECT lent.for_id, said.place, said.idf, sum(lent.share) AS times,
           sum(lent.share) FILTER (WHERE lent.topic_id = lent.for_id) AS own
    FROM lent JOIN said USING (topic_id) GROUP BY lent.for_id, said.place, said.idf
), worded AS (
    SELECT c.for_id AS topic_id,
           sum(c.idf * {_BM25.format(times="c.times")}) AS words,
           sum(c.idf * {_BM25.format(times="coalesce(c.own, 0)")}) AS own,
           sum(i.idf) AS covered
    FROM counted c JOIN sizes s USING (for_id) JOIN information i USING (place) GROUP BY c.for_id
), scaled AS (
    SELECT p.topic_id, p.similarity, p.common,
           %(ws)s::float8 * coalesce((p.meaning - min(p.meaning) OVER ())
               / nullif(max(p.meaning) OVER () - min(p.meaning) OVER (), 0), 0) AS meaning,
           %(wl)s::float8 * coalesce(w.own / nullif(max(w.words) OVER (), 0), 0) AS own,
           %(wl)s::float8 * coalesce(w.words / nullif(max(w.words) OVER (), 0), 0) AS words,
           {TIME_PART} * (%(ws)s::float8 + %(wl)s::float8) * {in_time} AS time,
           coalesce(w.covered, 0) AS covered, {of_time} AS of_time,
           {decay or "1::float8"} AS decay
    FROM pool p LEFT JOIN worded w USING (topic_id) {used}
), best AS MATERIALIZED (
    SELECT *, {score} AS score FROM scaled ORDER BY {score} DESC, topic_id LIMIT {limit:d}
), common AS MATERIALIZED (
    -- The inner product of the question, and of the mean itself, with the mean blended with usual texts.
    SELECT share, share * coalesce(-(mean.vector <#> question.asked), 0) + (1 - share) * %(unrelated)s::float8 AS asked,
           share ^ 2 * coalesce(-(mean.vector <#> mean.vector), 0) + (1 - share ^ 2) * %(unrelated)s::float8 AS mean,
           i.total, i.known
    FROM mean CROSS JOIN question
    CROSS JOIN LATERAL (SELECT mean.texts ^ 2 / (mean.texts ^ 2 + {USUAL_TEXTS})::float8 AS share) s
    CROSS JOIN (
        SELECT nullif(sum(idf), 0) AS total, coalesce(sum(idf) FILTER (WHERE known), 0) AS known FROM information
    ) i
), compared AS (
    SELECT b.*, c.total, greatest(c.known, b.covered) AS known_words,
           CASE WHEN b.similarity IS NOT NULL THEN greatest(0, (b.similarity - x.common - c.asked + c.mean)
               / sqrt(nullif(greatest(0, (1 - 2 * c.asked + c.mean) * (1 - 2 * x.common + c.mean)), 0))) END AS cosine
    FROM best b CROSS JOIN common c CROSS JOIN LATERAL (
        SELECT c.share * coalesce(b.common, 0) + (1 - c.share) * %(unrelated)s::float8 AS common
    ) x
), shares AS (
    -- Of the time of the question, only the topics in this time know something.
    SELECT c.*, (c.covered + t.covered) / c.total AS covers, (c.known_words + t.covered) / c.total AS known
    FROM compared c CROSS JOIN LATERAL (
        SELECT c.of_time * ({TIME_ALONE} + {1 - TIME_ALONE} * least(1, coalesce(c.cosine, 0) / {TIME_COSINE}))
               AS covered
    ) t
)
, placed AS MATERIALIZED (
    SELECT b.topic_id, v.embedding, b.place FROM (
        SELECT topic_id, row_number() OVER (ORDER BY score DESC, topic_id) AS place FROM best
    ) b JOIN memory_topicvector v USING (topic_id)
    WHERE b.place <= {COMPARED if compare else 0} AND v.model = %(model)s::text AND v.embedding IS NOT NULL
), alike AS (
    SELECT x.topic_id, array_agg(y.topic_id ORDER BY y.place) AS ids,
           array_agg(-(x.embedding <#> y.embedding) ORDER BY y.place) AS cosines
    FROM placed x JOIN placed y ON y.place < x.place AND -(x.embedding <#> y.embedding) >= {SAME_COSINE}
    GROUP BY x.topic_id
)
SELECT topic_id, similarity,
       CASE WHEN coalesce(cosine, covers) IS NOT NULL THEN least(1, greatest({LEAST_OF_COSINE} * cosine,
           {COSINE_PART} * coalesce(cosine, covers) + {COVERED_PART} * coalesce(covers, cosine)
           + {KNOWN_PART} * coalesce(known, cosine))) END,
       score, meaning, own, words - own, time, decay,
       coalesce(alike.ids, '{{}}'), coalesce(alike.cosines, '{{}}')
FROM shares LEFT JOIN alike USING (topic_id) ORDER BY score DESC, topic_id
"""
