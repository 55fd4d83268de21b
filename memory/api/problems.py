"""Errors as RFC 9457 problem documents, and the status of each problem."""

import json
import math
import shutil
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, TypeVar

import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import IntegrityError, OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from psycopg.errors import (
    DeadlockDetected,
    DiskFull,
    ForeignKeyViolation,
    LockNotAvailable,
    ProgramLimitExceeded,
    QueryCanceled,
)

from memory.access.keys import KeyRefused
from memory.access.limits import TooManyRequests
from memory.agents.chat.background_turn import TooManyConversations
from memory.agents.chat.idempotency import MessageAtWork
from memory.api.parsing import BodyInChunks, BodyTooLarge, body_in_chunks
from memory.core.errors import (
    Conflict,
    MemoryProblem,
    NotAllowed,
    NotVisible,
    PreconditionFailed,
    RequestRefused,
    ValueRefused,
)
from memory.core.problem_codes import ProblemCode
from memory.core.requests import validation_problem
from memory.embedding import EmbeddingFailed, EmbeddingTimeUsed
from memory.llm.wire import ModelProblem, RateLimited
from memory.stores.keys import StoreBehind, StoreElsewhere

logger = structlog.get_logger(__name__)

Reply = TypeVar("Reply", bound=HttpResponseBase)

STATUSES: dict[type[MemoryProblem], int] = {
    RequestRefused: 400,
    KeyRefused: 401,
    NotAllowed: 403,
    NotVisible: 404,
    PreconditionFailed: 412,
    Conflict: 409,
    BodyTooLarge: 413,
    StoreElsewhere: 421,
    ValueRefused: 422,
    TooManyRequests: 429,
    EmbeddingTimeUsed: 429,
    EmbeddingFailed: 503,
    TooManyConversations: 503,
    StoreBehind: 503,
    # Most callers of a model handle its failure themselves. This status is for the other callers.
    ModelProblem: 503,
}

# PostgreSQL writes its WAL in files of 16 MB and stops if the disk has less free space.
FULL_BYTES = 16 * 1024 * 1024

# Retry-After in seconds, if a rate-limited model does not state how long to wait.
RATE_LIMITED_SECONDS = 30

# Status phrases that differ between versions of Python.
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}


def problem_status(problem: MemoryProblem) -> int:
    """Return the HTTP status of a problem."""
    return next(status for kind, status in STATUSES.items() if isinstance(problem, kind))


def problem_response(
    status: int,
    sentence: str,
    code: ProblemCode,
    headers: Mapping[str, str] | None = None,
    *,
    members: Mapping[str, object] | None = None,
) -> HttpResponse:
    """Return a problem document with ``sentence`` as detail, ``code`` as type, and the additional ``members``."""
    title = TITLES.get(status) or HTTPStatus(status).phrase
    body = {"type": code.urn, "title": title, "status": status, "detail": sentence, **(members or {})}
    return not_stored(
        HttpResponse(
            json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
            status=status,
            content_type="application/problem+json",
            headers=headers,
        )
    )


def not_stored(response: Reply) -> Reply:
    """Forbid caches to store ``response``, unless it already has a Cache-Control. Caches do not know that replies to
    ``X-API-Key`` are private."""
    response.setdefault("Cache-Control", "no-store")
    return response


def refusal_response(problem: MemoryProblem) -> HttpResponse:
    """Return the problem document of a refusal, with its headers."""
    headers = {}
    if isinstance(problem, KeyRefused):
        headers["WWW-Authenticate"] = 'Bearer realm="memstate"'
    wait = _retry_after(problem)
    if wait is not None:
        headers["Retry-After"] = str(math.ceil(wait))
    members = {"member": problem.member} if problem.member else None
    return problem_response(problem_status(problem), problem.sentence, problem.code, headers, members=members)


def _retry_after(problem: MemoryProblem) -> float | None:
    if isinstance(problem, TooManyRequests | EmbeddingTimeUsed | TooManyConversations | MessageAtWork):
        return problem.retry_after
    if isinstance(problem, RateLimited):
        return problem.wait or RATE_LIMITED_SECONDS
    return problem.wait if isinstance(problem, ModelProblem) else None


class Failure(NamedTuple):
    """The reply to an exception that is not a ``MemoryProblem``."""

    status: int
    sentence: str
    code: ProblemCode


