"""The entry point of recall: answers a question with bundles and writes one access row."""

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import transaction

from memory.access.principal import Principal
from memory.core.policy_values import Knobs
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.models.replica import on_primary
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from memory.recall.bundles import BundleOptions, bundles_load
from memory.recall.candidates import Ranked, candidates_rank
from memory.recall.filters import CandidateFilter
from memory.recall.probe import question_probe
from memory.recall.reinforcement import retrieval_record
from memory.recall.replies import QueryReply
from memory.recall.request import QueryRequest
from memory.recall.token_count import budget_apply, bundle_line, tokens_estimated

# The access log records at most the first number of topics that limits of a query left out. The second number of topics
# are searched in addition to ``top_k``.
CUT_KEPT, CUT_BY_LIMIT = 20, 5


@dataclass(slots=True)
class Answer:
    """The reply as plain values, and the milliseconds of each stage."""

    body: QueryReply
    timings: dict[str, float] = field(default_factory=dict)


def query_answer(request: QueryRequest, *, principal: Principal, now: dt.datetime, record: bool = True) -> Answer:
    """Answer a question and record what was retrieved.

    Without ``record``, the answer is the same, but no access row is written: a preview of the answer for an agent.

    Runs one transaction. With the semantic stage it has five statements (policies, probe, candidates, bundles, access
    log), without it three, for any number of topics and candidates. Raises ``NotVisible`` for a scope outside the
    caller's, ``ValueRefused`` for a malformed scope, ``EmbeddingFailed``.
    """
    scope = principal.scope_chosen(request.scope)
    answer = Answer({"query": request.q, "candidates": [], "summary_text": ""})
    started = time.perf_counter()
    semantic = "semantic" in request.stages
    # The first statements run while the question is embedded.
    vector_wait = embedder_get().query_begin(request.q) if semantic else None
    with transaction.atomic():
        policies = policies_current()
        knobs = policies.knobs(scope)
        ranked: dict[uuid.UUID, Ranked] = {}
        if vector_wait is not None:
            ranked = _rank(request, vector_wait, scope, knobs, now, answer)
            ids = [each.topic_id for each in list(ranked.values())[: request.top_k] if not _is_below(each, request)]
        else:
            ids = list(dict.fromkeys(request.topic_ids or ()))[: request.top_k]
        with _timed(answer, "structural" if "structural" in request.stages else "bundles"):
            bundles = bundles_load(ids, _options(request, scope, principal, now))
        for bundle in bundles:
            found = ranked.get(uuid.UUID(bundle["topic_id"]))
            if found is not None:
                bundle["similarity"], bundle["relevance"] = found.similarity, found.relevance
                bundle["score"] = found.score
                if request.explain:
                    bundle["score_parts"] = {
                        "meaning": found.meaning,
                        "own_words": found.own_words,
                        "neighbor_words": found.neighbor_words,
                        "decay": found.decay,
                    }
        bundles = budget_apply(bundles, request.token_budget)
        text = "\n".join(f"- {bundle_line(bundle)}" for bundle in bundles)
        if record:
            with _timed(answer, "record"), on_primary():
                returned = [uuid.UUID(bundle["topic_id"]) for bundle in bundles]
                retrieval_record(
                    returned,
                    scores=[bundle.get("score") for bundle in bundles],
                    relevances=[bundle.get("relevance") for bundle in bundles],
                    cut_ids=[topic_id for topic_id in ranked if topic_id not in returned][:CUT_KEPT],
                    field_ids=[uuid.UUID(entry["id"]) for bundle in bundles for entry in bundle["fields"]],
                    query=request.q,
                    query_hash=request.digest(scope),
                    scope=scope,
                    tokens=tokens_estimated(text),
                    milliseconds=(time.perf_counter() - started) * 1000,
                    principal=principal,
                    knobs=knobs,
                    now=now,
                    # A query about the past does not count as use.
                    counts=request.as_of is None,
                )
                activity_note(policies, {scope, *(bundle["scope"] for bundle in bundles)}, now=now)
    answer.body["candidates"] = bundles
    answer.body["summary_text"] = text
    if request.explain:
        answer.body["explain"] = {
            "milliseconds": answer.timings,
            "scope": scope,
            "stages": request.stages,
            "min_relevance": request.min_relevance,
            "reinforce_min_relevance": knobs.reinforce_min_relevance,
        }
    return answer


def _is_below(found: Ranked, request: QueryRequest) -> bool:
    if request.min_relevance is None or found.relevance is None:
        return False
    return found.relevance < request.min_relevance


def _rank(
    request: QueryRequest,
    vector_wait: Callable[[], Vectors],
    scope: str,
    knobs: Knobs,
    now: dt.datetime,
    answer: Answer,
) -> dict[uuid.UUID, Ranked]:
    filters = CandidateFilter(
        scope=scope,
        kinds=request.kinds,
        categories=request.categories,
        topic_ids=request.topic_ids,
        as_of=request.as_of,
        include_archived=request.include_archived,
    )
    with _timed(answer, "semantic"):
        probe = question_probe(
            request.q, filters, exact_below=knobs.recall_exact_below, candidates=knobs.recall_candidates
        )
    with _timed(answer, "embedding"):
        vector = vector_wait()
    with _timed(answer, "semantic"):
        found = candidates_rank(
            vector,
            probe,
            filters,
            limit=request.top_k,
            more=CUT_BY_LIMIT,
            knobs=knobs,
            embedder=embedder_get(),
            now=now,
        )
    return {candidate.topic_id: candidate for candidate in found}


def _options(request: QueryRequest, scope: str, principal: Principal, now: dt.datetime) -> BundleOptions:
    return BundleOptions(
        now=now,
        scope=scope,
        caller=principal.scope,
        kinds=request.kinds,
        categories=request.categories,
        field_names=request.field_names,
        history="temporal" in request.stages and request.explain,
        include_cold=request.include_cold,
        include_archived=request.include_archived,
        as_of=request.as_of,
        depth=request.depth if "structural" in request.stages else 0,
    )


@contextmanager
def _timed(answer: Answer, stage: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        answer.timings[stage] = answer.timings.get(stage, 0.0) + (time.perf_counter() - started) * 1000
