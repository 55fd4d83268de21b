"""Errors as RFC 9457 problem documents: one place where a problem becomes a status."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import IntegrityError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from psycopg.errors import DeadlockDetected, ForeignKeyViolation, LockNotAvailable, ProgramLimitExceeded, QueryCanceled

from memory.access.keys import KeyRefused
from memory.access.limits import TooManyRequests
from memory.api.parsing import BodyInChunks, BodyTooLarge, body_in_chunks
from memory.domain.errors import Conflict, MemoryProblem, NotAllowed, NotVisible, RequestRefused, ValueRefused
from memory.embedding import EmbeddingFailed
from memory.ingest.batch import validation_sentence
from memory.llm.client import ModelProblem

logger = structlog.get_logger(__name__)

STATUSES: dict[type[MemoryProblem], int] = {
    RequestRefused: 400,
    KeyRefused: 401,
    NotAllowed: 403,
    NotVisible: 404,
    Conflict: 409,
    BodyTooLarge: 413,
    ValueRefused: 422,
    TooManyRequests: 429,
    EmbeddingFailed: 503,
    # Whoever asks a model has an answer without it; this is for one who forgot.
    ModelProblem: 503,
}


# Where versions of Python have different phrases for a status.
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}


def problem_status(problem: MemoryProblem) -> int:
    """Return the status that a problem is answered with."""
    return next(status for kind, status in STATUSES.items() if isinstance(problem, kind))


def problem_response(
    status: int, sentence: str, headers: Mapping[str, str] | None = None, *, members: Mapping[str, object] | None = None
) -> HttpResponse:
    """Return a problem document with ``sentence`` as its detail, and ``members`` beside it."""
    title = TITLES.get(status) or HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": sentence, **(members or {})}
    return HttpResponse(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status=status,
        content_type="application/problem+json",
        headers=headers,
    )


def problems_register(api: NinjaAPI) -> None:
    """Make ``api`` answer every exception with a problem document."""

    def on_problem(_request: HttpRequest, problem: MemoryProblem) -> HttpResponse:
        headers = {}
        if isinstance(problem, KeyRefused):
            headers["WWW-Authenticate"] = 'Bearer realm="memstate"'
        if isinstance(problem, TooManyRequests):
            headers["Retry-After"] = str(problem.retry_after)
        return problem_response(problem_status(problem), problem.sentence, headers)

    def on_validation(request: HttpRequest, problem: ValidationError) -> HttpResponse:
        if any(error["type"] == "missing" and error["loc"] == ("body", "payload") for error in problem.errors):
            if body_in_chunks(request):
                return on_problem(request, BodyInChunks())
            return problem_response(422, "The request has no body.")
        return problem_response(422, validation_sentence(problem.errors))

    def on_http(request: HttpRequest, problem: HttpError) -> HttpResponse:
        # Ninja wraps what the body parser raises; the sentence is in what it wrapped.
        if isinstance(problem.__cause__, MemoryProblem):
            return on_problem(request, problem.__cause__)
        if isinstance(problem.__cause__, RequestDataTooBig):
            return on_too_big(request, problem.__cause__)
        return problem_response(problem.status_code, str(problem))

    def on_missing(_request: HttpRequest, _problem: Http404) -> HttpResponse:
        return problem_response(404, "There is nothing at this address.")

    def on_too_big(_request: HttpRequest, _problem: RequestDataTooBig) -> HttpResponse:
        return problem_response(413, "The body is larger than any request may be.")

    def on_database(_request: HttpRequest, problem: OperationalError) -> HttpResponse:
        logger.warning("database_unavailable", problem=str(problem))
        if isinstance(problem.__cause__, LockNotAvailable | DeadlockDetected):
            return problem_response(503, "Others are writing to the same topics; try again in a moment.")
        if isinstance(problem.__cause__, ProgramLimitExceeded):
            return problem_response(422, "A text is too large for the database to index.")
        if isinstance(problem.__cause__, QueryCanceled):
            return problem_response(503, "The database took longer than a request may take.")
        return problem_response(503, "The database cannot be reached; try again in a moment.")

    def on_integrity(request: HttpRequest, problem: IntegrityError) -> HttpResponse:
        if isinstance(problem.__cause__, ForeignKeyViolation):
            # Nothing but a purge takes a row away.
            return problem_response(503, "What this refers to was purged at the same moment; nothing was written.")
        return on_anything(request, problem)

    def on_anything(_request: HttpRequest, problem: Exception) -> HttpResponse:
        logger.error("request_failed", exc_info=problem)
        return problem_response(500, "Something went wrong here; the log of the server says what.")

    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        MemoryProblem: on_problem,
        ValidationError: on_validation,
        HttpError: on_http,
        Http404: on_missing,
        RequestDataTooBig: on_too_big,
        OperationalError: on_database,
        IntegrityError: on_integrity,
        Exception: on_anything,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)
