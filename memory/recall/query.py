"""The entry point of recall: answers a question with bundles and writes one access row."""

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import transaction

from memory.access.principal import Principal
from memory.core.errors import ValueRefused
from memory.core.policy_values import Knobs
from memory.core.problem_codes import ProblemCode
from memory.embedding import embedder_get
from memory.embedding.base import Vectors
from memory.ingest.waiting import waiting_told
from memory.policy.activity import activity_note
from memory.policy.effective import policies_current
from memory.recall.bundles import bundles_load
from memory.recall.filters import filters_of
from memory.recall.probe import question_probe
from memory.recall.ranking import Ranked, candidates_rank
from memory.recall.reinforcement import retrieval_record
from memory.recall.replies import QueryReply
from memory.recall.request import QueryRequest
from memory.recall.same_facts import each_fact_once
from memory.recall.token_count import budget_apply, bundle_line, tokens_estimated
from memory.stores.replica import on_primary

# The search ranks this number of topics more than ``top_k``, in the place of those that repeat a better one. Of the
# topics that the limits leave out, at most CUT_KEPT are recorded.
MORE, CUT_KEPT = 20, 20
# The clock of an agent may be ahead of ours by this much.
CLOCKS_DIFFER = dt.timedelta(minutes=5)


@dataclass(slots=True)
class Answer:
    """The reply as plain values, and the milliseconds of each stage."""

    body: QueryReply
    timings: dict[str, float] = field(default_factory=dict)


def query_answer(request: QueryRequest, *, principal: Principal, now: dt.datetime, record: bool = True) -> Answer:
    """Answer a question and, if ``record`` is true, write an access row. One transaction with five statements:
    policies, probe, candidates, bundles, access log. Without the semantic stage, it has three: policies, bundles,
    access log. If topics of the scope wait for the worker, one more counts them. Raises ``NotVisible`` for a scope
    outside the caller's, ``ValueRefused`` for a malformed scope, an empty period and ``asked_at`` in the future,
    ``EmbeddingFailed``."""
    if request.asked_at is not None and request.asked_at > now + CLOCKS_DIFFER:
        raise ValueRefused("`asked_at` must not be in the future.", code=ProblemCode.INVALID_PERIOD, member="asked_at")
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
        repeating: dict[uuid.UUID, list[Ranked]] = {}
        if vector_wait is not None:
            ranked, repeating = _rank(request, vector_wait, scope, knobs, now, answer)
            least = request.min_relevance or 0
            ids = [
                each.topic_id
                for each in list(ranked.values())[: request.top_k]
                if each.relevance is None or each.relevance >= least
            ]
        else:
            ids = list(dict.fromkeys(request.topic_ids or ()))[: request.top_k]
        with _timed(answer, "structural" if "structural" in request.stages else "bundles"):
            bundles = bundles_load(ids, request, scope=scope, caller=principal.scope, now=now)
        for bundle in bundles:
            found = ranked.get(uuid.UUID(bundle["topic_id"]))
            if found is not None:
                bundle["similarity"], bundle["relevance"] = found.similarity, found.relevance
                bundle["score"] = found.score
                if also := repeating.get(found.topic_id):
                    bundle["also"] = [str(each.topic_id) for each in also]
                if request.explain:
                    bundle["score_parts"] = {
                        "meaning": found.meaning,
                        "own_words": found.own_words,
                        "neighbor_words": found.neighbor_words,
                        "time": found.time,
                        "decay": found.decay,
                    }
        bundles = budget_apply(bundles, request.token_budget)
        text = "\n".join(f"- {bundle_line(bundle)}" for bundle in bundles)
        if record:
            with _timed(answer, "record"), on_primary():
                returned = {uuid.UUID(bundle["topic_id"]) for bundle in bundles}
                also = [
                    each
                    for topic_id in returned
                    for each in repeating.get(topic_id, ())
                    if each.topic_id not in returned
                ]
                returned.update(each.topic_id for each in also)
                retrieval_record(
                    bundles,
                    request,
                    also=also,
                    cut=[each for topic_id, each in ranked.items() if topic_id not in returned][:CUT_KEPT],
                    scope=scope,
                    tokens=tokens_estimated(text),
                    milliseconds=(time.perf_counter() - started) * 1000,
                    principal=principal,
                    knobs=knobs,
                    now=now,
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


def _rank(
    request: QueryRequest,
    vector_wait: Callable[[], Vectors],
    scope: str,
    knobs: Knobs,
    now: dt.datetime,
    answer: Answer,
) -> tuple[dict[uuid.UUID, Ranked], dict[uuid.UUID, list[Ranked]]]:
    filters = filters_of(request, scope=scope)
    with _timed(answer, "semantic"):
        probe = question_probe(
            request.q,
            filters,
            exact_below=knobs.recall_exact_below,
            candidates=knobs.recall_candidates,
            today=(request.asked_at or now).astimezone(dt.UTC).date(),
        )
    if (waiting := waiting_told(probe.waiting, now=now)) is not None:
        answer.body["waiting"] = waiting
    with _timed(answer, "embedding"):
        vector = vector_wait()
    with _timed(answer, "semantic"):
        found = candidates_rank(
            vector,
            probe,
            filters,
            limit=request.top_k,
            more=MORE,
            compare=True,
            knobs=knobs,
            embedder=embedder_get(),
            now=now,
        )
        found, repeating = each_fact_once(found)
    return {candidate.topic_id: candidate for candidate in found}, repeating


@contextmanager
def _timed(answer: Answer, stage: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        answer.timings[stage] = answer.timings.get(stage, 0.0) + (time.perf_counter() - started) * 1000