# Replies to errors of the database, by cause. The code is also logged.
_DATABASE_FAILURES = {
    (LockNotAvailable, DeadlockDetected): Failure(
        503, "Other requests are writing to the same topics. Retry shortly.", ProblemCode.BUSY
    ),
    (ProgramLimitExceeded,): Failure(422, "A text is too large for the database to index.", ProblemCode.TOO_LARGE),
    (QueryCanceled,): Failure(503, "The database took longer than a request may take.", ProblemCode.DATABASE_SLOW),
}
_DISK_FULL = Failure(
    503, "The disk that holds the database is full. Nothing was written. Make room there.", ProblemCode.DISK_FULL
)
_DATABASE_UNREACHABLE = Failure(503, "The database is not reachable. Retry shortly.", ProblemCode.DATABASE_UNAVAILABLE)
_PURGED_MEANWHILE = Failure(
    503, "A referenced topic was purged at the same time. Nothing was written.", ProblemCode.ERASED_MEANWHILE
)
_BODY_INCOMPLETE = Failure(408, "The body of the request did not arrive completely.", ProblemCode.INVALID_BODY)
_INTERNAL_ERROR = Failure(500, "Internal server error; see the server log.", ProblemCode.INTERNAL_ERROR)


def failure_of(problem: Exception) -> Failure:
    """Return the reply to an unexpected error: a database failure or a bug. The log has the details."""
    cause = problem.__cause__
    if isinstance(problem, UnreadablePostError):
        # The client closed the connection or is too slow.
        return _BODY_INCOMPLETE
    if isinstance(problem, OperationalError):
        failure = next(
            (found for causes, found in _DATABASE_FAILURES.items() if isinstance(cause, causes)), _DATABASE_UNREACHABLE
        )
        if isinstance(cause, DiskFull) or (failure is _DATABASE_UNREACHABLE and _disk_full()):
            failure = _DISK_FULL
        logger.warning(failure.code.replace("-", "_"), problem=str(problem))
        return failure
    if isinstance(problem, IntegrityError) and isinstance(cause, ForeignKeyViolation):
        # The referenced row no longer exists, and only a purge deletes rows.
        return _PURGED_MEANWHILE
    logger.error("request_failed", exc_info=problem)
    return _INTERNAL_ERROR


def _disk_full() -> bool:
    """Return whether the disk of the embedded database is full. PostgreSQL then stops and does not answer."""
    if not connection.settings_dict["HOST"].startswith("/"):
        return False
    try:
        return shutil.disk_usage(settings.MEMSTATE_DATA_DIR).free < FULL_BYTES
    except OSError:
        return False


def problems_register(api: NinjaAPI) -> None:
    """Make ``api`` answer every exception with a problem document."""

    def on_problem(_request: HttpRequest, problem: MemoryProblem) -> HttpResponse:
        return refusal_response(problem)

    def on_validation(request: HttpRequest, problem: ValidationError) -> HttpResponse:
        if any(error["type"] == "missing" and error["loc"] == ("body", "payload") for error in problem.errors):
            if body_in_chunks(request):
                return on_problem(request, BodyInChunks())
            return problem_response(422, "The request has no body.", ProblemCode.INVALID_BODY)
        return on_problem(request, validation_problem(problem.errors))

    def on_http(request: HttpRequest, problem: HttpError) -> HttpResponse:
        # Ninja wraps the exception of the body parser. The error message is in the wrapped exception.
        if isinstance(problem.__cause__, MemoryProblem):
            return on_problem(request, problem.__cause__)
        if isinstance(problem.__cause__, RequestDataTooBig):
            return on_too_big(request, problem.__cause__)
        if isinstance(problem.__cause__, UnreadablePostError):
            return problem_response(*_BODY_INCOMPLETE)
        return problem_response(problem.status_code, str(problem), ProblemCode.INVALID_JSON)

    def on_missing(_request: HttpRequest, _problem: Http404) -> HttpResponse:
        return problem_response(404, "This URL does not exist.", ProblemCode.ADDRESS_NOT_FOUND)

    def on_too_big(_request: HttpRequest, _problem: RequestDataTooBig) -> HttpResponse:
        return problem_response(413, "The body is larger than any request may be.", ProblemCode.BODY_TOO_LARGE)

    def on_failure(_request: HttpRequest, problem: Exception) -> HttpResponse:
        return problem_response(*failure_of(problem))

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
