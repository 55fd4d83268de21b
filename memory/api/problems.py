"""Errors as RFC 9457 problem documents: one place where a problem becomes a status."""

import json
import math
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
from memory.assistant.once import MessageAtWork
from memory.assistant.running import TooManyConversations
from memory.domain.errors import Conflict, MemoryProblem, NotAllowed, NotVisible, RequestRefused, ValueRefused
from memory.embedding import EmbeddingFailed
from memory.ingest.batch import validation_sentence
from memory.ingest.idempotency import StillInProgress
from memory.llm.client import ModelProblem
from memory.llm.wire import RateLimited

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
    TooManyConversations: 503,
    # Whoever asks a model has an answer without it; this is for one who forgot.
    ModelProblem: 503,
}

# What programs are to tell apart within a status, by a name that no sentence changes.
ABOUT_BLANK = "about:blank"
TYPES: dict[type[MemoryProblem], str] = {StillInProgress: "urn:memstate:problem:still-in-progress"}

# Of a model that is rate-limiting requests without saying for how long.
UNTOLD_SECONDS = 30

# Where versions of Python have different phrases for a status.
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}


def problem_status(problem: MemoryProblem) -> int:
    """Return the status that a problem is answered with."""
    return next(status for kind, status in STATUSES.items() if isinstance(problem, kind))


def problem_response(
    status: int,
    sentence: str,
    headers: Mapping[str, str] | None = None,
    *,
    kind: str = ABOUT_BLANK,
    members: Mapping[str, object] | None = None,
) -> HttpResponse:
    """Return a problem document with ``sentence`` as its detail, ``kind`` as its type, and ``members`` beside it."""
    title = TITLES.get(status) or HTTPStatus(status).phrase
    body = {"type": kind, "title": title, "status": status, "detail": sentence, **(members or {})}
    return HttpResponse(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status=status,
        content_type="application/problem+json",
        headers=headers,
    )


def refusal_response(problem: MemoryProblem) -> HttpResponse:
    """Return the problem document of a refusal, with the headers that belong to it."""
    headers = {}
    if isinstance(problem, KeyRefused):
        headers["WWW-Authenticate"] = 'Bearer realm="memstate"'
    wait = _wait(problem)
    if wait is not None:
        headers["Retry-After"] = str(math.ceil(wait))
    kind = next((name for each, name in TYPES.items() if isinstance(problem, each)), ABOUT_BLANK)
    return problem_response(problem_status(problem), problem.sentence, headers, kind=kind)


def _wait(problem: MemoryProblem) -> float | None:
    """Return in how many seconds it is worth trying again, where anybody knows."""
    if isinstance(problem, TooManyRequests | TooManyConversations | MessageAtWork):
        return problem.retry_after
    if isinstance(problem, RateLimited):
        return problem.wait or UNTOLD_SECONDS
    return problem.wait if isinstance(problem, ModelProblem) else None


# What the database says no to, by the cause: the status, the word for the log, the sentence.
_DATABASE_TOLD = {
    (LockNotAvailable, DeadlockDetected): (
        503,
        "database_busy",
        "Others are writing to the same topics; try again in a moment.",
    ),
    (ProgramLimitExceeded,): (422, "text_too_large", "A text is too large for the database to index."),
    (QueryCanceled,): (503, "database_slow", "The database took longer than a request may take."),
}


def failure_told(problem: Exception) -> tuple[int, str]:
    """Return the status and the sentence for what is no refusal: the database was of no help, or we made a mistake.

    The sentence says nothing of the inside; the log says the rest.
    """
    cause = problem.__cause__
    if isinstance(problem, OperationalError):
        status, event, sentence = next(
            (told for causes, told in _DATABASE_TOLD.items() if isinstance(cause, causes)),
            (503, "database_unavailable", "The database cannot be reached; try again in a moment."),
        )
        logger.warning(event, problem=str(problem))
        return status, sentence
    if isinstance(problem, IntegrityError) and isinstance(cause, ForeignKeyViolation):
        # Nothing but a purge takes a row away.
        return 503, "What this refers to was purged at the same moment; nothing was written."
    logger.error("request_failed", exc_info=problem)
    return 500, "Something went wrong here; the log of the server says what."


def problems_register(api: NinjaAPI) -> None:
    """Make ``api`` answer every exception with a problem document."""

    def on_problem(_request: HttpRequest, problem: MemoryProblem) -> HttpResponse:
        return refusal_response(problem)

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

    def on_failure(_request: HttpRequest, problem: Exception) -> HttpResponse:
        return problem_response(*failure_told(problem))

    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        MemoryProblem: on_problem,
        ValidationError: on_validation,
        HttpError: on_http,
        Http404: on_missing,
        RequestDataTooBig: on_too_big,
        Exception: on_failure,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)
